//! Links that lose packets, and what can be seen of packets on their way.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use shallows_core::host::udp::Datagram;
use shallows_core::packet::Ecn;
use shallows_core::port::DropReason;
use shallows_core::random::Coin;
use shallows_core::tcp::{Ack, Segment};
use shallows_core::units::{Bytes, Time};

use crate::engine::SLOT;
use crate::ids::ShardId;
use crate::partition::Partition;
use crate::routing::LinkState;
use crate::setup::Setup;
use shallows_model::{Fault, FlowId, HostId, LinkId};

/// Packets to observe on their way. Such runs use one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Round-trip times that senders see, with every ACK of new data.
    pub rtt: bool,
    /// Links whose waiting times are recorded, in order within each link.
    pub sojourn: BTreeSet<LinkId>,
    /// All packets on these links.
    pub captured: BTreeSet<LinkId>,
    /// Packets that the ports of captured links drop.
    pub drops: bool,
}

/// Something that was seen of a packet.
#[derive(Clone, Debug)]
pub enum Observation {
    /// A sender has an ACK of something sent so long ago.
    Rtt {
        /// Time of the observation.
        time: Time,
        /// Flow of the packet.
        flow: FlowId,
        /// From sending to the ACK.
        rtt: Time,
    },
    /// A packet waited so long.
    Sojourn {
        /// Before which link.
        link: LinkId,
        /// In which queue.
        queue: usize,
        /// From its arrival to the start of its transmission.
        sojourn: Time,
    },
    /// A packet was sent on a link. Boxed, because the others are small and many.
    Packet(Box<CapturedPacket>),
    /// A port dropped a packet.
    Drop(DroppedPacket),
}

/// A packet that a port dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedPacket {
    /// Time of the drop.
    pub time: Time,
    /// Link of the port.
    pub link: LinkId,
    /// Flow of a data packet; an ACK has none.
    pub flow: Option<FlowId>,
    /// Connection, named after its first flow.
    pub connection: FlowId,
    /// Bytes with headers.
    pub size: u32,
    /// Packets queued at the port, which leave it later.
    pub waiting: u32,
    /// Reason of the drop.
    pub reason: DropReason,
}

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket {
    /// Time at which its last bit was on the link.
    pub time: Time,
    /// Arrival at the far end; a packet that the link loses has none.
    pub arrival: Option<Time>,
    /// Time from its arrival at the port to the start of its transmission.
    pub sojourn: Time,
    /// Link.
    pub link: LinkId,
    /// Queue of the port.
    pub queue: u32,
    /// Identity of the packet while it is in the fabric; reused afterwards.
    pub number: u32,
    /// Flow of a data packet; an ACK has none.
    pub flow: Option<FlowId>,
    /// The host that sent it.
    pub src: HostId,
    /// The host that it is for.
    pub dst: HostId,
    /// Its connection, called like the first flow on it.
    pub connection: FlowId,
    /// Bytes with headers.
    pub size: u32,
    /// Its service.
    pub dscp: u8,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Content of the packet.
    pub content: Content,
    /// Bytes of data in a full packet of its connection, if that is RoCE.
    pub roce_segment: Option<u32>,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Data, or a SYN.
    Segment(Segment),
    /// An acknowledgement.
    Ack(Ack),
    /// A message of UDP, or a fragment of one.
    Datagram(Datagram),
}

/// Events that keep their order where a link is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Those of one port among each other.
    OfPorts,
    /// All.
    Strict,
}

/// Faults and observers of a link.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    /// The shard that it leads to.
    pub(crate) to: ShardId,
    /// From the last bit's departure until the receiver has the packet.
    pub(crate) delay: Time,
    pub(crate) state: LinkState,
    pub(crate) sojourn: bool,
    pub(crate) captured: bool,
    /// True if senders of its host follow what leaves it.
    pub(crate) departures: bool,
    pub(crate) order: Order,
    fault: Fault,
    coin: Coin,
    /// Packets that did not arrive.
    pub(crate) lost: u64,
}

impl Watched {
    /// Decides whether a packet arrives.
    pub(crate) fn arrives(&mut self) -> bool {
        let arrives = self.state == LinkState::Up
            && !self.coin.heads(self.fault.loss)
            && !self.coin.heads(self.fault.corruption);
        self.lost += u64::from(!arrives);
        arrives
    }
}

/// The links of a run that something happens to.
pub(crate) fn watched_links(setup: &Setup, partition: &Partition) -> FxHashMap<LinkId, Watched> {
    let (fabric, watch, workload) = (&setup.fabric, &setup.watch, &setup.workload);
    // The NICs whose departures senders follow, with the smallest packets of these.
    let mut followed: BTreeMap<LinkId, u32> = BTreeMap::new();
    let mut follow = |host: HostId, size: u32| {
        for nic in fabric.nics(host) {
            let smallest = followed.entry(nic.up).or_insert(size);
            *smallest = size.min(*smallest);
        }
    };
    for datagrams in &workload.datagrams {
        let src = workload.flows[datagrams.flow].src;
        let size = workload.streams[datagrams.stream as usize].smallest_packet();
        follow(src, size);
    }
    if setup.has_pace() {
        for ends in setup.directory.all(workload) {
            let transport = setup.transport(ends);
            if transport.is_paced() {
                follow(ends.src, transport.header + 1);
            }
        }
    }
    let observed: BTreeSet<LinkId> = watch.sojourn.union(&watch.captured).copied().collect();
    let changed = setup.changes.iter().map(|change| change.link);
    let faulty: BTreeSet<LinkId> = setup.faults.keys().copied().chain(changed).collect();
    let links = observed.iter().chain(&faulty).chain(followed.keys());
    let watched = |link: LinkId| {
        let rate = fabric.link(link).rate;
        // What a host hears of a departure in this slot, it acts on in a later one.
        let hears_late = followed
            .get(&link)
            .is_none_or(|&size| rate.transmission_time(Bytes::new(u64::from(size))) > SLOT);
        Watched {
            to: partition.part_of(fabric.link(link).to),
            delay: setup.ports.delay(fabric, link),
            state: LinkState::Up,
            sojourn: watch.sojourn.contains(&link),
            captured: watch.captured.contains(&link),
            departures: followed.contains_key(&link),
            order: if watch.captured.contains(&link) || faulty.contains(&link) || !hears_late {
                Order::Strict
            } else {
                Order::OfPorts
            },
            fault: setup.faults.get(&link).copied().unwrap_or_default(),
            // A stream apart from that of the link's port.
            coin: Coin::new(!setup.seed, u64::from(link.0)),
            lost: 0,
        }
    };
    let links: BTreeSet<LinkId> = links.copied().collect();
    let watched = links.into_iter().map(|link| (link, watched(link)));
    watched.collect()
}
