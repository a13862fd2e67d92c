//! A part that runs in [layers](crate::layers): the hosts' side, window by window.

use shallows_core::units::Time;
use shallows_model::HostId;

use super::Shard;
use crate::engine::{Key, Occasion};
use crate::ids::{LocalHostId, PortId};
use crate::layers::{Crossing, HostEvent, Layers};
use crate::packet::Packet;
use crate::paths::Hop;
use crate::ticket::Ticket;

impl Shard {
    /// Runs windows before `end` until there were at least `most` events; how many there were.
    pub(super) fn run_windows(&mut self, end: Time, most: u64) -> u64 {
        let mut count = 0;
        while count < most && self.begin_window(end) {
            let stages = (0..self.stages()).map(|stage| self.run_stage(stage));
            let events = stages.sum();
            self.end_window(self.quiet_until(events).min(end));
            count += events;
        }
        count
    }

    /// Begins a window, if there is time before `end`.
    pub(crate) fn begin_window(&mut self, end: Time) -> bool {
        let layers = self.layers.as_mut();
        layers.is_some_and(|layers| layers.begin_window(end))
    }

    /// Number of stages in a window. Parts exchange their mail after each but the last.
    pub(crate) fn stages(&self) -> usize {
        self.layers.as_ref().map_or(0, |layers| layers.stages())
    }

    /// Runs a stage of the window, the first with the hosts; how many events there were.
    pub(crate) fn run_stage(&mut self, stage: usize) -> u64 {
        let mut count = if stage == 0 { self.run_hosts() } else { 0 };
        let Some(layers) = &mut self.layers else {
            return count;
        };
        count += layers.run_stage(stage, &mut self.network, &self.paths);
        let (dropped, crossings) = (layers.take_dropped(), layers.take_crossings());
        for port in dropped {
            self.discard(port);
        }
        if !crossings.is_empty() {
            self.post_crossings(crossings);
        }
        self.handled += count;
        count
    }

    /// A time before which nothing happens any more in this part, if what it has sent to others is
    /// left aside; zero if it may be soon. `events` is the number of events in this window.
    pub(crate) fn quiet_until(&self, events: u64) -> Time {
        let quiet = |layers: &Layers| layers.quiet_until(events, &self.network);
        self.layers.as_deref().map_or(Time::MAX, quiet)
    }

    /// Ends a window. Nothing happens in any part before `earliest`.
    pub(crate) fn end_window(&mut self, earliest: Time) {
        if let Some(layers) = &mut self.layers {
            layers.end_window(earliest);
            self.now = layers.latest();
        }
    }

    /// Does what hosts do before the end of the window; how many events that were.
    fn run_hosts(&mut self) -> u64 {
        let (mut host, mut count) = (LocalHostId(0), 0);
        while let Some(layers) = &self.layers
            && let until = layers.hosts_until()
            && let Some(next) = layers.next_host(host, until)
        {
            count += self.run_host(next, until);
            host = LocalHostId(next.0 + 1);
        }
        count
    }

    /// Sends packets whose next ports are in other parts there.
    fn post_crossings(&mut self, crossings: Vec<Crossing>) {
        for crossing in &crossings {
            let number = crossing.ticket.packet();
            self.packets.get_mut(number).ticket = crossing.ticket;
            self.post(number, crossing.shard, (crossing.link, crossing.time));
        }
        if let Some(layers) = &mut self.layers {
            layers.keep_room(crossings);
        }
    }

    /// Does what a host does before `end`; how many events that were.
    fn run_host(&mut self, host: LocalHostId, end: Time) -> u64 {
        let mut count = 0;
        self.now = Time::ZERO;
        self.unload(host, end);
        let mut unloaded = 0;
        if let Some(layers) = &mut self.layers {
            layers.begin_host(host);
        }
        while let Some(layers) = &mut self.layers
            && let Some((now, event)) = layers.next_at(host, end)
        {
            self.now = now;
            count += 1;
            match event {
                HostEvent::Arrival(number) => {
                    let packet = self.unloaded[unloaded];
                    unloaded += 1;
                    self.packets.remove(number);
                    self.take_arrived(packet);
                }
                HostEvent::Timer(key) => self.handle_rare(key, 0, Hop::NOWHERE),
            }
        }
        if let Some(layers) = &mut self.layers {
            layers.finish_host(host, self.now, end, &mut self.network);
        }
        if self.network.has_dropped(host.nic()) {
            self.discard(host.nic());
        }
        count
    }

    /// Copies the packets that arrive at a host before `end` out of the arena, where they lie far
    /// apart: one after the other the host would wait for each, together their ways from memory
    /// overlap.
    #[inline]
    fn unload(&mut self, host: LocalHostId, end: Time) {
        self.unloaded.clear();
        let Some(layers) = &self.layers else {
            return;
        };
        let packets = layers.arriving(host, end).map(|ticket| Packet {
            ticket,
            payload: self.packets.get(ticket.packet()).payload,
        });
        self.unloaded.extend(packets);
    }

    /// Hands a packet to a NIC.
    #[inline]
    pub(super) fn enter_line(&mut self, nic: PortId, ticket: Ticket) {
        let Some(layers) = &mut self.layers else {
            return;
        };
        layers.enter(nic, self.now, ticket);
    }

    #[cfg(test)]
    pub(crate) fn stretch_windows(&mut self, up: Time, down: Time) {
        if let Some(layers) = &mut self.layers {
            layers.stretch(up, down);
        }
    }

    /// The host that an event happens at.
    pub(super) fn host_of(&self, key: Key) -> LocalHostId {
        let nic = |host: HostId| self.world.places[host].port;
        let port = match key.occasion() {
            Occasion::HostTimer(nic) => nic,
            Occasion::SenderTimer(connection) => nic(self.world.ends(connection).src),
            Occasion::ReceiverTimer(connection) => nic(self.world.ends(connection).dst),
            Occasion::Start(flow) | Occasion::Stop(flow) => {
                nic(self.world.workload.flows[flow].src)
            }
            Occasion::PortReady(_) | Occasion::Arrival(_) | Occasion::Frame(_) => {
                unreachable!("windows have no events of ports and links")
            }
        };
        LocalHostId::of_nic(port)
    }
}
