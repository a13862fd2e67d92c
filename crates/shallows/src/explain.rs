//! `shallows explain`: why a run came out as it did.

use std::path::PathBuf;

use clap::Args;
use shallows_core::registry::Registry;
use shallows_results::RunRecord;
use shallows_run::Interrupt;
use shallows_study::explain::{Question, explain as answer};

use crate::failure::{Failure, check_results};
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::progress::ProgressLine;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Directory that `shallows run` wrote.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Show the life of one flow: path, parts of its completion time, losses, window.
    #[arg(long, value_name = "N", conflicts_with = "port")]
    flow: Option<u32>,
    /// Show one port, by the name of its link: traffic by service and flow, waits, drops.
    #[arg(long, value_name = "LINK")]
    port: Option<String>,
    /// Use the tables of the run only; do not simulate it again.
    #[arg(long)]
    tables_only: bool,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

pub(crate) fn explain(args: &ExplainArgs, registry: &Registry) -> Result<(), Failure> {
    check_results(&args.run)?;
    let interrupted = watch_for_ctrl_c()?;
    let question = Question {
        flow: args.flow,
        port: args.port.clone(),
        tables_only: args.tables_only,
    };
    let flows = RunRecord::open(&args.run).map_err(anyhow::Error::from)?;
    let mut line = ProgressLine::new(flows.flows.len(), None);
    let followed = (Interrupt::Flag(&interrupted), &mut line as _);
    let explained = answer(&args.run, &question, registry, followed);
    line.clear();
    let explained = explained?;
    let text = if args.json {
        let json = serde_json::to_string_pretty(&explained).map_err(anyhow::Error::from)?;
        json + "\n"
    } else {
        explained.to_string()
    };
    output::print(&text).map_err(Failure::from)
}
