//! Flow sizes.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use shallows_core::units::Bytes;

use super::notation::{TextOrTable, text_or_table};
use super::random::Stream;
use super::{Cdf, SizeUnit, WorkloadError};

/// Sizes of flows: `"1MB"`, `{ cdf = "web-search" }` or `{ by-service = [...] }`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum SizeConfig {
    /// One size for all flows.
    Fixed(Bytes),
    /// A random size for each flow.
    Drawn(DrawnSize),
}

/// Random sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DrawnSize {
    /// Sizes from a distribution.
    Cdf(CdfConfig),
    /// Sizes by the service of the flow, modulo the length of the list.
    ByService(Vec<SizeConfig>),
}

/// A distribution: its name, or a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum CdfConfig {
    /// Name of a built-in distribution.
    Named(String),
    /// A distribution with parameters.
    Table(CdfTable),
}

/// A distribution with its parameters. Exactly one of `name` and `file` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CdfTable {
    /// Name of a built-in distribution.
    pub name: Option<String>,
    /// CSV file of the distribution.
    pub file: Option<PathBuf>,
    /// Unit of the sizes if the file's header has none; bytes by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<SizeUnit>,
    /// Payload of a packet, if sizes are in packets.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Mean size from which arrival rates are computed, instead of the exact mean. MQ-ECN's
    /// simulations took KiB for kB: 914, 1671, 4149 and 7495 KB.
    pub mean: Option<Bytes>,
}

fn default_packet() -> Bytes {
    Bytes::new(1460)
}

impl SizeConfig {
    /// The shipped distribution `name`.
    pub fn named(name: &str) -> Self {
        Self::Drawn(DrawnSize::Cdf(CdfConfig::Named(name.to_owned())))
    }

    pub(super) fn rebase(&mut self, base: &Path) {
        match self {
            Self::Drawn(DrawnSize::Cdf(CdfConfig::Table(table))) => {
                if let Some(file) = &mut table.file {
                    *file = base.join(&*file);
                }
            }
            Self::Drawn(DrawnSize::ByService(sizes)) => {
                for size in sizes {
                    size.rebase(base);
                }
            }
            Self::Fixed(_) | Self::Drawn(DrawnSize::Cdf(CdfConfig::Named(_))) => {}
        }
    }

    /// The sizes, one for each service modulo their number.
    pub(super) fn load(&self) -> Result<Sizes, WorkloadError> {
        let each = match self {
            Self::Drawn(DrawnSize::ByService(list)) if list.is_empty() => {
                return Err(WorkloadError::NoSizes);
            }
            Self::Drawn(DrawnSize::ByService(list)) => {
                list.iter().map(Size::load).collect::<Result<_, _>>()?
            }
            single => vec![Size::load(single)?],
        };
        Ok(Sizes(each))
    }
}

impl<'de> Deserialize<'de> for SizeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a size such as \"1MB\", { cdf = \"web-search\" } or { by-service = [...] }";
        text_or_table(deserializer, expected).map(|size| match size {
            TextOrTable::Text(bytes) => Self::Fixed(bytes),
            TextOrTable::Table(drawn) => Self::Drawn(drawn),
        })
    }
}

impl<'de> Deserialize<'de> for CdfConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the name of a distribution, or a table with name or file";
        text_or_table(deserializer, expected).map(|cdf| match cdf {
            TextOrTable::Text(name) => Self::Named(name),
            TextOrTable::Table(table) => Self::Table(table),
        })
    }
}

/// Distribution of each service.
#[derive(Clone, Debug)]
pub(super) struct Sizes(Vec<Size>);

impl Sizes {
    pub(super) fn of(&self, service: u16) -> &Size {
        &self.0[usize::from(service) % self.0.len()]
    }

    /// A value for each size in the list.
    pub(super) fn map(&self, value: impl Fn(&Size) -> f64) -> Vec<f64> {
        self.0.iter().map(value).collect()
    }
}

/// A distribution that is ready to be drawn from.
#[derive(Clone, Debug)]
pub(super) enum Size {
    Fixed(u64),
    Cdf {
        cdf: Cdf,
        packet: u64,
        mean: Option<f64>,
    },
}

impl Size {
    fn load(config: &SizeConfig) -> Result<Self, WorkloadError> {
        let cdf = match config {
            SizeConfig::Fixed(Bytes::ZERO) => return Err(WorkloadError::Zero("size")),
            SizeConfig::Fixed(bytes) => return Ok(Self::Fixed(bytes.get())),
            SizeConfig::Drawn(DrawnSize::ByService(_)) => return Err(WorkloadError::NestedSizes),
            SizeConfig::Drawn(DrawnSize::Cdf(cdf)) => cdf,
        };
        match cdf {
            CdfConfig::Named(name) => Ok(Self::Cdf {
                cdf: Cdf::named(name)?,
                packet: default_packet().get(),
                mean: None,
            }),
            CdfConfig::Table(table) => table.load(),
        }
    }

    /// The payload of one flow.
    pub(super) fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Cdf { cdf, packet, .. } => match cdf.unit() {
                SizeUnit::Bytes => cdf.draw(stream),
                SizeUnit::Packets => cdf.draw(stream).saturating_mul(*packet),
            },
        }
    }

    /// The mean payload of a flow.
    pub(super) fn mean_payload(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => *bytes as f64,
            Self::Cdf { cdf, packet, .. } => match cdf.unit() {
                SizeUnit::Bytes => cdf.mean_steps(1.0),
                SizeUnit::Packets => cdf.mean_steps(1.0) * *packet as f64,
            },
        }
    }

    /// The mean number of packets of a flow, where each carries up to `payload` bytes.
    pub(super) fn mean_packets(&self, payload: u64) -> f64 {
        match self {
            Self::Fixed(bytes) => bytes.div_ceil(payload) as f64,
            Self::Cdf { cdf, .. } => match cdf.unit() {
                SizeUnit::Bytes => cdf.mean_steps(payload as f64),
                SizeUnit::Packets => cdf.mean_steps(1.0),
            },
        }
    }

    /// The mean that the configuration wants arrivals to be computed from.
    pub(super) fn declared_mean(&self) -> Option<f64> {
        match self {
            Self::Fixed(_) => None,
            Self::Cdf { mean, .. } => *mean,
        }
    }
}

impl CdfTable {
    fn load(&self) -> Result<Size, WorkloadError> {
        let cdf = match (&self.name, &self.file) {
            (Some(name), None) => Cdf::named(name)?,
            (None, Some(path)) => {
                let in_file = |problem: String| WorkloadError::File {
                    path: path.display().to_string(),
                    problem,
                };
                let text = fs::read_to_string(path).map_err(|error| in_file(error.to_string()))?;
                let unit = self.unit.unwrap_or(SizeUnit::Bytes);
                Cdf::parse(&text, unit).map_err(|error| in_file(error.to_string()))?
            }
            _ => return Err(WorkloadError::CdfSource),
        };
        if self.unit.is_some_and(|unit| unit != cdf.unit()) {
            return Err(WorkloadError::OtherUnit(cdf.unit()));
        }
        if self.packet == Bytes::ZERO {
            return Err(WorkloadError::Zero("packet"));
        }
        if self.mean == Some(Bytes::ZERO) {
            return Err(WorkloadError::Zero("mean"));
        }
        Ok(Size::Cdf {
            cdf,
            packet: self.packet.get(),
            mean: self.mean.map(|mean| mean.get() as f64),
        })
    }
}
