//! One part of a fabric with its hosts: what one thread runs.
//!
//! The way of a packet: a transport ([`connections`], [`datagrams`]) builds it, the [stack](hosts)
//! of its host passes, holds or drops it, the NIC's port sends it, and `arrive` takes it from link to
//! port until it is at its host. [`observation`] has what can be seen of it, [`mail`] how it
//! crosses to another part, [`flows`] the books.

mod agents;
mod applications;
mod connections;
mod datagrams;
mod flows;
mod hosts;
mod mail;
mod observation;
mod paths;
mod pauses;
mod windows;
mod world;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use shallows_core::host::udp;
use shallows_core::units::Time;
use shallows_model::{Barriers, FlowId, IdVec, LinkId};

use crate::engine::{Arena, Collision, Event, Key, Occasion, Wheel};
use crate::ids::{PortId, ShardId};
use crate::layers::{Layers, PartPlan};
use crate::network::{Forwarded, Network, Sent};
use crate::packet::{Packet, Payload, Selective};
use crate::paths::{Hop, Paths};
use crate::routing::Selection;
use crate::simulation::FlowOutcome;
use crate::watch::{Order, Watched};
use crate::workload::Stop;
use applications::Messages;
use connections::ConnectionTable;
use datagrams::{Datagrams, MessageLatency};
use flows::Flows;
use observation::Observer;
use paths::Forks;

pub(crate) use hosts::{Homes, HostPlace, Hosts};
pub(crate) use mail::Mail;
pub use pauses::PauseStats;
pub(crate) use pauses::Pauses;
pub(crate) use world::{ControlPlan, Routing, World};

/// Parts of a new shard.
#[derive(Debug)]
pub(crate) struct ShardSetup {
    /// Its number, and how many parts there are.
    pub(crate) part: ShardId,
    pub(crate) parts: u32,
    pub(crate) world: Arc<World>,
    pub(crate) network: Network,
    pub(crate) hosts: Hosts,
    pub(crate) homes: Homes,
    pub(crate) routing: Arc<Routing>,
    pub(crate) paths: Paths<PortId>,
    /// Links with faults or probes.
    pub(crate) watched: FxHashMap<LinkId, Watched>,
    /// Flags: keep round-trip times, keep drops.
    pub(crate) keeps: (bool, bool),
    /// Pauses of links, if there can be any.
    pub(crate) pauses: Option<Pauses>,
    /// The layers, if it runs in them.
    pub(crate) layers: Option<PartPlan>,
    /// Flows of this part that start at a given time, in that order.
    pub(crate) starting: Vec<FlowId>,
    /// Outcomes of flows: nothing yet.
    pub(crate) outcomes: IdVec<FlowId, FlowOutcome>,
    pub(crate) barriers: Barriers,
    /// Stop times of this shard's flows.
    pub(crate) stops: Vec<Stop>,
}

/// A part of the fabric. On cache lines of its own, because another thread has its neighbour.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard {
    part: ShardId,
    world: Arc<World>,
    routing: Arc<Routing>,
    events: Wheel,
    packets: Arena<Packet>,
    /// The packets of a window for the host that runs.
    unloaded: Vec<Packet>,
    /// The paths of sprayed packets, and memory for the links of one that has no fork.
    forks: Forks,
    sprayed_links: Vec<LinkId>,
    /// Selective parts of ACKs under way.
    selective: Arena<Selective>,
    /// Control messages under way as packets.
    messages: Arena<Box<[u8]>>,
    messages_of_applications: Messages,
    network: Network,
    paths: Paths<PortId>,
    flows: Flows,
    connections: ConnectionTable,
    datagrams: Datagrams,
    hosts: Hosts,
    homes: Homes,
    observer: Observer,
    pauses: Option<Box<Pauses>>,
    /// Windows and layers instead of the event queue.
    layers: Option<Box<Layers>>,
    /// True if all events have to keep their order.
    is_strict: bool,
    /// True if packets of one connection differ in more than what they carry, or are paced.
    adapts: bool,
    /// For each part, what goes there.
    pub(crate) outbox: IdVec<ShardId, Mail>,
    now: Time,
    handled: u64,
}

impl Shard {
    pub(crate) fn new(setup: ShardSetup) -> Self {
        let ShardSetup { world, network, .. } = setup;
        let is_strict = setup
            .watched
            .values()
            .any(|watched| watched.order == Order::Strict)
            || setup.keeps != (false, false)
            || !world.workload.barriers.is_empty()
            || world.control.is_immediate
            || setup.pauses.is_some()
            // What arrives by one NIC makes its host send by another.
            || !setup.homes.is_empty()
            || !network.is_loose();
        let mut shard = Self {
            part: setup.part,
            events: Wheel::new(),
            packets: Arena::new(),
            unloaded: Vec::new(),
            forks: Forks::default(),
            sprayed_links: Vec::new(),
            selective: Arena::new(),
            messages: Arena::new(),
            messages_of_applications: Messages::default(),
            paths: setup.paths,
            flows: Flows::new(setup.starting, setup.outcomes, setup.barriers),
            connections: ConnectionTable::new(world.directory.len()),
            datagrams: Datagrams::default(),
            hosts: setup.hosts,
            homes: setup.homes,
            is_strict,
            adapts: world.stages.is_some()
                || setup.routing.router.selection() == Selection::Packet
                || world.has_pace,
            routing: setup.routing,
            network,
            observer: Observer::new(setup.watched, setup.keeps),
            pauses: setup.pauses.map(Box::new),
            layers: setup.layers.map(|plan| Box::new(Layers::new(plan))),
            outbox: (0..setup.parts).map(|_| Mail::default()).collect(),
            now: Time::ZERO,
            handled: 0,
            world,
        };
        if shard.layers.is_some() {
            shard.await_first_flows();
        } else {
            shard.await_next_flow();
        }
        for stop in setup.stops {
            shard.schedule(stop.at, Key::new(Occasion::Stop(stop.flow)));
        }
        shard.start_hosts();
        shard
    }

    /// Handles up to `most` events before `end`; how many there were.
    #[inline]
    pub(crate) fn run(&mut self, end: Time, most: u64) -> u64 {
        if self.layers.is_some() {
            return self.run_windows(end, most);
        }
        let mut count = 0;
        self.events.hold(end);
        while count < most {
            if let Some(event) = self.events.pop_before(end) {
                self.handle(event);
                count += 1;
            } else if !self.next_slot(end) {
                break;
            }
        }
        self.handled += count;
        count
    }

    /// Prepares for the events of the next slot, if it begins before `end`.
    #[inline(never)]
    fn next_slot(&mut self, end: Time) -> bool {
        let (mut collide, is_strict) = (self.network.collisions(), self.is_strict);
        self.events.next_slot(end, |event, number| {
            let is_frequent = event.key.is_arrival() || event.key.is_port_ready();
            if !is_frequent || is_strict {
                return Collision::Ordered;
            }
            collide(event.hop.id(), number)
        })
    }

    #[inline(always)]
    fn handle(&mut self, event: Event) {
        if event.key.is_arrival() {
            self.now = event.time;
            self.arrive(event.packet, event.hop);
        } else if event.key.is_port_ready() {
            if self.pauses.is_some() || !self.observer.watched.is_empty() {
                // What leaves a switch may let another port go on, and what leaves a host its
                // sender.
                self.now = event.time;
            }
            let port = event.hop.onward();
            self.serve(port, event.time);
            self.network.await_ready(&mut self.events, port);
        } else {
            self.now = event.time;
            self.handle_rare(event.key, event.packet, event.hop);
        }
    }

    /// Handles an event that is neither an arrival nor a port's, at `now`.
    #[inline(never)]
    fn handle_rare(&mut self, key: Key, packet: u32, hop: Hop<PortId>) {
        match key.occasion() {
            Occasion::Arrival(_) | Occasion::PortReady(_) => {}
            Occasion::HostTimer(nic) => self.host_timer(nic),
            Occasion::SenderTimer(connection) => self.sender_timer(connection),
            Occasion::ReceiverTimer(connection) => self.receiver_timer(connection),
            Occasion::Start(flow) => self.start_flow(flow),
            Occasion::Stop(flow) => self.stop_flow(flow),
            Occasion::Frame(link) => self.take_frame(link, packet, hop),
        }
    }

    /// All events before `end` are handled: brings the ports up to it.
    pub(crate) fn settle(&mut self, end: Time) {
        let now = end.saturating_sub(Time::from_ps(1));
        for port in self.network.ports() {
            if self.layers.is_none() {
                self.serve(port, now);
            }
            self.network.settle(port, now);
        }
    }

    /// Counters of both ends of a UDP flow, as far as they are here.
    pub(crate) fn datagrams(
        &self,
        flow: FlowId,
    ) -> (Option<&udp::SenderStats>, Option<&udp::ReceiverStats>) {
        (self.datagrams.sent(flow), self.datagrams.received(flow))
    }

    /// Latencies of a UDP flow's messages, if they are kept here.
    pub(crate) fn message_latencies(&self, flow: FlowId) -> &[MessageLatency] {
        self.datagrams.latencies(flow)
    }

    /// Time of the next event.
    pub(crate) fn next_time(&self) -> Option<Time> {
        match &self.layers {
            Some(layers) => layers.next_time(&self.network),
            None => self.events.next_time(),
        }
    }

    /// A time that no event to come is before.
    pub(crate) fn clock(&self) -> Time {
        self.events.slot_start()
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    fn schedule(&mut self, time: Time, key: Key) {
        if self.layers.is_some() {
            let host = self.host_of(key);
            if let Some(layers) = &mut self.layers {
                layers.schedule(host, time, key);
            }
            return;
        }
        self.events.push(Event {
            time,
            key,
            packet: 0,
            hop: Hop::NOWHERE,
        });
    }

    /// Takes a packet from the end of a link to the next port, or to its host.
    #[inline]
    fn arrive(&mut self, number: u32, next: Hop<PortId>) {
        if !next.has_arrived() {
            return self.forward(next.onward(), number);
        }
        let packet = *self.packets.get(number);
        self.packets.remove(number);
        self.take_arrived(packet);
    }

    /// Takes a packet that has arrived at its host.
    #[inline]
    fn take_arrived(&mut self, packet: Packet) {
        if !self.hosts.is_empty() {
            self.note_received(&packet);
        }
        match packet.payload {
            Payload::Data { .. } => self.take_data(packet),
            Payload::Ack { .. } | Payload::SelectiveAck { .. } => self.take_ack(packet),
            Payload::Datagram { .. } => self.take_datagram(packet),
            Payload::Control { place, .. } => self.take_message(packet.connection(), place),
        }
    }

    /// Lets a port send what it sends by `now`.
    #[inline(never)]
    fn serve(&mut self, port: PortId, now: Time) {
        while let Some((number, sent)) = self.network.depart(&mut self.packets, now, port) {
            self.deliver(number, sent);
        }
    }

    /// Hands a packet to a port.
    #[inline(always)]
    fn forward(&mut self, port: PortId, number: u32) {
        // Its own event may come after this one: at the same instant, or in a slot without order.
        if self.network.due(port) <= self.now {
            self.serve(port, self.now);
        }
        let queues = (&mut self.events, &mut self.packets);
        match self.network.forward(queues, self.now, port, number) {
            Forwarded::Sent(sent) => self.deliver(number, sent),
            Forwarded::Queued => {}
            Forwarded::Dropped => self.discard(port),
        }
    }

    /// Lets a packet arrive at the other end of its link.
    #[inline]
    fn deliver(&mut self, number: u32, sent: Sent) {
        if sent.to == self.part {
            self.await_arrival(number, sent.link, sent.arrival);
        } else {
            self.deliver_otherwise(number, sent);
        }
    }

    /// Schedules the arrival of a packet at the end of a link.
    #[inline]
    fn await_arrival(&mut self, number: u32, link: LinkId, at: Time) {
        let packet = self.packets.get_mut(number);
        let hop = self.paths.hop(packet.ticket.route());
        packet.ticket.advance();
        self.events.push(Event {
            time: at,
            key: Key::new(Occasion::Arrival(link)),
            packet: number,
            hop,
        });
    }

    /// Discards the packets that a port has dropped.
    #[cold]
    fn discard(&mut self, port: PortId) {
        let dropped: Vec<_> = self.network.take_dropped(port).collect();
        for (number, reason) in dropped {
            self.release(self.network.link(port), number);
            let packet = self.take(number);
            self.observe_drop(port, &packet, reason);
            if let Some(flow) = packet.account() {
                self.flows.count_drop(flow, reason);
            }
            self.leave_by_drop(port, &packet);
        }
    }

    /// Puts a packet of a host on its way.
    // Inlined, so that a new packet is written once, to its place.
    #[inline(always)]
    fn launch(&mut self, packet: Packet) {
        if !self.hosts.is_empty() {
            return self.launch_gated(packet);
        }
        let port = self.nic(packet.ticket.route());
        let mut ticket = packet.ticket;
        let number = self.packets.insert_with(|number| {
            ticket = ticket.numbered(number);
            ticket.advance();
            packet.with_ticket(ticket)
        });
        if self.layers.is_some() {
            self.enter_line(port, ticket);
        } else {
            self.forward_new(port, number);
        }
    }

    /// Hands a new packet to the NIC of its host.
    #[inline(never)]
    fn forward_new(&mut self, port: PortId, number: u32) {
        self.forward(port, number);
    }

    /// Hands a packet to the NIC of its host.
    #[inline]
    fn enter_nic(&mut self, port: PortId, number: u32) {
        let ticket = &mut self.packets.get_mut(number).ticket;
        ticket.advance();
        let ticket = *ticket;
        if self.layers.is_some() {
            self.enter_line(port, ticket);
        } else {
            self.forward(port, number);
        }
    }

    /// The port of the NIC that a path begins with.
    #[inline]
    fn nic(&self, route: u32) -> PortId {
        self.paths.hop(route).onward()
    }

    /// Gives a packet a place and a number.
    #[inline]
    fn add(&mut self, packet: Packet) -> u32 {
        self.packets.insert_with(|number| packet.numbered(number))
    }

    /// Takes a packet that goes no further from its place.
    fn take(&mut self, number: u32) -> Packet {
        let packet = *self.packets.get(number);
        self.packets.remove(number);
        match packet.payload {
            Payload::SelectiveAck { place, .. } => self.selective.remove(place),
            Payload::Control { place, .. } => drop(self.take_bytes(place)),
            Payload::Data { .. } | Payload::Ack { .. } | Payload::Datagram { .. } => {}
        }
        packet
    }
}
