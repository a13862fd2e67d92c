//! Schedulers: the choice of the queue that sends next.
//!
//! A scheduler is one file and one variant of [`SchedulerConfig`], or it comes from another crate as
//! a [`Scheduling`]. It sees queue heads, never packets, and reports the end of a queue's service in a round to a [`RoundObserver`], which is
//! what MQ-ECN's estimate of T_round listens to.
//!
//! | scheduler | module | cost per packet |
//! |---|---|---|
//! | FIFO, strict priority | [`strict`] | constant |
//! | weighted round robin | [`wrr`] | constant |
//! | deficit weighted round robin | [`dwrr`] | constant |
//! | weighted fair queueing | [`wfq`] | linear in backlogged queues |
//! | strict priority over WRR or DWRR | [`strict_over`] | constant |
//! | pFabric | [`pfabric`] | linear in queued packets |

mod custom;
pub mod dwrr;
pub mod pfabric;
pub mod strict;
pub mod strict_over;
pub mod wfq;
pub mod wrr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::queues::{Backlog, Queues};
use super::{ConfigError, PerIndex, QueueSet};
use crate::packet::Packet;
use crate::registry::open::{self, OpenEnum};
use crate::registry::{Custom, MakeScheduler, Parameters};
use crate::units::{Bytes, Time};
use custom::CustomScheduler;
pub use custom::Scheduling;
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

/// A scheduler's sharing of a link among queues, for markers that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// By no weights.
    None,
    /// In rounds, in each of which a queue sends its quantum.
    Rounds,
    /// By weights, without rounds.
    Weights,
}

/// One packet leaving its queue.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The queue.
    pub queue: usize,
    /// Bytes that count for the packet.
    pub size: u32,
    /// Time at which it was taken.
    pub now: Time,
    /// Time at which the last bit will be on the wire.
    pub finish: Time,
    /// True if the queue has no packet left.
    pub emptied: bool,
}

/// A scheduler; the port calls it in this order.
///
/// [`select`](Self::select) may be asked again before the choice is sent (a shaper can make it
/// wait), so it must give the same answer until something changes.
pub(crate) trait Discipline {
    /// Sharing of the link.
    fn sharing(&self) -> Sharing {
        Sharing::None
    }

    /// Returns whether packets of `count` queues leave in the order in which they came.
    fn keeps_order(&self, _count: usize) -> bool {
        false
    }

    /// Returns whether it gives up queued packets where the buffer is full.
    fn evicts(&self) -> bool {
        false
    }

    /// Puts the packet to give up for an arriving one at the head of its queue, from where it is
    /// taken; false if there is none.
    fn give_up<P: Packet>(&mut self, _arriving: &P, _backlog: Backlog<'_, P>) -> bool {
        false
    }

    /// A packet was put into its queue, at `slot` of the store.
    #[inline(always)]
    fn stored<P: Packet>(&mut self, _packet: &P, _slot: u32) {}

    /// `queue` became ready to send: its first packet arrived, or it was resumed.
    fn activate(&mut self, _now: Time, _queue: usize, _queues: &mut Queues) {}

    /// `queue` is not ready any more although it has packets: it was paused.
    fn deactivate(&mut self, _queue: usize, _queues: &mut Queues) {}

    /// The queue to serve now, one of `ready`, which are those activated and not empty.
    fn select<P: Packet>(
        &mut self,
        now: Time,
        ready: QueueSet,
        backlog: Backlog<'_, P>,
        rounds: &mut impl RoundObserver,
    ) -> Option<usize>;

    /// The head of the selected queue was taken.
    fn sent(&mut self, _service: Service, _queues: &mut Queues, _rounds: &mut impl RoundObserver) {}

    /// Returns whether serving a packet of `size` in an otherwise empty port is one service and no more.
    fn passes(&self, _queue: usize, _size: u32, _queues: &Queues) -> bool {
        true
    }

    /// A packet went through the empty port: does what `activate`, `select` and `sent` would have
    /// done for it together.
    fn passed(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver);
}

/// A scheduler and its parameters, as written in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(!remote))]
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
        /// Number of queues with strict priority.
        strict: usize,
        /// Scheduler of the other queues.
        rest: RoundRobinConfig,
        /// Bytes a round, for all queues or for each (those of strict queues are not used).
        quantum: PerIndex<Bytes>,
    },
    /// pFabric: the flow with the fewest bytes left first.
    Pfabric,
    /// One queue in strict priority by DSCP; 0 and ACKs come first. A full buffer drops the latest
    /// packet of the lowest priority (QJUMP's published simulation).
    PushOut,
    /// A scheduler of another crate.
    #[serde(skip)]
    Custom(Custom<MakeScheduler>),
}

/// The round robin below strict priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RoundRobinConfig {
    /// See [`Wrr`].
    Wrr,
    /// See [`Dwrr`].
    Dwrr,
}

impl SchedulerConfig {
    /// The names of the schedulers in this crate.
    pub fn names() -> &'static [&'static str] {
        open::names::<Self>()
    }

    /// Each scheduler with parameters for a port of two queues or more (one for FIFO, pFabric and
    /// push-out), as a value in TOML.
    pub const EXAMPLES: [(&str, &str); 8] = [
        ("fifo", r#""fifo""#),
        ("strict", r#""strict""#),
        ("wrr", r#"{ wrr = { quantum = "1500B" } }"#),
        ("dwrr", r#"{ dwrr = { quantum = "1500B" } }"#),
        ("wfq", "{ wfq = { weight = 1 } }"),
        (
            "strict-over",
            r#"{ strict-over = { strict = 1, rest = "dwrr", quantum = "1500B" } }"#,
        ),
        ("pfabric", r#""pfabric""#),
        ("push-out", r#""push-out""#),
    ];

    /// Quantum or weight of each of `count` queues; 1 where the scheduler knows no weights.
    fn weights(&self, count: usize) -> Result<Vec<u32>, ConfigError> {
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
        let (name, weights) = match self {
            Self::Fifo | Self::Strict | Self::Pfabric | Self::PushOut | Self::Custom(_) => {
                return Ok(vec![1; count]);
            }
            Self::Wfq { weight } => ("weight", weight.each("weight", count)?),
            Self::Wrr { quantum } | Self::Dwrr { quantum } | Self::StrictOver { quantum, .. } => {
                ("quantum", bytes(quantum)?)
            }
        };
        if weights.contains(&0) {
            return Err(ConfigError::Zero(name));
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

impl<'de> OpenEnum<'de> for SchedulerConfig {
    const EXPECTED: &'static str = "the name of a scheduler or { name = { parameters } }";

    fn known<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }

    fn custom(name: String, parameters: Parameters) -> Self {
        Self::Custom(Custom::new(name, parameters))
    }
}

impl Serialize for SchedulerConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Custom(custom) => open::write(custom, serializer),
            known => Self::serialize(known, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SchedulerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        open::read(deserializer)
    }
}

/// A running scheduler. With a tag of its own: one hidden in a field would have to be decoded at
/// every dispatch.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Scheduler {
    Strict(StrictPriority),
    Wrr(Wrr),
    Dwrr(Dwrr),
    Wfq(Wfq),
    StrictOverWrr(StrictOver<Wrr>),
    StrictOverDwrr(StrictOver<Dwrr>),
    Pfabric(pfabric::Pfabric),
    Custom(CustomScheduler),
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
            $crate::port::scheduler::Scheduler::Custom($scheduler) => $call,
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

    /// See [`Discipline::deactivate`].
    pub(crate) fn deactivate(&mut self, queue: usize, queues: &mut Queues) {
        each_scheduler!(self, s => s.deactivate(queue, queues));
    }

    /// See [`Discipline::sharing`].
    pub(crate) fn sharing(&self) -> Sharing {
        each_scheduler!(self, s => s.sharing())
    }

    /// See [`Discipline::keeps_order`].
    pub(crate) fn keeps_order(&self, count: usize) -> bool {
        each_scheduler!(self, s => s.keeps_order(count))
    }

    /// See [`Discipline::evicts`].
    pub(crate) fn evicts(&self) -> bool {
        each_scheduler!(self, s => s.evicts())
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
                let urgency = pfabric::Urgency::Remaining;
                Self::Pfabric(pfabric::Pfabric::new(urgency))
            }
            SchedulerConfig::PushOut => {
                one_queue("push-out")?;
                let urgency = pfabric::Urgency::Level;
                Self::Pfabric(pfabric::Pfabric::new(urgency))
            }
            SchedulerConfig::Strict => Self::Strict(StrictPriority),
            SchedulerConfig::Wrr { .. } => Self::Wrr(Wrr::default()),
            SchedulerConfig::Dwrr { .. } => Self::Dwrr(Dwrr::new(count)),
            SchedulerConfig::Wfq { .. } => Self::Wfq(Wfq::new(&weights)),
            SchedulerConfig::Custom(custom) => {
                let Some(make) = &custom.maker else {
                    return Err(custom.unknown("scheduler", SchedulerConfig::names()).into());
                };
                let scheduler = make(&custom.parameters, count)?;
                for queue in 0..count {
                    queues.lane(queue).quantum = scheduler.weight(queue);
                }
                Self::Custom(CustomScheduler(scheduler))
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_example_of_every_scheduler() {
        let examples = SchedulerConfig::EXAMPLES.map(|(name, _)| name);
        assert_eq!(examples, SchedulerConfig::names());
    }
}
