//! Notes on a choice: cases to which it does not carry over or which cannot be compared, limits of
//! its knob, and unfinished flows.

use super::goal::{Bound, Side};
use super::report::{Report, Row, Tried, change, signed};
use super::search::Candidate;
use super::trials::Missing;

impl Report<'_> {
    /// Notes on scenarios where the choice does not carry over, and on single knobs that break a
    /// constraint.
    pub(super) fn notes(&self) -> Vec<String> {
        let trials = self.trials;
        let goal = &trials.goal.metric.name;
        let mut notes = Vec::new();
        if let Some(standing) = self.over_held_out_seeds()
            && standing.goal.count > 1
            && !trials.goal.is_better(standing.goal)
        {
            notes.push(format!(
                "no clear gain: on held-out seeds the 95% interval of {goal} includes no change"
            ));
        }
        for row in self.rows.iter().filter(|row| row.seeds != "of the search") {
            let Some(standing) = &row.standing else {
                notes.push(self.without_comparison(row));
                continue;
            };
            if trials.goal.cost(standing.goal.mean) >= 1.0 {
                let change = change(standing.goal);
                notes.push(format!(
                    "does not carry over to {} ({}): {goal} {change}",
                    row.case, row.seeds
                ));
            }
            for ((keep, violation), ratio) in
                (trials.keeps.iter().zip(&standing.violations)).zip(&standing.keeps)
            {
                if *violation > 0.0 {
                    let ratio = ratio.map_or_else(|| "has no ratio".to_owned(), signed);
                    notes.push(format!(
                        "breaks {} in {} ({}): {ratio}",
                        keep.shown(),
                        row.case,
                        row.seeds
                    ));
                }
            }
        }
        notes.extend(self.limits());
        notes.extend(self.unfinished());
        notes
    }

    /// The reason why a case has no comparison.
    fn without_comparison(&self, row: &Row) -> String {
        let seeds = self.request.seeds.max(1);
        let held_out = || seeds + 1..=2 * seeds;
        let names = self.names().join(", ");
        let of = |candidate: Option<&Candidate>, which: &str| -> Vec<String> {
            let missing = self.trials.missing(candidate, row.number, held_out());
            let missing = missing.into_iter().map(|(seed, missing)| match missing {
                Missing::Run => format!("with seed {seed} {which} fails"),
                Missing::Metric => {
                    format!("the run with seed {seed} {which} does not have all of: {names}")
                }
            });
            missing.collect()
        };
        let mut reasons = of(None, "as it is");
        if let Some(chosen) = self.chosen {
            reasons.extend(of(Some(chosen), "and the choice"));
        }
        format!(
            "no comparison in {} ({}): {}",
            row.case,
            row.seeds,
            reasons.join("; ")
        )
    }

    /// The unfinished flows, which are in no completion time.
    fn unfinished(&self) -> Option<String> {
        let [as_it_is, chosen] = self.trials.unfinished(self.chosen);
        if as_it_is.unfinished + chosen.unfinished == 0 {
            return None;
        }
        let of_choice = match self.chosen {
            Some(_) => format!(", {chosen} with the choice"),
            None => String::new(),
        };
        Some(format!(
            "not over at the end of the run, and in no completion time: {as_it_is} in the scenario \
             as it is{of_choice}"
        ))
    }

    /// Values of a single ordered knob beyond which each relative constraint is surely broken.
    fn limits(&self) -> Vec<String> {
        let (Some(chosen), [knob]) = (self.chosen, self.trials.knobs) else {
            return Vec::new();
        };
        if !knob.is_ordered() {
            return Vec::new();
        }
        let mut limits = Vec::new();
        for (index, keep) in self.trials.keeps.iter().enumerate() {
            let Bound::Ratio(bound) = keep.bound else {
                continue;
            };
            let is_broken = |tried: &&Tried<'_>| {
                let ratio = tried.standing.keeps[index].filter(|ratio| ratio.count > 1);
                ratio.is_some_and(|ratio| match keep.side {
                    Side::AtMost => ratio.low > bound,
                    Side::AtLeast => ratio.high < bound,
                })
            };
            let broken = || self.tried.iter().filter(is_broken);
            let below = broken()
                .map(|of| of.candidate[0])
                .filter(|at| *at < chosen[0])
                .max();
            let above = broken()
                .map(|of| of.candidate[0])
                .filter(|at| *at > chosen[0])
                .min();
            for (place, word) in [(below, "below"), (above, "above")] {
                if let Some(at) = place {
                    let value = &knob.points()[at].label;
                    let (name, bound) = (&knob.axis.name, keep.shown());
                    limits.push(format!("at {name} = {value} and {word}, {bound} is broken"));
                }
            }
        }
        limits
    }
}
