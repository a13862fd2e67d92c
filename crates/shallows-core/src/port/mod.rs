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
mod timetable;

pub use buffer::{BufferConfig, Pool};
pub use classifier::{ClassifierConfig, SizeClass, SizeClasses};
pub use config::{Accounting, ConfigError, PortConfig};
pub use counters::{DropReason, MarkReason, QueueCounters};
pub use framing::Framing;
pub use marker::{MarkPoint, MarkerConfig, Measure, SchemeConfig};
pub use notation::PerIndex;
pub use queue_set::{MAX_QUEUES, QueueSet};
pub use scheduler::{RoundObserver, SchedulerConfig};
pub use shaper::{ShaperConfig, TokenBucket};

use std::hint;

use crate::packet::{Ecn, Packet};
use crate::tally::Tally;
use crate::units::{Bytes, Rate, Time, TransmissionClock};
use buffer::Buffer;
use classifier::Classifier;
use marker::{Marker, NotEct, Note, Presence, Setting};
use meter::Meter;
use queues::{Queues, Stored};
use scheduler::{Discipline, Scheduler, Service, each_scheduler, pfabric};
use timetable::{Rules, Timetable};

/// What became of an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It waits in a queue.
    Queued,
    /// It was dropped, and is among [`EgressPort::take_dropped`].
    Dropped(DropReason),
}

/// The answer to [`EgressPort::forward`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Its transmission starts now, or [later](EgressPort::look_ahead) at a time that is certain.
    Sent(Passage),
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

/// How a packet goes on that stays with the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The queue it passed.
    pub queue: usize,
    /// When its last bit is on the wire.
    pub finish: Time,
    /// How long it waits, from its offer to the start of its transmission.
    pub sojourn: Time,
}

/// An egress port. See the [module](self) for how to drive it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct EgressPort<P> {
    ahead: Ahead,
    rest: Rest<P>,
    scheduler: Scheduler,
}

/// Whether departures are told ahead. Like a scheduler's, its tag is not hidden in a field: other
/// ports need no more of it than that.
#[derive(Clone, Debug)]
#[repr(u8)]
enum Ahead {
    No,
    Yes(Timetable),
}

/// All of a port but its scheduler, so that sending a packet can be compiled for each scheduler
/// and takes one dispatch.
///
/// In this order, so that what every packet touches lies in neighbouring cache lines; what few
/// touch is in boxes.
#[derive(Clone, Debug)]
#[repr(C)]
struct Rest<P> {
    /// When the link is free again.
    busy_until: Time,
    /// Up to when idle time has been told to the marker.
    idle_told: Time,
    queues: Queues,
    paused: QueueSet,
    meter: Meter,
    accounting: Accounting,
    /// Whether nothing shapes packets and nothing looks at them as they leave.
    plain: bool,
    /// Whether a full buffer gives up packets in store.
    evicts: bool,
    not_ect: NotEct,
    framing: Framing,
    link: TransmissionClock,
    buffer: Buffer,
    marker: Marker,
    aside: Box<Aside<P>>,
    classifier: Classifier,
}

/// What few packets have to do with.
#[derive(Clone, Debug)]
struct Aside<P> {
    shaper: Option<TokenBucket>,
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
        config.framing.check()?;
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
        let marker = Marker::new(&config.marker, &setting)?;
        let mut queues = Queues::new(count);
        for queue in 0..count {
            queues.lane(queue).own = setting.own(queue);
        }
        let scheduler = Scheduler::new(&config.scheduler, &mut queues)?;
        let rest = Rest {
            queues,
            classifier: Classifier::new(&config.classifier, count)?,
            plain: config.shaper.is_none()
                && !marker.decides_at_dequeue()
                && !marker.follows_service()
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
            evicts: config.scheduler == SchedulerConfig::Pfabric,
            aside: Box::new(Aside {
                shaper: config.shaper.map(TokenBucket::new).transpose()?,
                counters: vec![QueueCounters::default(); count],
                dropped: Vec::new(),
            }),
        };
        Ok(Self {
            rest,
            scheduler,
            ahead: Ahead::No,
        })
    }

    /// Hands the port a packet at `now`. `pool` is the memory that the ports of its switch share.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: P, pool: &mut Pool<P>) -> Offer {
        let (queue, size) = self.rest.receive(&packet);
        match self.rest.admit((now, queue, size), &packet, pool) {
            Err(reason) => Offer::Dropped(reason),
            Ok(note) => {
                self.enqueue((now, queue, size), packet, note, pool);
                Offer::Queued
            }
        }
    }

    /// Lets [`forward`](Self::forward) send every packet at once, with the time of its departure
    /// in the future where it has to wait, if the port is such that nothing can change that time: a
    /// FIFO without shaper whose buffer has a limit of its own and whose marker, if any, compares
    /// its length on arrival. The driver must then only use `forward`, must not pause the port, and
    /// must call [`settle`](Self::settle) before it asks for lengths. Nothing but the sequence of
    /// calls changes.
    pub fn look_ahead(&mut self) {
        let rest = &self.rest;
        let fifo = matches!(self.scheduler, Scheduler::Strict(_)) && rest.queues.count() == 1;
        if fifo
            && rest.plain
            && rest.meter.is_plain()
            && let Some((limit, full)) = rest.buffer.own_limit()
            && let Some((threshold, congested)) = rest.marker.arrival_threshold()
        {
            let rules = Rules {
                limit,
                full,
                threshold,
                congested,
                not_ect: rest.not_ect,
                framing: rest.framing,
                accounting: rest.accounting,
            };
            self.ahead = Ahead::Yes(Timetable::new(rest.link.clone(), rules));
        }
    }

    /// Brings the lengths of a port that looks ahead up to `now`.
    pub fn settle(&mut self, now: Time) {
        if let Ahead::Yes(timetable) = &mut self.ahead {
            timetable.settle(now);
        }
    }

    /// Reads what a packet will need when it is handed to the port, so that it is in the cache by
    /// then. Nothing else comes of it.
    #[inline]
    pub fn read_ahead(&self, packet: &P) {
        match &self.ahead {
            Ahead::Yes(timetable) => timetable.read_ahead(),
            Ahead::No => {
                let (queue, size) = self.rest.receive(packet);
                hint::black_box(self.rest.queues.queue_bytes(queue));
                hint::black_box(self.scheduler.passes(queue, size, &self.rest.queues));
            }
        }
    }

    /// Hands the port a packet at `now` and, if it was empty and its link is free, sends it at
    /// once: [`offer`](Self::offer) and then [`transmit`](Self::transmit), but the packet stays
    /// with the driver if it is sent, marked if it is to be, and is copied only if it has to wait.
    #[inline(always)]
    pub fn forward(&mut self, now: Time, packet: &mut P, pool: &mut Pool<P>) -> Forward {
        let Ahead::Yes(timetable) = &mut self.ahead else {
            return self.forward_now(now, packet, pool);
        };
        match timetable.admit(now, packet) {
            Ok(entry) => {
                if entry.congested {
                    let reason = timetable.reason();
                    mark(packet, &mut self.rest.aside.counters[0], reason);
                }
                Forward::Sent(Passage {
                    queue: 0,
                    finish: entry.finish,
                    sojourn: entry.start - now,
                })
            }
            Err(reason) => self.drop_ahead(*packet, reason),
        }
    }

    /// Drops a packet of a port that looks ahead.
    #[cold]
    fn drop_ahead(&mut self, packet: P, reason: DropReason) -> Forward {
        let (_, size) = self.rest.receive(&packet);
        Forward::Dropped(self.rest.drop(0, packet, size, reason))
    }

    /// [`forward`](Self::forward) of a port that does not look ahead.
    #[inline(never)]
    fn forward_now(&mut self, now: Time, packet: &mut P, pool: &mut Pool<P>) -> Forward {
        let silent = self.rest.queues.backlogged().is_empty() && now >= self.rest.busy_until;
        let (queue, size) = self.rest.receive(packet);
        let note = match self.rest.admit((now, queue, size), packet, pool) {
            Ok(note) => note,
            Err(reason) => return Forward::Dropped(reason),
        };
        if silent && note == Note::Pass {
            let Self {
                scheduler, rest, ..
            } = self;
            let unhindered = rest.plain && !rest.paused.contains(queue);
            if unhindered && scheduler.passes(queue, size, &rest.queues) {
                let wire_size = rest.framing.wire_size(packet.size());
                let finish = each_scheduler!(
                    scheduler,
                    s => rest.pass(s, (now, queue, size), wire_size)
                );
                return Forward::Sent(Passage {
                    queue,
                    finish,
                    sojourn: Time::ZERO,
                });
            }
        }
        self.enqueue((now, queue, size), *packet, note, pool);
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

    /// The next packet to send at `now`, or when to ask again.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, pool: &mut Pool<P>) -> Transmit<P> {
        let Self {
            scheduler, rest, ..
        } = self;
        let ready = rest.queues.backlogged().difference(rest.paused);
        if ready.is_empty() {
            return Transmit::Idle;
        }
        if now < rest.busy_until {
            return Transmit::Wait(rest.busy_until);
        }
        each_scheduler!(scheduler, s => rest.serve(s, now, ready, pool))
    }

    #[inline(always)]
    fn enqueue(
        &mut self,
        (now, queue, size): (Time, usize, u32),
        packet: P,
        note: Note,
        pool: &mut Pool<P>,
    ) {
        let stored = Stored {
            packet,
            arrived: now,
            size,
            noted: false,
        };
        let first = self.rest.queues.push(queue, stored, pool);
        if note != Note::Pass {
            self.rest.carry_out(note, queue, pool);
        }
        if first && !self.rest.paused.contains(queue) {
            self.scheduler.activate(now, queue, &mut self.rest.queues);
        }
    }

    /// Stops these queues: an 802.3x pause names [`QueueSet::ALL`], an 802.1Qbb one the queues of
    /// its priorities. A packet that is being transmitted is finished.
    pub fn pause(&mut self, queues: QueueSet) {
        let stopped = queues.difference(self.rest.paused);
        self.rest.paused = self.rest.paused.union(queues);
        for queue in stopped.intersection(self.rest.queues.backlogged()).iter() {
            self.scheduler.deactivate(queue, &mut self.rest.queues);
        }
    }

    /// Lets these queues go on.
    pub fn resume(&mut self, now: Time, queues: QueueSet) {
        let resumed = self.rest.paused.intersection(queues);
        self.rest.paused = self.rest.paused.difference(queues);
        for queue in resumed.intersection(self.rest.queues.backlogged()).iter() {
            self.scheduler.activate(now, queue, &mut self.rest.queues);
        }
    }

    /// Whether packets in store were given up for one that was queued, and are to be
    /// [taken](Self::take_dropped).
    #[inline]
    pub fn has_evicted(&self) -> bool {
        self.rest.evicts && !self.rest.aside.dropped.is_empty()
    }

    /// Takes the packets dropped since the last call, with their reasons.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (P, DropReason)> + '_ {
        self.rest.aside.dropped.drain(..)
    }

    /// Number of queues.
    pub fn queue_count(&self) -> usize {
        self.rest.queues.count()
    }

    /// Bytes in store in one queue.
    #[inline]
    pub fn queue_bytes(&self, queue: usize) -> Bytes {
        if let Ahead::Yes(timetable) = &self.ahead {
            return Bytes::new(timetable.bytes);
        }
        Bytes::new(self.rest.queues.queue_bytes(queue))
    }

    /// Packets in store in one queue.
    #[inline]
    pub fn queue_packets(&self, queue: usize) -> u32 {
        if let Ahead::Yes(timetable) = &self.ahead {
            return timetable.packets();
        }
        self.rest.queues.queue_packets(queue)
    }

    /// Bytes in store.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        if let Ahead::Yes(timetable) = &self.ahead {
            return Bytes::new(timetable.bytes);
        }
        Bytes::new(self.rest.queues.bytes())
    }

    /// Packets in store.
    pub fn packets(&self) -> u32 {
        if let Ahead::Yes(timetable) = &self.ahead {
            return timetable.packets();
        }
        self.rest.queues.packets()
    }

    /// When the link is free again.
    #[inline]
    pub fn busy_until(&self) -> Time {
        match &self.ahead {
            Ahead::Yes(timetable) => timetable.busy_until,
            Ahead::No => self.rest.busy_until,
        }
    }

    /// The length in bytes above which packets of a queue are marked now, if the marker has one.
    pub fn threshold(&self, queue: usize) -> Option<f64> {
        self.rest.marker.threshold(queue)
    }

    /// Packets that a queue has accepted.
    pub fn queued(&self, queue: usize) -> Tally {
        match &self.ahead {
            Ahead::Yes(timetable) => timetable.accepted,
            Ahead::No => self.rest.queues.pushed(queue),
        }
    }

    /// What the port did to the packets of a queue.
    pub fn counters(&self, queue: usize) -> &QueueCounters {
        &self.rest.aside.counters[queue]
    }
}

impl<P: Packet> Rest<P> {
    /// The queue of a packet, and its size as it counts there.
    #[inline(always)]
    fn receive(&self, packet: &P) -> (usize, u32) {
        let size = match self.accounting {
            Accounting::Packet => packet.size(),
            Accounting::Wire => self.framing.wire_size(packet.size()),
        };
        (self.classifier.classify(packet), size)
    }

    /// Finds room for a packet and asks the marker about it; or drops it.
    #[inline(always)]
    fn admit(
        &mut self,
        (now, queue, size): (Time, usize, u32),
        packet: &P,
        pool: &mut Pool<P>,
    ) -> Result<Note, DropReason> {
        if self.queues.backlogged().is_empty() {
            self.end_idle_time(now);
        }
        if let Some(reason) = self.buffer.refusal(queue, size, &self.queues, pool)
            && !(self.evicts && self.make_room(queue, size, packet, pool))
        {
            return Err(self.drop(queue, *packet, size, reason));
        }
        let subject = (size, packet.dscp());
        let seen = || self.meter.seen(now, queue, subject, &self.queues, pool);
        let note = self.marker.at_enqueue(seen, &self.queues);
        if note != Note::Pass && self.drops_unmarkable(note, packet) {
            return Err(self.drop(queue, *packet, size, DropReason::NotEct));
        }
        Ok(note)
    }

    /// Sends an admitted packet through an empty port, past its queue; when it has left.
    #[inline]
    fn pass(
        &mut self,
        scheduler: &mut impl Discipline,
        (now, queue, size): (Time, usize, u32),
        wire_size: u32,
    ) -> Time {
        self.queues.count_pass(queue, size);
        let finish = self.occupy_link(now, wire_size);
        let service = Service {
            queue,
            size,
            now,
            finish,
            emptied: true,
        };
        scheduler.passed(service, &mut self.queues, &mut self.marker);
        finish
    }

    /// Starts a transmission; when its last bit is on the wire.
    #[inline]
    fn occupy_link(&mut self, now: Time, wire_size: u32) -> Time {
        if now > self.busy_until {
            self.link.restart();
        }
        self.busy_until = now + self.link.advance(Bytes::new(u64::from(wire_size)));
        self.busy_until
    }

    /// Sends what `scheduler` selects from `ready`, if the shaper lets it.
    #[inline(always)]
    fn serve(
        &mut self,
        scheduler: &mut impl Discipline,
        now: Time,
        ready: QueueSet,
        pool: &mut Pool<P>,
    ) -> Transmit<P> {
        let selected = scheduler.select(
            now,
            ready,
            (&mut self.queues, &mut pool.store),
            &mut self.marker,
        );
        let Some(queue) = selected else {
            return Transmit::Idle;
        };
        if !self.plain
            && let Some(at) = self.shaper_holds(now, queue, pool)
        {
            return Transmit::Wait(at);
        }
        let mut stored = self.queues.pop(queue, pool);
        let wire_size = self.framing.wire_size(stored.packet.size());
        let finish = self.occupy_link(now, wire_size);
        let service = Service {
            queue,
            size: stored.size,
            now,
            finish,
            emptied: !self.queues.backlogged().contains(queue),
        };
        if !self.plain {
            self.look_at_leaving(service, &mut stored, pool);
        }
        scheduler.sent(service, &mut self.queues, &mut self.marker);
        Transmit::Packet(Departure {
            packet: stored.packet,
            queue,
            finish,
            sojourn: now - stored.arrived,
        })
    }

    /// Until when the shaper holds the head of `queue` back; takes its tokens if it does not.
    #[inline(never)]
    fn shaper_holds(&mut self, now: Time, queue: usize, pool: &Pool<P>) -> Option<Time> {
        let shaper = self.aside.shaper.as_mut()?;
        let head = self.queues.head(queue, pool)?;
        let wire_size = self.framing.wire_size(head.packet.size());
        let at = shaper.ready_at(now, wire_size);
        if at > now {
            return Some(at);
        }
        shaper.spend(now, wire_size);
        None
    }

    /// Lets marker and meter look at a packet that has just left its queue.
    #[inline(never)]
    fn look_at_leaving(&mut self, service: Service, leaving: &mut Stored<P>, pool: &Pool<P>) {
        let Service { now, queue, .. } = service;
        if self.marker.decides_at_dequeue() {
            let subject = (leaving.size, leaving.packet.dscp());
            let seen = self.meter.seen(now, queue, subject, &self.queues, pool);
            let sojourn = now - leaving.arrived;
            if let Some(reason) = self.marker.at_dequeue(seen, sojourn, leaving.noted) {
                mark(&mut leaving.packet, &mut self.aside.counters[queue], reason);
            }
        }
        self.meter.sent(queue, leaving.size, service.finish);
        self.marker.served(service, &self.queues);
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

    fn drops_unmarkable(&self, note: Note, packet: &P) -> bool {
        self.not_ect == NotEct::Drop && packet.ecn() == Ecn::NotEct && matches!(note, Note::Mark(_))
    }

    /// Does what the marker asked for when the last packet of `queue` was offered.
    #[inline(never)]
    fn carry_out(&mut self, note: Note, queue: usize, pool: &mut Pool<P>) {
        match note {
            Note::Pass => {}
            Note::Remember => self.queues.tail_mut(queue, pool).noted = true,
            Note::Mark(reason) => {
                let packet = &mut self.queues.tail_mut(queue, pool).packet;
                mark(packet, &mut self.aside.counters[queue], reason);
            }
            Note::MarkHead(at, reason) => {
                let at = usize::from(at);
                if let Some(head) = self.queues.head_mut(at, pool) {
                    mark(head, &mut self.aside.counters[at], reason);
                }
            }
        }
    }

    /// pFabric: gives up less urgent packets until a packet of `size` fits; false if they do not
    /// suffice.
    #[cold]
    fn make_room(&mut self, queue: usize, size: u32, arriving: &P, pool: &mut Pool<P>) -> bool {
        while self
            .buffer
            .refusal(queue, size, &self.queues, pool)
            .is_some()
        {
            let remaining = arriving.remaining();
            let Some(position) = pfabric::victim(&self.queues, &pool.store, remaining) else {
                return false;
            };
            let victim = self.queues.remove(queue, position, pool);
            self.drop(queue, victim.packet, victim.size, DropReason::Evicted);
        }
        true
    }

    #[cold]
    fn drop(&mut self, queue: usize, lost: P, size: u32, reason: DropReason) -> DropReason {
        self.aside.counters[queue].drop(reason, size);
        self.aside.dropped.push((lost, reason));
        reason
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
