//! The command line: runs datacenter fabrics from scenario files, simulated and live.

#![forbid(unsafe_code)]

mod bench;
mod cc;
mod cli;
mod compare;
mod failure;
mod ideal;
mod live;
mod output;
mod probes;
mod progress;
mod report;
mod repro;
mod run;
mod scenario;
mod sights;
mod switch;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{BenchCommand, Cli, Command, LabCommand};
use failure::Failure;

/// What an editor needs to complete and check scenarios. Kept by hand beside their types; tests
/// compare the two.
const SCHEMA: &str = include_str!("../scenario.schema.json");

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) if args.live => live::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Cc(command) => cc::cc(&command),
        Command::Repro(args) => repro::repro(&args),
        Command::Report { directory } => repro::report_on(&directory),
        Command::Switch(args) => switch::switch(&args),
        Command::Lab {
            command: LabCommand::Clean,
        } => live::clean(),
        Command::Bench(args) => match args.command {
            Some(BenchCommand::Live { json, seconds }) => live::bench(json, seconds),
            None => bench::bench(&args),
        },
        Command::Schema => output::print(SCHEMA).map_err(Failure::from),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "shallows", &mut script);
            output::print(&String::from_utf8_lossy(&script)).map_err(Failure::from)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit_code()
        }
    }
}
