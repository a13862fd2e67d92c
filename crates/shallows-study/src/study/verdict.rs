//! The rules for verdicts. They are fixed and the same for all papers; `docs/verdicts.md` has them in
//! words.

use shallows_results::report::Verdict;

use super::claim::{At, ClaimConfig, Measure, Over, PaperValue};

/// The difference from the paper's value that is still reproduced: a part of the effect, and no more
/// than the same part of what the effect leaves.
const TOLERANCE: f64 = 0.25;

/// The same for values that are not effects, such as the goodput of a full link.
const EXACT: f64 = 0.05;

/// The part of the paper's effect that has to be there for the same direction.
const NOTICEABLE: f64 = 0.1;

/// A measured number, or the bounds of one that a run was too short to tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounded {
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Bounded {
    pub(crate) fn exact(value: f64) -> Self {
        Self {
            least: value,
            most: value,
        }
    }

    pub(crate) fn at_least(value: f64) -> Self {
        Self {
            least: value,
            most: f64::INFINITY,
        }
    }

    /// The difference of two values that are known.
    pub(super) fn since(self, before: Self) -> Option<Self> {
        let known = self.is_exact() && before.is_exact();
        known.then(|| Self::exact(self.least - before.least))
    }

    pub(crate) fn is_exact(self) -> bool {
        self.least == self.most
    }

    fn mean(values: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| values.iter().map(of).sum::<f64>() / values.len() as f64;
        Self {
            least: mean(|value| value.least),
            most: mean(|value| value.most),
        }
    }
}

impl Measure {
    /// The compared value; none if it is infinite, or if nothing is known of it.
    pub(super) fn compare(self, of: Bounded, to: Bounded) -> Option<Bounded> {
        if self == Self::Value {
            return Some(of).filter(|of| of.least.is_finite());
        }
        // Also of nothing to nothing: two schemes without a drop are equal.
        let ratio = if of == to && of.is_exact() {
            Bounded::exact(1.0)
        } else {
            Bounded {
                least: of.least / to.most,
                most: of.most / to.least,
            }
        };
        let known = ratio.least.is_finite() && !ratio.most.is_nan();
        let both_unknown = !of.is_exact() && !to.is_exact();
        if !known || both_unknown {
            return None;
        }
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        match self {
            Self::Value | Self::Ratio => Some(ratio),
            Self::Increase => Some(Bounded {
                least: percent(ratio.least),
                most: percent(ratio.most),
            }),
            Self::Reduction => Some(Bounded {
                least: -percent(ratio.most),
                most: -percent(ratio.least),
            }),
            Self::Deviation => ratio
                .is_exact()
                .then(|| Bounded::exact(percent(ratio.least).abs())),
        }
    }

    /// The value that means no effect.
    fn neutral(self) -> Option<f64> {
        match self {
            Self::Value => None,
            Self::Ratio => Some(1.0),
            Self::Reduction | Self::Increase | Self::Deviation => Some(0.0),
        }
    }

    /// Remaining fraction of the compared quantity where the measure has this value: 9% after a
    /// reduction by 91%.
    fn left(self, value: f64) -> f64 {
        match self {
            Self::Value | Self::Ratio => value.abs(),
            Self::Reduction => (100.0 - value).abs(),
            Self::Increase => (100.0 + value).abs(),
            Self::Deviation => f64::INFINITY,
        }
    }
}

/// One value, or the least and the most where the claim is about all of them.
pub(super) fn reduce(claim: &ClaimConfig, points: &[Bounded]) -> Vec<Bounded> {
    let by = |choose: fn(f64, f64) -> f64| Bounded {
        least: points
            .iter()
            .map(|p| p.least)
            .reduce(choose)
            .unwrap_or(f64::NAN),
        most: points
            .iter()
            .map(|p| p.most)
            .reduce(choose)
            .unwrap_or(f64::NAN),
    };
    match claim.at {
        _ if points.is_empty() => Vec::new(),
        At::Over(Over::Largest) => vec![by(f64::max)],
        At::Over(Over::Smallest) => vec![by(f64::min)],
        At::Over(Over::All) => vec![by(f64::min), by(f64::max)],
        At::X(_) | At::Only => vec![Bounded::mean(points)],
    }
}

/// The means of the points over their seeds.
pub(super) fn over_seeds(points: &[Vec<Bounded>]) -> Vec<Bounded> {
    points.iter().map(|seeds| Bounded::mean(seeds)).collect()
}

/// The points of each seed.
pub(super) fn by_seed(points: &[Vec<Bounded>]) -> Vec<Vec<Bounded>> {
    let seeds = points.iter().map(Vec::len).min().unwrap_or_default();
    let of_seed = |seed: usize| points.iter().map(|of| of[seed]).collect();
    (0..seeds).map(of_seed).collect()
}

/// The verdicts that the measurement allows, the best first: those of the mean over the seeds, of
/// each seed alone, and of both ends of what is known only as a bound.
pub(super) fn possible(claim: &ClaimConfig, points: &[Vec<Bounded>]) -> Vec<Verdict> {
    let (low, high) = match claim.paper {
        PaperValue::About(value) | PaperValue::AtMost(value) | PaperValue::AtLeast(value) => {
            (value, value)
        }
        PaperValue::Range([low, high]) => (low, high),
    };
    let mut sets = by_seed(points);
    sets.push(over_seeds(points));
    let mut verdicts = Vec::new();
    for set in &sets {
        for pick in [f64::NEG_INFINITY, low, high, f64::INFINITY] {
            let picked = set.iter().map(|of| pick.clamp(of.least, of.most));
            verdicts.push(judge(claim, &picked.collect::<Vec<_>>()));
        }
    }
    best_first(verdicts)
}

fn best_first(mut verdicts: Vec<Verdict>) -> Vec<Verdict> {
    let place = |verdict: &Verdict| Verdict::ALL.iter().position(|of| of == verdict);
    verdicts.sort_by_key(place);
    verdicts.dedup();
    verdicts
}

/// The same where only values are known that have been reduced, and not the points behind them: a
/// bound may or may not hold in their mean.
#[cfg(test)]
pub(crate) fn possible_of_reduced(claim: &ClaimConfig, sets: &[Vec<f64>]) -> Vec<Verdict> {
    let means = |values: &[f64]| match claim.at {
        At::X(_) | At::Only => [values[0]; 2],
        At::Over(_) => [f64::NEG_INFINITY, f64::INFINITY],
    };
    let judged = |values: &Vec<f64>| means(values).map(|mean| judge_reduced(claim, values, mean));
    best_first(sets.iter().flat_map(judged).collect())
}

/// The verdict on exact values of all points.
fn judge(claim: &ClaimConfig, points: &[f64]) -> Verdict {
    let exact: Vec<Bounded> = points.iter().map(|&value| Bounded::exact(value)).collect();
    let values: Vec<f64> = reduce(claim, &exact).iter().map(|of| of.least).collect();
    let mean = points.iter().sum::<f64>() / points.len() as f64;
    judge_reduced(claim, &values, mean)
}

/// `mean` is that of all points.
fn judge_reduced(claim: &ClaimConfig, values: &[f64], mean: f64) -> Verdict {
    let neutral = claim.neutral.or(claim.measure.neutral());
    match claim.paper {
        PaperValue::AtMost(most) => bound(values, mean, neutral, |value| value - most),
        PaperValue::AtLeast(least) => bound(values, mean, neutral, |value| least - value),
        PaperValue::About(paper) => effect(claim, values, [paper, paper]),
        PaperValue::Range(range) => effect(claim, values, range),
    }
}

/// A bound holds everywhere, without slack. `beyond` is how far a value is on the wrong side of it.
fn bound(values: &[f64], mean: f64, neutral: Option<f64>, beyond: impl Fn(f64) -> f64) -> Verdict {
    if values.iter().all(|&value| beyond(value) <= 0.0) {
        return Verdict::Reproduced;
    }
    // A plain value has no direction: a guarantee that is broken is broken.
    let Some(neutral) = neutral else {
        return Verdict::NotReproduced;
    };
    // The effect that a bound asks for, as in "exceeds 55%"; none where it limits one.
    let asked = beyond(neutral);
    let same_direction = if asked > 0.0 {
        let has = |value: f64| asked - beyond(value) >= asked * NOTICEABLE;
        values.iter().all(|&value| has(value))
    } else {
        beyond(mean) <= 0.0 && !(asked == 0.0 && values.iter().any(|&value| beyond(value) > 0.0))
    };
    if same_direction {
        Verdict::SameDirection
    } else {
        Verdict::NotReproduced
    }
}

/// Our values against the paper's least and most.
fn effect(claim: &ClaimConfig, values: &[f64], [low, high]: [f64; 2]) -> Verdict {
    let neutral = claim.neutral.or(claim.measure.neutral());
    let neutral = neutral.filter(|&neutral| neutral < low || neutral > high);
    let within = |tolerance: &dyn Fn(f64) -> f64| {
        let is = |value: &f64| *value >= low - tolerance(low) && *value <= high + tolerance(high);
        values.iter().all(is)
    };
    let Some(neutral) = neutral else {
        return if within(&|paper| EXACT * paper.abs()) {
            Verdict::Reproduced
        } else {
            Verdict::NotReproduced
        };
    };
    let size = |paper: f64| (paper - neutral).abs();
    let side = (low - neutral).signum();
    let least = size(low).min(size(high));
    if within(&|paper| TOLERANCE * size(paper).min(claim.measure.left(paper))) {
        Verdict::Reproduced
    } else if values
        .iter()
        .all(|value| (value - neutral) * side >= least * NOTICEABLE)
    {
        Verdict::SameDirection
    } else {
        Verdict::NotReproduced
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use Verdict::{NotReproduced, Reproduced, SameDirection};

    pub(in super::super) fn claim(paper: &str, rest: &str) -> ClaimConfig {
        let text = format!(
            "id = \"a\"\nquote = \"\"\nwhat = \"\"\nmetric = \"all.mean\"\nof = \"a\"\n\
             paper = {{ {paper} }}\n{rest}"
        );
        toml::from_str(&text).unwrap()
    }

    const LARGEST: &str = "measure = \"reduction\"\nat = \"largest\"";
    const SMALLEST: &str = "measure = \"reduction\"\nat = \"smallest\"";
    const VALUE: &str = "measure = \"value\"";
    const RATIO: &str = "measure = \"ratio\"";

    #[test]
    fn an_effect_is_reproduced_within_a_quarter_and_else_has_a_direction() {
        for (paper, rest, points, verdict) in [
            ("about = 40", LARGEST, [5.0, 30.0], Reproduced),
            ("about = 40", LARGEST, [5.0, 50.0], Reproduced),
            ("about = 40", LARGEST, [5.0, 29.0], SameDirection),
            ("about = 40", LARGEST, [5.0, 90.0], SameDirection),
            ("about = 40", LARGEST, [1.0, 3.9], NotReproduced),
            ("about = 40", LARGEST, [-5.0, -1.0], NotReproduced),
            ("about = 16", RATIO, [13.0, 13.0], Reproduced),
            ("about = 16", RATIO, [2.6, 2.6], SameDirection),
            ("about = 16", RATIO, [2.4, 2.4], NotReproduced),
        ] {
            assert_eq!(
                judge(&claim(paper, rest), &points),
                verdict,
                "{paper} {points:?}"
            );
        }
    }

    #[test]
    fn what_an_effect_leaves_has_the_same_tolerance() {
        for (paper, rest, ours, verdict) in [
            // 91% leaves 9: from 6.75 to 11.25 may be left.
            ("about = 91", LARGEST, 75.5, SameDirection),
            ("about = 91", LARGEST, 88.8, Reproduced),
            ("about = 91", LARGEST, 88.7, SameDirection),
            ("about = 91", LARGEST, 93.2, Reproduced),
            ("about = 91", LARGEST, 93.3, SameDirection),
            // 89 Mbps of 940: 850 less, but 89 are left.
            (
                "about = 89",
                "measure = \"value\"\nneutral = 940",
                208.0,
                SameDirection,
            ),
            (
                "about = 89",
                "measure = \"value\"\nneutral = 940",
                111.0,
                Reproduced,
            ),
            (
                "about = 89",
                "measure = \"value\"\nneutral = 940",
                7.9,
                SameDirection,
            ),
            ("about = 0.25", RATIO, 0.31, Reproduced),
            ("about = 0.25", RATIO, 0.4, SameDirection),
        ] {
            assert_eq!(
                judge(&claim(paper, rest), &[ours]),
                verdict,
                "{paper} {ours}"
            );
        }
    }

    #[test]
    fn a_share_is_judged_by_its_distance_from_the_fair_one() {
        let share = claim("about = 403", "measure = \"value\"\nneutral = 471");
        for (ours, verdict) in [
            (419.0, Reproduced),
            (450.0, SameDirection),
            (471.0, NotReproduced),
            (500.0, NotReproduced),
        ] {
            assert_eq!(judge(&share, &[ours]), verdict, "{ours}");
        }
    }

    #[test]
    fn a_value_that_is_no_effect_is_reproduced_within_a_twentieth() {
        for (paper, rest, ours, verdict) in [
            ("about = 1", RATIO, 0.96, Reproduced),
            ("about = 1", RATIO, 1.1, NotReproduced),
            ("about = 936", VALUE, 920.0, Reproduced),
            ("about = 936", VALUE, 800.0, NotReproduced),
        ] {
            assert_eq!(
                judge(&claim(paper, rest), &[ours]),
                verdict,
                "{paper} {ours}"
            );
        }
    }

    #[test]
    fn a_range_holds_if_ours_lies_in_it_but_for_a_quarter() {
        let range = claim("range = [20, 40]", "measure = \"increase\"\nat = \"all\"");
        assert_eq!(judge(&range, &[16.0, 49.0]), Reproduced);
        assert_eq!(judge(&range, &[10.0, 30.0]), SameDirection);
        assert_eq!(judge(&range, &[-1.0, 30.0]), NotReproduced);
    }

    #[test]
    fn bounds_have_no_slack() {
        let increase = "measure = \"increase\"\nat = \"largest\"";
        for (paper, rest, points, verdict) in [
            ("at-least = 900", VALUE, [900.0, 900.0], Reproduced),
            ("at-least = 900", VALUE, [888.0, 888.0], NotReproduced),
            ("at-most = 24.3", VALUE, [24.3, 24.3], Reproduced),
            ("at-most = 24.3", VALUE, [27.2, 27.2], NotReproduced),
            ("at-most = 10", increase, [1.0, 10.0], Reproduced),
            ("at-most = 10", increase, [1.0, 12.0], SameDirection),
            ("at-most = 10", increase, [20.0, 14.0], NotReproduced),
            ("at-least = 1", RATIO, [1.0, 1.0], Reproduced),
            ("at-least = 1", RATIO, [0.97, 0.97], NotReproduced),
            ("at-most = 1.2", RATIO, [1.24, 1.24], NotReproduced),
            ("at-least = 0", SMALLEST, [0.5, 2.0], Reproduced),
            ("at-least = 0", SMALLEST, [-0.5, 2.0], NotReproduced),
            ("at-least = 0", SMALLEST, [-2.0, 0.5], NotReproduced),
            ("at-least = 4", SMALLEST, [2.0, 8.0], SameDirection),
            // "Exceeds 55%".
            ("at-least = 55", LARGEST, [40.0, 60.0], Reproduced),
            ("at-least = 55", LARGEST, [40.0, 54.0], SameDirection),
            ("at-least = 55", LARGEST, [-40.0, 5.0], NotReproduced),
            ("at-most = 0.25", RATIO, [0.4, 0.4], SameDirection),
            ("at-most = 0.25", RATIO, [1.1, 1.1], NotReproduced),
        ] {
            assert_eq!(
                judge(&claim(paper, rest), &points),
                verdict,
                "{paper} {points:?}"
            );
        }
    }

    #[test]
    fn seeds_that_disagree_decide_nothing() {
        let about = claim("about = 40", LARGEST);
        let seeds = |values: &[f64]| {
            let point = values.iter().map(|&value| Bounded::exact(value)).collect();
            possible(&about, &[point])
        };
        assert_eq!(seeds(&[31.0, 40.0, 49.0]), [Reproduced]);
        assert_eq!(seeds(&[29.0, 31.0, 33.0]), [Reproduced, SameDirection]);
        assert_eq!(
            seeds(&[3.0, 60.0]),
            [Reproduced, SameDirection, NotReproduced]
        );
        assert_eq!(seeds(&[20.0]), [SameDirection]);
    }

    #[test]
    fn a_run_that_is_too_short_bounds_its_ratio() {
        let compare = |measure: Measure, of, to| measure.compare(of, to).unwrap();
        let (long, short) = (Bounded::at_least(60.0), Bounded::exact(4.0));
        assert_eq!(
            compare(Measure::Ratio, long, short),
            Bounded::at_least(15.0)
        );
        let reduction = compare(Measure::Reduction, short, long);
        assert!(
            (reduction.least - 1400.0 / 15.0).abs() < 1e-9,
            "{reduction:?}"
        );
        assert_eq!(reduction.most, 100.0);
        assert_eq!(Measure::Ratio.compare(long, long), None);

        let point = [vec![Bounded::at_least(15.0)]];
        assert_eq!(
            possible(&claim("at-least = 1", RATIO), &point),
            [Reproduced]
        );
        // At least 15 may be 16 or any more.
        let about = possible(&claim("about = 16", RATIO), &point);
        assert_eq!(about, [Reproduced, SameDirection]);
        // And is not 8 for sure.
        assert_eq!(
            possible(&claim("about = 8", RATIO), &point),
            [SameDirection]
        );
        // The paper's value may hide between the ends.
        let hidden = possible(&claim("about = 100", RATIO), &point);
        assert_eq!(hidden, [Reproduced, SameDirection]);
    }

    #[test]
    fn what_cannot_be_divided_has_no_value() {
        let (none, some) = (Bounded::exact(0.0), Bounded::exact(3.0));
        for measure in [Measure::Ratio, Measure::Reduction, Measure::Increase] {
            assert_eq!(measure.compare(some, none), None, "{measure:?}");
        }
        assert_eq!(
            Measure::Ratio.compare(none, none),
            Some(Bounded::exact(1.0))
        );
        let reduction = Measure::Reduction.compare(none, none);
        assert_eq!(reduction, Some(Bounded::exact(0.0)));
    }
}
