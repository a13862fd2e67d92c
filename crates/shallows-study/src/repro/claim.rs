//! Claims against measurements.

use shallows_results::report::{ClaimOutcome, Point, Verdict};

use super::results::Results;
use super::spec::{At, ClaimSpec, Measure, PaperValue};
use super::verdict::{self, Bounded};
use crate::metric::Metric;

/// Evaluates a claim.
pub(super) fn evaluate(claim: &ClaimSpec, results: &Results) -> ClaimOutcome {
    let values = |metric: &Metric, variant: &str, x| results.values(metric, variant, x);
    let points = points(claim, results.xs(), &values);
    let unit = Unit::of(claim);
    let mut outcome = ClaimOutcome {
        id: claim.id.clone(),
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

/// The one verdict that the measurement allows, or that it allows several.
pub(super) fn decided(possible: &[Verdict]) -> (Verdict, Option<String>) {
    match possible {
        [only] => (*only, None),
        several => {
            let words: Vec<String> = several.iter().map(ToString::to_string).collect();
            (Verdict::Undecided, Some(words.join(" or ")))
        }
    }
}

/// The least and the most of single seeds, where there are several.
fn spread(claim: &ClaimSpec, points: &[Vec<Bounded>]) -> Option<[Bounded; 2]> {
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
    claim: &ClaimSpec,
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
    for of in claim.of.names() {
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
                of: of.clone(),
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
    claim: &ClaimSpec,
    of: &str,
    x: f64,
    values: Values<'_>,
) -> Result<Vec<Bounded>, Option<String>> {
    let ours = values(&claim.metric, of, x);
    let (theirs, to) = match &claim.to {
        Some(to) => (
            values(claim.to_metric.as_ref().unwrap_or(&claim.metric), to, x),
            to.as_str(),
        ),
        None => (vec![Some(Bounded::exact(1.0)); ours.len()], of),
    };
    // A figure that runs live only has no simulated runs.
    if ours.is_empty() || theirs.len() != ours.len() {
        return Err(None);
    }
    let compared = ours.into_iter().zip(theirs).map(|pair| match pair {
        (None, _) => Err(Some(format!("{of} has no value"))),
        (_, None) => Err(Some(format!("{to} has no value"))),
        (Some(ours), Some(theirs)) => claim
            .measure
            .compare(ours, theirs)
            .ok_or_else(|| Some(format!("{of} over {to} is infinite or unknown"))),
    });
    compared.collect()
}

/// Notation of values.
pub(super) struct Unit<'a> {
    after: &'a str,
}

impl<'a> Unit<'a> {
    pub(super) fn of(claim: &'a ClaimSpec) -> Self {
        let after = match claim.measure {
            Measure::Value => claim.unit.as_str(),
            Measure::Ratio => "x",
            Measure::Reduction | Measure::Increase | Measure::Deviation => "%",
        };
        Self { after }
    }

    pub(super) fn paper(&self, value: PaperValue) -> String {
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
