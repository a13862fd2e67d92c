//! Workloads: flows and their start times, as pure functions of configuration, fabric and seed.
//!
//! A [`WorkloadConfig`] generates a [`Workload`]: flows with their start times, and what cannot be
//! known before the run: flows that stop at a time, and flows that start when others have finished.
//! Only lists and distributions that are given by file are read from disk.
//!
//! ```
//! use shallows_model::topology::TopologyConfig;
//! use shallows_model::workload::WorkloadConfig;
//!
//! # #[derive(serde::Deserialize)]
//! # struct Scenario { topology: TopologyConfig, workload: WorkloadConfig }
//! let scenario: Scenario = toml::from_str(
//!     r#"
//!     [topology]
//!     star = { hosts = 9, rate = "1Gbps", delay = "10us" }
//!
//!     [workload.poisson]
//!     from = "0-7"
//!     to = 8
//!     load = 0.6
//!     load-of = "destination-links"
//!     size = { cdf = "web-search-bytes" }
//!     flows = 5000
//!     services = { weighted = [10, 20, 30, 40] }
//!     "#,
//! )?;
//! let fabric = scenario.topology.build()?;
//! let workload = scenario.workload.generate(&fabric, 1)?;
//! assert_eq!(workload.flows.len(), 5000);
//! let load = workload.offered[0];
//! assert!((load.offered / load.requested - 1.0).abs() < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cdf;
mod error;
mod hosts;
pub mod list;
mod load;
mod locality;
mod notation;
mod patterns;
mod poisson;
pub(crate) mod random;
mod service;
mod size;
mod udp;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shallows_core::host::udp::UdpConfig;
use shallows_core::units::Time;

use crate::ids::{FlowId, HostId, IdVec, ids};
use crate::interrupt::{Interrupt, Interrupted};
use crate::topology::Fabric;
use random::{Purpose, Stream};

pub use cdf::{Cdf, CdfError, SizeUnit};
pub use error::WorkloadError;
pub use hosts::HostSet;
pub use load::{Counted, LoadReference, OfferedLoad};
pub use locality::LocalityConfig;
pub use patterns::{AllToAllConfig, FlowConfig, IncastConfig, LongLivedConfig, PermutationConfig};
pub use poisson::{PoissonConfig, Process};
pub use service::ServiceMap;
pub use size::{CdfConfig, CdfTable, DrawnSize, SizeConfig};
pub use udp::UdpFlowsConfig;

/// More flows than this are refused: they would take over 11 GB, 110 bytes each, before the first
/// packet.
pub const MOST_FLOWS: u64 = 100_000_000;

/// Flows start in the first 100 days, so that they have as many again to end before time does.
pub const LATEST_START: Time = Time::from_secs(100 * 24 * 3600);

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Time at which the application hands it to the transport, or [`FlowSpec::AT_BARRIER`].
    pub start: Time,
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// Payload, or [`FlowSpec::ENDLESS`].
    pub bytes: u64,
    /// Its service, which classifiers and reports tell apart.
    pub service: u16,
}

impl FlowSpec {
    /// The payload of a flow that does not end by itself.
    pub const ENDLESS: u64 = u64::MAX;
    /// The start of a flow that waits for a [`Barrier`].
    pub const AT_BARRIER: Time = Time::MAX;

    /// Start of the flow, unless it waits for a barrier.
    pub fn start_time(&self) -> Option<Time> {
        (self.start != Self::AT_BARRIER).then_some(self.start)
    }

    /// Payload of the flow, unless it does not end by itself.
    pub fn size(&self) -> Option<u64> {
        (self.bytes != Self::ENDLESS).then_some(self.bytes)
    }
}

/// Hosts and service of a flow or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// The service.
    pub service: u16,
}

impl From<&FlowSpec> for Ends {
    fn from(flow: &FlowSpec) -> Self {
        Self {
            src: flow.src,
            dst: flow.dst,
            service: flow.service,
        }
    }
}

/// The time at which a flow has nothing more to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Position of the flow in [`Workload::flows`].
    pub flow: FlowId,
    /// Stop time.
    pub at: Time,
}

/// A flow that is sent in datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFlow {
    /// Position of the flow in [`Workload::flows`].
    pub flow: FlowId,
    /// Position of what it sends in [`Workload::streams`].
    pub stream: u32,
}

/// Flows that start when others have finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Positions in [`Workload::flows`] of the flows that must have finished.
    pub waits_for: Vec<FlowId>,
    /// Positions in [`Workload::flows`] of those that then start. No flow waits for two barriers.
    pub releases: Vec<FlowId>,
    /// From the finish of the last to the start of the next.
    pub pause: Time,
}

/// The flows of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Sorted by start, then in the order in which they were generated; flows that wait for a
    /// barrier are the last.
    pub flows: IdVec<FlowId, FlowSpec>,
    /// Stop times of endless flows, in the order of the flows.
    pub stops: Vec<Stop>,
    /// Barriers: flows that start when other flows have finished.
    pub barriers: Vec<Barrier>,
    /// UDP flows, in the order of the flows; all others are TCP. Their bytes are
    /// [`FlowSpec::ENDLESS`].
    pub datagrams: Vec<DatagramFlow>,
    /// Sending patterns of UDP flows.
    pub streams: Vec<UdpConfig>,
    /// Requested and offered load of each Poisson workload, in the order of the configuration.
    pub offered: Vec<OfferedLoad>,
}

/// A workload as written in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadConfig {
    /// A CSV file of flows.
    List(PathBuf),
    /// Single flows.
    Flows(Vec<FlowConfig>),
    /// Long-lived flows.
    LongLived(Vec<LongLivedConfig>),
    /// Poisson arrivals at a load.
    Poisson(PoissonConfig),
    /// A permutation: every host sends to one other.
    Permutation(PermutationConfig),
    /// All to all.
    AllToAll(AllToAllConfig),
    /// Incast: many hosts send to one, in rounds.
    Incast(IncastConfig),
    /// UDP streams without congestion control.
    Udp(UdpFlowsConfig),
}

impl WorkloadConfig {
    /// Makes paths that are relative start from `base`, the directory of the scenario.
    pub fn rebase(&mut self, base: &Path) {
        match self {
            Self::List(path) => *path = base.join(&*path),
            Self::Poisson(PoissonConfig { size, .. })
            | Self::Permutation(PermutationConfig { size, .. })
            | Self::AllToAll(AllToAllConfig { size, .. })
            | Self::Incast(IncastConfig {
                size: Some(size), ..
            }) => size.rebase(base),
            Self::Flows(_) | Self::LongLived(_) | Self::Incast(_) | Self::Udp(_) => {}
        }
    }

    /// The workload on `fabric` in the run seeded `seed`.
    pub fn generate(&self, fabric: &Fabric, seed: u64) -> Result<Workload, WorkloadError> {
        self.generate_unless(fabric, seed, Interrupt::Never)
    }

    fn generate_unless(
        &self,
        fabric: &Fabric,
        seed: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<Workload, WorkloadError> {
        let mut workload = match self {
            Self::List(path) => Workload {
                flows: list::read(path, fabric.hosts(), interrupt)?.into(),
                ..Workload::default()
            },
            Self::Flows(flows) => Workload {
                flows: flows
                    .iter()
                    .map(|flow| flow.flow(fabric))
                    .collect::<Result<_, _>>()?,
                ..Workload::default()
            },
            Self::LongLived(groups) => {
                let mut workload = Workload::default();
                for group in groups {
                    group.add_to(&mut workload, fabric, interrupt)?;
                }
                workload
            }
            Self::Poisson(config) => config.generate(fabric, seed, interrupt)?,
            Self::Permutation(config) => config.generate(fabric, seed, interrupt)?,
            Self::AllToAll(config) => config.generate(fabric, seed, interrupt)?,
            Self::Incast(config) => config.generate(fabric, seed, interrupt)?,
            Self::Udp(config) => config.generate(fabric, interrupt)?,
        };
        interrupt.check_at(0)?;
        workload.refuse_too_late()?;
        interrupt.check_at(0)?;
        workload.sort(interrupt)?;
        Ok(workload)
    }

    /// Several workloads on `fabric` at once, each with random numbers of its own.
    pub fn generate_all(
        configs: &[Self],
        fabric: &Fabric,
        seed: u64,
    ) -> Result<Workload, WorkloadError> {
        Self::generate_all_unless(configs, fabric, seed, Interrupt::Never)
    }

    /// The same, unless it is interrupted: many flows take a while.
    pub fn generate_all_unless(
        configs: &[Self],
        fabric: &Fabric,
        seed: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<Workload, WorkloadError> {
        let mut all = Workload::default();
        for (index, config) in configs.iter().enumerate() {
            let seed = Stream::new(seed, Purpose::Workload, index as u64).bits();
            let workload = config.generate_unless(fabric, seed, interrupt);
            let at = |error| match error {
                WorkloadError::Interrupted(_) => error,
                error => WorkloadError::At {
                    index,
                    error: Box::new(error),
                },
            };
            all.append(workload.map_err(at)?)?;
            interrupt.check_at(0)?;
        }
        all.sort(interrupt)?;
        Ok(all)
    }
}

impl Workload {
    /// Sending pattern of a flow, if it is UDP.
    pub fn stream(&self, flow: FlowId) -> Option<&UdpConfig> {
        let datagrams = &self.datagrams;
        let found = datagrams.binary_search_by_key(&flow, |datagrams| datagrams.flow);
        let stream = datagrams[found.ok()?].stream;
        Some(&self.streams[stream as usize])
    }

    /// Stop time of an endless flow, if it has one.
    pub fn stop(&self, flow: FlowId) -> Option<Time> {
        let found = self.stops.binary_search_by_key(&flow, |stop| stop.flow);
        Some(self.stops[found.ok()?].at)
    }

    /// The flows that wait for no barrier, in the order of their starts.
    pub fn timed(&self) -> impl Iterator<Item = FlowId> {
        let flows = self.flows.numbered();
        flows
            .filter(|(_, spec)| spec.start != FlowSpec::AT_BARRIER)
            .map(|(flow, _)| flow)
    }

    fn refuse_too_late(&self) -> Result<(), WorkloadError> {
        let mut is_released = IdVec::from(vec![false; self.flows.len()]);
        for &flow in self.barriers.iter().flat_map(|barrier| &barrier.releases) {
            is_released[flow] = true;
        }
        let late = |(flow, &is_released): (&FlowSpec, &bool)| {
            let at_barrier = flow.start == FlowSpec::AT_BARRIER && is_released;
            flow.start > LATEST_START && !at_barrier
        };
        if self.flows.iter().zip(&is_released).any(late) {
            return Err(WorkloadError::TooLate("the start of a flow"));
        }
        if self
            .barriers
            .iter()
            .any(|barrier| barrier.pause > LATEST_START)
        {
            return Err(WorkloadError::TooLate("the start after a pause"));
        }
        Ok(())
    }

    fn append(&mut self, mut other: Self) -> Result<(), WorkloadError> {
        let flows = self.flows.len() as u64 + other.flows.len() as u64;
        refuse_too_many(flows as f64)?;
        if self.flows.is_empty() {
            // Nothing to renumber, and nothing to copy.
            *self = other;
            return Ok(());
        }
        let shift = self.flows.len() as u32;
        other.renumber(|FlowId(flow)| FlowId(flow + shift));
        self.flows.append(&mut other.flows);
        self.stops.append(&mut other.stops);
        self.barriers.append(&mut other.barriers);
        let streams = self.streams.len() as u32;
        let datagrams = other.datagrams.iter().map(|datagrams| DatagramFlow {
            stream: datagrams.stream + streams,
            ..*datagrams
        });
        self.datagrams.extend(datagrams);
        self.streams.append(&mut other.streams);
        self.offered.append(&mut other.offered);
        Ok(())
    }

    fn sort(&mut self, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
        if self.flows.as_slice().is_sorted_by_key(|flow| flow.start) {
            return Ok(());
        }
        let order = sorted(self.flows.iter().map(|flow| flow.start), interrupt)?;
        let mut new = IdVec::from(vec![FlowId::default(); order.len()]);
        for (position, &old) in ids().zip(&order) {
            new[old] = position;
        }
        let flows = order.iter().map(|&old| self.flows[old]);
        self.flows = interrupt.collect(flows)?.into();
        self.renumber(|old| new[old]);
        self.stops.sort_by_key(|stop| stop.flow);
        self.datagrams.sort_by_key(|datagrams| datagrams.flow);
        Ok(())
    }

    fn renumber(&mut self, number: impl Fn(FlowId) -> FlowId) {
        for stop in &mut self.stops {
            stop.flow = number(stop.flow);
        }
        for datagrams in &mut self.datagrams {
            datagrams.flow = number(datagrams.flow);
        }
        for barrier in &mut self.barriers {
            let flows = barrier.waits_for.iter_mut().chain(&mut barrier.releases);
            flows.for_each(|flow| *flow = number(*flow));
        }
    }
}

/// The positions of some times in the order of time, equal ones in their own order. Pieces that take
/// little time are sorted one by one and then merged, so that it can be interrupted.
fn sorted(
    times: impl ExactSizeIterator<Item = Time>,
    interrupt: Interrupt<'_>,
) -> Result<Vec<FlowId>, Interrupted> {
    const PIECE: usize = 1 << 18;
    let mut keys: Vec<(Time, FlowId)> = interrupt.collect(times.zip((0..u32::MAX).map(FlowId)))?;
    for piece in keys.chunks_mut(PIECE) {
        interrupt.check_at(0)?;
        piece.sort_unstable();
    }
    let mut pieces: Vec<_> = keys.chunks(PIECE).map(|piece| piece.iter()).collect();
    let heads = pieces.iter_mut().enumerate();
    let heads = heads.filter_map(|(number, piece)| Some(Reverse((*piece.next()?, number))));
    let mut heads: BinaryHeap<_> = heads.collect();
    let mut order = Vec::with_capacity(keys.len());
    while let Some(mut head) = heads.peek_mut() {
        interrupt.check_at(order.len())?;
        let Reverse(((_, position), piece)) = *head;
        order.push(position);
        match pieces[piece].next() {
            Some(&next) => *head = Reverse((next, piece)),
            None => drop(PeekMut::pop(head)),
        }
    }
    Ok(order)
}

fn refuse_too_many(flows: f64) -> Result<(), WorkloadError> {
    let most = MOST_FLOWS;
    if flows > most as f64 {
        return Err(WorkloadError::TooManyFlows { flows, most });
    }
    Ok(())
}
