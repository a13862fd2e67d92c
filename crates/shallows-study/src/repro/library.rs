//! The files of `repro/`: those that are built in, or those of a directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use shallows_results::read_text;
use shallows_results::report::{Deviation, Paper, Size};
use shallows_run::Failure;
use shallows_run::scenario::Document;

use super::recorded::{self, Recorded};
use crate::study::config::StudyConfig;

/// Names relative to `repro/`, and texts; the build script lists them.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/repro.rs"));

/// `paper.toml`: the paper and its figures in order.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PaperSpec {
    #[serde(flatten)]
    paper: Paper,
    figures: Vec<String>,
}

/// `deviations.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviations {
    #[serde(default)]
    deviation: Vec<Deviation>,
}

/// Papers that can be reproduced.
#[derive(Debug)]
pub(super) struct Library {
    directory: Option<PathBuf>,
}

impl Library {
    pub(super) fn new(directory: Option<&Path>) -> Self {
        Self {
            directory: directory.map(Path::to_owned),
        }
    }

    /// The papers, by name.
    pub(super) fn papers(&self) -> anyhow::Result<Vec<String>> {
        let mut papers: Vec<String> = match &self.directory {
            None => {
                let names = BUILT_IN
                    .iter()
                    .filter_map(|(name, _)| name.strip_suffix("/paper.toml"));
                names.map(str::to_owned).collect()
            }
            Some(directory) => {
                let entries = fs::read_dir(directory)
                    .with_context(|| format!("cannot read {}", directory.display()))?;
                let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
                names
                    .filter(|name| directory.join(name).join("paper.toml").exists())
                    .collect()
            }
        };
        papers.sort_unstable();
        Ok(papers)
    }

    /// A paper and the names of its figures.
    pub(super) fn paper(&self, id: &str) -> anyhow::Result<(Paper, Vec<String>)> {
        let papers = self.papers()?;
        if !papers.iter().any(|paper| paper == id) {
            let meant = papers
                .iter()
                .find(|paper| paper.replace('-', "") == id.replace('-', ""));
            let meant = meant.map_or_else(String::new, |paper| format!(" (did you mean {paper}?)"));
            bail!(
                "there is no paper {id:?}{meant}; there are: {}",
                papers.join(", ")
            );
        }
        let PaperSpec { mut paper, figures } = self.parse(&format!("{id}/paper.toml"))?;
        id.clone_into(&mut paper.id);
        Ok((paper, figures))
    }

    pub(super) fn deviations(&self, paper: &str) -> anyhow::Result<Vec<Deviation>> {
        let Deviations { deviation } = self.parse(&format!("{paper}/deviations.toml"))?;
        Ok(deviation)
    }

    /// A figure: a study with claims.
    pub(super) fn figure(
        &self,
        paper: &str,
        figure: &str,
    ) -> Result<Document<StudyConfig>, Failure> {
        let name = format!("{paper}/{figure}.toml");
        let text = self.text(&name)?;
        let path = match &self.directory {
            Some(directory) => directory.join(&name),
            None => PathBuf::from(&name),
        };
        Ok(Document::parse(&path, &text)?)
    }

    /// The recorded results of a paper at a size, by figure.
    pub(super) fn recorded(&self, paper: &str, size: Size) -> anyhow::Result<Vec<Recorded>> {
        let name = recorded::file(paper, size);
        let is_there = match &self.directory {
            Some(directory) => directory.join(&name).exists(),
            None => BUILT_IN.iter().any(|(built_in, _)| *built_in == name),
        };
        if !is_there {
            return Ok(Vec::new());
        }
        recorded::parse(&self.text(&name)?).with_context(|| name)
    }

    /// A file of a paper.
    pub(super) fn text(&self, name: &str) -> anyhow::Result<String> {
        match &self.directory {
            Some(directory) => {
                let path = directory.join(name);
                read_text(&path).with_context(|| format!("cannot read {}", path.display()))
            }
            None => BUILT_IN
                .iter()
                .find(|(built_in, _)| *built_in == name)
                .map(|(_, text)| (*text).to_owned())
                .with_context(|| format!("there is no {name}")),
        }
    }

    fn parse<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<T> {
        toml::from_str(&self.text(name)?).map_err(|error| anyhow!("{name}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Plan, Wanted};
    use super::*;

    #[test]
    fn what_is_built_in_is_what_the_directory_has() {
        let repro = Path::new(env!("CARGO_MANIFEST_DIR")).join("repro");
        let (built_in, directory) = (Library::new(None), Library::new(Some(&repro)));
        assert_eq!(built_in.papers().unwrap(), directory.papers().unwrap());
        for (name, text) in BUILT_IN {
            assert_eq!(*text, directory.text(name).unwrap());
        }
    }

    #[test]
    fn every_figure_is_a_study_at_each_of_its_sizes() {
        let library = Library::new(None);
        for paper in library.papers().unwrap() {
            let (paper, figures) = library.paper(&paper).unwrap();
            for figure in figures {
                for size in [Size::Quick, Size::Full, Size::Live] {
                    let plan = Plan::without_runs(&library, &paper, &figure, &Wanted::all(size));
                    plan.unwrap_or_else(|error| panic!("{}/{figure}: {error}", paper.id));
                }
            }
        }
    }

    #[test]
    fn every_figure_in_the_directory_is_in_its_paper() {
        let library = Library::new(None);
        for (name, text) in BUILT_IN {
            let (paper, file) = name.split_once('/').unwrap();
            let stem = file.strip_suffix(".toml").unwrap_or_default();
            let (_, figures) = library.paper(paper).unwrap();
            let is_figure = text
                .parse::<toml::Table>()
                .is_ok_and(|of| of.contains_key("scenario"));
            assert_eq!(is_figure, figures.iter().any(|of| of == stem), "{name}");
        }
    }
}
