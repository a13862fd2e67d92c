//! Files that a scenario reads, kept beside its results so that the run can be repeated.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use shallows_sim::workload::{
    AllToAllConfig, CdfConfig, DrawnSize, IncastConfig, PermutationConfig, PoissonConfig,
    SizeConfig, WorkloadConfig,
};

/// A copy of a file.
#[derive(Debug)]
pub struct Input {
    /// Where it is to be, relative to the results.
    pub path: PathBuf,
    pub content: Vec<u8>,
}

/// The files that workloads read; their paths then lead to the copies.
pub(super) fn collect(workloads: &mut [WorkloadConfig]) -> anyhow::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in workloads.iter_mut().flat_map(paths) {
        let content =
            fs::read(&*path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut copy = PathBuf::from(format!("inputs/{}", inputs.len()));
        copy.set_extension(path.extension().unwrap_or_default());
        path.clone_from(&copy);
        inputs.push(Input {
            path: copy,
            content,
        });
    }
    Ok(inputs)
}

fn paths(workload: &mut WorkloadConfig) -> Vec<&mut PathBuf> {
    match workload {
        WorkloadConfig::List(path) => vec![path],
        WorkloadConfig::Poisson(PoissonConfig { size, .. })
        | WorkloadConfig::Permutation(PermutationConfig { size, .. })
        | WorkloadConfig::AllToAll(AllToAllConfig { size, .. })
        | WorkloadConfig::Incast(IncastConfig {
            size: Some(size), ..
        }) => size_paths(size),
        WorkloadConfig::Flows(_)
        | WorkloadConfig::LongLived(_)
        | WorkloadConfig::Incast(_)
        | WorkloadConfig::Udp(_) => Vec::new(),
    }
}

fn size_paths(size: &mut SizeConfig) -> Vec<&mut PathBuf> {
    match size {
        SizeConfig::Drawn(DrawnSize::Cdf(CdfConfig::Table(table))) => {
            table.file.iter_mut().collect()
        }
        SizeConfig::Drawn(DrawnSize::ByService(sizes)) => {
            sizes.iter_mut().flat_map(size_paths).collect()
        }
        SizeConfig::Fixed(_) | SizeConfig::Drawn(DrawnSize::Cdf(CdfConfig::Named(_))) => Vec::new(),
    }
}
