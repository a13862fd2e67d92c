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

pub mod buffer;
pub mod classifier;
mod config;
mod counters;
pub mod framing;
pub mod marker;
mod meter;
mod notation;
pub mod pause;
mod queue_set;
mod queues;
pub mod scheduler;
pub mod shaper;

pub use buffer::{BufferConfig, Pool};
pub use classifier::{ClassifierConfig, SizeClass, SizeClasses};
pub use config::{Accounting, ConfigError, PortConfig};
pub use counters::{DropReason, MarkReason, QueueCounters};
pub use framing::Framing;
pub use marker::{MarkPoint, MarkerConfig, Measure, SchemeConfig};
pub use notation::PerQueue;
pub use queue_set::{MAX_QUEUES, QueueSet};
pub use scheduler::{RoundObserver, SchedulerConfig};
pub use shaper::{ShaperConfig, TokenBucket};

use crate::packet::{Ecn, Packet};
use crate::tally::Tally;
use crate::units::{Bytes, Rate, Time, TransmissionClock};
use buffer::Buffer;
use classifier::Classifier;
use marker::{Marker, NotEct, Note, Setting};
use meter::Meter;
use queues::{Queues, Stored};
use scheduler::{Discipline, Scheduler, Service, each_scheduler, pfabric};

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
    scheduler: Scheduler,
    rest: Rest<P>,
}

/// All of a port but its scheduler, so that sending a packet can be compiled for each scheduler
/// and takes one dispatch.
#[derive(Clone, Debug)]
struct Rest<P> {
    queues: Queues<P>,
    marker: Marker,
    classifier: Classifier,
    buffer: Buffer,
    shaper: Option<TokenBucket>,
    link: TransmissionClock,
    /// When the link is free again.
    busy_until: Time,
    /// Up to when idle time has been told to the marker.
    idle_told: Time,
    paused: QueueSet,
    meter: Meter,
    not_ect: NotEct,
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
        let rest = Rest {
            queues: Queues::new(count),
            classifier: Classifier::new(&config.classifier, count)?,
            marker: Marker::new(&config.marker, &setting)?,
            buffer: Buffer::new(&config.buffer, count, config.packet)?,
            shaper: config.shaper.map(TokenBucket::new).transpose()?,
            link: TransmissionClock::new(rate),
            busy_until: Time::ZERO,
            idle_told: Time::ZERO,
            paused: QueueSet::EMPTY,
            meter: Meter::new(config.marker.measure, config.packet),
            not_ect: config.marker.not_ect,
            framing: config.framing,
            accounting: config.accounting,
            evicts: config.scheduler == SchedulerConfig::Pfabric,
            counters: vec![QueueCounters::default(); count],
            dropped: Vec::new(),
        };
        Ok(Self {
            scheduler: Scheduler::new(&config.scheduler, count)?,
            rest,
        })
    }

    /// Hands the port a packet at `now`. `pool` is the memory that the ports of its switch share.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: P, pool: &mut Pool) -> Offer {
        let rest = &mut self.rest;
        let queue = rest.classifier.classify(&packet);
        let size = match rest.accounting {
            Accounting::Packet => packet.size(),
            Accounting::Wire => rest.framing.wire_size(packet.size()),
        };
        if rest.queues.backlogged().is_empty() {
            rest.end_idle_time(now);
        }
        if let Some(reason) = rest.buffer.refusal(queue, size, &rest.queues, pool)
            && !(rest.evicts && rest.make_room(queue, &packet, size, pool))
        {
            return rest.drop(queue, packet, size, reason);
        }
        let mut stored = Stored {
            packet,
            arrived: now,
            size,
            noted: false,
        };
        let seen = || rest.meter.seen(now, queue, &stored, &rest.queues, pool);
        let note = rest.marker.at_enqueue(seen, &rest.queues);
        if note != Note::Pass {
            if packet.ecn() == Ecn::NotEct && rest.drops_unmarkable(note) {
                return rest.drop(queue, packet, size, DropReason::NotEct);
            }
            rest.carry_out(note, queue, &mut stored);
        }
        pool.take(size);
        let first = rest.queues.push(queue, stored);
        if first && !rest.paused.contains(queue) {
            self.scheduler.activate(now, queue, &rest.queues);
        }
        Offer::Queued
    }

    /// The next packet to send at `now`, or when to ask again.
    #[inline]
    pub fn transmit(&mut self, now: Time, pool: &mut Pool) -> Transmit<P> {
        let Self { scheduler, rest } = self;
        let ready = rest.queues.backlogged().difference(rest.paused);
        if ready.is_empty() {
            return Transmit::Idle;
        }
        if now < rest.busy_until {
            return Transmit::Wait(rest.busy_until);
        }
        each_scheduler!(scheduler, s => rest.serve(s, now, ready, pool))
    }

    /// Stops these queues: an 802.3x pause names [`QueueSet::ALL`], an 802.1Qbb one the queues of
    /// its priorities. A packet that is being transmitted is finished.
    pub fn pause(&mut self, queues: QueueSet) {
        let stopped = queues.difference(self.rest.paused);
        self.rest.paused = self.rest.paused.union(queues);
        for queue in stopped.intersection(self.rest.queues.backlogged()).iter() {
            self.scheduler.deactivate(queue);
        }
    }

    /// Lets these queues go on.
    pub fn resume(&mut self, now: Time, queues: QueueSet) {
        let resumed = self.rest.paused.intersection(queues);
        self.rest.paused = self.rest.paused.difference(queues);
        for queue in resumed.intersection(self.rest.queues.backlogged()).iter() {
            self.scheduler.activate(now, queue, &self.rest.queues);
        }
    }

    /// Takes the packets dropped since the last call, with their reasons.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (P, DropReason)> + '_ {
        self.rest.dropped.drain(..)
    }

    /// Number of queues.
    pub fn queue_count(&self) -> usize {
        self.rest.queues.count()
    }

    /// Bytes in store in one queue.
    #[inline]
    pub fn queue_bytes(&self, queue: usize) -> Bytes {
        Bytes::new(self.rest.queues.queue_bytes(queue))
    }

    /// Packets in store in one queue.
    #[inline]
    pub fn queue_packets(&self, queue: usize) -> u32 {
        self.rest.queues.queue_packets(queue)
    }

    /// Bytes in store.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.rest.queues.bytes())
    }

    /// Packets in store.
    pub fn packets(&self) -> u32 {
        self.rest.queues.packets()
    }

    /// When the link is free again.
    #[inline]
    pub fn busy_until(&self) -> Time {
        self.rest.busy_until
    }

    /// The length in bytes above which packets of a queue are marked now, if the marker has one.
    pub fn threshold(&self, queue: usize) -> Option<f64> {
        self.rest.marker.threshold(queue)
    }

    /// Packets that a queue has accepted.
    pub fn queued(&self, queue: usize) -> Tally {
        self.rest.queues.pushed(queue)
    }

    /// What the port did to the packets of a queue.
    pub fn counters(&self, queue: usize) -> &QueueCounters {
        &self.rest.counters[queue]
    }
}

impl<P: Packet> Rest<P> {
    /// Sends what `scheduler` selects from `ready`, if the shaper lets it.
    #[inline]
    fn serve(
        &mut self,
        scheduler: &mut impl Discipline,
        now: Time,
        ready: QueueSet,
        pool: &mut Pool,
    ) -> Transmit<P> {
        let selected = scheduler.select(now, ready, &mut self.queues, &mut self.marker);
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
        Transmit::Packet(self.send(scheduler, now, queue, pool))
    }

    #[inline]
    fn send(
        &mut self,
        scheduler: &mut impl Discipline,
        now: Time,
        queue: usize,
        pool: &mut Pool,
    ) -> Departure<P> {
        let mut stored = self.queues.pop(queue);
        pool.release(stored.size);
        if self.marker.decides_at_dequeue() {
            self.mark_leaving(now, queue, &mut stored, pool);
        }
        if now > self.busy_until {
            self.link.restart();
        }
        let wire_size = self.framing.wire_size(stored.packet.size());
        let finish = now + self.link.advance(Bytes::new(u64::from(wire_size)));
        self.busy_until = finish;
        self.meter.sent(queue, stored.size, finish);
        let service = self.service(queue, stored.size, now, finish);
        scheduler.sent(service, &self.queues, &mut self.marker);
        if self.marker.follows_service() {
            self.report_service(queue, stored.size, now, finish);
        }
        Departure {
            packet: stored.packet,
            queue,
            finish,
            sojourn: now - stored.arrived,
        }
    }

    #[inline]
    fn service(&self, queue: usize, size: u32, now: Time, finish: Time) -> Service {
        Service {
            queue,
            size,
            now,
            finish,
            emptied: !self.queues.backlogged().contains(queue),
        }
    }

    /// Tells the marker that a packet has left `queue`.
    #[inline(never)]
    fn report_service(&mut self, queue: usize, size: u32, now: Time, finish: Time) {
        let service = self.service(queue, size, now, finish);
        self.marker.served(service, self.queues.queue_bytes(queue));
    }

    /// Asks the marker about a packet that has just left `queue`.
    #[inline(never)]
    fn mark_leaving(&mut self, now: Time, queue: usize, leaving: &mut Stored<P>, pool: &Pool) {
        let seen = self.meter.seen(now, queue, leaving, &self.queues, pool);
        let sojourn = now - leaving.arrived;
        if let Some(reason) = self.marker.at_dequeue(seen, sojourn, leaving.noted) {
            mark(&mut leaving.packet, &mut self.counters[queue], reason);
        }
    }

    /// Tells the marker how long the port has been empty and silent.
    #[inline]
    fn end_idle_time(&mut self, now: Time) {
        let since = self.busy_until.max(self.idle_told);
        if now > since {
            self.marker.idle_ended(now - since);
            self.idle_told = now;
        }
    }

    fn drops_unmarkable(&self, note: Note) -> bool {
        matches!(note, Note::Mark(_)) && self.not_ect == NotEct::Drop
    }

    /// Does what the marker asked for when `arriving` was offered to `queue`.
    #[inline(never)]
    fn carry_out(&mut self, note: Note, queue: usize, arriving: &mut Stored<P>) {
        match note {
            Note::Pass => {}
            Note::Remember => arriving.noted = true,
            Note::Mark(reason) => {
                mark(&mut arriving.packet, &mut self.counters[queue], reason);
            }
            Note::MarkHead(at, reason) => {
                // The head of an empty queue is the arriving packet.
                let head = self.queues.head_mut(at).unwrap_or(&mut arriving.packet);
                mark(head, &mut self.counters[at], reason);
            }
        }
    }

    /// pFabric: gives up less urgent packets until a packet of `size` fits; false if they do not
    /// suffice.
    #[cold]
    fn make_room(&mut self, queue: usize, packet: &P, size: u32, pool: &mut Pool) -> bool {
        while self
            .buffer
            .refusal(queue, size, &self.queues, pool)
            .is_some()
        {
            let Some(position) = pfabric::victim(&self.queues, packet.remaining()) else {
                return false;
            };
            let victim = self.queues.remove(queue, position);
            pool.release(victim.size);
            self.drop(queue, victim.packet, victim.size, DropReason::Evicted);
        }
        true
    }

    #[cold]
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
