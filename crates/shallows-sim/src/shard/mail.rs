//! What parts of a fabric send each other.

use std::mem;

use shallows_core::units::Time;

use super::Shard;
use crate::network::Sent;
use crate::packet::{Packet, Selective};

/// A packet that goes to another part.
#[derive(Clone, Copy, Debug)]
struct Message {
    arrival: Time,
    link: u32,
    packet: Packet,
}

/// Packets that go to another part, and the selective ACKs of some of them.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    messages: Vec<Message>,
    selective: Vec<Selective>,
}

impl Mail {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Moves all of it to the end of another.
    pub(crate) fn append_to(&mut self, other: &mut Self) {
        if other.is_empty() {
            return mem::swap(self, other);
        }
        let offset = other.selective.len() as u32;
        let shift = |message: Message| Message {
            packet: match message.packet.selective() {
                Some(place) => message.packet.with_selective(place + offset),
                None => message.packet,
            },
            ..message
        };
        other.messages.extend(self.messages.drain(..).map(shift));
        other.selective.append(&mut self.selective);
    }
}

impl Shard {
    /// Takes over what other parts have sent.
    pub(crate) fn receive(&mut self, mail: &mut Mail) {
        for message in mail.messages.drain(..) {
            let mut packet = message.packet;
            if let Some(place) = packet.selective() {
                let part = mail.selective[place as usize];
                packet = packet.with_selective(self.selective.insert(part));
            }
            let number = self.add(packet);
            self.await_arrival(number, message.link, message.arrival);
        }
        mail.selective.clear();
    }

    /// Sends a packet to another part.
    #[inline(never)]
    pub(super) fn post(&mut self, number: u32, sent: Sent) {
        let mut packet = *self.packets.get(number);
        self.packets.remove(number);
        let mail = &mut self.outbox[sent.to as usize];
        if let Some(place) = packet.selective() {
            packet = packet.with_selective(mail.selective.len() as u32);
            mail.selective.push(*self.selective.get(place));
            self.selective.remove(place);
        }
        mail.messages.push(Message {
            arrival: sent.arrival,
            link: sent.link,
            packet,
        });
    }
}
