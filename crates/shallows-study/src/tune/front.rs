//! The Pareto front: the goal against the first bounded metric.

use shallows_results::figure::{
    Axis, Curve, Extent, Figure, Origin, Panel, Plot, Point, Width, Words,
};

use super::goal::Side;
use super::report::{Report, Tried};
use super::search::FIRST;
use super::trials::Standing;

impl Report<'_> {
    /// Candidates with an interval that no other beats in both the goal and the first constrained
    /// metric, in the order of that metric.
    pub(super) fn front(&self) -> Vec<&Tried<'_>> {
        let place = |of: &Tried<'_>| -> Option<(f64, f64)> {
            let keep = self.trials.keeps.first()?;
            let ratio = of.standing.keeps.first().copied().flatten()?.mean;
            let harm = match keep.side {
                Side::AtMost => ratio,
                Side::AtLeast => 1.0 / ratio,
            };
            Some((harm, self.trials.goal.cost(of.standing.goal.mean)))
        };
        let fewest = FIRST.min(self.request.seeds as usize);
        let mut placed: Vec<((f64, f64), &Tried<'_>)> = self
            .tried
            .iter()
            .filter(|of| of.seeds >= fewest)
            .filter_map(|of| Some((place(of)?, of)))
            .collect();
        placed.sort_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut least = f64::INFINITY;
        placed.retain(|((_, cost), _)| {
            let is_new = *cost < least;
            least = least.min(*cost);
            is_new
        });
        placed.into_iter().map(|(_, of)| of).collect()
    }

    pub(super) fn figure(&self, front: &[&Tried<'_>]) -> Option<(Figure, Words)> {
        let keep = self.trials.keeps.first()?;
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let point = |standing: &Standing| {
            let goal = standing.goal;
            Some(Point {
                x: percent(standing.keeps.first().copied().flatten()?.mean),
                y: percent(goal.mean),
                low: percent(goal.low),
                high: percent(goal.high),
            })
        };
        let front = front.iter().filter_map(|of| point(&of.standing)).collect();
        let chosen = self.tried.iter().find(|of| self.is_chosen(of));
        let chosen = chosen.and_then(|of| point(&of.standing));
        let curve = |(style, (label, points)): (usize, (&str, Vec<Point>))| Curve {
            origin: Origin::Simulated,
            label: label.to_owned(),
            style,
            points,
        };
        let curves = [
            ("Pareto front", front),
            ("as it is", vec![Point::new(0.0, 0.0)]),
            ("chosen", chosen.into_iter().collect()),
        ];
        let (goal, kept) = (&self.trials.goal.metric.name, &keep.metric.name);
        let note = "Each against the scenario as it is, seed by seed. Bars are 95% confidence \
                    intervals over the seeds that a candidate had.";
        let figure = Figure {
            name: "front".to_owned(),
            alt: format!("{goal} against {kept} of the candidates that no other beats. {note}"),
            panels: vec![Panel {
                title: String::new(),
                x: Axis::new(format!("{kept} (change in %)"), Extent::Reference(0.0)),
                y: Axis::new(format!("{goal} (change in %)"), Extent::Reference(0.0)),
                plot: Plot::Points(curves.into_iter().enumerate().map(curve).collect()),
            }],
        };
        let words = Words {
            title: format!("{goal} and {kept}"),
            note: note.to_owned(),
            width: Width::default(),
        };
        Some((figure, words))
    }
}
