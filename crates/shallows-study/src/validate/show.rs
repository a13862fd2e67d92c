//! Tables and figures of a comparison.

use std::fmt::{self, Display, Formatter};

use shallows_results::figure::{Axis, Curve, Extent, Figure, Origin, Panel, Plot, Point};

use super::simulators::Paths;
use super::{Row, SchemeAgreement, Simulator, Validation};

/// Flows of the start of a run, before the smallest difference has grown.
const FIRST: usize = 100;

impl Validation {
    /// Each flow in both simulators, a panel for each scheme.
    pub fn figure(&self) -> Figure {
        let panel = |scheme: &SchemeAgreement| Panel {
            title: scheme.label.to_owned(),
            x: Axis::new("FCT in the authors' ns-2 (us)", Extent::Data).logarithmic(),
            y: Axis::new("FCT in Shallows (us)", Extent::Data).logarithmic(),
            plot: Plot::Scatter(vec![Curve {
                origin: Origin::Simulated,
                label: "a flow".to_owned(),
                style: 0,
                points: scheme
                    .flows
                    .iter()
                    .map(|&(theirs, ours)| Point::new(theirs, ours))
                    .collect(),
            }]),
        };
        Figure {
            name: self.file(),
            alt: "Completion time of each flow in the authors' simulator and in Shallows"
                .to_owned(),
            panels: self.schemes.iter().map(panel).collect(),
        }
    }

    /// Name of its files, without their endings.
    pub fn file(&self) -> String {
        format!("validate-{}", self.simulator)
    }
}

impl SchemeAgreement {
    /// Percentage of the flows whose times agree in both simulators to within this fraction.
    pub(super) fn within(&self, fraction: f64) -> f64 {
        let close = |&&(theirs, ours): &&(f64, f64)| (ours - theirs).abs() <= fraction * theirs;
        100.0 * self.flows.iter().filter(close).count() as f64 / self.flows.len() as f64
    }

    /// Number of first flows whose times agree to 10 ns.
    pub(super) fn same_at_first(&self) -> usize {
        let first = self.flows.iter().take(FIRST);
        first
            .filter(|(theirs, ours)| (ours - theirs).abs() < 0.01)
            .count()
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let difference = self
            .difference()
            .map(|part| format!("{:+.1}%", 100.0 * part));
        let goal = match (self.goal, self.is_met()) {
            (Some(goal), Some(met)) => {
                let word = if met { "within" } else { "beyond" };
                format!("{word} {:.0}%", 100.0 * goal)
            }
            _ => String::new(),
        };
        write!(
            f,
            "  {:<14}{:>12.1}{:>12.1}{:>9}  {goal:<12}{:.1}, {:.1}",
            self.measure,
            self.theirs,
            self.ours,
            difference.unwrap_or_default(),
            self.least,
            self.most
        )
    }
}

impl Display for Validation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let simulator = Simulator::find(self.simulator);
        let label = simulator.map_or(self.simulator, |simulator| simulator.label);
        for scheme in &self.schemes {
            let runs = scheme.ours.len();
            let name = scheme.label;
            writeln!(f, "{label}'s simulator, {name} ({runs} runs)")?;
            writeln!(
                f,
                "  {:<14}{:>12}{:>12}{:>9}  {:<12}our runs from, to",
                "FCT in us", "authors", "ours", "", "goal"
            )?;
            for row in &scheme.rows {
                writeln!(f, "{row}")?;
            }
            writeln!(
                f,
                "  flow by flow: {} of the first {FIRST} the same to 10 ns; of all {:.0}% within 1%, {:.0}% within 5%",
                scheme.same_at_first(),
                scheme.within(0.01),
                scheme.within(0.05)
            )?;
        }
        let verdicts = self.schemes.iter().flat_map(|scheme| &scheme.rows);
        let verdicts: Vec<bool> = verdicts.filter_map(Row::is_met).collect();
        let met = verdicts.iter().filter(|&&met| met).count();
        let paths = match simulator.map(|simulator| simulator.paths) {
            Some(Paths::Drawn) => " and in the draw of paths, which are not the authors'",
            Some(Paths::Same) | None => "",
        };
        writeln!(
            f,
            "{met} of {} measures are within their goals; ours is the median of the runs, which differ by at most 1 us in each flow's start{paths}",
            verdicts.len()
        )
    }
}
