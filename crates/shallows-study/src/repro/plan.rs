//! From a figure to its runs.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use shallows_core::registry::Registry;
use shallows_core::units::Time;
use shallows_results::report::{Paper, Size};

use super::library::Library;
use super::spec::{FigureSpec, Variant};
use crate::executor::Job;
use crate::measured::Keep;
use shallows_run::Failure;
use shallows_run::scenario::{Scenario, Setting};

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

/// A figure and its runs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) id: String,
    pub(super) spec: FigureSpec,
    /// Text of its scenario.
    pub(super) scenario: String,
    pub(super) size: Size,
    pub(super) xs: Vec<f64>,
    pub(super) seeds: u64,
    /// The user's settings.
    pub(super) set: Vec<String>,
    /// By variant, then x, then seed.
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
        plan.jobs = plan.jobs(paper, wanted)?;
        Ok(plan)
    }

    /// A figure whose runs were made before.
    pub(super) fn without_runs(
        library: &Library,
        paper: &Paper,
        id: &str,
        wanted: &Wanted,
    ) -> Result<Self, Failure> {
        let mut spec = library.figure(&paper.id, id)?;
        check(&spec).with_context(|| format!("{}/{id}.toml", paper.id))?;
        let file = format!("{}/{}", paper.id, spec.scenario);
        let text = library.text(&file)?;
        let size = wanted.size;
        let xs = chosen_xs(id, &spec, wanted)?;
        let seeds = wanted.seeds.unwrap_or(spec.size(size).seeds);
        if let Some(live) = spec.live.as_ref().filter(|_| size == Size::Live) {
            spec.variant.retain(|of| !live.without.contains(&of.id));
        }
        Ok(Self {
            id: id.to_owned(),
            spec,
            scenario: text,
            size,
            xs,
            seeds,
            set: wanted.set.clone(),
            jobs: Vec::new(),
        })
    }

    fn jobs(&self, paper: &Paper, wanted: &Wanted) -> Result<Vec<Job>, Failure> {
        let (spec, size) = (&self.spec, self.size);
        let file = format!("{}/{}", paper.id, spec.scenario);
        let mut jobs = Vec::new();
        for variant in &spec.variant {
            for &x in &self.xs {
                for seed in 1..=self.seeds {
                    let mut settings = settings(spec, size, x, &variant.set, seed);
                    let on_top = wanted
                        .set
                        .iter()
                        .filter_map(|set| on_top(set, spec, variant));
                    settings.extend(on_top);
                    let (path, base) = (Path::new(&file), Path::new(""));
                    let (text, registry) = (&self.scenario, &wanted.registry);
                    let scenario = Scenario::parse_in(path, text, &settings, base, registry)?;
                    jobs.push(Job::new(scenario, spec.goodput, Keep::All)?);
                }
            }
        }
        Ok(jobs)
    }

    /// Number of the figure's runs.
    pub(super) fn runs(&self) -> usize {
        self.spec.variant.len() * self.xs.len() * self.seeds as usize
    }

    /// Values of x that have runs, if not all of the size.
    pub(super) fn only_at(&self) -> Option<String> {
        let sweep = self.spec.x.as_ref()?;
        let all = self.spec.xs(self.size);
        let shown = |xs: &[f64]| {
            let scale = if sweep.percent { 100.0 } else { 1.0 };
            // 0.7 is not exactly 70 hundredths.
            let shown = xs.iter().map(|x| (x * scale * 1e9).round() / 1e9);
            let shown: Vec<String> = shown.map(|x| x.to_string()).collect();
            shown.join(", ")
        };
        let (ours, all) = (shown(&self.xs), shown(&all));
        (ours != all).then(|| format!("at {} {ours} (the figure has {all})", sweep.label))
    }

    /// Options of the command for these runs, besides figure and size.
    pub(super) fn options(&self) -> String {
        let mut options = String::new();
        if self.only_at().is_some() {
            let at: Vec<String> = self.xs.iter().map(f64::to_string).collect();
            let _ = write!(options, " --at {}", at.join(","));
        }
        if self.seeds != self.spec.size(self.size).seeds {
            let _ = write!(options, " --seeds {}", self.seeds);
        }
        for assignment in &self.set {
            let _ = write!(options, " --set '{assignment}'");
        }
        options
    }

    /// Settings of all runs on top of the scenario.
    pub(super) fn settings(&self) -> Vec<String> {
        let own = self.spec.size(self.size).set.iter();
        let all = self.spec.set.iter().chain(own).chain(&self.set);
        all.cloned().collect()
    }
}

/// The values of x of the size, or those of the figure that were asked for.
fn chosen_xs(id: &str, spec: &FigureSpec, wanted: &Wanted) -> anyhow::Result<Vec<f64>> {
    let Some(sweep) = spec.x.as_ref().filter(|_| !wanted.at.is_empty()) else {
        return Ok(spec.xs(wanted.size));
    };
    let mut xs = sweep.values.clone();
    xs.retain(|x| wanted.at.contains(x));
    let values: Vec<String> = sweep.values.iter().map(f64::to_string).collect();
    let values = values.join(", ");
    ensure!(
        !xs.is_empty(),
        "{id} has no point at these values of x; it has {values}"
    );
    Ok(xs)
}

/// A setting on top of the figure's, if it is for this variant: `mq-ecn:key=value` is for the one
/// with that id, and `key=value` for all.
fn on_top(set: &str, spec: &FigureSpec, variant: &Variant) -> Option<Setting> {
    let (id, assignment) = match set.split_once(':') {
        Some((id, rest)) if spec.variant.iter().any(|of| of.id == id) => (Some(id), rest),
        _ => (None, set),
    };
    id.is_none_or(|id| id == variant.id).then(|| Setting {
        shown: format!("--set {set}"),
        assignment: assignment.to_owned(),
    })
}

/// In the order in which they are applied: a later one wins.
fn settings(spec: &FigureSpec, size: Size, x: f64, variant: &[String], seed: u64) -> Vec<Setting> {
    let sweep = spec.x.iter().flat_map(|sweep| sweep.settings(x));
    let all = spec.set.iter().chain(&spec.size(size).set).cloned();
    let all = all.chain(sweep).chain(variant.iter().cloned());
    all.chain([format!("seed={seed}")])
        .map(|assignment| Setting {
            shown: assignment.clone(),
            assignment,
        })
        .collect()
}

/// Refuses names that lead nowhere.
fn check(spec: &FigureSpec) -> anyhow::Result<()> {
    if let Some(goodput) = &spec.goodput {
        ensure!(
            goodput.every > Time::ZERO,
            "goodput.every is zero; write a time such as \"10ms\""
        );
    }
    if let Some(sweep) = spec.x.as_ref().filter(|sweep| !sweep.each.is_empty()) {
        ensure!(
            sweep.each.len() == sweep.values.len(),
            "x.each has {} entries for {} values",
            sweep.each.len(),
            sweep.values.len()
        );
    }
    for size in [Size::Quick, Size::Full, Size::Live] {
        ensure!(
            spec.size(size).seeds > 0,
            "seeds is 0; a figure needs one at least"
        );
    }
    let known = |name: &str| spec.variant.iter().any(|variant| variant.id == name);
    let without = spec.live.iter().flat_map(|live| &live.without);
    for name in without {
        ensure!(known(name), "live.without: there is no variant {name:?}");
    }
    for panel in &spec.panel {
        for name in panel.variant.iter().chain(&panel.normalise) {
            ensure!(
                known(name),
                "panel {:?}: there is no variant {name:?}",
                panel.title
            );
        }
    }
    for claim in &spec.claim {
        for name in claim.of.names().iter().chain(&claim.to) {
            ensure!(
                known(name),
                "claim {:?}: there is no variant {name:?}",
                claim.id
            );
        }
    }
    Ok(())
}
