//! Links with faults, and the records of packets on their way.

use std::mem;

use rustc_hash::FxHashMap;
use shallows_core::port::DropReason;
use shallows_core::units::Time;
use shallows_model::LinkId;

use super::Shard;
use crate::ids::{PortId, ShardId};
use crate::network::{Sent, WATCHED};
use crate::packet::Packet;
use crate::routing::LinkState;
use crate::watch::{CapturedPacket, Content, DroppedPacket, Observation, Watched};
use crate::workload::Ends;

/// Observed links, and the observations.
#[derive(Debug)]
pub(super) struct Observer {
    /// Links with faults or probes.
    pub(super) watched: FxHashMap<LinkId, Watched>,
    /// True if round-trip times are kept.
    pub(super) keeps_rtt: bool,
    /// True if drops are kept.
    keeps_drops: bool,
    seen: Vec<Observation>,
}

impl Observer {
    pub(super) fn new(
        watched: FxHashMap<LinkId, Watched>,
        (keeps_rtt, keeps_drops): (bool, bool),
    ) -> Self {
        Self {
            watched,
            keeps_rtt,
            keeps_drops,
            seen: Vec::new(),
        }
    }

    pub(super) fn record(&mut self, observation: Observation) {
        self.seen.push(observation);
    }
}

impl Shard {
    /// Records that a port dropped a packet.
    pub(super) fn observe_drop(&mut self, port: PortId, packet: &Packet, reason: DropReason) {
        let link = self.network.link(port);
        if self.observer.keeps_drops {
            self.observer.record(Observation::Drop(DroppedPacket {
                time: self.now,
                link,
                flow: packet.account(),
                connection: packet.connection().in_place_of_flow(),
                size: packet.size(),
                waiting: self.network.port(port).packets(),
                reason,
            }));
        }
    }

    /// Takes what was seen since the last call.
    pub(crate) fn take_observations(&mut self) -> Vec<Observation> {
        // There will be as many until the next call.
        let next = Vec::with_capacity(self.observer.seen.len());
        mem::replace(&mut self.observer.seen, next)
    }

    /// Takes a watched link down or brings it back.
    pub(crate) fn change_link(&mut self, link: LinkId, state: LinkState) {
        if let Some(watched) = self.observer.watched.get_mut(&link) {
            watched.state = state;
        }
    }

    /// Packets that a link has lost, other than those that its port has dropped.
    pub(crate) fn lost_on(&self, link: LinkId) -> u64 {
        let watched = self.observer.watched.get(&link);
        watched.map_or(0, |watched| watched.lost)
    }

    /// Delivers a packet to another part, or over a watched link.
    #[inline(never)]
    pub(super) fn deliver_otherwise(&mut self, number: u32, sent: Sent) {
        if sent.to != WATCHED {
            return self.post(number, sent.to, (sent.link, sent.arrival));
        }
        self.release(sent.link, number);
        let Some(watched) = self.observer.watched.get_mut(&sent.link) else {
            return self.carry(number, sent, self.beyond(sent.link));
        };
        let (captured, departures, to) = (watched.captured, watched.departures, watched.to);
        let (time, arrives) = (sent.arrival - watched.delay, watched.arrives());
        if watched.sojourn {
            self.observer.record(Observation::Sojourn {
                link: sent.link,
                queue: sent.queue,
                sojourn: sent.sojourn,
            });
        }
        if captured {
            self.capture(time, number, sent, arrives);
        }
        if departures {
            self.depart(number, time);
        }
        if arrives {
            self.carry(number, sent, to);
        } else {
            self.take(number);
        }
    }

    /// Lets a packet arrive at the end of a link, in this shard or another.
    fn carry(&mut self, number: u32, sent: Sent, to: ShardId) {
        if to == self.part {
            self.await_frame(number, sent.link, sent.arrival);
        } else {
            self.post(number, to, (sent.link, sent.arrival));
        }
    }

    fn capture(&mut self, time: Time, number: u32, sent: Sent, arrives: bool) {
        let packet = *self.packets.get(number);
        let transport = self.world.transport(packet.connection());
        let Ends { src, dst, .. } = self.world.ends(packet.connection());
        let ack = packet
            .to_ack(|at| *self.selective.get(at))
            .map(Content::Ack);
        let data = packet.to_segment().map(|(_, of)| Content::Segment(of));
        let datagram = packet.to_datagram().map(Content::Datagram);
        let Some(content) = ack.or(data).or(datagram) else {
            return;
        };
        let (src, dst) = if packet.is_ack() {
            (dst, src)
        } else {
            (src, dst)
        };
        self.observer
            .record(Observation::Packet(Box::new(CapturedPacket {
                time,
                arrival: arrives.then_some(sent.arrival),
                sojourn: sent.sojourn,
                link: sent.link,
                queue: sent.queue as u32,
                number,
                flow: packet.account(),
                src,
                dst,
                connection: packet.connection().in_place_of_flow(),
                size: packet.size(),
                dscp: packet.dscp(),
                ecn: packet.ecn(),
                content,
                roce_segment: transport.is_paced().then_some(transport.segment),
            })));
    }
}
