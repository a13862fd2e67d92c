//! Assignment of services to flows.

use serde::{Deserialize, Serialize};

use shallows_core::units::{Bytes, Time};

use super::random::Stream;
use super::{FlowSpec, WorkloadError};
use crate::ids::HostId;

/// Assignment of services to flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ServiceMap {
    /// One service for all flows.
    Fixed(u16),
    /// By the pair of hosts: ((dst + 1) hosts + src + 1) mod services, as in MQ-ECN's simulations.
    /// If the number of services divides the number of hosts, the service depends on the source
    /// only.
    Pair(u16),
    /// By the source: src mod services.
    Source(u16),
    /// Random per flow, uniform over this number of services.
    Balanced(u16),
    /// At random with each flow, by weight: `[10, 20, 30, 40]` for MQ-ECN's unbalanced testbed.
    Weighted(Vec<u32>),
    /// By the size of the flow: service n for flows larger than n of these sizes, which increase.
    BySize(Vec<Bytes>),
}

impl Default for ServiceMap {
    /// Service 0 for all.
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl ServiceMap {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let total = match self {
            Self::Pair(services) | Self::Source(services) | Self::Balanced(services) => {
                u64::from(*services)
            }
            Self::Weighted(weights) if weights.len() > usize::from(u16::MAX) => {
                return Err(WorkloadError::TooManyServices(weights.len()));
            }
            Self::Weighted(weights) => weights.iter().map(|&weight| u64::from(weight)).sum(),
            Self::BySize(sizes) if !sizes.is_sorted_by(|small, large| small < large) => {
                return Err(WorkloadError::SizesNotIncreasing);
            }
            Self::Fixed(_) | Self::BySize(_) => 1,
        };
        match total {
            0 => Err(WorkloadError::NoServices),
            _ => Ok(()),
        }
    }

    /// A flow from `src` to `dst` in a fabric with `hosts` hosts: its service is drawn, then its
    /// size, given the service.
    pub(super) fn flow(
        &self,
        start: Time,
        (src, dst): (HostId, HostId),
        hosts: u32,
        stream: &mut Stream,
        size: impl FnOnce(u16, &mut Stream) -> u64,
    ) -> FlowSpec {
        let service = self.draw(src, dst, hosts, stream);
        let bytes = size(service, stream);
        FlowSpec {
            start,
            src,
            dst,
            bytes,
            service: self.of_size(service, bytes),
        }
    }

    /// The service of a flow from `src` to `dst` in a fabric with `hosts` hosts.
    pub(super) fn draw(&self, src: HostId, dst: HostId, hosts: u32, stream: &mut Stream) -> u16 {
        match *self {
            Self::Fixed(service) => service,
            Self::Pair(services) => pair_service(src, dst, hosts, services),
            Self::Source(services) => (src.0 % u32::from(services)) as u16,
            Self::Balanced(services) => stream.below(u64::from(services)) as u16,
            Self::Weighted(ref weights) => {
                let total = weights.iter().map(|&weight| u64::from(weight)).sum();
                let mut rest = stream.below(total);
                let reached = weights.iter().position(|&weight| {
                    let reached = rest < u64::from(weight);
                    rest = rest.wrapping_sub(u64::from(weight));
                    reached
                });
                reached.unwrap_or_default() as u16
            }
            // The flow has no size yet; what draws it does so for service 0.
            Self::BySize(_) => 0,
        }
    }

    /// The service of a flow for which `drawn` was drawn, once its size is known.
    fn of_size(&self, drawn: u16, bytes: u64) -> u16 {
        match self {
            Self::BySize(sizes) => sizes.partition_point(|size| size.get() < bytes) as u16,
            _ => drawn,
        }
    }

    /// The mean over the services of flows from `src` to `dst` of what `value` gives for each.
    pub(super) fn mean(
        &self,
        src: HostId,
        dst: HostId,
        hosts: u32,
        value: impl Fn(u16) -> f64,
    ) -> f64 {
        match *self {
            Self::Fixed(service) => value(service),
            Self::BySize(_) => value(0),
            Self::Pair(services) => value(pair_service(src, dst, hosts, services)),
            Self::Source(services) => value((src.0 % u32::from(services)) as u16),
            Self::Balanced(services) => (0..services).map(value).sum::<f64>() / f64::from(services),
            Self::Weighted(ref weights) => {
                let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
                let weighted = (0..).zip(weights).map(|(s, &w)| value(s) * f64::from(w));
                weighted.sum::<f64>() / total
            }
        }
    }
}

fn pair_service(src: HostId, dst: HostId, hosts: u32, services: u16) -> u16 {
    let pair = (u64::from(dst.0) + 1) * u64::from(hosts) + u64::from(src.0) + 1;
    (pair % u64::from(services)) as u16
}
