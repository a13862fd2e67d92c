//! Host mechanisms between the transport and the NIC.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use shallows_core::host::jitter::{JitterDistribution, JitterGateConfig};
use shallows_core::host::qjump::{
    AutomaticConfig, AutomaticError, EpochClock, Excess, LimiterConfig, LimiterError, Network,
    NetworkError, Phase, QjumpGateConfig, Scope,
};
use shallows_core::host::stage::StageTagger;
use shallows_core::host::{GateError, HostGateConfig};
use shallows_core::keyed::Keyed;
use shallows_core::port::{Framing, PerIndex};
use shallows_core::units::{Bytes, Rate, Time};
use thiserror::Error;

use crate::ids::{HostId, Id as _, IdVec, ids};
use crate::topology::Fabric;
use crate::workload::Workload;
use crate::workload::random::{Purpose, Stream};

/// Settings of all hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HostSetup {
    /// Stage tags in the DSCP field instead of the service: data carries the stage of its flow,
    /// ACKs the first stage (ML-ECN, PIAS). A table adds stages of connections and tags of ACKs
    /// (EAR as published).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<StageTagger>,
    /// Jitter of hosts: a random time that each adds to every packet of its own before the NIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterConfig>,
    /// QJUMP's rate limits. The DSCP field of a packet chooses its limit; it is the service of its
    /// flow unless there are stages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qjump: Option<QjumpConfig>,
    /// XCo: a controller permits hosts to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xco: Option<crate::XcoConfig>,
}

impl HostSetup {
    /// The gates of each host that need no controller, in the order in which packets pass them:
    /// those of both worlds. `framing` is that of the hosts' ports.
    ///
    /// # Errors
    /// If their settings make no sense.
    pub fn gates(
        &self,
        fabric: &Fabric,
        framing: Framing,
        seed: u64,
    ) -> Result<IdVec<HostId, Vec<HostGateConfig>>, QjumpError> {
        // A new gate is built here; tags and agents have their own places.
        let Self {
            jitter,
            qjump,
            stages: _,
            xco: _,
        } = self;
        let mut gates = IdVec::from(vec![Vec::new(); fabric.hosts() as usize]);
        if let Some(jitter) = jitter {
            for (host, gates) in ids().zip(&mut gates) {
                gates.extend(jitter.gate(host, seed).map(HostGateConfig::Jitter));
            }
        }
        if let Some(qjump) = qjump {
            let limits = LimiterConfig {
                framing,
                ..qjump.limits(fabric)?
            };
            for (host, gates) in ids().zip(&mut gates) {
                gates.push(HostGateConfig::Qjump(qjump.gate(&limits, host, seed)));
            }
        }
        Ok(gates)
    }
}

/// Jitter of the hosts. Packets of one flow keep their order.
///
/// ```
/// # use shallows_model::HostSetup;
/// let hosts: HostSetup = toml::from_str("jitter = { mean = \"8us\" }")?;
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct JitterConfig {
    /// The mean time that a host adds to a packet; a list gives each host its own, of which 0s adds
    /// none.
    pub mean: PerIndex<Time>,
    /// Its distribution.
    #[serde(default)]
    pub distribution: JitterDistribution,
}

impl JitterConfig {
    /// The gate of a host, if it has jitter. A list must have a value for each host.
    fn gate(&self, host: HostId, seed: u64) -> Option<JitterGateConfig> {
        let mean = match &self.mean {
            PerIndex::All(mean) => *mean,
            PerIndex::Each(means) => means[host.index()],
        };
        (mean > Time::ZERO).then(|| JitterGateConfig {
            mean,
            distribution: self.distribution,
            seed: Stream::new(seed, Purpose::Jitter, u64::from(host.0)).bits(),
        })
    }
}

/// The limits of QJUMP's hosts: either `epoch` and `levels`, or `network` and `factors`, from which
/// the paper's equations give both.
///
/// ```
/// # use shallows_model::HostSetup;
/// let hosts: HostSetup = toml::from_str(
///     r#"
///     qjump = { epoch = "20us", levels = ["256B", "20KB"] }
///     "#,
/// )?;
/// let hosts: HostSetup = toml::from_str(
///     r#"
///     [qjump]
///     network = { packet = "256B", processing = "4us" }
///     factors = [1, 12]
///     "#,
/// )?;
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct QjumpConfig {
    /// The length of an epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Time>,
    /// Bytes per epoch of each service, from service 0, on the link of a host with its framing.
    /// Strict switches serve service 0 first, so it is the paper's highest level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Bytes>>,
    /// Parameters from which the epoch is computed (eqs. 1 and 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkConfig>,
    /// The throughput factor f of each service, from service 0: 1 to n (eq. 4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factors: Option<Vec<f64>>,
    /// Service of a TCP flow by its size instead of its own: service 0 up to the first size,
    /// service 1 up to the second, and so on. Long-lived flows have the last service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_size: Option<Vec<Bytes>>,
    /// Levels are chosen from what the applications of a host send instead of their services.
    /// Service numbers identify applications; the first entry of `levels` is the highest level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatic: Option<AutomaticConfig>,
    /// Scope of a service's limit: all flows of a host, or each flow separately. With `flow`, each
    /// flow has its own epochs and its excess is dropped.
    pub scope: Scope,
    /// Treatment of packets over the limit.
    pub excess: Excess,
    /// Limit of held bytes of each service. A TCP sender waits for room; other packets over the limit
    /// are dropped. Unlimited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_limit: Option<Bytes>,
    /// Start of epochs.
    pub clock: EpochClock,
    /// Alignment of epochs: all hosts start their first epoch at time zero, or each at a random
    /// time within that epoch, before which it sends nothing.
    pub phase: Phase,
}

/// Parameters of QJUMP's equations; missing ones come from the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NetworkConfig {
    /// n, the number of hosts; that of the fabric if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// P, the largest packet of the guaranteed level on the wire.
    pub packet: Bytes,
    /// R, the rate of the slowest host link; that of the fabric if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// ε, the processing time of a switch.
    pub processing: Time,
}

/// The reason why QJUMP's limits make no sense.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum QjumpError {
    /// The limits as such.
    #[error(transparent)]
    Limiter(#[from] LimiterError),
    /// The network that the epoch is computed from.
    #[error("network: {0}")]
    Network(#[from] NetworkError),
    /// Too much or too little is given.
    #[error("give either epoch and levels, or network and factors")]
    Either,
    /// A factor that eq. 4 does not have.
    #[error("factors: {factor} is not from 1 to the number of hosts, {hosts}")]
    Factor {
        /// f.
        factor: f64,
        /// n.
        hosts: u32,
    },
    /// Levels by size that are no intervals.
    #[error("the sizes of by-size must increase")]
    SizesNotIncreasing,
    /// Flows cannot wait one by one.
    #[error("scope = \"flow\" drops what exceeds the limit; leave out excess = \"hold\"")]
    HeldByFlow,
    /// Levels cannot be chosen.
    #[error("automatic: {0}")]
    Automatic(#[from] AutomaticError),
    /// Levels in the paper's order.
    #[error(
        "service {0} is served before service {1} and may send more: QJUMP's highest level, which \
         has the least bytes, is service 0 in a scenario (the paper's numbers are the reverse)"
    )]
    Reversed(usize, usize),
    /// Two ways to choose levels.
    #[error("levels are automatic or follow {0}, not both; leave out one")]
    TwoChoices(&'static str),
    /// Applications are limited together.
    #[error("automatic levels are those of a host; leave out scope = \"flow\"")]
    AutomaticByFlow,
    /// Nothing could ever wait.
    #[error("hold-limit must be more than 0B")]
    NoHoldLimit,
}

impl From<GateError> for QjumpError {
    fn from(error: GateError) -> Self {
        match error {
            GateError::Limiter(error) => Self::Limiter(error),
            GateError::Automatic(error) => Self::Automatic(error),
        }
    }
}

impl Keyed for QjumpError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let key = match self {
            Self::Limiter(LimiterError::NoEpoch) => "epoch",
            Self::Limiter(LimiterError::Levels(_) | LimiterError::EmptyLevel(_)) => "levels",
            Self::Network(_) => "network",
            Self::Factor { .. } => "factors",
            Self::NoHoldLimit | Self::Automatic(AutomaticError::HoldLimit { .. }) => "hold-limit",
            Self::HeldByFlow => "excess",
            Self::SizesNotIncreasing => "by-size",
            Self::Reversed(..) | Self::Automatic(AutomaticError::NotIncreasing(_)) => {
                return vec!["levels".into(), "factors".into()];
            }
            Self::Automatic(AutomaticError::NoPatience) => "automatic.patience",
            Self::TwoChoices(_) => "automatic",
            Self::AutomaticByFlow => "scope",
            Self::Either => return Vec::new(),
        };
        vec![key.into()]
    }
}

impl QjumpConfig {
    /// The limits of a host of `fabric`, without the framing of its port.
    ///
    /// # Errors
    /// If they make no sense.
    pub fn limits(&self, fabric: &Fabric) -> Result<LimiterConfig, QjumpError> {
        if self.hold_limit == Some(Bytes::ZERO) {
            return Err(QjumpError::NoHoldLimit);
        }
        let sizes = self.by_size.iter().flatten();
        if !sizes.is_sorted_by(|small, large| small < large) {
            return Err(QjumpError::SizesNotIncreasing);
        }
        if (self.scope, self.excess) == (Scope::Flow, Excess::Hold) {
            return Err(QjumpError::HeldByFlow);
        }
        let (epoch, levels) = match (self.epoch, &self.levels, self.network, &self.factors) {
            (Some(epoch), Some(levels), None, None) => (epoch, levels.clone()),
            (None, None, Some(network), Some(factors)) => {
                let network = network.resolve(fabric);
                network.validate()?;
                let hosts = network.hosts;
                let is_wrong = |factor: &&f64| !(1.0..=f64::from(hosts)).contains(*factor);
                if let Some(&factor) = factors.iter().find(is_wrong) {
                    return Err(QjumpError::Factor { factor, hosts });
                }
                let levels = factors.iter().map(|&f| network.bytes_per_epoch(f));
                (network.network_epoch(self.phase), levels.collect())
            }
            _ => return Err(QjumpError::Either),
        };
        let config = LimiterConfig {
            epoch,
            levels,
            excess: self.excess,
            clock: self.clock,
            framing: Framing::NONE,
        };
        config.validate()?;
        if let Some(automatic) = &self.automatic {
            if self.by_size.is_some() {
                return Err(QjumpError::TwoChoices("by-size"));
            }
            if self.scope == Scope::Flow {
                return Err(QjumpError::AutomaticByFlow);
            }
            automatic.build(&config, self.hold_limit)?;
        }
        Ok(config)
    }

    /// Gives each TCP flow the level of its size as its service, if there is
    /// [`by_size`](Self::by_size).
    pub fn choose_levels(&self, workload: &mut Workload) {
        let Some(sizes) = &self.by_size else {
            return;
        };
        let mut streams = workload.datagrams.iter().map(|of| of.flow).peekable();
        for (flow, spec) in ids().zip(&mut workload.flows) {
            if streams.next_if_eq(&flow).is_none() {
                spec.service = sizes.partition_point(|size| size.get() < spec.bytes) as u16;
            }
        }
    }

    /// The gate of a host with these [limits](Self::limits).
    fn gate(&self, limits: &LimiterConfig, host: HostId, seed: u64) -> QjumpGateConfig {
        let Self {
            scope,
            hold_limit,
            automatic,
            // The limits and the first epoch.
            epoch: _,
            levels: _,
            network: _,
            factors: _,
            excess: _,
            clock: _,
            phase: _,
            // The services of flows.
            by_size: _,
        } = self;
        QjumpGateConfig {
            limits: limits.clone(),
            scope: *scope,
            start: self.first_epoch(limits, host, seed),
            hold_limit: *hold_limit,
            automatic: automatic.clone(),
        }
    }

    /// Start of a host's first epoch.
    fn first_epoch(&self, limits: &LimiterConfig, host: HostId, seed: u64) -> Time {
        match self.phase {
            Phase::Synchronized => Time::ZERO,
            Phase::Mesochronous => {
                let mut stream = Stream::new(seed, Purpose::Epoch, u64::from(host.0));
                Time::from_ps(stream.below(limits.epoch.ps()))
            }
        }
    }
}

impl NetworkConfig {
    /// The network, with what is not written taken from a fabric.
    pub fn resolve(&self, fabric: &Fabric) -> Network {
        let slowest = || {
            let nics = fabric.host_ids().flat_map(|host| fabric.nics(host));
            nics.map(|nic| fabric.link(nic.up).rate).min()
        };
        Network {
            hosts: self.hosts.unwrap_or(fabric.hosts()),
            packet: self.packet,
            rate: self.rate.or_else(slowest).unwrap_or(Rate::from_bps(0)),
            processing: self.processing,
        }
    }
}
