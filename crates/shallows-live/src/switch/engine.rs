mod coordination;
mod hosts;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use shallows_core::packet::Packet as _;
use shallows_core::port::{EgressPort, Pool, PortConfig, Transmit};
use shallows_core::units::{Rate, Time};
use shallows_model::routing::first_links;

pub(super) use coordination::Outgoing;
use hosts::LinkStack;

use super::bridge::{Bridge, StationCounters, Way};
use super::departures::Streams;
use super::{Classify, Forwarding, LinkName, SwitchConfig, SwitchError};
use crate::frame::{Frame, FrameStore, Header, Mac, Network, mark_ce};

/// Frames that may be in the switch at once: some 130 MB. Ports with limits never come near.
const MOST_FRAMES: usize = 65_536;

/// The switch without devices and clock.
///
/// [`arrive`](Self::arrive) hands it a frame, [`advance`](Self::advance) lets it work up to a time
/// and gives the frames that have reached the ends of their links by then.
#[derive(Debug)]
pub struct Engine {
    links: Vec<Link>,
    bridges: Vec<Bridge>,
    /// One for each bridge, then one for all uplinks.
    pools: Vec<Pool<Frame>>,
    /// Entry of each device's frames.
    entries: Vec<Entry>,
    /// Gates and agents of hosts.
    stacks: Vec<LinkStack>,
    /// The stack of each coordinator.
    coordinators: Vec<usize>,
    /// Messages of coordinators, to be sent.
    outgoing: Vec<Outgoing>,
    agenda: BinaryHeap<Reverse<(Time, Event)>>,
    classify: Classify,
    /// UDP streams whose senders want to know what has left their hosts.
    streams: Option<Streams>,
    store: FrameStore,
    /// Frames that had nowhere to go.
    filtered: u64,
    /// Copies of frames that found no memory.
    lost_copies: u64,
}

/// A frame at the end of its link.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// The device to send it to.
    pub device: usize,
    /// The frame, to be given back by [`Engine::release`].
    pub frame: Frame,
    /// Time at which it was due.
    pub due: Time,
}

/// The reason why a frame was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is too short for an Ethernet header.
    Runt,
    /// There is no memory for it.
    NoMemory,
}

/// A directed link with the egress port before it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) rate: Rate,
    pub(super) port: EgressPort<Frame>,
    pool: usize,
    delay: Time,
    end: End,
    /// True if the agenda says when to ask the port again.
    scheduled: bool,
    /// The stack that holds frames back before the port.
    stack: Option<usize>,
    /// The stack of the host that frames of this link reach.
    receiver: Option<usize>,
    /// The device whose uplink it is.
    host: Option<usize>,
    /// Frames on the wire, with the times of their arrival.
    line: VecDeque<(Time, Frame)>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Device(usize),
    /// A bridge; `back` is the link in the other direction.
    Bridge {
        bridge: usize,
        back: usize,
    },
}

/// First destination of a device's frames.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Uplink(usize),
    Bridge { bridge: usize, back: usize },
}

/// In the order in which events of one instant happen: ports send before frames arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ready(usize),
    Stack(usize),
    Arrival(usize),
}

impl Engine {
    /// A switch for frames of up to `longest` bytes, tags included.
    pub fn new(config: &SwitchConfig, longest: usize) -> Result<Self, SwitchError> {
        config.check()?;
        let count = config.bridges();
        let pool = || config.pool.map_or_else(Pool::unlimited, Pool::new);
        let mut engine = Self {
            links: Vec::new(),
            bridges: (0..count).map(|_| Bridge::new(config.forwarding)).collect(),
            pools: (0..count).map(|_| pool()).collect(),
            entries: Vec::new(),
            stacks: Vec::new(),
            coordinators: Vec::new(),
            outgoing: Vec::new(),
            agenda: BinaryHeap::new(),
            classify: config.classify,
            streams: None,
            store: FrameStore::new(longest, MOST_FRAMES),
            filtered: 0,
            lost_copies: 0,
        };
        engine.pools.push(Pool::unlimited());
        engine.add_ports(config)?;
        engine.add_uplinks(config)?;
        engine.add_trunks(config)?;
        if config.forwarding == Forwarding::Static {
            engine.place_stations(config)?;
        }
        Ok(engine)
    }

    fn add_ports(&mut self, config: &SwitchConfig) -> Result<(), SwitchError> {
        for (device, port) in config.ports.iter().enumerate() {
            let egress = port.egress.as_ref().unwrap_or(&config.egress);
            let link = self.links.len();
            self.add(
                config.seed,
                LinkName::Port(&port.device),
                (port.rate, port.delay),
                egress,
                port.bridge,
            )?;
            self.links[link].end = End::Device(device);
            self.bridges[port.bridge].add_link(link, config.stations_per_port.get());
            self.entries.push(Entry::Bridge {
                bridge: port.bridge,
                back: link,
            });
        }
        Ok(())
    }

    fn add_uplinks(&mut self, config: &SwitchConfig) -> Result<(), SwitchError> {
        for (device, port) in config.ports.iter().enumerate() {
            let Some(uplink) = &port.uplink else { continue };
            let link = self.links.len();
            let name = LinkName::Uplink(&port.device);
            let pool = self.bridges.len();
            self.add(
                config.seed,
                name,
                (uplink.rate, uplink.delay),
                &uplink.egress,
                pool,
            )?;
            self.links[link].end = End::Bridge {
                bridge: port.bridge,
                back: device,
            };
            self.links[link].host = Some(device);
            self.entries[device] = Entry::Uplink(link);
            self.add_gates(link, &port.device, &uplink.gates)?;
        }
        Ok(())
    }

    fn add_trunks(&mut self, config: &SwitchConfig) -> Result<(), SwitchError> {
        // Behind a trunk may be all the others' stations.
        let limit = config.stations_per_port.get() * config.ports.len();
        for trunk in &config.trunks {
            let [a, b] = trunk.between;
            let egress = trunk.egress.as_ref().unwrap_or(&config.egress);
            for (from, to) in [(a, b), (b, a)] {
                let link = self.links.len();
                let back = if from == a { link + 1 } else { link - 1 };
                let name = LinkName::Trunk { from, to };
                self.add(config.seed, name, (trunk.rate, trunk.delay), egress, from)?;
                self.links[link].end = End::Bridge { bridge: to, back };
                self.bridges[from].add_link(link, limit);
            }
        }
        let bridges = self.bridges.len();
        let ways = first_links(0, &self.neighbours());
        let reached = ways.iter().filter(|way| way.is_some()).count();
        if reached + 1 != bridges {
            return Err(SwitchError::NoTree { bridges });
        }
        Ok(())
    }

    fn add(
        &mut self,
        seed: u64,
        name: LinkName<'_>,
        (rate, delay): (Rate, Time),
        egress: &PortConfig,
        pool: usize,
    ) -> Result<(), SwitchError> {
        let port = EgressPort::new(rate, egress, seed, self.links.len() as u64);
        let port = port.map_err(|error| SwitchError::Port {
            of: name.to_string(),
            error,
        })?;
        self.links.push(Link {
            name: name.to_string(),
            rate,
            port,
            pool,
            delay,
            end: End::Device(0),
            scheduled: false,
            stack: None,
            receiver: None,
            host: None,
            line: VecDeque::new(),
        });
        Ok(())
    }

    /// The links of each bridge to others, and where they lead.
    fn neighbours(&self) -> Vec<Vec<(usize, usize)>> {
        let trunk = |&link: &usize| match self.links[link].end {
            End::Bridge { bridge, .. } => Some((link, bridge)),
            End::Device(_) => None,
        };
        let bridges = self.bridges.iter();
        bridges
            .map(|bridge| bridge.links.iter().filter_map(trunk).collect())
            .collect()
    }

    fn place_stations(&mut self, config: &SwitchConfig) -> Result<(), SwitchError> {
        let neighbours = self.neighbours();
        for bridge in 0..self.bridges.len() {
            let ways = first_links(bridge, &neighbours);
            for (device, port) in config.ports.iter().enumerate() {
                let link = match ways[port.bridge] {
                    Some((link, _)) => link,
                    None => device,
                };
                for station in port.macs()? {
                    self.bridges[bridge].place(station, link);
                }
            }
        }
        Ok(())
    }

    /// Takes in a frame that a device received, given in two parts; says what it carries.
    #[inline]
    pub fn arrive(
        &mut self,
        now: Time,
        device: usize,
        (head, tail): (&[u8], &[u8]),
    ) -> Result<Network, Refusal> {
        let length = (head.len() + tail.len()) as u32;
        let Some(slot) = self.store.insert(head, tail) else {
            self.report_refused(device, [head, tail].concat().as_slice());
            return Err(Refusal::NoMemory);
        };
        let Some(header) = Header::parse(self.store.bytes(slot, length)) else {
            self.store.remove(slot);
            return Err(Refusal::Runt);
        };
        let mut frame = Frame::new(slot, length, &header);
        // By the device and not by the address, of which a guest may have as many as it likes.
        frame.machines.0 = device as u8;
        if self.classify == Classify::Pcp {
            frame.class = header.pcp.unwrap_or(0);
        }
        if let Some(streams) = &self.streams {
            frame.stream = streams.destination(self.store.bytes(slot, length), &header);
        }
        // The link of a device's own number leads to it: its stack is before the network.
        if let Some(number) = self.links[device].stack {
            self.note_received(now, number, &frame);
        }
        match self.entries[device] {
            Entry::Uplink(link) => self.submit(now, link, frame),
            Entry::Bridge { bridge, back } => {
                left_host(self.streams.as_ref(), Some(device), &frame);
                self.forward(now, bridge, back, frame);
            }
        }
        Ok(header.network)
    }

    /// Tells the sender of a UDP stream that a frame found no memory: it waits for it no more.
    #[cold]
    fn report_refused(&self, device: usize, bytes: &[u8]) {
        if let (Some(streams), Some(header)) = (&self.streams, Header::parse(bytes)) {
            let mut frame = Frame::new(0, bytes.len() as u32, &header);
            frame.stream = streams.destination(bytes, &header);
            left_host(Some(streams), Some(device), &frame);
        }
    }

    /// Tells senders of these UDP streams what has left their hosts.
    pub(super) fn tell(&mut self, streams: Streams) {
        self.streams = Some(streams);
    }

    /// Does everything that is due until `now`, in logical time, and appends to `deliveries`.
    #[inline]
    pub fn advance(&mut self, now: Time, deliveries: &mut Vec<Delivery>) {
        while let Some(&Reverse((at, event))) = self.agenda.peek() {
            if at > now {
                return;
            }
            self.agenda.pop();
            match event {
                Event::Ready(link) => self.serve(at, link),
                Event::Stack(number) => self.wake(at, number),
                Event::Arrival(link) => self.deliver(at, link, deliveries),
            }
        }
    }

    /// Time of the next event.
    pub fn next(&self) -> Option<Time> {
        self.agenda.peek().map(|&Reverse((at, _))| at)
    }

    /// The bytes of a frame.
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        self.store.bytes(frame.slot, frame.length)
    }

    /// Forgets a frame that was delivered.
    pub fn release(&mut self, frame: &Frame) {
        self.store.remove(frame.slot);
    }

    /// Frames in the switch.
    pub fn frames(&self) -> usize {
        self.store.len()
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    /// The link that frames from a device enter, if it is modelled.
    pub(super) fn uplink(&self, device: usize) -> Option<usize> {
        let leads_back =
            |link: &Link| matches!(link.end, End::Bridge { back, .. } if back == device);
        self.links.iter().position(leads_back)
    }

    /// Frames that had nowhere to go.
    pub fn filtered(&self) -> u64 {
        self.filtered
    }

    /// Counters of learned stations.
    pub fn stations(&mut self, now: Time) -> StationCounters {
        let bridges = self.bridges.iter_mut();
        bridges.map(|bridge| bridge.counters(now)).sum()
    }

    /// Copies of flooded frames that found no memory.
    pub fn lost_copies(&self) -> u64 {
        self.lost_copies
    }

    fn offer(&mut self, now: Time, link: usize, frame: Frame) {
        let Link {
            port,
            pool,
            scheduled,
            host,
            ..
        } = &mut self.links[link];
        // What is dropped may be another frame than this one.
        port.offer(now, frame, &mut self.pools[*pool]);
        for (lost, _) in port.take_dropped() {
            left_host(self.streams.as_ref(), *host, &lost);
            self.store.remove(lost.slot);
        }
        if !*scheduled {
            self.serve(now, link);
        }
    }

    fn serve(&mut self, now: Time, number: usize) {
        let link = &mut self.links[number];
        let again = match link.port.transmit(now, &mut self.pools[link.pool]) {
            Transmit::Packet(departure) => {
                let mut frame = departure.packet;
                if std::mem::take(&mut frame.marked) {
                    mark_ce(self.store.bytes_mut(frame.slot, frame.length));
                }
                left_host(self.streams.as_ref(), link.host, &frame);
                let arrival = departure.finish + link.delay;
                if link.line.is_empty() {
                    self.agenda.push(Reverse((arrival, Event::Arrival(number))));
                }
                link.line.push_back((arrival, frame));
                Some(departure.finish)
            }
            Transmit::Wait(at) => Some(at),
            Transmit::Idle => None,
        };
        link.scheduled = again.is_some();
        if let Some(at) = again {
            self.agenda.push(Reverse((at, Event::Ready(number))));
        }
    }

    fn deliver(&mut self, now: Time, number: usize, deliveries: &mut Vec<Delivery>) {
        let link = &mut self.links[number];
        let Some((due, frame)) = link.line.pop_front() else {
            return;
        };
        if let Some(&(next, _)) = link.line.front() {
            self.agenda.push(Reverse((next, Event::Arrival(number))));
        }
        if let Some(number) = link.receiver {
            self.note_received(now, number, &frame);
        }
        match self.links[number].end {
            End::Device(device) => deliveries.push(Delivery { device, frame, due }),
            End::Bridge { bridge, back } => self.forward(now, bridge, back, frame),
        }
    }

    fn forward(&mut self, now: Time, bridge: usize, back: usize, frame: Frame) {
        let bytes = self.store.bytes(frame.slot, frame.length);
        let mac = |at: usize| Mac(std::array::from_fn(|i| bytes[at + i]));
        let (destination, source) = (mac(0), mac(6));
        match self.bridges[bridge].way(now, source, destination, back) {
            Way::Link(link) => self.submit(now, link, frame),
            Way::Everywhere => self.flood(now, bridge, back, frame),
            Way::Nowhere => {
                self.filtered += 1;
                self.store.remove(frame.slot);
            }
        }
    }

    fn flood(&mut self, now: Time, bridge: usize, back: usize, frame: Frame) {
        for index in 0..self.bridges[bridge].links.len() {
            let link = self.bridges[bridge].links[index];
            if link == back {
                continue;
            }
            match self.store.duplicate(frame.slot, frame.length) {
                Some(slot) => self.submit(now, link, frame.at(slot)),
                None => self.lost_copies += 1,
            }
        }
        self.store.remove(frame.slot);
    }
}

/// Tells the sender of a stream that a frame has left its host, or was dropped in it.
#[inline]
fn left_host(streams: Option<&Streams>, host: Option<usize>, frame: &Frame) {
    if let (Some(streams), Some(host), Some(to)) = (streams, host, frame.stream) {
        streams.left(host, to, frame.size());
    }
}

#[cfg(test)]
mod tests;
