//! Which packets get a congestion mark.
//!
//! A marker is one file and one variant of [`SchemeConfig`]. It never touches a packet: it sees
//! queue lengths and answers, and the port sets CE, counts the reason, and deals with packets whose
//! transport does not understand ECN.
//!
//! Two choices that papers tend to leave in the code are parameters of every marker: the
//! [`MarkPoint`] and the [`Measure`], what counts as the length of a queue.
//!
//! | scheme | module | from |
//! |---|---|---|
//! | per-queue standard and minimum threshold, per-port, per-pool, ECN* | [`threshold`] | MQ-ECN §2 |
//! | MQ-ECN | [`mq_ecn`] | MQ-ECN §3, §4 |
//! | ML-ECN | [`ml_ecn`] | ML-ECN §III-B |
//! | RED and WRED | [`red`] | Floyd and Jacobson 1993 |
//! | TCN | [`tcn`] | ML-ECN §V |
//! | PMSB | [`pmsb`] | ML-ECN §V |
//! | CEDM | [`cedm`] | ML-ECN §V |
//! | A-ECN | [`a_ecn`] | ML-ECN §I, §V |
//! | MM-ECN | [`mm_ecn`] | ML-ECN §I |
//! | DemePro | [`demepro`] | ML-ECN §I, §V |

pub mod a_ecn;
pub mod cedm;
pub mod demepro;
pub mod ml_ecn;
pub mod mm_ecn;
pub mod mq_ecn;
pub mod pmsb;
pub mod red;
pub mod tcn;
pub mod threshold;

use serde::{Deserialize, Serialize};

use super::queues::Queues;
use super::scheduler::Service;
use super::{ConfigError, MarkReason, PerIndex, QueueSet, RoundObserver, SizeClasses};
use crate::units::{Bytes, Length, Rate, Time};
pub use a_ecn::AEcnConfig;
pub use cedm::{CedmConfig, CedmRule};
pub use demepro::DemeProConfig;
pub use ml_ecn::MlEcnConfig;
pub use mm_ecn::MmEcnConfig;
pub use mq_ecn::{MqEcnConfig, Ramp, RoundUpdate};
pub use pmsb::PmsbConfig;
pub use red::{Average, RedConfig};
pub use tcn::TcnConfig;
pub use threshold::{Threshold, minimum_thresholds, standard_threshold};

/// A marker, as written in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MarkerConfig {
    /// What decides.
    pub scheme: SchemeConfig,
    /// When it decides.
    #[serde(default)]
    pub point: MarkPoint,
    /// What it takes for the length of a queue.
    #[serde(default)]
    pub measure: Measure,
    /// What happens to a packet that should be marked and cannot be.
    #[serde(default)]
    pub not_ect: NotEct,
}

/// The scheme that decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SchemeConfig {
    /// Nothing is marked.
    #[default]
    None,
    /// A threshold for each queue. The same for all is the standard threshold of MQ-ECN eq. 1.
    PerQueue {
        /// Threshold of all queues or of each.
        threshold: PerIndex<Threshold>,
    },
    /// The minimum threshold of MQ-ECN eq. 2: the standard one, apportioned by weight.
    PerQueueMinimum {
        /// The standard threshold K.
        threshold: Threshold,
    },
    /// One threshold for the sum of the port's queues.
    PerPort {
        /// Threshold of the port.
        threshold: Threshold,
    },
    /// One threshold for all that the ports of the switch have in store.
    PerPool {
        /// Threshold of the pool.
        threshold: Threshold,
    },
    /// ECN* of Wu et al. (CoNEXT 2012): a threshold for each queue, judged at dequeue whatever
    /// [`MarkerConfig::point`] says.
    EcnStar {
        /// Threshold of all queues or of each.
        threshold: PerIndex<Threshold>,
    },
    /// See [`MqEcnConfig`].
    MqEcn(MqEcnConfig),
    /// See [`MlEcnConfig`].
    MlEcn(MlEcnConfig),
    /// See [`RedConfig`].
    Red(RedConfig),
    /// See [`TcnConfig`].
    Tcn(TcnConfig),
    /// See [`PmsbConfig`].
    Pmsb(PmsbConfig),
    /// See [`CedmConfig`].
    Cedm(CedmConfig),
    /// See [`AEcnConfig`].
    AEcn(AEcnConfig),
    /// See [`MmEcnConfig`].
    MmEcn(MmEcnConfig),
    /// See [`DemeProConfig`].
    Demepro(DemeProConfig),
}

/// The moment at which a scheme decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkPoint {
    /// When a packet arrives, as RED and commodity chips do.
    #[default]
    Enqueue,
    /// When a packet leaves.
    Dequeue,
}

/// What counts as the length of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Measure {
    /// Bytes, or packets of the port's nominal size.
    pub unit: MeasureUnit,
    /// The packet that is decided on: the arriving one at enqueue, the leaving one at dequeue.
    pub subject: Presence,
    /// The packet that is being transmitted. Most switches and simulators take it off the queue
    /// when its transmission starts.
    pub in_service: Presence,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            unit: MeasureUnit::Bytes,
            subject: Presence::Included,
            in_service: Presence::Excluded,
        }
    }
}

/// Unit of a queue's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureUnit {
    /// Bytes in store.
    Bytes,
    /// Packets in store, each worth the port's nominal packet size whatever its own.
    Packets,
}

/// Whether something counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// It counts.
    Included,
    /// It does not.
    Excluded,
}

/// What happens to a packet that should be marked but is not ECN-capable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotEct {
    /// It goes on unmarked.
    #[default]
    Pass,
    /// It is dropped, as RED prescribes, where the decision falls at enqueue. A packet that is
    /// already in store is never dropped for it.
    Drop,
}

/// What a scheme sees when it decides about a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) now: Time,
    pub(crate) queue: usize,
    /// Length of the packet's queue, by the port's [`Measure`], in bytes.
    pub(crate) queue_length: u64,
    /// Length of all queues of the port.
    pub(crate) port_length: u64,
    /// Bytes that all ports of the switch hold, with this packet.
    pub(crate) pool_length: u64,
    /// Packets in the queue, with this one.
    pub(crate) queue_packets: u32,
    /// What MQ-ECN weighs the queue by, see [`Setting::own`].
    pub(crate) own: f64,
    /// The DSCP field: ML-ECN's stage.
    pub(crate) stage: u8,
}

/// A scheme's answer about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Note {
    Pass,
    Mark(MarkReason),
    /// Mark the packet at the head of this queue instead of the arriving one.
    MarkHead(u8, MarkReason),
    /// Remember for the dequeue side that the packet met congestion.
    Remember,
}

impl From<Option<MarkReason>> for Note {
    fn from(reason: Option<MarkReason>) -> Self {
        reason.map_or(Self::Pass, Self::Mark)
    }
}

/// What a scheme does. Most decide by one rule at the configured point and need
/// [`decide`](Self::decide) only.
///
/// Schemes of a few instructions are inlined into the port; longer ones are kept out of line, or
/// they would cost the short ones their registers.
pub(crate) trait Marking {
    /// Whether to mark the packet.
    fn decide(&mut self, _seen: Seen) -> Option<MarkReason> {
        None
    }

    /// A packet is about to join its queue.
    #[inline]
    fn at_enqueue(&mut self, point: MarkPoint, seen: Seen, _: &Queues) -> Note {
        match point {
            MarkPoint::Enqueue => self.decide(seen).into(),
            MarkPoint::Dequeue => Note::Pass,
        }
    }

    /// A packet has left its queue after `sojourn`; `noted` if [`Note::Remember`] was answered.
    #[inline]
    fn at_dequeue(
        &mut self,
        point: MarkPoint,
        seen: Seen,
        _sojourn: Time,
        _noted: bool,
    ) -> Option<MarkReason> {
        match point {
            MarkPoint::Enqueue => None,
            MarkPoint::Dequeue => self.decide(seen),
        }
    }

    /// A queue finished its service in a round.
    fn round_ended(&mut self, _now: Time, _queue: usize, _sample: Time) {}

    /// A packet was taken from its queue for transmission.
    fn served(&mut self, _service: Service, _queues: &Queues) {}

    /// A packet arrives after the port has been idle for this long.
    fn idle_ended(&mut self, _idle: Time) {}

    /// The queue length above which the scheme marks now, for probes; `None` if there is no such
    /// length.
    fn threshold(&self, queue: usize) -> Option<f64>;
}

/// What a marker needs to know of the port that it is built into.
pub(crate) struct Setting<'a> {
    pub(crate) rate: Rate,
    /// Nominal packet size.
    pub(crate) packet: Bytes,
    /// Quantum or weight of each queue.
    pub(crate) weights: &'a [u32],
    /// Queues outside the round robin.
    pub(crate) strict: QueueSet,
    /// Whether the scheduler has rounds.
    pub(crate) rounds: bool,
    /// The classifier's size classes, if it is ML-ECN's.
    pub(crate) classes: Option<SizeClasses>,
    /// Seed and number of the port.
    pub(crate) stream: (u64, u64),
}

impl Setting<'_> {
    /// What MQ-ECN weighs a queue by: the time of its quantum, quantum_i / C, in picoseconds; below
    /// a scheduler without rounds its weight; infinite for a queue that always has all of K.
    pub(crate) fn own(&self, queue: usize) -> f64 {
        let weight = self.weights[queue];
        if self.strict.contains(queue) {
            f64::INFINITY
        } else if self.rounds {
            let quantum = Bytes::new(u64::from(weight));
            real(self.rate.transmission_time(quantum).ps())
        } else {
            f64::from(weight)
        }
    }

    /// The checked value of a threshold in bytes.
    fn bytes(&self, threshold: Threshold) -> Result<f64, ConfigError> {
        threshold.in_bytes(self.rate, self.packet)
    }

    /// The checked value of a threshold for each queue.
    fn bytes_each(&self, threshold: &PerIndex<Threshold>) -> Result<Vec<f64>, ConfigError> {
        let each = threshold.each("threshold", self.weights.len())?;
        each.into_iter().map(|t| self.bytes(t)).collect()
    }

    /// A length that must not be zero, in bytes.
    fn length(&self, name: &'static str, length: Length) -> Result<f64, ConfigError> {
        let bytes = length.in_bytes(self.packet);
        if bytes <= 0.0 {
            return Err(ConfigError::Zero(name));
        }
        Ok(bytes)
    }
}

fn probability(name: &'static str, p: f64) -> Result<f64, ConfigError> {
    if (0.0..=1.0).contains(&p) {
        Ok(p)
    } else {
        Err(ConfigError::Probability(name))
    }
}

/// A length or span as a real number. None comes near 2^63, and the signed conversion is one
/// instruction where the unsigned takes five.
#[inline]
fn real(count: u64) -> f64 {
    count.cast_signed() as f64
}

/// `base` to the power `exponent`, by squaring: the same bits on every machine, which the
/// standard library's own does not promise.
#[inline(never)]
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 && product > 0.0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

/// The running scheme. Like a scheduler's, its tag is not hidden in a field.
#[derive(Clone, Debug)]
#[repr(u8)]
enum Scheme {
    None(threshold::Never),
    PerQueue(threshold::PerQueueThreshold),
    PerPort(threshold::PerPort),
    PerPool(threshold::PerPool),
    MqEcn(mq_ecn::MqEcn),
    MlEcn(ml_ecn::MlEcn),
    Red(red::Red),
    Tcn(tcn::Tcn),
    Pmsb(pmsb::Pmsb),
    Cedm(cedm::Cedm),
    AEcn(a_ecn::AEcn),
    MmEcn(mm_ecn::MmEcn),
    Demepro(demepro::DemePro),
}

/// Hands a call to whichever scheme is running, without a virtual call on the packet path.
macro_rules! each_scheme {
    ($self:expr, $scheme:ident => $call:expr) => {
        match $self {
            Scheme::None($scheme) => $call,
            Scheme::PerQueue($scheme) => $call,
            Scheme::PerPort($scheme) => $call,
            Scheme::PerPool($scheme) => $call,
            Scheme::MqEcn($scheme) => $call,
            Scheme::MlEcn($scheme) => $call,
            Scheme::Red($scheme) => $call,
            Scheme::Tcn($scheme) => $call,
            Scheme::Pmsb($scheme) => $call,
            Scheme::Cedm($scheme) => $call,
            Scheme::AEcn($scheme) => $call,
            Scheme::MmEcn($scheme) => $call,
            Scheme::Demepro($scheme) => $call,
        }
    };
}

/// A running marker.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Marker {
    point: MarkPoint,
    decides_at_dequeue: bool,
    follows_service: bool,
    scheme: Scheme,
}

impl Marker {
    pub(crate) fn new(config: &MarkerConfig, setting: &Setting<'_>) -> Result<Self, ConfigError> {
        let mut point = config.point;
        let scheme = match &config.scheme {
            SchemeConfig::None => Scheme::None(threshold::Never),
            SchemeConfig::PerQueue { threshold } => Scheme::PerQueue(
                threshold::PerQueueThreshold::new(setting.bytes_each(threshold)?),
            ),
            SchemeConfig::EcnStar { threshold } => {
                point = MarkPoint::Dequeue;
                Scheme::PerQueue(threshold::PerQueueThreshold::new(
                    setting.bytes_each(threshold)?,
                ))
            }
            SchemeConfig::PerQueueMinimum { threshold } => {
                let minimum = minimum_thresholds(setting.bytes(*threshold)?, setting.weights);
                Scheme::PerQueue(threshold::PerQueueThreshold::new(minimum))
            }
            SchemeConfig::PerPort { threshold } => {
                Scheme::PerPort(threshold::PerPort(setting.bytes(*threshold)?))
            }
            SchemeConfig::PerPool { threshold } => {
                Scheme::PerPool(threshold::PerPool(setting.bytes(*threshold)?))
            }
            SchemeConfig::MqEcn(config) => Scheme::MqEcn(mq_ecn::MqEcn::new(config, setting)?),
            SchemeConfig::MlEcn(config) => Scheme::MlEcn(ml_ecn::MlEcn::new(config, setting)?),
            SchemeConfig::Red(config) => Scheme::Red(red::Red::new(config, setting)?),
            SchemeConfig::Tcn(config) => Scheme::Tcn(tcn::Tcn::new(*config)),
            SchemeConfig::Pmsb(config) => Scheme::Pmsb(pmsb::Pmsb::new(config, setting)?),
            SchemeConfig::Cedm(config) => Scheme::Cedm(cedm::Cedm::new(*config, setting)?),
            SchemeConfig::AEcn(config) => Scheme::AEcn(a_ecn::AEcn::new(*config, setting)?),
            SchemeConfig::MmEcn(config) => Scheme::MmEcn(mm_ecn::MmEcn::new(*config, setting)?),
            SchemeConfig::Demepro(config) => {
                Scheme::Demepro(demepro::DemePro::new(*config, setting)?)
            }
        };
        Ok(Self {
            decides_at_dequeue: point == MarkPoint::Dequeue
                || matches!(scheme, Scheme::Tcn(_) | Scheme::Cedm(_) | Scheme::MmEcn(_)),
            follows_service: match &scheme {
                Scheme::MqEcn(_) => !setting.rounds,
                Scheme::Red(_) | Scheme::AEcn(_) => true,
                _ => false,
            },
            scheme,
            point,
        })
    }

    /// Whether [`at_dequeue`](Self::at_dequeue) can mark anything; most schemes decide at enqueue,
    /// and the port is spared the preparation.
    #[inline]
    pub(crate) fn decides_at_dequeue(&self) -> bool {
        self.decides_at_dequeue
    }

    /// Whether the scheme listens to [`served`](Self::served).
    #[inline]
    pub(crate) fn follows_service(&self) -> bool {
        self.follows_service
    }

    /// The whole bytes above which the only queue's packets are marked on arrival, and the reason,
    /// if that is all that the scheme does.
    pub(crate) fn arrival_threshold(&self) -> Option<(u64, MarkReason)> {
        let reason = match (&self.scheme, self.point) {
            (Scheme::None(_), _) => return Some((u64::MAX, MarkReason::Queue)),
            (Scheme::PerQueue(_), MarkPoint::Enqueue) => MarkReason::Queue,
            (Scheme::PerPort(_), MarkPoint::Enqueue) => MarkReason::Port,
            _ => return None,
        };
        self.threshold(0).map(|bytes| (bytes as u64, reason))
    }

    #[inline(always)]
    pub(crate) fn at_enqueue(&mut self, seen: impl Fn() -> Seen, queues: &Queues) -> Note {
        each_scheme!(&mut self.scheme, s => s.at_enqueue(self.point, seen(), queues))
    }

    #[inline]
    pub(crate) fn at_dequeue(
        &mut self,
        seen: Seen,
        sojourn: Time,
        noted: bool,
    ) -> Option<MarkReason> {
        each_scheme!(&mut self.scheme, s => s.at_dequeue(self.point, seen, sojourn, noted))
    }

    #[inline]
    pub(crate) fn served(&mut self, service: Service, queues: &Queues) {
        each_scheme!(&mut self.scheme, s => s.served(service, queues));
    }

    #[inline]
    pub(crate) fn idle_ended(&mut self, idle: Time) {
        each_scheme!(&mut self.scheme, s => s.idle_ended(idle));
    }

    pub(crate) fn threshold(&self, queue: usize) -> Option<f64> {
        each_scheme!(&self.scheme, s => s.threshold(queue))
    }
}

impl RoundObserver for Marker {
    #[inline]
    fn round_ended(&mut self, now: Time, queue: usize, sample: Time) {
        each_scheme!(&mut self.scheme, s => s.round_ended(now, queue, sample));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size of a nominal packet in the markers' tests.
    pub(super) const PACKET: u32 = 1500;

    /// A 10 Gbps round-robin port with these quanta.
    pub(super) fn setting(weights: &[u32]) -> Setting<'_> {
        Setting {
            rate: Rate::from_gbps(10),
            packet: Bytes::new(u64::from(PACKET)),
            weights,
            strict: QueueSet::EMPTY,
            rounds: true,
            classes: None,
            stream: (1, 0),
        }
    }

    pub(super) fn length(bytes: u64) -> Threshold {
        Threshold::Length(Length::Bytes(Bytes::new(bytes)))
    }

    /// A packet of a queue of this length, alone in its port.
    pub(super) fn seen(queue: usize, queue_length: u64) -> Seen {
        Seen {
            now: Time::ZERO,
            queue,
            queue_length,
            port_length: queue_length,
            pool_length: queue_length,
            queue_packets: queue_length.div_ceil(u64::from(PACKET)) as u32,
            own: setting(&[PACKET; 8]).own(queue),
            stage: 0,
        }
    }

    #[test]
    fn powers_by_hand() {
        assert_eq!(power(0.75, 0), 1.0);
        assert_eq!(power(0.75, 1), 0.75);
        assert_eq!(power(0.5, 10), 1.0 / 1024.0);
        assert_eq!(power(0.75, u64::MAX), 0.0);
    }
}
