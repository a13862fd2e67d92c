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
use std::{iter, mem};

use shallows_core::units::Time;

use line::Arriving;
pub(crate) use line::Line;
pub use plan::{Engine, EngineChoice, NoLayers};
pub(crate) use plan::{LayerPlan, refuse};

use crate::engine::Key;
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

/// Hosts, links and switches of a run in layers.
#[derive(Debug)]
pub(crate) struct Layers {
    plan: LayerPlan,
    /// Hosts have done everything before this time, switches before the other.
    hosts_at: Time,
    switches_at: Time,
    /// The latest event so far.
    latest: Time,
    agendas: Vec<Agenda>,
    /// For each host, a time before which nothing happens there.
    wake: Vec<Time>,
    /// The packets on each link.
    lines: Vec<Line>,
    /// For each port, the packets of this window that go to it.
    buckets: Vec<Vec<Arriving>>,
    /// The position of each link in the plan's order, and a bit for each position: something is at
    /// the port or on its link.
    positions: Vec<u32>,
    active: Vec<u64>,
    scratch: Vec<Arriving>,
    /// Ports that have dropped packets in this window.
    dropped: Vec<u32>,
}

impl Layers {
    pub(crate) fn new(plan: LayerPlan) -> Self {
        let links = plan.host.len();
        let mut positions = vec![u32::MAX; links];
        for (position, &link) in (0..).zip(&plan.order) {
            positions[link as usize] = position;
        }
        let agenda = |_| Agenda {
            events: BinaryHeap::new(),
            next: Time::MAX,
        };
        Self {
            hosts_at: Time::ZERO,
            switches_at: Time::ZERO,
            latest: Time::ZERO,
            agendas: (0..plan.hosts).map(agenda).collect(),
            wake: vec![Time::MAX; plan.hosts as usize],
            lines: (0..links).map(|_| Line::default()).collect(),
            buckets: vec![Vec::new(); links],
            active: vec![0; plan.order.len().div_ceil(64)],
            positions,
            scratch: Vec::new(),
            dropped: Vec::new(),
            plan,
        }
    }

    /// Makes windows longer than they may be.
    #[cfg(test)]
    pub(crate) fn stretch(&mut self, up: Time, down: Time) {
        self.plan.up += up;
        self.plan.down += down;
    }

    /// Puts an event on the agenda of a host.
    pub(crate) fn schedule(&mut self, host: u32, time: Time, key: Key) {
        let agenda = &mut self.agendas[host as usize];
        agenda.events.push(Reverse((time, key)));
        agenda.next = agenda.next.min(time);
        let wake = &mut self.wake[host as usize];
        *wake = time.min(*wake);
    }

    /// The end of the next window of hosts, if there is something to do before `end`.
    pub(crate) fn next_window(&mut self, end: Time) -> Option<Time> {
        if self.hosts_at >= end && self.switches_at >= end {
            return None;
        }
        if self.active.iter().all(|&bits| bits == 0) {
            // Nothing is on its way before a host does something.
            let first = self.first_wake().min(end);
            self.hosts_at = self.hosts_at.max(first);
            self.switches_at = self.switches_at.max(first);
            if first == end {
                return None;
            }
        }
        let next = self.switches_at.saturating_add(self.plan.down);
        let letters = self.hosts_at.saturating_add(self.plan.letters);
        Some(next.min(letters).min(end).max(self.hosts_at))
    }

    /// Advances to the next time at which something happens, at most to `end`. Without it, a packet
    /// that waits long at a port would cost as many windows as pass meanwhile.
    #[cold]
    pub(crate) fn skip_idle(&mut self, network: &Network, end: Time) {
        let next = self.next_time(network).unwrap_or(end).min(end);
        self.hosts_at = self.hosts_at.max(next);
        self.switches_at = self.switches_at.max(next);
    }

    fn first_wake(&self) -> Time {
        self.wake.iter().copied().min().unwrap_or(Time::MAX)
    }

    /// A host that has something to do before `end`, from `first` on.
    #[inline]
    pub(crate) fn next_host(&self, first: u32, end: Time) -> Option<u32> {
        let rest = self.wake[first as usize..].iter();
        let offset = rest.copied().position(|wake| wake < end)?;
        Some(first + offset as u32)
    }

    /// The next thing that happens at a host before `end`.
    #[inline(always)]
    pub(crate) fn next_at(&mut self, host: u32, end: Time) -> Option<(Time, HostEvent)> {
        let line = &mut self.lines[2 * host as usize + 1];
        let agenda = &mut self.agendas[host as usize];
        let arrival = line.next();
        if arrival <= agenda.next {
            if arrival >= end {
                return None;
            }
            return Some((arrival, HostEvent::Arrival(line.pop()?)));
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

    /// The line behind a port.
    #[inline(always)]
    pub(crate) fn line(&mut self, link: u32) -> &mut Line {
        &mut self.lines[link as usize]
    }

    /// A host has done all before `end`, the last at `latest`.
    #[inline]
    pub(crate) fn finish_host(
        &mut self,
        host: u32,
        latest: Time,
        end: Time,
        network: &mut Network,
    ) {
        let nic = 2 * host as usize;
        let due = network.run_port(nic as u32, iter::empty(), end, &mut self.lines[nic]);
        self.lines[nic + 1].take(0);
        let next = self.lines[nic + 1].next();
        self.wake[host as usize] = next.min(self.agendas[host as usize].next).min(due);
        self.latest = self.latest.max(latest);
        if self.lines[nic].next() < Time::MAX {
            activate(&mut self.active, host);
        }
    }

    /// Hosts have done everything before `hosts_at`: brings the switches as far as they can come,
    /// at most to `end`. Returns the number of packets that arrived at switches.
    pub(crate) fn run_switches(
        &mut self,
        network: &mut Network,
        paths: &Paths,
        (hosts_at, end): (Time, Time),
    ) -> u64 {
        self.hosts_at = hosts_at;
        let until = hosts_at.saturating_add(self.plan.up).min(end);
        if until <= self.switches_at {
            return 0;
        }
        let mut count = 0;
        for word in 0..self.active.len() {
            // Ports become active by those before them, also within a word.
            let mut rest = u64::MAX;
            while self.active[word] & rest != 0 {
                let bit = (self.active[word] & rest).trailing_zeros();
                rest = u64::MAX.checked_shl(bit + 1).unwrap_or(0);
                let position = word as u32 * 64 + bit;
                let link = self.plan.order[position as usize];
                let mut next = Time::MAX;
                if position >= self.plan.hosts {
                    next = self.run_port(link, until, network);
                }
                if let Some(host) = self.plan.host[link as usize] {
                    let arrival = self.lines[link as usize].next();
                    assert!(arrival >= hosts_at, "{TOO_LONG}");
                    let wake = &mut self.wake[host as usize];
                    *wake = arrival.min(*wake);
                } else {
                    count += self.show(link, until, paths);
                    next = next.min(self.lines[link as usize].next());
                }
                if next == Time::MAX {
                    self.active[word] &= !(1 << bit);
                }
            }
        }
        self.switches_at = until;
        count
    }

    /// Hands the packets that arrive from a link before `until` to their next ports.
    #[inline]
    fn show(&mut self, link: u32, until: Time, paths: &Paths) -> u64 {
        let line = &mut self.lines[link as usize];
        let begin = self.switches_at;
        let mut count = 0;
        for transit in line.packets() {
            if transit.time >= until {
                break;
            }
            assert!(transit.time >= begin, "{TOO_LONG}");
            let mut ticket = transit.ticket;
            let port = paths.link(ticket.route());
            ticket.advance();
            let bucket = &mut self.buckets[port as usize];
            if bucket.is_empty() {
                activate(&mut self.active, self.positions[port as usize]);
            }
            bucket.push(Arriving::new(transit.time - begin, link, ticket));
            count += 1;
        }
        if count > 0 {
            self.latest = self.latest.max(line.packets()[count - 1].time);
            line.take(count);
        }
        count as u64
    }

    /// Lets a port of a switch take its packets of this window, and send what it starts to send
    /// before `until`. Returns when it sends next.
    #[inline]
    fn run_port(&mut self, link: u32, until: Time, network: &mut Network) -> Time {
        let (port, begin) = (link as usize, self.switches_at);
        let bucket = &mut self.buckets[port];
        line::sort(bucket, &mut self.scratch);
        // Before `until`, so that the sum does not overflow.
        let at = |since: Time| Time::from_ps(begin.ps() + since.ps());
        let arrivals = bucket
            .iter()
            .map(|packet| (at(packet.since()), packet.ticket));
        let due = network.run_port(link, arrivals, until, &mut self.lines[port]);
        bucket.clear();
        if network.has_dropped(link) {
            self.dropped.push(link);
        }
        due
    }

    /// Takes the ports of switches that have dropped packets.
    pub(crate) fn take_dropped(&mut self) -> Vec<u32> {
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
        let next = |(_, &link): (usize, &u32)| {
            let on_link = self.lines[link as usize].next();
            on_link.min(network.due(link))
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
    /// A packet arrives.
    Arrival(Ticket),
    /// A timer, or the start of a flow.
    Timer(Key),
}
