//! MQ-ECN (Bai et al., NSDI 2016): per-queue thresholds that follow the round time.
//!
//! - eq. 5: K_i = min(quantum_i / T_round, C) x RTT x lambda, written here as K x share with
//!   share = min(quantum_i / (C x T_round), 1).
//! - eq. 6: T_round = beta x T_round + (1 - beta) x T_sample, a sample whenever a queue ends its
//!   service in a round (§3.3.1; the schedulers report it, on active queues only).
//! - A port that has been idle for n x T_idle multiplies T_round by beta^n (§3.3.1), applied when
//!   the next packet arrives, since nothing looks at the threshold before.
//! - [`RoundUpdate::Interval`]: the moving average taken at a fixed interval, as chips would (§4.1).
//! - WFQ has no rounds: share = w_i / w_sum, where w_sum smooths the weight of the backlogged
//!   queues by the same filter, a sample for each packet sent (§3.4).
//! - Queues with strict priority above the round robin keep the standard threshold (§3.4).
//! - [`Ramp`]: K_min and K_max scaled by the share, P_max as it is (§3.4).
//!
//! Until a first sample exists, and while T_round is below 1 ns, the threshold is K: a round that
//! short cannot be told from an idle port.

use serde::{Deserialize, Serialize};

use super::{Marking, Note, Seen, Setting, Threshold, power, probability};
use crate::packet::Packet;
use crate::port::queues::Queues;
use crate::port::scheduler::Service;
use crate::port::{ConfigError, MarkPoint, MarkReason, QueueSet};
use crate::random::Coin;
use crate::units::{Bytes, Time};

/// T_round below which a port counts as idle, in picoseconds.
const SHORTEST_ROUND: f64 = 1_000.0;

/// Parameters of MQ-ECN, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MqEcnConfig {
    /// K = C x RTT x lambda, the standard threshold; with a [`Ramp`] its K_max.
    pub threshold: Threshold,
    /// Weight of the past in eq. 6.
    #[serde(default = "default_beta")]
    pub beta: f64,
    /// Idle time after which T_round decays once; the transmission time of a nominal packet if not
    /// given (1.2 us at 10 Gbps, 12 us at 1 Gbps).
    pub t_idle: Option<Time>,
    /// When T_round is updated.
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
            update: RoundUpdate::default(),
            ramp: None,
        }
    }
}

/// When T_round takes a sample in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ramp {
    /// K_min of the single-queue model.
    pub k_min: Threshold,
    /// P_max.
    pub p_max: f64,
}

/// A running MQ-ECN marker.
#[derive(Clone, Debug)]
pub(super) struct MqEcn {
    /// K in bytes.
    k: f64,
    ramp: Option<RampState>,
    strict: QueueSet,
    estimate: Estimate,
}

#[derive(Clone, Debug)]
struct RampState {
    k_min: f64,
    p_max: f64,
    coin: Coin,
}

/// What the share of a queue is computed from.
#[derive(Clone, Debug)]
enum Estimate {
    Rounds(RoundTime),
    Weights(BackloggedWeight),
}

impl MqEcn {
    pub(super) fn new(config: &MqEcnConfig, setting: &Setting<'_>) -> Result<Self, ConfigError> {
        if !(config.beta > 0.0 && config.beta < 1.0) {
            return Err(ConfigError::Fraction("beta"));
        }
        let k = setting.bytes(config.threshold)?;
        let ramp = match config.ramp {
            None => None,
            Some(ramp) => {
                let k_min = setting.bytes(ramp.k_min)?;
                if k_min >= k {
                    return Err(ConfigError::Order("k-min", "threshold"));
                }
                Some(RampState {
                    k_min,
                    p_max: probability("p-max", ramp.p_max)?,
                    coin: Coin::new(setting.stream.0, setting.stream.1),
                })
            }
        };
        let estimate = if setting.rounds {
            Estimate::Rounds(RoundTime::new(config, setting)?)
        } else {
            Estimate::Weights(BackloggedWeight::new(config.beta, setting.weights))
        };
        Ok(Self {
            k,
            ramp,
            strict: setting.strict,
            estimate,
        })
    }

    /// The fraction of the standard threshold that a queue gets now, in (0, 1].
    #[inline]
    fn share(&self, queue: usize) -> f64 {
        if self.strict.contains(queue) {
            return 1.0;
        }
        match &self.estimate {
            Estimate::Rounds(rounds) => rounds.share(queue),
            Estimate::Weights(weights) => weights.share(queue),
        }
    }
}

impl Marking for MqEcn {
    #[inline]
    fn decide(&mut self, seen: &Seen) -> Option<MarkReason> {
        let share = self.share(seen.queue);
        let length = seen.queue_length as f64;
        let k_max = self.k * share;
        if length > k_max {
            return Some(MarkReason::Queue);
        }
        let ramp = self.ramp.as_mut()?;
        let k_min = ramp.k_min * share;
        let p = ramp.p_max * (length - k_min) / (k_max - k_min);
        ramp.coin.heads(p).then_some(MarkReason::Probability)
    }

    #[inline]
    fn at_enqueue<P: Packet>(&mut self, point: MarkPoint, seen: &Seen, _: &Queues<P>) -> Note {
        if let Estimate::Weights(weights) = &mut self.estimate {
            weights.arrived(seen);
        }
        match point {
            MarkPoint::Enqueue => self.decide(seen).into(),
            MarkPoint::Dequeue => Note::Pass,
        }
    }

    #[inline]
    fn round_ended(&mut self, now: Time, _queue: usize, sample: Time) {
        if let Estimate::Rounds(rounds) = &mut self.estimate {
            rounds.sample(now, sample.ps() as f64);
        }
    }

    #[inline]
    fn served(&mut self, service: &Service, _left: u64) {
        if let Estimate::Weights(weights) = &mut self.estimate {
            weights.served(service);
        }
    }

    #[inline]
    fn idle_ended(&mut self, idle: Time) {
        if let Estimate::Rounds(rounds) = &mut self.estimate {
            rounds.idle_ended(idle);
        }
    }

    fn threshold(&self, queue: usize) -> Option<f64> {
        Some(self.k * self.share(queue))
    }
}

/// T_round of eq. 6, in picoseconds.
#[derive(Clone, Debug)]
struct RoundTime {
    beta: f64,
    t_idle: Time,
    t_round: f64,
    /// quantum_i / C: what a round of this queue alone would take.
    own_round: Vec<f64>,
    pending: Option<Pending>,
}

/// Samples that wait for the next update of the interval variant.
#[derive(Clone, Debug)]
struct Pending {
    interval: Time,
    due: Time,
    sum: f64,
    count: u32,
}

impl RoundTime {
    fn new(config: &MqEcnConfig, setting: &Setting<'_>) -> Result<Self, ConfigError> {
        let time_of = |bytes| setting.rate.transmission_time(bytes);
        let t_idle = config.t_idle.unwrap_or_else(|| time_of(setting.packet));
        if t_idle == Time::ZERO {
            return Err(ConfigError::Zero("t-idle"));
        }
        let pending = match config.update {
            RoundUpdate::EverySample => None,
            RoundUpdate::Interval(Time::ZERO) => return Err(ConfigError::Zero("interval")),
            RoundUpdate::Interval(interval) => Some(Pending {
                interval,
                due: interval,
                sum: 0.0,
                count: 0,
            }),
        };
        let own_round = |&quantum: &u32| time_of(Bytes::new(u64::from(quantum))).ps() as f64;
        Ok(Self {
            beta: config.beta,
            t_idle,
            t_round: 0.0,
            own_round: setting.weights.iter().map(own_round).collect(),
            pending,
        })
    }

    #[inline]
    fn share(&self, queue: usize) -> f64 {
        if self.t_round < SHORTEST_ROUND {
            return 1.0;
        }
        (self.own_round[queue] / self.t_round).min(1.0)
    }

    #[inline]
    fn sample(&mut self, now: Time, sample: f64) {
        let smoothed = match &mut self.pending {
            None => Some(sample),
            Some(pending) => pending.add(now, sample),
        };
        if let Some(sample) = smoothed {
            self.t_round = self.beta * self.t_round + (1.0 - self.beta) * sample;
        }
    }

    #[inline]
    fn idle_ended(&mut self, idle: Time) {
        // Where it has decayed to nothing there is nothing left to decay; at low load most packets
        // find the port so.
        if idle >= self.t_idle && self.t_round > 0.0 {
            self.t_round *= power(self.beta, idle / self.t_idle);
            if self.t_round < SHORTEST_ROUND {
                self.t_round = 0.0;
            }
        }
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
        let mean = self.sum / f64::from(self.count);
        let missed = (now - self.due) / self.interval;
        self.due += self.interval * (missed + 1);
        (self.sum, self.count) = (0.0, 0);
        Some(mean)
    }
}

/// w_sum of §3.4, smoothed like T_round.
#[derive(Clone, Debug)]
struct BackloggedWeight {
    beta: f64,
    weights: Vec<f64>,
    backlogged: QueueSet,
    weight_now: f64,
    w_sum: f64,
}

impl BackloggedWeight {
    fn new(beta: f64, weights: &[u32]) -> Self {
        Self {
            beta,
            weights: weights.iter().copied().map(f64::from).collect(),
            backlogged: QueueSet::EMPTY,
            weight_now: 0.0,
            w_sum: 0.0,
        }
    }

    #[inline]
    fn share(&self, queue: usize) -> f64 {
        // w_sum starts at 0 and lags behind a queue that has just become active.
        (self.weights[queue] / self.w_sum).min(1.0)
    }

    #[inline]
    fn arrived(&mut self, seen: &Seen) {
        if !self.backlogged.contains(seen.queue) {
            self.backlogged.insert(seen.queue);
            self.weight_now += self.weights[seen.queue];
        }
    }

    #[inline]
    fn served(&mut self, service: &Service) {
        self.w_sum = self.beta * self.w_sum + (1.0 - self.beta) * self.weight_now;
        if service.emptied {
            self.backlogged.remove(service.queue);
            self.weight_now -= self.weights[service.queue];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::marker::tests::{PACKET, seen, setting};
    use crate::units::{Length, Packets};

    const MTU_TIME: Time = Time::from_ns(1200);

    fn k65() -> MqEcnConfig {
        MqEcnConfig::new(Threshold::Length(Length::Packets(Packets::new(65))))
    }

    fn marker(config: &MqEcnConfig) -> MqEcn {
        MqEcn::new(config, &setting(&[1500; 8])).unwrap()
    }

    fn t_round(marker: &MqEcn) -> f64 {
        match &marker.estimate {
            Estimate::Rounds(rounds) => rounds.t_round,
            Estimate::Weights(_) => unreachable!(),
        }
    }

    #[test]
    fn equation_5_by_hand() {
        let mut mq = marker(&k65());
        assert_eq!(mq.threshold(0), Some(97_500.0), "no sample yet: K");
        if let Estimate::Rounds(rounds) = &mut mq.estimate {
            // Eight queues of 1500 B take 9.6 us a round at 10 Gbps: quantum / T_round is C / 8.
            rounds.t_round = 9_600_000.0;
        }
        assert_eq!(mq.threshold(0), Some(8.125 * 1500.0));
        // 12,187.5 B: eight packets (12,000 B) pass, nine (13,500 B) do not.
        assert_eq!(mq.decide(&seen(0, 12_000)), None);
        assert_eq!(mq.decide(&seen(0, 13_500)), Some(MarkReason::Queue));
        if let Estimate::Rounds(rounds) = &mut mq.estimate {
            // A round shorter than the queue's own quantum: capped at C.
            rounds.t_round = 600_000.0;
        }
        assert_eq!(mq.threshold(0), Some(97_500.0));
    }

    #[test]
    fn equation_6_by_hand() {
        let mut mq = marker(&k65());
        // beta = 0.75: 0 -> 0.25 x 9.6 us = 2.4 us -> 0.75 x 2.4 + 2.4 = 4.2 us.
        mq.round_ended(MTU_TIME, 0, Time::from_ns(9600));
        assert_eq!(t_round(&mq), 2_400_000.0);
        mq.round_ended(MTU_TIME, 1, Time::from_ns(9600));
        assert_eq!(t_round(&mq), 4_200_000.0);
    }

    #[test]
    fn idle_decay_by_hand() {
        let mut mq = marker(&k65());
        mq.round_ended(MTU_TIME, 0, Time::from_ns(9600));
        mq.idle_ended(Time::from_ns(1199));
        assert_eq!(t_round(&mq), 2_400_000.0, "less than T_idle");
        // 3.7 us are three whole T_idle: 2.4 us x 0.75^3 = 1.0125 us.
        mq.idle_ended(Time::from_ns(3700));
        assert_eq!(t_round(&mq), 1_012_500.0);
        mq.idle_ended(Time::from_ms(1));
        assert_eq!(t_round(&mq), 0.0);
        assert_eq!(mq.threshold(0), Some(97_500.0));
    }

    #[test]
    fn thresholds_follow_quanta() {
        let mut mq = MqEcn::new(&k65(), &setting(&[1500, 3000, 4500])).unwrap();
        if let Estimate::Rounds(rounds) = &mut mq.estimate {
            // All three backlogged: 9000 B a round, 7.2 us.
            rounds.t_round = 7_200_000.0;
        }
        let k: Vec<_> = (0..3).map(|q| mq.threshold(q).unwrap()).collect();
        assert_eq!(k, [97_500.0 / 6.0, 97_500.0 / 3.0, 97_500.0 / 2.0]);
    }

    #[test]
    fn interval_variant_averages_between_updates() {
        let mut mq = marker(&MqEcnConfig {
            update: RoundUpdate::Interval(Time::from_ns(7200)),
            ..k65()
        });
        mq.round_ended(Time::from_ns(2400), 0, Time::from_ns(2000));
        mq.round_ended(Time::from_ns(4800), 1, Time::from_ns(4000));
        assert_eq!(t_round(&mq), 0.0);
        // Mean of 2, 4 and 6 us is 4 us; a quarter of it enters.
        mq.round_ended(Time::from_ns(7200), 2, Time::from_ns(6000));
        assert_eq!(t_round(&mq), 1_000_000.0);
        // The next update is due at 14.4 us, whatever happens before.
        mq.round_ended(Time::from_ns(14_399), 3, Time::from_ns(8000));
        assert_eq!(t_round(&mq), 1_000_000.0);
        mq.round_ended(Time::from_ns(14_400), 3, Time::from_ns(8000));
        assert_eq!(t_round(&mq), 750_000.0 + 2_000_000.0);
    }

    #[test]
    fn strict_queues_keep_the_standard_threshold() {
        let mut strict = setting(&[1500; 8]);
        strict.strict = QueueSet::first(1);
        let mut mq = MqEcn::new(&k65(), &strict).unwrap();
        for _ in 0..100 {
            mq.round_ended(MTU_TIME, 1, Time::from_ns(8400));
        }
        assert_eq!(mq.threshold(0), Some(97_500.0));
        let lower = mq.threshold(1).unwrap();
        assert!((lower - 97_500.0 / 7.0).abs() < 1e-6, "{lower}");
    }

    #[test]
    fn ramp_scales_both_thresholds() {
        let mut mq = marker(&MqEcnConfig {
            ramp: Some(Ramp {
                k_min: Threshold::Length(Length::Bytes(Bytes::new(19_500))),
                p_max: 0.5,
            }),
            ..k65()
        });
        if let Estimate::Rounds(rounds) = &mut mq.estimate {
            // Half of the standard thresholds: K_min 9,750 B and K_max 48,750 B.
            rounds.t_round = 2_400_000.0;
        }
        assert_eq!(mq.decide(&seen(0, 9_750)), None);
        assert_eq!(mq.decide(&seen(0, 48_751)), Some(MarkReason::Queue));
        // Half way up the ramp: p = 0.5 x 0.5.
        let marked = (0..40_000)
            .filter(|_| mq.decide(&seen(0, 29_250)).is_some())
            .count();
        assert!((9_740..=10_260).contains(&marked), "{marked}");
    }

    #[test]
    fn wfq_divides_by_the_smoothed_backlogged_weight() {
        let mut fair = setting(&[1, 1, 2, 4]);
        fair.rounds = false;
        let mut mq = MqEcn::new(&k65(), &fair).unwrap();
        let queues = Queues::<crate::packet::Descriptor>::new(4);
        for queue in [1, 2] {
            mq.at_enqueue(MarkPoint::Enqueue, &seen(queue, 1500), &queues);
        }
        let service = Service {
            queue: 1,
            size: PACKET,
            now: Time::ZERO,
            finish: MTU_TIME,
            emptied: false,
        };
        // w_sum: 0.25 x 3 = 0.75 caps the share at 1; then it converges to 3.
        mq.served(&service, 0);
        assert_eq!(mq.threshold(1), Some(97_500.0));
        for _ in 0..200 {
            mq.served(&service, 0);
        }
        let third = mq.threshold(1).unwrap();
        assert!((third - 97_500.0 / 3.0).abs() < 1e-6, "{third}");
        mq.served(
            &Service {
                emptied: true,
                ..service
            },
            0,
        );
        for _ in 0..200 {
            mq.served(
                &Service {
                    queue: 2,
                    ..service
                },
                0,
            );
        }
        let all = mq.threshold(2).unwrap();
        assert!((all - 97_500.0).abs() < 1e-6, "{all}");
    }
}
