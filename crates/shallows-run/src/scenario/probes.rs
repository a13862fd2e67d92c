//! Probes: measurements over the time of a run.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Formatter};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use shallows_core::application::{ApplicationConfig, Members, PingConfig, Protocol, Span};
use shallows_core::units::{Bytes, Time};
use shallows_model::topology::Fabric;
use shallows_model::workload::HostSet;
use shallows_model::{ApplicationSetup, FlowId, HostId, Id as _, LinkId};
use shallows_sim::Watch;

use super::links::LinkNames;
use super::{Diagnostic, Scenario};
use crate::driver::Ticks;

/// Time series to record; none by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ProbesConfig {
    /// Every round-trip time that a sender sees.
    pub rtt: bool,
    /// Waiting times of packets at these links.
    pub sojourn: LinkNames,
    /// Packets on these links, as a pcapng capture.
    pub capture: LinkNames,
    /// Lengths and thresholds of queues.
    pub queues: Option<LinkProbe>,
    /// Throughput of queues.
    pub throughput: Option<LinkProbe>,
    /// Windows of senders.
    pub flows: Option<FlowProbe>,
    /// Application bytes that have arrived, by service.
    pub goodput: Option<ServiceProbe>,
    /// Pings between hosts, which are packets of the run like others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ping: Vec<PingProbe>,
}

/// Echo requests of 84 bytes from one host to another: ICMP in a live run, UDP in a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PingProbe {
    /// Host that sends the pings.
    pub from: HostSet,
    /// Host that answers.
    pub to: HostSet,
    /// Service of the pings.
    #[serde(default)]
    pub service: u16,
    /// Time of the first ping.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: Time,
    /// Interval between pings.
    #[serde(default = "ping_interval")]
    pub interval: Time,
}

/// Default `interval` of pings.
fn ping_interval() -> Time {
    Time::from_ms(10)
}

/// Periodic samples of every service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ServiceProbe {
    /// Sampling interval.
    pub interval: Time,
}

/// Periodic samples of links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkProbe {
    /// Links by name.
    pub links: LinkNames,
    /// Start of the first interval.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: Time,
    /// Sampling interval.
    pub interval: Time,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(time: &Time) -> bool {
    *time == Time::ZERO
}

/// Periodic samples of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FlowProbe {
    /// Flows to sample.
    pub flows: FlowNumbers,
    /// Sampling interval.
    pub interval: Time,
}

/// Flows by their numbers, or `"all"`.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowNumbers {
    All,
    Some(Vec<u32>),
}

/// The probes of a run, checked.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// Observations of single packets.
    pub watch: Watch,
    /// Ports whose queues are sampled.
    pub queues: Option<Sampled<LinkId>>,
    /// Ports whose throughput is sampled.
    pub throughput: Option<Sampled<LinkId>>,
    /// Flows whose windows are sampled.
    pub flows: Option<Sampled<FlowId>>,
    /// Sampling of goodput, by service.
    pub goodput: Option<Sampled<()>>,
    /// Pings, probe by probe.
    pub pings: Vec<Pings>,
}

impl Probes {
    /// Its pings alone, which are traffic: without them it would be another run.
    #[must_use]
    pub fn only_pings(&self) -> Self {
        Self {
            pings: self.pings.clone(),
            ..Self::default()
        }
    }
}

/// Pings from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pings {
    /// Host that sends them.
    pub from: HostId,
    /// Host that answers.
    pub to: HostId,
    /// Their service.
    pub service: u16,
    /// Time of the first one.
    pub start: Time,
    /// Interval between them.
    pub interval: Time,
}

impl Pings {
    /// Payload of a ping: with the 28 bytes of its headers it is as long as ping's echo request.
    const PAYLOAD: Bytes = Bytes::new(56);

    /// The application that sends them in a simulation.
    pub(crate) fn application(&self) -> ApplicationSetup {
        ApplicationSetup {
            name: "ping".to_owned(),
            service: self.service,
            hosts: vec![self.from, self.to],
            members: Members {
                clients: 1,
                servers: 1,
            },
            span: Span {
                start: self.start,
                stop: None,
            },
            run: ApplicationConfig::Ping(PingConfig {
                interval: self.interval,
                size: Self::PAYLOAD,
                count: None,
                protocol: Protocol::Datagram,
            }),
        }
    }
}

/// Sampled quantities and their interval.
#[derive(Clone, Debug)]
pub struct Sampled<I> {
    /// Links or flows; none where it is all services.
    pub of: Vec<I>,
    /// Start of the first interval.
    pub start: Time,
    /// Sampling interval.
    pub interval: Time,
}

impl<I> Sampled<I> {
    /// From the beginning of the run.
    pub fn new(of: Vec<I>, interval: Time) -> Self {
        Self {
            of,
            start: Time::ZERO,
            interval,
        }
    }

    /// The ends of the intervals.
    pub(crate) fn ticks(&self) -> Ticks {
        Ticks::new(self.start.saturating_add(self.interval), self.interval)
    }
}

impl Scenario {
    /// The probes on a fabric with so many flows.
    pub(super) fn probes(&self, fabric: &Fabric, flows: usize) -> Result<Probes, Diagnostic> {
        let config = &self.config.probes;
        let links = |path: &str, names: &LinkNames| -> Result<Vec<LinkId>, Diagnostic> {
            let found = names.find(fabric);
            found.map_err(|problem| self.error(path, problem))
        };
        let set = |path, names| {
            Ok(links(path, names)?
                .into_iter()
                .collect::<BTreeSet<LinkId>>())
        };
        let sampled = |path: &str, probe: &Option<LinkProbe>| {
            let Some(probe) = probe else { return Ok(None) };
            let of = links(&format!("{path}.links"), &probe.links)?;
            let sampled = self.sampled(path, of, probe.interval)?;
            Ok(Some(Sampled {
                start: probe.start,
                ..sampled
            }))
        };
        let windows = match &config.flows {
            None => None,
            Some(probe) => {
                let of: Vec<FlowId> = match &probe.flows {
                    FlowNumbers::All => (0..flows as u32).map(FlowId).collect(),
                    FlowNumbers::Some(numbers) => numbers.iter().copied().map(FlowId).collect(),
                };
                if let Some(FlowId(flow)) = of.iter().find(|flow| flow.index() >= flows) {
                    let problem = format!("there is no flow {flow}; the last is {}", flows - 1);
                    return Err(self.error("probes.flows.flows", problem));
                }
                Some(self.sampled("probes.flows", of, probe.interval)?)
            }
        };
        let goodput = config.goodput.as_ref().map(|probe| {
            let services = Vec::new();
            self.sampled("probes.goodput", services, probe.interval)
        });
        Ok(Probes {
            watch: Watch {
                rtt: config.rtt,
                sojourn: set("probes.sojourn", &config.sojourn)?,
                captured: set("probes.capture", &config.capture)?,
                drops: false,
            },
            queues: sampled("probes.queues", &config.queues)?,
            throughput: sampled("probes.throughput", &config.throughput)?,
            flows: windows,
            goodput: goodput.transpose()?,
            pings: self.pings(fabric)?,
        })
    }

    fn pings(&self, fabric: &Fabric) -> Result<Vec<Pings>, Diagnostic> {
        let config = &self.config;
        let pings = |(index, probe): (usize, &PingProbe)| {
            let path = format!("probes.ping.{index}");
            let host = |set: &HostSet| {
                let host = set.one(fabric);
                host.map_err(|error| self.error_in(&path, &error))
            };
            let (from, to) = (host(&probe.from)?, host(&probe.to)?);
            if from == to {
                let problem = "pings from a host to itself cross no link";
                return Err(self.error(&format!("{path}.to"), problem));
            }
            let of = self.sampled(&path, Vec::<()>::new(), probe.interval)?;
            Ok(Pings {
                from,
                to,
                service: probe.service,
                start: probe.start,
                interval: of.interval,
            })
        };
        if !config.probes.ping.is_empty() && config.until.is_none() {
            let error = self.error("probes.ping", "pings never stop, so the run would not end");
            return Err(error.help("set until = \"100ms\" at the top of the file, or use --until"));
        }
        config.probes.ping.iter().enumerate().map(pings).collect()
    }

    fn sampled<I>(&self, path: &str, of: Vec<I>, interval: Time) -> Result<Sampled<I>, Diagnostic> {
        if interval == Time::ZERO {
            let path = format!("{path}.interval");
            return Err(self.error(&path, "the interval is zero; write one such as \"10us\""));
        }
        Ok(Sampled::new(of, interval))
    }
}

impl JsonSchema for FlowNumbers {
    fn schema_name() -> Cow<'static, str> {
        "FlowNumbers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "\"all\" or a list of flows",
            "anyOf": [{ "enum": ["all"] }, generator.subschema_for::<Vec<u32>>()],
        })
    }
}

impl Serialize for FlowNumbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Some(numbers) => numbers.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for FlowNumbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = FlowNumbers;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("\"all\" or a list of flows such as [0, 5]")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<FlowNumbers, E> {
                match name {
                    "all" => Ok(FlowNumbers::All),
                    _ => Err(E::unknown_variant(name, &["all"])),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<FlowNumbers, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(FlowNumbers::Some)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
