//! XCo's local coordinators before links: the hosts that frames are for, and messages.

use std::sync::Arc;

use shallows_core::host::stack::HostStack;
use shallows_core::packet::Packet as _;
use shallows_core::units::Time;
use shallows_core::xco::coordinator::Coordinator;
use shallows_core::xco::message::Station;

use super::Engine;
use crate::frame::{Frame, Header, Mac, Network};
use crate::switch::snapshot::CoordinatorSnapshot;
use crate::switch::{Destinations, Level};
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

/// The addresses of frames, as the coordinator of a host needs them.
#[derive(Debug)]
pub(super) struct Addressing {
    host: u32,
    level: Level,
    destinations: Arc<Destinations>,
    /// Frames to or from this UDP port are control messages.
    control_port: Option<u16>,
}

/// The destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Towards {
    /// The frame carries a control message.
    Controller,
    /// Another host of the fabric.
    Host(u32),
    /// The host itself, or a station that the fabric does not know.
    Unknown,
}

/// Offsets of a frame's destination and source.
const DESTINATION: usize = 0;
const SOURCE: usize = 6;

/// The Ethernet address at this offset of a frame.
fn station(bytes: &[u8], at: usize) -> Option<Station> {
    bytes.get(at..)?.first_chunk().copied().map(Station)
}

impl Addressing {
    /// The destination of a frame that leaves the host: by the place that was learned of its
    /// station, or by the file. Its source is a virtual machine here, which the coordinator learns.
    pub(super) fn towards(&self, stack: &mut HostStack<Frame>, bytes: &[u8]) -> Towards {
        if self
            .control_port
            .is_some_and(|port| is_control(bytes, port))
        {
            return Towards::Controller;
        }
        let source = station(bytes, SOURCE).filter(|of| !Mac(of.0).is_group());
        let coordinator = stack.gate_mut::<Coordinator<Frame>>();
        let learned = coordinator.and_then(|coordinator| {
            if let Some(source) = source {
                coordinator.note_station(source);
            }
            coordinator.place(station(bytes, DESTINATION)?)
        });
        let to = learned.or_else(|| self.destinations.of(bytes));
        let other = to.filter(|to| *to != self.host);
        other.map_or(Towards::Unknown, Towards::Host)
    }

    /// The other host that a frame is from, if it is known.
    fn source_of(&self, stack: &HostStack<Frame>, bytes: &[u8]) -> Option<u32> {
        let coordinator = stack.gate::<Coordinator<Frame>>();
        let learned = coordinator.and_then(|of| of.place(station(bytes, SOURCE)?));
        let from = learned.or_else(|| self.destinations.source_of(bytes));
        from.filter(|from| *from != self.host)
    }
}

impl Engine {
    /// Puts a coordinator before a link, behind the gates that are there, and says its number. A
    /// second coordinator of a link gets the frames to hosts that the first does not know.
    pub(in crate::switch) fn coordinate(
        &mut self,
        link: usize,
        (host, level, coordinator): (u32, Level, Coordinator<Frame>),
        destinations: Arc<Destinations>,
        control_port: Option<u16>,
    ) -> usize {
        let first = self.stack_before(link);
        let stack = match self.stacks[first].addressing {
            None => first,
            Some(_) => self.stack_behind(first),
        };
        if let Some(device) = self.links[link].host {
            self.links[device].receiver = Some(first);
        }
        let number = self.coordinators.len();
        self.coordinators.push(stack);
        let entry = &mut self.stacks[stack];
        entry.addressing = Some(Addressing {
            host,
            level,
            destinations,
            control_port,
        });
        let coordinator = Box::new(coordinator);
        entry.stack.add_gate_agent(number as u32, coordinator);
        let turn = entry.stack.start();
        self.drive(Time::ZERO, stack, turn);
        number
    }

    /// Goes on with another file of the cluster, of which [`Cluster::changes`] has said that it can.
    pub(in crate::switch) fn take_over(&mut self, cluster: &Cluster) {
        // A hierarchy takes no change over.
        if cluster.hierarchy.is_some() {
            return;
        }
        // It was tried when the file was read.
        let Ok(destinations) = cluster.destinations() else {
            return;
        };
        for &number in &self.coordinators {
            let entry = &mut self.stacks[number];
            if let Some(addressing) = &mut entry.addressing {
                addressing.destinations = destinations.clone();
            }
            if let Some(coordinator) = entry.stack.gate_mut::<Coordinator<Frame>>() {
                coordinator.set_budget(cluster.whole().budget(cluster));
            }
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
        let stack = self.coordinators[number];
        let entry = &mut self.stacks[stack];
        let turn = entry.stack.handle(now, from, number as u32, message);
        self.drive(now, stack, turn);
    }

    /// The messages that coordinators have to send.
    pub(in crate::switch) fn take_outgoing(&mut self) -> std::vec::Drain<'_, Outgoing> {
        self.outgoing.drain(..)
    }

    /// Lets all coordinators say good-bye, and send what they hold without permission.
    pub(in crate::switch) fn leave(&mut self, now: Time) {
        for index in 0..self.coordinators.len() {
            let number = self.coordinators[index];
            let stack = &mut self.stacks[number].stack;
            if let Some(coordinator) = stack.gate_mut::<Coordinator<Frame>>() {
                coordinator.leave();
            }
            let turn = stack.attend();
            self.drive(now, number, turn);
        }
    }

    /// Tells a host's gates of a frame that the host has received.
    pub(super) fn note_received(&mut self, now: Time, number: usize, frame: &Frame) {
        let bytes = self.store.bytes(frame.slot, frame.length);
        let mut next = Some(number);
        while let Some(number) = next {
            let entry = &mut self.stacks[number];
            let addressing = entry.addressing.as_ref();
            if let Some(from) = addressing.and_then(|of| of.source_of(&entry.stack, bytes)) {
                return entry.stack.received(now, frame.size(), from);
            }
            next = entry.next;
        }
    }

    /// Counters and permits of each coordinator.
    pub(in crate::switch) fn coordinators(&self, now: Time) -> Vec<CoordinatorSnapshot> {
        let each = self.coordinators.iter().map(|&number| &self.stacks[number]);
        each.filter_map(|entry| {
            let addressing = entry.addressing.as_ref()?;
            let coordinator = entry.stack.gate::<Coordinator<Frame>>()?;
            let who = (addressing.host, addressing.level);
            Some(CoordinatorSnapshot::new(who, coordinator, now))
        })
        .collect()
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
