//! One part of a fabric with its hosts: all that a thread runs.

mod connections;
mod datagrams;
mod limits;
mod mail;

use std::sync::Arc;
use std::{hint, mem};

use rustc_hash::FxHashMap;
use shallows_core::host::qjump::Limiter;
use shallows_core::host::stage::StageTagger;
use shallows_core::host::udp;
use shallows_core::port::DropReason;
use shallows_core::tcp::TcpConfig;
use shallows_core::units::{Bytes, Time};

use crate::barriers::Barriers;
use crate::engine::{Arena, Class, Event, Key, Meeting, Wheel};
use crate::network::{Forwarded, Network, Sent, WATCHED};
use crate::packet::{Envelope, Packet, Selective};
use crate::paths::{ARRIVED, Paths};
use crate::routing::{LinkState, Router, Selection};
use crate::simulation::{Completion, Connections, FlowOutcome};
use crate::watch::{CapturedPacket, Content, Observation, Watched};
use crate::workload::{FlowSpec, Stop, Workload};
use connections::{Sink, Source};
use datagrams::Datagrams;

pub(crate) use limits::{HostLimits, Limits};
pub(crate) use mail::Mail;

/// What all parts of a run know and none changes.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) workload: Workload,
    pub(crate) transport: TcpConfig,
    pub(crate) connections: Connections,
    pub(crate) completion: Completion,
    pub(crate) stages: Option<StageTagger>,
}

/// Which ways packets take; it changes when links do.
#[derive(Clone, Debug)]
pub(crate) struct Routing {
    pub(crate) router: Router,
    /// Where the paths of each flow begin, forth and back.
    pub(crate) routes: Vec<[u32; 2]>,
}

/// A part of the fabric. On cache lines of its own, because another thread has its neighbour.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard {
    part: u32,
    world: Arc<World>,
    routing: Arc<Routing>,
    events: Wheel,
    packets: Arena<Packet>,
    network: Network,
    paths: Paths,
    /// The flows that start here at a time, in that order, and the next of them.
    starting: Vec<u32>,
    next_start: usize,
    barriers: Barriers,
    /// The sending end of each connection, and the receiving end, while they are open.
    sources: Vec<Option<Box<Source>>>,
    sinks: Vec<Option<Box<Sink>>>,
    datagrams: Datagrams,
    limits: Limits,
    /// Whether all events have to keep their order.
    is_strict: bool,
    /// Whether it is worth to read ahead all that events will need.
    is_large: bool,
    /// Whether packets of one connection differ in more than what they carry.
    adapts: bool,
    /// Whether the receiving end has had everything.
    satisfied: Vec<bool>,
    /// Open connections that have nothing to send, by their hosts and service.
    idle: FxHashMap<(u32, u32, u16), Vec<u32>>,
    outcomes: Vec<FlowOutcome>,
    /// Packets of senders that ports have dropped, by flow and reason.
    drops: FxHashMap<(u32, DropReason), u32>,
    selective: Vec<Selective>,
    free_selective: Vec<u32>,
    /// Links that something happens to.
    watched: FxHashMap<u32, Watched>,
    /// Whether round-trip times are kept.
    keeps_rtt: bool,
    observations: Vec<Observation>,
    /// Connections that carry another flow than the first.
    carriers: FxHashMap<u32, u32>,
    /// For each part, what goes there.
    pub(crate) outbox: Vec<Mail>,
    now: Time,
    done: usize,
    handled: u64,
}

impl Shard {
    pub(crate) fn new(
        (part, parts): (u32, u32),
        world: Arc<World>,
        (network, limits): (Network, Limits),
        (routing, paths): (Arc<Routing>, Paths),
        (watched, keeps_rtt): (FxHashMap<u32, Watched>, bool),
        starting: Vec<u32>,
        stops: &[Stop],
    ) -> Self {
        let count = world.workload.flows.len();
        let mut shard = Self {
            part,
            events: Wheel::new(),
            packets: Arena::new(),
            paths,
            next_start: 0,
            barriers: Barriers::new(&world.workload.barriers),
            sources: (0..count).map(|_| None).collect(),
            sinks: (0..count).map(|_| None).collect(),
            datagrams: Datagrams::default(),
            limits,
            is_large: network.is_large(),
            is_strict: !watched.is_empty()
                || keeps_rtt
                || !world.workload.barriers.is_empty()
                || !network.is_loose(),
            adapts: world.stages.is_some() || routing.router.selection() == Selection::Packet,
            satisfied: vec![false; count],
            idle: FxHashMap::default(),
            outcomes: world.workload.flows.iter().map(FlowOutcome::of).collect(),
            drops: FxHashMap::default(),
            selective: Vec::new(),
            free_selective: Vec::new(),
            routing,
            network,
            watched,
            keeps_rtt,
            observations: Vec::new(),
            carriers: FxHashMap::default(),
            outbox: (0..parts).map(|_| Mail::default()).collect(),
            now: Time::ZERO,
            done: 0,
            handled: 0,
            world,
            starting,
        };
        shard.await_next_flow();
        for stop in stops {
            shard.schedule(stop.at, Key::new(Class::Stop, stop.flow));
        }
        shard
    }

    /// Handles up to `most` events before `end`; how many there were.
    #[inline]
    pub(crate) fn run(&mut self, end: Time, most: u64) -> u64 {
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
        let is_there = {
            let read_ahead = self.packets.reader(|packet| packet.route);
            let (mut meet, is_strict) = (self.network.meetings(), self.is_strict);
            self.events.next_slot(end, |event, number| {
                let is_rare = !matches!(event.key.class(), Class::Arrival | Class::PortReady);
                if is_rare || is_strict {
                    return Meeting::Ordered;
                }
                read_ahead(event.packet);
                meet(event.port & !ARRIVED, number)
            })
        };
        if is_there && self.is_large {
            self.read_ahead();
        }
        is_there
    }

    /// Reads ahead what the events of the slot of now will need beyond packets and the first of a
    /// port, where much of it is in no cache.
    #[inline(never)]
    fn read_ahead(&self) {
        for event in self.events.coming() {
            if event.key.is(Class::Arrival) {
                let packet = self.packets.get(event.packet);
                self.network.read_ahead(event.port & !ARRIVED, packet);
                if event.port & ARRIVED == 0 {
                    hint::black_box(self.paths.link(packet.route));
                } else {
                    let connection = packet.connection() as usize;
                    hint::black_box(self.sources[connection].as_deref().map(Source::flow));
                    hint::black_box(self.sinks[connection].as_deref().map(Sink::flow));
                }
            }
        }
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        if event.key.is(Class::Arrival) {
            self.now = event.time;
            self.arrive(event.packet, event.port);
        } else if event.key.is(Class::PortReady) {
            self.serve(event.port, event.time);
            self.network.await_ready(&mut self.events, event.port);
        } else {
            self.now = event.time;
            self.handle_rare(event.key.class(), event.key.identity());
        }
    }

    #[inline(never)]
    fn handle_rare(&mut self, class: Class, identity: u32) {
        match class {
            Class::Arrival | Class::PortReady => {}
            Class::Epoch => self.begin_epoch(identity),
            Class::SenderTimer => self.sender_timer(identity),
            Class::ReceiverTimer => self.receiver_timer(identity),
            Class::Start => self.start_flow(identity),
            Class::Stop => self.stop_flow(identity),
        }
    }

    /// All events before `end` are handled: brings the ports up to it.
    pub(crate) fn settle(&mut self, end: Time) {
        let now = end.saturating_sub(Time::from_ps(1));
        for port in 0..self.network.ports() {
            self.serve(port, now);
            self.network.settle(port, now);
        }
    }

    /// Takes what was seen since the last time.
    pub(crate) fn take_observations(&mut self) -> Vec<Observation> {
        mem::take(&mut self.observations)
    }

    /// A link that is watched goes down or comes back.
    pub(crate) fn change_link(&mut self, link: u32, state: LinkState) {
        if let Some(watched) = self.watched.get_mut(&link) {
            watched.state = state;
        }
    }

    /// Sends what is sent from now on by other ways.
    pub(crate) fn reroute(&mut self, routing: Arc<Routing>, paths: Paths) {
        self.reroute_connections(&routing.routes);
        self.datagrams.reroute(&routing.routes);
        self.routing = routing;
        self.paths = paths;
    }

    /// Packets that a link has lost, other than those that its port has dropped.
    pub(crate) fn lost_on(&self, link: u32) -> u64 {
        self.watched.get(&link).map_or(0, |watched| watched.lost)
    }

    /// What the sending and the receiving end of a UDP flow did, as far as they are here.
    pub(crate) fn datagrams(
        &self,
        flow: u32,
    ) -> (Option<&udp::SenderStats>, Option<&udp::ReceiverStats>) {
        (self.datagrams.sent(flow), self.datagrams.received(flow))
    }

    /// The limiter in front of a NIC.
    pub(crate) fn limiter(&self, port: u32) -> Option<&Limiter> {
        Some(&self.limits.get(&port)?.limiter)
    }

    /// When the next event is.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.events.next_time()
    }

    /// A time that no event to come is before.
    pub(crate) fn clock(&self) -> Time {
        self.events.slot_start()
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn done(&self) -> usize {
        self.done
    }

    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    /// What became of a flow, as far as it is known here.
    pub(crate) fn outcome(&self, flow: u32) -> FlowOutcome {
        let mut outcome = self.outcomes[flow as usize];
        let drops = |reason| self.drops.get(&(flow, reason)).copied().unwrap_or_default();
        outcome.drops = DropReason::ALL.map(drops).iter().sum();
        if let Some(source) = self.source_of(flow) {
            source.tell(&mut outcome);
        }
        outcome
    }

    /// How many packets of each sender the ports have dropped, by flow and reason.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (u32, DropReason, u32)> {
        let drops = self.drops.iter();
        drops.map(|(&(flow, reason), &count)| (flow, reason, count))
    }

    /// The paths of packets on their way.
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    fn schedule(&mut self, time: Time, key: Key) {
        self.events.push(Event {
            time,
            key,
            packet: 0,
            port: ARRIVED,
        });
    }

    /// Puts the start of the next flow that waits for no barrier into the queue.
    fn await_next_flow(&mut self) {
        if let Some(&flow) = self.starting.get(self.next_start) {
            let start = self.world.workload.flows[flow as usize].start;
            self.schedule(start, Key::new(Class::Start, flow));
        }
    }

    fn start_flow(&mut self, flow: u32) {
        if self.starting.get(self.next_start) == Some(&flow) {
            self.next_start += 1;
            self.await_next_flow();
        }
        self.outcomes[flow as usize].start = self.now;
        if self.world.workload.stream(flow).is_some() {
            self.start_datagrams(flow);
        } else {
            self.start_on_connection(flow);
        }
    }

    /// A flow without end has come to its end.
    fn stop_flow(&mut self, flow: u32) {
        self.stop_connection(flow);
        self.stop_datagrams(flow);
    }

    /// A packet is at the end of a link and goes on to a port, or is at its host.
    #[inline]
    fn arrive(&mut self, number: u32, next: u32) {
        if next & ARRIVED == 0 {
            return self.forward(next, number);
        }
        let packet = *self.packets.get(number);
        self.packets.remove(number);
        if packet.is_ack() {
            self.take_ack(packet);
        } else if packet.is_datagram() {
            self.take_datagram(packet);
        } else {
            self.take_data(packet);
        }
    }

    /// Lets a port send what it sends by `now`.
    #[inline(never)]
    fn serve(&mut self, port: u32, now: Time) {
        while let Some((number, sent)) = self.network.depart(&mut self.packets, now, port) {
            self.deliver(number, sent);
        }
    }

    /// Hands a packet to a port.
    #[inline(always)]
    fn forward(&mut self, port: u32, number: u32) {
        loop {
            let queues = (&mut self.events, &mut self.packets);
            return match self.network.forward(queues, self.now, port, number) {
                Forwarded::Sent(sent) => self.deliver(number, sent),
                Forwarded::Queued => {}
                Forwarded::Dropped => self.bury(port),
                Forwarded::Behind => {
                    self.serve(port, self.now);
                    continue;
                }
            };
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

    /// Sets the event that a packet is at the end of a link.
    #[inline]
    fn await_arrival(&mut self, number: u32, link: u32, at: Time) {
        let packet = self.packets.get_mut(number);
        let port = self.paths.link(packet.route);
        packet.route += 1;
        self.events.push(Event {
            time: at,
            key: Key::new(Class::Arrival, link),
            packet: number,
            port,
        });
    }

    /// A packet on a link to another part, or on one that something happens to.
    #[inline(never)]
    fn deliver_otherwise(&mut self, number: u32, sent: Sent) {
        if sent.to != WATCHED {
            return self.post(number, sent);
        }
        let Some(watched) = self.watched.get_mut(&sent.link) else {
            return;
        };
        if watched.sojourn {
            self.observations.push(Observation::Sojourn {
                link: sent.link,
                queue: sent.queue,
                sojourn: sent.sojourn,
            });
        }
        let (captured, departures, to) = (watched.captured, watched.departures, watched.to);
        let (time, arrives) = (sent.arrival - watched.delay, watched.arrives());
        if captured {
            self.capture(time, sent.link, number);
        }
        if departures {
            self.depart(number, time);
        }
        if arrives {
            self.deliver(number, Sent { to, ..sent });
        } else {
            let selective = self.packets.get(number).selective();
            self.free_selective.extend(selective);
            self.packets.remove(number);
        }
    }

    fn capture(&mut self, time: Time, link: u32, number: u32) {
        let packet = *self.packets.get(number);
        let FlowSpec { src, dst, .. } = self.world.workload.flows[packet.connection() as usize];
        let (src, dst, content) = if packet.is_ack() {
            let selective = packet.selective().map(|at| self.selective[at as usize]);
            (dst, src, Content::Ack(packet.to_ack(selective)))
        } else if packet.is_datagram() {
            (src, dst, Content::Datagram(packet.to_datagram()))
        } else {
            (src, dst, Content::Segment(packet.to_segment()))
        };
        self.observations.push(Observation::Packet(CapturedPacket {
            time,
            link,
            src,
            dst,
            connection: packet.connection(),
            size: packet.size(),
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            content,
        }));
    }

    /// Forgets the packets that a port has dropped.
    #[cold]
    fn bury(&mut self, port: u32) {
        let dropped: Vec<_> = self.network.take_dropped(port).collect();
        for (number, reason) in dropped {
            let packet = *self.packets.get(number);
            self.packets.remove(number);
            self.free_selective.extend(packet.selective());
            if !packet.is_ack() {
                *self.drops.entry((packet.flow(), reason)).or_default() += 1;
            }
            if packet.is_datagram() {
                self.drop_datagram(port, &packet);
            }
        }
    }

    /// Puts a packet of a host on its way.
    #[inline(never)]
    fn launch(&mut self, packet: Packet) {
        if self.limits.is_empty() {
            self.emit(packet);
        } else {
            self.launch_limited(packet);
        }
    }

    /// Hands a packet to the NIC of its host.
    #[inline]
    fn emit(&mut self, packet: Packet) {
        let port = self.paths.link(packet.route);
        let number = self.add(packet);
        self.packets.get_mut(number).route += 1;
        self.forward(port, number);
    }

    /// Gives a packet a place and a number.
    #[inline]
    fn add(&mut self, packet: Packet) -> u32 {
        let number = self.packets.insert(packet);
        self.packets.get_mut(number).ticket.packet = number;
        number
    }

    /// Keeps the selective part of an ACK; where it is.
    fn set_aside(&mut self, part: Selective) -> u32 {
        if let Some(at) = self.free_selective.pop() {
            self.selective[at as usize] = part;
            return at;
        }
        self.selective.push(part);
        (self.selective.len() - 1) as u32
    }

    /// A path for one packet, the `turn`th of its end of the connection.
    #[cold]
    fn spray(&mut self, connection: u32, direction: Direction, turn: u32) -> u32 {
        let FlowSpec { src, dst, .. } = self.world.workload.flows[connection as usize];
        let [forth, back] = self.routing.routes[connection as usize];
        let (src, dst, answer) = match direction {
            Direction::Forth => (src, dst, back),
            Direction::Back => (dst, src, forth),
        };
        let nic = self.paths.link(answer);
        let selector = u64::from(connection) << 32 | u64::from(turn);
        let mut path = Vec::new();
        match (
            self.routing.router.path(src, dst, selector, &mut path),
            direction,
        ) {
            (Ok(()), _) => self.paths.intern(&path, nic),
            // Links are down: the packet is lost on the way that it had before.
            (Err(_), Direction::Forth) => self.routing.routes[connection as usize][0],
            (Err(_), Direction::Back) => self.routing.routes[connection as usize][1],
        }
    }

    /// Notes that a flow is complete.
    fn complete(&mut self, flow: u32) {
        let outcome = &mut self.outcomes[flow as usize];
        if outcome.fct.is_none() {
            outcome.fct = Some(self.now - outcome.start);
            self.done += 1;
            self.release(flow);
        }
    }

    /// Lets the flows go that waited for this one last.
    fn release(&mut self, flow: u32) {
        for opened in self.barriers.completed(flow) {
            let world = Arc::clone(&self.world);
            let barrier = &world.workload.barriers[opened];
            for &flow in &barrier.releases {
                self.schedule(self.now + barrier.pause, Key::new(Class::Start, flow));
            }
        }
    }
}

fn envelope(world: &World, connection: u32, routing: &Routing, direction: Direction) -> Envelope {
    let [forth, back] = routing.routes[connection as usize];
    let service = world.workload.flows[connection as usize].service as u8;
    Envelope {
        connection,
        route: match direction {
            Direction::Forth => forth,
            Direction::Back => back,
        },
        dscp: match &world.stages {
            Some(stages) => stages.stage(Bytes::ZERO),
            None => service,
        },
        header: world.transport.header as u16,
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forth,
    Back,
}
