//! The egress port: where packets wait, get marked and leave.
//!
//! ```text
//! offer -> classifier -> buffer -> marker -> queues -> scheduler -> shaper -> link -> transmit
//! ```
//!
//! [`EgressPort`] is one type that a simulator and a live switch both drive. It has no clock: the
//! driver says what time it is. Its parts are chosen by a [`PortConfig`].
//!
//! # Driving a port
//!
//! - [`offer`](EgressPort::offer) hands it a packet.
//! - [`transmit`](EgressPort::transmit) asks for the next one. The answer is a packet and when its
//!   last bit is on the wire, or a time to ask again, or that nothing is ready: then ask after the
//!   next offer or resume.
//!
//! Times must not run backwards. A simulator asks at the very times that the port gives; a live
//! switch that asks late gets the packet late, and the port counts its transmission from then on.
//!
//! ```
//! use shallows_core::packet::{Descriptor, Ecn};
//! use shallows_core::port::{EgressPort, Pool, PortConfig, Transmit};
//! use shallows_core::units::{Rate, Time};
//!
//! let config: PortConfig = toml::from_str(
//!     r#"
//!     buffer = { shared = { size = "300KB" } }
//!     scheduler = "fifo"
//!     marker = { scheme = { per-queue = { threshold = "1pkt" } } }
//!     "#,
//! )?;
//! let mut port = EgressPort::new(Rate::from_gbps(10), &config, 1, 0)?;
//! let mut pool = Pool::unlimited();
//! let packet = Descriptor { size: 1500, ecn: Ecn::Ect0, ..Descriptor::default() };
//! let start = Time::ZERO;
//! port.offer(start, packet, &mut pool);
//! port.offer(start, packet, &mut pool);
//!
//! let Transmit::Packet(first) = port.transmit(start, &mut pool) else { unreachable!() };
//! assert_eq!(first.packet.ecn, Ecn::Ect0);
//! assert_eq!(first.finish, Time::from_ns(1200));
//! // The link is busy, so the port says when to come back.
//! assert!(matches!(port.transmit(start, &mut pool), Transmit::Wait(at) if at == first.finish));
//! let Transmit::Packet(second) = port.transmit(first.finish, &mut pool) else { unreachable!() };
//! assert_eq!(second.packet.ecn, Ecn::Ce, "it made the queue longer than one packet");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer;
mod classifier;
mod config;
mod counters;
mod framing;
pub mod marker;
mod notation;
pub mod pause;
mod queue_set;
mod queues;
pub mod scheduler;
mod shaper;

pub use buffer::{BufferConfig, Pool};
pub use classifier::{ClassifierConfig, SizeClass, SizeClasses};
pub use config::{Accounting, ConfigError, PortConfig};
pub use counters::{DropReason, MarkReason, QueueCounters, Tally};
pub use framing::Framing;
pub use marker::{MarkPoint, MarkerConfig, Measure, SchemeConfig};
pub use notation::PerQueue;
pub use queue_set::{MAX_QUEUES, QueueSet};
pub use scheduler::{RoundObserver, SchedulerConfig};
pub use shaper::{ShaperConfig, TokenBucket};

use crate::packet::{Ecn, Packet};
use crate::units::{Bytes, Rate, Time, TransmissionClock};
use buffer::Buffer;
use classifier::Classifier;
use marker::{Marker, MeasureUnit, NotEct, Note, Presence, Seen, Setting};
use queues::{Queues, Stored};
use scheduler::{Discipline, Scheduler, Service, pfabric};

/// What became of an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It waits in a queue.
    Queued,
    /// It was dropped, and is among [`EgressPort::take_dropped`].
    Dropped(DropReason),
}

/// The answer to [`EgressPort::transmit`].
#[derive(Clone, Copy, Debug)]
pub enum Transmit<P> {
    /// Send this.
    Packet(Departure<P>),
    /// Nothing may go before this time: the link or the shaper is not ready.
    Wait(Time),
    /// No queue has a packet that is not paused.
    Idle,
}

/// A packet on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Departure<P> {
    /// The packet, marked if it was to be.
    pub packet: P,
    /// The queue it left.
    pub queue: usize,
    /// When its last bit is on the wire, and the port can send again.
    pub finish: Time,
    /// How long it waited, from its offer to the start of its transmission.
    pub sojourn: Time,
}

/// An egress port. See the [module](self) for how to drive it.
#[derive(Clone, Debug)]
pub struct EgressPort<P> {
    queues: Queues<P>,
    scheduler: Scheduler,
    marker: Marker,
    classifier: Classifier,
    buffer: Buffer,
    shaper: Option<TokenBucket>,
    link: TransmissionClock,
    /// When the link is free again, and what occupies it until then.
    busy_until: Time,
    in_service: Service,
    /// Up to when idle time has been accounted for.
    idle_since: Time,
    paused: QueueSet,
    measure: Measure,
    not_ect: NotEct,
    packet: u64,
    framing: Framing,
    accounting: Accounting,
    /// Whether a full buffer gives up packets in store.
    evicts: bool,
    counters: Vec<QueueCounters>,
    dropped: Vec<(P, DropReason)>,
}

impl<P: Packet> EgressPort<P> {
    /// A port to a link of this rate. Its random stream is that of entity `id` in the run seeded
    /// `seed`.
    pub fn new(rate: Rate, config: &PortConfig, seed: u64, id: u64) -> Result<Self, ConfigError> {
        let count = config.queues;
        if count == 0 || count > MAX_QUEUES {
            return Err(ConfigError::QueueCount(count));
        }
        if rate.bps() == 0 {
            return Err(ConfigError::Zero("the rate of a link"));
        }
        if config.packet == Bytes::ZERO {
            return Err(ConfigError::Zero("the nominal packet"));
        }
        let rounds = matches!(
            config.scheduler,
            SchedulerConfig::Wrr { .. }
                | SchedulerConfig::Dwrr { .. }
                | SchedulerConfig::StrictOver { .. }
        );
        let shares = rounds || matches!(config.scheduler, SchedulerConfig::Wfq { .. });
        if !shares && matches!(config.marker.scheme, SchemeConfig::MqEcn(_)) {
            return Err(ConfigError::NeedsRounds);
        }
        let setting = Setting {
            rate,
            packet: config.packet,
            weights: &config.scheduler.weights(count)?,
            strict: config.scheduler.strict_queues(),
            rounds,
            classes: match &config.classifier {
                ClassifierConfig::SizeClass(classes) => Some(*classes),
                _ => None,
            },
            stream: (seed, id),
        };
        Ok(Self {
            queues: Queues::new(count),
            scheduler: Scheduler::new(&config.scheduler, count)?,
            classifier: Classifier::new(&config.classifier, count)?,
            marker: Marker::new(&config.marker, &setting)?,
            buffer: Buffer::new(&config.buffer, count, config.packet)?,
            shaper: config.shaper.map(TokenBucket::new).transpose()?,
            link: TransmissionClock::new(rate),
            busy_until: Time::ZERO,
            in_service: Service {
                queue: 0,
                size: 0,
                now: Time::ZERO,
                finish: Time::ZERO,
                emptied: true,
            },
            idle_since: Time::ZERO,
            paused: QueueSet::EMPTY,
            measure: config.marker.measure,
            not_ect: config.marker.not_ect,
            packet: config.packet.get(),
            framing: config.framing,
            accounting: config.accounting,
            evicts: config.scheduler == SchedulerConfig::Pfabric,
            counters: vec![QueueCounters::default(); count],
            dropped: Vec::new(),
        })
    }

    /// Hands the port a packet at `now`. `pool` is the memory that the ports of its switch share.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: P, pool: &mut Pool) -> Offer {
        let queue = self.classifier.classify(&packet);
        let size = match self.accounting {
            Accounting::Packet => packet.size(),
            Accounting::Wire => self.framing.wire_size(packet.size()),
        };
        if self.queues.packets() == 0 && now > self.idle_since {
            self.marker.idle_ended(now - self.idle_since);
            self.idle_since = now;
        }
        if let Some(reason) = self.refusal(queue, &packet, size, pool) {
            return self.drop(queue, packet, size, reason);
        }
        let mut stored = Stored {
            packet,
            arrived: now,
            size,
            noted: false,
        };
        let seen = self.seen(now, queue, &stored, pool);
        match self.marker.at_enqueue(&seen, &self.queues) {
            Note::Pass => {}
            Note::Remember => stored.noted = true,
            Note::Mark(reason) => {
                if packet.ecn() == Ecn::NotEct && self.not_ect == NotEct::Drop {
                    return self.drop(queue, packet, size, DropReason::NotEct);
                }
                mark(&mut stored.packet, &mut self.counters[queue], reason);
            }
            Note::MarkHead(at, reason) => {
                // The head of an empty queue is the arriving packet.
                let head = self.queues.head_mut(at).unwrap_or(&mut stored.packet);
                mark(head, &mut self.counters[at], reason);
            }
        }
        self.counters[queue].queued.add(size);
        pool.take(size);
        let first = !self.queues.backlogged().contains(queue);
        self.queues.push(queue, stored);
        if first && !self.paused.contains(queue) {
            self.scheduler.activate(now, queue, &self.queues);
        }
        Offer::Queued
    }

    /// The next packet to send at `now`, or when to ask again.
    #[inline]
    pub fn transmit(&mut self, now: Time, pool: &mut Pool) -> Transmit<P> {
        let ready = self.queues.backlogged().difference(self.paused);
        if ready.is_empty() {
            return Transmit::Idle;
        }
        if now < self.busy_until {
            return Transmit::Wait(self.busy_until);
        }
        let selected = self
            .scheduler
            .select(now, ready, &mut self.queues, &mut self.marker);
        let Some(queue) = selected else {
            return Transmit::Idle;
        };
        if let Some(shaper) = &mut self.shaper {
            let Some(head) = self.queues.head(queue) else {
                return Transmit::Idle;
            };
            let wire_size = self.framing.wire_size(head.packet.size());
            let at = shaper.ready_at(now, wire_size);
            if at > now {
                return Transmit::Wait(at);
            }
            shaper.spend(now, wire_size);
        }
        Transmit::Packet(self.send(now, queue, pool))
    }

    /// Stops these queues: an 802.3x pause names [`QueueSet::ALL`], an 802.1Qbb one the queues of
    /// its priorities. A packet that is being transmitted is finished.
    pub fn pause(&mut self, queues: QueueSet) {
        self.paused = self.paused.union(queues);
    }

    /// Lets these queues go on.
    pub fn resume(&mut self, now: Time, queues: QueueSet) {
        let resumed = self.paused.intersection(queues);
        self.paused = self.paused.difference(queues);
        for queue in resumed.intersection(self.queues.backlogged()).iter() {
            self.scheduler.activate(now, queue, &self.queues);
        }
    }

    /// Takes the packets dropped since the last call, with their reasons.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (P, DropReason)> + '_ {
        self.dropped.drain(..)
    }

    /// Number of queues.
    pub fn queue_count(&self) -> usize {
        self.queues.count()
    }

    /// Bytes in store in one queue.
    #[inline]
    pub fn queue_bytes(&self, queue: usize) -> Bytes {
        Bytes::new(self.queues.queue_bytes(queue))
    }

    /// Packets in store in one queue.
    #[inline]
    pub fn queue_packets(&self, queue: usize) -> u32 {
        self.queues.queue_packets(queue)
    }

    /// Bytes in store.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.queues.bytes())
    }

    /// Packets in store.
    #[inline]
    pub fn packets(&self) -> u32 {
        self.queues.packets()
    }

    /// When the link is free again.
    #[inline]
    pub fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// The length in bytes above which packets of a queue are marked now, if the marker has one.
    pub fn threshold(&self, queue: usize) -> Option<f64> {
        self.marker.threshold(queue)
    }

    /// What happened to the packets of a queue.
    pub fn counters(&self, queue: usize) -> &QueueCounters {
        &self.counters[queue]
    }

    #[inline]
    fn send(&mut self, now: Time, queue: usize, pool: &mut Pool) -> Departure<P> {
        let mut stored = self.queues.pop(queue);
        pool.release(stored.size);
        let sojourn = now - stored.arrived;
        let seen = self.seen(now, queue, &stored, pool);
        if let Some(reason) = self.marker.at_dequeue(&seen, sojourn, stored.noted) {
            mark(&mut stored.packet, &mut self.counters[queue], reason);
        }
        if now > self.busy_until {
            self.link.restart();
        }
        let wire_size = self.framing.wire_size(stored.packet.size());
        let finish = now + self.link.advance(Bytes::new(u64::from(wire_size)));
        self.busy_until = finish;
        self.idle_since = finish;
        let service = Service {
            queue,
            size: stored.size,
            now,
            finish,
            emptied: !self.queues.backlogged().contains(queue),
        };
        self.in_service = service;
        self.scheduler.sent(service, &self.queues, &mut self.marker);
        self.marker.served(&service, self.queues.queue_bytes(queue));
        Departure {
            packet: stored.packet,
            queue,
            finish,
            sojourn,
        }
    }

    /// What the marker is to see of a packet that is not, or no longer, in the queues.
    #[inline]
    fn seen(&self, now: Time, queue: usize, stored: &Stored<P>, pool: &Pool) -> Seen {
        let size = u64::from(stored.size);
        let queue_packets = self.queues.queue_packets(queue) + 1;
        let mut seen = Seen {
            now,
            queue,
            queue_length: self.queues.queue_bytes(queue) + size,
            port_length: self.queues.bytes() + size,
            pool_length: pool.used().get() + size,
            queue_packets,
            stage: stored.packet.dscp(),
        };
        if self.measure != Measure::default() {
            self.measure_otherwise(&mut seen, size);
        }
        seen
    }

    /// Applies a [`Measure`] other than bytes with the packet and without the one in service.
    fn measure_otherwise(&self, seen: &mut Seen, size: u64) {
        let in_packets = self.measure.unit == MeasureUnit::Packets;
        let worth = |bytes: u64| if in_packets { self.packet } else { bytes };
        if in_packets {
            seen.queue_length = u64::from(seen.queue_packets) * self.packet;
            seen.port_length = (u64::from(self.queues.packets()) + 1) * self.packet;
        }
        if self.measure.subject == Presence::Excluded {
            seen.queue_length -= worth(size);
            seen.port_length -= worth(size);
        }
        let busy = seen.now < self.busy_until;
        if self.measure.in_service == Presence::Included && busy {
            let occupied = worth(u64::from(self.in_service.size));
            seen.port_length += occupied;
            if self.in_service.queue == seen.queue {
                seen.queue_length += occupied;
            }
        }
    }

    #[inline]
    fn refusal(
        &mut self,
        queue: usize,
        packet: &P,
        size: u32,
        pool: &mut Pool,
    ) -> Option<DropReason> {
        let mut refusal = self.buffer.refusal(queue, size, &self.queues, pool);
        while refusal.is_some() && self.evicts {
            let Some(position) = pfabric::victim(&self.queues, packet.remaining()) else {
                break;
            };
            let victim = self.queues.remove(queue, position);
            pool.release(victim.size);
            self.drop(queue, victim.packet, victim.size, DropReason::Evicted);
            refusal = self.buffer.refusal(queue, size, &self.queues, pool);
        }
        refusal
    }

    fn drop(&mut self, queue: usize, packet: P, size: u32, reason: DropReason) -> Offer {
        self.counters[queue].drop(reason, size);
        self.dropped.push((packet, reason));
        Offer::Dropped(reason)
    }
}

/// Sets CE where the packet can carry it, and counts.
#[inline]
fn mark<P: Packet>(packet: &mut P, counters: &mut QueueCounters, reason: MarkReason) {
    match packet.ecn() {
        Ecn::NotEct => counters.unmarkable += 1,
        Ecn::Ect0 | Ecn::Ect1 => {
            packet.mark_ce();
            counters.mark(reason);
        }
        Ecn::Ce => {}
    }
}
