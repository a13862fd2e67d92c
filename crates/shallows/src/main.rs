//! The command line: simulates datacenter fabrics from scenario files.

#![forbid(unsafe_code)]

mod bench;
mod cc;
mod cli;
mod failure;
mod ideal;
mod output;
mod probes;
mod progress;
mod report;
mod run;
mod scenario;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{Cli, Command};
use failure::Failure;

/// What an editor needs to complete and check scenarios. Kept by hand beside their types; tests
/// compare the two.
const SCHEMA: &str = include_str!("../scenario.schema.json");

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Cc(command) => cc::cc(&command),
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
