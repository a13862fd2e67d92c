//! The engine without an event queue: windows of time, layer by layer.
//!
//! In a fabric whose links form no cycle between hosts a packet only goes from one layer of ports
//! to the next, and the loop is closed by hosts alone:
//!
//! ```text
//!    hosts      NICs       leaves up      spines      leaves down     hosts
//!   +-----+   +------+    +---------+   +---------+   +----------+   +-----+
//!   | TCP |-->| port |===>|  ports  |==>|  ports  |==>|  ports   |==>| TCP |
//!   +-----+   +------+    +---------+   +---------+   +----------+   +-----+
//!      window [T, T')                window [S, S')
//! ```
//!
//! Nothing that a host sends from T' on is at a switch before S' = T' + `up`, and nothing that a
//! switch starts to send from S on is at a host before S + `down`. So a window ends at T' = S +
//! `down`, and then
//!
//! 1. every host takes its packets, timers and starts before T' in the order of
//!    [`engine::order`](crate::engine), and its NIC sends;
//! 2. layer by layer, every port of a switch takes the packets that arrive before S' in the order
//!    of time and link, and sends what it starts to send before S'. By then all of them are known,
//!    because the layers before have come to S'.
//!
//! Packets between two ports are a [`Line`] in the order of their arrival. A port is visited once a
//! window with all its packets, which is why this is fast: there is no queue of events, and the
//! state of a port is in the cache for some 30 packets. Hosts and switches meet at the end of
//! every run, such as the time of a sample, and go on from there.
//!
//! The outcome is the event queue's, bit for bit. [`LayerPlan`] says what does not fit.

mod line;
mod plan;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use shallows_core::units::Time;
use shallows_model::{Id as _, IdVec, LinkId};

use line::Transit;
pub(crate) use line::{Arriving, Line};
pub use plan::{Engine, EngineChoice, NoLayers};
pub(crate) use plan::{LayerPlan, PartPlan, refuse};

use crate::engine::Key;
use crate::ids::{LocalHostId, PortId, ShardId};
use crate::network::Network;
use crate::paths::Paths;
use crate::ticket::Ticket;

/// The windows are longer than the least time from host to host.
const TOO_LONG: &str = "a packet arrives before the window: windows are too long";

/// The timers and starts of a host.
#[derive(Debug)]
struct Agenda {
    events: BinaryHeap<Reverse<(Time, Key)>>,
    /// Time of the first entry; the greatest time if there is none.
    next: Time,
}

/// Hosts, links and switches of a part of a run in layers, by their numbers in that part.
#[derive(Debug)]
pub(crate) struct Layers {
    plan: PartPlan,
    /// Hosts have done everything before this time, switches before the other.
    at: Ends,
    /// End of the window.
    window: Ends,
    /// The latest event so far.
    latest: Time,
    agendas: IdVec<LocalHostId, Agenda>,
    /// For each host, a time before which nothing happens there.
    wake: IdVec<LocalHostId, Time>,
    /// The packets on each link.
    lines: IdVec<PortId, Line>,
    /// The NIC of the host that runs, and the packets of this window that it is to send.
    running: Option<PortId>,
    entering: Vec<Arriving>,
    /// For each port, the packets of this window that go to it.
    buckets: IdVec<PortId, Vec<Arriving>>,
    /// The position of each port in the plan's order, and a bit for each position: something is at
    /// the port or on its link.
    positions: IdVec<PortId, u32>,
    active: Vec<u64>,
    scratch: Vec<Arriving>,
    /// Memory of buckets and lines that are empty, for those that need it next: it is in the cache.
    spare_buckets: Vec<Vec<Arriving>>,
    spare_lines: Vec<Vec<Transit>>,
    /// Ports that have dropped packets in this window.
    dropped: Vec<PortId>,
    /// Packets to ports of other parts.
    crossing: Vec<Crossing>,
}

/// Times of hosts and of switches.
#[derive(Clone, Copy, Debug)]
struct Ends {
    hosts: Time,
    switches: Time,
}

impl Ends {
    const NEVER: Self = Self {
        hosts: Time::ZERO,
        switches: Time::ZERO,
    };
}

/// A packet at the end of a link whose next port is in another part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) shard: ShardId,
    pub(crate) link: LinkId,
    pub(crate) time: Time,
    pub(crate) ticket: Ticket,
}

impl Layers {
    pub(crate) fn new(plan: PartPlan) -> Self {
        let ports = plan.links.len();
        let mut positions = IdVec::from(vec![u32::MAX; ports]);
        for (position, &port) in (0..).zip(&plan.order) {
            positions[port] = position;
        }
        let agenda = |_| Agenda {
            events: BinaryHeap::new(),
            next: Time::MAX,
        };
        Self {
            at: Ends::NEVER,
            window: Ends::NEVER,
            latest: Time::ZERO,
            agendas: (0..plan.hosts).map(agenda).collect(),
            wake: vec![Time::MAX; plan.hosts as usize].into(),
            lines: (0..ports).map(|_| Line::default()).collect(),
            running: None,
            entering: Vec::new(),
            buckets: vec![Vec::new(); ports].into(),
            active: vec![0; plan.order.len().div_ceil(64)],
            positions,
            scratch: Vec::new(),
            spare_buckets: Vec::new(),
            spare_lines: Vec::new(),
            dropped: Vec::new(),
            crossing: Vec::new(),
            plan,
        }
    }

    /// Makes windows longer than they may be.
    #[cfg(test)]
    pub(crate) fn stretch(&mut self, up: Time, down: Time) {
        self.plan.times.up += up;
        self.plan.times.down += down;
    }

    /// Number of stages in a window.
    pub(crate) fn stages(&self) -> usize {
        self.plan.stages.len()
    }

    /// Puts an event on the agenda of a host.
    pub(crate) fn schedule(&mut self, host: LocalHostId, time: Time, key: Key) {
        let agenda = &mut self.agendas[host];
        agenda.events.push(Reverse((time, key)));
        agenda.next = agenda.next.min(time);
        let wake = &mut self.wake[host];
        *wake = time.min(*wake);
    }

    /// Begins a window, if there is time before `end`. All parts begin the same one.
    pub(crate) fn begin_window(&mut self, end: Time) -> bool {
        let Ends { hosts, switches } = self.at;
        if hosts >= end && switches >= end {
            return false;
        }
        let times = &self.plan.times;
        let next = switches.saturating_add(times.down);
        let letters = hosts.saturating_add(times.letters);
        let until = next.min(letters).min(end).max(hosts);
        self.window = Ends {
            hosts: until,
            switches: until.saturating_add(times.up).min(end).max(switches),
        };
        true
    }

    /// The end of the window of hosts.
    #[inline]
    pub(crate) fn hosts_until(&self) -> Time {
        self.window.hosts
    }

    /// Ends a window. Nothing happens in any part before `earliest`: without that, a packet that
    /// waits long at a port would cost as many windows as pass meanwhile.
    pub(crate) fn end_window(&mut self, earliest: Time) {
        self.at = Ends {
            hosts: self.window.hosts.max(earliest),
            switches: self.window.switches.max(earliest),
        };
    }

    /// A time before which nothing happens any more. Zero, if it may be soon; `count` is the number
    /// of events in this window.
    pub(crate) fn quiet_until(&self, count: u64, network: &Network) -> Time {
        if count > 0 && self.active.iter().any(|&bits| bits != 0) {
            return Time::ZERO;
        }
        self.next_time(network).unwrap_or(Time::MAX)
    }

    fn first_wake(&self) -> Time {
        self.wake.iter().copied().min().unwrap_or(Time::MAX)
    }

    /// A host that has something to do before `end`, from `first` on.
    #[inline]
    pub(crate) fn next_host(&self, first: LocalHostId, end: Time) -> Option<LocalHostId> {
        let rest = self.wake.as_slice()[first.index()..].iter();
        let offset = rest.copied().position(|wake| wake < end)?;
        Some(LocalHostId(first.0 + offset as u32))
    }

    /// The packets that arrive at a host before `end`.
    #[inline]
    pub(crate) fn arriving(&self, host: LocalHostId, end: Time) -> impl Iterator<Item = Ticket> {
        let packets = self.lines[host.downlink()].packets().iter();
        let before = packets.take_while(move |packet| packet.time < end);
        before.map(|packet| packet.ticket)
    }

    /// The next thing that happens at a host before `end`.
    #[inline(always)]
    pub(crate) fn next_at(&mut self, host: LocalHostId, end: Time) -> Option<(Time, HostEvent)> {
        let line = &mut self.lines[host.downlink()];
        let agenda = &mut self.agendas[host];
        let arrival = line.next();
        if arrival <= agenda.next {
            if arrival >= end {
                return None;
            }
            return Some((arrival, HostEvent::Arrival(line.pop()?.packet())));
        }
        if agenda.next >= end {
            return None;
        }
        let Reverse((time, key)) = agenda.events.pop()?;
        agenda.next = agenda
            .events
            .peek()
            .map_or(Time::MAX, |Reverse(next)| next.0);
        Some((time, HostEvent::Timer(key)))
    }

    /// A host begins its window.
    #[inline]
    pub(crate) fn begin_host(&mut self, host: LocalHostId) {
        self.running = Some(host.nic());
    }

    /// Hands a packet to a NIC at `now`, which takes it with all others of the window, since nothing
    /// depends on it before. Only the host that runs sends.
    #[inline]
    pub(crate) fn enter(&mut self, nic: PortId, now: Time, ticket: Ticket) {
        assert!(self.running == Some(nic), "a host sends out of its turn");
        let since = now - self.at.hosts;
        self.entering.push(Arriving::at_nic(since, ticket));
    }

    /// A host has done all before `end`, the last at `latest`: its NIC sends.
    #[inline]
    pub(crate) fn finish_host(
        &mut self,
        host: LocalHostId,
        latest: Time,
        end: Time,
        network: &mut Network,
    ) {
        let nic = host.nic();
        let line = &mut self.lines[nic];
        line.borrow(&mut self.spare_lines);
        let due = network.run_port(nic, (self.at.hosts, &mut self.entering), end, line);
        self.entering.clear();
        self.running = None;
        if line.next() < Time::MAX {
            activate(&mut self.active, host.0);
        } else {
            self.lines[nic].leave(&mut self.spare_lines);
        }
        let line = &mut self.lines[host.downlink()];
        line.take(0);
        let next = line.next();
        if next == Time::MAX {
            line.leave(&mut self.spare_lines);
        }
        self.wake[host] = next.min(self.agendas[host].next).min(due);
        self.latest = self.latest.max(latest);
    }

    /// Hosts are at the end of the window: brings the ports of a stage to its end as well. Returns
    /// the number of packets that arrived at switches.
    pub(crate) fn run_stage(
        &mut self,
        stage: usize,
        network: &mut Network,
        paths: &Paths<PortId>,
    ) -> u64 {
        let until = self.window.switches;
        if until <= self.at.switches {
            return 0;
        }
        let first = stage
            .checked_sub(1)
            .map_or(0, |before| self.plan.stages[before]);
        let last = self.plan.stages[stage];
        let mut count = 0;
        for word in first / 64..last.div_ceil(64) {
            // Ports become active by those before them, also within a word.
            let mut rest = u64::MAX << first.saturating_sub(word * 64);
            if last < (word + 1) * 64 {
                rest &= (1 << (last - word * 64)) - 1;
            }
            while self.active[word] & rest != 0 {
                let bit = (self.active[word] & rest).trailing_zeros();
                rest &= u64::MAX.checked_shl(bit + 1).unwrap_or(0);
                let position = word * 64 + bit as usize;
                let port = self.plan.order[position];
                let mut next = Time::MAX;
                if position >= self.plan.hosts as usize {
                    next = self.run_port(port, until, network);
                }
                if let Some(host) = LocalHostId::behind(port, self.plan.hosts) {
                    let arrival = self.lines[port].next();
                    assert!(arrival >= self.window.hosts, "{TOO_LONG}");
                    let wake = &mut self.wake[host];
                    *wake = arrival.min(*wake);
                } else {
                    count += self.show(port, until, paths);
                    let line = &mut self.lines[port];
                    let arrival = line.next();
                    if arrival == Time::MAX {
                        line.leave(&mut self.spare_lines);
                    }
                    next = next.min(arrival);
                }
                if next == Time::MAX {
                    self.active[word] &= !(1 << bit);
                }
            }
        }
        count
    }

    /// Hands the packets that arrive from the link of a port before `until` to their next ports.
    #[inline]
    fn show(&mut self, from: PortId, until: Time, paths: &Paths<PortId>) -> u64 {
        let line = &mut self.lines[from];
        let (begin, link) = (self.at.switches, self.plan.links[from]);
        // The first of them is the earliest.
        assert!(line.next() >= begin, "{TOO_LONG}");
        let mut count = 0;
        for transit in line.packets() {
            if transit.time >= until {
                break;
            }
            count += 1;
            let mut ticket = transit.ticket;
            let hop = paths.hop(ticket.route());
            let Some(bucket) = self.buckets.get_mut(hop.onward()) else {
                self.crossing.push(Crossing {
                    shard: hop.shard(),
                    link,
                    time: transit.time,
                    ticket,
                });
                continue;
            };
            ticket.advance();
            if bucket.is_empty() {
                *bucket = self.spare_buckets.pop().unwrap_or_default();
                activate(&mut self.active, self.positions[hop.onward()]);
            }
            bucket.push(Arriving::new(transit.time - begin, link, ticket));
        }
        if count > 0 {
            self.latest = self.latest.max(line.packets()[count - 1].time);
            line.take(count);
        }
        count as u64
    }

    /// Hands a packet of another part that arrives from a link to its next port.
    pub(crate) fn take_crossing(&mut self, port: PortId, link: LinkId, time: Time, ticket: Ticket) {
        assert!(time >= self.at.switches, "{TOO_LONG}");
        let bucket = &mut self.buckets[port];
        if bucket.is_empty() {
            *bucket = self.spare_buckets.pop().unwrap_or_default();
            activate(&mut self.active, self.positions[port]);
        }
        bucket.push(Arriving::new(time - self.at.switches, link, ticket));
    }

    /// Lets a port of a switch take its packets of this window, and send what it starts to send
    /// before `until`. Returns when it sends next.
    #[inline]
    fn run_port(&mut self, port: PortId, until: Time, network: &mut Network) -> Time {
        let begin = self.at.switches;
        let bucket = &mut self.buckets[port];
        line::sort(bucket, &mut self.scratch);
        let line = &mut self.lines[port];
        line.borrow(&mut self.spare_lines);
        let due = network.run_port(port, (begin, bucket), until, line);
        if bucket.capacity() > 0 {
            bucket.clear();
            self.spare_buckets.push(mem::take(bucket));
        }
        if network.has_dropped(port) {
            self.dropped.push(port);
        }
        due
    }

    /// Takes the packets to ports of other parts.
    pub(crate) fn take_crossings(&mut self) -> Vec<Crossing> {
        mem::take(&mut self.crossing)
    }

    /// Keeps the memory of what [`take_crossings`](Self::take_crossings) gave.
    pub(crate) fn keep_room(&mut self, mut crossings: Vec<Crossing>) {
        crossings.clear();
        self.crossing = crossings;
    }

    /// Takes the ports of switches that have dropped packets.
    pub(crate) fn take_dropped(&mut self) -> Vec<PortId> {
        mem::take(&mut self.dropped)
    }

    /// The time of the latest event so far.
    pub(crate) fn latest(&self) -> Time {
        self.latest
    }

    /// Time of the next event, if there is one.
    pub(crate) fn next_time(&self, network: &Network) -> Option<Time> {
        let is_active = |position: usize| self.active[position / 64] >> (position % 64) & 1 == 1;
        let order = self.plan.order.iter().enumerate();
        let active = order.filter(|&(position, _)| is_active(position));
        let next = |(_, &port): (usize, &PortId)| {
            let on_link = self.lines[port].next();
            on_link.min(network.due(port))
        };
        let next = active.map(next).min().unwrap_or(Time::MAX);
        Some(next.min(self.first_wake())).filter(|&next| next < Time::MAX)
    }
}

/// Sets the bit of a position.
#[inline]
fn activate(active: &mut [u64], position: u32) {
    active[position as usize / 64] |= 1 << (position % 64);
}

/// An event at a host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostEvent {
    /// The next packet arrives; its number.
    Arrival(u32),
    /// A timer, or the start of a flow.
    Timer(Key),
}
