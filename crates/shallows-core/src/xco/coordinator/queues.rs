//! Queues per destination (Fig. 11), and the permits of each.

use rustc_hash::FxHashMap;

use super::budget::Tokens;
use super::v2v::V2vQueues;
use super::{GateConfig, SmallBudget};
use crate::packet::Packet;
use crate::units::{Rate, Time};
use crate::xco::message::Held;

/// Held packets by destination, and what each destination may send.
#[derive(Debug)]
pub(super) struct Queues<P> {
    config: GateConfig,
    budget: SmallBudget,
    queues: Vec<Queue<P>>,
    index: FxHashMap<u32, u32>,
    /// B_x: queues that are, or were lately, not empty; longest backlogged first.
    backlog: Vec<u32>,
    /// Queues with a rate limit.
    limited: Vec<u32>,
    /// Packets held of each flow, so that small packets do not overtake.
    held_of_flow: FxHashMap<u64, u32>,
    /// Bytes of each flow in the current window.
    sent_of_flow: FxHashMap<u64, u64>,
    window: u64,
    held: usize,
    turn: usize,
    /// End of the last exemption.
    exempt_end: Time,
    longest_wait: Time,
    /// True if all destinations need permission, or only those that are marked so.
    holds_all: bool,
}

#[derive(Debug)]
struct Queue<P> {
    destination: u32,
    packets: V2vQueues<P>,
    /// Since when its packets wait: the first came, or the last one left.
    since: Time,
    /// End of its set-up.
    ready: Time,
    is_backlogged: bool,
    /// True if it needs permission where not all do.
    is_held: bool,
    exempt_until: Time,
    /// A rate limit, and until when.
    limit: Option<(Rate, Time)>,
    /// Earliest departure of its next packet under the limit, in this round or a later one.
    next: Time,
    /// Tokens of small packets.
    tokens: Tokens,
}

impl<P> Queue<P> {
    fn is_free(&self, holds_all: bool, now: Time) -> bool {
        !(holds_all || self.is_held) || now < self.exempt_until
    }
}

impl<P: Packet> Queues<P> {
    pub(super) fn new(config: GateConfig, budget: SmallBudget) -> Self {
        Self {
            config,
            budget,
            queues: Vec::new(),
            index: FxHashMap::default(),
            backlog: Vec::new(),
            limited: Vec::new(),
            held_of_flow: FxHashMap::default(),
            sent_of_flow: FxHashMap::default(),
            window: 0,
            held: 0,
            turn: 0,
            exempt_end: Time::ZERO,
            longest_wait: Time::ZERO,
            holds_all: true,
        }
    }

    pub(super) fn set_budget(&mut self, budget: SmallBudget) {
        self.budget = budget;
    }

    /// The queue of a destination, set up if it is new.
    pub(super) fn of(&mut self, now: Time, destination: u32) -> u32 {
        *self.index.entry(destination).or_insert_with(|| {
            self.queues.push(Queue {
                destination,
                packets: V2vQueues::default(),
                since: now,
                ready: now + self.config.setup,
                is_backlogged: false,
                is_held: false,
                exempt_until: Time::ZERO,
                limit: None,
                next: Time::ZERO,
                tokens: Tokens::new(now, &self.budget),
            });
            self.queues.len() as u32 - 1
        })
    }

    pub(super) fn destination(&self, queue: u32) -> u32 {
        self.queues[queue as usize].destination
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn is_empty(&self, queue: u32) -> bool {
        self.queues[queue as usize].packets.is_empty()
    }

    /// Returns whether a destination needs no permission.
    pub(super) fn is_free(&self, queue: u32, now: Time) -> bool {
        self.queues[queue as usize].is_free(self.holds_all, now)
    }

    /// Returns whether all destinations need permission.
    pub(super) fn holds_all(&self) -> bool {
        self.holds_all
    }

    /// Returns whether a destination is one of those that need permission.
    pub(super) fn is_held(&self, queue: u32) -> bool {
        self.holds_all || self.queues[queue as usize].is_held
    }

    /// Takes over which destinations need permission; whether that adds to B_x.
    pub(super) fn hold(&mut self, now: Time, held: &Held) -> bool {
        if *held == Held::All && self.holds_all {
            return false;
        }
        self.holds_all = *held == Held::All;
        for queue in &mut self.queues {
            queue.is_held = false;
        }
        if let Held::Only(destinations) = held {
            for &destination in destinations {
                let queue = self.of(now, destination);
                self.queues[queue as usize].is_held = true;
            }
        }
        let before = self.backlog.len();
        for queue in 0..self.queues.len() as u32 {
            if self.is_held(queue) && !self.is_empty(queue) {
                self.enter_backlog(queue);
            }
        }
        self.backlog.len() > before
    }

    pub(super) fn is_ready(&self, queue: u32, now: Time) -> bool {
        self.queues[queue as usize].ready <= now
    }

    /// Returns whether the packet is one of those that may pass within the budget.
    pub(super) fn is_small(&self, packet: &P) -> bool {
        u64::from(packet.size()) <= self.config.small_packet.get()
    }

    /// Returns whether a packet of this size on the wire may pass as small or as one of a small flow, for
    /// which it then counts.
    pub(super) fn passes_as_small(
        &mut self,
        now: Time,
        queue: u32,
        packet: &P,
        on_wire: u32,
    ) -> bool {
        if self.held_of_flow.contains_key(&packet.flow()) {
            return false;
        }
        let size = u64::from(packet.size());
        if self.is_small(packet) {
            let tokens = &mut self.queues[queue as usize].tokens;
            if tokens.take(now, &self.budget, on_wire) {
                return true;
            }
        }
        let limit = self.config.small_flow.get();
        if limit == 0 || self.config.small_window == Time::ZERO {
            return false;
        }
        let window = now / self.config.small_window;
        if window != self.window {
            self.window = window;
            self.sent_of_flow.clear();
        }
        let sent = self.sent_of_flow.entry(packet.flow()).or_default();
        *sent += size;
        *sent <= limit
    }

    /// A packet of this size on the wire has come from the destination of a queue.
    pub(super) fn received(&mut self, queue: u32, on_wire: u32) {
        self.queues[queue as usize].tokens.answer(on_wire);
    }

    /// Queues a packet if there is room.
    pub(super) fn push(&mut self, now: Time, queue: u32, packet: P) -> bool {
        let queue = &mut self.queues[queue as usize];
        let was_empty = queue.packets.is_empty();
        if !queue.packets.push(packet, self.config.queue.get()) {
            return false;
        }
        if was_empty {
            queue.since = now;
        }
        self.held += 1;
        *self.held_of_flow.entry(packet.flow()).or_default() += 1;
        true
    }

    pub(super) fn head(&self, queue: u32) -> Option<&P> {
        self.queues[queue as usize].packets.head()
    }

    pub(super) fn pop(&mut self, now: Time, queue: u32) -> Option<P> {
        let queue = &mut self.queues[queue as usize];
        let packet = queue.packets.pop()?;
        let waited = now.saturating_sub(std::mem::replace(&mut queue.since, now));
        self.longest_wait = self.longest_wait.max(waited);
        self.held -= 1;
        if let Some(held) = self.held_of_flow.get_mut(&packet.flow()) {
            *held -= 1;
            if *held == 0 {
                self.held_of_flow.remove(&packet.flow());
            }
        }
        Some(packet)
    }

    /// The longest time that a queue with packets sent none.
    pub(super) fn longest_wait(&self, now: Time) -> Time {
        let waiting = self.queues.iter().filter(|queue| !queue.packets.is_empty());
        let waits = waiting.map(|queue| now.saturating_sub(queue.since));
        waits.max().unwrap_or(Time::ZERO).max(self.longest_wait)
    }

    /// The next queue in turn that holds a packet and may send it without a slot.
    pub(super) fn next_free(&mut self, now: Time, all: bool) -> Option<u32> {
        if self.held == 0 || !all && self.holds_all && self.exempt_end <= now {
            return None;
        }
        let count = self.queues.len();
        let found = (0..count)
            .map(|step| (self.turn + step) % count)
            .find(|&place| {
                let queue = &self.queues[place];
                let may = all || queue.is_free(self.holds_all, now);
                may && !queue.packets.is_empty() && queue.ready <= now
            })?;
        self.turn = (found + 1) % count;
        Some(found as u32)
    }

    /// The earliest end of a set-up of a queue that holds packets.
    pub(super) fn next_ready(&self, now: Time) -> Option<Time> {
        if self.config.setup == Time::ZERO {
            return None;
        }
        let waiting = self.queues.iter().filter(|queue| !queue.packets.is_empty());
        waiting
            .map(|queue| queue.ready)
            .filter(|&ready| ready > now)
            .min()
    }

    pub(super) fn exempt(&mut self, queue: u32, until: Time) {
        self.queues[queue as usize].exempt_until = until;
        self.exempt_end = self.exempt_end.max(until);
    }

    pub(super) fn limit(&mut self, queue: u32, until: Time, rate: Rate) {
        self.queues[queue as usize].limit = Some((rate, until));
        self.limited.push(queue);
    }

    pub(super) fn clear_limits(&mut self) {
        for queue in self.limited.drain(..) {
            self.queues[queue as usize].limit = None;
        }
    }

    /// Clears limits, and gives those that were in force.
    pub(super) fn take_limits(&mut self, now: Time) -> Vec<(u32, Rate)> {
        let limits = self.limited.iter().filter_map(|&queue| {
            let (rate, until) = self.queues[queue as usize].limit?;
            (now < until).then_some((queue, rate))
        });
        let limits = limits.collect();
        self.clear_limits();
        limits
    }

    /// Returns whether a queue has a lower limit than before, or none.
    pub(super) fn limits_shrank(&self, before: &[(u32, Rate)]) -> bool {
        before.iter().any(|&(queue, rate)| {
            let limit = self.queues[queue as usize].limit;
            limit.is_none_or(|(now, _)| now < rate)
        })
    }

    pub(super) fn limits(&self, now: Time) -> impl Iterator<Item = (u32, Rate)> + '_ {
        let queues = self
            .limited
            .iter()
            .map(|&queue| &self.queues[queue as usize]);
        queues.filter_map(move |queue| {
            let (rate, _) = queue.limit.filter(|&(_, until)| now < until)?;
            Some((queue.destination, rate))
        })
    }

    /// Queues with a limit in force and a packet, with when that may leave.
    pub(super) fn limited(&self, now: Time) -> impl Iterator<Item = (Time, u32, Rate)> + '_ {
        self.limited.iter().filter_map(move |&place| {
            let queue = &self.queues[place as usize];
            let (rate, until) = queue.limit?;
            let next = queue.next.max(queue.ready).max(now);
            (!queue.packets.is_empty() && next < until).then_some((next, place, rate))
        })
    }

    pub(super) fn limit_sent(&mut self, queue: u32, next: Time) {
        self.queues[queue as usize].next = next;
    }

    /// Times that lie in the future of a clock that has gone back would last too long.
    pub(super) fn restart_clock(&mut self, now: Time) {
        self.exempt_end = now;
        for queue in &mut self.queues {
            queue.exempt_until = now;
            queue.since = now;
            queue.next = now;
            queue.tokens.restart_clock(now);
            queue.ready = queue.ready.min(now + self.config.setup);
        }
    }

    /// B_x as it is reported.
    pub(super) fn backlog(&self, most: usize) -> Vec<u32> {
        let destinations = self.backlog.iter().map(|&queue| self.destination(queue));
        destinations.take(most).collect()
    }

    /// Adds a queue to B_x; whether it was not there.
    pub(super) fn enter_backlog(&mut self, queue: u32) -> bool {
        let is_new = !std::mem::replace(&mut self.queues[queue as usize].is_backlogged, true);
        if is_new {
            self.backlog.push(queue);
        }
        is_new
    }

    pub(super) fn leave_backlog(&mut self, queue: u32) {
        self.queues[queue as usize].is_backlogged = false;
        self.backlog.retain(|&other| other != queue);
    }

    /// Takes empty queues but `kept` out of B_x; whether there were any.
    pub(super) fn drop_empty(&mut self, kept: Option<u32>) -> bool {
        let before = self.backlog.len();
        let queues = &mut self.queues;
        self.backlog.retain(|&place| {
            let queue = &mut queues[place as usize];
            let stays = !queue.packets.is_empty() || kept == Some(place);
            if !stays {
                queue.is_backlogged = false;
            }
            stays
        });
        self.backlog.len() < before
    }
}
