//! The reference of a load (links or hosts) and the bytes counted towards it.
//!
//! A load is the expected number of bytes that flows bring per second, divided by the capacity of
//! some links. Which links and which bytes differs from paper to paper, so both are parameters.
//! ACKs and retransmissions never count.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shallows_core::units::{Bytes, Rate, Time};

use super::locality::Destinations;
use super::size::Size;
use super::{FlowSpec, WorkloadError};
use crate::ids::HostId;
use crate::topology::{Fabric, Node};

/// The links that a load is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadReference {
    /// `"source-links"`: every source offers the load on its own link.
    #[default]
    SourceLinks,
    /// `"destination-links"`: all sources together, in equal shares, offer the load on the links to
    /// the destinations. MQ-ECN's testbed, with eight senders and one receiver.
    DestinationLinks,
    /// `"rack-uplinks"`: what leaves the rack of a source is the load on the links from that rack's
    /// switch to others. EAR's core load.
    RackUplinks,
    /// A rate such as `"10Gbps"`: all sources together, in equal shares, offer the load on that. The
    /// bottleneck of a dumbbell.
    Rate(Rate),
}

impl Serialize for LoadReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::SourceLinks => serializer.serialize_str("source-links"),
            Self::DestinationLinks => serializer.serialize_str("destination-links"),
            Self::RackUplinks => serializer.serialize_str("rack-uplinks"),
            Self::Rate(rate) => rate.serialize(serializer),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for LoadReference {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LoadReference".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "The links that a load is a share of, or a rate",
            "anyOf": [
                { "enum": ["source-links", "destination-links", "rack-uplinks"] },
                generator.subschema_for::<Rate>(),
            ],
        })
    }
}

impl<'de> Deserialize<'de> for LoadReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match &*text {
            "source-links" => Ok(Self::SourceLinks),
            "destination-links" => Ok(Self::DestinationLinks),
            "rack-uplinks" => Ok(Self::RackUplinks),
            _ => text.parse().map(Self::Rate).map_err(|_| {
                serde::de::Error::custom(format_args!(
                    "{text:?} is not source-links, destination-links, rack-uplinks or a rate such \
                     as \"10Gbps\""
                ))
            }),
        }
    }
}

/// Bytes that count towards the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum Counted {
    /// Payload of the flow.
    Payload,
    /// Payload plus packet headers. A distribution in packets counts one header for each packet.
    Wire {
        /// Payload of a full packet.
        payload: Bytes,
        /// Header bytes of a packet.
        overhead: Bytes,
    },
}

impl Default for Counted {
    /// Packets of 1460 B with 40 B of headers.
    fn default() -> Self {
        Self::Wire {
            payload: Bytes::new(1460),
            overhead: Bytes::new(40),
        }
    }
}

impl Counted {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        match self {
            Self::Wire { payload, .. } if *payload == Bytes::ZERO => {
                Err(WorkloadError::Zero("payload"))
            }
            _ => Ok(()),
        }
    }

    /// Counted bytes of a flow with this payload.
    pub fn bytes(&self, flow: u64) -> u64 {
        match self {
            Self::Payload => flow,
            Self::Wire { payload, overhead } => {
                let headers = flow.div_ceil(payload.get()).saturating_mul(overhead.get());
                flow.saturating_add(headers)
            }
        }
    }

    /// Mean counted bytes of flows drawn from `size`.
    pub(super) fn mean(&self, size: &Size) -> f64 {
        size.declared_mean().unwrap_or_else(|| match self {
            Self::Payload => size.mean_payload(),
            Self::Wire { payload, overhead } => {
                size.mean_payload() + size.mean_packets(payload.get()) * overhead.get() as f64
            }
        })
    }
}

/// The load that was asked for and the one that the flows bring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfferedLoad {
    /// As configured.
    pub requested: f64,
    /// Counted bytes of the generated flows over what `capacity` carries in `span`. It differs from
    /// what was requested by chance, and where a mean was declared that is not the exact one.
    pub offered: f64,
    /// Bytes that count.
    pub bytes: u64,
    /// From the start of the workload to its end or, if a number of flows was asked for, to the
    /// start of the last one.
    pub span: Time,
    /// The sum of the rates that the load is a share of, in bits per second.
    pub capacity: f64,
}

/// A load, the links it is measured on and the hosts that bring it.
pub(super) struct Load<'a> {
    pub(super) requested: f64,
    pub(super) reference: LoadReference,
    pub(super) counted: Counted,
    pub(super) fabric: &'a Fabric,
    pub(super) sources: &'a [HostId],
    pub(super) destinations: &'a [HostId],
}

impl Load<'_> {
    /// Target of each source, in counted bits per second.
    pub(super) fn per_source(&self, to: &Destinations) -> Result<Vec<f64>, WorkloadError> {
        let rates: Vec<f64> = match self.reference {
            LoadReference::SourceLinks => self
                .sources
                .iter()
                .map(|&src| self.host_rate(src))
                .collect(),
            LoadReference::DestinationLinks | LoadReference::Rate(_) => {
                let each = self.capacity() / self.sources.len() as f64;
                vec![each; self.sources.len()]
            }
            LoadReference::RackUplinks => self.per_source_leaving(to)?,
        };
        Ok(rates.iter().map(|rate| rate * self.requested).collect())
    }

    /// In each rack the rate that, times the share that leaves, sums up to that of its uplinks.
    fn per_source_leaving(&self, to: &Destinations) -> Result<Vec<f64>, WorkloadError> {
        let uplinks = self.rack_uplinks();
        let mut leaving = vec![0.0; uplinks.len()];
        for &src in self.sources {
            leaving[self.rack(src)] += to.leaving(self.fabric, src);
        }
        let rate = |&src: &HostId| {
            let rack = self.rack(src);
            if leaving[rack] == 0.0 {
                let name = self.fabric.name(Node::Host(src)).to_owned();
                return Err(WorkloadError::NothingLeaves(name));
            }
            Ok(uplinks[rack] / leaving[rack])
        };
        self.sources.iter().map(rate).collect()
    }

    /// Bits per second that the load is a share of.
    pub(super) fn capacity(&self) -> f64 {
        match self.reference {
            LoadReference::SourceLinks => self.sources.iter().map(|&h| self.host_rate(h)).sum(),
            LoadReference::DestinationLinks => {
                self.destinations.iter().map(|&h| self.host_rate(h)).sum()
            }
            LoadReference::Rate(rate) => rate.bps() as f64,
            LoadReference::RackUplinks => {
                let mut uplinks = self.rack_uplinks();
                let racks = self.sources.iter().map(|&src| self.rack(src));
                racks.map(|rack| std::mem::take(&mut uplinks[rack])).sum()
            }
        }
    }

    /// Load that `flows` offer within `span`.
    pub(super) fn offered(&self, flows: &[FlowSpec], span: Time) -> OfferedLoad {
        let counts = |flow: &&FlowSpec| {
            self.reference != LoadReference::RackUplinks
                || self.rack(flow.src) != self.rack(flow.dst)
        };
        let counted = flows.iter().filter(counts);
        let bytes: u64 = counted.map(|flow| self.counted.bytes(flow.bytes)).sum();
        let capacity = self.capacity();
        OfferedLoad {
            requested: self.requested,
            offered: bytes as f64 * 8.0 / (capacity * span.as_secs_f64()),
            bytes,
            span,
            capacity,
        }
    }

    /// The sum of the rates from each switch to other switches.
    fn rack_uplinks(&self) -> Vec<f64> {
        let mut rates = vec![0.0; self.fabric.switches() as usize];
        for link in self.fabric.links() {
            if let (Node::Switch(from), Node::Switch(_)) = (link.from, link.to) {
                rates[from as usize] += link.rate.bps() as f64;
            }
        }
        rates
    }

    fn rack(&self, host: HostId) -> usize {
        self.fabric.place(host).rack as usize
    }

    fn host_rate(&self, host: HostId) -> f64 {
        let nics = self.fabric.nics(host);
        let rates = nics.map(|nic| self.fabric.link(nic.up).rate.bps() as f64);
        rates.sum()
    }
}
