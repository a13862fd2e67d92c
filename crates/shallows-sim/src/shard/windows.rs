//! A part that runs in [layers](crate::layers): the hosts' side, window by window.

use std::iter;

use shallows_core::units::Time;

use super::Shard;
use crate::engine::{Class, Key};
use crate::layers::HostEvent;
use crate::ticket::Ticket;

impl Shard {
    /// Runs windows before `end` until there were at least `most` events; how many there were.
    pub(super) fn run_windows(&mut self, end: Time, most: u64) -> u64 {
        let mut count = 0;
        while count < most {
            let Some(layers) = &mut self.layers else {
                return count;
            };
            let Some(until) = layers.next_window(end) else {
                break;
            };
            let (mut host, before) = (0, count);
            while let Some(layers) = &self.layers
                && let Some(next) = layers.next_host(host, until)
            {
                count += self.run_host(next, until);
                host = next + 1;
            }
            let Some(layers) = &mut self.layers else {
                return count;
            };
            count += layers.run_switches(&mut self.network, &self.paths, (until, end));
            if count == before {
                layers.skip_idle(&self.network, end);
            }
            for port in layers.take_dropped() {
                self.discard(port);
            }
        }
        if let Some(layers) = &self.layers {
            self.now = layers.latest();
        }
        self.handled += count;
        count
    }

    /// Does what a host does before `end`; how many events that were.
    fn run_host(&mut self, host: u32, end: Time) -> u64 {
        let mut count = 0;
        self.now = Time::ZERO;
        while let Some(layers) = &mut self.layers
            && let Some((now, event)) = layers.next_at(host, end)
        {
            self.now = now;
            count += 1;
            match event {
                HostEvent::Arrival(ticket) => self.take_packet(ticket),
                HostEvent::Timer(key) => self.handle_rare(key, 0, 0),
            }
        }
        if let Some(layers) = &mut self.layers {
            layers.finish_host(host, self.now, end, &mut self.network);
        }
        count
    }

    /// Takes a packet that has arrived at its host.
    #[inline]
    fn take_packet(&mut self, ticket: Ticket) {
        let mut packet = *self.packets.get(ticket.packet());
        packet.ticket = ticket;
        self.packets.remove(ticket.packet());
        self.take_arrived(packet);
    }

    /// Hands a packet to a NIC.
    #[inline]
    pub(super) fn enter_line(&mut self, nic: u32, ticket: Ticket) {
        let Some(layers) = &mut self.layers else {
            return;
        };
        let arrival = iter::once((self.now, ticket));
        self.network
            .run_port(nic, arrival, Time::ZERO, layers.line(nic));
        if self.network.has_dropped(nic) {
            self.discard(nic);
        }
    }

    #[cfg(test)]
    pub(crate) fn stretch_windows(&mut self, up: Time, down: Time) {
        if let Some(layers) = &mut self.layers {
            layers.stretch(up, down);
        }
    }

    /// The host that an event happens at.
    pub(super) fn host_of(&self, key: Key) -> u32 {
        let identity = key.identity();
        match key.class() {
            // The first links are those of hosts, two each.
            Class::HostTimer | Class::PortReady | Class::Arrival | Class::Frame => identity / 2,
            Class::SenderTimer | Class::Start | Class::Stop => {
                self.world.workload.flows[identity as usize].src
            }
            Class::ReceiverTimer => self.world.workload.flows[identity as usize].dst,
        }
    }
}
