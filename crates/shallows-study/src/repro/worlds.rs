//! A figure of both worlds: live values beside the simulated ones.

use std::fmt::Write as _;

use shallows_results::figure::{Curve, Extent, Origin, Panel, Plot, Row};
use shallows_results::report::{FigureOutcome, LiveRuns, LiveValue, Paper};

use super::LIVE;
use super::plan::Plan;
use crate::study::claim;
use crate::study::results::Results;

/// The part of a live distribution that is drawn.
const DRAWN: f64 = 0.995;

/// The live runs of a figure.
#[derive(Debug)]
pub(super) struct Live<'a> {
    pub(super) facts: LiveRuns,
    pub(super) results: Results<'a>,
}

/// A figure with both worlds in it.
pub(super) fn outcome(
    paper: &Paper,
    plan: &Plan,
    simulated: &Results<'_>,
    live: Live<'_>,
) -> FigureOutcome {
    let Live { facts, results } = live;
    let mut drawn = super::outcome(paper, plan, &results).figure;
    drawn.panels.iter_mut().for_each(trim);
    let values = plan.config().claim.iter().map(|claim| {
        let outcome = claim::evaluate(claim, &results);
        LiveValue {
            ours: outcome.ours,
            spread: outcome.spread,
            values: outcome.values,
            verdict: outcome.verdict,
            note: outcome.note,
        }
    });
    let values: Vec<LiveValue> = values.collect();
    let only_live = plan.config().is_live_only();
    let mut outcome = super::outcome(paper, plan, simulated);
    for (claim, value) in outcome.claims.iter_mut().zip(values) {
        claim.live = Some(value);
    }
    let figure = &mut outcome.figure;
    let simulated = std::mem::take(&mut figure.panels);
    figure.name += LIVE;
    outcome.id += LIVE;
    if only_live {
        figure.panels = drawn.panels;
        outcome.title += ", live";
    } else {
        let pairs = simulated.into_iter().zip(drawn.panels);
        figure.panels = pairs.flat_map(|(one, other)| beside(one, other)).collect();
        let note = outcome.note.get_or_insert_default();
        *note += " Live, pings are ICMP.";
        outcome.title += ", simulated and live";
    }
    outcome.live = Some(facts);
    outcome
}

/// The live values of a panel beside the simulated ones: in the same panel but for grids.
fn beside(simulated: Panel, live: Panel) -> Vec<Panel> {
    let is_ours = |curve: &Curve| curve.origin != Origin::Paper;
    let as_live = |curve: Curve| Curve {
        label: format!("{}, live", curve.label),
        origin: Origin::Live,
        ..curve
    };
    let mut panel = simulated;
    match (&mut panel.plot, live.plot) {
        (Plot::Points(curves), Plot::Points(others))
        | (Plot::Lines(curves), Plot::Lines(others)) => {
            curves.extend(others.into_iter().filter(is_ours).map(as_live));
        }
        (Plot::Rows(rows), Plot::Rows(others)) => {
            for other in others {
                let after = rows.iter().rposition(|row| row.label == other.label);
                let row = Row {
                    label: format!("{}, live", other.label),
                    origin: Origin::Live,
                    paper: None,
                    ..other
                };
                rows.insert(after.map_or(rows.len(), |after| after + 1), row);
            }
        }
        (_, plot) => {
            let title = format!("{}, live", panel.title);
            let live = Panel {
                title,
                plot,
                ..live
            };
            panel.title += ", simulated";
            return vec![panel, live];
        }
    }
    vec![panel]
}

/// Leaves out the last points of distributions: a single ping that met a busy machine would flatten
/// everything else.
fn trim(panel: &mut Panel) {
    if let (Extent::Unit, Plot::Lines(curves)) = (panel.y.extent, &mut panel.plot) {
        for curve in curves {
            curve.points.retain(|point| point.y <= DRAWN);
        }
    }
}

/// The claims as lines: paper, simulated, live.
pub fn three_ways(outcomes: &[FigureOutcome]) -> String {
    let head = ["figure", "claim", "paper", "simulated", "", "live", ""];
    let mut rows = vec![head.map(str::to_owned)];
    for outcome in outcomes {
        for claim in &outcome.claims {
            let live = claim.live.as_ref();
            let of_live = |of: fn(&LiveValue) -> String| live.map_or_else(String::new, of);
            rows.push([
                outcome.id.replace(LIVE, ""),
                claim.what.clone(),
                claim.paper.clone(),
                claim.ours.clone(),
                claim.verdict_text(),
                of_live(|live| live.ours.clone()),
                of_live(LiveValue::verdict_text),
            ]);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 7] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            2 | 3 | 5 => format!("{cell:>width$}"),
            _ => format!("{cell:width$}"),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    for outcome in outcomes {
        if let Some(live) = &outcome.live {
            let _ = writeln!(text, "{}: {live}", outcome.id.replace(LIVE, ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use shallows_results::figure::Axis;

    use super::*;

    #[test]
    fn live_values_stand_in_the_panel_of_the_simulated_ones() {
        let curve = |label: &str, origin| Curve {
            label: label.to_owned(),
            style: 0,
            points: Vec::new(),
            origin,
        };
        let row = |label: &str, value: f64| Row {
            label: label.to_owned(),
            value,
            low: value,
            high: value,
            origin: Origin::Simulated,
            paper: Some(2.0),
        };
        let panel = |plot: Plot| Panel {
            title: String::new(),
            x: Axis::new("", Extent::Data),
            y: Axis::new("", Extent::Data),
            plot,
        };
        let curves = || vec![curve("a", Origin::Simulated), curve("paper", Origin::Paper)];
        let both = beside(panel(Plot::Points(curves())), panel(Plot::Points(curves())));
        let labels = both[0].curves().iter().map(|of| (&*of.label, of.origin));
        let expected = [
            ("a", Origin::Simulated),
            ("paper", Origin::Paper),
            ("a, live", Origin::Live),
        ];
        assert_eq!(labels.collect::<Vec<_>>(), expected);
        let rows = |value| Plot::Rows(vec![row("a", value), row("b", value)]);
        let both = beside(panel(rows(1.0)), panel(rows(3.0)));
        let Plot::Rows(rows) = &both[0].plot else {
            panic!("{both:?}")
        };
        let labels: Vec<&str> = rows.iter().map(|row| &*row.label).collect();
        assert_eq!(labels, ["a", "a, live", "b", "b, live"]);
        assert_eq!((rows[1].value, rows[1].paper), (3.0, None));
    }
}
