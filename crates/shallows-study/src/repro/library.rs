//! The files of `repro/`: those that are built in, or those of a directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use serde::de::DeserializeOwned;
use shallows_results::read_text;
use shallows_results::report::{Deviation, Paper, Size};

use super::recorded::{self, Recorded};
use super::spec::{Deviations, FigureSpec, PaperSpec};

/// Embeds files of `repro/`.
macro_rules! files {
    ($($name:literal,)*) => {
        [$(($name, include_str!(concat!("../../repro/", $name))),)*]
    };
}
/// Names relative to `repro/`, and texts.
const BUILT_IN: &[(&str, &str)] = &files![
    "mq-ecn/paper.toml",
    "mq-ecn/deviations.toml",
    "mq-ecn/results/full.csv",
    "mq-ecn/results/quick.csv",
    "mq-ecn/motivation.toml",
    "mq-ecn/testbed.toml",
    "mq-ecn/simulation.toml",
    "mq-ecn/fig1.toml",
    "mq-ecn/fig2.toml",
    "mq-ecn/fig3.toml",
    "mq-ecn/fig6.toml",
    "mq-ecn/fig7.toml",
    "mq-ecn/fig8.toml",
    "mq-ecn/fig9.toml",
    "mq-ecn/fig10.toml",
    "mq-ecn/fig11.toml",
    "mq-ecn/fig12.toml",
    "mq-ecn/fig13.toml",
    "mq-ecn/beyond.toml",
    "mq-ecn/beyond-100g.toml",
    "ear/paper.toml",
    "ear/deviations.toml",
    "ear/results/full.csv",
    "ear/results/quick.csv",
    "ear/as-published.toml",
    "ear/case1.toml",
    "ear/case2.toml",
    "ear/case3.toml",
    "ear/case4.toml",
    "ear/chain.toml",
    "ear/fig4.toml",
    "ear/fig5.toml",
    "ear/fig9.toml",
    "ear/hash.toml",
    "ear/inter-datacenter.toml",
    "ear/locality.toml",
    "ear/queues.toml",
    "ear/remedy.toml",
    "ear/simulation.toml",
    "ear/tree.toml",
    "ear/two-datacenters.toml",
    "ml-ecn/paper.toml",
    "ml-ecn/deviations.toml",
    "ml-ecn/results/quick.csv",
    "ml-ecn/cache-dwrr.toml",
    "ml-ecn/cache-wrr.toml",
    "ml-ecn/data-mining-dwrr.toml",
    "ml-ecn/data-mining-wrr.toml",
    "ml-ecn/fig2.toml",
    "ml-ecn/hadoop-dwrr.toml",
    "ml-ecn/hadoop-wrr.toml",
    "ml-ecn/mix-dwrr.toml",
    "ml-ecn/mix-wrr.toml",
    "ml-ecn/hosts.toml",
    "ml-ecn/lab.toml",
    "ml-ecn/lab-mix.toml",
    "ml-ecn/lab-web-search.toml",
    "ml-ecn/sensitivity.toml",
    "ml-ecn/simulation.toml",
    "ml-ecn/web-search-dwrr.toml",
    "ml-ecn/web-search-wrr.toml",
    "stacks/paper.toml",
    "stacks/deviations.toml",
    "stacks/ear-markers.toml",
    "stacks/fabric.toml",
    "stacks/stacks.toml",
    "qjump/paper.toml",
    "qjump/deviations.toml",
    "qjump/automatic.toml",
    "qjump/beyond.toml",
    "qjump/commit.toml",
    "qjump/fan-in.toml",
    "qjump/fig10.toml",
    "qjump/fig11.toml",
    "qjump/fig12.toml",
    "qjump/fig3-barrier.toml",
    "qjump/fig3-memcached.toml",
    "qjump/fig3-ping.toml",
    "qjump/fig5-simulated.toml",
    "qjump/fig5.toml",
    "qjump/fig6-buffer.toml",
    "qjump/fig6.toml",
    "qjump/fig7-thresholds.toml",
    "qjump/fig7.toml",
    "qjump/fig9-data-mining.toml",
    "qjump/fig9-web-search.toml",
    "qjump/guests.toml",
    "qjump/lab.toml",
    "qjump/misaligned.toml",
    "qjump/misalignment.toml",
    "qjump/mix.toml",
    "qjump/pair.toml",
    "qjump/programs.toml",
    "qjump/simulation.toml",
    "qjump/star.toml",
    "qjump/table1.toml",
    "qjump/testbed.toml",
    "xco/paper.toml",
    "xco/deviations.toml",
    "xco/compare.toml",
    "xco/compare-incast.toml",
    "xco/compare-shuffle.toml",
    "xco/compare-web-search.toml",
    "xco/fig12.toml",
    "xco/fig13.toml",
    "xco/fig14.toml",
    "xco/fig15.toml",
    "xco/fig16.toml",
    "xco/fig17.toml",
    "xco/fig18.toml",
    "xco/fig19.toml",
    "xco/fig20.toml",
    "xco/incast.toml",
    "xco/on-demand.toml",
    "xco/receiver.toml",
    "xco/scale.toml",
    "xco/scale-fat-tree.toml",
    "xco/shorttcp.toml",
    "xco/uplink.toml",
];

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

    pub(super) fn figure(&self, paper: &str, figure: &str) -> anyhow::Result<FigureSpec> {
        self.parse(&format!("{paper}/{figure}.toml"))
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
    use super::*;

    #[test]
    fn every_file_is_built_in() {
        let repro = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../repro");
        let directory = Library::new(Some(&repro));
        let built_in = Library::new(None);
        assert_eq!(built_in.papers().unwrap(), directory.papers().unwrap());
        for paper in directory.papers().unwrap() {
            let files = |below: &str, end: &str| {
                let entries = fs::read_dir(repro.join(&paper).join(below));
                let names = entries.into_iter().flatten();
                let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
                let names = names.filter(|name| name.ends_with(end));
                let names = names.map(|name| format!("{paper}/{below}{name}"));
                names.collect::<Vec<_>>()
            };
            for name in [files("", ".toml"), files("results/", ".csv")].concat() {
                assert_eq!(
                    built_in.text(&name).unwrap(),
                    directory.text(&name).unwrap()
                );
            }
        }
    }
}
