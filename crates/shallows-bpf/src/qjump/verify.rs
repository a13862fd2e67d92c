//! Test of strict priority on the path between two hosts: a probe at each level, on an idle path
//! and next to bulk at level 0.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use serde::Serialize;
use shallows_core::host::qjump::mark_of;

use super::priority_of;

/// The first byte of bulk, which nobody answers.
const BULK: u8 = 0xFF;
/// The level, then the time of sending.
const PROBE: usize = 9;
const INTERVAL: Duration = Duration::from_millis(5);
/// Wait for answers after the last probe.
const PATIENCE: Duration = Duration::from_secs(1);

/// Round trips of the probes of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoundTrips {
    /// Probes without an answer.
    pub lost: usize,
    /// None if no probe was answered.
    pub median: Option<Duration>,
    /// The 99th percentile.
    pub p99: Option<Duration>,
}

/// Result of the probes of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Probed {
    /// The level, from 0, the lowest.
    pub level: u8,
    /// Without bulk.
    pub idle: RoundTrips,
    /// Next to bulk.
    pub loaded: RoundTrips,
}

/// Verdict of probes on a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every level passes bulk.
    Served,
    /// Bulk made level 0 wait too little to tell.
    NoQueue,
    /// These levels wait with bulk.
    NotServed(Vec<u8>),
}

/// Answers probes until `done`; calls `ready` once it does.
pub fn answer(
    at: SocketAddr,
    done: &AtomicBool,
    ready: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let socket = UdpSocket::bind(at)?;
    ready()?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut packet = [0; 2048];
    while !done.load(Ordering::Relaxed) {
        match socket.recv_from(&mut packet) {
            Ok((PROBE, from)) if packet[0] != BULK => {
                mark(&socket, packet[0])?;
                // Whoever asked may be gone.
                let _ = socket.send_to(&packet[..PROBE], from);
            }
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            // By the signal that ends it, maybe.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Probes the path to somebody who [answers](answer) at each of some levels, `count` times without
/// bulk and as often next to it.
pub fn probe(to: SocketAddr, levels: u8, count: usize) -> io::Result<Vec<Probed>> {
    let idle = probe_levels(to, levels, count)?;
    let done = AtomicBool::new(false);
    let loaded = thread::scope(|scope| {
        let bulk = scope.spawn(|| load(to, &done));
        // A queue first.
        thread::sleep(Duration::from_millis(300));
        let loaded = probe_levels(to, levels, count);
        done.store(true, Ordering::Relaxed);
        let sent = bulk.join().unwrap_or(Ok(()));
        sent.and(loaded)
    })?;
    let levels = (0..levels).zip(idle.into_iter().zip(loaded));
    Ok(levels
        .map(|(level, (idle, loaded))| Probed {
            level,
            idle,
            loaded,
        })
        .collect())
}

/// Sends bulk at level 0 as fast as it goes, until `done`.
pub fn load(to: SocketAddr, done: &AtomicBool) -> io::Result<()> {
    let socket = socket_to(to)?;
    let packet = [BULK; 1400];
    while !done.load(Ordering::Relaxed) {
        match socket.send(&packet) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            sent => {
                sent?;
            }
        }
    }
    Ok(())
}

/// Verdict of the probes of all levels. A level passes bulk if its round trips next to bulk take
/// less than half of those of level 0, and bulk costs it at most one probe or less than half of the
/// probes that it costs level 0.
pub fn verdict(probed: &[Probed]) -> Verdict {
    let Some(bulk) = probed.iter().find(|of| of.level == 0) else {
        return Verdict::NoQueue;
    };
    let is_full = bulk.loaded.lost > bulk.idle.lost;
    let (Some(idle), waited) = (bulk.idle.median, bulk.loaded.median) else {
        return Verdict::NoQueue;
    };
    if !is_full && waited.is_some_and(|waited| waited < 4 * idle) {
        return Verdict::NoQueue;
    }
    let lost_to_bulk = |of: &Probed| of.loaded.lost.saturating_sub(of.idle.lost);
    let arrives = |of: &Probed| {
        let lost = lost_to_bulk(of);
        lost <= 1 || 2 * lost < lost_to_bulk(bulk)
    };
    let is_fast = |of: &Probed| match (of.loaded.median, waited) {
        (Some(own), Some(waited)) => 2 * own < waited,
        (own, _) => own.is_some(),
    };
    let passes = |of: &&Probed| arrives(of) && is_fast(of);
    let above = probed.iter().filter(|of| of.level > 0);
    let waiting: Vec<u8> = above.filter(|of| !passes(of)).map(|of| of.level).collect();
    if waiting.is_empty() {
        Verdict::Served
    } else {
        Verdict::NotServed(waiting)
    }
}

/// All levels at once, each by a socket of its own.
fn probe_levels(to: SocketAddr, levels: u8, count: usize) -> io::Result<Vec<RoundTrips>> {
    thread::scope(|scope| {
        let probes = (0..levels).map(|level| scope.spawn(move || probe_level(to, level, count)));
        let probes: Vec<_> = probes.collect();
        let found = probes.into_iter().map(|probe| {
            let gone = |_| Err(io::Error::other("a probe has panicked"));
            probe.join().unwrap_or_else(gone)
        });
        found.collect()
    })
}

fn probe_level(to: SocketAddr, level: u8, count: usize) -> io::Result<RoundTrips> {
    let socket = socket_to(to)?;
    mark(&socket, level)?;
    let began = Instant::now();
    let mut found = Vec::with_capacity(count);
    for number in 0..count {
        let mut packet = [level; PROBE];
        let now = began.elapsed().as_nanos() as u64;
        packet[1..].copy_from_slice(&now.to_ne_bytes());
        // A limiter may drop it, which is told to some.
        let _ = socket.send(&packet);
        let pause = if number + 1 == count {
            PATIENCE
        } else {
            INTERVAL
        };
        receive(&socket, began, Instant::now() + pause, count, &mut found)?;
    }
    found.sort_unstable();
    let at =
        |share: usize| found.get((found.len() * share / 100).min(found.len().saturating_sub(1)));
    Ok(RoundTrips {
        lost: count - found.len(),
        median: at(50).copied(),
        p99: at(99).copied(),
    })
}

/// Takes answers until a time, or until there are enough.
fn receive(
    socket: &UdpSocket,
    began: Instant,
    until: Instant,
    count: usize,
    found: &mut Vec<Duration>,
) -> io::Result<()> {
    let mut packet = [0; PROBE];
    while found.len() < count {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut packet) {
            Ok(PROBE) => {
                let [_, sent @ ..] = packet;
                let sent = Duration::from_nanos(u64::from_ne_bytes(sent));
                found.push(began.elapsed().saturating_sub(sent));
            }
            Ok(_) => {}
            Err(error) if is_timeout(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    thread::sleep(
        until
            .saturating_duration_since(Instant::now())
            .min(INTERVAL),
    );
    Ok(())
}

fn socket_to(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(to)?;
    Ok(socket)
}

/// Gives a socket a level. Without root it is the DSCP that carries it.
fn mark(socket: &UdpSocket, level: u8) -> io::Result<()> {
    setsockopt(socket, sockopt::Ipv4Tos, &(i32::from(mark_of(level)) << 2))?;
    let _ = setsockopt(socket, sockopt::Priority, &priority_of(level).cast_signed());
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(level: u8, idle_us: u64, loaded_us: Option<u64>) -> Probed {
        let trips = |us: Option<u64>| RoundTrips {
            lost: usize::from(us.is_none()),
            median: us.map(Duration::from_micros),
            p99: us.map(Duration::from_micros),
        };
        Probed {
            level,
            idle: trips(Some(idle_us)),
            loaded: trips(loaded_us),
        }
    }

    #[test]
    fn a_level_is_served_if_it_passes_bulk() {
        let bulk = probed(0, 100, Some(20_000));
        let fast = probed(2, 100, Some(150));
        assert_eq!(verdict(&[bulk, fast]), Verdict::Served);
        let slow = probed(1, 100, Some(19_000));
        let lost = probed(3, 100, None);
        let waiting = Verdict::NotServed(vec![1, 3]);
        assert_eq!(verdict(&[bulk, slow, fast, lost]), waiting);
        // One probe that came through a full queue by chance is not a level that is served.
        let mut lucky = probed(1, 100, Some(28_000));
        lucky.loaded.lost = 49;
        let mut full = probed(0, 100, None);
        full.loaded.lost = 50;
        assert_eq!(verdict(&[full, lucky]), Verdict::NotServed(vec![1]));
        // Bulk that loses everything has a full queue.
        assert_eq!(verdict(&[probed(0, 100, None), fast]), Verdict::Served);
        assert_eq!(
            verdict(&[probed(0, 100, Some(150)), fast]),
            Verdict::NoQueue
        );
    }
}
