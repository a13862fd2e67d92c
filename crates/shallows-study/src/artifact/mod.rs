//! Bundles of results for an artifact evaluation: runs with their scenarios and inputs, hashes of
//! all files, metadata, and a check that makes every run again.

mod metadata;
mod text;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use shallows_core::registry::Registry;
use shallows_results::directory::{LIST, changed_files};
use shallows_results::frame::{Cells, Frame};
use shallows_results::{Format, ResultDirectory, read_text, write_text};
use shallows_run::{BUILD_ID, Failure, Interrupt, Scenario};

pub(crate) use metadata::date;
pub use text::citation;

/// Description of the bundle for [`check`].
const INDEX: &str = "artifact.json";
const SUMMARY: &str = "summary.json";
const SCENARIO: &str = "scenario.toml";
/// Present in runs of the live world.
const LIVE: &str = "live.json";

/// Index of a bundle.
#[derive(Debug, Serialize, Deserialize)]
struct Artifact {
    title: String,
    /// SPDX identifier of the data's license.
    license: Option<String>,
    /// Version of the program that made the bundle.
    version: String,
    /// Build id of that program.
    build: String,
    runs: Vec<Run>,
}

/// A run in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    /// Directory relative to the bundle.
    path: PathBuf,
    seed: u64,
    /// Version of the program that made the run.
    version: Option<String>,
    world: World,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum World {
    Simulated,
    Live,
}

/// Words about a bundle that its author chooses.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// Title of the data set.
    pub title: Option<String>,
    /// SPDX identifier of its license.
    pub license: Option<String>,
}

/// Bundles the results of runs and sweeps in a directory, which must be empty, new or an earlier
/// bundle. Returns the number of runs.
///
/// # Errors
/// If a directory holds no results, if a run cannot be made again from what it kept, or if a file
/// cannot be copied.
pub fn bundle(
    directory: &Path,
    results: &[PathBuf],
    description: Description,
    registry: &Registry,
) -> Result<usize, Failure> {
    let mut names = BTreeSet::new();
    let mut sources = Vec::new();
    for result in results {
        let name = name(result)?;
        if !names.insert(name.clone()) {
            let problem = anyhow!("two results are called {name}; rename one of the directories");
            return Err(Failure::File(problem));
        }
        sources.push(Source::open(result, name, registry).map_err(Failure::File)?);
    }
    let output = ResultDirectory::begin(directory)?;
    let mut runs = Vec::new();
    for source in &sources {
        source.copy(output.path())?;
        runs.extend(source.runs.iter().cloned());
    }
    let title = description
        .title
        .unwrap_or_else(|| names.into_iter().collect::<Vec<_>>().join(", "));
    let artifact = Artifact {
        title,
        license: description.license,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: BUILD_ID.to_owned(),
        runs,
    };
    let place = output.path();
    let json = serde_json::to_string_pretty(&artifact).context("cannot describe the bundle")?;
    write_text(&place.join(INDEX), &format!("{json}\n"))?;
    write_text(&place.join("README.md"), &text::readme(&artifact))?;
    write_text(&place.join("CHECKLIST.md"), &text::checklist(&artifact))?;
    write_text(&place.join("CITATION.cff"), &citation())?;
    let crate_metadata = metadata::ro_crate(&artifact, place)?;
    let name = place.join("ro-crate-metadata.json");
    write_text(&name, &format!("{crate_metadata:#}\n"))?;
    output.publish()?;
    Ok(artifact.runs.len())
}

/// Results of one directory that go into a bundle.
struct Source {
    directory: PathBuf,
    name: String,
    /// Files relative to the directory.
    files: Vec<PathBuf>,
    runs: Vec<Run>,
}

impl Source {
    fn open(directory: &Path, name: String, registry: &Registry) -> anyhow::Result<Self> {
        let mut source = Self {
            directory: directory.to_owned(),
            name,
            files: Vec::new(),
            runs: Vec::new(),
        };
        if directory.join(SUMMARY).is_file() {
            source.add_run(Path::new(""), registry)?;
        } else if directory.join("study.json").is_file() {
            source.add_sweep(registry)?;
        } else {
            let shown = directory.display();
            bail!("{shown} has no results of a run or a sweep ({SUMMARY}, study.json)");
        }
        Ok(source)
    }

    fn add_run(&mut self, within: &Path, registry: &Registry) -> anyhow::Result<()> {
        let directory: PathBuf = self.directory.join(within).components().collect();
        let scenario = Scenario::read_with(&directory.join(SCENARIO), &[], registry).map_err(|problem| {
            anyhow!(
                "the run in {} cannot be made again from what it kept; a sweep needs keep = \"all\" \
                 for that: {problem}",
                directory.display()
            )
        })?;
        let found = regular_files(&directory)?;
        let world = if directory.join(LIVE).is_file() {
            World::Live
        } else {
            World::Simulated
        };
        self.files
            .extend(found.iter().map(|file| within.join(file)));
        self.runs.push(Run {
            path: Path::new(&self.name).join(within).components().collect(),
            seed: scenario.config.seed,
            version: scenario.config.version.clone(),
            world,
        });
        Ok(())
    }

    /// The tables and figures of a sweep, and those runs of its store that it names.
    fn add_sweep(&mut self, registry: &Registry) -> anyhow::Result<()> {
        let runs = Frame::read(&self.directory.join("runs.parquet"))?;
        let Some(Cells::Texts(keys)) = runs.column("run") else {
            bail!("{}/runs.parquet names no runs", self.directory.display());
        };
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if entry.file_type()?.is_file() && !is_hidden {
                self.files.push(PathBuf::from(entry.file_name()));
            }
        }
        self.files.sort();
        // Points may share a run.
        for key in keys.iter().collect::<BTreeSet<_>>() {
            let within = Path::new("runs").join(key);
            ensure!(
                self.directory.join(&within).is_dir(),
                "{} has no run {key}; copy or link the store of the sweep there",
                self.directory.join("runs").display()
            );
            self.add_run(&within, registry)?;
        }
        Ok(())
    }

    fn copy(&self, bundle: &Path) -> anyhow::Result<()> {
        for file in &self.files {
            let (from, to) = (
                self.directory.join(file),
                bundle.join(&self.name).join(file),
            );
            let parent = to.parent().expect("it is in the bundle");
            fs::create_dir_all(parent)
                .and_then(|()| fs::copy(&from, &to))
                .with_context(|| format!("cannot copy {}", from.display()))?;
        }
        Ok(())
    }
}

/// The outcome of a [`check`].
#[derive(Debug)]
pub struct Checked {
    /// Lines about what was compared.
    pub text: String,
    /// True if every file is as listed and every simulated run gave the same bytes again.
    pub equal: bool,
}

/// Compares the files of a bundle with their hashes, makes every simulated run again in a
/// temporary directory and compares all of its files byte by byte.
///
/// # Errors
/// If the directory is not a bundle, or if a run cannot be made.
pub fn check(
    directory: &Path,
    registry: &Registry,
    interrupted: &AtomicBool,
) -> Result<Checked, Failure> {
    let path = directory.join(INDEX);
    let read = || -> anyhow::Result<Artifact> {
        let text = read_text(&path)?;
        Ok(serde_json::from_str(&text)?)
    };
    let artifact = read()
        .with_context(|| format!("{} is not an artifact", directory.display()))
        .map_err(Failure::File)?;
    let is_inside = |run: &Path| {
        run.components()
            .all(|part| matches!(part, Component::Normal(_)))
    };
    if let Some(outside) = artifact.runs.iter().find(|run| !is_inside(&run.path)) {
        let problem = anyhow!("{} is outside of the bundle", outside.path.display());
        return Err(Failure::File(problem));
    }
    let changed = changed_files(directory)?;
    let mut checked = Checked {
        equal: changed.is_empty(),
        text: String::new(),
    };
    for file in &changed {
        let _ = writeln!(checked.text, "{}: changed or missing", file.display());
    }
    if artifact.build != BUILD_ID {
        let _ = writeln!(
            checked.text,
            "the bundle was made by build {}, this is build {BUILD_ID}: results may differ",
            artifact.build
        );
    }
    for run in &artifact.runs {
        let shown = run.path.display();
        let outcome = match run.world {
            World::Live => "live, not made again".to_owned(),
            World::Simulated => match again(&directory.join(&run.path), registry, interrupted)? {
                Again::Equal { files } => format!("equal ({files} files)"),
                Again::Different(files) => {
                    checked.equal = false;
                    format!("different: {}", files.join(", "))
                }
            },
        };
        let _ = writeln!(checked.text, "{shown}: {outcome}");
    }
    Ok(checked)
}

/// A run that was made again.
enum Again {
    Equal { files: usize },
    Different(Vec<String>),
}

fn again(run: &Path, registry: &Registry, interrupted: &AtomicBool) -> Result<Again, Failure> {
    let scenario = Scenario::read_with(&run.join(SCENARIO), &[], registry)?;
    let place = tempfile::tempdir().context("cannot make a temporary directory")?;
    let format = if run.join("flows.csv").is_file() {
        Format::Csv
    } else {
        Format::Parquet
    };
    let runner = scenario.runner().output(place.path()).format(format);
    let runner = runner.interrupted_by(Interrupt::Flag(interrupted));
    runner.flows_on_disk().run()?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let (kept, made) = (regular_files(run)?, regular_files(place.path())?);
    // A run of which only the summary was kept has fewer files.
    let all: BTreeSet<&PathBuf> = if run.join(LIST).is_file() {
        kept.iter().chain(&made).collect()
    } else {
        kept.iter().collect()
    };
    let differs = |file: &&&PathBuf| {
        let [one, other] = [run, place.path()].map(|directory| fs::read(directory.join(file)));
        !matches!((one, other), (Ok(one), Ok(other)) if one == other)
    };
    let different: Vec<String> = all
        .iter()
        .filter(differs)
        .map(|file| file.display().to_string())
        .collect();
    Ok(if different.is_empty() {
        Again::Equal { files: all.len() }
    } else {
        Again::Different(different)
    })
}

/// The regular files below a directory, relative to it, in order. Hidden ones are left out.
fn regular_files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(within) = pending.pop() {
        let place = directory.join(&within);
        let entries =
            fs::read_dir(&place).with_context(|| format!("cannot read {}", place.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let path = within.join(entry.file_name());
            match entry.file_type()? {
                kind if kind.is_dir() => pending.push(path),
                kind if kind.is_file() => found.push(path),
                _ => bail!("{} is not a regular file", directory.join(path).display()),
            }
        }
    }
    found.sort();
    Ok(found)
}

fn name(result: &Path) -> Result<String, Failure> {
    let absolute = result
        .canonicalize()
        .with_context(|| format!("cannot open {}", result.display()))
        .map_err(Failure::File)?;
    let name = absolute.file_name().and_then(|name| name.to_str());
    let problem = || Failure::File(anyhow!("{} has no name", result.display()));
    name.map(str::to_owned).ok_or_else(problem)
}
