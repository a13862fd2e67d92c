//! Study files: a scenario, what is varied in it, and what is wanted of the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use crate::measured::Keep;
use crate::metric::Metric;

/// A study as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct StudyConfig {
    /// Name of the results; the name of the file if not given.
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(super) title: String,
    /// The scenario, relative to the study.
    pub(super) scenario: PathBuf,
    /// Settings of all runs, as `--set` takes them.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// Axes, which are crossed.
    #[serde(default)]
    pub(super) axis: Vec<AxisConfig>,
    #[serde(default)]
    pub(super) seeds: Seeds,
    #[serde(default)]
    pub(super) keep: Keep,
    /// Metrics of the table and of `points.parquet`.
    #[serde(default)]
    pub(super) metrics: Vec<NamedMetric>,
    #[serde(default)]
    pub(super) figure: Vec<FigureConfig>,
}

/// Seeds from 1 to a number, or those of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number of seeds, or a list of them")]
pub(super) enum Seeds {
    Count(u64),
    List(Vec<u64>),
}

impl Default for Seeds {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl Seeds {
    /// The seeds, each once, and at most `most` of them.
    pub(super) fn list(&self, most: usize) -> Result<Vec<u64>, String> {
        match self {
            Self::Count(count) if *count > most as u64 => {
                Err(format!("{count} seeds; a study has {most} runs at most"))
            }
            Self::Count(0) => Err("a study needs one seed at least".to_owned()),
            Self::Count(count) => Ok((1..=*count).collect()),
            Self::List(seeds) if seeds.is_empty() => {
                Err("a study needs one seed at least".to_owned())
            }
            Self::List(seeds) => {
                let mut once = BTreeSet::new();
                match seeds.iter().find(|seed| !once.insert(**seed)) {
                    // Equal runs would make an interval look narrower than it is.
                    Some(twice) => Err(format!("seed {twice} is there twice")),
                    None => Ok(seeds.clone()),
                }
            }
        }
    }
}

/// Returns whether a setting, as `--set` takes it, is one of the seed.
pub(crate) fn sets_seed(assignment: &str) -> bool {
    let key = assignment.split('=').next().unwrap_or_default();
    key.trim().trim_matches(['"', '\'']) == "seed"
}

/// An axis: one key, several together, or any settings of each point.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct AxisConfig {
    /// Name of its column; the last part of the key if not given.
    pub(crate) name: Option<String>,
    /// In figures.
    pub(crate) label: Option<String>,
    /// True if 0.5 is shown as 50.
    #[serde(default)]
    pub(crate) percent: bool,
    pub(crate) key: Option<String>,
    /// Keys that change together.
    #[serde(default)]
    pub(crate) keys: Vec<String>,
    /// Values of the key; a list for each point where there are several keys.
    #[serde(default)]
    pub(crate) values: Vec<toml::Value>,
    pub(crate) range: Option<RangeConfig>,
    #[serde(default)]
    pub(crate) point: Vec<PointConfig>,
}

/// Numbers from one to another.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RangeConfig {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Distance between two values.
    pub(crate) step: Option<f64>,
    /// Or how many.
    pub(crate) count: Option<u32>,
    /// True if equal ratios lie between them.
    #[serde(default)]
    pub(crate) logarithmic: bool,
}

/// A point with a name of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PointConfig {
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) set: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FigureConfig {
    /// Name of its files.
    pub(crate) name: String,
    #[serde(default)]
    pub(super) title: String,
    pub(super) panel: Vec<PanelConfig>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct PanelConfig {
    #[serde(default)]
    pub(super) title: String,
    pub(super) metric: NamedMetric,
    /// The axis to the right; without, the panel has a row for each point of `curves`.
    pub(super) x: Option<String>,
    /// The axis with a curve for each point.
    pub(super) curves: Option<String>,
    /// Position of the panel on the other axes, by name.
    #[serde(default)]
    pub(super) at: BTreeMap<String, toml::Value>,
    /// The point of `curves` that all are divided by, seed by seed.
    pub(super) normalise: Option<toml::Value>,
    /// Label of the values.
    pub(super) y: Option<String>,
    #[serde(default)]
    pub(super) from_zero: bool,
    /// True if x has equal distances for equal ratios.
    #[serde(default)]
    pub(crate) logarithmic: bool,
}

/// A metric and what the user calls it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct NamedMetric {
    pub(crate) name: String,
    pub(crate) metric: Metric,
}

impl TryFrom<String> for NamedMetric {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let metric = Metric::try_from(name.clone())?;
        Ok(Self { name, metric })
    }
}

/// A value as `--set` takes it, and as people read it: a text without quotes.
pub(super) fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
