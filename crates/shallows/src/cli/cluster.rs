//! Options of commands that can make their runs on a cluster.

use clap::{Args, ValueEnum};
use shallows_study::slurm::Cluster;

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Make the runs on a cluster, in job arrays with many runs per task.
    #[arg(long, value_enum, value_name = "CLUSTER")]
    pub(crate) on: Option<ClusterKind>,
    /// Partition of the cluster.
    #[arg(long, requires = "on")]
    pub(crate) partition: Option<String>,
    /// Number of tasks (default: four per CPU of the partition).
    #[arg(long, value_name = "N", requires = "on", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) tasks: Option<u16>,
    /// A further option of sbatch, such as --sbatch=--time=2:00:00.
    #[arg(
        long,
        value_name = "OPTION",
        requires = "on",
        allow_hyphen_values = true
    )]
    pub(crate) sbatch: Vec<String>,
}

impl ClusterArgs {
    /// The cluster, if `--on` names one.
    pub(crate) fn cluster(&self) -> Option<Cluster> {
        let ClusterKind::Slurm = self.on?;
        Some(Cluster {
            partition: self.partition.clone(),
            tasks: self.tasks.map(usize::from),
            options: self.sbatch.clone(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterKind {
    Slurm,
}
