//! Claims: sentences about a study's results, in numbers, and what became of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use shallows_results::report::{ClaimOutcome, Mark, Point, Verdict};

use super::config::NamedMetric;
use super::results::Results;
use super::verdict::{self, Bounded};
use super::view::{Axes, View};
use crate::metric::Metric;

/// A sentence, such as one of a paper, in numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ClaimConfig {
    /// A short name; `what` if not given.
    pub(crate) id: Option<String>,
    /// The sentence itself.
    #[serde(default)]
    pub(crate) quote: String,
    /// The compared quantity, in words.
    pub(crate) what: String,
    /// The value that the sentence gives.
    #[serde(alias = "expected")]
    pub(crate) paper: PaperValue,
    /// Of a `value`; the others are percentages or factors.
    #[serde(default)]
    pub(crate) unit: String,
    pub(crate) measure: Measure,
    pub(crate) metric: NamedMetric,
    /// In place of `metric` in what is compared with.
    pub(crate) to_metric: Option<NamedMetric>,
    /// One point of `curves`, or several of which the most extreme counts.
    #[serde(default)]
    pub(crate) of: OneOrMore,
    /// The point to compare with.
    pub(crate) to: Option<String>,
    /// The place on the axis `x`.
    #[serde(default)]
    pub(crate) at: At,
    /// The axis of `at`; the first numeric one that is open if not given.
    pub(crate) x: Option<String>,
    /// The axis of `of` and `to`; the first other one if not given.
    pub(crate) curves: Option<String>,
    /// The claim's place on the other axes, by name.
    #[serde(default)]
    pub(crate) r#where: BTreeMap<String, toml::Value>,
    /// True if values are compared that the metric rises by from one x to the next.
    #[serde(default)]
    pub(crate) rise: bool,
    /// Only values of x from the first to the second.
    pub(crate) between: Option<[f64; 2]>,
    /// The value at which there would be no effect, where the measure does not tell.
    pub(crate) neutral: Option<f64>,
    /// Remarks that a reader of the verdict needs.
    #[serde(default)]
    pub(crate) marks: Vec<Mark>,
    /// The value of the simulator that the paper's authors published, where somebody has run it.
    pub(crate) authors_code: Option<String>,
    /// The reason why ours differs, found by an experiment.
    pub(crate) explanation: Option<String>,
}

impl ClaimConfig {
    /// Its axes in a study.
    pub(super) fn axes(&self) -> Axes<'_> {
        Axes {
            x: self.x.as_deref(),
            curves: self.curves.as_deref(),
            at: &self.r#where,
            wants_x: true,
            wants_curves: false,
            points: self.of.names(),
        }
    }

    /// The points that it is about; a nameless one where the study compares none.
    fn points(&self) -> Vec<&str> {
        match self.of.names() {
            [] => vec![""],
            names => names.iter().map(String::as_str).collect(),
        }
    }
}

/// A value that a sentence gives.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PaperValue {
    About(f64),
    /// The least and the most over x.
    Range([f64; 2]),
    AtMost(f64),
    AtLeast(f64),
}

/// A comparison of two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
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

/// A place on the x axis.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    untagged,
    expecting = "expected a value of the x axis, \"largest\", \"smallest\" or \"all\""
)]
pub(crate) enum At {
    X(f64),
    Over(Over),
    /// The study has one.
    #[default]
    Only,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Over {
    Largest,
    Smallest,
    All,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected the name of a point, or a list of them"
)]
pub(crate) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        Self::More(Vec::new())
    }
}

impl Measure {
    /// Returns whether it needs two points.
    pub(super) fn compares(self) -> bool {
        self != Self::Value
    }
}

impl OneOrMore {
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::More(names) => names,
        }
    }
}

/// Judges a claim by the results of its study.
pub(crate) fn evaluate(claim: &ClaimConfig, results: &Results<'_>) -> ClaimOutcome {
    let study = results.study;
    let view = View::new(study, &claim.axes());
    let xs: Vec<f64> = match view.as_ref().ok().and_then(|view| view.x) {
        Some(x) => study.axes[x].numbers().collect(),
        None => vec![0.0],
    };
    let values = |metric: &Metric, name: &str, x: f64| {
        let view = view.as_ref().ok();
        let combination = view.and_then(|view| view.combination_named(study, name, x));
        combination.map_or_else(Vec::new, |of| results.bounded(metric, of))
    };
    let points = points(claim, &xs, &values);
    let unit = Unit::of(claim);
    let mut outcome = ClaimOutcome {
        id: claim.id.as_ref().unwrap_or(&claim.what).clone(),
        quote: claim.quote.clone(),
        what: claim.what.clone(),
        paper: unit.paper(claim.paper),
        ours: "\u{2013}".to_owned(),
        spread: None,
        values: Vec::new(),
        points: Vec::new(),
        verdict: Verdict::NotMeasured,
        note: None,
        marks: claim.marks.clone(),
        authors_code: claim.authors_code.clone(),
        explanation: claim.explanation.clone(),
        live: None,
    };
    let points = match points {
        Ok(points) => points,
        Err(problem) => {
            outcome.note = problem;
            return outcome;
        }
    };
    let measured: Vec<Vec<Bounded>> = points.iter().map(|(_, seeds)| seeds.clone()).collect();
    let ours = verdict::reduce(claim, &verdict::over_seeds(&measured));
    outcome.ours = unit.show(&ours);
    outcome.values = ours.iter().map(|of| of.least).collect();
    outcome.spread = spread(claim, &measured).map(|spread| unit.show(&spread));
    (outcome.verdict, outcome.note) = decided(&verdict::possible(claim, &measured));
    outcome.points = points.into_iter().map(|(point, _)| point).collect();
    outcome
}

/// Claims as lines. Each has the figure that it is about, if there are several; `paper` is the head
/// of the column with the values that the sentences give.
pub(crate) fn table(rows: &[(Option<&str>, &ClaimOutcome)], paper: &str) -> String {
    let ours = |claim: &ClaimOutcome| match &claim.spread {
        Some(spread) => format!("{} [{spread}]", claim.ours),
        None => claim.ours.clone(),
    };
    let width = |head: &str, of: &dyn Fn(&ClaimOutcome) -> usize| {
        let widths = rows.iter().map(|(_, claim)| of(claim));
        widths.max().unwrap_or_default().max(head.len())
    };
    let what = width("claim", &|claim| claim.what.chars().count());
    let given = width(paper, &|claim| claim.paper.chars().count());
    let our = width("ours", &|claim| ours(claim).chars().count());
    let id = rows
        .iter()
        .filter_map(|(id, _)| Some(id.as_ref()?.chars().count()));
    let id = id.max().unwrap_or_default().max("figure".len());
    let figure = |of: Option<&str>| of.map_or_else(String::new, |of| format!("{of:id$}  "));
    let head = rows.first().and_then(|(id, _)| id.map(|_| "figure"));
    let mut text = format!(
        "{}{:what$}  {paper:>given$}  {:>our$}  verdict\n",
        figure(head),
        "claim",
        "ours"
    );
    for (id, claim) in rows {
        let _ = writeln!(
            text,
            "{}{:what$}  {:>given$}  {:>our$}  {}",
            figure(*id),
            claim.what,
            claim.paper,
            ours(claim),
            claim.verdict_text()
        );
    }
    text
}

/// The one verdict that the measurement allows, or that it allows several.
pub(crate) fn decided(possible: &[Verdict]) -> (Verdict, Option<String>) {
    match possible {
        [only] => (*only, None),
        several => {
            let words: Vec<String> = several.iter().map(ToString::to_string).collect();
            (Verdict::Undecided, Some(words.join(" or ")))
        }
    }
}

/// The least and the most of single seeds, where there are several.
fn spread(claim: &ClaimConfig, points: &[Vec<Bounded>]) -> Option<[Bounded; 2]> {
    let seeds = verdict::by_seed(points);
    let all: Vec<Bounded> = seeds
        .iter()
        .flat_map(|seed| verdict::reduce(claim, seed))
        .collect();
    let least = all.iter().map(|of| of.least).reduce(f64::min)?;
    let most = all.iter().map(|of| of.least).reduce(f64::max)?;
    (seeds.len() > 1).then(|| [least, most].map(Bounded::exact))
}

/// A metric of a variant at an x, for each seed.
type Values<'a> = &'a dyn Fn(&Metric, &str, f64) -> Vec<Option<Bounded>>;

/// The compared value of each variant at each x, for every seed; or why one of them is missing.
fn points(
    claim: &ClaimConfig,
    xs: &[f64],
    values: Values<'_>,
) -> Result<Vec<(Point, Vec<Bounded>)>, Option<String>> {
    let chosen = |x: &f64| match (claim.at, claim.between) {
        (At::X(at), _) => *x == at,
        (_, Some([from, to])) => (from..=to).contains(x),
        _ => true,
    };
    // Nothing has risen before the first.
    let first = if claim.rise {
        xs.iter().copied().reduce(f64::min)
    } else {
        None
    };
    let chosen = xs.iter().filter(|x| chosen(x) && Some(**x) != first);
    let risen = |metric: &Metric, variant: &str, x: f64| {
        let before = xs.iter().copied().filter(|&of| of < x).reduce(f64::max);
        match before.filter(|_| claim.rise) {
            None => values(metric, variant, x),
            Some(before) => {
                let pairs = values(metric, variant, x)
                    .into_iter()
                    .zip(values(metric, variant, before));
                pairs.map(|(to, from)| to?.since(from?)).collect()
            }
        }
    };
    let mut points = Vec::new();
    for of in claim.points() {
        for &x in chosen.clone() {
            let place = if xs.len() > 1 {
                format!(" at {x}")
            } else {
                String::new()
            };
            let seeds = compared(claim, of, x, &risen)
                .map_err(|problem| problem.map(|problem| problem + &place))?;
            let numbers = seeds.iter().map(|seed| seed.least).collect();
            let point = Point {
                of: of.to_owned(),
                x,
                seeds: numbers,
            };
            points.push((point, seeds));
        }
    }
    // The claim is about an x that was not run.
    if points.is_empty() {
        return Err(None);
    }
    Ok(points)
}

/// A claim is about all its points: if one has no value, there is nothing to judge.
fn compared(
    claim: &ClaimConfig,
    of: &str,
    x: f64,
    values: Values<'_>,
) -> Result<Vec<Bounded>, Option<String>> {
    let ours = values(&claim.metric.metric, of, x);
    let (theirs, to) = match &claim.to {
        Some(to) => {
            let metric = claim.to_metric.as_ref().unwrap_or(&claim.metric);
            (values(&metric.metric, to, x), to.as_str())
        }
        None => (vec![Some(Bounded::exact(1.0)); ours.len()], of),
    };
    // A figure that runs live only has no simulated runs.
    if ours.is_empty() || theirs.len() != ours.len() {
        return Err(None);
    }
    let compared = ours.into_iter().zip(theirs).map(|pair| match pair {
        (None, _) => Err(Some(format!("{} has no value", named(of)))),
        (_, None) => Err(Some(format!("{to} has no value"))),
        (Some(ours), Some(theirs)) => claim
            .measure
            .compare(ours, theirs)
            .ok_or_else(|| Some(format!("{of} over {to} is infinite or unknown"))),
    });
    compared.collect()
}

/// A point in a sentence.
fn named(point: &str) -> &str {
    if point.is_empty() { "it" } else { point }
}

/// Notation of values.
pub(crate) struct Unit<'a> {
    after: &'a str,
}

impl<'a> Unit<'a> {
    pub(crate) fn of(claim: &'a ClaimConfig) -> Self {
        let after = match claim.measure {
            Measure::Value => claim.unit.as_str(),
            Measure::Ratio => "x",
            Measure::Reduction | Measure::Increase | Measure::Deviation => "%",
        };
        Self { after }
    }

    pub(crate) fn paper(&self, value: PaperValue) -> String {
        let exact = |values: &[f64]| self.numbers(values);
        match value {
            PaperValue::About(value) => exact(&[value]),
            PaperValue::Range(range) => exact(&range),
            PaperValue::AtMost(bound) => format!("at most {}", exact(&[bound])),
            PaperValue::AtLeast(bound) => format!("at least {}", exact(&[bound])),
        }
    }

    /// One value, or two as a range.
    fn show(&self, values: &[Bounded]) -> String {
        let ends = |of: fn(&Bounded) -> f64| values.iter().map(of).collect::<Vec<_>>();
        let (least, most) = (ends(|value| value.least), ends(|value| value.most));
        if values.iter().all(|value| value.is_exact()) {
            self.numbers(&least)
        } else if least.iter().all(|value| value.is_finite()) {
            format!("at least {}", self.numbers(&least))
        } else {
            format!("at most {}", self.numbers(&most))
        }
    }

    fn numbers(&self, values: &[f64]) -> String {
        // Adding zero takes the sign from a negative one.
        let number = |value: &f64| match value.abs() {
            large if large >= 100.0 => format!("{:.0}", value + 0.0),
            some if some >= 10.0 => format!("{:.1}", value + 0.0),
            _ => format!("{:.2}", value + 0.0),
        };
        let numbers: Vec<String> = values.iter().map(number).collect();
        let gap = if self.after.len() > 1 { " " } else { "" };
        format!("{}{gap}{}", numbers.join(" to "), self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::claim;
    use super::*;

    /// Points of a claim about variants a and b at 1 and 2, where a has `at_two` at 2.
    fn points_with(rest: &str, at_two: [Option<f64>; 2]) -> Result<Vec<Vec<f64>>, Option<String>> {
        let claim = claim("about = 40", &format!("{rest}\nto = \"b\""));
        let points = points(&claim, &[1.0, 2.0], &|_, variant, x| {
            let values = match (variant, x) {
                ("a", 2.0) => at_two,
                ("a", _) => [Some(6.0); 2],
                ("b", 2.0) => [Some(10.0); 2],
                _ => [Some(8.0); 2],
            };
            values.map(|value| value.map(Bounded::exact)).to_vec()
        });
        points.map(|points| points.into_iter().map(|(point, _)| point.seeds).collect())
    }

    #[test]
    fn a_claim_with_a_missing_or_infinite_point_is_not_judged_on_the_rest() {
        let largest = "measure = \"reduction\"\nat = \"largest\"";
        let complete = points_with(largest, [Some(5.0), Some(5.0)]);
        assert_eq!(complete, Ok(vec![vec![25.0; 2], vec![50.0; 2]]));
        let missing = points_with(largest, [Some(5.0), None]);
        assert_eq!(missing, Err(Some("a has no value at 2".to_owned())));
        let infinite = points_with(largest, [Some(f64::INFINITY), Some(5.0)]);
        let problem = "a over b is infinite or unknown at 2";
        assert_eq!(infinite, Err(Some(problem.to_owned())));
        let claim = claim("about = 40", largest);
        assert!(points(&claim, &[1.0], &|_, _, _| Vec::new()).is_err());
    }

    #[test]
    fn rises_are_compared_from_one_x_to_the_next() {
        // From 6 to 9 and 10 against from 8 to 10.
        let rises = points_with("measure = \"ratio\"\nrise = true", [Some(9.0), Some(10.0)]);
        assert_eq!(rises, Ok(vec![vec![1.5, 2.0]]));
    }
}
