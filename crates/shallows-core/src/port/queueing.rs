//! A port that keeps its packets in queues.

use super::buffer::Buffer;
use super::classifier::Classifier;
use super::framing::Sizes;
use super::link::Link;
use super::look_ahead::{LookAheadFifo, Rules};
use super::marker::{Alone, Judge, Marker, PortContext, Presence, Scheme};
use super::meter::Meter;
use super::plain;
use super::queues::Queues;
use super::scheduler::{Discipline, Scheduler, each_scheduler};
use super::state::{ColdState, HotState};
use super::{
    ConfigError, DropReason, Forward, MAX_QUEUES, Offer, Pool, PortConfig, QueueCounters, QueueSet,
    TokenBucket, Transmit,
};
use crate::packet::Packet;
use crate::units::{Bytes, Rate, Time};

/// A port with classifier, buffer, marker, queues, scheduler and shaper.
#[derive(Debug)]
#[repr(C)]
pub(super) struct QueueingPort<P> {
    hot: HotState<P>,
    marker: Marker,
    scheduler: Scheduler,
}

/// Hands a scheduler and a scheme to code of their own if they are a common pair.
macro_rules! common_pairs {
    ($scheduler:expr, $scheme:expr, ($s:ident, $m:ident) => $call:expr) => {
        match ($scheduler, $scheme) {
            (Scheduler::Strict($s), Scheme::None($m)) => $call,
            (Scheduler::Strict($s), Scheme::PerQueue($m)) => $call,
            (Scheduler::Wrr($s), Scheme::PerQueue($m)) => $call,
            (Scheduler::Wrr($s), Scheme::MqEcn($m)) => $call,
            (Scheduler::Wrr($s), Scheme::MlEcn($m)) => $call,
            (Scheduler::Wrr($s), Scheme::AEcn($m)) => $call,
            (Scheduler::Dwrr($s), Scheme::None($m)) => $call,
            (Scheduler::Dwrr($s), Scheme::PerQueue($m)) => $call,
            (Scheduler::Dwrr($s), Scheme::PerPort($m)) => $call,
            (Scheduler::Dwrr($s), Scheme::MqEcn($m)) => $call,
            (Scheduler::Dwrr($s), Scheme::MlEcn($m)) => $call,
            (Scheduler::Dwrr($s), Scheme::AEcn($m)) => $call,
            _ => {}
        }
    };
}

/// The ways through a port, each compiled apart for a scheduler and a marker: together they would
/// cost each other their registers.
mod alone {
    use super::{Discipline, Forward, HotState, Judge, Offer, Packet, Pool, Time};

    #[inline(never)]
    pub(super) fn offer<P: Packet>(
        hot: &mut HotState<P>,
        (scheduler, marker): (&mut impl Discipline, &mut impl Judge),
        now: Time,
        packet: P,
        pool: &mut Pool<P>,
    ) -> Offer {
        let arrival = hot.receive(now, &packet);
        match hot.admit(arrival, &packet, (scheduler, marker), pool) {
            Err(reason) => Offer::Dropped(reason),
            Ok(note) => {
                hot.enqueue(arrival, packet, note, scheduler, pool);
                Offer::Queued
            }
        }
    }

    #[inline(never)]
    pub(super) fn forward<P: Packet>(
        hot: &mut HotState<P>,
        parts: (&mut impl Discipline, &mut impl Judge),
        now: Time,
        packet: &mut P,
        pool: &mut Pool<P>,
    ) -> Forward {
        hot.forward(parts, now, packet, pool)
    }

    #[inline(never)]
    pub(super) fn run<'a, P: Packet + 'a>(
        hot: &mut HotState<P>,
        parts: (&mut impl Discipline, &mut impl Judge),
        due: &mut Time,
        arrivals: (impl Iterator<Item = (Time, &'a mut P)>, Time),
        pool: &mut Pool<P>,
        departed: impl FnMut(Time, &P),
    ) {
        hot.run(parts, due, arrivals, pool, departed);
    }
}

impl<P: Packet> QueueingPort<P> {
    pub(super) fn new(
        rate: Rate,
        config: &PortConfig,
        seed: u64,
        id: u64,
    ) -> Result<Self, ConfigError> {
        let count = config.queues;
        if count == 0 || count > MAX_QUEUES {
            return Err(ConfigError::QueueCount(count));
        }
        if rate.bps() == 0 {
            return Err(ConfigError::LinkRate);
        }
        if config.packet == Bytes::ZERO {
            return Err(ConfigError::Zero("packet"));
        }
        config.framing.check()?;
        let mut queues = Queues::new(count);
        let scheduler = Scheduler::new(&config.scheduler, &mut queues)?;
        let weights: Vec<u32> = (0..count).map(|queue| queues.quantum(queue)).collect();
        let context = PortContext {
            rate: config.shaper.map_or(rate, |shaper| shaper.rate.min(rate)),
            wire_ratio: config.wire_ratio(),
            packet: config.packet,
            weights: &weights,
            strict: config.scheduler.strict_queues(),
            sharing: scheduler.sharing(),
            classes: config.classifier.size_classes(),
            seed,
            port: id,
        };
        let marker = Marker::new(&config.marker, &context)?;
        for queue in 0..count {
            queues.lane(queue).constant = marker.queue_constant(queue, &context);
        }
        let needs = marker.needs();
        let is_unshaped = config.shaper.is_none()
            && !needs.dequeue
            && config.marker.measure.in_service == Presence::Excluded;
        let direct = is_unshaped && !needs.service;
        let meter = Meter::new(config.marker.measure, config.packet);
        let buffer = Buffer::new(&config.buffer, count, config.packet)?;
        let hot = HotState {
            queues,
            classifier: Classifier::new(&config.classifier, count)?,
            plain: is_unshaped && meter.is_plain() && buffer.is_own(),
            direct,
            buffer,
            link: Link::new(rate),
            paused: QueueSet::EMPTY,
            meter,
            not_ect: config.marker.not_ect,
            sizes: Sizes::new(config.framing, config.accounting),
            evicts: scheduler.evicts(),
            cold: Box::new(ColdState {
                shaper: config.shaper.map(TokenBucket::new).transpose()?,
                counters: vec![QueueCounters::default(); count],
                dropped: Vec::new(),
            }),
        };
        Ok(Self {
            hot,
            marker,
            scheduler,
        })
    }

    /// The same port as one that looks ahead, if it can.
    pub(super) fn look_ahead(&self) -> Option<LookAheadFifo<P>> {
        let hot = &self.hot;
        let fifo = self.scheduler.keeps_order(hot.queues.count());
        if !(fifo && hot.direct && hot.meter.is_plain()) {
            return None;
        }
        let (limit, full) = hot.buffer.own_limit()?;
        let rules = Rules {
            limit,
            full,
            marking: self.marker.arrival_rule()?,
            not_ect: hot.not_ect,
            sizes: hot.sizes,
        };
        Some(LookAheadFifo::new(hot.link.clock.clone(), rules))
    }

    /// See [`EgressPort::offer`](super::EgressPort::offer).
    #[inline]
    pub(super) fn offer(&mut self, now: Time, packet: P, pool: &mut Pool<P>) -> Offer {
        let Self {
            hot,
            marker,
            scheduler,
        } = self;
        each_scheduler!(scheduler, s => alone::offer(hot, (s, marker), now, packet, pool))
    }

    /// See [`EgressPort::forward`](super::EgressPort::forward).
    #[inline]
    pub(super) fn forward(&mut self, now: Time, packet: &mut P, pool: &mut Pool<P>) -> Forward {
        let Self {
            hot,
            marker,
            scheduler,
        } = self;
        if hot.direct {
            common_pairs!(&mut *scheduler, &mut marker.scheme, (s, m) => {
                return alone::forward(hot, (s, &mut Alone(m)), now, packet, pool);
            });
        }
        each_scheduler!(scheduler, s => alone::forward(hot, (s, marker), now, packet, pool))
    }

    /// See [`EgressPort::transmit`](super::EgressPort::transmit).
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Time, pool: &mut Pool<P>) -> Transmit<P> {
        let Self {
            hot,
            marker,
            scheduler,
        } = self;
        each_scheduler!(scheduler, s => hot.transmit((s, marker), now, pool))
    }

    /// See [`EgressPort::run`](super::EgressPort::run).
    #[inline]
    pub(super) fn run<'a>(
        &mut self,
        due: &mut Time,
        arrivals: impl Iterator<Item = (Time, &'a mut P)>,
        end: Time,
        pool: &mut Pool<P>,
        departed: impl FnMut(Time, &P),
    ) where
        P: 'a,
    {
        let Self {
            hot,
            marker,
            scheduler,
        } = self;
        if hot.plain && hot.paused.is_empty() && pool.is_unlimited() {
            common_pairs!(&mut *scheduler, &mut marker.scheme, (s, m) => {
                return plain::run(hot, (s, m), due, (arrivals, end), pool, departed);
            });
        }
        each_scheduler!(scheduler, s => {
            alone::run(hot, (s, marker), due, (arrivals, end), pool, departed);
        });
    }

    /// See [`EgressPort::pause`](super::EgressPort::pause).
    pub(super) fn pause(&mut self, queues: QueueSet) {
        let stopped = queues.difference(self.hot.paused);
        self.hot.paused = self.hot.paused.union(queues);
        for queue in stopped.intersection(self.hot.queues.backlogged()).iter() {
            self.scheduler.deactivate(queue, &mut self.hot.queues);
        }
    }

    /// See [`EgressPort::resume`](super::EgressPort::resume).
    pub(super) fn resume(&mut self, now: Time, queues: QueueSet) {
        let resumed = self.hot.paused.intersection(queues);
        self.hot.paused = self.hot.paused.difference(queues);
        for queue in resumed.intersection(self.hot.queues.backlogged()).iter() {
            self.scheduler.activate(now, queue, &mut self.hot.queues);
        }
    }

    /// See [`EgressPort::send_frame`](super::EgressPort::send_frame).
    pub(super) fn send_frame(&mut self, now: Time, size: u32) -> Time {
        let wire_size = self.hot.sizes.on_wire(size);
        let start = self.hot.link.busy_until.max(now);
        self.hot.link.occupy(start, wire_size)
    }

    /// See [`EgressPort::classify`](super::EgressPort::classify).
    pub(super) fn classify(&self, packet: &P) -> usize {
        self.hot.classifier.classify(packet)
    }

    #[inline]
    pub(super) fn has_evicted(&self) -> bool {
        self.hot.evicts && !self.hot.cold.dropped.is_empty()
    }

    #[inline]
    pub(super) fn has_dropped(&self) -> bool {
        !self.hot.cold.dropped.is_empty()
    }

    pub(super) fn dropped(&mut self) -> &mut Vec<(P, DropReason)> {
        &mut self.hot.cold.dropped
    }

    #[inline]
    pub(super) fn queues(&self) -> &Queues {
        &self.hot.queues
    }

    #[inline]
    pub(super) fn busy_until(&self) -> Time {
        self.hot.link.busy_until
    }

    pub(super) fn threshold(&self, queue: usize) -> Option<f64> {
        self.marker.threshold(queue, &self.hot.queues)
    }

    pub(super) fn counters(&self, queue: usize) -> &QueueCounters {
        &self.hot.cold.counters[queue]
    }
}
