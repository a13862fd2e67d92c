use std::borrow::Cow;

use shallows_core::host::udp::ConfigError as UdpError;
use shallows_core::keyed::Keyed;
use thiserror::Error;

use super::list;
use super::{CdfError, SizeUnit};
use crate::Interrupted;
use crate::topology::UnknownNode;

impl Keyed for WorkloadError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let key = match self {
            Self::Zero(name) => name,
            Self::Load { .. } => "load",
            Self::Either(name, other) => return vec![(*name).into(), (*other).into()],
            Self::Locality | Self::NobodyToSendTo { .. } => "locality",
            Self::NothingLeaves(_) => "load-of",
            Self::NoServices | Self::TooManyServices(_) => "services",
            Self::NoSizes | Self::NestedSizes => "by-service",
            Self::SizesNotIncreasing => "by-size",
            Self::CdfSource | Self::Cdf(_) | Self::File { .. } => "cdf",
            Self::OtherUnit(_) => "unit",
            Self::List(_) => "list",
            Self::TooManyPairs(_) => "process",
            Self::NothingStarts => "duration",
            Self::StopsBeforeStart { .. } => "stop",
            Self::Udp(error) => return error.keys(),
            Self::At { error, .. } => return error.keys(),
            Self::NoSuchHost { .. }
            | Self::UnknownHost(_)
            | Self::NoHosts(_)
            | Self::OneHost { .. }
            | Self::ToItself(_)
            | Self::TwoHosts { .. }
            | Self::TooManyFlows { .. }
            | Self::TooSlow { .. }
            | Self::Interrupted(_)
            | Self::TooLate(_) => return Vec::new(),
        };
        vec![key.into()]
    }
}

impl From<list::ReadError> for WorkloadError {
    fn from(error: list::ReadError) -> Self {
        if error.is_interrupted() {
            return Interrupted.into();
        }
        Self::List(error)
    }
}

/// The reason why a workload cannot be generated.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// Somebody gave up waiting for it.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// Something must not be zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// A load that no link can be meant to carry.
    #[error("load is {value}, it must be a positive number{most}")]
    Load {
        /// The value given.
        value: f64,
        /// The greatest, if it is greater.
        most: &'static str,
    },
    /// Neither or both of two parameters.
    #[error("give either {0} or {1}")]
    Either(&'static str, &'static str),
    /// A host number out of range.
    #[error("there is no host {host}, the fabric has hosts 0 to {}", .hosts - 1)]
    NoSuchHost {
        /// The number.
        host: u32,
        /// Number of hosts.
        hosts: u32,
    },
    /// A host name that is unknown.
    #[error(transparent)]
    UnknownHost(UnknownNode),
    /// A set of hosts that is empty.
    #[error("{0:?} has no hosts")]
    NoHosts(String),
    /// One host is needed.
    #[error("{text:?} must be one host, it is {count}")]
    OneHost {
        /// The set.
        text: String,
        /// Its size.
        count: usize,
    },
    /// A flow to where it comes from.
    #[error("a flow from {0} to itself")]
    ToItself(String),
    /// A pattern that needs more hosts.
    #[error("{pattern} needs at least 2 hosts")]
    TwoHosts {
        /// The pattern.
        pattern: &'static str,
    },
    /// Shares that cannot be.
    #[error("the shares of locality must be from 0 and not all 0")]
    Locality,
    /// A locality that leaves a host alone.
    #[error("{host} has no destination in its {scope}")]
    NobodyToSendTo {
        /// The host.
        host: String,
        /// The part of the fabric.
        scope: &'static str,
    },
    /// A load on links that are not used.
    #[error("load-of = \"rack-uplinks\", but no traffic leaves the rack of {0}")]
    NothingLeaves(String),
    /// No service at all.
    #[error("there must be at least one service with a weight")]
    NoServices,
    /// More services than can be numbered.
    #[error("{0} services are too many, 65535 are possible")]
    TooManyServices(usize),
    /// Sizes of which one is not above the one before.
    #[error("the sizes of by-size must increase")]
    SizesNotIncreasing,
    /// A list of sizes without any.
    #[error("by-service must list at least one size")]
    NoSizes,
    /// A list of sizes in a list of sizes.
    #[error("a size in by-service must not be by-service itself")]
    NestedSizes,
    /// A distribution from nowhere or from two places.
    #[error("give a distribution either by name or by file")]
    CdfSource,
    /// A distribution that cannot be read.
    #[error(transparent)]
    Cdf(#[from] CdfError),
    /// A unit that contradicts the distribution's own.
    #[error("the sizes of the distribution are {}; leave out unit", match .0 {
        SizeUnit::Bytes => "bytes",
        SizeUnit::Packets => "packets",
    })]
    OtherUnit(SizeUnit),
    /// Datagrams that cannot be sent.
    #[error("stream: {0}")]
    Udp(#[from] UdpError),
    /// A list that cannot be read.
    #[error(transparent)]
    List(list::ReadError),
    /// A distribution's file that cannot be read.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// Description of the problem.
        problem: String,
    },
    /// More flows than fit.
    #[error(
        "about {flows:.3e} flows would take {:.0} GB of memory; at most {most} are possible",
        flows * 110e-9
    )]
    TooManyFlows {
        /// Number of flows that the settings give.
        flows: f64,
        /// The limit.
        most: u64,
    },
    /// More processes than fit.
    #[error("{0} pairs are too many for process = \"pair\"; choose process = \"source\"")]
    TooManyPairs(u64),
    /// Arrivals after the end of time.
    #[error("only {reached} of {wanted} flows would start in 213 days, the longest run")]
    TooSlow {
        /// Flows that would start.
        reached: u64,
        /// Flows wanted.
        wanted: u64,
    },
    /// A duration in which nothing happens.
    #[error("no flow starts within the duration; make it longer")]
    NothingStarts,
    /// A flow that stops before it starts.
    #[error("a flow stops at {stop}, which is not after its start at {start}")]
    StopsBeforeStart {
        /// Its start.
        start: shallows_core::units::Time,
        /// Its stop.
        stop: shallows_core::units::Time,
    },
    /// A time that cannot be represented.
    #[error("{0} is too late, a run lasts at most 213 days")]
    TooLate(&'static str),
    /// One of several workloads.
    #[error("workload {index}: {error}")]
    At {
        /// Its position, from 0.
        index: usize,
        /// The error of this part.
        error: Box<WorkloadError>,
    },
}
