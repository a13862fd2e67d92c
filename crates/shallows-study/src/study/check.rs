//! Refuses panels and claims that lead nowhere, before any run.

use shallows_run::Diagnostic;
use shallows_run::scenario::Document;

use super::Study;
use super::axis::Axis;
use super::chart::{self, Sort};
use super::claim::{At, ClaimConfig};
use super::config::{NamedMetric, PanelConfig, PanelKind, StudyConfig, shown};
use super::view::{Axes, View, ViewKey, point};
use crate::measured::Keep;

pub(super) fn check(document: &Document<StudyConfig>, study: &Study) -> Result<(), Diagnostic> {
    let config = &document.content;
    let check = Check { document, study };
    for (index, metric) in config.metrics.iter().enumerate() {
        check.metric(&format!("metrics.{index}"), metric)?;
    }
    for (number, figure) in config.figure.iter().enumerate() {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if figure.name.is_empty() || !figure.name.chars().all(is_plain) {
            let problem = format!("{:?} is no name for a file", figure.name);
            return Err(document.error(&format!("figure.{number}.name"), problem));
        }
        if !config.panel.is_empty() && figure.name == study.name {
            let problem = "this is the name of the figure that [[panel]] describes";
            return Err(document.error(&format!("figure.{number}.name"), problem));
        }
    }
    for (at, panel) in config.panels() {
        check.panel(&at, panel)?;
    }
    for (index, claim) in config.claim.iter().enumerate() {
        check.claim(&format!("claim.{index}"), claim)?;
    }
    Ok(())
}

struct Check<'a> {
    document: &'a Document<StudyConfig>,
    study: &'a Study,
}

impl Check<'_> {
    fn metric(&self, at: &str, metric: &NamedMetric) -> Result<(), Diagnostic> {
        let keep = self.document.content.keep;
        if keep == Keep::Summary && !metric.metric.is_in_summary() {
            let problem = "this needs more than the summary of a run; write keep = \"all\"";
            return Err(self.document.error(at, problem));
        }
        Ok(())
    }

    /// The axes of a panel or claim, which has the point of other axes at the key `fixed`.
    fn view(&self, at: &str, axes: &Axes<'_>, fixed: &str) -> Result<View, Diagnostic> {
        View::new(self.study, axes).map_err(|error| {
            let noun = if fixed == "at" { "panel" } else { "claim" };
            let (key, problem) = match error.key {
                ViewKey::X => ("x".to_owned(), error.problem),
                ViewKey::Curves => ("curves".to_owned(), error.problem),
                ViewKey::Of => ("of".to_owned(), error.problem),
                ViewKey::At(axis) => (format!("{fixed}.{axis}"), error.problem),
                ViewKey::Open { axis, first } => {
                    let problem = format!(
                        "the {noun} {}; add {fixed} = {{ {axis} = {first:?} }}",
                        error.problem
                    );
                    ("metric".to_owned(), problem)
                }
            };
            self.document.error(&format!("{at}.{key}"), problem)
        })
    }

    fn panel(&self, at: &str, panel: &PanelConfig) -> Result<(), Diagnostic> {
        let wrong = |key: &str, problem: String| {
            let key = format!("{at}.{key}");
            Err(self.document.error(&key, problem))
        };
        for metric in panel.metrics() {
            self.metric(&format!("{at}.metric"), metric)?;
        }
        let view = self.view(at, &chart::axes(panel), "at")?;
        let axis = |number: Option<usize>| number.map(|axis| &self.study.declared[axis]);
        let (x, curves) = (axis(view.x), axis(view.curves));
        if let Some(Axis { name, .. }) = x.filter(|axis| !axis.is_numeric()) {
            let problem = format!(
                "the points of {name} are no numbers of one unit; leave x out and write \
                 curves = {name:?} for a row each"
            );
            return wrong("x", problem);
        }
        if view.x.is_some() && view.x == view.curves {
            return wrong("curves", "this is the axis of x already".to_owned());
        }
        let needs_metric = panel.kind != PanelKind::Distribution && panel.curve.is_empty();
        if panel.metric.is_none() && needs_metric {
            return wrong("title", "the panel has no metric".to_owned());
        }
        if panel.metric.is_some() && !panel.curve.is_empty() {
            let problem = "the panel has a metric and curves of others; keep one of them";
            return wrong("metric", problem.to_owned());
        }
        match chart::sort(panel, &view) {
            None => return wrong("title", "the panel has neither x nor curves".to_owned()),
            Some(Sort::Rows | Sort::Heat | Sort::OverTime | Sort::Distribution)
                if panel.x.is_some() =>
            {
                let problem = "a panel of this kind has no axis of the study to the right";
                return wrong("x", problem.to_owned());
            }
            Some(_) => {}
        }
        match (curves, &panel.normalise) {
            (Some(curves), Some(to)) => {
                let found = point(curves, &shown(to));
                found.map_or_else(|problem| wrong("normalise", problem), |_| Ok(()))
            }
            (None, Some(_)) => {
                let problem = "there are no curves, of which this would be one";
                wrong("normalise", problem.to_owned())
            }
            (_, None) => Ok(()),
        }
    }

    fn claim(&self, at: &str, claim: &ClaimConfig) -> Result<(), Diagnostic> {
        let wrong = |key: &str, problem: String| {
            let key = format!("{at}.{key}");
            Err(self.document.error(&key, problem))
        };
        self.metric(&format!("{at}.metric"), &claim.metric)?;
        if let Some(metric) = &claim.to_metric {
            self.metric(&format!("{at}.to-metric"), metric)?;
        }
        let view = self.view(at, &claim.axes(), "where")?;
        let curves = view.curves.map(|curves| &self.study.declared[curves]);
        if let (Some(curves), Some(to)) = (curves, &claim.to)
            && let Err(problem) = point(curves, to)
        {
            return wrong("to", problem);
        }
        if curves.is_none() && claim.to.is_some() {
            return wrong(
                "to",
                "write also of = \"...\" with the first point".to_owned(),
            );
        }
        if claim.to.is_none() && claim.measure.compares() {
            let problem = "this compares two points; write to = \"...\" with the second";
            return wrong("measure", problem.to_owned());
        }
        if let Some((key, problem)) = open_points(claim) {
            return wrong(key, problem);
        }
        match (claim.at, view.x) {
            (At::X(x), Some(axis)) => {
                let axis = &self.study.declared[axis];
                if axis.numbers().any(|number| number == x) {
                    return Ok(());
                }
                let numbers: Vec<String> = axis.numbers().map(|of| of.to_string()).collect();
                let (name, numbers) = (&axis.name, numbers.join(", "));
                wrong("at", format!("{name} has no point {x}; it has: {numbers}"))
            }
            (At::X(_), None) => wrong("at", "the study has no axis of numbers".to_owned()),
            (At::Only, Some(axis)) => {
                let name = &self.study.declared[axis].name;
                let problem = format!(
                    "the claim does not say where it is on the axis {name}; write at = a number of \
                     it, \"largest\", \"smallest\" or \"all\""
                );
                wrong("measure", problem)
            }
            _ => Ok(()),
        }
    }
}

/// The key of a claim that has several points without saying which of them counts: their mean would
/// hide one that breaks the claim.
fn open_points(claim: &ClaimConfig) -> Option<(&'static str, String)> {
    let over = "\"largest\", \"smallest\" or \"all\"";
    let several = claim.of.names().len() > 1;
    match claim.at {
        At::X(x) if several => Some((
            "of",
            format!(
                "the claim is about several points at {x}; write between = [{x}, {x}] and at = {over}"
            ),
        )),
        At::Only if several => Some((
            "of",
            format!("the claim is about several points; write at = {over}"),
        )),
        At::X(_) | At::Only if claim.between.is_some() => Some((
            "between",
            format!("the claim is about several points between these; write at = {over}"),
        )),
        At::Over(_) | At::X(_) | At::Only => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::{OnTop, ScenarioFile};
    use super::*;

    #[test]
    fn a_claim_about_several_points_says_which_of_them_counts() {
        let checked = |keys: &str| {
            let text = format!(
                r#"
                scenario = "x.toml"
                [[axis]]
                name = "scheme"
                point = [{{ label = "a" }}, {{ label = "b" }}]
                [[axis]]
                key = "workload.poisson.load"
                values = [0.3, 0.9]
                [[claim]]
                what = ""
                expected = {{ at-least = 1 }}
                measure = "value"
                metric = "all.mean"
                {keys}
                "#
            );
            let document = Document::parse(Path::new("study.toml"), &text).unwrap();
            let scenario = ScenarioFile::Path(PathBuf::from("x.toml"));
            let study = Study::new(&document, "study", scenario, &OnTop::default());
            study.map(drop).map_err(|error| error.to_string())
        };
        let both = "of = [\"a\", \"b\"]";
        for at in ["\"largest\"", "\"smallest\"", "\"all\""] {
            assert_eq!(checked(&format!("{both}\nat = {at}")), Ok(()));
            assert_eq!(
                checked(&format!("of = \"a\"\nbetween = [0, 1]\nat = {at}")),
                Ok(())
            );
        }
        for (keys, expected) in [
            (
                format!("{both}\nat = 0.9"),
                "at 0.9; write between = [0.9, 0.9] and at = \"largest\", \"smallest\" or \"all\"",
            ),
            (
                format!("{both}\nwhere = {{ load = 0.3 }}"),
                "several points; write at = \"largest\", \"smallest\" or \"all\"",
            ),
            (
                "of = \"a\"\nbetween = [0, 1]".to_owned(),
                "between these; write at = \"largest\", \"smallest\" or \"all\"",
            ),
        ] {
            let problem = checked(&keys).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
