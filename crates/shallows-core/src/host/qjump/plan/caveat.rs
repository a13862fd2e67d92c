//! What breaks the guarantee of a plan.

use std::fmt::{self, Display, Formatter};

use super::{Latency, Plan};
use crate::host::qjump::Phase;
use crate::units::{Bytes, Rate, Time};

/// What is around the hosts that are planned for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Surroundings {
    /// The slowest link between switches, with its name.
    pub core: Option<(String, Rate)>,
    /// Hosts that do not take part.
    pub others: u32,
    /// The largest packet that hosts send.
    pub largest_packet: Option<Bytes>,
    /// The longest epoch that is good enough.
    pub wanted_epoch: Option<Time>,
    /// How many levels the switches serve in strict priority; none if they do otherwise.
    pub strict_queues: Option<usize>,
    /// How much of each edge link the flows of a distribution ask for.
    pub load: Option<f64>,
}

/// Why a plan may not hold what it says.
#[derive(Debug, Clone, PartialEq)]
pub enum Caveat {
    /// No level has f = 1.
    NothingGuaranteed,
    /// A link is slower in the core than at the edge (§3.1).
    SlowCore {
        /// Which link.
        link: String,
        /// Its rate.
        rate: Rate,
        /// R.
        edge: Rate,
    },
    /// Hosts that do not take part (§5).
    Others(u32),
    /// Packets that never pass a level.
    LargePackets {
        /// The level.
        level: usize,
        /// Its bytes an epoch.
        bytes: Bytes,
        /// The largest packet.
        largest: Bytes,
    },
    /// The epoch is longer than it may be.
    LongEpoch {
        /// The epoch.
        epoch: Time,
        /// The longest that is good enough.
        wanted: Time,
        /// The most hosts for which it would be.
        most_hosts: u32,
        /// The largest P for which it would be.
        largest_packet: Bytes,
    },
    /// Switches that do not know the levels apart.
    FewQueues {
        /// Strict queues.
        queues: usize,
        /// Levels.
        levels: usize,
    },
    /// Flows that need more than their level may send.
    Overloaded {
        /// The level.
        level: usize,
        /// What its flows need.
        needed: Rate,
        /// What it may send.
        rate: Rate,
    },
    /// Synchronized epochs need synchronized clocks (§3.1).
    Clocks,
}

impl Plan {
    /// What has to be different, or watched, for the plan to hold.
    pub fn caveats(&self, around: &Surroundings) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let guaranteed = |latency| matches!(latency, Latency::Guaranteed(_));
        if !self.levels.iter().any(|level| guaranteed(level.latency)) {
            caveats.push(Caveat::NothingGuaranteed);
        }
        if let Some((link, rate)) = &around.core
            && *rate < self.network.rate
        {
            caveats.push(Caveat::SlowCore {
                link: link.clone(),
                rate: *rate,
                edge: self.network.rate,
            });
        }
        if around.others > 0 {
            caveats.push(Caveat::Others(around.others));
        }
        if let Some(largest) = around.largest_packet {
            for (level, planned) in self.levels.iter().enumerate() {
                if let Some(bytes) = planned.bytes.filter(|&bytes| bytes < largest) {
                    caveats.push(Caveat::LargePackets {
                        level,
                        bytes,
                        largest,
                    });
                }
            }
        }
        if let Some(wanted) = around.wanted_epoch.filter(|&wanted| self.epoch > wanted) {
            caveats.push(Caveat::LongEpoch {
                epoch: self.epoch,
                wanted,
                most_hosts: self.network.most_hosts(self.phase, wanted),
                largest_packet: self.network.largest_packet(self.phase, wanted),
            });
        }
        if let Some(queues) = around.strict_queues
            && queues < self.levels.len()
        {
            let levels = self.levels.len();
            caveats.push(Caveat::FewQueues { queues, levels });
        }
        for (level, needed) in self.overloaded(around.load.unwrap_or_default()) {
            let rate = self.levels[level].rate;
            caveats.push(Caveat::Overloaded {
                level,
                needed,
                rate,
            });
        }
        if self.phase == Phase::Synchronized {
            caveats.push(Caveat::Clocks);
        }
        caveats
    }
}

impl Display for Caveat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingGuaranteed => f.write_str(
                "no level is guaranteed: the highest has f above 1; add a factor of 1 or an \
                 application that is guaranteed",
            ),
            Self::SlowCore { link, rate, edge } => write!(
                f,
                "{link} has {rate}, less than the {edge} of the edge: packets of all hosts may \
                 queue there, so there is no bound; plan with a rate of {rate}"
            ),
            Self::Others(hosts) => write!(
                f,
                "{hosts} hosts do not take part: the bound holds only if switches give their \
                 packets the lowest priority, whatever they carry"
            ),
            Self::LargePackets {
                level,
                bytes,
                largest,
            } => write!(
                f,
                "level {level} may send {bytes} an epoch: its packets must not be larger, and \
                 hosts send up to {largest}"
            ),
            Self::LongEpoch {
                epoch,
                wanted,
                most_hosts,
                largest_packet,
            } => write!(
                f,
                "the epoch is {epoch}, longer than {wanted}: it would hold for {most_hosts} hosts, \
                 or with a P of {largest_packet}"
            ),
            Self::FewQueues { queues, levels } => write!(
                f,
                "the switches serve {queues} queues in strict priority, there are {levels} levels"
            ),
            Self::Overloaded {
                level,
                needed,
                rate,
            } => write!(
                f,
                "flows of level {level} need {needed} at this load and may send {rate}: some will \
                 wait for more epochs than one"
            ),
            Self::Clocks => f.write_str(
                "synchronized epochs need clocks that agree within a packet (PTP); without them \
                 plan for mesochronous epochs",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Network;
    use super::*;

    fn plan(phase: Phase, factors: &[f64]) -> Plan {
        let network = Network {
            hosts: 1000,
            packet: Bytes::new(256),
            rate: Rate::from_gbps(10),
            processing: Time::from_us(4),
        };
        Plan::from_factors(network, phase, factors).unwrap()
    }

    #[test]
    fn a_plan_without_trouble_has_no_caveats() {
        let plan = plan(Phase::Mesochronous, &[1000.0, 1.0]);
        let around = Surroundings {
            core: Some(("leaf0->spine0".to_owned(), Rate::from_gbps(10))),
            largest_packet: Some(Bytes::new(256)),
            wanted_epoch: Some(Time::from_us(500)),
            strict_queues: Some(2),
            ..Surroundings::default()
        };
        assert_eq!(plan.caveats(&around), []);
    }

    #[test]
    fn each_assumption_of_the_bound_has_a_caveat() {
        let around = Surroundings {
            core: Some(("leaf0->spine0".to_owned(), Rate::from_gbps(1))),
            others: 3,
            largest_packet: Some(Bytes::new(1500)),
            wanted_epoch: Some(Time::from_us(200)),
            strict_queues: Some(1),
            load: None,
        };
        let caveats = plan(Phase::Synchronized, &[1000.0, 2.0]).caveats(&around);
        assert_eq!(
            caveats,
            [
                Caveat::NothingGuaranteed,
                Caveat::SlowCore {
                    link: "leaf0->spine0".to_owned(),
                    rate: Rate::from_gbps(1),
                    edge: Rate::from_gbps(10),
                },
                Caveat::Others(3),
                Caveat::LargePackets {
                    level: 1,
                    bytes: Bytes::new(512),
                    largest: Bytes::new(1500),
                },
                // 196 us at 10 Gbps are 245,000 B.
                Caveat::LongEpoch {
                    epoch: "208.8us".parse().unwrap(),
                    wanted: Time::from_us(200),
                    most_hosts: 957,
                    largest_packet: Bytes::new(245),
                },
                Caveat::FewQueues {
                    queues: 1,
                    levels: 2,
                },
                Caveat::Clocks,
            ]
        );
        assert!(
            caveats[4]
                .to_string()
                .contains("957 hosts, or with a P of 245B")
        );
    }
}
