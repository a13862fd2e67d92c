//! Jitter of a host: a random time that it adds to each packet before its NIC.
//!
//! Schedulers, interrupts and locks of a real host delay some packets more than others. This gate
//! stands for all of them by one distribution. Packets of one flow keep their order, as in a
//! kernel's stack: one that would overtake another leaves with it. Packets of other flows may
//! overtake.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::gate::{Gate, Release, Verdict};
use crate::packet::Packet;
use crate::random::Coin;
use crate::units::Time;

/// Distribution of the times that a host adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum JitterDistribution {
    /// Without memory: 37% of the packets take longer than the mean, 1% longer than 4.6 times it.
    #[default]
    Exponential,
    /// Evenly from 0 to twice the mean.
    Uniform,
}

/// The jitter of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct JitterGateConfig {
    /// The mean time that is added to a packet.
    pub mean: Time,
    /// Its distribution.
    pub distribution: JitterDistribution,
    /// Seed of the host's own stream.
    pub seed: u64,
}

impl JitterGateConfig {
    /// Builds the gate.
    pub fn build<P: Packet>(&self) -> JitterGate<P> {
        JitterGate {
            config: *self,
            coin: Coin::new(self.seed, 0),
            held: BTreeMap::new(),
            offered: 0,
            flows: BTreeMap::new(),
        }
    }
}

/// A gate that holds each packet for a random time.
#[derive(Clone, Debug)]
pub struct JitterGate<P> {
    config: JitterGateConfig,
    coin: Coin,
    /// Held packets with their destinations, by the time at which they leave and then by number.
    held: BTreeMap<(Time, u64), (P, Option<u32>)>,
    /// Number of packets so far.
    offered: u64,
    /// Flows with held packets.
    flows: BTreeMap<u64, HeldFlow>,
}

#[derive(Clone, Copy, Debug)]
struct HeldFlow {
    /// Departure of its last packet.
    last: Time,
    packets: u64,
}

impl<P> JitterGate<P> {
    fn draw(&mut self) -> Time {
        let mean = self.config.mean;
        match self.config.distribution {
            JitterDistribution::Exponential => self.coin.exponential_time(mean),
            JitterDistribution::Uniform => self.coin.time_below(mean.saturating_add(mean)),
        }
    }
}

impl<P: Packet> Gate<P> for JitterGate<P> {
    fn offer(&mut self, now: Time, packet: P, to: Option<u32>) -> Verdict {
        let due = now.saturating_add(self.draw());
        let flow = self.flows.entry(packet.flow()).or_insert(HeldFlow {
            last: now,
            packets: 0,
        });
        flow.last = flow.last.max(due);
        flow.packets += 1;
        self.held.insert((flow.last, self.offered), (packet, to));
        self.offered += 1;
        Verdict::Held
    }

    fn release(&mut self, now: Time) -> Release<P> {
        let Some(first) = self.held.first_entry() else {
            return Release::Idle;
        };
        let (due, _) = *first.key();
        if due > now {
            return Release::At(due);
        }
        let (packet, to) = first.remove();
        if let Some(flow) = self.flows.get_mut(&packet.flow()) {
            flow.packets -= 1;
            if flow.packets == 0 {
                self.flows.remove(&packet.flow());
            }
        }
        Release::Packet { packet, to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Descriptor;

    fn gate(distribution: JitterDistribution) -> JitterGate<Descriptor> {
        let config = JitterGateConfig {
            mean: Time::from_us(10),
            distribution,
            seed: 7,
        };
        config.build()
    }

    fn packet(flow: u64, tag: u64) -> Descriptor {
        Descriptor {
            size: 1500,
            flow,
            tag,
            ..Descriptor::default()
        }
    }

    /// Offers packets of these flows, one a microsecond, and returns (flow, tag, time in the gate).
    fn through(gate: &mut JitterGate<Descriptor>, flows: &[u64]) -> Vec<(u64, u64, Time)> {
        let mut left = Vec::new();
        let mut release = |gate: &mut JitterGate<Descriptor>, until: Time| {
            let mut now = Time::ZERO;
            loop {
                match gate.release(now) {
                    Release::Packet { packet, .. } => {
                        let offered = Time::from_us(packet.tag);
                        left.push((packet.flow, packet.tag, now.saturating_sub(offered)));
                    }
                    Release::At(at) if at <= until => now = at,
                    _ => return,
                }
            }
        };
        for (tag, &flow) in (0..).zip(flows) {
            let now = Time::from_us(tag);
            release(gate, now);
            assert_eq!(gate.offer(now, packet(flow, tag), Some(3)), Verdict::Held);
        }
        release(gate, Time::MAX);
        left
    }

    #[test]
    fn packets_take_the_mean_and_none_is_lost() {
        for (distribution, longest) in [
            (JitterDistribution::Exponential, None),
            (JitterDistribution::Uniform, Some(Time::from_us(20))),
        ] {
            // A flow for each packet, so that none waits for another.
            let flows: Vec<u64> = (0..100_000).collect();
            let mut gate = gate(distribution);
            let left = through(&mut gate, &flows);
            assert_eq!(left.len(), flows.len());
            assert!(gate.flows.is_empty() && gate.held.is_empty());
            let total: u64 = left.iter().map(|(.., time)| time.ps()).sum();
            let mean = total as f64 / left.len() as f64;
            // Three standard errors of the wider distribution, the exponential one, are 0.95%.
            assert!(
                (mean / 10e6 - 1.0).abs() < 0.0095,
                "{distribution:?} {mean}"
            );
            let most = left.iter().map(|&(.., time)| time).max();
            assert!(
                longest.is_none_or(|longest| most < Some(longest)),
                "{most:?}"
            );
        }
    }

    #[test]
    fn one_in_a_hundred_takes_longer_than_the_logarithm_says() {
        let flows: Vec<u64> = (0..100_000).collect();
        let left = through(&mut gate(JitterDistribution::Exponential), &flows);
        // ln 100 = 4.605; three standard deviations of 1,000 are 94.
        let late = left.iter().filter(|(.., time)| time.ps() > 46_051_702);
        let late = late.count();
        assert!((906..=1094).contains(&late), "{late}");
    }

    #[test]
    fn a_flow_keeps_its_order_and_others_overtake() {
        let flows: Vec<u64> = (0..1000).map(|number| number % 2).collect();
        let left = through(&mut gate(JitterDistribution::Exponential), &flows);
        for flow in 0..2 {
            let of_flow = left.iter().filter(|(of, ..)| *of == flow);
            assert!(of_flow.map(|(_, tag, _)| tag).is_sorted());
        }
        assert!(!left.iter().map(|(_, tag, _)| tag).is_sorted());
    }

    #[test]
    fn hosts_draw_from_streams_of_their_own() {
        let flows: Vec<u64> = (0..100).collect();
        let of_seed = |seed| {
            let config = JitterGateConfig {
                mean: Time::from_us(10),
                distribution: JitterDistribution::Exponential,
                seed,
            };
            through(&mut config.build(), &flows)
        };
        assert_eq!(of_seed(1), of_seed(1));
        assert_ne!(of_seed(1), of_seed(2));
    }
}
