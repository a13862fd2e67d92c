//! Logs of `ss -tinH`: snapshots of this machine's TCP connections, each after a line with the time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::packet::FiveTuple;
use super::{Conversation, Traffic, TrafficError, nanoseconds};

/// The command whose output is read.
pub(super) const COMMAND: &str = "while :; do date +%s.%N; ss -tinH; sleep 0.1; done > ss.log";

/// A connection with what it had sent at its first and at its last snapshot.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    start: u64,
    end: u64,
    /// Bytes sent and received before the first snapshot of a connection that was there already.
    before: [u64; 2],
    now: [u64; 2],
}

/// Returns whether this looks like such a log.
pub(super) fn is_log(text: &str) -> bool {
    text.contains("bytes_acked:") || text.contains("bytes_received:")
}

/// Reads the bytes that each connection sent and received between its snapshots.
pub(super) fn log(text: &str) -> Result<Traffic, TrafficError> {
    let mut seen: BTreeMap<FiveTuple, Snapshot> = BTreeMap::new();
    let mut first: Option<u64> = None;
    let mut now: Option<u64> = None;
    let mut connection: Option<FiveTuple> = None;
    let mut done: Vec<(FiveTuple, Snapshot)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match &words[..] {
            [] => {}
            [time] if nanoseconds(time).is_some() => {
                now = nanoseconds(time);
                first = first.or(now);
                connection = None;
            }
            [_, received, sent, local, remote, ..] if is_number(received) && is_number(sent) => {
                if now.is_none() {
                    let problem = format!("no line with the time before it; log with: {COMMAND}");
                    return Err(TrafficError::line(number, problem));
                }
                connection = tuple(local, remote);
            }
            words => {
                let (Some(tuple), Some(now)) = (connection.take(), now) else {
                    continue;
                };
                let bytes = [
                    counter(words, "bytes_acked:"),
                    counter(words, "bytes_received:"),
                ];
                let is_old = first == Some(now);
                match seen.get_mut(&tuple) {
                    // Counters that fall belong to a new connection of the same ports.
                    Some(of) if bytes[0] >= of.now[0] && bytes[1] >= of.now[1] => {
                        (of.end, of.now) = (of.end.max(now), bytes);
                    }
                    _ => {
                        let new = Snapshot {
                            start: now,
                            end: now,
                            before: if is_old { bytes } else { [0; 2] },
                            now: bytes,
                        };
                        done.extend(seen.insert(tuple, new).map(|old| (tuple, old)));
                    }
                }
            }
        }
    }
    done.extend(seen);
    let conversations = done.into_iter().flat_map(|(tuple, of)| {
        [(tuple, 0), (tuple.reversed(), 1)].map(|(tuple, way)| Conversation {
            start: of.start,
            end: of.end,
            tuple,
            dscp: 0,
            bytes: of.now[way] - of.before[way],
        })
    });
    let mut traffic = Traffic::new(conversations.filter(|of| of.bytes > 0).collect());
    traffic
        .notes
        .push("connections that begin and end between two snapshots are not in the log".to_owned());
    Ok(traffic)
}

fn is_number(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}

fn counter(words: &[&str], name: &str) -> u64 {
    let value = words.iter().find_map(|word| word.strip_prefix(name));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn tuple(local: &str, remote: &str) -> Option<FiveTuple> {
    let split = |text: &str| -> Option<(IpAddr, u16)> {
        let (address, port) = text.rsplit_once(':')?;
        let address = address.trim_matches(['[', ']']);
        // A scope follows link-local addresses, a device addresses of bound sockets.
        let address = address.split('%').next()?;
        let address: IpAddr = address.parse().ok()?;
        Some((address.to_canonical(), port.parse().ok()?))
    };
    let ((src, src_port), (dst, dst_port)) = (split(local)?, split(remote)?);
    Some(FiveTuple {
        src,
        dst,
        src_port,
        dst_port,
        protocol: 6,
    })
}
