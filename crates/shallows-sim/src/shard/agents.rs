//! Messages of control agents on their way.

use std::mem;

use shallows_core::host::stack::Delivery;
use shallows_core::units::Time;
use shallows_model::{Carriage, Channel};

use super::Shard;
use crate::connections::Connection;
use crate::ids::ConnectionId;
use crate::packet::{Envelope, Length, Packet};

/// A message out of band to another part.
#[derive(Debug)]
pub(super) struct Letter {
    delivery: Delivery,
    message: Box<[u8]>,
}

impl Letter {
    /// Arrival time.
    pub(super) fn arrival(&self) -> Time {
        self.delivery.at
    }
}

impl Shard {
    /// Sends a message of an agent, as a packet or out of band.
    pub(super) fn carry_message(&mut self, delivery: Delivery, message: Vec<u8>) {
        let Delivery { from, to, .. } = delivery;
        let message = message.into_boxed_slice();
        match self.world.control.carriage {
            Carriage::Fabric { .. } => self.send_in_fabric(Channel { from, to }, message),
            Carriage::OutOfBand { delay } => self.send_letter(Letter {
                delivery: Delivery {
                    at: delivery.at + delay,
                    ..delivery
                },
                message,
            }),
        }
    }

    fn send_letter(&mut self, letter: Letter) {
        let Some(&host) = self.world.control.hosts.get(letter.delivery.to as usize) else {
            return;
        };
        let place = self.world.places[host];
        if place.part == self.part {
            self.take_letter(letter);
        } else {
            self.outbox[place.part].letters.push(letter);
        }
    }

    /// Keeps a message out of band for its time.
    pub(super) fn take_letter(&mut self, letter: Letter) {
        let Letter { delivery, message } = letter;
        let host = self.world.control.hosts[delivery.to as usize];
        let port = self.world.places[host].port;
        self.at_host(port, |host, _| host.post(delivery, message));
    }

    /// Sends a message as a packet, past the gates of its host.
    fn send_in_fabric(&mut self, channel: Channel, message: Box<[u8]>) {
        let control = &self.world.control;
        let (Some(&slot), Carriage::Fabric { dscp, header }) =
            (control.slots.get(&channel), control.carriage)
        else {
            return;
        };
        // IPv4 can carry no more, and the protocols send far less.
        let Ok(len) = u16::try_from(message.len()) else {
            return;
        };
        let Some(size) = len.checked_add(header) else {
            return;
        };
        let route = self.routing.routes[slot][0];
        let place = self.messages.insert(message);
        let envelope = Envelope {
            connection: slot,
            route,
            dscp,
            header,
        };
        let packet = Packet::control(envelope, Length { len, size }, place, self.now);
        let number = self.add(packet);
        self.enter_nic(self.nic(route), number);
    }

    /// A control message has come as a packet.
    #[cold]
    pub(super) fn take_message(&mut self, connection: ConnectionId, place: u32) {
        let message = self.take_bytes(place);
        let world = &self.world;
        let Connection::Channel(channel) = world.directory.user(connection) else {
            return;
        };
        let Channel { from, to } = world.control.channels[channel];
        let host = world.control.hosts[to as usize];
        let port = world.places[host].port;
        self.at_host(port, |host, now| host.handle(now, from, to, &message));
    }

    /// Takes the bytes of a control message.
    pub(super) fn take_bytes(&mut self, place: u32) -> Box<[u8]> {
        let message = mem::take(self.messages.get_mut(place));
        self.messages.remove(place);
        message
    }
}
