//! A port that is slow and obviously right.
//!
//! It keeps packets in plain lists, adds up lengths whenever it needs one, follows each paper's text
//! line by line and counts with exact rationals.

use proptest::prelude::*;
use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::{DropReason, Offer, PortConfig};
use shallows_core::units::Time;

pub(crate) const QUEUES: usize = 4;
const QUANTA: [u32; QUEUES] = [1500, 3000, 1500, 2000];
const K: f64 = 9_000.0;
/// Capacity of the pool; small enough to matter.
pub(crate) const POOL: u64 = 40_000;
/// Picoseconds per byte at 10 Gbps.
const BYTE_TIME: u64 = 800;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scheduler {
    Strict,
    Wrr,
    Dwrr,
    Wfq,
    StrictOverDwrr,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Buffer {
    Shared,
    PerQueue,
    Dynamic,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Marker {
    PerQueue,
    Minimum,
    PerPort,
    PerPool,
    MqEcn,
    Pmsb,
    Tcn,
    EcnStar,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) scheduler: Scheduler,
    pub(crate) buffer: Buffer,
    pub(crate) marker: Marker,
    pub(crate) shaped: bool,
}

impl Setup {
    pub(crate) fn config(self) -> PortConfig {
        let quanta = r#"["1500B", "3000B", "1500B", "2000B"]"#;
        let scheduler = match self.scheduler {
            Scheduler::Strict => r#""strict""#.into(),
            Scheduler::Wrr => format!("{{ wrr = {{ quantum = {quanta} }} }}"),
            Scheduler::Dwrr => format!("{{ dwrr = {{ quantum = {quanta} }} }}"),
            // Shares 1/2, 1/4, 1/8 and 1/8 are exact in binary, so that ties are ties.
            Scheduler::Wfq => "{ wfq = { weight = [4, 2, 1, 1] } }".into(),
            Scheduler::StrictOverDwrr => format!(
                r#"{{ strict-over = {{ strict = 1, rest = "dwrr", quantum = {quanta} }} }}"#
            ),
        };
        let buffer = match self.buffer {
            Buffer::Shared => r#"{ shared = { size = "30KB" } }"#,
            Buffer::PerQueue => r#"{ per-queue = { limit = "12KB" } }"#,
            Buffer::Dynamic => "{ dynamic = { alpha = 0.5 } }",
        };
        let marker = match self.marker {
            Marker::PerQueue => r#"{ per-queue = { threshold = "9KB" } }"#,
            Marker::Minimum => r#"{ per-queue-minimum = { threshold = "9KB" } }"#,
            Marker::PerPort => r#"{ per-port = { threshold = "9KB" } }"#,
            Marker::PerPool => r#"{ per-pool = { threshold = "9KB" } }"#,
            Marker::MqEcn => r#"{ mq-ecn = { threshold = "9KB" } }"#,
            Marker::Pmsb => r#"{ pmsb = { port = "9KB", queue = "3KB" } }"#,
            Marker::Tcn => r#"{ tcn = { sojourn = "5us" } }"#,
            Marker::EcnStar => r#"{ ecn-star = { threshold = "9KB" } }"#,
        };
        let shaper = if self.shaped {
            r#"shaper = { rate = "8Gbps", bucket = "2KB" }"#
        } else {
            ""
        };
        toml::from_str(&format!(
            r"
            queues = {QUEUES}
            buffer = {buffer}
            scheduler = {scheduler}
            marker = {{ scheme = {marker} }}
            {shaper}
            "
        ))
        .expect("the test's configuration is sound")
    }

    /// Picoseconds a byte at C, which is the shaper's rate if there is one.
    fn byte_time(self) -> u64 {
        if self.shaped { 1_000 } else { BYTE_TIME }
    }

    /// Quantum or weight of a queue.
    fn weight(self, queue: usize) -> f64 {
        match self.scheduler {
            Scheduler::Strict => 1.0,
            Scheduler::Wfq => [4.0, 2.0, 1.0, 1.0][queue],
            _ => f64::from(QUANTA[queue]),
        }
    }
}

/// The reference.
pub(crate) struct Reference {
    setup: Setup,
    queues: [Vec<(Descriptor, Time)>; QUEUES],
    paused: [bool; QUEUES],
    pub(crate) busy_until: Time,
    /// Capacity of the pool.
    pub(crate) pool: u64,
    idle_since: Time,
    /// MQ-ECN: T_round in picoseconds, or w_sum.
    estimate: f64,
    start: [Time; QUEUES],
    /// DWRR's linked list.
    active: Vec<usize>,
    deficit: [u32; QUEUES],
    current: [bool; QUEUES],
    /// WRR's turn and counter.
    turn: usize,
    counter: Option<u32>,
    /// WFQ's tags, in eighths of a byte.
    virtual_time: u64,
    start_tag: [u64; QUEUES],
    /// The shaper's tokens in bits x 10^12, and when they were counted.
    tokens: i128,
    counted_at: Time,
}

impl Reference {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            setup,
            queues: Default::default(),
            paused: [false; QUEUES],
            busy_until: Time::ZERO,
            pool: POOL,
            idle_since: Time::ZERO,
            estimate: 0.0,
            start: [Time::ZERO; QUEUES],
            active: Vec::new(),
            deficit: [0; QUEUES],
            current: [false; QUEUES],
            turn: 0,
            counter: None,
            virtual_time: 0,
            start_tag: [0; QUEUES],
            tokens: 16_000_000_000_000_000,
            counted_at: Time::ZERO,
        }
    }

    pub(crate) fn bytes(&self, queue: usize) -> u64 {
        self.queues[queue]
            .iter()
            .map(|(p, _)| u64::from(p.size))
            .sum()
    }

    pub(crate) fn total(&self) -> u64 {
        (0..QUEUES).map(|queue| self.bytes(queue)).sum()
    }

    fn has_rounds(&self) -> bool {
        !matches!(self.setup.scheduler, Scheduler::Strict | Scheduler::Wfq)
    }

    pub(crate) fn threshold(&self, queue: usize) -> f64 {
        let own = if self.setup.scheduler == Scheduler::StrictOverDwrr && queue == 0 {
            return K;
        } else if self.has_rounds() {
            f64::from(QUANTA[queue]) * self.setup.byte_time() as f64
        } else {
            self.setup.weight(queue)
        };
        if self.estimate == 0.0 {
            return K;
        }
        K * (own / self.estimate).min(1.0)
    }

    fn sample(&mut self, sample: f64) {
        self.estimate = 0.75 * self.estimate + 0.25 * sample;
    }

    /// Returns whether a packet is marked when its queue, port and pool are this long with it.
    fn marks(&self, queue: usize, length: u64, port: u64, pool: u64) -> bool {
        let sum: f64 = (0..QUEUES).map(|q| self.setup.weight(q)).sum();
        match self.setup.marker {
            Marker::PerQueue | Marker::EcnStar => length as f64 > K,
            Marker::Minimum => length as f64 > K * self.setup.weight(queue) / sum,
            Marker::PerPort => port as f64 > K,
            Marker::PerPool => pool as f64 > K,
            Marker::MqEcn => length as f64 > self.threshold(queue),
            Marker::Pmsb => port as f64 > K && length > 3000,
            Marker::Tcn => false,
        }
    }

    /// `others` is what the rest of the switch holds of the pool.
    pub(crate) fn offer(&mut self, now: Time, mut packet: Descriptor, others: u64) -> Offer {
        let queue = usize::from(packet.dscp);
        let size = u64::from(packet.size);
        let total = self.total();
        if total == 0 && now > self.idle_since {
            let slots = (now - self.idle_since).ps() / (1500 * self.setup.byte_time());
            for _ in 0..slots.min(200) {
                self.estimate *= 0.75;
            }
            if slots > 0 && self.has_rounds() && self.estimate < 1000.0 {
                self.estimate = 0.0;
            }
            self.idle_since = now;
        }
        let length = self.bytes(queue) + size;
        let used = total + others;
        let free = self.pool - used;
        if size > free {
            return Offer::Dropped(DropReason::PoolFull);
        }
        match self.setup.buffer {
            Buffer::Shared if total + size > 30_000 => return Offer::Dropped(DropReason::PortFull),
            Buffer::PerQueue if length > 12_000 => return Offer::Dropped(DropReason::QueueFull),
            Buffer::Dynamic if 2 * length > free => {
                return Offer::Dropped(DropReason::DynamicThreshold);
            }
            _ => {}
        }
        let at_dequeue = matches!(self.setup.marker, Marker::EcnStar | Marker::Tcn);
        if !at_dequeue && self.marks(queue, length, total + size, used + size) {
            packet.ecn = Ecn::Ce;
        }
        let first = self.queues[queue].is_empty();
        self.queues[queue].push((packet, now));
        if first && !self.paused[queue] {
            self.activate(now, queue);
        }
        Offer::Queued
    }

    fn activate(&mut self, now: Time, queue: usize) {
        self.start[queue] = self.start[queue].max(now);
        self.deficit[queue] = 0;
        self.current[queue] = false;
        self.active.push(queue);
        self.start_tag[queue] = self.start_tag[queue].max(self.virtual_time);
    }

    pub(crate) fn pause(&mut self, queue: usize) {
        self.paused[queue] = true;
        self.active.retain(|&q| q != queue);
    }

    pub(crate) fn resume(&mut self, now: Time, queue: usize) {
        if self.paused[queue] && !self.queues[queue].is_empty() {
            self.activate(now, queue);
        }
        self.paused[queue] = false;
    }

    fn ready(&self, queue: usize) -> bool {
        !self.paused[queue] && !self.queues[queue].is_empty()
    }

    fn head(&self, queue: usize) -> u32 {
        self.queues[queue][0].0.size
    }

    /// Finish tag of a queue's head, in eighths of a byte: the sum of weights is eight.
    fn finish_tag(&self, queue: usize) -> u64 {
        let eighths = [16, 32, 64, 64][queue];
        self.start_tag[queue] + u64::from(self.head(queue)) * eighths
    }

    fn end_of_round(&mut self, queue: usize, at: Time) {
        let sample = (at - self.start[queue]).ps() as f64;
        self.sample(sample);
        self.start[queue] = at;
    }

    fn select(&mut self, now: Time) -> Option<usize> {
        let ready: Vec<_> = (0..QUEUES).filter(|&q| self.ready(q)).collect();
        let &first = ready.first()?;
        match self.setup.scheduler {
            Scheduler::Strict => Some(first),
            Scheduler::StrictOverDwrr if first == 0 => Some(0),
            Scheduler::Dwrr | Scheduler::StrictOverDwrr => loop {
                let strict = self.setup.scheduler == Scheduler::StrictOverDwrr;
                let position = self.active.iter().position(|&q| !strict || q != 0)?;
                let queue = self.active[position];
                if !self.current[queue] {
                    self.current[queue] = true;
                    self.deficit[queue] += QUANTA[queue];
                }
                if self.head(queue) <= self.deficit[queue] {
                    return Some(queue);
                }
                self.current[queue] = false;
                self.end_of_round(queue, now);
                self.active.remove(position);
                self.active.push(queue);
            },
            Scheduler::Wrr => loop {
                if self.ready(self.turn) {
                    let counter = *self.counter.get_or_insert(QUANTA[self.turn]);
                    if self.head(self.turn) <= counter {
                        return Some(self.turn);
                    }
                    self.end_of_round(self.turn, now);
                }
                self.counter = None;
                self.turn = (self.turn + 1) % QUEUES;
            },
            Scheduler::Wfq => {
                let earliest = ready.iter().map(|&q| self.start_tag[q]).min()?;
                self.virtual_time = self.virtual_time.max(earliest);
                let started = |&q: &usize| self.start_tag[q] <= self.virtual_time;
                let started: Vec<_> = ready.into_iter().filter(started).collect();
                started.into_iter().min_by_key(|&q| (self.finish_tag(q), q))
            }
        }
    }

    /// The next packet, its finish and whether there is one: `Err` is when to come back.
    pub(crate) fn transmit(
        &mut self,
        now: Time,
        others: u64,
    ) -> Result<Option<(Descriptor, Time)>, Time> {
        if !(0..QUEUES).any(|q| self.ready(q)) {
            return Ok(None);
        }
        if now < self.busy_until {
            return Err(self.busy_until);
        }
        let Some(queue) = self.select(now) else {
            return Ok(None);
        };
        let size = self.head(queue);
        if self.setup.shaped {
            let earned = i128::from((now - self.counted_at).ps()) * 8_000_000_000;
            self.tokens = (self.tokens + earned).min(16_000_000_000_000_000);
            self.counted_at = now;
            let missing = i128::from(size) * 8_000_000_000_000 - self.tokens;
            if missing > 0 {
                let wait = (missing as u64).div_ceil(8_000_000_000);
                return Err(now + Time::from_ps(wait));
            }
            self.tokens -= i128::from(size) * 8_000_000_000_000;
        }
        let length = self.bytes(queue);
        let (total, backlogged) = (self.total(), self.backlogged_weight());
        let finish_tag = self.finish_tag(queue);
        let (mut packet, arrived) = self.queues[queue].remove(0);
        let finish = now + Time::from_ps(u64::from(size) * BYTE_TIME);
        let marked = match self.setup.marker {
            Marker::EcnStar => self.marks(queue, length, total, total + others),
            Marker::Tcn => now - arrived > Time::from_us(5),
            _ => false,
        };
        if marked {
            packet.ecn = Ecn::Ce;
        }
        self.busy_until = finish;
        self.idle_since = finish;
        self.after(queue, size, finish, finish_tag);
        if !self.has_rounds() {
            self.sample(backlogged);
        }
        Ok(Some((packet, finish)))
    }

    fn backlogged_weight(&self) -> f64 {
        let busy = (0..QUEUES).filter(|&q| !self.queues[q].is_empty());
        busy.map(|q| self.setup.weight(q)).sum()
    }

    /// The scheduler's bookkeeping after a packet was taken.
    fn after(&mut self, queue: usize, size: u32, finish: Time, finish_tag: u64) {
        let emptied = self.queues[queue].is_empty();
        self.virtual_time += 8 * u64::from(size);
        self.start_tag[queue] = finish_tag;
        if emptied {
            self.active.retain(|&q| q != queue);
        }
        match self.setup.scheduler {
            Scheduler::Strict | Scheduler::Wfq => {}
            Scheduler::StrictOverDwrr if queue == 0 => {}
            Scheduler::Dwrr | Scheduler::StrictOverDwrr => {
                self.deficit[queue] -= size;
                if emptied {
                    self.end_of_round(queue, finish);
                }
            }
            Scheduler::Wrr => {
                self.counter = self.counter.map(|left| left - size);
                if emptied {
                    self.end_of_round(queue, finish);
                    self.counter = None;
                    self.turn = (self.turn + 1) % QUEUES;
                }
            }
        }
    }
}

pub(crate) fn setups() -> impl Strategy<Value = Setup> {
    let schedulers = prop::sample::select(vec![
        Scheduler::Strict,
        Scheduler::Wrr,
        Scheduler::Dwrr,
        Scheduler::Wfq,
        Scheduler::StrictOverDwrr,
    ]);
    let buffers = prop::sample::select(vec![Buffer::Shared, Buffer::PerQueue, Buffer::Dynamic]);
    let markers = prop::sample::select(vec![
        Marker::PerQueue,
        Marker::Minimum,
        Marker::PerPort,
        Marker::PerPool,
        Marker::MqEcn,
        Marker::Pmsb,
        Marker::Tcn,
        Marker::EcnStar,
    ]);
    (schedulers, buffers, markers, any::<bool>())
        .prop_map(|(scheduler, buffer, marker, shaped)| Setup {
            scheduler,
            buffer,
            marker,
            shaped,
        })
        .prop_filter("mq-ecn needs shares", |setup| {
            setup.marker != Marker::MqEcn || setup.scheduler != Scheduler::Strict
        })
}
