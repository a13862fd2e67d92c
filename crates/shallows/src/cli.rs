//! Commands and their options.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use shallows_results::Format;
use shallows_study::slurm::Cluster;

/// Simulates datacenter fabrics, packet by packet, and runs them live on Linux.
#[derive(Debug, Parser)]
#[command(name = "shallows", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and summarize its flows.
    ///
    /// Exit codes: 0 the run came to its end; 1 it failed or no flow finished; 2 the scenario or
    /// the command line is wrong; 130 it was interrupted and its partial results are kept.
    Run(RunArgs),
    /// Run a study: a scenario with some keys varied, over seeds.
    ///
    /// Finished runs are kept and not made again, so an interrupted command can be repeated and a
    /// study can grow. Exit codes as those of `run`; 1 too if some runs failed.
    Sweep(SweepArgs),
    /// Make the runs of a task; what Slurm calls.
    #[command(hide = true)]
    SweepTask { round: PathBuf, task: usize },
    /// Submit what a round has left undone; what Slurm calls.
    #[command(hide = true)]
    SweepNext { round: PathBuf },
    /// Show two runs, or two sweeps, side by side: what differs in the scenario and in the results.
    Diff {
        /// Directory of the first one's results.
        first: PathBuf,
        /// Directory of the second one's.
        second: PathBuf,
    },
    #[cfg(all(feature = "live", target_os = "linux"))]
    /// Run a scenario simulated and live, and show both side by side. Needs root.
    Compare(CompareArgs),
    #[cfg(all(feature = "live", target_os = "linux"))]
    /// Forward Ethernet frames between network devices, through the egress ports of a file.
    Switch(SwitchArgs),
    #[cfg(all(feature = "live", target_os = "linux"))]
    /// Run XCo's controller, which decides who of the hosts of a cluster may send when.
    Controller(crate::xco::ControllerArgs),
    #[cfg(all(feature = "live", target_os = "linux"))]
    /// Run XCo's agent, which holds the frames of this machine's VMs back until they may go.
    Agent(crate::xco::AgentArgs),
    #[cfg(all(feature = "live", target_os = "linux"))]
    /// Look after the network namespaces of live runs.
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Measure the simulator on two reference workloads.
    Bench(BenchArgs),
    #[cfg(all(feature = "live", target_os = "linux"))]
    /// Congestion controllers for this machine's TCP, as BPF programs in the kernel.
    #[command(subcommand)]
    Cc(crate::cc::CcCommand),
    /// QJUMP for this machine: plan levels, limit what devices send by them.
    #[command(subcommand)]
    Qjump(crate::qjump::QjumpCommand),
    #[cfg(all(feature = "live", target_os = "linux"))]
    /// Run a command whose sockets have a QJUMP level, and those of all that it starts.
    Exec(crate::exec::ExecArgs),
    /// Reproduce the figures of a paper and compare its claims with what comes out.
    ///
    /// Finished runs are kept and not made again, so an interrupted command can be repeated.
    Repro(ReproArgs),
    /// Make the page of a reproduction: figures, claims, parameters, deviations.
    Report {
        /// The directory that `shallows repro` wrote.
        #[arg(value_name = "DIR", default_value = "out/repro")]
        directory: PathBuf,
    },
    /// Run flows that the authors of MQ-ECN simulated and compare with what their simulator gave.
    Validate(ValidateArgs),
    /// Print the JSON schema of scenario files, for editors.
    Schema,
    /// Print a script that completes commands and options in a shell.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Write a man page for each command.
    Man {
        /// Directory of the pages, such as /usr/local/share/man/man1.
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The scenario, a TOML file.
    pub(crate) scenario: PathBuf,
    /// Directory of the results (by default the scenario's name, under out).
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of every random choice, in place of the scenario's.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Threads to use, at most one for each CPU; results do not depend on it. One if not given. Runs
    /// whose flows wait for others, whose packets are sprayed, or with probes of single packets, use
    /// one. With --vary, how many runs at a time; as many as there are cores if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Set a key of the scenario, such as ports.switch.queues=4 or transport.controller=reno.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Run the scenario once for each value of a key, and compare: workload.poisson.load=0.3,0.6,0.9.
    /// Several are crossed.
    #[arg(long, value_name = "KEY=A,B,C", conflicts_with = "live")]
    pub(crate) vary: Vec<String>,
    /// With --vary, run each with so many seeds from 1 on.
    #[arg(long, value_name = "N", requires = "vary", conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// With --vary, what is compared, such as small.p99 or drops.
    #[arg(long, value_name = "METRIC", requires = "vary")]
    pub(crate) metric: Vec<String>,
    /// Flows from a list, in place of the scenario's workload (columns start_s, src, dst, bytes,
    /// service).
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) flows: Option<PathBuf>,
    /// Format of the table of flows and of the files of probes.
    #[arg(long, value_enum, default_value_t = FileFormat::Parquet)]
    pub(crate) format: FileFormat,
    /// Print the summary as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// End the run at this simulated time, such as 100ms.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Run it on this machine: hosts are network namespaces that speak the kernel's TCP, and the
    /// switches are ours. Needs root.
    #[arg(long)]
    pub(crate) live: bool,
    /// Run it live so much slower: rates are multiplied by this and times divided, so that windows,
    /// buffers and thresholds stay what they are in packets.
    #[arg(long, value_name = "X", requires = "live")]
    pub(crate) scale: Option<f64>,
    /// Leave out the programs of `live.commands`.
    #[arg(long, requires = "live")]
    pub(crate) no_commands: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) study: Option<StudyArgs>,
    /// Make runs again that are kept from before.
    #[arg(long, conflicts_with = "on")]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// With --on, wait for the cluster and write the results.
    #[arg(long, requires = "on")]
    pub(crate) wait: bool,
    #[command(subcommand)]
    pub(crate) command: Option<SweepCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SweepCommand {
    /// Show how far a study on a cluster has come.
    Status(StudyArgs),
    /// Write the results of what there is, without any run.
    Collect(StudyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Let a cluster make the runs, in job arrays with many runs a task.
    #[arg(long, value_enum, value_name = "CLUSTER")]
    pub(crate) on: Option<ClusterKind>,
    /// The partition of the cluster.
    #[arg(long, requires = "on")]
    pub(crate) partition: Option<String>,
    /// How many tasks (by default four for each CPU of the partition).
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
    /// The cluster, if one is wanted.
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

/// A study and where its results are.
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// The study, a TOML file.
    pub(crate) study: PathBuf,
    /// Directory of the tables and figures (by default the study's name, under out).
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Directory of the runs; studies and people may share one (by default runs in --out).
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// How many runs at a time (by default as many as there are cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Set a key in every run; what an axis sets wins.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seeds from 1 to this, in place of the study's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// Print means and intervals as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The scenario, a TOML file.
    pub(crate) scenario: PathBuf,
    /// Run both so much slower, as `shallows run --live` does.
    #[arg(long, value_name = "X")]
    pub(crate) scale: Option<f64>,
    /// Leave out the programs of `live.commands`.
    #[arg(long)]
    pub(crate) no_commands: bool,
    /// Set a key of the scenario, such as seed=2 or transport.controller=reno.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Directory of the figure and of the table as JSON (by default compare-NAME, under out).
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct SwitchArgs {
    /// The switch, a TOML file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<SwitchCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SwitchCommand {
    /// Show what a running switch counts.
    Status {
        /// Where it serves its metrics.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9461")]
        at: SocketAddr,
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Remove what live runs that were killed have left.
    Clean,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    Parquet,
    Csv,
}

impl FileFormat {
    /// As the results know it.
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Parquet => Format::Parquet,
            Self::Csv => Format::Csv,
        }
    }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
    /// Print JSON instead of lines.
    #[arg(long)]
    pub(crate) json: bool,
    /// How often each workload is run; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Threads of the last line of each workload; all of the machine's if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Run one workload once, in this process.
    #[arg(long, hide = true)]
    pub(crate) only: Option<crate::bench::Reference>,
}

// Each is a flag of its own on the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Args)]
pub(crate) struct ReproArgs {
    /// A paper, or some of its figures: mq-ecn, or mq-ecn/fig9 mq-ecn/fig10.
    #[arg(value_name = "PAPER[/FIGURE]")]
    pub(crate) targets: Vec<String>,
    /// Print what can be reproduced.
    #[arg(long)]
    pub(crate) list: bool,
    /// Fewer flows, loads and hosts: minutes instead of hours, and the trend only.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How many runs at a time (by default as many as there are cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Directory of the runs, figures and report.
    #[arg(long, value_name = "DIR", default_value = "out/repro")]
    pub(crate) out: PathBuf,
    /// Print the outcomes as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// How many seeds, in place of the figure's number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// Only these values of the x axis, such as 0.5,0.8 for loads.
    #[arg(long, value_name = "X,X", value_delimiter = ',')]
    pub(crate) at: Vec<f64>,
    /// Set a key in every run, on top of what the figure says, such as transport.handshake=true;
    /// with the id of a variant in front, as in mq-ecn:KEY=VALUE, in its runs.
    #[arg(long, value_name = "[VARIANT:]KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Run figures on this machine too, scaled to what it carries, and show paper, simulation and
    /// live beside each other. Needs root.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) live: bool,
    /// With --live, another scale than the figure's, such as 0.5.
    #[arg(long, value_name = "X", requires = "live")]
    pub(crate) scale: Option<f64>,
    /// Read papers from this directory instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Make runs again that are kept from before.
    #[arg(long, conflicts_with = "on")]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    #[cfg(all(feature = "live", target_os = "linux"))]
    /// Measure how many frames a second the live switch carries. Needs root.
    Live {
        /// Print JSON instead of lines.
        #[arg(long)]
        json: bool,
        /// How long each length of frames is sent, in seconds.
        #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Runs of each scheme; after the first, the start of each flow moves by up to 1 us.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Directory of the figure and of the table as JSON.
    #[arg(long, value_name = "DIR", default_value = "out/validate")]
    pub(crate) out: PathBuf,
}
