//! Messages of applications on their connections.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use shallows_core::application::{Message, Protocol};
use shallows_core::host::stack::Seat;
use shallows_core::host::udp::{self, Receiver, UdpConfig};
use shallows_core::tcp::TcpConfig;
use shallows_core::transport::{ReceivingEnd as _, Sender, SendingEnd as _};

use super::connections::Source;
use super::paths::{Direction, envelope};
use super::{HostPlace, Shard};
use crate::applications::Lane;
use crate::broadcast::Branch;
use crate::ids::{ConnectionId, LaneId, PortId};
use crate::packet::{Envelope, Packet};
use crate::workload::Ends;

/// The messages of applications that are under way to this part of the fabric.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// By connection and direction, then by where the message ends in its stream, or by its number.
    expected: FxHashMap<ConnectionId, BTreeMap<u64, Announcement>>,
    /// Datagrams sent so far.
    sent: FxHashMap<ConnectionId, u64>,
    /// Receivers that reassemble datagrams.
    receivers: FxHashMap<ConnectionId, Receiver>,
}

/// Announcement of a message to its receiver: everything but its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement {
    pub(super) lane: LaneId,
    /// Its end in the stream, or its number among datagrams.
    mark: u64,
    message: Message,
    /// True if the connection was made anew for it.
    opens: bool,
}

/// Datagrams that may be expected on a connection; older ones are lost.
const MOST_EXPECTED: usize = 4096;

impl Shard {
    /// Sends a message of an application.
    pub(super) fn send_message(&mut self, lane: Lane, message: Message) {
        match lane.protocol {
            Protocol::Datagram => self.send_datagram(lane, message),
            Protocol::Stream | Protocol::ShortStream => self.write(lane, message),
        }
    }

    /// Makes a connection anew, which has nothing under way.
    pub(super) fn open(&mut self, lane: Lane) {
        self.renew(lane);
        if let Some(source) = &mut self.connections.sources[lane.slot] {
            source.opens = true;
        }
    }

    /// Replaces the sender of a direction by a new one, which goes on with the numbers of the bytes.
    fn renew(&mut self, lane: Lane) {
        let transport = self.stream_transport(lane);
        let written = self.source(lane).sender.written();
        let line_rate = self.world.line_rate_of(lane.slot);
        self.source(lane).sender = Sender::starting_at(&transport, line_rate, written);
    }

    fn source(&mut self, lane: Lane) -> &mut Source {
        let transport = self.stream_transport(lane);
        let (world, routing) = (&self.world, &self.routing);
        self.connections.sources[lane.slot].get_or_insert_with(|| {
            let forth = envelope(world, lane.slot, routing, Direction::Forth);
            let sender = Sender::new(&transport, world.line_rate_of(lane.slot));
            Box::new(Source::new(sender, forth, lane.slot.in_place_of_flow()))
        })
    }

    /// The transport of one direction: the opener of a connection begins it with a handshake.
    fn stream_transport(&self, lane: Lane) -> TcpConfig {
        let mut transport = self.world.transport(lane.slot).clone();
        let is_short = lane.protocol == Protocol::ShortStream;
        transport.handshake = lane.is_forth && (transport.handshake || is_short);
        transport
    }

    fn write(&mut self, lane: Lane, message: Message) {
        let now = self.now;
        let source = self.source(lane);
        source.begin_message(now, message.bytes);
        let announcement = Announcement {
            lane: lane.id,
            mark: source.sender.written(),
            message,
            opens: std::mem::take(&mut source.opens),
        };
        self.announce(announcement);
        self.send(lane.slot);
    }

    fn send_datagram(&mut self, lane: Lane, message: Message) {
        let slot = lane.slot;
        let sent = self.messages_of_applications.sent.entry(slot).or_default();
        let number = *sent;
        *sent += 1;
        self.announce(Announcement {
            lane: lane.id,
            mark: number,
            message,
            opens: false,
        });
        let forth = envelope(&self.world, slot, &self.routing, Direction::Forth);
        let mtu = UdpConfig::default().mtu;
        for datagram in udp::fragments(number, self.now, message.bytes as u32, mtu) {
            self.launch(Packet::datagram(forth, &datagram));
        }
    }

    /// Sends a message of an application in datagrams that switches copy for these connections.
    pub(super) fn broadcast(
        &mut self,
        port: PortId,
        seat: Seat,
        connections: Range<u32>,
        message: Message,
    ) {
        let world = &self.world;
        let lanes: Vec<Lane> = connections
            .map(|connection| world.lane(world.applications.lane_from(seat, connection)))
            .collect();
        let Some(first) = lanes.first() else {
            return;
        };
        let roots = self.routing.trees.roots(first.slot).to_vec();
        // A number that none of them has used.
        let sent = &self.messages_of_applications.sent;
        let used = lanes
            .iter()
            .filter_map(|lane| sent.get(&lane.slot).copied());
        let number = used.max().unwrap_or_default();
        for lane in &lanes {
            let sent = &mut self.messages_of_applications.sent;
            sent.insert(lane.slot, number + 1);
            self.announce(Announcement {
                lane: lane.id,
                mark: number,
                message,
                opens: false,
            });
        }
        let mtu = UdpConfig::default().mtu;
        for datagram in udp::fragments(number, self.now, message.bytes as u32, mtu) {
            for root in &roots {
                let envelope = Envelope {
                    route: root.route,
                    ..envelope(&self.world, root.slot, &self.routing, Direction::Forth)
                };
                let number = self.add(Packet::datagram(envelope, &datagram));
                let ticket = self.packets.get(number).ticket;
                // Gates that hold packets by destination pass those for several.
                self.at_host(port, |host, now| host.offer(now, ticket, None));
            }
        }
    }

    /// The segments into which a broadcast that has arrived at a switch is copied.
    pub(super) fn branches(&self, packet: &Packet) -> Option<&[Branch]> {
        let position = packet.ticket.route();
        self.routing.trees.split(packet.connection(), position)
    }

    /// Copies a broadcast at a switch; returns whether it is on its way.
    fn copy(&mut self, packet: Packet) -> bool {
        let Some(branches) = self.branches(&packet).map(<[Branch]>::to_vec) else {
            return false;
        };
        for Branch { slot, route } in branches {
            let number = self.add(packet.copied(slot, route));
            self.enter_nic(self.paths.hop(route).id(), number);
        }
        true
    }

    /// Tells the receiver of a message of it, before its last byte can arrive.
    fn announce(&mut self, announcement: Announcement) {
        let place = self.receiver_of(announcement.lane);
        if place.part == self.part {
            self.expect(announcement);
        } else {
            let mail = &mut self.outbox[place.part];
            mail.announcements.push(announcement);
        }
    }

    pub(super) fn expect(&mut self, announcement: Announcement) {
        let expected = &mut self.messages_of_applications.expected;
        let lane = self.world.lane(announcement.lane);
        let expected = expected.entry(lane.slot).or_default();
        expected.insert(announcement.mark, announcement);
        if expected.len() > MOST_EXPECTED && lane.protocol == Protocol::Datagram {
            expected.pop_first();
        }
    }

    /// The location of the host that a lane leads to.
    fn receiver_of(&self, lane: LaneId) -> HostPlace {
        let Ends { dst, .. } = self.world.ends(self.world.directory.of_lane(lane));
        self.world.places[dst]
    }

    /// Bytes have come on a stream of an application.
    pub(super) fn deliver_messages(&mut self, slot: ConnectionId) {
        let sink = self.connections.sinks[slot].as_deref();
        let received = sink.map_or(0, |sink| sink.receiver.received());
        while let Some(expected) = self.messages_of_applications.expected.get_mut(&slot)
            && let Some(entry) = expected.first_entry()
            && *entry.key() <= received
        {
            let announcement = entry.remove();
            self.deliver_message(announcement);
        }
    }

    /// A datagram of an application has come.
    pub(super) fn take_message_part(&mut self, packet: Packet) {
        if self.copy(packet) {
            return;
        }
        let slot = packet.connection();
        let receivers = &mut self.messages_of_applications.receivers;
        let receiver = receivers
            .entry(slot)
            .or_insert_with(|| Receiver::new(&UdpConfig::default()));
        let datagram = packet.to_datagram();
        let Some(delivery) = datagram.and_then(|of| receiver.handle_packet(self.now, &of)) else {
            return;
        };
        let expected = self.messages_of_applications.expected.get_mut(&slot);
        if let Some(found) = expected.and_then(|expected| expected.remove(&delivery.message)) {
            self.deliver_message(found);
        }
    }

    fn deliver_message(&mut self, announcement: Announcement) {
        let lane = self.world.lane(announcement.lane);
        if announcement.opens {
            self.renew(self.world.lane(lane.id.opposite()));
        }
        let port = self.receiver_of(lane.id).port;
        self.at_host(port, |host, now| {
            host.deliver(now, lane.receiver, lane.connection, announcement.message)
        });
    }
}
