//! Bytes of UDP streams that have left their hosts.
//!
//! A real NIC holds a datagram in the sender's socket buffer until it is on the wire, and so tells
//! the sender how fast it may go. A virtual device takes everything at once: the queues of a lab's
//! hosts are in the switch, which therefore has to tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::frame::{Header, Mac, Network};

const UDP: u8 = 17;

/// Departures reported to the senders of UDP streams, by source and destination.
#[derive(Debug)]
pub struct Departures {
    hosts: usize,
    bytes: Vec<AtomicU64>,
}

impl Departures {
    /// Nothing has left any of so many hosts.
    pub fn new(hosts: usize) -> Self {
        let bytes = std::iter::repeat_with(AtomicU64::default);
        Self {
            hosts,
            bytes: bytes.take(hosts * hosts).collect(),
        }
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Bytes of packets that have left host `from` for host `to`, or were dropped in it.
    pub fn bytes(&self, from: usize, to: usize) -> u64 {
        self.bytes[from * self.hosts + to].load(Ordering::Relaxed)
    }

    fn count(&self, from: usize, to: usize, bytes: u32) {
        if let Some(of_pair) = self.bytes.get(from * self.hosts + to) {
            of_pair.fetch_add(bytes.into(), Ordering::Relaxed);
        }
    }
}

/// Frames that belong to UDP streams, and the senders to notify of their departure.
#[derive(Debug)]
pub(super) struct Streams {
    port: u16,
    stations: FxHashMap<Mac, u8>,
    departures: Arc<Departures>,
}

impl Streams {
    /// Streams go to UDP port `port`; `stations` are the hosts' addresses in their order.
    pub(super) fn new(
        port: u16,
        stations: impl Iterator<Item = Mac>,
        departures: Arc<Departures>,
    ) -> Self {
        Self {
            port,
            stations: stations.zip(0..).collect(),
            departures,
        }
    }

    /// The host that a frame goes to, if it is of a stream. Only the first fragment of a message
    /// has ports; later ones are taken to be of a stream, because nothing else here is as long.
    pub(super) fn destination(&self, bytes: &[u8], header: &Header) -> Option<u8> {
        let Network::Ipv4(at) = header.network else {
            return None;
        };
        let packet = bytes.get(at..)?;
        if packet[9] != UDP {
            return None;
        }
        let offset = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff;
        let ports = usize::from(packet[0] & 0xf) * 4;
        let to = packet.get(ports + 2..ports + 4);
        if offset == 0 && to != Some(&self.port.to_be_bytes()) {
            return None;
        }
        self.stations.get(&header.destination).copied()
    }

    /// A packet of `bytes` to host `to` has left host `from`, or was dropped in it.
    pub(super) fn left(&self, from: usize, to: u8, bytes: u32) {
        self.departures.count(from, to.into(), bytes);
    }
}
