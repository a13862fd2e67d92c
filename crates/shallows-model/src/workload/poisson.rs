//! Poisson arrivals at a load.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use shallows_core::units::Time;

use super::load::{Counted, Load, LoadReference};
use super::locality::{Destinations, LocalityConfig};
use super::random::{Purpose, Stream};
use super::size::{SizeConfig, Sizes};
use super::{FlowSpec, HostSet, ServiceMap, Workload, WorkloadError, refuse_too_many};
use crate::ids::HostId;
use crate::interrupt::Interrupt;
use crate::topology::Fabric;

/// Highest load: twice the capacity of the links. Above it, somebody has written a percentage.
const MOST_LOAD: f64 = 2.0;

/// Poisson arrivals of flows at a given load.
///
/// MQ-ECN's simulation is
///
/// ```
/// # use shallows_model::workload::WorkloadConfig;
/// # let workload: WorkloadConfig = toml::from_str(r#"
/// [poisson]
/// load = 0.6
/// flows = 100000
/// process = "pair"
/// services = { pair = 8 }
/// size.by-service = [
///     { cdf = "cache" },
///     { cdf = "web-search" },
///     { cdf = "hadoop" },
///     { cdf = "data-mining" },
/// ]
/// # "#)?;
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PoissonConfig {
    /// Fraction of the capacity that flows offer: 0.6 is 60%.
    pub load: f64,
    /// Links whose capacity the load refers to.
    #[serde(default)]
    pub load_of: LoadReference,
    /// Bytes that count towards the load.
    #[serde(default)]
    pub counted: Counted,
    /// Sizes of flows.
    pub size: SizeConfig,
    /// Number of flows. Give this or `duration`.
    pub flows: Option<u64>,
    /// Duration of arrivals. Give this or `flows`.
    pub duration: Option<Time>,
    /// Earliest arrival.
    #[serde(default)]
    pub start: Time,
    /// The sources.
    #[serde(default)]
    pub from: HostSet,
    /// The destinations.
    #[serde(default)]
    pub to: HostSet,
    /// Granularity of the arrival processes.
    #[serde(default)]
    pub process: Process,
    /// Locality of destinations; uniform if not given.
    pub locality: Option<LocalityConfig>,
    /// Service of each flow.
    #[serde(default)]
    pub services: ServiceMap,
}

/// Granularity of the Poisson processes.
///
/// A source's process is the sum of its pairs', so the two differ only where the sizes of a source's
/// pairs do: then the pairs of a source bring equal bytes, or equal numbers of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// One process per source, which draws a destination for each flow.
    #[default]
    Source,
    /// One process per pair of source and destination, as in MQ-ECN's simulations. Memory grows
    /// with the number of pairs.
    Pair,
}

/// A pair's process takes this much memory, and 2^24 of them take 1.5 GB.
const MOST_PAIRS: u64 = 1 << 24;

impl PoissonConfig {
    /// The flows, in the order of their start; flows that start in the same picosecond in that of
    /// their source, then of their destination where pairs have processes.
    pub(super) fn generate(
        &self,
        fabric: &Fabric,
        seed: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<Workload, WorkloadError> {
        self.check()?;
        let sources = self.from.resolve(fabric)?;
        let destinations = self.to.resolve(fabric)?;
        let sizes = self.size.load()?;
        let to = Destinations::new(fabric, self.locality, &sources, &destinations)?;
        let load = Load {
            requested: self.load,
            reference: self.load_of,
            counted: self.counted,
            fabric,
            sources: &sources,
            destinations: &destinations,
        };
        let arrivals = Arrivals {
            config: self,
            sizes: &sizes,
            means: sizes.map(|size| self.counted.mean(size)),
            to: &to,
            hosts: fabric.hosts(),
        };
        let rates = load.per_source(&to)?;
        let processes = match self.process {
            Process::Source => arrivals.source_processes(&sources, &destinations, &rates, seed),
            Process::Pair => arrivals.pair_processes(&sources, &destinations, &rates, seed)?,
        };
        let (flows, end) = arrivals.run(processes, interrupt)?;
        let offered = load.offered(&flows, end.saturating_sub(self.start));
        Ok(Workload {
            flows: flows.into(),
            offered: vec![offered],
            ..Workload::default()
        })
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if !(self.load > 0.0 && self.load <= MOST_LOAD) {
            return Err(WorkloadError::Load {
                value: self.load,
                most: if self.load > 0.0 {
                    ", at most 2 (a share of the capacity: write 0.6 for 60%)"
                } else {
                    ""
                },
            });
        }
        match (self.flows, self.duration) {
            (Some(0), None) => return Err(WorkloadError::Zero("flows")),
            (None, Some(Time::ZERO)) => return Err(WorkloadError::Zero("duration")),
            (Some(flows), None) => refuse_too_many(flows as f64)?,
            (None, Some(_)) => {}
            (None, None) | (Some(_), Some(_)) => {
                return Err(WorkloadError::Either("flows", "duration"));
            }
        }
        self.services.check()?;
        self.counted.check()
    }
}

/// One Poisson process.
struct ArrivalProcess {
    stream: Stream,
    mean_gap_ps: f64,
    src: HostId,
    /// The destination, unless one is chosen for each flow.
    dst: Option<HostId>,
}

struct Arrivals<'a> {
    config: &'a PoissonConfig,
    sizes: &'a Sizes,
    /// Mean counted bytes of each size distribution.
    means: Vec<f64>,
    to: &'a Destinations,
    hosts: u32,
}

impl Arrivals<'_> {
    fn source_processes(
        &self,
        sources: &[HostId],
        destinations: &[HostId],
        rates: &[f64],
        seed: u64,
    ) -> Vec<ArrivalProcess> {
        let process = |(&src, &rate): (&HostId, &f64)| ArrivalProcess {
            stream: Stream::new(seed, Purpose::Arrivals, u64::from(src.0)),
            mean_gap_ps: mean_gap_ps(self.mean_from(src, destinations), rate),
            src,
            dst: None,
        };
        sources.iter().zip(rates).map(process).collect()
    }

    /// Counted bytes of a flow from `src` in the mean.
    fn mean_from(&self, src: HostId, destinations: &[HostId]) -> f64 {
        let by_source = !matches!(self.config.services, ServiceMap::Pair(_));
        if self.means.len() == 1 || by_source {
            return self.mean_between(src, destinations[0]);
        }
        let part = |&dst: &HostId| self.to.share(src, dst) * self.mean_between(src, dst);
        destinations.iter().map(part).sum()
    }

    fn mean_between(&self, src: HostId, dst: HostId) -> f64 {
        let of_service = |service: u16| self.means[usize::from(service) % self.means.len()];
        self.config.services.mean(src, dst, self.hosts, of_service)
    }

    fn pair_processes(
        &self,
        sources: &[HostId],
        destinations: &[HostId],
        rates: &[f64],
        seed: u64,
    ) -> Result<Vec<ArrivalProcess>, WorkloadError> {
        let pairs = sources.len() as u64 * destinations.len() as u64;
        if pairs > MOST_PAIRS {
            return Err(WorkloadError::TooManyPairs(pairs));
        }
        let mut processes = Vec::with_capacity(pairs as usize);
        for (&src, &rate) in sources.iter().zip(rates) {
            for &dst in destinations {
                let share = self.to.share(src, dst);
                if share == 0.0 {
                    continue;
                }
                let entity = (u64::from(src.0) + 1) << 32 | u64::from(dst.0);
                processes.push(ArrivalProcess {
                    stream: Stream::new(seed, Purpose::Arrivals, entity),
                    mean_gap_ps: mean_gap_ps(self.mean_between(src, dst), rate * share),
                    src,
                    dst: Some(dst),
                });
            }
        }
        Ok(processes)
    }

    /// Merges the processes until there are enough flows or the duration is over. Answers with the
    /// flows and the end.
    fn run(
        &self,
        mut processes: Vec<ArrivalProcess>,
        interrupt: Interrupt<'_>,
    ) -> Result<(Vec<FlowSpec>, Time), WorkloadError> {
        let config = self.config;
        let end = match config.duration {
            None => Time::MAX,
            Some(duration) => {
                let per_ps: f64 = processes.iter().map(|p| 1.0 / p.mean_gap_ps).sum();
                refuse_too_many(per_ps * duration.ps() as f64)?;
                let end = config.start.checked_add(duration);
                end.ok_or(WorkloadError::TooLate("the end of the arrivals"))?
            }
        };
        let wanted = config.flows.unwrap_or(u64::MAX);
        let mut flows = Vec::with_capacity(config.flows.unwrap_or(0) as usize);
        let mut next: BinaryHeap<Reverse<(Time, usize)>> = (0..)
            .zip(&mut processes)
            .map(|(number, process)| Reverse((process.after(config.start), number)))
            .collect();
        while (flows.len() as u64) < wanted {
            interrupt.check_at(flows.len())?;
            let Some(mut earliest) = next.peek_mut() else {
                break;
            };
            let Reverse((start, number)) = *earliest;
            if start >= end {
                break;
            }
            let process = &mut processes[number];
            flows.push(self.flow(process, start));
            *earliest = Reverse((process.after(start), number));
        }
        match (config.flows, flows.last()) {
            (None, Some(_)) => Ok((flows, end)),
            (None, None) => Err(WorkloadError::NothingStarts),
            (Some(wanted), Some(last)) if flows.len() as u64 == wanted => {
                let end = last.start;
                Ok((flows, end))
            }
            (Some(wanted), _) => Err(WorkloadError::TooSlow {
                reached: flows.len() as u64,
                wanted,
            }),
        }
    }

    fn flow(&self, process: &mut ArrivalProcess, start: Time) -> FlowSpec {
        let ArrivalProcess { stream, src, .. } = process;
        let dst = match process.dst {
            Some(dst) => dst,
            None => self.to.draw(*src, stream),
        };
        let size = |service, stream: &mut Stream| self.sizes.of(service).draw(stream);
        let services = &self.config.services;
        services.flow(start, (*src, dst), self.hosts, stream, size)
    }
}

impl ArrivalProcess {
    /// The arrival after one at `time`.
    fn after(&mut self, time: Time) -> Time {
        time.saturating_add(self.stream.exponential(self.mean_gap_ps))
    }
}

fn mean_gap_ps(bytes: f64, bits_per_second: f64) -> f64 {
    bytes * 8.0 / bits_per_second * 1e12
}
