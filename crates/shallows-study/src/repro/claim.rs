//! Claims against measurements. The rules for verdicts are fixed; `docs/reproduce.md` has them in
//! words.

use shallows_results::report::{ClaimOutcome, Verdict};

use super::results::Results;
use super::spec::{At, ClaimSpec, Measure, Over, PaperValue};

/// How much an effect may differ from the paper's and still be reproduced.
const TOLERANCE: f64 = 0.25;

/// The same for values that are no effects, such as the goodput of a full link.
const EXACT: f64 = 0.05;

/// The part of the paper's effect that has to be there for the same direction.
const NOTICEABLE: f64 = 0.1;

/// One compared pair of runs at each seed.
type Seeds = Vec<f64>;

/// What became of a claim.
pub(super) fn evaluate(claim: &ClaimSpec, results: &Results) -> ClaimOutcome {
    let points = points(claim, results);
    let means: Vec<f64> = points.iter().map(|seeds| mean(seeds)).collect();
    let values = reduce(claim, &means);
    let verdict = match &values[..] {
        [] => Verdict::NotMeasured,
        values => verdict(claim, values, &means),
    };
    let seeds = points.iter().map(Vec::len).min().unwrap_or_default();
    let per_seed: Vec<Vec<f64>> = (0..seeds)
        .map(|seed| {
            let at_seed: Vec<f64> = points.iter().map(|point| point[seed]).collect();
            reduce(claim, &at_seed)
        })
        .collect();
    let unit = Unit::of(claim);
    ClaimOutcome {
        id: claim.id.clone(),
        quote: claim.quote.clone(),
        what: claim.what.clone(),
        paper: match claim.paper {
            PaperValue::About(value) => unit.show(&[value]),
            PaperValue::Range(range) => unit.show(&range),
            PaperValue::AtMost(bound) => format!("at most {}", unit.show(&[bound])),
            PaperValue::AtLeast(bound) => format!("at least {}", unit.show(&[bound])),
        },
        ours: match &values[..] {
            [] => "\u{2013}".to_owned(),
            values => unit.show(values),
        },
        spread: (seeds > 1 && !values.is_empty()).then(|| {
            let all = || per_seed.iter().flatten().copied();
            let least = all().fold(f64::INFINITY, f64::min);
            let most = all().fold(f64::NEG_INFINITY, f64::max);
            unit.show(&[least, most])
        }),
        values,
        verdict,
        authors_code: claim.authors_code.clone(),
        explanation: claim.explanation.clone(),
        live: None,
    }
}

/// The compared value of each variant at each x, for every seed.
fn points(claim: &ClaimSpec, results: &Results) -> Vec<Seeds> {
    let chosen = |x: &f64| match (claim.at, claim.between) {
        (At::X(at), _) => *x == at,
        (_, Some([from, to])) => (from..=to).contains(x),
        _ => true,
    };
    let xs: Vec<f64> = results.xs().iter().copied().filter(chosen).collect();
    let mut points = Vec::new();
    for of in claim.of.names() {
        for &x in &xs {
            let ours = results.values(&claim.metric, of, x);
            let theirs = claim.to.as_ref().map(|to| {
                let metric = claim.to_metric.as_ref().unwrap_or(&claim.metric);
                results.values(metric, to, x)
            });
            let theirs = theirs.unwrap_or_else(|| vec![Some(1.0); ours.len()]);
            let pairs = ours.iter().zip(&theirs);
            let compared = pairs.map(|(ours, theirs)| claim.measure.compare((*ours)?, (*theirs)?));
            let compared: Option<Seeds> = compared.collect();
            // A figure that runs live only has no simulated runs.
            points.extend(compared.filter(|seeds| !seeds.is_empty()));
        }
    }
    points
}

impl Measure {
    fn compare(self, of: f64, to: f64) -> Option<f64> {
        let value = match self {
            Self::Value => of,
            Self::Ratio => of / to,
            Self::Reduction => 100.0 * (1.0 - of / to),
            Self::Increase => 100.0 * (of / to - 1.0),
            Self::Deviation => 100.0 * (of / to - 1.0).abs(),
        };
        value.is_finite().then_some(value)
    }

    /// The value that means no effect.
    fn neutral(self) -> Option<f64> {
        match self {
            Self::Value => None,
            Self::Ratio => Some(1.0),
            Self::Reduction | Self::Increase | Self::Deviation => Some(0.0),
        }
    }
}

/// One value, or the least and the most where the claim is about all of them.
fn reduce(claim: &ClaimSpec, values: &[f64]) -> Vec<f64> {
    if values.is_empty() {
        return Vec::new();
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match claim.at {
        At::Over(Over::Largest) => vec![most],
        At::Over(Over::Smallest) => vec![least],
        At::Over(Over::All) => vec![least, most],
        At::X(_) | At::Only => vec![mean(values)],
    }
}

fn verdict(claim: &ClaimSpec, values: &[f64], points: &[f64]) -> Verdict {
    let neutral = claim.neutral.or(claim.measure.neutral());
    let bound = |holds: &dyn Fn(f64) -> bool, turned: &dyn Fn(f64) -> bool| {
        if values.iter().all(|&value| holds(value)) {
            Verdict::Reproduced
        } else if holds(mean(points)) && !values.iter().any(|&value| turned(value)) {
            Verdict::SameDirection
        } else {
            Verdict::NotReproduced
        }
    };
    // None where the bound is no effect at all: better is not worse.
    let tolerance = |bound: f64| {
        let effect = neutral.map_or(f64::INFINITY, |neutral| (bound - neutral).abs());
        TOLERANCE * effect.min(bound.abs())
    };
    match claim.paper {
        PaperValue::AtMost(most) => {
            let turned = |value| neutral.is_some_and(|neutral| most <= neutral && value > neutral);
            bound(&|value| value <= most + tolerance(most), &turned)
        }
        PaperValue::AtLeast(least) => {
            let turned = |value| neutral.is_some_and(|neutral| least >= neutral && value < neutral);
            bound(&|value| value >= least - tolerance(least), &turned)
        }
        PaperValue::About(paper) => effect(claim, values, [paper, paper]),
        PaperValue::Range(range) => effect(claim, values, range),
    }
}

/// Our values against the paper's least and most, both as distances from no effect.
fn effect(claim: &ClaimSpec, values: &[f64], [low, high]: [f64; 2]) -> Verdict {
    let neutral = claim.neutral.or(claim.measure.neutral());
    let neutral = neutral.filter(|&neutral| neutral < low || neutral > high);
    let Some(neutral) = neutral else {
        let same =
            |value: &f64| *value >= low - EXACT * low.abs() && *value <= high + EXACT * high.abs();
        return if values.iter().all(same) {
            Verdict::Reproduced
        } else {
            Verdict::NotReproduced
        };
    };
    let effects = [low, high].map(|paper| (paper - neutral).abs());
    let (least, most) = (effects[0].min(effects[1]), effects[0].max(effects[1]));
    let side = (low - neutral).signum();
    let ours = || values.iter().map(|value| (value - neutral) * side);
    if ours().all(|ours| ours >= least * (1.0 - TOLERANCE) && ours <= most * (1.0 + TOLERANCE)) {
        Verdict::Reproduced
    } else if ours().all(|ours| ours >= least * NOTICEABLE) {
        Verdict::SameDirection
    } else {
        Verdict::NotReproduced
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How values are written.
struct Unit<'a> {
    after: &'a str,
}

impl<'a> Unit<'a> {
    fn of(claim: &'a ClaimSpec) -> Self {
        let after = match claim.measure {
            Measure::Value => claim.unit.as_str(),
            Measure::Ratio => "x",
            Measure::Reduction | Measure::Increase | Measure::Deviation => "%",
        };
        Self { after }
    }

    /// One value, or two as a range.
    fn show(&self, values: &[f64]) -> String {
        let number = |value: &f64| match value.abs() {
            large if large >= 100.0 => format!("{value:.0}"),
            some if some >= 10.0 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        };
        let numbers: Vec<String> = values.iter().map(number).collect();
        let gap = if self.after.len() > 1 { " " } else { "" };
        format!("{}{gap}{}", numbers.join(" to "), self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(paper: &str, rest: &str) -> ClaimSpec {
        let text = format!(
            "id = \"a\"\nquote = \"\"\nwhat = \"\"\nmetric = \"all.mean\"\nof = \"a\"\n\
             paper = {{ {paper} }}\n{rest}"
        );
        toml::from_str(&text).unwrap()
    }

    fn judge(paper: &str, rest: &str, points: &[f64]) -> Verdict {
        let claim = claim(paper, rest);
        verdict(&claim, &reduce(&claim, points), points)
    }

    #[test]
    fn an_effect_is_reproduced_within_a_quarter_and_else_has_a_direction() {
        let at = "measure = \"reduction\"\nat = \"largest\"";
        assert_eq!(judge("about = 40", at, &[5.0, 30.0]), Verdict::Reproduced);
        assert_eq!(judge("about = 40", at, &[5.0, 50.0]), Verdict::Reproduced);
        assert_eq!(
            judge("about = 40", at, &[5.0, 29.0]),
            Verdict::SameDirection
        );
        assert_eq!(
            judge("about = 40", at, &[5.0, 90.0]),
            Verdict::SameDirection
        );
        assert_eq!(judge("about = 40", at, &[1.0, 3.9]), Verdict::NotReproduced);
        assert_eq!(
            judge("about = 40", at, &[-5.0, -1.0]),
            Verdict::NotReproduced
        );
        let ratio = "measure = \"ratio\"";
        assert_eq!(judge("about = 16", ratio, &[13.0]), Verdict::Reproduced);
        assert_eq!(judge("about = 16", ratio, &[2.6]), Verdict::SameDirection);
        assert_eq!(judge("about = 16", ratio, &[2.4]), Verdict::NotReproduced);
    }

    #[test]
    fn a_share_is_judged_by_its_distance_from_the_fair_one() {
        let value = "measure = \"value\"\nneutral = 471";
        assert_eq!(judge("about = 403", value, &[419.0]), Verdict::Reproduced);
        assert_eq!(
            judge("about = 403", value, &[450.0]),
            Verdict::SameDirection
        );
        assert_eq!(
            judge("about = 403", value, &[471.0]),
            Verdict::NotReproduced
        );
        assert_eq!(
            judge("about = 403", value, &[500.0]),
            Verdict::NotReproduced
        );
    }

    #[test]
    fn what_is_no_effect_is_reproduced_within_a_twentieth() {
        let ratio = "measure = \"ratio\"";
        assert_eq!(judge("about = 1", ratio, &[0.96]), Verdict::Reproduced);
        assert_eq!(judge("about = 1", ratio, &[1.1]), Verdict::NotReproduced);
        let value = "measure = \"value\"";
        assert_eq!(judge("about = 936", value, &[920.0]), Verdict::Reproduced);
        assert_eq!(
            judge("about = 936", value, &[800.0]),
            Verdict::NotReproduced
        );
    }

    #[test]
    fn a_range_holds_if_ours_lies_in_it_but_for_a_quarter() {
        let all = "measure = \"increase\"\nat = \"all\"";
        assert_eq!(
            judge("range = [20, 40]", all, &[16.0, 49.0]),
            Verdict::Reproduced
        );
        assert_eq!(
            judge("range = [20, 40]", all, &[10.0, 30.0]),
            Verdict::SameDirection
        );
        assert_eq!(
            judge("range = [20, 40]", all, &[-1.0, 30.0]),
            Verdict::NotReproduced
        );
    }

    #[test]
    fn a_bound_holds_everywhere_or_on_average() {
        let most = "measure = \"increase\"\nat = \"largest\"";
        assert_eq!(
            judge("at-most = 10", most, &[1.0, 12.0]),
            Verdict::Reproduced
        );
        assert_eq!(
            judge("at-most = 10", most, &[1.0, 14.0]),
            Verdict::SameDirection
        );
        assert_eq!(
            judge("at-most = 10", most, &[20.0, 14.0]),
            Verdict::NotReproduced
        );
        // Better is not a little worse, and the tolerance is one of effects.
        let ratio = "measure = \"ratio\"";
        assert_eq!(judge("at-least = 1", ratio, &[1.0]), Verdict::Reproduced);
        assert_eq!(
            judge("at-least = 1", ratio, &[0.97]),
            Verdict::NotReproduced
        );
        assert_eq!(judge("at-most = 1.2", ratio, &[1.24]), Verdict::Reproduced);
        assert_eq!(
            judge("at-most = 1.2", ratio, &[1.3]),
            Verdict::NotReproduced
        );
        let least = "measure = \"reduction\"\nat = \"smallest\"";
        assert_eq!(
            judge("at-least = 0", least, &[0.5, 2.0]),
            Verdict::Reproduced
        );
        assert_eq!(
            judge("at-least = 0", least, &[-0.5, 2.0]),
            Verdict::NotReproduced
        );
        assert_eq!(
            judge("at-least = 4", least, &[2.0, 8.0]),
            Verdict::SameDirection
        );
        assert_eq!(
            judge("at-least = 0", least, &[-2.0, 0.5]),
            Verdict::NotReproduced
        );
    }
}
