//! Slurm's own commands: its partitions, its queue, and new jobs.

use std::process::Command;

use anyhow::{Context as _, bail};

use super::{Cluster, TASKS_PER_CPU};

pub(super) fn usual_tasks(cluster: &Cluster) -> anyhow::Result<usize> {
    let mut sinfo = Command::new("sinfo");
    sinfo.args(["--noheader", "--format=%C"]);
    if let Some(partition) = &cluster.partition {
        sinfo.arg(format!("--partition={partition}"));
    }
    // Allocated, idle, other and all CPUs: "1/3/0/4".
    let text = output(&mut sinfo)?;
    let cpus = text
        .lines()
        .filter_map(|line| line.rsplit('/').next()?.trim().parse::<usize>().ok());
    Ok(TASKS_PER_CPU * cpus.sum::<usize>().max(1))
}

/// A job, or a task of an array, in Slurm's queue.
pub(super) struct Queued {
    /// Of an array, that of all its tasks.
    pub(super) job: u64,
    pub(super) task: Option<usize>,
    pub(super) state: String,
}

pub(super) fn queue() -> anyhow::Result<Vec<Queued>> {
    let mut squeue = Command::new("squeue");
    squeue.args(["--noheader", "--array", "--format=%F %K %T"]);
    let text = output(&mut squeue)?;
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        Some(Queued {
            job: words.next()?.parse().ok()?,
            task: words.next()?.parse().ok(),
            state: words.next()?.to_owned(),
        })
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Submits a job; answers with its id.
pub(super) fn sbatch(cluster: &Cluster, options: &[&str], command: &str) -> anyhow::Result<u64> {
    let mut sbatch = Command::new("sbatch");
    sbatch
        .args(["--parsable", "--ntasks=1", "--cpus-per-task=1"])
        .args(options);
    if let Some(partition) = &cluster.partition {
        sbatch.arg(format!("--partition={partition}"));
    }
    sbatch
        .args(&cluster.options)
        .arg(format!("--wrap={command}"));
    let text = output(&mut sbatch)?;
    // With several clusters, "id;cluster".
    let id = text.trim().split(';').next().unwrap_or_default();
    id.parse()
        .with_context(|| format!("sbatch answered {text:?}, which is no job id"))
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.with_context(|| format!("cannot run {name}; is Slurm installed here?"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
