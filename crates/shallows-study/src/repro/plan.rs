//! From a figure to its runs.

use std::fmt::Write as _;
use std::path::PathBuf;

use shallows_core::registry::Registry;
use shallows_results::report::{Paper, Size};
use shallows_run::Failure;
use shallows_run::scenario::Setting;

use super::library::Library;
use crate::executor::Job;
use crate::study::axis::{Axis, Point};
use crate::study::config::{SizeConfig, StudyConfig, shown as shown_value};
use crate::study::{OnTop, ScenarioFile, Study};

/// The user's options besides the figure.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) size: Size,
    /// In place of the figure's number.
    pub(super) seeds: Option<u64>,
    /// Only these values of x.
    pub(super) at: Vec<f64>,
    /// Settings on top of the figure's.
    pub(super) set: Vec<String>,
    /// Schemes of other crates that settings may name.
    pub(super) registry: Registry,
}

impl Wanted {
    /// The whole figure at a size.
    pub(super) fn all(size: Size) -> Self {
        Self {
            size,
            seeds: None,
            at: Vec::new(),
            set: Vec::new(),
            registry: Registry::default(),
        }
    }
}

/// A figure and its runs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) id: String,
    pub(super) study: Study,
    /// Text of its scenario.
    pub(super) scenario: String,
    pub(super) size: Size,
    /// The user's settings.
    pub(super) set: Vec<String>,
    /// By combination, then seed.
    pub(super) jobs: Vec<Job>,
}

impl Plan {
    pub(super) fn new(
        library: &Library,
        paper: &Paper,
        id: &str,
        wanted: &Wanted,
    ) -> Result<Self, Failure> {
        let mut plan = Self::without_runs(library, paper, id, wanted)?;
        plan.jobs = plan.study.jobs()?;
        Ok(plan)
    }

    /// A figure whose runs were made before.
    pub(super) fn without_runs(
        library: &Library,
        paper: &Paper,
        id: &str,
        wanted: &Wanted,
    ) -> Result<Self, Failure> {
        let document = library.figure(&paper.id, id)?;
        let file = format!("{}/{}", paper.id, document.content.scenario.display());
        let text = library.text(&file)?;
        let setting = |set: &String| Setting {
            shown: format!("--set {set}"),
            assignment: set.clone(),
        };
        let on_top = OnTop {
            set: wanted.set.iter().map(setting).collect(),
            seeds: wanted.seeds,
            size: Some(wanted.size),
            at: wanted.at.clone(),
            registry: wanted.registry.clone(),
        };
        let scenario = ScenarioFile::Text {
            path: PathBuf::from(file),
            text: text.clone(),
        };
        Ok(Self {
            id: id.to_owned(),
            study: Study::new(&document, id, scenario, &on_top)?,
            scenario: text,
            size: wanted.size,
            set: wanted.set.clone(),
            jobs: Vec::new(),
        })
    }

    pub(super) fn config(&self) -> &StudyConfig {
        &self.study.config
    }

    fn size_config(&self) -> Option<&SizeConfig> {
        self.config().size(self.size)
    }

    /// Number of the figure's runs.
    pub(super) fn runs(&self) -> usize {
        self.study.combinations() * self.study.seeds.len()
    }

    /// The axis to the right with the points that are run, if the figure has one.
    pub(super) fn x(&self) -> Option<&Axis> {
        self.study.x_axis().map(|x| &self.study.axes[x])
    }

    /// The numbers of x that are run; zero for a figure without x.
    pub(super) fn xs(&self) -> Vec<f64> {
        self.x()
            .map_or_else(|| vec![0.0], |x| x.numbers().collect())
    }

    /// Values of x that have runs, if not all of the size.
    pub(super) fn only_at(&self) -> Option<String> {
        let ours = self.x()?;
        let all = &self.study.declared[self.study.x_axis()?];
        let of_size = self.size_config().and_then(|size| size.at.get(&ours.name));
        let is_of_size = |(index, _): &(usize, &Point)| {
            of_size.is_none_or(|values| {
                let mut points = values.iter().map(|value| all.find(&shown_value(value)));
                points.any(|point| point == Some(*index))
            })
        };
        let shown = |numbers: &mut dyn Iterator<Item = f64>| {
            let shown = numbers.map(|number| ours.shown(number).to_string());
            shown.collect::<Vec<_>>().join(", ")
        };
        let of_size = all.points.iter().enumerate().filter(is_of_size);
        let all = shown(&mut of_size.filter_map(|(_, point)| point.number));
        let here = shown(&mut ours.numbers());
        (here != all).then(|| format!("at {} {here} (the figure has {all})", ours.label))
    }

    /// Options of the command for these runs, besides figure and size.
    pub(super) fn options(&self) -> String {
        let mut options = String::new();
        if self.only_at().is_some() {
            let at: Vec<String> = self.xs().iter().map(f64::to_string).collect();
            let _ = write!(options, " --at {}", at.join(","));
        }
        let of_size = self.size_config().and_then(|size| size.seeds.clone());
        let of_size = of_size.unwrap_or_else(|| self.config().seeds.clone());
        if of_size.list(usize::MAX).as_ref() != Ok(&self.study.seeds) {
            let _ = write!(options, " --seeds {}", self.study.seeds.len());
        }
        for assignment in &self.set {
            let _ = write!(options, " --set '{assignment}'");
        }
        options
    }

    /// Settings of all runs on top of the scenario.
    pub(super) fn settings(&self) -> Vec<String> {
        let own = self.size_config().into_iter().flat_map(|size| &size.set);
        let all = self.config().set.iter().chain(own).chain(&self.set);
        all.cloned().collect()
    }

    /// The points that are compared, with their settings.
    pub(super) fn variants(&self) -> Vec<(String, Vec<String>)> {
        let curves = self.study.curves_axis();
        let points = curves.map_or(&[][..], |axis| &self.study.axes[axis].points);
        let variants = points.iter();
        variants
            .map(|point| (point.label.clone(), point.set.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_quick_table_with_texts_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let paper = directory.path().join("paper");
        fs::create_dir(&paper).unwrap();
        let about =
            "title = \"\"\nauthors = \"\"\nvenue = \"\"\nabout = \"\"\nfigures = [\"fig1\"]\n";
        fs::write(paper.join("paper.toml"), about).unwrap();
        fs::write(paper.join("star.toml"), "").unwrap();
        let figure = r#"
            title = ""
            scenario = "star.toml"
            [[axis]]
            key = "ports.switch.marker.scheme.per-queue.threshold"
            values = ["20pkts", "40pkts", "65pkts"]
            [quick]
            at.threshold = ["20pkts", "65pkts"]
        "#;
        fs::write(paper.join("fig1.toml"), figure).unwrap();
        let library = Library::new(Some(directory.path()));
        let (paper, _) = library.paper("paper").unwrap();
        let only_at = |at: Vec<f64>| {
            let wanted = Wanted {
                at,
                ..Wanted::all(Size::Quick)
            };
            let plan = Plan::without_runs(&library, &paper, "fig1", &wanted).unwrap();
            plan.only_at()
        };
        assert_eq!(only_at(Vec::new()), None);
        let one = only_at(vec![20.0]).unwrap();
        assert!(one.ends_with("20 (the figure has 20, 65)"), "{one}");
    }
}
