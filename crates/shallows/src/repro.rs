//! `shallows repro` and `shallows report`.

use std::path::Path;
use std::thread;

use anyhow::Context as _;
use shallows_core::registry::Registry;
use shallows_results::figure::Look;
use shallows_results::report::{FigureOutcome, Size, Verdict, counts};
use shallows_study::repro::{self, Listed, ListedSizes, Request};

use crate::cli::ReproArgs;
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::overall::Overall;

pub(crate) fn repro(args: &ReproArgs, registry: &Registry) -> Result<(), Failure> {
    if args.list || args.targets.is_empty() {
        let listed = repro::list(args.from.as_deref())?;
        return Ok(output::print(&list(&listed))?);
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
        look: args.look.look(),
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
        Size::Live => repro::three_ways(&outcomes),
        _ => repro::verdicts(&outcomes),
    };
    Ok(output::print(&format!(
        "{claims}{}report: {}\n",
        legend(&outcomes),
        page.display()
    ))?)
}

/// Counts of the verdicts, their tolerance, and the size if it is not the paper's.
fn legend(outcomes: &[FigureOutcome]) -> String {
    let claims = || outcomes.iter().flat_map(|outcome| &outcome.claims);
    let counts = counts(claims().map(|claim| (claim.verdict, !claim.marks.is_empty())));
    let mut text = String::new();
    if claims().any(|claim| claim.verdict != Verdict::NotMeasured) {
        text = format!(
            "\n{counts}\n\
             reproduced: within 25% of the paper's effect, or within 5% of a plain value; a bound \
             has no slack (docs/verdicts.md)\n"
        );
    }
    if outcomes.iter().any(|outcome| outcome.size == Size::Quick) {
        text += "--quick is not the paper's size: it shows the trend, and these verdicts do not \
                 count\n";
    }
    text
}

/// Papers and figures in columns: number of runs of each size, and live figures.
fn list(listed: &[Listed]) -> String {
    let width = listed.iter().map(|of| of.id.len()).max().unwrap_or(0);
    let line = |id: &str, quick: &str, full: &str, live: &str, title: &str| {
        format!("{id:width$}  {quick:>5}  {full:>5}  {live:4}  {title}\n")
    };
    let mut text = line("", "quick", "full", "live", "title");
    for Listed { id, title, sizes } in listed {
        text += &match sizes {
            None => line(id, "", "", "", title),
            Some(ListedSizes { quick, full, live }) => {
                let live = if *live { "yes" } else { "" };
                line(id, &quick.to_string(), &full.to_string(), live, title)
            }
        };
    }
    text + "\nquick, full: number of runs with --quick and at the paper's size; live: runs with --live too\n"
}

/// `shallows report`: the page of what is in a directory.
pub(crate) fn report_on(directory: &Path) -> Result<(), Failure> {
    let page = repro::write_report(directory, Look::default())?;
    Ok(output::print(&format!("report: {}\n", page.display()))?)
}

/// Default number of parallel runs.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
