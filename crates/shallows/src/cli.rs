//! Commands and their options.

mod cluster;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
pub(crate) use cluster::ClusterArgs;
use shallows_results::Format;

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
    /// Exit codes: 0 if the run completed; 1 if it failed or no flow finished; 2 if the scenario or
    /// the command line is wrong; 130 if it was interrupted (partial results are kept).
    Run(RunArgs),
    /// Run a study: a scenario with some keys varied, over seeds.
    ///
    /// Finished runs are kept and reused, so an interrupted command can be repeated and a study can
    /// grow. Exit codes as for `run`; also 1 if some runs failed.
    Sweep(SweepArgs),
    /// Search for better values of keys: a goal, bounds on other metrics, and knobs.
    ///
    /// Candidates are compared with the scenario as it is over the same seeds, and the choice once
    /// more over seeds and scenarios that the search has not seen. Finished runs are kept, so an
    /// interrupted command can be repeated. Exit codes as those of `run`.
    Tune(crate::tune::TuneArgs),
    /// Explain a run: hottest ports, where completion times went, losses and timeouts.
    ///
    /// A simulated run is simulated again with every link observed, which takes several times as
    /// long and gives the same flows.
    Explain(crate::explain::ExplainArgs),
    /// Draw a run or a sweep: completion times, queues, windows, or a metric against an axis.
    ///
    /// Samples that a simulated run did not record are made by simulating it again.
    Plot(crate::plot::PlotArgs),
    /// Make the runs of a task. Called by Slurm.
    #[command(hide = true)]
    SweepTask { round: PathBuf, task: usize },
    /// Submit the runs that a round left undone. Called by Slurm.
    #[command(hide = true)]
    SweepNext { round: PathBuf },
    /// Compare two runs or two sweeps: differences of their scenarios and results.
    Diff {
        /// Directory of the first results.
        first: PathBuf,
        /// Directory of the second results.
        second: PathBuf,
    },
    #[cfg(live)]
    /// Run a scenario simulated and live, and compare both. Needs root.
    Compare(CompareArgs),
    #[cfg(live)]
    /// Forward Ethernet frames between network devices through simulated egress ports.
    Switch(SwitchArgs),
    #[cfg(live)]
    /// Run XCo's controller, which schedules the hosts of a cluster.
    Controller(crate::xco::ControllerArgs),
    #[cfg(live)]
    /// Run XCo's agent, which holds frames of this machine's VMs until they may be sent.
    Agent(crate::xco::AgentArgs),
    #[cfg(live)]
    /// Manage the network namespaces of live runs.
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Measure the simulator on two reference workloads.
    Bench(BenchArgs),
    #[cfg(live)]
    /// Load congestion controllers (DCTCP, EAR, ...) into this machine's kernel.
    #[command(subcommand)]
    Cc(crate::cc::CcCommand),
    /// Plan QJUMP's levels and limit this machine's devices by them.
    #[command(subcommand)]
    Qjump(crate::qjump::QjumpCommand),
    /// Check, import and export the configuration of SONiC switches.
    #[command(subcommand)]
    Sonic(crate::sonic::SonicCommand),
    /// Make a workload from real traffic: captures, NetFlow v9, IPFIX, sFlow v5, conn.log, ss.
    ///
    /// Exit codes: 0; 2 the source or a map cannot be read, or the command line is wrong.
    Import(crate::import::ImportArgs),
    /// Print a scenario's ports and transport as tc, sysctl and ip route commands.
    Linux(crate::linux::LinuxArgs),
    #[cfg(live)]
    /// Run a command at a QJUMP level, including the processes that it starts.
    Exec(crate::exec::ExecArgs),
    /// Reproduce the figures of a paper and judge its claims.
    ///
    /// Finished runs are kept and reused, so an interrupted command can be repeated.
    Repro(ReproArgs),
    /// Write the page of a reproduction again: figures, claims, parameters, deviations.
    Report {
        /// The directory that `shallows repro` wrote.
        #[arg(value_name = "DIR", default_value = "out/repro")]
        directory: PathBuf,
    },
    /// Bundle runs and sweeps with scenarios, inputs and hashes for others to check.
    Artifact(ArtifactArgs),
    /// Run the flows of published simulators and compare with the results of their authors' code.
    Validate(crate::validate::ValidateArgs),
    /// List the built-in scenarios and studies.
    Examples,
    /// List the metrics of runs: names, units and needs.
    Metrics,
    /// Print a built-in scenario or study, to change it: shallows new quickstart > my.toml.
    New {
        /// Name from `shallows examples`.
        name: String,
    },
    /// Print the JSON schema of scenario files, for completion in editors.
    Schema,
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write a man page for each command.
    Man {
        /// Directory of the pages, such as /usr/local/share/man/man1.
        directory: PathBuf,
    },
}

/// Reads a seed.
fn seed(text: &str) -> Result<u64, String> {
    let problem = |_| "a seed is a whole number, 0 or more".to_owned();
    text.parse().map_err(problem)
}

// Each is a flag of its own on the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Scenario: a TOML file, or a built-in name (`shallows examples`).
    pub(crate) scenario: PathBuf,
    /// Directory of the results (default: out/NAME).
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of all random choices; overrides the scenario's.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Threads of the run (default 1), at most one per CPU. Results do not depend on it. With --vary,
    /// the number of parallel runs (default: one per core).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Set a key of the scenario, such as transport.controller=reno or until=50ms.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Run the scenario for each value of a key and compare: workload.poisson.load=0.3,0.6,0.9.
    /// Several options are crossed.
    #[arg(long, value_name = "KEY=A,B,C", conflicts_with = "live")]
    pub(crate) vary: Vec<String>,
    /// With --vary, run each combination with seeds 1 to N.
    #[arg(long, value_name = "N", requires = "vary", conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// With --vary, a metric to compare, such as small.p99 or drops.
    #[arg(long, value_name = "METRIC", requires = "vary")]
    pub(crate) metric: Vec<String>,
    /// With --vary, the width of figures: of a screen, or of one or two columns of a paper.
    #[arg(long, value_enum, value_name = "WIDTH", requires = "vary")]
    pub(crate) width: Option<crate::plot::FigureWidth>,
    /// With --vary, leave out title and note of figures, for those that have a caption.
    #[arg(long, requires = "vary")]
    pub(crate) no_title: bool,
    /// List of flows that replaces the scenario's workload (columns start_s, src, dst, bytes,
    /// service).
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) flows: Option<PathBuf>,
    /// Format of tables; with --vary they are Parquet.
    #[arg(long, value_enum, default_value_t = FileFormat::Parquet, conflicts_with = "vary")]
    pub(crate) format: FileFormat,
    /// Print the summary as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Explain the columns of the summary, and name the engine and the reason for it.
    #[arg(long, conflicts_with_all = ["json", "vary"])]
    pub(crate) explain: bool,
    /// Write a trace for ui.perfetto.dev: flows as slices, queues and windows as counters, marks and
    /// drops as instants. Sampled, and at most 100 MB.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["live", "vary"])]
    pub(crate) trace: Option<PathBuf>,
    /// End the run at this simulated time, such as 100ms.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Run on this machine: hosts are network namespaces with the kernel's TCP, and switches are
    /// software. Needs root.
    #[arg(long)]
    pub(crate) live: bool,
    /// Slow the live run down: multiply every rate and divide every time by X. Windows, buffers and
    /// thresholds keep their sizes in packets.
    #[arg(long, value_name = "X", requires = "live")]
    pub(crate) scale: Option<f64>,
    /// Skip the programs of `live.commands`.
    #[arg(long, requires = "live")]
    pub(crate) no_commands: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) study: Option<StudyArgs>,
    /// Repeat runs that are kept.
    #[arg(long, conflicts_with = "on")]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// With --on, wait for the cluster, then write the results.
    #[arg(long, requires = "on")]
    pub(crate) wait: bool,
    #[command(subcommand)]
    pub(crate) command: Option<SweepCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SweepCommand {
    /// Show the progress of a study on a cluster.
    Status(StudyArgs),
    /// Write the results of finished runs, without making any.
    Collect(StudyArgs),
}

/// A study and where its results are.
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// Study: a TOML file, or a built-in name (`shallows examples`).
    pub(crate) study: PathBuf,
    /// Directory of tables and figures (default: out/NAME).
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Directory of the runs (default: runs in --out). Studies and people may share one.
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Number of parallel runs (default: one per core).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Set a key in every run, or in those at one point of an axis: mq-ecn:KEY=VALUE. It overrides
    /// the study's settings.
    #[arg(long, value_name = "[POINT:]KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Run the version that the study's [quick] table describes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Use seeds 1 to N instead of the study's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// Print means and intervals as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    // Not flattened: clap loses an optional group that has another one in it.
    /// Width of figures: of a screen, or of one or two columns of a paper.
    #[arg(long, value_enum, value_name = "WIDTH")]
    pub(crate) width: Option<crate::plot::FigureWidth>,
    /// Leave out title and note of figures, for those that have a caption.
    #[arg(long)]
    pub(crate) no_title: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Scenario: a TOML file, or a built-in name (`shallows examples`).
    pub(crate) scenario: PathBuf,
    /// Slow both worlds down by this factor, as `run --live --scale` does.
    #[arg(long, value_name = "X")]
    pub(crate) scale: Option<f64>,
    /// Skip the programs of `live.commands`.
    #[arg(long)]
    pub(crate) no_commands: bool,
    /// Set a key of the scenario, such as seed=2 or transport.controller=reno.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Directory of the figure and the table as JSON (default: out/compare-NAME).
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct SwitchArgs {
    /// TOML file of the switch.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<SwitchCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SwitchCommand {
    /// Show the counters of a running switch.
    Status {
        /// Address of its metrics.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9461")]
        at: SocketAddr,
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Remove namespaces, devices and processes that killed live runs left behind.
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
    /// Number of runs per workload; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Threads of the last line of each workload (default: one per CPU).
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
    /// List papers and figures.
    #[arg(long)]
    pub(crate) list: bool,
    /// Use fewer flows, loads and hosts: minutes instead of hours, and only the trend.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of parallel runs (default: one per core).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Directory of the runs, figures and report.
    #[arg(long, value_name = "DIR", default_value = "out/repro")]
    pub(crate) out: PathBuf,
    /// Print the outcomes as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Number of seeds; overrides the figure's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Only these values of the x axis, such as 0.5,0.8 for loads.
    #[arg(long, value_name = "X,X", value_delimiter = ',')]
    pub(crate) at: Vec<f64>,
    /// Set a key in every run, such as transport.handshake=true, or in the runs of one variant:
    /// mq-ecn:KEY=VALUE.
    #[arg(long, value_name = "[VARIANT:]KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Also run figures on this machine, scaled to its speed, and compare paper, simulation and live
    /// run. Needs root.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) live: bool,
    /// With --live, a scale that overrides the figure's, such as 0.5.
    #[arg(long, value_name = "X", requires = "live")]
    pub(crate) scale: Option<f64>,
    /// Read papers from this directory instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Repeat runs that are kept.
    #[arg(long, conflicts_with = "on")]
    pub(crate) fresh: bool,
    /// Record the metrics of all runs below this directory, in PAPER/results.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["set", "scale"])]
    pub(crate) record: Option<PathBuf>,
    /// Make tables and page from recorded results instead of runs.
    #[arg(long, conflicts_with_all = ["record", "set", "seeds", "at", "fresh", "on", "scale"])]
    pub(crate) show: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) look: crate::plot::LookArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure what several threads cost: twelve scenarios, most with little to do for them, in turns
    /// on one thread and on several.
    Threads {
        /// Threads to compare with one.
        #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=256))]
        threads: u32,
        /// Number of runs of each scenario; medians are reported.
        #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    #[cfg(live)]
    /// Measure the frame rate of the live switch. Needs root.
    Live {
        /// Print JSON instead of lines.
        #[arg(long)]
        json: bool,
        /// Duration of the test of each frame length, in seconds.
        #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct ArtifactArgs {
    /// Directory of the bundle.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Directories of results of `run` or `sweep`.
    #[arg(value_name = "RESULTS", required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// Title of the data set (by default the names of the results).
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// License of the data, such as CC-BY-4.0.
    #[arg(long, value_name = "SPDX")]
    pub(crate) license: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<ArtifactCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// Compare a bundle with its hashes, make every simulated run again and compare all bytes.
    Check {
        /// Directory of the bundle.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}
