//! RED with ECN (Floyd and Jacobson, Transactions on Networking 1993) and, with thresholds of its
//! own for each queue, WRED: the ECN of commodity switches that QJUMP §6.3 compares with.
//!
//! - avg = (1 - w) x avg + w x length at each arrival, or the length itself; an idle queue ages its
//!   average as if a nominal packet had left in each transmission time.
//! - p rises from 0 at `min` to `max-probability` at `max`; above it jumps to 1, or with `gentle`
//!   rises on to 1 at twice `max`.
//! - `spread` turns p into p / (1 - count x p), count being the packets since the last mark, so
//!   that marks come at even distances rather than in clusters.

use serde::{Deserialize, Serialize};

use super::{Marking, Needs, Note, PortContext, Seen, power, probability, real};
use crate::port::scheduler::Service;
use crate::port::{ConfigError, MarkPoint, MarkReason, PerIndex, Queues};
use crate::random::Coin;
use crate::units::{Length, Time};

/// Parameters of RED; values for each queue make it WRED.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RedConfig {
    /// Length at which marking begins.
    pub min: PerIndex<Length>,
    /// Length at which the probability reaches `max-probability`.
    pub max: PerIndex<Length>,
    /// Marking probability at `max`.
    pub max_probability: PerIndex<f64>,
    /// True if the probability keeps rising above `max` instead of jumping to 1.
    #[serde(default)]
    pub gentle: bool,
    /// Queue length that the thresholds are compared with.
    #[serde(default)]
    pub average: Average,
    /// True if marks are spread evenly.
    #[serde(default)]
    pub spread: bool,
}

/// Queue length that RED compares with its thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Average {
    /// The instantaneous length, the usual setting in datacenter switches.
    #[default]
    Instantaneous,
    /// A moving average; the newest length has this weight.
    Ewma(f64),
}

/// A running RED marker.
#[derive(Clone, Debug)]
pub(in crate::port) struct Red {
    lanes: Vec<Lane>,
    gentle: bool,
    /// Weight of a new length in the average.
    weight: f64,
    spread: bool,
    /// Transmission time of a nominal packet.
    packet_time: Time,
    coin: Coin,
}

#[derive(Clone, Debug)]
struct Lane {
    min: f64,
    max: f64,
    max_probability: f64,
    average: f64,
    since_mark: u32,
    /// Time at which the queue became empty, while it is.
    idle_since: Option<Time>,
}

impl Red {
    pub(super) fn new(config: &RedConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        let count = port.queues();
        let weight = match config.average {
            Average::Instantaneous => 1.0,
            Average::Ewma(weight) if weight > 0.0 && weight <= 1.0 => weight,
            Average::Ewma(_) => return Err(ConfigError::Fraction("average.ewma")),
        };
        let min = config.min.each("min", count)?;
        let max = config.max.each("max", count)?;
        let probabilities = config.max_probability.each("max-probability", count)?;
        let lanes = min
            .into_iter()
            .zip(max)
            .zip(probabilities)
            .map(|((min, max), p)| {
                let min = min.in_bytes(port.packet);
                let max = port.length("max", max)?;
                if min > max {
                    return Err(ConfigError::Order("min", "max"));
                }
                Ok(Lane {
                    min,
                    max,
                    max_probability: probability("max-probability", p)?,
                    average: 0.0,
                    since_mark: 0,
                    idle_since: Some(Time::ZERO),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            lanes,
            gentle: config.gentle,
            weight,
            spread: config.spread,
            packet_time: port.rate.transmission_time(port.packet),
            coin: port.coin(),
        })
    }

    fn probability(&self, queue: usize) -> f64 {
        let lane = &self.lanes[queue];
        let average = lane.average;
        if average <= lane.min {
            0.0
        } else if average <= lane.max {
            lane.max_probability * (average - lane.min) / (lane.max - lane.min)
        } else if self.gentle {
            let above = (average - lane.max) / lane.max;
            (lane.max_probability + (1.0 - lane.max_probability) * above).min(1.0)
        } else {
            1.0
        }
    }
}

impl Marking for Red {
    fn needs(&self) -> Needs {
        Needs {
            dequeue: false,
            service: true,
        }
    }

    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        let p = self.probability(seen.queue);
        let lane = &mut self.lanes[seen.queue];
        if p <= 0.0 {
            lane.since_mark = 0;
            return None;
        }
        let p = match f64::from(lane.since_mark) * p {
            spent if self.spread && spent < 1.0 => p / (1.0 - spent),
            _ if self.spread => 1.0,
            _ => p,
        };
        lane.since_mark += 1;
        if !self.coin.heads(p) {
            return None;
        }
        lane.since_mark = 0;
        Some(if p >= 1.0 {
            MarkReason::Queue
        } else {
            MarkReason::Probability
        })
    }

    #[inline(never)]
    fn at_enqueue(&mut self, point: MarkPoint, seen: Seen, queues: &Queues) -> Note {
        let lane = &mut self.lanes[seen.queue];
        if let Some(since) = lane.idle_since.take() {
            let left = seen.now.saturating_sub(since) / self.packet_time;
            lane.average *= power(1.0 - self.weight, left);
        }
        lane.average += self.weight * (real(seen.queue_length) - lane.average);
        match point {
            MarkPoint::Enqueue => self.decide(seen, queues).into(),
            MarkPoint::Dequeue => Note::Pass,
        }
    }

    fn served(&mut self, service: Service, _: &Queues) {
        if service.emptied {
            self.lanes[service.queue].idle_since = Some(service.finish);
        }
    }

    fn threshold(&self, queue: usize, _: &Queues) -> Option<f64> {
        Some(self.lanes[queue].min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::marker::tests::{port, seen};
    use crate::units::Packets;

    fn packets(n: u64) -> PerIndex<Length> {
        PerIndex::All(Length::Packets(Packets::new(n)))
    }

    /// 40 and 80 packets, QJUMP §6.3's best compromise.
    fn config() -> RedConfig {
        RedConfig {
            min: packets(40),
            max: packets(80),
            max_probability: PerIndex::All(0.1),
            gentle: false,
            average: Average::Instantaneous,
            spread: false,
        }
    }

    fn red(config: &RedConfig) -> Red {
        Red::new(config, &port(&[1])).unwrap()
    }

    fn arrive(red: &mut Red, packets: u64) -> Note {
        let queues = Queues::new(1);
        red.at_enqueue(MarkPoint::Enqueue, seen(0, packets * 1500), &queues)
    }

    fn probability_at(config: &RedConfig, packets: u64) -> f64 {
        let mut red = red(config);
        arrive(&mut red, packets);
        red.probability(0)
    }

    #[test]
    fn ramp_by_hand() {
        let config = config();
        assert_eq!(probability_at(&config, 40), 0.0);
        assert_eq!(probability_at(&config, 60), 0.05);
        assert_eq!(probability_at(&config, 80), 0.1);
        assert_eq!(probability_at(&config, 81), 1.0);
    }

    #[test]
    fn gentle_goes_on_to_twice_the_maximum() {
        let config = RedConfig {
            gentle: true,
            ..config()
        };
        assert_eq!(probability_at(&config, 80), 0.1);
        assert_eq!(probability_at(&config, 120), 0.1 + 0.9 * 0.5);
        assert_eq!(probability_at(&config, 160), 1.0);
        assert_eq!(probability_at(&config, 200), 1.0);
    }

    #[test]
    fn average_by_hand() {
        let mut red = red(&RedConfig {
            average: Average::Ewma(0.25),
            ..config()
        });
        arrive(&mut red, 40);
        arrive(&mut red, 80);
        // 0.25 x 60,000 = 15,000; 15,000 + 0.25 x (120,000 - 15,000) = 41,250.
        assert_eq!(red.lanes[0].average, 41_250.0);
        // Idle for two packet times: x 0.75^2, then a packet arrives.
        let queues = Queues::new(1);
        red.served(
            Service {
                queue: 0,
                size: 1500,
                now: Time::ZERO,
                finish: Time::from_ns(1200),
                emptied: true,
            },
            &queues,
        );
        let later = Seen {
            now: Time::from_ns(3700),
            ..seen(0, 1500)
        };
        red.at_enqueue(MarkPoint::Enqueue, later, &queues);
        let aged = 41_250.0 * 0.5625;
        assert_eq!(red.lanes[0].average, aged + 0.25 * (1500.0 - aged));
    }

    #[test]
    fn wred_has_thresholds_of_its_own_for_each_queue() {
        let config = RedConfig {
            min: PerIndex::Each(vec![
                Length::Packets(Packets::new(10)),
                Length::Packets(Packets::new(40)),
            ]),
            ..config()
        };
        let red = Red::new(&config, &port(&[1, 1])).unwrap();
        assert_eq!(red.threshold(0, &Queues::new(2)), Some(15_000.0));
        assert_eq!(red.threshold(1, &Queues::new(2)), Some(60_000.0));
    }

    #[test]
    fn spread_marks_keep_their_distance() {
        let mut red = red(&RedConfig {
            spread: true,
            ..config()
        });
        // p = 0.05: with spreading the distance between marks is uniform in 1..=20.
        let mut gaps = Vec::new();
        let mut gap = 0;
        for _ in 0..20_000 {
            gap += 1;
            if arrive(&mut red, 60) != Note::Pass {
                gaps.push(gap);
                gap = 0;
            }
        }
        assert!(gaps.iter().all(|&gap| gap <= 20));
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((mean - 10.5).abs() < 0.5, "{mean}");
    }
}
