//! Two runs or two sweeps side by side: what differs in the scenario, and what in the results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use shallows_results::compare::compare;
use shallows_results::directory::hexadecimal;
use shallows_results::frame::{Cells, Frame};
use shallows_results::read_text;
use shallows_results::summary::Summary;

use crate::study::results::{mean, ratio};
use crate::table::{aligned, difference, short};

/// Directory of a run with copies of the files that its scenario reads.
const INPUTS: &str = "inputs";

/// Describes how the results in the directory `second` differ from those in `first`: those of two
/// runs, or of two sweeps.
pub fn diff(first: &Path, second: &Path) -> anyhow::Result<String> {
    match [first, second].map(|of| {
        (
            of.join("summary.json").is_file(),
            of.join("runs.parquet").is_file(),
        )
    }) {
        [(true, _), (true, _)] => runs(first, second),
        [(_, true), (_, true)] => sweeps(first, second),
        kinds => {
            let is_nothing = |&(run, sweep): &(bool, bool)| !run && !sweep;
            for (kind, path) in kinds.iter().zip([first, second]) {
                if is_nothing(kind) {
                    let path = path.display();
                    bail!("{path} has no results of a run or a sweep (summary.json, runs.parquet)");
                }
            }
            bail!("one is a run and the other a sweep; compare two of a kind");
        }
    }
}

fn runs(first: &Path, second: &Path) -> anyhow::Result<String> {
    let scenario = |of: &Path| {
        let path = of.join("scenario.toml");
        read_text(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let keys = |of: &Path| {
        let mut keys = Keys::new();
        add_toml("", &scenario(of)?, &mut keys)?;
        add_files(of, Path::new(INPUTS), &mut keys)?;
        anyhow::Ok(keys)
    };
    let mut text = differing(&keys(first)?, &keys(second)?);
    let summary = |of: &Path| Summary::read_json(&of.join("summary.json"));
    let mut rows = vec![
        ["result", "first", "second", "difference"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for one in compare(&summary(first)?, &summary(second)?) {
        if one.relative == Some(0.0) {
            continue;
        }
        let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let relative = one
            .relative
            .map(|relative| format!("{:+.1}%", 100.0 * relative));
        let name = format!("{}.{}", one.class, one.metric);
        rows.push(vec![
            name,
            value(one.first),
            value(one.second),
            relative.unwrap_or_default(),
        ]);
    }
    match rows.len() {
        1 => text.push_str("results: equal\n"),
        _ => text.push_str(&aligned(&rows, 1)),
    }
    Ok(text)
}

/// The keys that have different values, or a line that none has.
fn differing(first: &Keys, second: &Keys) -> String {
    let mut rows = vec![["key", "first", "second"].map(str::to_owned).to_vec()];
    let all: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    for key in all {
        let [one, other] = [first, second].map(|keys| keys.get(key));
        if one != other {
            let shown = |value: Option<&String>| value.map_or("-", |value| value).to_owned();
            rows.push(vec![key.clone(), shown(one), shown(other)]);
        }
    }
    match rows.len() {
        1 => "scenario: equal\n".to_owned(),
        _ => aligned(&rows, 3) + "\n",
    }
}

/// Values by dotted keys.
type Keys = BTreeMap<String, String>;

/// Adds the keys of a TOML text.
fn add_toml(prefix: &str, text: &str, keys: &mut Keys) -> anyhow::Result<()> {
    let table: toml::Table = toml::from_str(text)?;
    flatten(prefix, &toml::Value::Table(table), keys);
    Ok(())
}

/// Adds the hashes of the files in a directory, by their paths within `run`: two scenarios may name
/// their inputs alike and have others.
fn add_files(run: &Path, within: &Path, keys: &mut Keys) -> anyhow::Result<()> {
    let place = run.join(within);
    if !place.is_dir() {
        return Ok(());
    }
    let cannot = || format!("cannot read {}", place.display());
    for entry in fs::read_dir(&place).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let within = within.join(entry.file_name());
        // A link is not followed into a directory, nor is a device read.
        if entry.file_type().with_context(cannot)?.is_dir() {
            add_files(run, &within, keys)?;
        } else {
            let path = entry.path();
            let text = read_text(&path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            let hash = hexadecimal(&Sha256::digest(&text)[..5]);
            keys.insert(within.display().to_string(), format!("sha256 {hash}..."));
        }
    }
    Ok(())
}

fn flatten(path: &str, value: &toml::Value, flat: &mut Keys) {
    let inner = |name: &str| match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    };
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten(&inner(key), value, flat);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&inner(&index.to_string()), item, flat);
            }
        }
        plain => {
            flat.insert(path.to_owned(), plain.to_string());
        }
    }
}

/// The settings and the build of a sweep.
struct About {
    keys: Keys,
    build: String,
}

impl About {
    fn read(sweep: &Path) -> anyhow::Result<Self> {
        let path = sweep.join("study.json");
        let text = read_text(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let about: serde_json::Value = serde_json::from_str(&text)?;
        let text = |key: &str| about[key].as_str().unwrap_or_default();
        let mut keys = Keys::new();
        for key in ["scenario", "study"] {
            add_toml(key, text(key), &mut keys)?;
        }
        // A later setting of a command wins.
        for one in about["set"].as_array().into_iter().flatten() {
            let one = one.as_str().unwrap_or_default();
            let (key, value) = one.split_once('=').unwrap_or((one, ""));
            keys.insert(format!("set.{}", key.trim()), value.trim().to_owned());
        }
        let size = about["size"].as_str().unwrap_or("full");
        keys.insert("size".to_owned(), size.to_owned());
        let build = text("build").to_owned();
        Ok(Self { keys, build })
    }
}

fn sweeps(first: &Path, second: &Path) -> anyhow::Result<String> {
    let (about, of_second) = (About::read(first)?, About::read(second)?);
    let mut text = differing(&about.keys, &of_second.keys);
    if about.build != of_second.build {
        let _ = writeln!(
            text,
            "they were run by two builds: {} and {}\n",
            about.build, of_second.build
        );
    }
    let [one, other] = [first, second].map(Sweep::open);
    let (one, other) = (one?, other?);
    let axes = common_axes(&one, &other)?;
    if axes.is_empty() && one.axes.len() + other.axes.len() > 0 {
        text.push_str("the sweeps have no axis in common; each has one point\n\n");
    }
    let metrics: Vec<&String> = one
        .metrics
        .iter()
        .filter(|of| other.metrics.contains(of))
        .collect();
    let (one, other) = (one.by_place(&axes), other.by_place(&axes));
    let mut head: Vec<String> = axes.iter().map(|axis| (*axis).clone()).collect();
    head.extend(["metric", "first", "second", "difference"].map(str::to_owned));
    let mut rows = vec![head];
    for (place, runs) in &one {
        let Some(others) = other.get(place) else {
            continue;
        };
        for metric in &metrics {
            let Some(compared) = compared(runs, others, metric) else {
                continue;
            };
            let mut row = place.clone();
            row.push((*metric).clone());
            row.extend(compared);
            rows.push(row);
        }
    }
    if rows.len() == 1 {
        text.push_str("the sweeps have no points and metrics in common\n");
    } else {
        text.push_str(&aligned(&rows, axes.len() + 1));
        text.push_str("\n±: half of the 95% confidence interval of the difference, seed by seed\n");
    }
    Ok(text)
}

/// The axes that both sweeps have. Another one with several values would leave open which of them is
/// compared.
fn common_axes<'s>(first: &'s Sweep, second: &Sweep) -> anyhow::Result<Vec<&'s String>> {
    for (sweep, other, which) in [(first, second, "first"), (second, first, "second")] {
        for axis in sweep.axes.iter().filter(|axis| !other.axes.contains(axis)) {
            let values: BTreeSet<String> = (0..sweep.frame.rows())
                .map(|row| sweep.cell(axis, row))
                .collect();
            if values.len() > 1 {
                let values: Vec<String> = values.into_iter().collect();
                bail!(
                    "only the {which} sweep has the axis {axis}, with several values ({}); run it \
                     again with one of them, or the other sweep with this axis",
                    values.join(", ")
                );
            }
        }
    }
    let axes = first.axes.iter().filter(|axis| second.axes.contains(axis));
    Ok(axes.collect())
}

/// Means of a metric over the seeds that both have, and their difference.
fn compared(runs: &Runs, others: &Runs, metric: &str) -> Option<[String; 3]> {
    // Equal seeds have equal flows, where the workload is the same.
    let value = |runs: &Runs, seed: &i64| runs.get(seed)?.get(metric).copied();
    let pairs = runs
        .keys()
        .filter_map(|seed| Some((Some(value(runs, seed)?), Some(value(others, seed)?))));
    let (before, after): (Vec<_>, Vec<_>) = pairs.unzip();
    let (one, other) = (mean(&before)?, mean(&after)?);
    let ratio = ratio(&after, &before).map_or_else(String::new, difference);
    Some([short(one.mean), short(other.mean), ratio])
}

/// Metrics of the runs at one place, by seed.
type Runs = BTreeMap<i64, BTreeMap<String, f64>>;

struct Sweep {
    frame: Frame,
    axes: Vec<String>,
    metrics: Vec<String>,
}

impl Sweep {
    fn open(directory: &Path) -> anyhow::Result<Self> {
        let frame = Frame::read(&directory.join("runs.parquet"))?;
        let points = Frame::read(&directory.join("points.parquet"))?;
        let names = |frame: &Frame| {
            frame
                .columns()
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        let axes = names(&frame)
            .into_iter()
            .take_while(|name| name != "seed")
            .collect();
        let mut metrics = match points.column("metric") {
            Some(Cells::Texts(metrics)) => metrics.clone(),
            _ => Vec::new(),
        };
        let mut seen = BTreeSet::new();
        metrics.retain(|metric| seen.insert(metric.clone()));
        Ok(Self {
            frame,
            axes,
            metrics,
        })
    }

    /// A cell as text; empty if there is none.
    fn cell(&self, column: &str, row: usize) -> String {
        match self.frame.column(column) {
            Some(Cells::Texts(values)) => values[row].clone(),
            Some(Cells::Integers(values)) => values[row].to_string(),
            Some(Cells::Reals(values)) => {
                values[row].map_or_else(String::new, |value| value.to_string())
            }
            None => String::new(),
        }
    }

    /// The runs by their points on some axes, in the order of the first sweep's texts.
    fn by_place(&self, axes: &[&String]) -> BTreeMap<Vec<String>, Runs> {
        let mut places: BTreeMap<Vec<String>, Runs> = BTreeMap::new();
        for row in 0..self.frame.rows() {
            let place = axes.iter().map(|axis| self.cell(axis, row)).collect();
            let seed = match self.frame.column("seed") {
                Some(Cells::Integers(seeds)) => seeds[row],
                _ => 0,
            };
            let value = |metric: &String| match self.frame.column(metric)? {
                Cells::Reals(values) => values[row],
                Cells::Integers(_) | Cells::Texts(_) => None,
            };
            let metrics = self.metrics.iter();
            let metrics = metrics.filter_map(|metric| Some((metric.clone(), value(metric)?)));
            places
                .entry(place)
                .or_default()
                .insert(seed, metrics.collect());
        }
        places
    }
}
