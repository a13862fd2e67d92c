//! Caveats: conditions that break the guarantee of a plan.

use std::fmt::{self, Display, Formatter};

use super::{Latency, Plan, PlannedLevel};
use crate::host::qjump::Phase;
use crate::units::{Bytes, Rate, Time};

/// The environment of the planned hosts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Surroundings {
    /// The slowest link between switches, with its name.
    pub core: Option<(String, Rate)>,
    /// Hosts that do not take part.
    pub others: u32,
    /// Length on the wire of a host's largest packet.
    pub largest_packet: Option<Bytes>,
    /// The longest epoch that is good enough.
    pub wanted_epoch: Option<Time>,
    /// Number of levels that the switches serve in strict priority; none if they do otherwise.
    pub strict_queues: Option<usize>,
    /// Load of a distribution's flows on each edge link.
    pub load: Option<f64>,
}

/// The reason why a plan may not hold what it says.
#[derive(Debug, Clone, PartialEq)]
pub enum Caveat {
    /// No level has f = 1.
    NothingGuaranteed,
    /// A link is slower in the core than at the edge (§3.1).
    SlowCore {
        /// The link.
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
        /// The sending application, if known.
        application: Option<String>,
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
    /// A level that no flow of the distribution is small enough for.
    NoFlows {
        /// The level.
        level: usize,
        /// Its bytes an epoch.
        bytes: Bytes,
        /// Length on the wire of the smallest flow.
        smallest: Bytes,
    },
    /// Flows that need more than their level may send.
    Overloaded {
        /// The level.
        level: usize,
        /// Rate that its flows need.
        needed: Rate,
        /// Rate that it may use.
        rate: Rate,
    },
    /// Synchronized epochs need synchronized clocks (§3.1).
    Clocks,
}

impl Plan {
    /// Changes and observations that the plan requires to hold.
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
        caveats.extend(self.large_packets(around));
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
        caveats.extend(self.levels_without_flows());
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

    fn levels_without_flows(&self) -> Option<Caveat> {
        let flows = |of: &PlannedLevel| of.flows.map(|flows| flows.from);
        // All levels but the top one have a limit that some flow set.
        let (level, planned) = self.levels.iter().enumerate().next_back()?;
        let none = flows(planned)?.is_none();
        let smallest = self.levels.iter().filter_map(|of| flows(of)?).min()?;
        planned.bytes.filter(|_| none).map(|bytes| Caveat::NoFlows {
            level,
            bytes,
            smallest,
        })
    }

    /// Packets that never pass, of each application of a level, or of hosts where none are known.
    fn large_packets(&self, around: &Surroundings) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        for (level, planned) in self.levels.iter().enumerate() {
            let Some(bytes) = planned.bytes else {
                continue;
            };
            let of_applications = planned.applications.iter();
            let of_applications = of_applications.map(|of| (of.largest, Some(of.name.clone())));
            let of_hosts = around.largest_packet.map(|largest| (largest, None));
            let of_hosts = of_hosts.filter(|_| planned.applications.is_empty());
            let too_large = of_applications
                .chain(of_hosts)
                .filter(|&(largest, _)| largest > bytes);
            caveats.extend(
                too_large.map(|(largest, application)| Caveat::LargePackets {
                    level,
                    bytes,
                    largest,
                    application,
                }),
            );
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
                application,
            } => match application {
                None => write!(
                    f,
                    "level {level} may send {bytes} per epoch: its packets must not be larger, \
                     and hosts send up to {largest}"
                ),
                Some(name) => write!(
                    f,
                    "{name} breaks if it sends its largest packets, {largest}: level {level} may \
                     send {bytes} per epoch, and drops what is larger"
                ),
            },
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
            Self::NoFlows {
                level,
                bytes,
                smallest,
            } => write!(
                f,
                "no flow belongs to level {level}, which may send {bytes} per epoch: the smallest \
                 takes {smallest} on the link; leave the level to other traffic, or plan with a P \
                 of {smallest}"
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
    fn a_top_level_without_flows_is_said() {
        let network = plan(Phase::Mesochronous, &[1.0]).network;
        let cut = |sizes: &[f64]| {
            let plan = Plan::from_flow_sizes(network, Phase::Mesochronous, sizes, 4).unwrap();
            plan.caveats(&Surroundings::default())
        };
        let caveats = cut(&[9_079.5, 20_000.0, 80_000.0]);
        let [caveat @ Caveat::NoFlows { .. }] = &caveats[..] else {
            panic!("{caveats:?}");
        };
        let said =
            "no flow belongs to level 3, which may send 256B per epoch: the smallest takes 9.08KB";
        assert!(caveat.to_string().starts_with(said), "{caveat}");
        assert_eq!(cut(&[200.0, 20_000.0, 80_000.0]), []);
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
                    application: None,
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
