//! Markers: schemes that decide which packets get a congestion mark.
//!
//! A marker is one file and one variant of [`SchemeConfig`], or it comes from another crate by way
//! of a [`Registry`](crate::registry::Registry); either implements [`Marking`]. It never touches a
//! packet: it sees queue lengths and answers, and the port sets CE, counts the reason, and deals
//! with packets whose transport does not understand ECN.
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
mod config;
mod context;
pub mod demepro;
pub mod ml_ecn;
pub mod mm_ecn;
pub mod mq_ecn;
pub mod pmsb;
pub mod red;
pub mod tcn;
pub mod threshold;

use std::fmt::Debug;

use super::scheduler::Service;
use super::{ConfigError, MarkReason, Queues, RoundObserver};
use crate::units::Time;
pub use a_ecn::AEcnConfig;
pub use cedm::{CedmConfig, CedmRule};
pub use config::{MarkPoint, MarkerConfig, Measure, MeasureUnit, NotEct, Presence, SchemeConfig};
pub use context::PortContext;
use context::{power, probability, real};
pub use demepro::DemeProConfig;
pub use ml_ecn::MlEcnConfig;
pub use mm_ecn::MmEcnConfig;
pub use mq_ecn::{IdleFrom, MqEcnConfig, Ramp, RoundUpdate};
pub use pmsb::PmsbConfig;
pub use red::{Average, RedConfig};
pub use tcn::TcnConfig;
pub use threshold::{Threshold, minimum_thresholds, standard_threshold};

/// A scheme's view of a packet under decision.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The time.
    pub now: Time,
    /// The packet's queue.
    pub queue: usize,
    /// Length of the packet's queue, by the port's [`Measure`], in bytes.
    pub queue_length: u64,
    /// Length of all queues of the port.
    pub port_length: u64,
    /// Bytes that all ports of the switch hold, with this packet.
    pub pool_length: u64,
    /// Packets in the queue, with this one.
    pub queue_packets: u32,
    /// The DSCP field: ML-ECN's stage.
    pub stage: u8,
}

/// A scheme's answer about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Note {
    /// Leave it as it is.
    Pass,
    /// Mark it.
    Mark(MarkReason),
    /// Mark the packet at the head of this queue instead of the arriving one.
    MarkHead(u8, MarkReason),
    /// Remember for the dequeue side that the packet met congestion.
    Remember,
}

impl From<Option<MarkReason>> for Note {
    #[inline]
    fn from(reason: Option<MarkReason>) -> Self {
        reason.map_or(Self::Pass, Self::Mark)
    }
}

/// Calls that a scheme needs beyond the decision on each arriving packet. The port spares what a
/// scheme does not need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Marking::at_dequeue`], whatever [`MarkerConfig::point`] says.
    pub dequeue: bool,
    /// [`Marking::served`].
    pub service: bool,
}

/// A rule in its simplest form: packets that make their port longer than this are marked as they
/// arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalRule {
    /// Bytes, the arriving packet included; infinite if nothing is ever marked.
    pub threshold: f64,
    /// Reason of the mark.
    pub reason: MarkReason,
}

/// A marking scheme. Most decide by one rule at the configured point and need
/// [`decide`](Self::decide) only.
///
/// Schemes of a few instructions are inlined into the port; longer ones are kept out of line, or
/// they would cost the short ones their registers.
pub trait Marking: Debug + Send {
    /// Calls that the port has to make.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// A number that the port keeps with each queue, so that it is at hand when the queue is:
    /// [`Queues::constant`] gives it back.
    fn queue_constant(&self, _queue: usize, _port: &PortContext<'_>) -> f64 {
        0.0
    }

    /// The rule of a port with one queue, if the scheme is no more than that.
    fn arrival_rule(&self) -> Option<ArrivalRule> {
        None
    }

    /// Returns whether to mark the packet.
    fn decide(&mut self, _seen: Seen, _queues: &Queues) -> Option<MarkReason> {
        None
    }

    /// A packet is about to join its queue.
    #[inline]
    fn at_enqueue(&mut self, point: MarkPoint, seen: Seen, queues: &Queues) -> Note {
        match point {
            MarkPoint::Enqueue => self.decide(seen, queues).into(),
            MarkPoint::Dequeue => Note::Pass,
        }
    }

    /// A packet has left its queue after `sojourn`; `noted` if [`Note::Remember`] was answered.
    #[inline]
    fn at_dequeue(
        &mut self,
        point: MarkPoint,
        seen: Seen,
        queues: &Queues,
        _sojourn: Time,
        _noted: bool,
    ) -> Option<MarkReason> {
        match point {
            MarkPoint::Enqueue => None,
            MarkPoint::Dequeue => self.decide(seen, queues),
        }
    }

    /// A queue finished its service in a round.
    fn round_ended(&mut self, _now: Time, _queue: usize, _sample: Time) {}

    /// A packet was taken from its queue for transmission.
    fn served(&mut self, _service: Service, _queues: &Queues) {}

    /// A packet arrives after the port has been idle for this long, which is no time at all where it
    /// arrives with the end of the last transmission.
    fn idle_ended(&mut self, _idle: Time) {}

    /// The queue length above which the scheme marks now, for probes; `None` if there is no such
    /// length.
    fn threshold(&self, _queue: usize, _queues: &Queues) -> Option<f64> {
        None
    }
}

/// The running scheme. Like a scheduler's, its tag is not hidden in a field.
#[derive(Debug)]
#[repr(u8)]
pub(in crate::port) enum Scheme {
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
    Custom(Box<dyn Marking>),
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
            Scheme::Custom($scheme) => $call,
        }
    };
}

/// The scheme of a port as the port calls it: a [`Marker`], which may be any, or [`Alone`] one that
/// the port's code is compiled for.
pub(crate) trait Judge: RoundObserver {
    /// Calls that the port has to make.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// See [`Marking::at_enqueue`].
    fn at_enqueue(&mut self, seen: impl Fn() -> Seen, queues: &Queues) -> Note;

    /// See [`Marking::at_dequeue`].
    fn at_dequeue(
        &mut self,
        _seen: Seen,
        _queues: &Queues,
        _sojourn: Time,
        _noted: bool,
    ) -> Option<MarkReason> {
        None
    }

    /// See [`Marking::served`].
    fn served(&mut self, _service: Service, _queues: &Queues) {}

    /// See [`Marking::idle_ended`].
    fn idle_ended(&mut self, idle: Time);
}

/// A scheme that decides on arrival and needs nothing else of the port.
#[derive(Debug)]
pub(crate) struct Alone<'a, M>(pub(in crate::port) &'a mut M);

impl<M: Marking> Judge for Alone<'_, M> {
    #[inline(always)]
    fn at_enqueue(&mut self, seen: impl Fn() -> Seen, queues: &Queues) -> Note {
        self.0.at_enqueue(MarkPoint::Enqueue, seen(), queues)
    }

    #[inline(always)]
    fn idle_ended(&mut self, idle: Time) {
        self.0.idle_ended(idle);
    }
}

impl<M: Marking> RoundObserver for Alone<'_, M> {
    #[inline(always)]
    fn round_ended(&mut self, now: Time, queue: usize, sample: Time) {
        self.0.round_ended(now, queue, sample);
    }
}

/// A running marker.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Marker {
    point: MarkPoint,
    needs: Needs,
    pub(in crate::port) scheme: Scheme,
}

impl Marker {
    pub(crate) fn new(config: &MarkerConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        let mut point = config.point;
        let scheme = match &config.scheme {
            SchemeConfig::None => Scheme::None(threshold::Never),
            SchemeConfig::PerQueue { threshold } => Scheme::PerQueue(
                threshold::PerQueueThreshold::new(port.bytes_each(threshold)?),
            ),
            SchemeConfig::EcnStar { threshold } => {
                point = MarkPoint::Dequeue;
                Scheme::PerQueue(threshold::PerQueueThreshold::new(
                    port.bytes_each(threshold)?,
                ))
            }
            SchemeConfig::PerQueueMinimum { threshold } => {
                let minimum = minimum_thresholds(port.bytes(*threshold)?, port.weights);
                Scheme::PerQueue(threshold::PerQueueThreshold::new(minimum))
            }
            SchemeConfig::PerPort { threshold } => {
                Scheme::PerPort(threshold::PerPort(port.bytes(*threshold)?))
            }
            SchemeConfig::PerPool { threshold } => {
                Scheme::PerPool(threshold::PerPool(port.bytes(*threshold)?))
            }
            SchemeConfig::MqEcn(config) => Scheme::MqEcn(mq_ecn::MqEcn::new(config, port)?),
            SchemeConfig::MlEcn(config) => Scheme::MlEcn(ml_ecn::MlEcn::new(config, port)?),
            SchemeConfig::Red(config) => Scheme::Red(red::Red::new(config, port)?),
            SchemeConfig::Tcn(config) => Scheme::Tcn(tcn::Tcn::new(*config)),
            SchemeConfig::Pmsb(config) => Scheme::Pmsb(pmsb::Pmsb::new(config, port)?),
            SchemeConfig::Cedm(config) => Scheme::Cedm(cedm::Cedm::new(*config, port)?),
            SchemeConfig::AEcn(config) => Scheme::AEcn(a_ecn::AEcn::new(*config, port)?),
            SchemeConfig::MmEcn(config) => Scheme::MmEcn(mm_ecn::MmEcn::new(*config, port)?),
            SchemeConfig::Demepro(config) => Scheme::Demepro(demepro::DemePro::new(*config, port)?),
            SchemeConfig::Custom(custom) => match &custom.maker {
                Some(make) => Scheme::Custom(make(&custom.parameters, port)?),
                None => return Err(custom.unknown("marker", SchemeConfig::names()).into()),
            },
        };
        let mut needs = each_scheme!(&scheme, s => s.needs());
        needs.dequeue |= point == MarkPoint::Dequeue;
        Ok(Self {
            point,
            needs,
            scheme,
        })
    }

    /// See [`Marking::queue_constant`].
    pub(crate) fn queue_constant(&self, queue: usize, port: &PortContext<'_>) -> f64 {
        each_scheme!(&self.scheme, s => s.queue_constant(queue, port))
    }

    /// See [`Marking::arrival_rule`]; only for decisions on arrival.
    pub(crate) fn arrival_rule(&self) -> Option<ArrivalRule> {
        if self.needs != Needs::default() {
            return None;
        }
        each_scheme!(&self.scheme, s => s.arrival_rule())
    }

    pub(crate) fn threshold(&self, queue: usize, queues: &Queues) -> Option<f64> {
        each_scheme!(&self.scheme, s => s.threshold(queue, queues))
    }
}

impl Judge for Marker {
    #[inline]
    fn needs(&self) -> Needs {
        self.needs
    }

    #[inline(always)]
    fn at_enqueue(&mut self, seen: impl Fn() -> Seen, queues: &Queues) -> Note {
        each_scheme!(&mut self.scheme, s => s.at_enqueue(self.point, seen(), queues))
    }

    #[inline]
    fn at_dequeue(
        &mut self,
        seen: Seen,
        queues: &Queues,
        sojourn: Time,
        noted: bool,
    ) -> Option<MarkReason> {
        each_scheme!(&mut self.scheme, s => s.at_dequeue(self.point, seen, queues, sojourn, noted))
    }

    #[inline]
    fn served(&mut self, service: Service, queues: &Queues) {
        each_scheme!(&mut self.scheme, s => s.served(service, queues));
    }

    #[inline]
    fn idle_ended(&mut self, idle: Time) {
        each_scheme!(&mut self.scheme, s => s.idle_ended(idle));
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
    use crate::port::{QueueSet, Sharing};
    use crate::units::{Bytes, Length, Rate};

    /// Size of a nominal packet in the markers' tests.
    pub(super) const PACKET: u32 = 1500;

    /// A 10 Gbps round-robin port with these quanta.
    pub(super) fn port(weights: &[u32]) -> PortContext<'_> {
        PortContext {
            rate: Rate::from_gbps(10),
            wire_ratio: 1.0,
            packet: Bytes::new(u64::from(PACKET)),
            weights,
            strict: QueueSet::EMPTY,
            sharing: Sharing::Rounds,
            classes: None,
            seed: 1,
            port: 0,
        }
    }

    /// Empty queues with the constants that a marker wants of them.
    pub(super) fn queues(marker: &impl Marking, port: &PortContext<'_>) -> Queues {
        let mut queues = Queues::new(port.queues());
        for queue in 0..port.queues() {
            queues.lane(queue).constant = marker.queue_constant(queue, port);
        }
        queues
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
            stage: 0,
        }
    }

    #[test]
    fn there_is_an_example_of_every_scheme() {
        let examples = SchemeConfig::EXAMPLES.map(|(name, _)| name);
        assert_eq!(examples, SchemeConfig::names());
    }
}
