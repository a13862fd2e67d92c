//! XCo's local coordinators: what holds frames back before a link, by destination.

use std::sync::Arc;

use shallows_core::control::Agent as _;
use shallows_core::host::gate::{Gate as _, Refusal, Release, Verdict};
use shallows_core::packet::Packet as _;
use shallows_core::units::Time;
use shallows_core::xco::coordinator::Coordinator;
use shallows_core::xco::message::Station;

use super::{Engine, Event, left_host};
use crate::frame::{Frame, Header, Mac, Network};
use crate::switch::Destinations;
use crate::switch::snapshot::CoordinatorSnapshot;
use crate::xco::cluster::Cluster;

/// A message of a coordinator that the driver has to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::switch) struct Outgoing {
    /// The number of the coordinator, as [`Engine::coordinate`] gave it.
    pub(in crate::switch) coordinator: usize,
    /// The controller that it is for.
    pub(in crate::switch) to: u32,
    /// Its bytes.
    pub(in crate::switch) message: Vec<u8>,
}

/// A coordinator before a link.
#[derive(Debug)]
pub(super) struct LinkCoordinator {
    coordinator: Coordinator<Frame>,
    host: u32,
    link: usize,
    destinations: Arc<Destinations>,
    /// Frames to or from this UDP port are control messages, which no permission is needed for.
    control_port: Option<u16>,
    /// The time at which the agenda has it asked again.
    due: Option<Time>,
    /// Frames that found their queue full.
    pub(super) dropped: u64,
    /// Frames to nobody that the fabric knows, which pass.
    unknown: u64,
}

/// Offsets of a frame's destination and source.
const DESTINATION: usize = 0;
const SOURCE: usize = 6;

/// The Ethernet address at this offset of a frame.
fn station(bytes: &[u8], at: usize) -> Option<Station> {
    bytes.get(at..)?.first_chunk().copied().map(Station)
}

impl LinkCoordinator {
    /// The host that a frame is for: by the place that was learned of its station, or by the file.
    fn destination_of(&self, bytes: &[u8]) -> Option<u32> {
        let learned = self.coordinator.place(station(bytes, DESTINATION)?);
        learned.or_else(|| self.destinations.of(bytes))
    }

    /// The host that a frame is from.
    fn source_of(&self, bytes: &[u8]) -> Option<u32> {
        let learned = self.coordinator.place(station(bytes, SOURCE)?);
        learned.or_else(|| self.destinations.source_of(bytes))
    }
}

impl Engine {
    /// Puts a coordinator before a link, and says its number.
    pub(in crate::switch) fn coordinate(
        &mut self,
        link: usize,
        (host, coordinator): (u32, Coordinator<Frame>),
        destinations: Arc<Destinations>,
        control_port: Option<u16>,
    ) -> usize {
        let number = self.coordinators.len();
        self.links[link].coordinator = Some(number);
        if let Some(device) = self.links[link].host {
            self.links[device].receiver = Some(number);
        }
        self.coordinators.push(LinkCoordinator {
            coordinator,
            host,
            link,
            destinations,
            control_port,
            due: None,
            dropped: 0,
            unknown: 0,
        });
        self.agenda
            .push(std::cmp::Reverse((Time::ZERO, Event::Coordinator(number))));
        number
    }

    /// Goes on with another file of the cluster, of which [`Cluster::changes`] has said that it can.
    pub(in crate::switch) fn take_over(&mut self, cluster: &Cluster) {
        // It was tried when the file was read.
        let Ok(destinations) = cluster.destinations() else {
            return;
        };
        for entry in &mut self.coordinators {
            entry.destinations = destinations.clone();
            entry.coordinator.set_budget(cluster.budget());
        }
    }

    /// Hands a message to a coordinator. `from` is the address that it came from, unproven.
    pub(in crate::switch) fn handle_message(
        &mut self,
        now: Time,
        number: usize,
        from: u32,
        message: &[u8],
    ) {
        let coordinator = &mut self.coordinators[number].coordinator;
        coordinator.handle(now, from, message);
        self.tend(now, number);
    }

    /// The messages that coordinators have to send.
    pub(in crate::switch) fn take_outgoing(&mut self) -> std::vec::Drain<'_, Outgoing> {
        self.outgoing.drain(..)
    }

    /// Lets all coordinators say good-bye, and send what they hold without permission.
    pub(in crate::switch) fn leave(&mut self, now: Time) {
        for number in 0..self.coordinators.len() {
            self.coordinators[number].coordinator.leave();
            self.tend(now, number);
        }
    }

    /// Tells a coordinator of a frame that its host has received.
    pub(super) fn note_received(&mut self, now: Time, number: usize, frame: &Frame) {
        let bytes = self.store.bytes(frame.slot, frame.length);
        let entry = &mut self.coordinators[number];
        if let Some(from) = entry.source_of(bytes).filter(|from| *from != entry.host) {
            entry.coordinator.received(now, frame.size(), from);
        }
    }

    /// Lets a frame pass the coordinator of its link, now or later.
    pub(super) fn submit(&mut self, now: Time, link: usize, frame: Frame) {
        let Some(number) = self.links[link].coordinator else {
            return self.offer(now, link, frame);
        };
        let bytes = self.store.bytes(frame.slot, frame.length);
        let entry = &mut self.coordinators[number];
        if entry
            .control_port
            .is_some_and(|port| is_control(bytes, port))
        {
            return self.offer(now, link, frame);
        }
        // What leaves the host comes from a virtual machine of it.
        let source = station(bytes, SOURCE).filter(|of| !Mac(of.0).is_group());
        let is_news = source.is_some_and(|source| entry.coordinator.note_station(source));
        let Some(to) = entry.destination_of(bytes).filter(|to| *to != entry.host) else {
            entry.unknown += 1;
            self.offer(now, link, frame);
            if is_news {
                self.tend(now, number);
            }
            return;
        };
        match entry.coordinator.offer(now, frame, to) {
            Verdict::Pass => self.offer(now, link, frame),
            Verdict::Drop(_) => {
                entry.dropped += 1;
                left_host(self.streams.as_ref(), self.links[link].host, &frame);
                self.store.remove(frame.slot);
            }
            Verdict::Held => return self.tend(now, number),
        }
        if is_news {
            self.tend(now, number);
        }
    }

    /// Lets out what may leave, collects messages, and plans when to ask again.
    pub(super) fn tend(&mut self, now: Time, number: usize) {
        let due = &mut self.coordinators[number].due;
        if due.is_some_and(|due| due <= now) {
            *due = None;
        }
        let next = loop {
            let entry = &mut self.coordinators[number];
            let coordinator = &mut entry.coordinator;
            let is_due = |of: &Coordinator<Frame>| of.timeout().is_some_and(|at| at <= now);
            if is_due(coordinator) {
                coordinator.handle_timeout(now);
            }
            let mut message = Vec::new();
            while let Some(to) = coordinator.transmit(now, &mut message) {
                self.outgoing.push(Outgoing {
                    coordinator: number,
                    to,
                    message: std::mem::take(&mut message),
                });
            }
            match coordinator.release(now) {
                Release::Packet { packet, .. } => {
                    let link = entry.link;
                    self.offer(now, link, packet);
                }
                // What was released may be news, to be told at once.
                Release::At(_) | Release::Idle if is_due(coordinator) => {}
                Release::At(at) => break coordinator.timeout().map_or(at, |other| at.min(other)),
                Release::Idle => break coordinator.timeout().unwrap_or(Time::MAX),
            }
        };
        let due = &mut self.coordinators[number].due;
        if due.is_none_or(|due| next < due) {
            *due = Some(next);
            self.agenda
                .push(std::cmp::Reverse((next, Event::Coordinator(number))));
        }
    }

    /// Counters and permits of each coordinator.
    pub(in crate::switch) fn coordinators(&self, now: Time) -> Vec<CoordinatorSnapshot> {
        let each = self.coordinators.iter();
        each.map(|entry| {
            CoordinatorSnapshot::new(entry.host, &entry.coordinator, entry.unknown, now)
        })
        .collect()
    }

    /// Frames that coordinators dropped.
    pub(super) fn coordinator_drops(&self, reason: Refusal) -> u64 {
        match reason {
            Refusal::Full => self.coordinators.iter().map(|entry| entry.dropped).sum(),
            Refusal::OverLimit | Refusal::NeverFits => 0,
        }
    }
}

/// Returns whether an IPv4 frame carries UDP to or from this port.
fn is_control(bytes: &[u8], port: u16) -> bool {
    const UDP: u8 = 17;
    let Some(Network::Ipv4(at)) = Header::parse(bytes).map(|header| header.network) else {
        return false;
    };
    let packet = &bytes[at..];
    let is_fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
    let ports = usize::from(packet[0] & 0xf) * 4;
    let (Some(source), Some(destination)) = (
        packet.get(ports..ports + 2),
        packet.get(ports + 2..ports + 4),
    ) else {
        return false;
    };
    let port = port.to_be_bytes();
    packet[9] == UDP && !is_fragment && (source == port || destination == port)
}

#[cfg(test)]
mod tests;
