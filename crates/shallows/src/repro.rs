//! `shallows repro` and `shallows report`.

use std::path::Path;
use std::thread;

use anyhow::Context as _;
use shallows_core::registry::Registry;
use shallows_results::report::Size;
use shallows_study::repro::{self, Request};

use crate::cli::ReproArgs;
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::overall::Overall;

pub(crate) fn repro(args: &ReproArgs, registry: &Registry) -> Result<(), Failure> {
    if args.list || args.targets.is_empty() {
        return Ok(output::print(&repro::list(args.from.as_deref())?)?);
    }
    let request = Request {
        targets: args.targets.clone(),
        size: match (args.quick, args.live) {
            (true, _) => Size::Quick,
            (_, true) => Size::Live,
            _ => Size::Full,
        },
        seeds: args.seeds,
        at: args.at.clone(),
        set: args.set.clone(),
        threads: args.threads.map_or_else(cores, usize::from),
        out: args.out.clone(),
        scale: args.scale,
        from: args.from.clone(),
        fresh: args.fresh,
        cluster: args.cluster.cluster(),
        registry: registry.clone(),
        record: args.record.clone(),
    };
    let (outcomes, page) = if args.show {
        repro::show(&request)?
    } else {
        let interrupted = watch_for_ctrl_c()?;
        repro::reproduce(&request, &interrupted, &Overall::default())?
    };
    if args.json {
        let json = serde_json::to_string_pretty(&outcomes).context("outcomes are plain data")?;
        return Ok(output::print(&(json + "\n"))?);
    }
    let claims = match request.size {
        #[cfg(all(feature = "live", target_os = "linux"))]
        Size::Live => repro::three_ways(&outcomes),
        _ => repro::verdicts(&outcomes),
    };
    Ok(output::print(&format!(
        "{claims}report: {}\n",
        page.display()
    ))?)
}

/// `shallows report`: the page of what is in a directory.
pub(crate) fn report_on(directory: &Path) -> Result<(), Failure> {
    let page = repro::write_report(directory)?;
    Ok(output::print(&format!("report: {}\n", page.display()))?)
}

/// Default number of parallel runs.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
