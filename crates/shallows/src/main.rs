//! The command line: runs datacenter fabrics from scenario files, simulated and live.

#![forbid(unsafe_code)]

mod bench;
#[cfg(all(feature = "live", target_os = "linux"))]
mod cc;
mod cli;
#[cfg(all(feature = "live", target_os = "linux"))]
mod exec;
mod failure;
mod interrupt;
#[cfg(all(feature = "live", target_os = "linux"))]
mod live;
mod output;
mod overall;
mod progress;
mod qjump;
mod repro;
mod run;
mod sweep;
#[cfg(all(feature = "live", target_os = "linux"))]
mod switch;
mod validate;
#[cfg(all(feature = "live", target_os = "linux"))]
mod xco;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};

#[cfg(all(feature = "live", target_os = "linux"))]
use cli::{BenchCommand, LabCommand};
use cli::{Cli, Command};
use failure::Failure;
use shallows_study::slurm;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        #[cfg(all(feature = "live", target_os = "linux"))]
        Command::Run(args) if args.live => live::run(&args),
        #[cfg(not(all(feature = "live", target_os = "linux")))]
        Command::Run(args) if args.live => Err(Failure::Run(anyhow::anyhow!(
            "live runs need Linux, and a build with the feature `live`"
        ))),
        Command::Run(args) if !args.vary.is_empty() => sweep::vary(&args),
        Command::Run(args) => run::run(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::SweepTask { round, task } => sweep::task(&round, task),
        Command::SweepNext { round } => slurm::next_round(&round).map(drop),
        Command::Diff { first, second } => shallows_study::diff(&first, &second)
            .and_then(|text| output::print(&text))
            .map_err(Failure::from),
        #[cfg(all(feature = "live", target_os = "linux"))]
        Command::Compare(args) => live::compare(&args),
        #[cfg(all(feature = "live", target_os = "linux"))]
        Command::Cc(command) => cc::cc(&command),
        Command::Qjump(command) => qjump::qjump(&command),
        #[cfg(all(feature = "live", target_os = "linux"))]
        Command::Exec(args) => exec::exec(&args),
        Command::Repro(args) => repro::repro(&args),
        Command::Report { directory } => repro::report_on(&directory),
        #[cfg(all(feature = "live", target_os = "linux"))]
        Command::Switch(args) => switch::switch(&args),
        #[cfg(all(feature = "live", target_os = "linux"))]
        Command::Controller(args) => xco::controller(&args),
        #[cfg(all(feature = "live", target_os = "linux"))]
        Command::Agent(args) => xco::agent(&args),
        #[cfg(all(feature = "live", target_os = "linux"))]
        Command::Lab {
            command: LabCommand::Clean,
        } => live::clean(),
        Command::Bench(args) => match args.command {
            #[cfg(all(feature = "live", target_os = "linux"))]
            Some(BenchCommand::Live { json, seconds }) => live::bench(json, seconds),
            None => bench::bench(&args),
        },
        Command::Validate(args) => validate::validate(&args),
        Command::Schema => {
            let schema = shallows_run::schema();
            output::print(&format!("{:#}\n", schema.as_value())).map_err(Failure::from)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "shallows", &mut script);
            output::print(&String::from_utf8_lossy(&script)).map_err(Failure::from)
        }
        Command::Man { directory } => man(&directory),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            failure::exit_code(&failure)
        }
    }
}

/// Writes the man pages of all commands into a directory.
fn man(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .with_context(|| format!("cannot write man pages to {}", directory.display()))
        .map_err(Failure::from)
}
