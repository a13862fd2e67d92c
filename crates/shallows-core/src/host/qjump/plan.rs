//! Choosing levels for a network (§5): from factors, from a known mix of applications, or from a
//! known distribution of flow sizes.
//!
//! Level 0 is the lowest priority. The factor f of a level is always its bytes an epoch divided by
//! P, so that n / f hosts can send to one destination at once without a longer delay (eq. 4). The
//! paper converts rates by f = nT / R (§6.5), which is this with the epoch of eq. 1 without ε; with
//! eq. 2's doubled epoch a rate needs twice the factor, and more with ε. All bytes are those on the
//! link, with what a frame takes there besides its packet.

mod caveat;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use caveat::{Caveat, Surroundings};

use super::{MAX_LEVELS, Network, NetworkError, Phase};
use crate::units::{Bytes, Rate, Time};

/// Requirements of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Name of the application.
    pub name: String,
    /// Required rate or bytes.
    pub need: Need,
    /// Length of its largest packet on the wire.
    pub largest: Bytes,
}

/// Share of a host's link that an application needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Little, within a guaranteed time: f = 1.
    Guaranteed,
    /// This rate, with as little interference as that allows.
    Rate(Rate),
    /// As much as there is: the level without a limit.
    Bulk,
}

/// A level of a [`Plan`].
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedLevel {
    /// Applications that use it.
    pub applications: Vec<Application>,
    /// f, if it has a limit.
    pub factor: Option<f64>,
    /// Bytes per epoch and host.
    pub bytes: Option<Bytes>,
    /// Rate per host.
    pub rate: Rate,
    /// Latency bound of its packets in the network.
    pub latency: Latency,
    /// The flows that it is for, if it was chosen for a distribution.
    pub flows: Option<FlowShare>,
}

/// The time from a packet's entry into the network to its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// Never more than this (eqs. 1 and 2).
    Guaranteed(Time),
    /// No more than this while no more than n / f hosts send to one destination at each level from
    /// this one up.
    Expected(Time),
    /// Whatever the levels above leave.
    Unbounded,
}

/// Flows of a distribution that a level is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowShare {
    /// The smallest of them, if there are any.
    pub from: Option<Bytes>,
    /// The largest of them, which passes in one epoch; none for the level without a limit.
    pub up_to: Option<Bytes>,
    /// The share of all flows.
    pub flows: f64,
    /// The share of all bytes.
    pub bytes: f64,
}

/// Epoch and levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The network planned for.
    pub network: Network,
    /// Alignment of the hosts' epochs.
    pub phase: Phase,
    /// The network epoch (eq. 1 or 2).
    pub epoch: Time,
    /// From the lowest priority.
    pub levels: Vec<PlannedLevel>,
}

/// The reason why there is no plan.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PlanError {
    /// The network makes no sense.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Nothing is asked for.
    #[error("there is nothing to plan for: name applications, factors or a distribution")]
    Nothing,
    /// Too many levels.
    #[error("there are {MAX_LEVELS} levels at most, not {0}")]
    Levels(usize),
    /// A factor outside of eq. 4.
    #[error("a factor is from 1 to the number of hosts, {hosts} (eq. 4), not {factor}")]
    Factor {
        /// f.
        factor: f64,
        /// n.
        hosts: u32,
    },
    /// Factors in the wrong order.
    #[error(
        "factors go from the lowest priority to the highest, each smaller than the one before: {before}, {after}"
    )]
    Order {
        /// One.
        before: f64,
        /// The next.
        after: f64,
    },
    /// A rate beyond the link.
    #[error("{name} asks for {rate}, the slowest edge link has {link}: plan it as bulk")]
    TooFast {
        /// The application.
        name: String,
        /// Requested rate.
        rate: Rate,
        /// R.
        link: Rate,
    },
    /// A need beyond eq. 4.
    #[error(
        "{name} needs {bytes} per epoch, which is f = {factor:.1}; f is at most the number of hosts, \
         {hosts} (eq. 4), which is {most}: {}",
        match .least_packet {
            Some(packet) => format!("it takes a P of {packet} or more on the link, or plan it as bulk"),
            None => "plan it as bulk".to_owned(),
        }
    )]
    TooMuch {
        /// The application.
        name: String,
        /// Bytes needed per epoch.
        bytes: Bytes,
        /// f.
        factor: f64,
        /// n.
        hosts: u32,
        /// Rate of a level of f = n.
        most: Rate,
        /// The least P for which f is no more than n, if there is one.
        least_packet: Option<Bytes>,
    },
    /// No level between the guaranteed one and the one without a limit.
    #[error("a distribution needs 2 to {MAX_LEVELS} levels, not {0}")]
    Partition(usize),
}

impl PlannedLevel {
    /// The names of its applications.
    pub fn names(&self) -> Vec<&str> {
        let applications = self.applications.iter();
        applications.map(|application| &*application.name).collect()
    }
}

impl Plan {
    /// Levels with these factors, from the lowest priority; f = n has no limit (§3.2: "full network
    /// throughput is available").
    pub fn from_factors(
        network: Network,
        phase: Phase,
        factors: &[f64],
    ) -> Result<Self, PlanError> {
        let hosts = network.hosts;
        let possible = 1.0..=f64::from(hosts);
        if let Some(&factor) = factors.iter().find(|factor| !possible.contains(factor)) {
            return Err(PlanError::Factor { factor, hosts });
        }
        if let Some(pair) = factors.windows(2).find(|pair| pair[0] <= pair[1]) {
            let (before, after) = (pair[0], pair[1]);
            return Err(PlanError::Order { before, after });
        }
        let limits = factors.iter().map(|&factor| {
            let bytes = network.bytes_per_epoch(factor);
            (factor < f64::from(hosts)).then_some(bytes)
        });
        Self::new(network, phase, limits.map(Unlabelled::from).collect())
    }

    /// Levels for a known application mix (§5, method 1): the less an application needs, the higher
    /// its level. A level for a rate has the bytes of the application's largest packet at least.
    ///
    /// Where there are more needs than levels, those of neighbours that are nearest to each other
    /// share a level that has room for both (§5, footnote 4).
    pub fn from_applications(
        network: Network,
        phase: Phase,
        applications: &[Application],
    ) -> Result<Self, PlanError> {
        network.validate()?;
        let mut levels: Vec<Unlabelled> = Vec::new();
        let mut sorted: Vec<&Application> = applications.iter().collect();
        sorted.sort_by_key(|application| std::cmp::Reverse(application.need));
        for application in sorted {
            let bytes = network.bytes_for(application, phase)?;
            let application = application.clone();
            match levels.last_mut() {
                Some(level) if level.bytes == bytes => level.applications.push(application),
                _ => levels.push(Unlabelled {
                    bytes,
                    applications: vec![application],
                    flows: None,
                }),
            }
        }
        let most = network.bytes_per_epoch(f64::from(network.hosts));
        while levels.len() > MAX_LEVELS {
            merge_nearest(&mut levels, most);
        }
        // Different needs may come to the same bytes.
        levels.sort_by_key(|level| std::cmp::Reverse(level.bytes.map_or(u64::MAX, Bytes::get)));
        Self::new(network, phase, levels)
    }

    /// Levels for a known distribution of flow sizes (§5, method 2): a flow belongs to the highest
    /// level at which it passes in one epoch. The top level has f = 1, the lowest has no limit, and
    /// those between them get equal shares of the flows that are neither within P nor beyond n P.
    ///
    /// `sizes` are quantiles of the distribution at equal steps, in bytes and in order.
    pub fn from_flow_sizes(
        network: Network,
        phase: Phase,
        sizes: &[f64],
        levels: usize,
    ) -> Result<Self, PlanError> {
        network.validate()?;
        if !(2..=MAX_LEVELS).contains(&levels) {
            return Err(PlanError::Partition(levels));
        }
        if sizes.is_empty() {
            return Err(PlanError::Nothing);
        }
        let packet = network.packet.get() as f64;
        let below = |size: f64| sizes.partition_point(|&other| other <= size);
        let (first, last) = (below(packet), below(packet * f64::from(network.hosts)));
        let mut limits = vec![network.packet];
        for step in 1..levels - 1 {
            // The largest flow of each share.
            let index = first + (last - first) * step / (levels - 2);
            let size = sizes[index.saturating_sub(1)].ceil() as u64;
            let size = Bytes::new(size);
            if limits.last().is_some_and(|&before| size > before) {
                limits.push(size);
            }
        }
        let total: f64 = sizes.iter().sum();
        let mut from = 0;
        let mut planned: Vec<Unlabelled> = Vec::new();
        let ends = limits
            .iter()
            .map(|&limit| (Some(limit), below(limit.get() as f64)));
        for (bytes, to) in ends.chain([(None, sizes.len())]) {
            planned.push(Unlabelled {
                bytes,
                applications: Vec::new(),
                flows: Some(FlowShare {
                    from: (from < to).then(|| Bytes::new(sizes[from].ceil() as u64)),
                    up_to: bytes,
                    flows: (to - from) as f64 / sizes.len() as f64,
                    bytes: sizes[from..to].iter().fold(0.0, |sum, size| sum + size) / total,
                }),
            });
            from = to;
        }
        planned.reverse();
        Self::new(network, phase, planned)
    }

    fn new(network: Network, phase: Phase, levels: Vec<Unlabelled>) -> Result<Self, PlanError> {
        network.validate()?;
        if levels.is_empty() {
            return Err(PlanError::Nothing);
        }
        if levels.len() > MAX_LEVELS {
            return Err(PlanError::Levels(levels.len()));
        }
        let epoch = network.network_epoch(phase);
        let count = levels.len();
        let levels = levels.into_iter().enumerate().map(|(number, level)| {
            // Every level from this one up fills what eq. 2 leaves for one.
            let above = (count - number) as u64;
            let queueing = epoch.saturating_sub(network.processing).ps();
            let expected = Time::from_ps(queueing.saturating_mul(above));
            PlannedLevel {
                factor: level
                    .bytes
                    .map(|bytes| bytes.get() as f64 / network.packet.get() as f64),
                rate: match level.bytes {
                    Some(bytes) => Rate::from_bytes_per(bytes, epoch).min(network.rate),
                    None => network.rate,
                },
                latency: match level.bytes {
                    None => Latency::Unbounded,
                    Some(bytes) if bytes <= network.packet && above == 1 => {
                        Latency::Guaranteed(epoch)
                    }
                    Some(_) => Latency::Expected(expected.saturating_add(network.processing)),
                },
                bytes: level.bytes,
                applications: level.applications,
                flows: level.flows,
            }
        });
        Ok(Self {
            network,
            phase,
            epoch,
            levels: levels.collect(),
        })
    }

    /// Levels whose flows need more than they may send if a share `load` of each edge link is asked
    /// for, with the rate that they need. Empty unless the plan is for a distribution.
    pub fn overloaded(&self, load: f64) -> Vec<(usize, Rate)> {
        let levels = self.levels.iter().enumerate();
        let needs = levels.filter_map(|(number, level)| {
            let share = level.flows?.bytes;
            let needed = Rate::from_bps((load * share * self.network.rate.bps() as f64) as u64);
            (needed > level.rate).then_some((number, needed))
        });
        needs.collect()
    }
}

impl Network {
    /// Bytes per epoch that an application needs; none if it has no limit.
    fn bytes_for(
        &self,
        application: &Application,
        phase: Phase,
    ) -> Result<Option<Bytes>, PlanError> {
        let Application {
            name,
            need,
            largest,
        } = application;
        let (rate, link) = match *need {
            Need::Guaranteed => return Ok(Some(self.packet)),
            Need::Bulk => return Ok(None),
            Need::Rate(rate) => (rate, self.rate),
        };
        let name = name.clone();
        if rate > link {
            return Err(PlanError::TooFast { name, rate, link });
        }
        // Less than the guaranteed level has is no reason to have a level below it.
        let bytes = bytes_at(rate, self.network_epoch(phase));
        let bytes = bytes.max(*largest).max(self.packet);
        let hosts = self.hosts;
        let most = self.bytes_per_epoch(f64::from(hosts));
        if bytes <= most {
            return Ok(Some(bytes));
        }
        Err(PlanError::TooMuch {
            name,
            bytes,
            factor: bytes.get() as f64 / self.packet.get() as f64,
            hosts,
            most: self.level_rate(f64::from(hosts), phase),
            least_packet: self.least_packet(rate, *largest, phase),
        })
    }

    /// The least P for which a rate T and a packet need f = n at most, if there is one: n P has to be
    /// T times the epoch, which grows with P.
    fn least_packet(&self, rate: Rate, largest: Bytes, phase: Phase) -> Option<Bytes> {
        let rounds = match phase {
            Phase::Synchronized => 1.0,
            Phase::Mesochronous => 2.0,
        };
        let share = rounds * rate.bps() as f64 / self.rate.bps() as f64;
        if share >= 1.0 {
            return None;
        }
        let hosts = f64::from(self.hosts);
        let meanwhile = rate.bps() as f64 / 8.0 * self.processing.as_secs_f64();
        let for_rate = meanwhile / (hosts * (1.0 - share));
        let for_packet = largest.get() as f64 / hosts;
        Some(Bytes::new(for_rate.max(for_packet).ceil() as u64))
    }

    /// The most hosts for which the epoch is no longer than `epoch`; 0 if there are none.
    pub fn most_hosts(&self, phase: Phase, epoch: Time) -> u32 {
        let bytes = self.rate.bytes_in(epoch.saturating_sub(self.processing));
        let rounds = match phase {
            Phase::Synchronized => 1,
            Phase::Mesochronous => 2,
        };
        let hosts = bytes.get() / self.packet.get().max(1) / rounds;
        u32::try_from(hosts).unwrap_or(u32::MAX)
    }

    /// The largest P for which the epoch is no longer than `epoch`; 0 if there is none.
    pub fn largest_packet(&self, phase: Phase, epoch: Time) -> Bytes {
        let bytes = self.rate.bytes_in(epoch.saturating_sub(self.processing));
        let rounds = match phase {
            Phase::Synchronized => 1,
            Phase::Mesochronous => 2,
        };
        Bytes::new(bytes.get() / u64::from(self.hosts.max(1)) / rounds)
    }
}

/// A level before its rate and latency are known.
struct Unlabelled {
    bytes: Option<Bytes>,
    applications: Vec<Application>,
    flows: Option<FlowShare>,
}

impl From<Option<Bytes>> for Unlabelled {
    fn from(bytes: Option<Bytes>) -> Self {
        Self {
            bytes,
            applications: Vec::new(),
            flows: None,
        }
    }
}

/// Bytes per epoch of a rate, rounded up so that the rate is reached.
fn bytes_at(rate: Rate, epoch: Time) -> Bytes {
    let bytes = rate.bytes_in(epoch);
    if Rate::from_bytes_per(bytes, epoch) < rate {
        Bytes::new(bytes.get() + 1)
    } else {
        bytes
    }
}

/// Joins the two limited neighbours with the smallest ratio; both fit into what remains, unless that
/// is more than the `most` that eq. 4 allows. The guaranteed level is left alone while there are
/// others.
fn merge_nearest(levels: &mut Vec<Unlabelled>, most: Bytes) {
    let bytes = |level: &Unlabelled| {
        level
            .bytes
            .map_or(f64::INFINITY, |bytes| bytes.get() as f64)
    };
    let guaranteed = levels.len() - 1;
    let pairs = (1..guaranteed).map(|lower| {
        let ratio = bytes(&levels[lower - 1]) / bytes(&levels[lower]);
        (lower, ratio)
    });
    let nearest = pairs.min_by(|a, b| a.1.total_cmp(&b.1));
    let (lower, _) = nearest.expect("there are more than eight levels");
    let joined = levels.remove(lower);
    let into = &mut levels[lower - 1];
    into.bytes = match (into.bytes, joined.bytes) {
        (Some(a), Some(b)) => Some((a + b).min(most)),
        _ => None,
    };
    into.applications.extend(joined.applications);
    // Together they may need more than the level below them.
    levels.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
}
