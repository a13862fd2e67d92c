//! UDP flows between the hosts of a lab: the senders and receivers of the core over real sockets.
//!
//! The kernel cuts messages into fragments and puts them together again, so that what a socket
//! gives is a whole message. A message says in its first bytes ([`HEADER`]) which one it is and when
//! it was sent; all hosts are on one machine, so the clock of its receiver is that of its sender.
//!
//! A virtual device never makes a sender wait. What a host holds is in the switch, which tells what
//! has left ([`Departures`]), and so a sender keeps no more in its host than its send buffer takes.

mod sink;
mod source;

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use nix::sys::socket::{setsockopt, sockopt};
use shallows_core::units::Time;
use shallows_model::workload::Workload;
use shallows_model::{FlowId, IdVec};
use socket2::SockRef;

use super::{OperationTime, TrafficError};
use crate::lab::{self, Lab};
use crate::switch::Departures;
use sink::{Arrivals, Sinks};
use source::Sources;

/// Port of every receiver.
pub(crate) const STREAM_PORT: u16 = 7184;

/// Flow, number and time of a message, at its beginning: no message is shorter.
pub const HEADER: usize = 20;

/// A message that was sent later than this after its time is counted as late.
pub const LATE: Time = Time::from_ms(1);

/// Bytes that a socket may hold, so that a program that waits for its CPU loses nothing.
const SOCKET_BUFFER: usize = 16 << 20;

/// Totals over all UDP senders and receivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StreamTotals {
    /// Messages sent.
    pub sent: u64,
    /// Messages that were due while the send buffer was full.
    pub refused: u64,
    /// Messages that the kernel did not take.
    pub not_taken: u64,
    /// Messages that were sent more than [`LATE`] after their time.
    pub late: u64,
    /// Greatest lateness, in nanoseconds.
    pub latest_ns: u64,
    /// Messages that arrived whole.
    pub received: u64,
    /// Messages that arrived whole and found their receiver's socket full.
    pub socket_drops: u64,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    flow: u32,
    message: u64,
    /// Nanoseconds since the run's epoch.
    sent_ns: u64,
}

impl Stamp {
    fn write(self, bytes: &mut [u8; HEADER]) {
        bytes[..4].copy_from_slice(&self.flow.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.message.to_be_bytes());
        bytes[12..].copy_from_slice(&self.sent_ns.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER>()?;
        let (flow, rest) = bytes.split_first_chunk::<4>()?;
        let (message, rest) = rest.split_first_chunk::<8>()?;
        Some(Self {
            flow: u32::from_be_bytes(*flow),
            message: u64::from_be_bytes(*message),
            sent_ns: u64::from_be_bytes(*rest.first_chunk::<8>()?),
        })
    }
}

/// UDP flows that are ready to start.
#[derive(Debug)]
pub(super) struct Datagrams {
    sources: Sources,
    sinks: Sinks,
    /// Stop time of the last flow; never if one has no such time.
    last_stop: Time,
}

/// UDP flows under way.
#[derive(Debug)]
pub(super) struct Running {
    stop: Arc<AtomicBool>,
    senders: JoinHandle<StreamTotals>,
    receivers: JoinHandle<io::Result<Arrivals>>,
    last_stop: Time,
}

impl Datagrams {
    /// Opens the sockets of the flows that are UDP; nothing if there are none.
    pub(super) fn prepare(
        lab: &Lab,
        workload: &Workload,
        seed: u64,
        departures: &Arc<Departures>,
        received: &IdVec<FlowId, Arc<AtomicU64>>,
    ) -> Result<Option<Self>, TrafficError> {
        let (mut sources, mut sinks) = (Sources::new(departures), Sinks::default());
        let mut last_stop = Time::ZERO;
        for of in &workload.datagrams {
            let number = of.flow;
            let flow = &workload.flows[number];
            let stream = &workload.streams[of.stream as usize];
            let stop = workload.stop(number);
            sinks.add(lab, number, flow, stream, &received[number])?;
            sources.add(lab, number, (flow, stop), stream, seed)?;
            last_stop = last_stop.max(stop.unwrap_or(Time::MAX));
        }
        Ok((!sources.is_empty()).then_some(Self {
            sources,
            sinks,
            last_stop,
        }))
    }

    /// Starts to send and to receive; times count from `epoch`.
    pub(super) fn start(self, epoch: Instant) -> Result<Running, TrafficError> {
        let failed = |error| TrafficError::new("starting UDP flows", error);
        let stop = Arc::new(AtomicBool::new(false));
        let (mut sources, mut sinks) = (self.sources, self.sinks);
        let over = Arc::clone(&stop);
        let receivers = thread::Builder::new()
            .name("udp receivers".to_owned())
            .spawn(move || sinks.run(epoch, || over.load(Ordering::Relaxed)))
            .map_err(failed)?;
        let over = Arc::clone(&stop);
        let senders = thread::Builder::new()
            .name("udp senders".to_owned())
            .spawn(move || sources.run(epoch, || over.load(Ordering::Relaxed)))
            .map_err(failed)?;
        Ok(Running {
            stop,
            senders,
            receivers,
            last_stop: self.last_stop,
        })
    }
}

impl Running {
    /// Returns whether a flow has still to stop.
    pub(super) fn goes_on(&self, now: Time) -> bool {
        now < self.last_stop
    }

    /// Ends all flows; what they did, and how long messages took where that is kept.
    pub(super) fn finish(
        self,
        lab: &Lab,
    ) -> Result<(StreamTotals, Vec<OperationTime>), TrafficError> {
        let failed = |error| TrafficError::new("UDP flows", error);
        let lost = || failed(io::Error::other("a thread ended before its time"));
        self.stop.store(true, Ordering::Relaxed);
        let mut totals = self.senders.join().map_err(|_| lost())?;
        let arrivals = self.receivers.join().map_err(|_| lost())?;
        let arrivals = arrivals.map_err(failed)?;
        totals.received = arrivals.messages;
        totals.socket_drops = arrivals.socket_drops(lab)?;
        Ok((totals, arrivals.latencies))
    }
}

/// A socket at a host, which never blocks.
fn open(lab: &Lab, host: usize, port: u16, dscp: u8) -> Result<UdpSocket, TrafficError> {
    let address = lab::address(host);
    let bind = || UdpSocket::bind((address, port));
    let socket = lab.host(host).enter(bind)?.and_then(|socket| {
        socket.set_nonblocking(true)?;
        SockRef::from(&socket).set_tos_v4(u32::from(dscp) << 2)?;
        setsockopt(&socket, sockopt::SndBufForce, &SOCKET_BUFFER)?;
        setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER)?;
        Ok(socket)
    });
    socket.map_err(|error| TrafficError::new(format!("a UDP socket at {address}"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_way() {
        let stamp = Stamp {
            flow: 7,
            message: u64::MAX - 1,
            sent_ns: 1_234_567_890_123,
        };
        let mut bytes = [0; HEADER];
        stamp.write(&mut bytes);
        assert_eq!(Stamp::read(&bytes), Some(stamp));
        assert_eq!(
            Stamp::read(&[&bytes[..], &[0x5a; 100]].concat()),
            Some(stamp)
        );
        assert_eq!(Stamp::read(&bytes[..HEADER - 1]), None);
    }
}
