//! Flows that the end of their run cut short. They have no completion time, so a statistic over
//! completion times is one of the flows that finished.

use std::fmt::{self, Display, Formatter};
use std::iter::Sum;

use shallows_results::summary::Summary;

use super::results::Results;

/// Points that a line names.
const NAMED: usize = 8;

/// Number of unfinished flows among those that started. Long-lived flows are in neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pub(crate) unfinished: u64,
    pub(crate) flows: u64,
}

impl Unfinished {
    pub(crate) fn of(summary: &Summary) -> Self {
        let all = &summary.classes.all;
        let long_lived = summary.long_lived.as_ref().map_or(0, |of| of.flows);
        Self {
            unfinished: all.unfinished.saturating_sub(long_lived),
            flows: all.flows.saturating_sub(long_lived),
        }
    }
}

impl Sum for Unfinished {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, of| Self {
            unfinished: sum.unfinished + of.unfinished,
            flows: sum.flows + of.flows,
        })
    }
}

impl Display for Unfinished {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} flows", self.unfinished, self.flows)
    }
}

/// A line with the number of unfinished flows at each point that has some, over all seeds.
pub(crate) fn by_point(results: &Results<'_>) -> Option<String> {
    let study = results.study;
    let at = |combination: usize| {
        let runs = results.runs(combination).iter().flatten();
        let sum: Unfinished = runs.map(|run| Unfinished::of(&run.summary)).sum();
        let axes = study.axes.iter().zip(study.points(combination));
        let place: Vec<String> = axes
            .map(|(axis, point)| format!("{} = {}", axis.name, axis.points[point].label))
            .collect();
        (sum.unfinished > 0).then(|| match &place[..] {
            [] => sum.to_string(),
            place => format!("{}: {sum}", place.join(", ")),
        })
    };
    let mut places: Vec<String> = (0..study.combinations()).filter_map(at).collect();
    if places.is_empty() {
        return None;
    }
    if let Some(more) = places.len().checked_sub(NAMED).filter(|&more| more > 0) {
        places.truncate(NAMED);
        places.push(format!("and some at {more} more points"));
    }
    let places = places.join("; ");
    Some(format!(
        "not over at the end of the run, and in no completion time: {places}"
    ))
}
