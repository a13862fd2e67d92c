//! The receiving ends of UDP flows.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use shallows_core::host::udp::{Datagram, IP_HEADER, Receiver, UDP_HEADER, UdpConfig};
use shallows_core::units::Time;
use shallows_model::workload::FlowSpec;
use shallows_model::{FlowId, Id as _};

use super::super::{OperationTime, TrafficError, give_up_root};
use super::{STREAM_PORT, Stamp, open};
use crate::lab::Lab;
use crate::since;

/// The longest time between two looks at whether to go on.
const ATTENTION: Duration = Duration::from_millis(50);

/// Messages of one host before it is the next one's turn.
const MESSAGES_AT_A_TURN: usize = 64;

/// All receiving ends, on one thread.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    /// The socket of each host.
    sockets: BTreeMap<usize, UdpSocket>,
    flows: BTreeMap<u32, Sink>,
}

/// The receiving end of a flow.
#[derive(Debug)]
struct Sink {
    host: usize,
    receiver: Receiver,
    /// Counter of arrived bytes while the flow runs.
    received: Arc<AtomicU64>,
    keeps_latencies: bool,
}

/// Arrived messages.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    pub(super) messages: u64,
    pub(super) latencies: Vec<OperationTime>,
    hosts: Vec<usize>,
}

impl Sinks {
    /// Opens the receiving end of a flow.
    pub(super) fn add(
        &mut self,
        lab: &Lab,
        FlowId(number): FlowId,
        flow: &FlowSpec,
        stream: &UdpConfig,
        received: &Arc<AtomicU64>,
    ) -> Result<(), TrafficError> {
        let host = flow.dst.index();
        if let Entry::Vacant(place) = self.sockets.entry(host) {
            place.insert(open(lab, host, STREAM_PORT, 0)?);
        }
        let sink = Sink {
            host,
            receiver: Receiver::new(stream),
            received: Arc::clone(received),
            keeps_latencies: stream.latencies,
        };
        self.flows.insert(number, sink);
        Ok(())
    }

    /// Receives until `over` says so.
    pub(super) fn run(&mut self, epoch: Instant, over: impl Fn() -> bool) -> io::Result<Arrivals> {
        give_up_root();
        let mut arrivals = Arrivals {
            hosts: self.sockets.keys().copied().collect(),
            ..Arrivals::default()
        };
        let mut buffer = vec![0; 1 << 16];
        while !over() {
            let files = self.sockets.values();
            let files = files.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN));
            let mut files: Vec<PollFd<'_>> = files.collect();
            // A signal only ends the wait.
            let _ = ppoll(&mut files, Some(TimeSpec::from_duration(ATTENTION)), None);
            for socket in self.sockets.values() {
                for _ in 0..MESSAGES_AT_A_TURN {
                    match socket.recv(&mut buffer) {
                        Ok(length) => {
                            let message = &buffer[..length];
                            arrivals.take(&mut self.flows, since(epoch), message);
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        for sink in self.flows.values() {
            arrivals.messages += sink.receiver.stats().delivered.packets;
        }
        Ok(arrivals)
    }
}

impl Arrivals {
    /// Counts a message, if it is one of ours.
    fn take(&mut self, flows: &mut BTreeMap<u32, Sink>, now: Time, message: &[u8]) {
        let Some(stamp) = Stamp::read(message) else {
            return;
        };
        let Some(sink) = flows.get_mut(&stamp.flow) else {
            return;
        };
        let len = message.len() as u32;
        // The kernel has put its fragments together.
        let whole = Datagram {
            message: stamp.message,
            sent_at: Time::from_ns(stamp.sent_ns),
            size: len + IP_HEADER + UDP_HEADER,
            len,
            fragment: 0,
            fragments: 1,
            ect: false,
        };
        let Some(delivery) = sink.receiver.handle_packet(now, &whole) else {
            return;
        };
        sink.received
            .fetch_add(delivery.len.into(), Ordering::Relaxed);
        if sink.keeps_latencies {
            self.latencies.push(OperationTime {
                application: "udp".to_owned(),
                host: sink.host,
                name: "message",
                start: whole.sent_at,
                latency: delivery.delay,
            });
        }
    }

    /// Messages that found a socket full at the hosts that receive, as the kernel counts them.
    pub(super) fn socket_drops(&self, lab: &Lab) -> Result<u64, TrafficError> {
        let mut drops = 0;
        for &host in &self.hosts {
            let text = lab
                .host(host)
                .enter(|| fs::read_to_string("/proc/thread-self/net/snmp"))?;
            let text = text.map_err(|error| TrafficError::new("reading UDP's counters", error))?;
            drops += counter(&text, "Udp:", "RcvbufErrors").unwrap_or_default();
        }
        Ok(drops)
    }
}

/// A counter of `/proc/net/snmp`, which has a line of names and one of values for each protocol.
fn counter(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    columns.find(|(of, _)| *of == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let text = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
                    Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
                    Udp: 45 0 2 3 17\n\
                    UdpLite: InDatagrams\nUdpLite: 9\n";
        assert_eq!(counter(text, "Udp:", "RcvbufErrors"), Some(17));
        assert_eq!(counter(text, "Udp:", "Nothing"), None);
        assert_eq!(counter("", "Udp:", "RcvbufErrors"), None);
    }

    #[test]
    fn whole_messages_are_counted_by_flow_and_strangers_are_not() {
        let config: UdpConfig = toml::from_str("latencies = true").unwrap();
        let received: Arc<AtomicU64> = Arc::default();
        let sink = Sink {
            host: 3,
            receiver: Receiver::new(&config),
            received: Arc::clone(&received),
            keeps_latencies: true,
        };
        let mut flows = BTreeMap::from([(7, sink)]);
        let mut arrivals = Arrivals::default();
        let message = |flow, message, length: usize| {
            let mut bytes = vec![0; length];
            let stamp = Stamp {
                flow,
                message,
                sent_ns: 1_000_000,
            };
            stamp.write(bytes.first_chunk_mut().unwrap());
            bytes
        };
        let now = Time::from_us(1_250);
        for bytes in [message(7, 0, 64_000), message(8, 0, 100), vec![1, 2, 3]] {
            arrivals.take(&mut flows, now, &bytes);
        }
        assert_eq!(received.load(Ordering::Relaxed), 64_000);
        let seen = arrivals.latencies.iter();
        let seen: Vec<_> = seen.map(|of| (of.host, of.start, of.latency)).collect();
        assert_eq!(seen, [(3, Time::from_ms(1), Time::from_us(250))]);
        assert_eq!(flows[&7].receiver.stats().delivered.packets, 1);
    }
}
