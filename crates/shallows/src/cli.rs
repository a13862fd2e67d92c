//! Commands and their options.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use shallows_results::Format;

/// Simulates datacenter fabrics, packet by packet.
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
    /// Measure the simulator on two reference workloads.
    Bench(BenchArgs),
    /// Congestion controllers for this machine's TCP, as BPF programs in the kernel.
    #[command(subcommand)]
    Cc(crate::cc::CcCommand),
    /// Print the JSON schema of scenario files, for editors.
    Schema,
    /// Print a script that completes commands and options in a shell.
    Completions {
        /// Which shell.
        shell: Shell,
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
    /// Threads to use; results do not depend on it. Runs whose flows wait for others, whose packets
    /// are sprayed, or with probes of single packets, use one.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// Set a key of the scenario, such as ports.switch.queues=4 or transport.controller=reno.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
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
pub(crate) struct BenchArgs {
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
