//! MQ-ECN (Bai et al., NSDI 2016): per-queue thresholds that follow the round time.
//!
//! - eq. 5: K_i = min(quantum_i / T_round, C) x RTT x lambda, written here as K x share with
//!   share = min(quantum_i / (C x T_round), 1). C is the rate of the shaper where a port has one
//!   (§4.2), and the quantum counts the bytes that its packets take on the wire, as T_round does.
//! - eq. 6: T_round = beta x T_round + (1 - beta) x T_sample, a sample whenever a queue ends its
//!   service in a round (§3.3.1; the schedulers report it, on active queues only).
//! - A port that has been idle for n x T_idle multiplies T_round by beta^n (§3.3.1), applied when
//!   the next packet arrives, since nothing looks at the threshold before.
//! - [`RoundUpdate::Interval`]: the moving average taken at a fixed interval, as chips would (§4.1).
//! - WFQ has no rounds: share = w_i / w_sum, where w_sum smooths the weight of the backlogged
//!   queues by the same filter, a sample for each packet sent (§3.4), and decays like T_round while
//!   the port is idle.
//! - Queues with strict priority above the round robin keep the standard threshold (§3.4).
//! - [`Ramp`]: K_min and K_max scaled by the share, P_max as it is (§3.4).
//!
//! Until a first sample exists the threshold is K, and so it is when T_round has decayed below 1 ns:
//! no round is that short.

use std::mem;

use serde::{Deserialize, Serialize};

use super::{Marking, Needs, PortContext, Seen, Threshold, power, probability, real};
use crate::port::scheduler::Service;
use crate::port::{ConfigError, MarkReason, QueueSet, Queues, Sharing};
use crate::random::Coin;
use crate::units::{Bytes, Time};

/// T_round, in picoseconds, below which a port counts as idle.
const SHORTEST_ROUND: f64 = 1_000.0;

/// Parameters of MQ-ECN, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MqEcnConfig {
    /// K = C x RTT x lambda, the standard threshold; with a [`Ramp`] its K_max.
    pub threshold: Threshold,
    /// Weight of the past in eq. 6.
    #[serde(default = "default_beta")]
    pub beta: f64,
    /// Idle time after which T_round decays once; the transmission time of a nominal packet at C,
    /// without framing, if not given (1.2 us at 10 Gbps, 12 us at 1 Gbps).
    pub t_idle: Option<Time>,
    /// Start of a port's idle time.
    #[serde(default)]
    pub idle_from: IdleFrom,
    /// Update rule of T_round.
    #[serde(default)]
    pub update: RoundUpdate,
    /// Probabilistic marking below the threshold.
    pub ramp: Option<Ramp>,
}

fn default_beta() -> f64 {
    0.75
}

impl MqEcnConfig {
    /// The paper's defaults around a standard threshold.
    pub fn new(threshold: Threshold) -> Self {
        Self {
            threshold,
            beta: default_beta(),
            t_idle: None,
            idle_from: IdleFrom::default(),
            update: RoundUpdate::default(),
            ramp: None,
        }
    }
}

/// Start of a port's idle time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IdleFrom {
    /// The end of the last transmission (§3.3.1).
    #[default]
    TransmissionEnd,
    /// The dequeue of the last packet, as in the authors' simulation.
    TransmissionStart,
}

/// Time at which T_round takes a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RoundUpdate {
    /// With every sample (eq. 6).
    #[default]
    EverySample,
    /// Once in this interval, with the mean of the samples since (§4.1 suggests the transmission
    /// time of an MTU, 7.2 us for 9 KB at 10 Gbps).
    Interval(Time),
}

/// Marking probability that rises from 0 at K_min to P_max at K_max, and is 1 above.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ramp {
    /// K_min of the single-queue model.
    pub k_min: Threshold,
    /// P_max.
    pub p_max: f64,
}

/// A running MQ-ECN marker.
///
/// The share of a queue is its constant over `smoothed`, at most 1: with rounds the time of its
/// quantum over T_round, with WFQ its weight over w_sum.
#[derive(Clone, Debug)]
#[repr(C)]
pub(in crate::port) struct MqEcn {
    /// T_round in picoseconds, or w_sum.
    smoothed: f64,
    beta: f64,
    estimate: Estimate,
    /// K in bytes.
    k: f64,
    t_idle: Time,
    /// Time of the last transmission, where it counts as idle time and has not been counted.
    last_transmission: Time,
    idle_from: IdleFrom,
    /// Value below which the decaying average becomes 0.
    least: f64,
    ramp: Option<Box<RampState>>,
}

#[derive(Clone, Debug)]
struct RampState {
    k_min: f64,
    p_max: f64,
    coin: Coin,
}

/// Source of the samples.
#[derive(Clone, Debug)]
#[repr(u8)]
enum Estimate {
    EveryRound,
    RoundsInInterval(Box<Pending>),
    /// The sum of the weights of these queues, which were backlogged when it was last needed.
    BackloggedWeight {
        queues: QueueSet,
        sum: f64,
    },
}

/// Samples that wait for the next update of the interval variant.
#[derive(Clone, Debug)]
struct Pending {
    interval: Time,
    due: Time,
    sum: f64,
    count: u32,
}

impl MqEcn {
    pub(super) fn new(config: &MqEcnConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        if port.sharing == Sharing::None {
            return Err(ConfigError::NeedsRounds);
        }
        if !(config.beta > 0.0 && config.beta < 1.0) {
            return Err(ConfigError::Fraction("beta"));
        }
        let k = port.bytes(config.threshold)?;
        let ramp = match config.ramp {
            None => None,
            Some(ramp) => {
                let k_min = port.bytes(ramp.k_min)?;
                if k_min >= k {
                    return Err(ConfigError::Order("k-min", "threshold"));
                }
                Some(Box::new(RampState {
                    k_min,
                    p_max: probability("p-max", ramp.p_max)?,
                    coin: port.coin(),
                }))
            }
        };
        let packet_time = port.rate.transmission_time(port.packet);
        let t_idle = config.t_idle.unwrap_or(packet_time);
        if t_idle == Time::ZERO {
            return Err(ConfigError::Zero("t-idle"));
        }
        let estimate = match config.update {
            _ if port.sharing == Sharing::Weights => Estimate::BackloggedWeight {
                queues: QueueSet::EMPTY,
                sum: 0.0,
            },
            RoundUpdate::EverySample => Estimate::EveryRound,
            RoundUpdate::Interval(Time::ZERO) => return Err(ConfigError::Zero("interval")),
            RoundUpdate::Interval(interval) => Estimate::RoundsInInterval(Box::new(Pending {
                interval,
                due: interval,
                sum: 0.0,
                count: 0,
            })),
        };
        Ok(Self {
            k,
            smoothed: 0.0,
            beta: config.beta,
            t_idle,
            last_transmission: Time::ZERO,
            idle_from: config.idle_from,
            least: match port.sharing {
                Sharing::Rounds => SHORTEST_ROUND,
                Sharing::Weights | Sharing::None => 0.0,
            },
            ramp,
            estimate,
        })
    }

    /// The fraction of the standard threshold that a queue gets now, in (0, 1].
    #[inline]
    fn share(&self, queue: usize, queues: &Queues) -> f64 {
        // Before the first sample this divides by zero, and the minimum is 1 as it should be.
        (queues.constant(queue) / self.smoothed).min(1.0)
    }

    /// Keeps a sample for the next update of the interval variant.
    // Off the common path, which it would otherwise burden with its registers.
    #[cold]
    fn collect(&mut self, now: Time, sample: f64) {
        if let Estimate::RoundsInInterval(pending) = &mut self.estimate
            && let Some(mean) = pending.add(now, sample)
        {
            self.smooth(mean);
        }
    }

    /// Eq. 6.
    #[inline]
    fn smooth(&mut self, sample: f64) {
        self.smoothed = self.beta * self.smoothed + (1.0 - self.beta) * sample;
    }
}

impl Marking for MqEcn {
    fn needs(&self) -> Needs {
        Needs {
            dequeue: false,
            service: matches!(self.estimate, Estimate::BackloggedWeight { .. })
                || self.idle_from == IdleFrom::TransmissionStart,
        }
    }

    /// quantum_i / C, the time of the queue's quantum on the wire, in picoseconds; below a scheduler
    /// without rounds its weight; infinite for a queue that always has all of K.
    fn queue_constant(&self, queue: usize, port: &PortContext<'_>) -> f64 {
        let weight = port.weights[queue];
        match port.sharing {
            _ if port.strict.contains(queue) => f64::INFINITY,
            Sharing::Rounds => {
                let quantum = Bytes::new(u64::from(weight));
                real(port.rate.transmission_time(quantum).ps()) * port.wire_ratio
            }
            Sharing::Weights | Sharing::None => f64::from(weight),
        }
    }

    #[inline]
    fn decide(&mut self, seen: Seen, queues: &Queues) -> Option<MarkReason> {
        let share = self.share(seen.queue, queues);
        let length = real(seen.queue_length);
        if length > self.k * share {
            return Some(MarkReason::Queue);
        }
        let ramp = self.ramp.as_mut()?;
        ramp.decide(length, ramp.k_min * share, self.k * share)
    }

    #[inline]
    fn round_ended(&mut self, now: Time, _queue: usize, sample: Time) {
        let sample = real(sample.ps());
        if let Estimate::EveryRound = self.estimate {
            self.smooth(sample);
        } else {
            self.collect(now, sample);
        }
    }

    fn served(&mut self, service: Service, queues: &Queues) {
        if self.idle_from == IdleFrom::TransmissionStart {
            self.last_transmission = service.finish - service.now;
        }
        let Estimate::BackloggedWeight {
            queues: counted,
            sum,
        } = &mut self.estimate
        else {
            return;
        };
        let mut backlogged = queues.backlogged();
        backlogged.insert(service.queue);
        // Weights are whole numbers, so adding and subtracting them leaves no error behind.
        for queue in backlogged.difference(*counted).iter() {
            *sum += queues.constant(queue);
        }
        for queue in counted.difference(backlogged).iter() {
            *sum -= queues.constant(queue);
        }
        *counted = backlogged;
        let sample = *sum;
        self.smooth(sample);
    }

    #[inline]
    fn idle_ended(&mut self, idle: Time) {
        let idle = match self.idle_from {
            IdleFrom::TransmissionEnd => idle,
            IdleFrom::TransmissionStart => idle + mem::take(&mut self.last_transmission),
        };
        if idle < self.t_idle {
            return;
        }
        if let Estimate::RoundsInInterval(pending) = &mut self.estimate
            && let Some(mean) = pending.take()
        {
            self.smooth(mean);
        }
        // At low load most packets find that T_round has decayed to nothing already.
        if self.smoothed > 0.0 {
            self.smoothed *= power(self.beta, idle / self.t_idle);
            if self.smoothed < self.least {
                self.smoothed = 0.0;
            }
        }
    }

    fn threshold(&self, queue: usize, queues: &Queues) -> Option<f64> {
        Some(self.k * self.share(queue, queues))
    }
}

impl RampState {
    #[cold]
    fn decide(&mut self, length: f64, k_min: f64, k_max: f64) -> Option<MarkReason> {
        let p = self.p_max * (length - k_min) / (k_max - k_min);
        self.coin.heads(p).then_some(MarkReason::Probability)
    }
}

impl Pending {
    /// Takes a sample in; the mean of the interval when one is over.
    fn add(&mut self, now: Time, sample: f64) -> Option<f64> {
        self.sum += sample;
        self.count += 1;
        if now < self.due {
            return None;
        }
        let missed = (now - self.due) / self.interval;
        self.due += self.interval * (missed + 1);
        self.take()
    }

    /// The mean of the samples since the last update, if there are any, which then are none.
    fn take(&mut self) -> Option<f64> {
        let mean = (self.count > 0).then(|| self.sum / f64::from(self.count));
        (self.sum, self.count) = (0.0, 0);
        mean
    }
}

#[cfg(test)]
mod tests;
