//! Studies: a scenario, what is varied in it over seeds, what is drawn of the runs, and what is
//! claimed about them. From a file, a figure of a paper, or `--vary`, to runs, results, figures and
//! verdicts.

pub(crate) mod axis;
pub(crate) mod chart;
mod check;
mod choice;
pub(crate) mod claim;
pub(crate) mod config;
mod published;
pub(crate) mod results;
pub(crate) mod unfinished;
mod vary;
pub(crate) mod verdict;
mod view;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use shallows_core::registry::Registry;
use shallows_results::report::Size;
use shallows_run::examples::{Example, read_text};
use shallows_run::scenario::{Document, Scenario, Setting};
use shallows_run::{Diagnostic, Failure};

use crate::executor::Job;
use axis::{Axis, Point};
use choice::{chosen, for_point, size_of};
use config::{NamedMetric, Seeds, StudyConfig, sets_seed};
pub(crate) use vary::axis_of;

/// Most runs of a study: their scenarios and rows, 18 KB each, have to fit into memory.
const MOST_RUNS: usize = 100_000;

/// A scenario, what is varied in it, and what is wanted of the runs.
#[derive(Debug)]
pub struct Study {
    /// Name of its results.
    pub name: String,
    /// The file.
    pub(crate) config: StudyConfig,
    scenario: ScenarioFile,
    /// Settings of all runs, below those of the axes.
    set: Vec<Setting>,
    /// Settings of a command, which win over all others, each with the point that it is for.
    on_top: Vec<(Option<String>, Setting)>,
    /// Settings of a command as it was given them, for the record.
    pub(crate) commanded: Vec<String>,
    /// Size that a command asked for.
    pub(crate) size: Option<Size>,
    /// Axes with the points that are run.
    pub(crate) axes: Vec<Axis>,
    /// Axes with all of their points.
    pub(crate) declared: Vec<Axis>,
    pub(crate) seeds: Vec<u64>,
    /// As it was written.
    pub(crate) text: String,
    /// Schemes of other crates that scenarios may name.
    registry: Registry,
}

/// The scenario of a study.
#[derive(Clone, Debug)]
pub(crate) enum ScenarioFile {
    Path(PathBuf),
    /// A file that was read already.
    Text {
        path: PathBuf,
        text: String,
    },
}

/// Settings of a command on top of a study.
#[derive(Clone, Debug, Default)]
pub struct OnTop {
    /// Settings of all runs, such as `ports.switch.queues=4`, or of those at one point, such as
    /// `mq-ecn:ports.switch.queues=4`. They win over those of the study.
    pub set: Vec<Setting>,
    /// Number of seeds, from 1 on.
    pub seeds: Option<u64>,
    /// Size; the study as it is if not given.
    pub size: Option<Size>,
    /// Only these numbers of the first numeric axis; all if empty.
    pub at: Vec<f64>,
    /// Schemes of other crates that scenarios may name.
    pub registry: Registry,
}

impl OnTop {
    fn commanded(&self) -> Vec<String> {
        self.set.iter().map(|one| one.assignment.clone()).collect()
    }
}

impl Study {
    /// Reads a study file, or one that is built in by its name.
    pub fn read(path: &Path, on_top: &OnTop) -> Result<Self, Failure> {
        let document: Document<StudyConfig> = Document::read(path)?;
        let scenario = scenario_of(path, &document.content.scenario);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::new(&document, &stem, ScenarioFile::Path(scenario), on_top)
    }

    /// The study of a file that was read; `stem` is its name if it does not give one.
    pub(crate) fn new(
        document: &Document<StudyConfig>,
        stem: &str,
        scenario: ScenarioFile,
        on_top: &OnTop,
    ) -> Result<Self, Failure> {
        let config = &document.content;
        let declared = axes_of(document)?;
        let size = size_of(document, on_top.size)?;
        let seeds = if let Some(count) = on_top.seeds {
            let seeds = Seeds::Count(count).list(MOST_RUNS);
            seeds.map_err(|problem| Diagnostic::new(format!("--seeds: {problem}")))?
        } else {
            let seeds = size.seeds.as_ref().unwrap_or(&config.seeds);
            let seeds = seeds.list(MOST_RUNS);
            seeds.map_err(|problem| document.error("seeds", problem))?
        };
        if let Some(index) = config.set.iter().position(|one| sets_seed(one)) {
            let problem = "the seeds of a study are those of `seeds`; write seeds = [7]";
            return Err(document.error(&format!("set.{index}"), problem).into());
        }
        if let Some(setting) = on_top.set.iter().find(|one| sets_seed(&one.assignment)) {
            let problem = format!(
                "{}: the seeds of a study are those of `seeds`, or from 1 to N with --seeds N",
                setting.shown
            );
            return Err(Diagnostic::new(problem).into());
        }
        let of_file = (0..)
            .zip(&config.set)
            .map(|(index, assignment): (usize, _)| {
                let place = document.place(&format!("set.{index}"));
                (place, assignment)
            });
        let table = choice::table_of(config, on_top.size);
        let of_size = (0..).zip(&size.set).map(|(index, assignment): (usize, _)| {
            let place = document.place(&format!("{table}.set.{index}"));
            (place, assignment)
        });
        let set = of_file.chain(of_size).map(|(place, assignment)| Setting {
            shown: format!("{place}: {assignment}"),
            assignment: assignment.clone(),
        });
        let name = config.name.clone().unwrap_or_else(|| stem.to_owned());
        let of_command = on_top.set.iter().map(|one| for_point(one, &declared));
        let study = Self {
            axes: chosen(document, &name, &declared, size, on_top)?,
            name,
            scenario,
            set: set.collect(),
            on_top: of_command.collect(),
            commanded: on_top.commanded(),
            size: on_top.size,
            declared,
            seeds,
            config: config.clone(),
            text: document.text().to_owned(),
            registry: on_top.registry.clone(),
        };
        check::check(document, &study)?;
        let is_plain = |c: char| !c.is_control() && !['/', '\\', ':'].contains(&c);
        if study.name.is_empty() || study.name.starts_with('.') || !study.name.chars().all(is_plain)
        {
            let problem = format!(
                "{:?} is not a valid name of a directory of results",
                study.name
            );
            return Err(document.error("name", problem).into());
        }
        if study.combinations().saturating_mul(study.seeds.len()) > MOST_RUNS {
            let problem = format!("axes and seeds make more than {MOST_RUNS} runs");
            return Err(document.error("axis", problem).into());
        }
        Ok(study)
    }

    /// The axis to the right of figures: the first numeric one.
    pub(crate) fn x_axis(&self) -> Option<usize> {
        self.declared.iter().position(Axis::is_numeric)
    }

    /// The axis of curves: the first other one.
    pub(crate) fn curves_axis(&self) -> Option<usize> {
        let x = self.x_axis();
        (0..self.declared.len()).find(|&axis| Some(axis) != x)
    }

    /// Number of combinations of the axes' points.
    pub(crate) fn combinations(&self) -> usize {
        let lengths = self.axes.iter().map(|axis| axis.points.len());
        lengths.fold(1, usize::saturating_mul)
    }

    /// The number of a combination; the last axis varies fastest.
    pub(crate) fn combination(&self, points: &[usize]) -> usize {
        let axes = self.axes.iter().zip(points);
        axes.fold(0, |number, (axis, point)| {
            number * axis.points.len() + point
        })
    }

    /// The points of a combination, one for each axis.
    pub(crate) fn points(&self, combination: usize) -> Vec<usize> {
        let mut rest = combination;
        let mut points = Vec::new();
        for axis in self.axes.iter().rev() {
            points.push(rest % axis.points.len());
            rest /= axis.points.len();
        }
        points.reverse();
        points
    }

    /// Every run: combination by combination, each with all seeds.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, Failure> {
        let mut jobs = Vec::new();
        // Once, so that all runs are of one scenario even if the file changes meanwhile.
        let text = self.scenario.text()?;
        for combination in 0..self.combinations() {
            for seed in &self.seeds {
                let settings = self.settings(combination, *seed);
                let scenario = self.scenario.read(&text, &settings, &self.registry)?;
                jobs.push(Job::new(scenario, self.config.keep)?);
            }
        }
        self.refuse_unprobed(&jobs)?;
        Ok(jobs)
    }

    /// Refuses a metric of a probe that no run has: it would never have a value.
    fn refuse_unprobed(&self, jobs: &[Job]) -> Result<(), Diagnostic> {
        let config = &self.config;
        let of_panels = config.panels().flat_map(|(_, panel)| panel.metrics());
        let of_claims = config.claim.iter().map(|claim| &claim.metric);
        let compared = config
            .claim
            .iter()
            .filter_map(|claim| claim.to_metric.as_ref());
        let all = config.metrics.iter().chain(of_panels).chain(of_claims);
        for NamedMetric { name, metric } in all.chain(compared) {
            let has = |job: &Job| metric.is_probed(&job.scenario.config.probes);
            if !jobs.is_empty() && !jobs.iter().any(has) {
                let (study, needs) = (&self.name, metric.needs());
                let problem = format!("no run of {study} has {name}, which needs {needs}");
                return Err(Diagnostic::new(problem));
            }
        }
        Ok(())
    }

    /// Tries every point of every axis, without running it, so that mistakes come to light before
    /// any work.
    pub(crate) fn check(&self, jobs: &[Job]) -> Result<(), Failure> {
        for (index, axis) in self.axes.iter().enumerate() {
            for point in 0..axis.points.len() {
                let mut points = vec![0; self.axes.len()];
                points[index] = point;
                let job = &jobs[self.combination(&points) * self.seeds.len()];
                job.scenario
                    .build()
                    .map_err(|error| Self::at_point(error, axis, point))?;
            }
        }
        Ok(())
    }

    /// An error of a scenario, with the point of the study that it is about.
    fn at_point(error: Diagnostic, axis: &Axis, point: usize) -> Diagnostic {
        if axis.points.len() < 2 {
            return error;
        }
        let (label, name) = (&axis.points[point].label, &axis.name);
        error.about(&format!("point {label:?} of axis {name}"))
    }

    /// In the order in which they are applied: a later one wins.
    fn settings(&self, combination: usize, seed: u64) -> Vec<Setting> {
        let points = self.points(combination);
        let axes = self.axes.iter().zip(points);
        let varied = axes.flat_map(|(axis, point)| {
            let Point { set, place, .. } = &axis.points[point];
            set.iter().map(move |assignment| Setting {
                shown: format!("{place}: {assignment}"),
                assignment: assignment.clone(),
            })
        });
        let seed = Setting::new(format!("seed={seed}"));
        let points = self.axes.iter().zip(self.points(combination));
        let ids: Vec<&String> = points.map(|(axis, point)| &axis.points[point].id).collect();
        let is_here = |point: &Option<String>| point.as_ref().is_none_or(|id| ids.contains(&id));
        let on_top = self.on_top.iter().filter(|(point, _)| is_here(point));
        let own = self.set.iter().cloned().chain(varied).chain([seed]);
        own.chain(on_top.map(|(_, setting)| setting.clone()))
            .collect()
    }
}

impl ScenarioFile {
    fn text(&self) -> Result<Cow<'_, str>, Diagnostic> {
        match self {
            Self::Path(path) => read_text(path),
            Self::Text { text, .. } => Ok(Cow::Borrowed(text)),
        }
    }

    /// The scenario of its text with settings on top.
    fn read(
        &self,
        text: &str,
        settings: &[Setting],
        registry: &Registry,
    ) -> Result<Scenario, Failure> {
        match self {
            Self::Path(path) => Ok(Scenario::of_file((path, text), settings, registry)?),
            Self::Text { path, .. } => {
                let base = Path::new("");
                Ok(Scenario::parse_in(path, text, settings, base, registry)?)
            }
        }
    }
}

/// The axes of a study with all of their points.
fn axes_of(document: &Document<StudyConfig>) -> Result<Vec<Axis>, Diagnostic> {
    let mut axes: Vec<Axis> = Vec::new();
    for (index, axis) in document.content.axis.iter().enumerate() {
        let at = format!("axis.{index}");
        let mut built = Axis::new(axis)
            .map_err(|error| document.error(&format!("{at}.{}", error.key), error.problem))?;
        if axes.iter().any(|earlier| earlier.name == built.name) {
            let problem = format!("two axes are called {:?}; give one a name", built.name);
            return Err(document.error(&at, problem));
        }
        for (number, point) in built.points.iter_mut().enumerate() {
            let of_values = axis.point.is_empty();
            let key = if of_values {
                "values".to_owned()
            } else {
                format!("point.{number}")
            };
            point.place = document.place(&format!("{at}.{key}"));
        }
        axes.push(built);
    }
    Ok(axes)
}

/// The scenario that a study names: relative to its file, and for a study that is built in one that
/// is built in too.
fn scenario_of(study: &Path, named: &Path) -> PathBuf {
    match Example::at(study) {
        Some(_) => named
            .with_extension("")
            .file_name()
            .unwrap_or_default()
            .into(),
        None => study.parent().unwrap_or(Path::new("")).join(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_and_points_are_inverse() {
        let scenario = Path::new("x.toml");
        let vary = [
            "a.x=1,2,3".to_owned(),
            "b.x=p,q".to_owned(),
            "c=7".to_owned(),
        ];
        let on_top = OnTop {
            seeds: Some(1),
            ..OnTop::default()
        };
        let study = Study::vary(scenario, &vary, &on_top, &[]).unwrap();
        assert_eq!(study.axes[1].name, "b.x");
        assert_eq!(study.combinations(), 6);
        for combination in 0..6 {
            let points = study.points(combination);
            assert_eq!(study.combination(&points), combination);
        }
        assert_eq!(study.points(3), [1, 1, 0]);
        let settings = study.settings(3, 9);
        let settings: Vec<&str> = settings.iter().map(|one| &*one.assignment).collect();
        assert_eq!(settings, ["a.x=2", "b.x=\"q\"", "c=7", "seed=9"]);
    }

    #[test]
    fn a_metric_of_a_probe_that_no_run_has_is_refused() {
        let jobs = |set: &str| {
            let on_top = OnTop {
                set: vec![Setting::new(set.to_owned())],
                seeds: Some(1),
                ..OnTop::default()
            };
            let vary = ["workload.poisson.load=0.3,0.5".to_owned()];
            let metrics = ["received".to_owned()];
            let study = Study::vary(Path::new("quickstart"), &vary, &on_top, &metrics).unwrap();
            study.jobs().map(|jobs| jobs.len())
        };
        let error = jobs("name=without").unwrap_err().to_string();
        assert!(
            error.contains("received, which needs probes.goodput"),
            "{error}"
        );
        assert_eq!(jobs("probes.goodput={ interval = \"1ms\" }").unwrap(), 2);
    }
}
