//! Mail between the shards of a fabric.

use std::mem;

use shallows_core::units::Time;
use shallows_model::LinkId;

use super::Shard;
use super::agents::Letter;
use super::applications::Announcement;
use super::pauses::PauseMessage;
use crate::ids::ShardId;
use crate::packet::{Packet, Payload, Selective};

/// A packet that goes to another part.
#[derive(Clone, Copy, Debug)]
struct Message {
    arrival: Time,
    link: LinkId,
    packet: Packet,
}

/// Packets that go to another part, what some of them carry, messages out of band, what
/// applications there are told beside their bytes, and pauses of links from there.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    messages: Vec<Message>,
    selective: Vec<Selective>,
    payloads: Vec<Box<[u8]>>,
    pub(super) letters: Vec<Letter>,
    pub(super) announcements: Vec<Announcement>,
    pub(super) pauses: Vec<PauseMessage>,
}

impl Mail {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.letters.is_empty()
            && self.announcements.is_empty()
            && self.pauses.is_empty()
    }

    /// Arrival of the first packet, letter or pause.
    pub(crate) fn earliest(&self) -> Option<Time> {
        let packets = self.messages.iter().map(|message| message.arrival);
        let letters = self.letters.iter().map(Letter::arrival);
        let pauses = self.pauses.iter().map(|pause| pause.arrival);
        packets.chain(letters).chain(pauses).min()
    }

    /// Moves all of it to the end of another.
    pub(crate) fn append_to(&mut self, other: &mut Self) {
        if other.is_empty() {
            return mem::swap(self, other);
        }
        let (selective, payloads) = (other.selective.len() as u32, other.payloads.len() as u32);
        let shift = |message: Message| Message {
            packet: match message.packet.payload {
                Payload::SelectiveAck { place, .. } => message.packet.with_place(place + selective),
                Payload::Control { place, .. } => message.packet.with_place(place + payloads),
                Payload::Data { .. } | Payload::Ack { .. } | Payload::Datagram { .. } => {
                    message.packet
                }
            },
            ..message
        };
        other.messages.extend(self.messages.drain(..).map(shift));
        other.selective.append(&mut self.selective);
        other.payloads.append(&mut self.payloads);
        other.letters.append(&mut self.letters);
        other.announcements.append(&mut self.announcements);
        other.pauses.append(&mut self.pauses);
    }
}

impl Shard {
    /// Takes over what other parts have sent.
    pub(crate) fn receive(&mut self, mail: &mut Mail) {
        for message in mail.messages.drain(..) {
            let packet = message.packet;
            let packet = match packet.payload {
                Payload::SelectiveAck { place, .. } => {
                    let part = mail.selective[place as usize];
                    packet.with_place(self.selective.insert(part))
                }
                Payload::Control { place, .. } => {
                    let bytes = mem::take(&mut mail.payloads[place as usize]);
                    packet.with_place(self.messages.insert(bytes))
                }
                Payload::Data { .. } | Payload::Ack { .. } | Payload::Datagram { .. } => packet,
            };
            let number = self.add(packet);
            if self.layers.is_some() {
                self.take_crossing(number, message.link, message.arrival);
            } else {
                self.await_frame(number, message.link, message.arrival);
            }
        }
        mail.selective.clear();
        mail.payloads.clear();
        for letter in mail.letters.drain(..) {
            self.take_letter(letter);
        }
        for announcement in mail.announcements.drain(..) {
            self.expect(announcement);
        }
        for pause in mail.pauses.drain(..) {
            self.await_signal(pause);
        }
    }

    /// Hands a packet from the end of another part's link to a port here.
    fn take_crossing(&mut self, number: u32, link: LinkId, arrival: Time) {
        let mut ticket = self.packets.get(number).ticket;
        let port = self.paths.hop(ticket.route()).onward();
        ticket.advance();
        if let Some(layers) = &mut self.layers {
            layers.take_crossing(port, link, arrival, ticket);
        }
    }

    /// Sends a packet to another part, where it arrives from a link at a time.
    #[inline(never)]
    pub(super) fn post(&mut self, number: u32, to: ShardId, (link, arrival): (LinkId, Time)) {
        let packet = *self.packets.get(number);
        self.packets.remove(number);
        let packet = match packet.payload {
            Payload::Control { place, .. } => {
                let bytes = self.take_bytes(place);
                let mail = &mut self.outbox[to];
                mail.payloads.push(bytes);
                packet.with_place(mail.payloads.len() as u32 - 1)
            }
            Payload::SelectiveAck { place, .. } => {
                let mail = &mut self.outbox[to];
                mail.selective.push(*self.selective.get(place));
                self.selective.remove(place);
                packet.with_place(mail.selective.len() as u32 - 1)
            }
            Payload::Data { .. } | Payload::Ack { .. } | Payload::Datagram { .. } => packet,
        };
        let mail = &mut self.outbox[to];
        mail.messages.push(Message {
            arrival,
            link,
            packet,
        });
    }
}
