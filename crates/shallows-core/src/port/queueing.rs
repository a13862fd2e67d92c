//! A port that keeps its packets in queues.

use std::hint;

use super::buffer::Buffer;
use super::classifier::Classifier;
use super::look_ahead::{LookAheadFifo, Rules};
use super::marker::{Marker, Needs, Note, PortContext, Presence};
use super::meter::Meter;
use super::queues::{Queues, Stored};
use super::scheduler::{Scheduler, each_scheduler};
use super::state::{Arrival, ColdState, HotState};
use super::{
    ConfigError, DropReason, Forward, MAX_QUEUES, Offer, Passage, Pool, PortConfig, QueueCounters,
    QueueSet, TokenBucket, Transmit,
};
use crate::packet::Packet;
use crate::units::{Bytes, Rate, Time, TransmissionClock};

/// A port with classifier, buffer, marker, queues, scheduler and shaper.
#[derive(Debug)]
#[repr(C)]
pub(super) struct QueueingPort<P> {
    hot: HotState<P>,
    scheduler: Scheduler,
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
            rate,
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
        let hot = HotState {
            queues,
            classifier: Classifier::new(&config.classifier, count)?,
            plain: config.shaper.is_none()
                && marker.needs() == Needs::default()
                && config.marker.measure.in_service == Presence::Excluded,
            marker,
            buffer: Buffer::new(&config.buffer, count, config.packet)?,
            link: TransmissionClock::new(rate),
            busy_until: Time::ZERO,
            idle_told: Time::ZERO,
            paused: QueueSet::EMPTY,
            meter: Meter::new(config.marker.measure, config.packet),
            not_ect: config.marker.not_ect,
            framing: config.framing,
            accounting: config.accounting,
            evicts: scheduler.evicts(),
            cold: Box::new(ColdState {
                shaper: config.shaper.map(TokenBucket::new).transpose()?,
                counters: vec![QueueCounters::default(); count],
                dropped: Vec::new(),
            }),
        };
        Ok(Self { hot, scheduler })
    }

    /// The same port as one that looks ahead, if it can.
    pub(super) fn look_ahead(&self) -> Option<LookAheadFifo<P>> {
        let hot = &self.hot;
        let fifo = self.scheduler.keeps_order(hot.queues.count());
        if !(fifo && hot.plain && hot.meter.is_plain()) {
            return None;
        }
        let (limit, full) = hot.buffer.own_limit()?;
        let rules = Rules {
            limit,
            full,
            marking: hot.marker.arrival_rule()?,
            not_ect: hot.not_ect,
            framing: hot.framing,
            accounting: hot.accounting,
        };
        Some(LookAheadFifo::new(hot.link.clone(), rules))
    }

    /// See [`EgressPort::offer`](super::EgressPort::offer).
    #[inline]
    pub(super) fn offer(&mut self, now: Time, packet: P, pool: &mut Pool<P>) -> Offer {
        let Self { hot, scheduler } = self;
        let arrival = hot.receive(now, &packet);
        match hot.admit(arrival, &packet, scheduler, pool) {
            Err(reason) => Offer::Dropped(reason),
            Ok(note) => {
                self.enqueue(arrival, packet, note, pool);
                Offer::Queued
            }
        }
    }

    /// See [`EgressPort::read_ahead`](super::EgressPort::read_ahead).
    #[inline]
    pub(super) fn read_ahead(&self, packet: &P) {
        let Arrival { queue, size, .. } = self.hot.receive(Time::ZERO, packet);
        hint::black_box(self.hot.queues.queue_bytes(queue));
        hint::black_box(self.scheduler.passes(queue, size, &self.hot.queues));
    }

    /// See [`EgressPort::forward`](super::EgressPort::forward).
    #[inline(never)]
    pub(super) fn forward(&mut self, now: Time, packet: &mut P, pool: &mut Pool<P>) -> Forward {
        let Self { hot, scheduler } = self;
        let silent = hot.queues.backlogged().is_empty() && now >= hot.busy_until;
        let arrival = hot.receive(now, packet);
        let note = match hot.admit(arrival, packet, scheduler, pool) {
            Ok(note) => note,
            Err(reason) => return Forward::Dropped(reason),
        };
        if silent && note == Note::Pass {
            let Arrival { queue, size, .. } = arrival;
            let unhindered = hot.plain && !hot.paused.contains(queue);
            if unhindered && scheduler.passes(queue, size, &hot.queues) {
                let wire_size = hot.framing.wire_size(packet.size());
                let finish = each_scheduler!(scheduler, s => hot.pass(s, arrival, wire_size));
                return Forward::Sent(Passage {
                    queue,
                    finish,
                    sojourn: Time::ZERO,
                });
            }
        }
        self.enqueue(arrival, *packet, note, pool);
        if silent {
            self.send_stored(now, packet, pool)
        } else {
            Forward::Queued
        }
    }

    /// The long way of [`forward`](Self::forward): the port was empty, so what it sends is the
    /// packet that has just come.
    #[inline(never)]
    fn send_stored(&mut self, now: Time, packet: &mut P, pool: &mut Pool<P>) -> Forward {
        match self.transmit(now, pool) {
            Transmit::Packet(departure) => {
                *packet = departure.packet;
                Forward::Sent(Passage {
                    queue: departure.queue,
                    finish: departure.finish,
                    sojourn: departure.sojourn,
                })
            }
            Transmit::Wait(_) | Transmit::Idle => Forward::Queued,
        }
    }

    /// See [`EgressPort::transmit`](super::EgressPort::transmit).
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Time, pool: &mut Pool<P>) -> Transmit<P> {
        let Self { hot, scheduler } = self;
        let ready = hot.queues.backlogged().difference(hot.paused);
        if ready.is_empty() {
            return Transmit::Idle;
        }
        if now < hot.busy_until {
            return Transmit::Wait(hot.busy_until);
        }
        each_scheduler!(scheduler, s => hot.serve(s, now, ready, pool))
    }

    #[inline(always)]
    fn enqueue(&mut self, arrival: Arrival, packet: P, note: Note, pool: &mut Pool<P>) {
        let Arrival { now, queue, size } = arrival;
        let stored = Stored {
            packet,
            arrived: now,
            size,
            noted: false,
        };
        let first = self.hot.queues.push(queue, stored, pool);
        if note != Note::Pass {
            self.hot.carry_out(note, queue, pool);
        }
        if first && !self.hot.paused.contains(queue) {
            self.scheduler.activate(now, queue, &mut self.hot.queues);
        }
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
        let wire_size = self.hot.framing.wire_size(size);
        let start = self.hot.busy_until.max(now);
        self.hot.occupy_link(start, wire_size)
    }

    /// See [`EgressPort::classify`](super::EgressPort::classify).
    pub(super) fn classify(&self, packet: &P) -> usize {
        self.hot.classifier.classify(packet)
    }

    #[inline]
    pub(super) fn has_evicted(&self) -> bool {
        self.hot.evicts && !self.hot.cold.dropped.is_empty()
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
        self.hot.busy_until
    }

    pub(super) fn threshold(&self, queue: usize) -> Option<f64> {
        self.hot.marker.threshold(queue, &self.hot.queues)
    }

    pub(super) fn counters(&self, queue: usize) -> &QueueCounters {
        &self.hot.cold.counters[queue]
    }
}
