//! The command line: runs datacenter fabrics from scenario files, simulated and live.

#![forbid(unsafe_code)]
// They panic when nobody reads the pipe or the disk of a log is full.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod artifact;
mod bench;
#[cfg(live)]
mod cc;
mod cli;
#[cfg(test)]
mod documentation;
mod examples;
#[cfg(live)]
mod exec;
mod explain;
mod failure;
mod help;
mod import;
mod interrupt;
mod linux;
#[cfg(live)]
mod live;
mod metrics;
mod notes;
mod output;
mod overall;
mod plot;
mod progress;
mod qjump;
mod repro;
mod run;
#[cfg(live)]
mod service;
mod sonic;
mod sweep;
#[cfg(live)]
mod switch;
mod tune;
mod validate;
#[cfg(live)]
mod xco;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use anyhow::Context as _;
use clap::FromArgMatches as _;

#[cfg(live)]
use cli::LabCommand;
use cli::{BenchCommand, Cli, Command};
use failure::Failure;
use shallows_core::registry::Registry;
use shallows_study::slurm;

/// The `main` of a program that has the whole command line with schemes of its own:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use shallows_core::registry::Registry;
///
/// fn main() -> ExitCode {
///     let registry = Registry::default(); // with markers, schedulers and controllers in it
///     shallows::main_with(&registry)
/// }
/// ```
pub fn main_with(registry: &Registry) -> ExitCode {
    ExitCode::from(command(env::args_os(), registry))
}

/// Runs a command line, whose first word is the program's name; scenarios may name schemes of
/// `registry`. Returns the exit code.
pub fn command(arguments: impl IntoIterator<Item = OsString>, registry: &Registry) -> u8 {
    let matches = help::command().try_get_matches_from(arguments);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(said) => {
            // There is nobody to tell that it cannot be told.
            let _ = said.print();
            if said.to_string().contains("subcommand 'simulate'") {
                output::note("  tip: `shallows run SCENARIO` simulates a scenario");
            }
            return said.exit_code() as u8;
        }
    };
    match perform(cli.command, registry) {
        Ok(()) => 0,
        Err(failure) => {
            output::note(&failure);
            failure::exit_code(&failure)
        }
    }
}

fn perform(command: Command, registry: &Registry) -> Result<(), Failure> {
    match command {
        #[cfg(live)]
        Command::Run(args) if args.live => live::run(&args, registry),
        #[cfg(not(live))]
        Command::Run(args) if args.live => Err(Failure::Run(anyhow::anyhow!(
            "live runs need Linux, and a build with the feature `live`"
        ))),
        Command::Run(args) if !args.vary.is_empty() => sweep::vary(&args, registry),
        Command::Run(args) => run::run(&args, registry),
        Command::Sweep(args) => sweep::sweep(&args, registry),
        Command::Tune(args) => tune::tune(&args, registry),
        Command::Explain(args) => explain::explain(&args, registry),
        Command::Plot(args) => plot::plot(&args, registry),
        Command::SweepTask { round, task } => sweep::task(&round, task, registry),
        Command::SweepNext { round } => slurm::next_round(&round).map(drop),
        Command::Diff { first, second } => shallows_study::diff(&first, &second)
            .and_then(|text| output::print(&text))
            .map_err(Failure::from),
        #[cfg(live)]
        Command::Compare(args) => live::compare(&args, registry),
        #[cfg(live)]
        Command::Cc(command) => cc::cc(&command),
        Command::Qjump(command) => qjump::qjump(&command),
        Command::Sonic(command) => sonic::sonic(&command),
        Command::Linux(args) => linux::linux(&args),
        Command::Import(args) => import::import(&args),
        #[cfg(live)]
        Command::Exec(args) => exec::exec(&args),
        Command::Repro(args) => repro::repro(&args, registry),
        Command::Report { directory } => repro::report_on(&directory),
        #[cfg(live)]
        Command::Switch(args) => switch::switch(&args),
        #[cfg(live)]
        Command::Controller(args) => xco::controller(&args),
        #[cfg(live)]
        Command::Agent(args) => xco::agent(&args),
        #[cfg(live)]
        Command::Lab {
            command: LabCommand::Clean,
        } => live::clean(),
        Command::Bench(args) => match args.command {
            #[cfg(live)]
            Some(BenchCommand::Live { json, seconds }) => live::bench(json, seconds),
            Some(BenchCommand::Threads { threads, runs }) => bench::threads::bench(threads, runs),
            None => bench::bench(&args),
        },
        Command::Artifact(args) => artifact::artifact(&args, registry),
        Command::Validate(args) => validate::validate(&args),
        Command::Schema => {
            let schema = shallows_run::schema();
            output::print(&format!("{:#}\n", schema.as_value())).map_err(Failure::from)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut help::command(), "shallows", &mut script);
            output::print(&String::from_utf8_lossy(&script)).map_err(Failure::from)
        }
        Command::Man { directory } => man(&directory),
        Command::Examples => examples::list(),
        Command::Metrics => metrics::list(),
        Command::New { name } => examples::write(&name),
    }
}

/// Writes the man pages of all commands into a directory.
fn man(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(help::command(), directory))
        .with_context(|| format!("cannot write man pages to {}", directory.display()))
        .map_err(Failure::from)
}
