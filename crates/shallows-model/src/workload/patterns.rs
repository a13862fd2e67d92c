//! Patterns without arrivals: each flow once, in rounds, or for a time.

use serde::{Deserialize, Serialize};
use shallows_core::units::{Bytes, Time};

use super::random::{Purpose, Stream};
use super::size::{SizeConfig, Sizes};
use super::{
    Barrier, FlowSpec, HostSet, ServiceMap, Stop, Workload, WorkloadError, refuse_too_many,
};
use crate::ids::{FlowId, HostId};
use crate::interrupt::Interrupt;
use crate::topology::{Fabric, Node};

/// A flow from every host to another; each host also receives one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PermutationConfig {
    /// The hosts.
    #[serde(default)]
    pub hosts: HostSet,
    /// The n-th host sends to host n + `shift`, modulo the number of hosts. If not given, the hosts
    /// form one random cycle (Sattolo's algorithm) and each sends to the next.
    pub shift: Option<u32>,
    /// Sizes of flows.
    pub size: SizeConfig,
    /// Earliest start time.
    #[serde(default)]
    pub start: Time,
    /// Start times are uniform over this interval.
    #[serde(default)]
    pub spread: Time,
    /// Service of each flow.
    #[serde(default)]
    pub services: ServiceMap,
}

/// A flow from every host to every other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AllToAllConfig {
    /// The hosts.
    #[serde(default)]
    pub hosts: HostSet,
    /// Sizes of flows.
    pub size: SizeConfig,
    /// Earliest start time.
    #[serde(default)]
    pub start: Time,
    /// Start times are uniform over this interval.
    #[serde(default)]
    pub spread: Time,
    /// Service of each flow.
    #[serde(default)]
    pub services: ServiceMap,
}

/// Many hosts send to one at the same time, in rounds. A round starts when all flows of the
/// previous round have finished, as in reads of a striped file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IncastConfig {
    /// The senders; the receiver is excluded.
    #[serde(default)]
    pub senders: HostSet,
    /// The receiver.
    pub receiver: HostSet,
    /// Bytes that each sender sends per round. Give this or `block`.
    pub size: Option<SizeConfig>,
    /// Bytes that all senders together send per round, in equal parts. Give this or `size`.
    pub block: Option<Bytes>,
    /// Number of rounds.
    #[serde(default = "one")]
    pub rounds: u32,
    /// Start of the first round.
    #[serde(default)]
    pub start: Time,
    /// Pause between two rounds.
    #[serde(default)]
    pub pause: Time,
    /// Service of each flow.
    #[serde(default)]
    pub services: ServiceMap,
}

/// Long-lived flows from each source to each destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LongLivedConfig {
    /// The sources.
    pub src: HostSet,
    /// The destinations.
    pub dst: HostSet,
    /// Flows of each pair.
    #[serde(default = "one")]
    pub count: u32,
    /// Start time.
    #[serde(default)]
    pub start: Time,
    /// Stop time; the end of the run if not given.
    pub stop: Option<Time>,
    /// Service of the flows.
    #[serde(default)]
    pub service: u16,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FlowConfig {
    /// Start time.
    #[serde(default)]
    pub start: Time,
    /// Its source.
    pub src: HostSet,
    /// Its destination.
    pub dst: HostSet,
    /// Its payload.
    pub size: Bytes,
    /// Its service.
    #[serde(default)]
    pub service: u16,
}

fn one() -> u32 {
    1
}

impl PermutationConfig {
    pub(super) fn generate(
        &self,
        fabric: &Fabric,
        seed: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<Workload, WorkloadError> {
        let hosts = at_least_two(&self.hosts, fabric, "a permutation")?;
        let count = hosts.len();
        let mut to = hosts.clone();
        match self.shift.map(|shift| shift as usize % count) {
            Some(0) => return Err(WorkloadError::Zero("shift, modulo the number of hosts,")),
            Some(shift) => to.rotate_left(shift),
            None => {
                let mut stream = Stream::new(seed, Purpose::Order, 0);
                for last in (1..count).rev() {
                    to.swap(last, stream.below(last as u64) as usize);
                }
            }
        }
        let pairs = hosts.into_iter().zip(to);
        let spread = (self.start, self.spread);
        spread_flows(
            pairs,
            &self.size,
            spread,
            &self.services,
            (fabric, seed),
            interrupt,
        )
    }
}

impl AllToAllConfig {
    pub(super) fn generate(
        &self,
        fabric: &Fabric,
        seed: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<Workload, WorkloadError> {
        let hosts = at_least_two(&self.hosts, fabric, "all-to-all")?;
        let count = hosts.len() as u64;
        refuse_too_many((count * (count - 1)) as f64)?;
        let from = |&src: &HostId| {
            let others = hosts.iter().filter(move |&&dst| dst != src);
            others.map(move |&dst| (src, dst))
        };
        let pairs = hosts.iter().flat_map(from);
        let spread = (self.start, self.spread);
        spread_flows(
            pairs,
            &self.size,
            spread,
            &self.services,
            (fabric, seed),
            interrupt,
        )
    }
}

impl IncastConfig {
    pub(super) fn generate(
        &self,
        fabric: &Fabric,
        seed: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<Workload, WorkloadError> {
        let dst = self.receiver.one(fabric)?;
        let mut senders = self.senders.resolve(fabric)?;
        senders.retain(|&sender| sender != dst);
        if senders.is_empty() {
            let name = fabric.name(Node::Host(dst));
            return Err(WorkloadError::ToItself(name.to_owned()));
        }
        if self.rounds == 0 {
            return Err(WorkloadError::Zero("rounds"));
        }
        self.services.check()?;
        let count = senders.len() as u64;
        refuse_too_many((count * u64::from(self.rounds)) as f64)?;
        let amount = self.amount(count)?;

        let mut workload = Workload::default();
        for round in 0..self.rounds {
            let start = if round == 0 {
                self.start
            } else {
                FlowSpec::AT_BARRIER
            };
            let begin = u64::from(round) * count;
            for (part, &src) in (0..).zip(&senders) {
                interrupt.check_at(workload.flows.len())?;
                let mut stream = Stream::new(seed, Purpose::Flow, begin + part);
                let size = |service, stream: &mut Stream| match &amount {
                    Amount::Each(sizes) => sizes.of(service).draw(stream),
                    Amount::Block(block) => part_of(*block, count, part),
                };
                let hosts = fabric.hosts();
                let flow = self
                    .services
                    .flow(start, (src, dst), hosts, &mut stream, size);
                workload.flows.push(flow);
            }
            if round > 0 {
                let (before, begin, end) = (begin - count, begin as u32, begin + count);
                workload.barriers.push(Barrier {
                    waits_for: (before as u32..begin).map(FlowId).collect(),
                    releases: (begin..end as u32).map(FlowId).collect(),
                    pause: self.pause,
                });
            }
        }
        Ok(workload)
    }

    fn amount(&self, senders: u64) -> Result<Amount, WorkloadError> {
        match (&self.size, self.block) {
            (Some(size), None) => Ok(Amount::Each(size.load()?)),
            (None, Some(block)) if block.get() < senders => {
                Err(WorkloadError::Zero("a sender's part of the block"))
            }
            (None, Some(block)) => Ok(Amount::Block(block.get())),
            _ => Err(WorkloadError::Either("size", "block")),
        }
    }
}

/// The flows of one round.
enum Amount {
    Each(Sizes),
    Block(u64),
}

/// The whole bytes of `part` if `whole` is cut into `count` parts, the first ones larger by one.
fn part_of(whole: u64, count: u64, part: u64) -> u64 {
    whole / count + u64::from(part < whole % count)
}

impl LongLivedConfig {
    pub(super) fn add_to(
        &self,
        workload: &mut Workload,
        fabric: &Fabric,
        interrupt: Interrupt<'_>,
    ) -> Result<(), WorkloadError> {
        let (sources, destinations) = (self.src.resolve(fabric)?, self.dst.resolve(fabric)?);
        if let ([src], [dst]) = (&sources[..], &destinations[..]) {
            refuse_to_itself(*src, *dst, fabric)?;
        }
        if self.count == 0 {
            return Err(WorkloadError::Zero("count"));
        }
        let pairs = sources.len() as u64 * destinations.len() as u64;
        refuse_too_many(pairs as f64 * f64::from(self.count))?;
        if let Some(stop) = self.stop.filter(|&stop| stop <= self.start) {
            let start = self.start;
            return Err(WorkloadError::StopsBeforeStart { start, stop });
        }
        for &src in &sources {
            for &dst in destinations.iter().filter(|&&dst| dst != src) {
                for _ in 0..self.count {
                    interrupt.check_at(workload.flows.len())?;
                    let flow = workload.flows.push(FlowSpec {
                        start: self.start,
                        src,
                        dst,
                        bytes: FlowSpec::ENDLESS,
                        service: self.service,
                    });
                    workload.stops.extend(self.stop.map(|at| Stop { flow, at }));
                }
            }
        }
        Ok(())
    }
}

impl FlowConfig {
    pub(super) fn flow(&self, fabric: &Fabric) -> Result<FlowSpec, WorkloadError> {
        let (src, dst) = (self.src.one(fabric)?, self.dst.one(fabric)?);
        refuse_to_itself(src, dst, fabric)?;
        if self.size == Bytes::ZERO {
            return Err(WorkloadError::Zero("size"));
        }
        Ok(FlowSpec {
            start: self.start,
            src,
            dst,
            bytes: self.size.get(),
            service: self.service,
        })
    }
}

/// One flow for each pair, with starts from `start` uniform over `spread`.
fn spread_flows(
    pairs: impl Iterator<Item = (HostId, HostId)>,
    size: &SizeConfig,
    (start, spread): (Time, Time),
    services: &ServiceMap,
    (fabric, seed): (&Fabric, u64),
    interrupt: Interrupt<'_>,
) -> Result<Workload, WorkloadError> {
    services.check()?;
    let sizes = size.load()?;
    if start.checked_add(spread).is_none() {
        return Err(WorkloadError::TooLate("the last start"));
    }
    let size = |service, stream: &mut Stream| sizes.of(service).draw(stream);
    let flow = |(number, ends)| {
        let mut stream = Stream::new(seed, Purpose::Flow, number);
        let start = start + Time::from_ps(stream.below(spread.ps().max(1)));
        services.flow(start, ends, fabric.hosts(), &mut stream, size)
    };
    let mut workload = Workload::default();
    for pair in (0..).zip(pairs) {
        interrupt.check_at(workload.flows.len())?;
        workload.flows.push(flow(pair));
    }
    Ok(workload)
}

fn at_least_two(
    hosts: &HostSet,
    fabric: &Fabric,
    pattern: &'static str,
) -> Result<Vec<HostId>, WorkloadError> {
    let hosts = hosts.resolve(fabric)?;
    if hosts.len() < 2 {
        return Err(WorkloadError::TwoHosts { pattern });
    }
    Ok(hosts)
}

fn refuse_to_itself(src: HostId, dst: HostId, fabric: &Fabric) -> Result<(), WorkloadError> {
    if src == dst {
        let name = fabric.name(Node::Host(src));
        return Err(WorkloadError::ToItself(name.to_owned()));
    }
    Ok(())
}
