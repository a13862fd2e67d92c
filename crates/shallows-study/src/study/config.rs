//! Study files: a scenario, what is varied in it, what is wanted of the runs, and what is claimed
//! about them. A figure of a paper is such a file too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use shallows_results::report::Size;

use super::claim::ClaimConfig;
use crate::measured::Keep;
use crate::metric::Metric;

/// A study as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StudyConfig {
    /// Name of the results; the name of the file if not given.
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) title: String,
    /// The caption of a paper's figure.
    #[serde(default)]
    pub(crate) caption: String,
    /// The section of a paper that the figure is in.
    #[serde(default)]
    pub(crate) section: String,
    /// A remark for readers.
    pub(crate) note: Option<String>,
    /// The scenario, relative to the study.
    pub(crate) scenario: PathBuf,
    /// Settings of all runs, as `--set` takes them.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// Axes, which are crossed.
    #[serde(default)]
    pub(crate) axis: Vec<AxisConfig>,
    #[serde(default)]
    pub(crate) seeds: Seeds,
    #[serde(default)]
    pub(crate) keep: Keep,
    /// The study at its full size, where it has several.
    pub(crate) full: Option<SizeConfig>,
    /// A smaller version of the study, for `--quick`.
    pub(crate) quick: Option<SizeConfig>,
    /// The version that a machine carries live.
    pub(crate) live: Option<LiveConfig>,
    /// Metrics of the table and of `points.parquet`.
    #[serde(default)]
    pub(crate) metrics: Vec<NamedMetric>,
    /// Panels of the figure that has the study's name.
    #[serde(default)]
    pub(crate) panel: Vec<PanelConfig>,
    /// Figures with names of their own.
    #[serde(default)]
    pub(crate) figure: Vec<FigureConfig>,
    /// Sentences about the results, in numbers.
    #[serde(default)]
    pub(crate) claim: Vec<ClaimConfig>,
}

impl StudyConfig {
    /// The table of a size, if the study has one.
    pub(crate) fn size(&self, size: Size) -> Option<&SizeConfig> {
        match size {
            Size::Quick => self.quick.as_ref(),
            Size::Full => self.full.as_ref(),
            Size::Live => {
                let live = self.live.as_ref().map(|live| &live.size);
                live.or(self.quick.as_ref())
            }
        }
    }

    /// Returns whether it can only be run live.
    pub(crate) fn is_live_only(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.only)
    }

    /// All panels, each with the key at which it is written.
    pub(crate) fn panels(&self) -> impl Iterator<Item = (String, &PanelConfig)> {
        let own = (0..).zip(&self.panel);
        let own = own.map(|(index, panel): (usize, _)| (format!("panel.{index}"), panel));
        let of_figures = (0..).zip(&self.figure).flat_map(|(number, figure)| {
            let panels = (0..).zip(&figure.panel);
            panels.map(move |(index, panel): (usize, _)| {
                let number: usize = number;
                (format!("figure.{number}.panel.{index}"), panel)
            })
        });
        own.chain(of_figures)
    }
}

/// A version of a study.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SizeConfig {
    /// Seeds; those of the study if not given.
    pub(crate) seeds: Option<Seeds>,
    /// The points of axes that are run, by the axis' name; all if not given.
    #[serde(default)]
    pub(crate) at: BTreeMap<String, Vec<toml::Value>>,
    /// Settings of all runs, as `--set` takes them.
    #[serde(default)]
    pub(crate) set: Vec<String>,
}

impl SizeConfig {
    /// The study as it is.
    pub(super) const WHOLE: Self = Self {
        seeds: None,
        at: BTreeMap::new(),
        set: Vec::new(),
    };
}

/// The version of a study that a machine carries live.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "LiveTable")]
pub(crate) struct LiveConfig {
    /// Rates are multiplied by it and times divided.
    #[cfg_attr(not(live), expect(dead_code, reason = "nothing runs live here"))]
    pub(crate) scale: f64,
    /// True if there is nothing to simulate: what is measured are real programs.
    pub(crate) only: bool,
    /// Points that cannot run live; claims about them are not measured.
    pub(crate) without: Vec<String>,
    pub(crate) size: SizeConfig,
}

/// [`LiveConfig`] as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LiveTable {
    scale: f64,
    #[serde(default)]
    only: bool,
    #[serde(default)]
    without: Vec<String>,
    seeds: Option<Seeds>,
    #[serde(default)]
    at: BTreeMap<String, Vec<toml::Value>>,
    #[serde(default)]
    set: Vec<String>,
}

impl From<LiveTable> for LiveConfig {
    fn from(table: LiveTable) -> Self {
        let LiveTable {
            scale,
            only,
            without,
            seeds,
            at,
            set,
        } = table;
        Self {
            scale,
            only,
            without,
            size: SizeConfig { seeds, at, set },
        }
    }
}

/// Seeds from 1 to a number, or those of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number of seeds, or a list of them")]
pub(crate) enum Seeds {
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
    pub(crate) fn list(&self, most: usize) -> Result<Vec<u64>, String> {
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
    /// In place of a key: settings with `{x}` for the value.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// In place of a key: settings of each value, where `{x}` alone does not say them.
    #[serde(default)]
    pub(crate) each: Vec<Vec<String>>,
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
    /// The name by which panels, claims and `--set` refer to it; the label if not given.
    pub(crate) id: Option<String>,
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) set: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct FigureConfig {
    /// Name of its files.
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) panel: Vec<PanelConfig>,
}

/// A panel of a figure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PanelConfig {
    #[serde(default)]
    pub(crate) kind: PanelKind,
    #[serde(default)]
    pub(crate) title: String,
    /// The metric that is drawn, for each point of `curves`.
    pub(crate) metric: Option<NamedMetric>,
    /// Or these metrics, of one point.
    #[serde(default)]
    pub(crate) curve: Vec<CurveConfig>,
    /// The axis to the right; the first numeric one that `at` leaves open if not given.
    pub(crate) x: Option<String>,
    /// The axis with a curve or row for each point; the first other one if not given.
    pub(crate) curves: Option<String>,
    /// Position of the panel on the other axes, by name.
    #[serde(default)]
    pub(crate) at: BTreeMap<String, toml::Value>,
    /// The point of `curves` that all are divided by, seed by seed.
    pub(crate) normalise: Option<toml::Value>,
    /// Label of the values.
    pub(crate) y: Option<String>,
    /// Label of the shares of a distribution.
    pub(crate) share: Option<String>,
    #[serde(default)]
    pub(crate) from_zero: bool,
    /// True if the axis of values is logarithmic.
    #[serde(default)]
    pub(crate) logarithmic: bool,
    /// True if the axis to the right is logarithmic.
    #[serde(default)]
    pub(crate) logarithmic_x: bool,
}

impl PanelConfig {
    /// Its metrics.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = &NamedMetric> {
        let of_curves = self.curve.iter().map(|curve| &curve.metric);
        self.metric.iter().chain(of_curves)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PanelKind {
    /// A metric along an axis, or rows where no numeric axis is open.
    #[default]
    Along,
    /// Over time, of one run: goodput and latencies in windows of 1 ms, or the latencies that
    /// `metric` is of under each point.
    OverTime,
    /// The cumulative distribution of RTTs, or of the latencies that `metric` is of.
    Distribution,
    /// A metric of each point of an axis.
    Rows,
    /// A metric of each point of an axis, as a grid: the label of a point is "column, row".
    Heat,
}

/// A curve that is no point of an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct CurveConfig {
    pub(crate) label: String,
    pub(crate) metric: NamedMetric,
}

/// A metric and its name in the file.
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
pub(crate) fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
