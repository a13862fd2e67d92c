//! Figures to reproduce, as `repro/<paper>/<figure>.toml` has them.

use serde::Deserialize;
use shallows_results::report::{Deviation, Mark, Paper, Size};

use crate::measured::GoodputSpec;
use crate::metric::Metric;

/// `paper.toml`: the paper and its figures in order.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PaperSpec {
    #[serde(flatten)]
    pub(super) paper: Paper,
    pub(super) figures: Vec<String>,
}

/// `deviations.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deviations {
    #[serde(default)]
    pub(super) deviation: Vec<Deviation>,
}

/// Runs, what is drawn from them, and what the paper says they show.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct FigureSpec {
    pub(super) title: String,
    #[serde(default)]
    pub(super) caption: String,
    #[serde(default)]
    pub(super) section: String,
    pub(super) note: Option<String>,
    /// A file beside this one.
    pub(super) scenario: String,
    /// Settings of all runs, as `--set` takes them.
    #[serde(default)]
    pub(super) set: Vec<String>,
    /// The x axis of a curve; a figure without one has one run per curve and seed.
    pub(super) x: Option<Sweep>,
    pub(super) full: SizeSpec,
    pub(super) quick: SizeSpec,
    /// Its live form, if it has one.
    pub(super) live: Option<LiveSpec>,
    /// Measurement of goodput, if there is any.
    pub(super) goodput: Option<GoodputSpec>,
    pub(super) variant: Vec<Variant>,
    pub(super) panel: Vec<PanelSpec>,
    #[serde(default)]
    pub(super) claim: Vec<ClaimSpec>,
}

impl FigureSpec {
    pub(super) fn size(&self, size: Size) -> &SizeSpec {
        match size {
            Size::Quick => &self.quick,
            Size::Full => &self.full,
            Size::Live => self.live.as_ref().map_or(&self.quick, |live| &live.size),
        }
    }

    /// Returns whether it can only be run live.
    pub(super) fn is_live_only(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.only)
    }

    /// The values of x of a size, in order.
    pub(super) fn xs(&self, size: Size) -> Vec<f64> {
        let Some(sweep) = &self.x else {
            return vec![0.0];
        };
        let own = self.size(size).x.as_ref();
        own.unwrap_or(&sweep.values).clone()
    }
}

/// The x axis of a figure.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Sweep {
    pub(super) label: String,
    /// True if 0.5 is shown as 50.
    #[serde(default)]
    pub(super) percent: bool,
    pub(super) values: Vec<f64>,
    /// Settings with `{x}` for the value.
    #[serde(default)]
    pub(super) set: Vec<String>,
    /// Settings of each value, where `{x}` alone does not say them.
    #[serde(default)]
    pub(super) each: Vec<Vec<String>>,
}

impl Sweep {
    /// The settings of a value.
    pub(super) fn settings(&self, x: f64) -> impl Iterator<Item = String> + '_ {
        let place = self.values.iter().position(|&value| value == x);
        let own = place.and_then(|place| self.each.get(place));
        let all = self.set.iter().chain(own.into_iter().flatten());
        all.map(move |setting| setting.replace("{x}", &x.to_string()))
    }
}

/// Size of a version of the figure.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SizeSpec {
    pub(super) seeds: u64,
    /// In place of the sweep's values.
    pub(super) x: Option<Vec<f64>>,
    #[serde(default)]
    pub(super) set: Vec<String>,
}

/// The version of the figure that a machine carries live.
#[derive(Debug, Deserialize)]
#[serde(from = "LiveTable")]
pub(super) struct LiveSpec {
    /// Rates are multiplied by it and times divided.
    #[cfg_attr(
        not(all(feature = "live", target_os = "linux")),
        expect(dead_code, reason = "nothing runs live here")
    )]
    pub(super) scale: f64,
    /// True if there is nothing to simulate: what is measured are real programs.
    pub(super) only: bool,
    /// Variants that cannot run live; claims about them are not measured.
    pub(super) without: Vec<String>,
    pub(super) size: SizeSpec,
}

/// [`LiveSpec`] as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LiveTable {
    scale: f64,
    #[serde(default)]
    only: bool,
    #[serde(default)]
    without: Vec<String>,
    seeds: u64,
    x: Option<Vec<f64>>,
    #[serde(default)]
    set: Vec<String>,
}

impl From<LiveTable> for LiveSpec {
    fn from(table: LiveTable) -> Self {
        let LiveTable {
            scale,
            only,
            without,
            seeds,
            x,
            set,
        } = table;
        Self {
            scale,
            only,
            without,
            size: SizeSpec { seeds, x, set },
        }
    }
}

/// A compared variant: a curve, in most panels.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Variant {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) set: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct PanelSpec {
    #[serde(default)]
    pub(super) kind: PanelKind,
    pub(super) title: String,
    /// Metric of its curves, one for each variant.
    pub(super) metric: Option<Metric>,
    /// Or these, of one variant.
    #[serde(default)]
    pub(super) curves: Vec<CurveSpec>,
    pub(super) variant: Option<String>,
    /// Divides all values by those of this variant.
    pub(super) normalise: Option<String>,
    /// The x of the runs, where the panel shows only one.
    pub(super) at: Option<f64>,
    /// Label of the x axis, where it is not the sweep.
    pub(super) x: Option<String>,
    pub(super) y: String,
    #[serde(default)]
    pub(super) from_zero: bool,
    /// True if the axis of values is logarithmic.
    #[serde(default)]
    pub(super) logarithmic: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PanelKind {
    /// A metric by the figure's x.
    #[default]
    BySweep,
    /// Over time, of one run: goodput and latencies in windows of 1 ms, or the latencies that
    /// `metric` is of under each variant.
    OverTime,
    /// The cumulative distribution of RTTs, or of the latencies that `metric` is of.
    Distribution,
    /// A metric of each variant, at one x.
    Rows,
    /// A metric of each variant at one x, as a grid: the label of a variant is "column, row".
    Heat,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CurveSpec {
    pub(super) label: String,
    pub(super) metric: Metric,
}

/// A sentence of the paper and what it says in numbers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ClaimSpec {
    pub(super) id: String,
    pub(super) quote: String,
    pub(super) what: String,
    pub(super) paper: PaperValue,
    /// Of a `value`; the others are percentages or factors.
    #[serde(default)]
    pub(super) unit: String,
    pub(super) measure: Measure,
    pub(super) metric: Metric,
    /// In place of `metric` in what is compared with.
    pub(super) to_metric: Option<Metric>,
    /// One variant, or several of which the most extreme counts.
    pub(super) of: OneOrMore,
    /// The variant to compare with.
    pub(super) to: Option<String>,
    #[serde(default)]
    pub(super) at: At,
    /// True if values are compared that the metric rises by from one x to the next.
    #[serde(default)]
    pub(super) rise: bool,
    /// Only values of x from the first to the second.
    pub(super) between: Option<[f64; 2]>,
    /// The value at which there would be no effect, where the measure does not tell.
    pub(super) neutral: Option<f64>,
    /// Caveats of the verdict.
    #[serde(default)]
    pub(super) marks: Vec<Mark>,
    /// Value of the simulator that the paper's authors published, where it has been run.
    pub(super) authors_code: Option<String>,
    /// The reason why ours differs, found by an experiment.
    pub(super) explanation: Option<String>,
}

/// Value in the paper.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PaperValue {
    About(f64),
    /// The least and the most over x.
    Range([f64; 2]),
    AtMost(f64),
    AtLeast(f64),
}

/// Comparison of two variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// The metric itself.
    Value,
    /// of / to.
    Ratio,
    /// Percent that `of` is below `to`.
    Reduction,
    /// Percent that `of` is above `to`.
    Increase,
    /// Percent that `of` is away from `to`, either way.
    Deviation,
}

/// At which x.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", untagged)]
pub(super) enum At {
    X(f64),
    Over(Over),
    /// The figure has one.
    #[default]
    Only,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Over {
    Largest,
    Smallest,
    All,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::More(names) => names,
        }
    }
}
