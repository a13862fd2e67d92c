//! Which queue sends next.
//!
//! A scheduler is one file and one variant of [`SchedulerConfig`]. It sees queue heads, never
//! packets, and reports the end of a queue's service in a round to a [`RoundObserver`], which is
//! what MQ-ECN's estimate of T_round listens to.
//!
//! | scheduler | module | cost per packet |
//! |---|---|---|
//! | FIFO, strict priority | [`strict`] | constant |
//! | weighted round robin | [`wrr`] | constant |
//! | deficit weighted round robin | [`dwrr`] | constant |
//! | weighted fair queueing | [`wfq`] | linear in backlogged queues |
//! | strict priority over WRR or DWRR | [`strict_over`] | constant |
//! | pFabric | [`pfabric`] | linear in stored packets (its buffers hold two dozen) |

pub mod dwrr;
pub mod pfabric;
pub mod strict;
pub mod strict_over;
pub mod wfq;
pub mod wrr;

use serde::{Deserialize, Serialize};

use super::queues::{Queues, Store};
use super::{ConfigError, PerIndex, QueueSet};
use crate::packet::Packet;
use crate::units::{Bytes, Time};
pub use dwrr::Dwrr;
pub use strict::StrictPriority;
pub use strict_over::StrictOver;
pub use wfq::Wfq;
pub use wrr::Wrr;

/// Half of what a deficit counter can hold.
const MAX_QUANTUM: u32 = u32::MAX / 2;

/// Hears when a queue has finished its service in a round.
pub trait RoundObserver {
    /// Queue `queue` was served once around in `sample`: T_sample of MQ-ECN §3.3.1.
    fn round_ended(&mut self, now: Time, queue: usize, sample: Time);
}

/// One packet leaving its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    pub(crate) queue: usize,
    pub(crate) size: u32,
    pub(crate) now: Time,
    /// When the last bit will be on the wire.
    pub(crate) finish: Time,
    /// Whether the queue has no packet left.
    pub(crate) emptied: bool,
}

/// What a scheduler does; the port drives it in this order.
///
/// [`select`](Self::select) may be asked again before the choice is sent (a shaper can make it
/// wait), so it must give the same answer until something changes.
pub(crate) trait Discipline {
    /// `queue` became ready to send: its first packet arrived, or it was resumed.
    fn activate(&mut self, _now: Time, _queue: usize, _queues: &mut Queues) {}

    /// `queue` is not ready any more although it has packets: it was paused.
    fn deactivate(&mut self, _queue: usize, _queues: &mut Queues) {}

    /// The queue to serve now, one of `ready`, which are those activated and not empty.
    fn select<P: Packet>(
        &mut self,
        now: Time,
        ready: QueueSet,
        queues: (&mut Queues, &mut Store<P>),
        rounds: &mut impl RoundObserver,
    ) -> Option<usize>;

    /// The head of the selected queue was taken.
    fn sent(&mut self, _service: Service, _queues: &mut Queues, _rounds: &mut impl RoundObserver) {}

    /// Whether serving a packet of `size` in an otherwise empty port is one service and no more.
    fn passes(&self, _queue: usize, _size: u32, _queues: &Queues) -> bool {
        true
    }

    /// A packet went through the empty port: does what `activate`, `select` and `sent` would have
    /// done for it together.
    fn passed(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver);
}

/// A scheduler and its parameters, as written in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SchedulerConfig {
    /// One queue, first come first served.
    Fifo,
    /// Queue 0 first, then queue 1, and so on.
    Strict,
    /// Weighted round robin: up to `quantum` bytes a round, nothing carried over.
    Wrr {
        /// Bytes a round, for all queues or for each.
        quantum: PerIndex<Bytes>,
    },
    /// Deficit weighted round robin: what a round leaves unused is carried over.
    Dwrr {
        /// Bytes a round, for all queues or for each.
        quantum: PerIndex<Bytes>,
    },
    /// Weighted fair queueing by virtual time.
    Wfq {
        /// Weight of all queues or of each.
        weight: PerIndex<u32>,
    },
    /// The first queues by strict priority, the others below them by round robin (MQ-ECN §3.4).
    StrictOver {
        /// How many queues have strict priority.
        strict: usize,
        /// How the others share.
        rest: RoundRobinConfig,
        /// Bytes a round, for all queues or for each (those of strict queues are not used).
        quantum: PerIndex<Bytes>,
    },
    /// pFabric: the flow with the fewest bytes left first.
    Pfabric,
}

/// The round robin below strict priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundRobinConfig {
    /// See [`Wrr`].
    Wrr,
    /// See [`Dwrr`].
    Dwrr,
}

impl SchedulerConfig {
    /// Quantum or weight of each of `count` queues; 1 where the scheduler knows no weights.
    pub fn weights(&self, count: usize) -> Result<Vec<u32>, ConfigError> {
        let bytes = |quantum: &PerIndex<Bytes>| -> Result<Vec<u32>, ConfigError> {
            quantum
                .each("quantum", count)?
                .into_iter()
                .map(|q| match u32::try_from(q.get()) {
                    Ok(quantum) if quantum <= MAX_QUANTUM => Ok(quantum),
                    _ => Err(ConfigError::TooLarge(
                        "quantum",
                        Bytes::new(MAX_QUANTUM.into()),
                    )),
                })
                .collect()
        };
        let weights = match self {
            Self::Fifo | Self::Strict | Self::Pfabric => vec![1; count],
            Self::Wfq { weight } => weight.each("weight", count)?,
            Self::Wrr { quantum } | Self::Dwrr { quantum } | Self::StrictOver { quantum, .. } => {
                bytes(quantum)?
            }
        };
        if weights.contains(&0) {
            return Err(ConfigError::Zero("a quantum or weight"));
        }
        Ok(weights)
    }

    /// The queues that are served before any round robin begins.
    pub fn strict_queues(&self) -> QueueSet {
        match self {
            Self::Strict => QueueSet::ALL,
            Self::StrictOver { strict, .. } => QueueSet::first(*strict),
            _ => QueueSet::EMPTY,
        }
    }
}

/// A running scheduler. With a tag of its own: one hidden in a field would have to be decoded at
/// every dispatch.
#[derive(Clone, Debug)]
#[repr(u8)]
pub(crate) enum Scheduler {
    Strict(StrictPriority),
    Wrr(Wrr),
    Dwrr(Dwrr),
    Wfq(Wfq),
    StrictOverWrr(StrictOver<Wrr>),
    StrictOverDwrr(StrictOver<Dwrr>),
    Pfabric(pfabric::Pfabric),
}

/// Hands a call to whichever scheduler is running, without a virtual call on the packet path.
macro_rules! each_scheduler {
    ($self:ident, $scheduler:ident => $call:expr) => {
        match $self {
            $crate::port::scheduler::Scheduler::Strict($scheduler) => $call,
            $crate::port::scheduler::Scheduler::Wrr($scheduler) => $call,
            $crate::port::scheduler::Scheduler::Dwrr($scheduler) => $call,
            $crate::port::scheduler::Scheduler::Wfq($scheduler) => $call,
            $crate::port::scheduler::Scheduler::StrictOverWrr($scheduler) => $call,
            $crate::port::scheduler::Scheduler::StrictOverDwrr($scheduler) => $call,
            $crate::port::scheduler::Scheduler::Pfabric($scheduler) => $call,
        }
    };
}
pub(crate) use each_scheduler;

impl Scheduler {
    /// See [`Discipline::activate`].
    #[inline]
    pub(crate) fn activate(&mut self, now: Time, queue: usize, queues: &mut Queues) {
        each_scheduler!(self, s => s.activate(now, queue, queues));
    }

    /// See [`Discipline::passes`].
    #[inline]
    pub(crate) fn passes(&self, queue: usize, size: u32, queues: &Queues) -> bool {
        each_scheduler!(self, s => s.passes(queue, size, queues))
    }

    /// See [`Discipline::deactivate`].
    pub(crate) fn deactivate(&mut self, queue: usize, queues: &mut Queues) {
        each_scheduler!(self, s => s.deactivate(queue, queues));
    }

    /// A scheduler of these queues, which it tells their quanta.
    pub(crate) fn new(config: &SchedulerConfig, queues: &mut Queues) -> Result<Self, ConfigError> {
        let count = queues.count();
        let weights = config.weights(count)?;
        for (queue, &quantum) in weights.iter().enumerate() {
            queues.lane(queue).quantum = quantum;
        }
        let one_queue = |name| match count {
            1 => Ok(()),
            _ => Err(ConfigError::OneQueue { part: name, count }),
        };
        Ok(match config {
            SchedulerConfig::Fifo => {
                one_queue("fifo")?;
                Self::Strict(StrictPriority)
            }
            SchedulerConfig::Pfabric => {
                one_queue("pfabric")?;
                Self::Pfabric(pfabric::Pfabric)
            }
            SchedulerConfig::Strict => Self::Strict(StrictPriority),
            SchedulerConfig::Wrr { .. } => Self::Wrr(Wrr::default()),
            SchedulerConfig::Dwrr { .. } => Self::Dwrr(Dwrr::new(count)),
            SchedulerConfig::Wfq { .. } => Self::Wfq(Wfq::new(&weights)),
            SchedulerConfig::StrictOver { strict, rest, .. } => {
                if *strict == 0 || *strict >= count {
                    return Err(ConfigError::StrictCount {
                        strict: *strict,
                        count,
                    });
                }
                let above = config.strict_queues();
                match rest {
                    RoundRobinConfig::Wrr => {
                        Self::StrictOverWrr(StrictOver::new(above, Wrr::default()))
                    }
                    RoundRobinConfig::Dwrr => {
                        Self::StrictOverDwrr(StrictOver::new(above, Dwrr::new(count)))
                    }
                }
            }
        })
    }
}
