//! Keys of a scenario.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use shallows_core::port::pause::PauseConfig;
use shallows_core::port::{BufferConfig, PerIndex, PortConfig};
use shallows_core::tcp::TcpConfig;
use shallows_core::units::{Bytes, Time};
use shallows_model::routing::RoutingConfig;
use shallows_model::topology::TopologyConfig;
use shallows_model::workload::{HostSet, WorkloadConfig};
use shallows_model::{ApplicationEntry, Completion, Connections, HostSetup};
use shallows_results::size_class::SizeClasses;
use shallows_results::statistics::PercentileRule;

use super::faults::LinkConfig;
use super::inputs;
use super::links::LinkNames;
use super::live::Live;
use super::probes::ProbesConfig;
use crate::measure::Measure;

/// Everything that a run depends on, as written in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScenarioConfig {
    /// Version of the program that wrote the file.
    #[serde(default)]
    pub version: Option<String>,
    /// Name of the results; the name of the file if not given.
    #[serde(default)]
    pub name: Option<String>,
    /// Seed of every random choice.
    #[serde(default = "one")]
    pub seed: u64,
    /// End of the run; the end of the last flow if not given.
    #[serde(default)]
    pub until: Option<Time>,
    /// End of a flow for its completion time.
    #[serde(default)]
    pub completion: Completion,
    /// Lifetime of connections.
    #[serde(default)]
    pub connections: Connections,
    /// Routing.
    #[serde(default)]
    pub routing: RoutingConfig,
    /// Hosts, switches and links.
    pub topology: TopologyConfig,
    /// Faults of links.
    #[serde(default)]
    pub links: Vec<LinkConfig>,
    /// Egress ports of switches and hosts.
    pub ports: Ports,
    /// Host mechanisms before the NIC: QJUMP, XCo, stage tags.
    #[serde(default)]
    pub hosts: HostSetup,
    /// TCP parameters.
    #[serde(default)]
    pub transport: TcpConfig,
    /// TCP parameters of specific services or hosts, which override `[transport]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<TransportFor>,
    /// Traffic to generate; `--flows` replaces it.
    #[serde(default)]
    pub workload: Workloads,
    /// Applications, in addition to the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub application: Vec<ApplicationEntry>,
    /// Time series to record besides the flows.
    #[serde(default)]
    pub probes: ProbesConfig,
    /// Measuring window; every flow counts if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// Settings of the report.
    #[serde(default)]
    pub report: Report,
    /// Settings of live runs.
    #[serde(default)]
    pub live: Live,
}

/// Egress ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ports {
    /// Memory shared by the ports of a switch, for `dynamic` buffers.
    pub pool: Option<Bytes>,
    /// Pause frames of switches; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseConfig>,
    /// Delay from a packet's arrival at a host to its transport: one value for all hosts, or a
    /// list.
    #[serde(default = "no_delay")]
    pub host_delay: PerIndex<Time>,
    /// Ports of switches.
    pub switch: PortConfig,
    /// Ports of hosts.
    #[serde(default)]
    pub host: HostPort,
    /// Ports of specific links, which override `switch` and `host`.
    #[serde(default)]
    pub special: Vec<SpecialPort>,
}

fn no_delay() -> PerIndex<Time> {
    PerIndex::All(Time::ZERO)
}

/// Port of specific links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SpecialPort {
    /// Links by name.
    pub links: LinkNames,
    /// The port.
    pub port: PortConfig,
}

/// The port of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum HostPort {
    /// `"fifo"`: one queue without a limit, on links like those of the switches.
    #[default]
    Fifo,
    /// `"as-switch"`: the same as a switch has.
    AsSwitch,
    /// Its own.
    Own(Box<PortConfig>),
}

/// Transport settings of some services or of the flows from some hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TransportFor {
    /// The services; all if not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<u16>,
    /// Sending hosts; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostSet>,
    /// Keys of `[transport]`; each replaces the whole value there.
    #[schemars(with = "TcpConfig")]
    pub set: toml::Table,
}

/// One workload or several at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Workloads(pub Vec<WorkloadConfig>);

/// Settings of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Report {
    /// The largest small flow.
    pub small_max: Bytes,
    /// The largest medium flow.
    pub medium_max: Bytes,
    /// Definition of percentiles.
    pub percentiles: PercentileRule,
    /// Names of services, for metrics such as `service.storage.p99`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, u16>,
}

fn one() -> u64 {
    1
}

impl ScenarioConfig {
    /// The scenario as a file that repeats the run, with the files that it reads.
    pub fn resolved(&self) -> anyhow::Result<(String, Vec<inputs::Input>)> {
        let mut config = self.clone();
        config.version = Some(env!("CARGO_PKG_VERSION").to_owned());
        let inputs = inputs::collect(&mut config.workload.0)?;
        Ok((toml::to_string(&config)?, inputs))
    }
}

impl Ports {
    /// All ports that are written down, with their paths.
    pub(super) fn configs_mut(&mut self) -> impl Iterator<Item = (String, &mut PortConfig)> {
        let host = match &mut self.host {
            HostPort::Own(port) => Some(("ports.host".to_owned(), &mut **port)),
            HostPort::Fifo | HostPort::AsSwitch => None,
        };
        let special = self.special.iter_mut().enumerate();
        let special =
            special.map(|(index, entry)| (format!("ports.special.{index}.port"), &mut entry.port));
        [("ports.switch".to_owned(), &mut self.switch)]
            .into_iter()
            .chain(host)
            .chain(special)
    }

    /// Ports of hosts.
    pub fn host(&self) -> PortConfig {
        match &self.host {
            HostPort::Fifo => PortConfig {
                packet: self.switch.packet,
                framing: self.switch.framing,
                ..PortConfig::fifo(BufferConfig::Unlimited)
            },
            HostPort::AsSwitch => self.switch.clone(),
            HostPort::Own(port) => (**port).clone(),
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        let classes = SizeClasses::default();
        Self {
            small_max: classes.small_max(),
            medium_max: classes.medium_max(),
            percentiles: PercentileRule::default(),
            services: BTreeMap::new(),
        }
    }
}

impl JsonSchema for HostPort {
    fn schema_name() -> Cow<'static, str> {
        "HostPort".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "\"fifo\", \"as-switch\" or a port",
            "anyOf": [
                { "enum": ["fifo", "as-switch"] },
                generator.subschema_for::<PortConfig>(),
            ],
        })
    }
}

impl JsonSchema for Workloads {
    fn schema_name() -> Cow<'static, str> {
        "Workloads".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One workload, or several at once as [[workload]]",
            "anyOf": [
                generator.subschema_for::<WorkloadConfig>(),
                generator.subschema_for::<Vec<WorkloadConfig>>(),
            ],
        })
    }
}

impl Serialize for HostPort {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fifo => serializer.serialize_str("fifo"),
            Self::AsSwitch => serializer.serialize_str("as-switch"),
            Self::Own(port) => port.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HostPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum Name {
            Fifo,
            AsSwitch,
        }

        impl<'de> Visitor<'de> for Reader {
            type Value = HostPort;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("\"fifo\", \"as-switch\" or a table with a port")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<HostPort, E> {
                Name::deserialize(name.into_deserializer()).map(|name| match name {
                    Name::Fifo => HostPort::Fifo,
                    Name::AsSwitch => HostPort::AsSwitch,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HostPort, A::Error> {
                let port = PortConfig::deserialize(MapAccessDeserializer::new(map))?;
                Ok(HostPort::Own(Box::new(port)))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for Workloads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Workloads;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a workload, or several as [[workload]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Workloads, A::Error> {
                let one = WorkloadConfig::deserialize(MapAccessDeserializer::new(&mut map))?;
                match map.next_key::<String>()? {
                    None => Ok(Workloads(vec![one])),
                    Some(other) => Err(A::Error::custom(format!(
                        "{other} is a second workload in this table: write several as a list, each \
                         under [[workload]], such as {other} = {{ ... }}"
                    ))),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Workloads, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Workloads)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
