//! Results that are committed with the project: `repro/<paper>/results/<size>.csv`.
//!
//! A file has the metrics of a paper's figures at one size, by variant, x and seed. A line for each
//! figure says which command gave them, with which build, on which day and with which settings.
//! Verdicts, tables and pages are made from them without a run. `live.csv` has each figure twice:
//! simulated at the size of the live runs, and live.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use shallows_results::directory::hexadecimal;
use shallows_results::read_text;
use shallows_results::report::{LiveRuns, Paper, Size};
use shallows_run::BUILD_ID;

use super::LIVE;
use super::plan::Plan;
use super::worlds::Live;
use crate::artifact::date;
use crate::metric::Metric;
use crate::study::results::{RecordedValue, Results};
use crate::study::verdict::Bounded;

const COLUMNS: &str = "figure,variant,x,seed,metric,value";

/// The results of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recorded {
    pub(super) figure: String,
    pub(super) command: String,
    pub(super) build: String,
    pub(super) date: String,
    /// A hash of the scenario and its settings.
    pub(super) settings: String,
    /// The live runs, if the results are theirs.
    pub(super) live: Option<LiveRuns>,
    pub(super) rows: Vec<Row>,
}

/// A metric of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) variant: String,
    pub(super) x: f64,
    pub(super) seed: u64,
    name: String,
    pub(super) metric: Metric,
    pub(super) value: Option<Bounded>,
}

/// The file of a paper's results at a size, below the directory of all papers.
pub(super) fn file(paper: &str, size: Size) -> String {
    let size = match size {
        Size::Quick => "quick",
        Size::Full => "full",
        Size::Live => "live",
    };
    format!("{paper}/results/{size}.csv")
}

impl Recorded {
    /// The same of live runs.
    #[cfg(live)]
    pub(super) fn of_live(paper: &Paper, plan: &Plan, live: &Live<'_>) -> anyhow::Result<Self> {
        let recorded = Self::of(paper, plan, &live.results)?;
        Ok(Self {
            figure: recorded.figure + LIVE,
            build: shallows_run::LIVE_BUILD_ID.to_owned(),
            live: Some(live.facts.clone()),
            ..recorded
        })
    }

    /// The metrics that claims and panels of a figure are about.
    pub(super) fn of(paper: &Paper, plan: &Plan, results: &Results<'_>) -> anyhow::Result<Self> {
        let mut rows = Vec::new();
        for (name, metric) in metrics(plan) {
            for (variant, x, combination) in places(plan) {
                let values = results.bounded(&metric, combination);
                rows.extend(
                    plan.study
                        .seeds
                        .iter()
                        .zip(values)
                        .map(|(&seed, value)| Row {
                            variant: variant.clone(),
                            x,
                            seed,
                            name: name.clone(),
                            metric: metric.clone(),
                            value,
                        }),
                );
            }
        }
        let size = match plan.size {
            Size::Quick => " --quick",
            Size::Full => "",
            Size::Live => " --live",
        };
        let (id, options) = (&plan.id, plan.options());
        Ok(Self {
            figure: id.clone(),
            command: format!("shallows repro {}/{id}{size}{options}", paper.id),
            build: BUILD_ID.to_owned(),
            date: date(SystemTime::now()),
            settings: settings_hash(plan)?,
            live: None,
            rows,
        })
    }

    /// The figure's name.
    pub(super) fn id(&self) -> &str {
        match self.live {
            Some(_) => self.figure.strip_suffix(LIVE).unwrap_or(&self.figure),
            None => &self.figure,
        }
    }

    /// The results of live runs.
    pub(super) fn into_live(mut self, plan: &Plan) -> Option<Live<'_>> {
        let facts = self.live.take()?;
        let results = Results::recorded(&plan.study, self.values(plan));
        Some(Live { facts, results })
    }

    /// The values of x that were run.
    pub(super) fn xs(&self) -> Vec<f64> {
        let mut xs: Vec<f64> = self.rows.iter().map(|row| row.x).collect();
        xs.sort_unstable_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    pub(super) fn seeds(&self) -> u64 {
        self.rows.iter().map(|row| row.seed).max().unwrap_or(1)
    }

    /// The variants in the order of the figure.
    #[cfg(test)]
    pub(super) fn variants(&self) -> Vec<&str> {
        let mut variants: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !variants.contains(&&*row.variant) {
                variants.push(&row.variant);
            }
        }
        variants
    }

    /// The names of the metrics with each x at which there is a value.
    #[cfg(test)]
    pub(super) fn metrics(&self) -> Vec<(String, f64)> {
        let mut metrics: Vec<(String, f64)> = Vec::new();
        for row in self.rows.iter().filter(|row| row.value.is_some()) {
            let metric = (row.name.clone(), row.x);
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        metrics.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        metrics
    }

    /// A metric, mean over the seeds.
    #[cfg(test)]
    pub(super) fn mean(&self, name: &str, x: f64, variant: &str) -> Option<f64> {
        let is = |row: &&Row| row.name == name && row.x == x && row.variant == variant;
        let values = self.rows.iter().filter(is);
        let values: Vec<f64> = values.filter_map(|row| Some(row.value?.least)).collect();
        let count = values.len() as f64;
        (count > 0.0).then(|| values.iter().sum::<f64>() / count)
    }

    /// The values by the combinations of a study.
    pub(super) fn values(self, plan: &Plan) -> Vec<RecordedValue> {
        let places = places(plan);
        let value = |row: Row| {
            let place = places
                .iter()
                .find(|(variant, x, _)| *variant == row.variant && *x == row.x);
            Some(RecordedValue {
                combination: place?.2,
                seed: row.seed,
                metric: row.metric,
                value: row.value,
            })
        };
        self.rows.into_iter().filter_map(value).collect()
    }
}

/// The combinations of a figure as its file of results has them: by variant, then x.
fn places(plan: &Plan) -> Vec<(String, f64, usize)> {
    let study = &plan.study;
    let (x, curves) = (study.x_axis(), study.curves_axis());
    let points = |axis: Option<usize>| axis.map_or(1, |axis| study.axes[axis].points.len());
    let xs = plan.xs();
    let mut places = Vec::new();
    for curve in 0..points(curves) {
        for (at, &number) in xs.iter().enumerate() {
            let mut of = vec![0; study.axes.len()];
            for (axis, point) in [(x, at), (curves, curve)] {
                if let Some(axis) = axis {
                    of[axis] = point;
                }
            }
            let variant = curves.map(|axis| study.axes[axis].points[curve].id.clone());
            let variant = variant.unwrap_or_default();
            places.push((variant, number, study.combination(&of)));
        }
    }
    places
}

/// A hash of all that decides the runs of a figure but the code: comments and claims do not.
pub(super) fn settings_hash(plan: &Plan) -> anyhow::Result<String> {
    let scenario: toml::Table = plan.scenario.parse()?;
    let config = plan.config();
    let size = config.size(plan.size).into_iter();
    let common = config.set.iter().chain(size.flat_map(|size| &size.set));
    let varied = plan.study.declared.iter().flat_map(|axis| &axis.written);
    let mut hash = Sha256::new();
    hash.update(scenario.to_string());
    for setting in common.chain(varied) {
        hash.update(setting);
        hash.update([0]);
    }
    // Where hashes of committed results have a table of figures that is no more.
    hash.update("None");
    Ok(hexadecimal(&hash.finalize()[..4]))
}

/// The metrics of a figure's claims and panels, by name.
fn metrics(plan: &Plan) -> BTreeMap<String, Metric> {
    let config = plan.config();
    let of_panels = config.panels().flat_map(|(_, panel)| panel.metrics());
    let of_claims = config.claim.iter();
    let of_claims =
        of_claims.flat_map(|claim| std::iter::once(&claim.metric).chain(&claim.to_metric));
    let all = of_panels.chain(of_claims);
    all.map(|metric| (metric.name.clone(), metric.metric.clone()))
        .collect()
}

/// Writes figures into the file of their paper and size, in place of what it has of them.
pub(super) fn write(
    directory: &Path,
    paper: &Paper,
    size: Size,
    new: Vec<Recorded>,
    order: &[String],
) -> anyhow::Result<PathBuf> {
    let path = directory.join(file(&paper.id, size));
    let failed = || format!("cannot write {}", path.display());
    let mut figures = match read_text(&path) {
        Ok(text) => parse(&text).with_context(|| path.display().to_string())?,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    figures.retain(|before| !new.iter().any(|of| of.figure == before.figure));
    figures.extend(new);
    let place = |of: &Recorded| order.iter().position(|figure| figure == of.id());
    figures.sort_by_key(|of| (place(of), of.live.is_some()));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(failed)?;
    }
    shallows_results::write_text(&path, &show(&figures)).with_context(failed)?;
    Ok(path)
}

fn show(figures: &[Recorded]) -> String {
    let mut text = String::new();
    for of in figures {
        let Recorded {
            figure,
            command,
            build,
            date,
            settings,
            live,
            rows: _,
        } = of;
        let _ = write!(
            text,
            "# {figure} | {command} | build {build} | {date} | settings {settings}"
        );
        if let Some(live) = live {
            let steal = live.steal.unwrap_or_default();
            let _ = write!(
                text,
                " | live at {}, {} runs, late {}, p99 {} us, stolen {steal}",
                live.scale, live.runs, live.late_share, live.late_p99_us
            );
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{COLUMNS}");
    for of in figures {
        for row in &of.rows {
            let value = match row.value {
                None => String::new(),
                Some(value) if value.is_exact() => value.least.to_string(),
                Some(value) => format!(">={}", value.least),
            };
            let (figure, Row { variant, x, .. }) = (&of.figure, row);
            let (seed, name) = (row.seed, &row.name);
            let _ = writeln!(text, "{figure},{variant},{x},{seed},{name},{value}");
        }
    }
    text
}

/// The figures of a file.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<Recorded>> {
    let mut figures: Vec<Recorded> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line == COLUMNS {
            continue;
        }
        let parsed = match line.strip_prefix("# ") {
            Some(head) => parse_head(head).map(|figure| figures.push(figure)),
            None => parse_row(line).and_then(|(figure, row)| {
                let of = figures.iter_mut().find(|of| of.figure == figure)?;
                of.rows.push(row);
                Some(())
            }),
        };
        if parsed.is_none() {
            bail!("line {number}: {line:?} is not a line of recorded results");
        }
    }
    Ok(figures)
}

fn parse_head(head: &str) -> Option<Recorded> {
    let mut parts = head.split(" | ");
    let mut next = |prefix| parts.next()?.strip_prefix(prefix).map(str::to_owned);
    let recorded = Recorded {
        figure: next("")?,
        command: next("")?,
        build: next("build ")?,
        date: next("")?,
        settings: next("settings ")?,
        live: None,
        rows: Vec::new(),
    };
    let live = match parts.next() {
        None => None,
        Some(live) => Some(parse_live(live.strip_prefix("live at ")?)?),
    };
    Some(Recorded { live, ..recorded })
}

fn parse_live(text: &str) -> Option<LiveRuns> {
    let mut parts = text.split(", ");
    let mut next = |before, after| parts.next()?.strip_prefix(before)?.strip_suffix(after);
    Some(LiveRuns {
        scale: next("", "")?.parse().ok()?,
        runs: next("", " runs")?.parse().ok()?,
        late_share: next("late ", "")?.parse().ok()?,
        late_p99_us: next("p99 ", " us")?.parse().ok()?,
        steal: Some(next("stolen ", "")?.parse().ok()?),
    })
}

fn parse_row(line: &str) -> Option<(&str, Row)> {
    let mut cells = line.split(',');
    let (figure, variant, x, seed) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let (name, value) = (cells.next()?, cells.next()?);
    let value = match value.strip_prefix(">=") {
        Some(least) => Some(Bounded::at_least(least.parse().ok()?)),
        None if value.is_empty() => None,
        None => Some(Bounded::exact(value.parse().ok()?)),
    };
    let row = Row {
        variant: variant.to_owned(),
        x: x.parse().ok()?,
        seed: seed.parse().ok()?,
        name: name.to_owned(),
        metric: Metric::try_from(name.to_owned()).ok()?,
        value,
    };
    cells.next().is_none().then_some((figure, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# fig9 | shallows repro mq-ecn/fig9 --seeds 2 | build 0123456789abcdef | 2026-11-18 | settings 89abcdef
# fig13 | shallows repro mq-ecn/fig13 | build 0123456789abcdef | 2026-11-18 | settings 00000000
# fig13-live | shallows repro mq-ecn/fig13 --live | build fedcba9876543210 | 2026-11-18 | settings 00000000 | live at 0.2, 4 runs, late 0.0075, p99 40 us, stolen 0.02
figure,variant,x,seed,metric,value
fig9,mq-ecn,0.1,1,all.mean,1.2345678901234567
fig9,mq-ecn,0.1,2,all.mean,
fig9,mq-ecn,0.5,1,fct.host.3,>=60
";

    #[test]
    fn a_file_survives_reading_and_writing() {
        let figures = parse(FILE).unwrap();
        assert_eq!(show(&figures), FILE);
        let fig9 = &figures[0];
        assert_eq!((fig9.xs(), fig9.seeds()), (vec![0.1, 0.5], 2));
        assert_eq!(fig9.rows[1].value, None);
        assert!(!fig9.rows[2].value.unwrap().is_exact());
        assert!(figures[1].rows.is_empty());
        assert_eq!((figures[1].id(), figures[2].id()), ("fig13", "fig13"));
        assert_eq!(figures[2].live.as_ref().unwrap().runs, 4);
    }

    #[test]
    fn a_line_that_is_none_is_refused_with_its_number() {
        for line in ["fig7,a,0.1,1,all.mean,1", "fig9,a,0.1,1,no.metric,1", "x"] {
            let error = parse(&format!("{FILE}{line}\n")).unwrap_err();
            assert!(error.to_string().starts_with("line 8:"), "{error}");
        }
    }
}
