//! The tables of `repro/*/README.md` and `LIVE.md`. Those between `<!-- results quick -->`, `full` or
//! `live` and `<!-- end of results -->` are made from the recorded results. In the others of README.md
//! verdicts, and the counts below a table, are those of the values in it. `UPDATE=1 cargo test -p
//! shallows-study readmes` rewrites them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use shallows_results::report::{
    ClaimOutcome, FigureOutcome, Size, Verdict, counts, with_note_and_marks,
};

use super::library::Library;
use super::recorded::Recorded;
use super::{LIVE, recorded_outcome};
use crate::study::claim::{At, ClaimConfig, Over, Unit, decided};
use crate::study::verdict;
use crate::table::short;

const BEGIN: &str = "<!-- results ";
const END: &str = "<!-- end of results -->";

#[test]
fn verdicts_and_counts_are_those_of_the_values_in_the_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../repro");
    let library = Library::new(None);
    for paper in library.papers().unwrap() {
        for page in ["README.md", "LIVE.md"] {
            let path = root.join(&paper).join(page);
            if path.exists() {
                let text = fs::read_to_string(&path).unwrap();
                check(&path, &text, &rewritten(&library, &paper, &text));
            }
        }
    }
}

fn check(path: &Path, text: &str, expected: &str) {
    if env::var_os("UPDATE").is_some() {
        return fs::write(path, expected).unwrap();
    }
    for (number, (is, should)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, should, "{}:{}", path.display(), number + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}

/// The third cell of a paper's row in the top README is made from its recorded results.
#[test]
fn the_top_readme_has_the_counts_of_recorded_results() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(&path).unwrap();
    let library = Library::new(None);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for paper in library.papers().unwrap() {
        let link = format!("](repro/{paper}/README.md)");
        let is_row = |line: &&mut String| line.starts_with("| [") && line.contains(&link);
        let Some(row) = lines.iter_mut().find(is_row) else {
            continue;
        };
        let mut cells = cells(row);
        cells[2] = [Size::Full, Size::Quick]
            .into_iter()
            .filter_map(|size| counted(&library, &paper, size))
            .collect::<Vec<_>>()
            .join("; ");
        *row = format!("| {} |", cells.join(" | "));
    }
    let expected = lines.join("\n") + "\n";
    if env::var_os("UPDATE").is_some() {
        return fs::write(&path, &expected).unwrap();
    }
    assert_eq!(text, expected);
}

/// Verdicts of the recorded figures of a size: reproduced, same direction, not reproduced, and the rest. At full size
/// also the share of the figures with claims that is recorded, and their seeds.
fn counted(library: &Library, paper: &str, size: Size) -> Option<String> {
    let (of_paper, figures) = library.paper(paper).unwrap();
    let is_judged = |id: &&String| {
        let figure = library.figure(paper, id).unwrap().content;
        !figure.claim.is_empty() && !figure.is_live_only()
    };
    let with_claims: Vec<_> = figures.iter().filter(is_judged).collect();
    let outcomes: Vec<_> = with_claims
        .iter()
        .filter_map(|figure| recorded_outcome(library, &of_paper, figure, size).unwrap())
        .collect();
    let seeds = || outcomes.iter().map(|outcome| outcome.seeds);
    let (least, most) = (seeds().min()?, seeds().max()?);
    let claims: Vec<_> = outcomes.iter().flat_map(|of| &of.claims).collect();
    let count = |verdict| claims.iter().filter(|of| of.verdict == verdict).count();
    let is_marked = |of: &&&ClaimOutcome| of.verdict == Verdict::Reproduced && !of.marks.is_empty();
    let verdicts = format!(
        "{} / {} / {} / {} ({} marked)",
        count(Verdict::Reproduced),
        count(Verdict::SameDirection),
        count(Verdict::NotReproduced),
        count(Verdict::Undecided) + count(Verdict::NotMeasured),
        claims.iter().filter(is_marked).count()
    );
    if size == Size::Quick {
        return Some(format!("reduced: {verdicts}"));
    }
    let seeds = match (least, most) {
        (1, 1) => "1 seed".to_owned(),
        (least, most) if least == most => format!("{least} seeds"),
        (least, most) => format!("{least} to {most} seeds"),
    };
    let part = match outcomes.iter().filter(|of| of.only_at.is_some()).count() {
        0 => String::new(),
        part => format!(" ({part} at some loads only)"),
    };
    let (run, all) = (outcomes.len(), with_claims.len());
    Some(format!(
        "**full: {verdicts}**, {run} of {all} figures{part}, {seeds}"
    ))
}

/// A page with the tables that it should have. Those of live results that are not recorded stay: what
/// decides their verdicts is not all in them.
fn rewritten(library: &Library, paper: &str, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut at = 0;
    while at < lines.len() {
        if let Some(size) = lines[at].strip_prefix(BEGIN) {
            let size = match size.trim_end_matches(" -->") {
                "quick" => Size::Quick,
                "full" => Size::Full,
                "live" => Size::Live,
                other => panic!("{paper}: results are quick, full or live, not {other:?}"),
            };
            let end = lines[at..].iter().position(|line| line == END);
            let end = at + end.unwrap_or_else(|| panic!("{paper}: {END} is missing"));
            let made = match size {
                Size::Live => live_section(library, paper),
                Size::Quick | Size::Full => section(library, paper, size),
            };
            let made: Vec<String> = made.lines().map(str::to_owned).collect();
            let next = at + 1 + made.len() + 1;
            lines.splice(at + 1..end, made);
            at = next;
            continue;
        }
        let heads = cells(&lines[at]);
        at += 1;
        let is_head = heads.first().is_some_and(|head| head == "figure");
        if !is_head
            || heads.iter().any(|head| head == "live")
            || !heads.iter().any(|head| head == "verdict")
        {
            continue;
        }
        at += 1;
        let mut verdicts = Vec::new();
        while at < lines.len() && lines[at].starts_with('|') {
            let (row, judged) = row(library, paper, &heads, cells(&lines[at]));
            lines[at] = row;
            verdicts.push(judged);
            at += 1;
        }
        // A count may follow after an empty line.
        let is_count = |line: &&mut String| {
            line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(" reproduced")
        };
        if let Some(line) = lines.get_mut(at + 1).filter(is_count) {
            let rest = line.find('.').map_or("", |end| &line[end..]).to_owned();
            *line = counts(verdicts) + &rest;
        }
    }
    lines.join("\n") + "\n"
}

/// The recorded figures of a size with their claims.
fn section(library: &Library, paper: &str, size: Size) -> String {
    let (of_paper, figures) = library.paper(paper).unwrap();
    let recorded = library.recorded(paper, size).unwrap();
    let outcome = |figure: &String| {
        let outcome = recorded_outcome(library, &of_paper, figure, size).unwrap()?;
        let recorded = recorded.iter().find(|of| of.id() == figure)?;
        Some((outcome, recorded))
    };
    let outcomes: Vec<_> = figures.iter().filter_map(outcome).collect();
    if outcomes.is_empty() {
        return "\nNo figure of this size is recorded yet.\n\n".to_owned();
    }
    let mut text = String::from("\n| figure | points | seeds | runs | command | build | day |\n");
    text.push_str("|---|---|---|---|---|---|---|\n");
    for (outcome, recorded) in &outcomes {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | `{}` | {}{} | {} |",
            outcome.id,
            points(outcome),
            outcome.seeds,
            outcome.runs,
            recorded.command,
            recorded.build,
            staleness(outcome),
            recorded.date
        );
    }
    let has_seeds = outcomes.iter().any(|(outcome, _)| outcome.seeds > 1);
    let claims = || {
        outcomes
            .iter()
            .flat_map(|(of, _)| of.claims.iter().map(move |c| (&of.id, c)))
    };
    let has_code = claims().any(|(_, claim)| claim.authors_code.is_some());
    let mut heads = vec!["figure", "claim", "paper"];
    heads.extend(has_code.then_some("authors' code"));
    heads.push("ours");
    heads.extend(has_seeds.then_some("over seeds"));
    heads.push("verdict");
    let _ = writeln!(
        text,
        "\n| {} |\n|{}",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for (figure, claim) in claims() {
        let mut cells = vec![figure.as_str(), &claim.what, &claim.paper];
        cells.extend(has_code.then(|| claim.authors_code.as_deref().unwrap_or_default()));
        cells.push(&claim.ours);
        cells.extend(has_seeds.then(|| claim.spread.as_deref().unwrap_or_default()));
        let verdict = claim.verdict_text();
        cells.push(&verdict);
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let verdicts = claims().map(|(_, claim)| (claim.verdict, !claim.marks.is_empty()));
    let _ = writeln!(text, "\n{}.\n", counts(verdicts));
    text
}

/// The live figures: their runs, their claims and the values behind them.
fn live_section(library: &Library, paper: &str) -> String {
    let (of_paper, figures) = library.paper(paper).unwrap();
    let recorded = library.recorded(paper, Size::Live).unwrap();
    let outcome =
        |figure: &String| recorded_outcome(library, &of_paper, figure, Size::Live).unwrap();
    let outcomes: Vec<_> = figures.iter().filter_map(outcome).collect();
    let mut text = String::from(
        "\n| figure | live at | runs | late by more than 100 us, worst run | 99% at most, worst run | \
         stolen CPU time, worst run | command | build | day |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    let of_figure = |outcome: &FigureOutcome, is_live: bool| {
        let is = |of: &&Recorded| outcome.id == format!("{}{LIVE}", of.id());
        let mut found = recorded.iter().filter(is);
        found.find(|of| of.live.is_some() == is_live)
    };
    for outcome in &outcomes {
        let of = of_figure(outcome, true).unwrap();
        let facts = of.live.as_ref().unwrap();
        let _ = writeln!(
            text,
            "| {} | {} of the rates | {} | {:.3}% | {:.0} us | {:.2}% | `{}` | {}{} | {} |",
            of.id(),
            facts.scale,
            facts.runs,
            100.0 * facts.late_share,
            facts.late_p99_us,
            100.0 * facts.steal.unwrap_or_default(),
            of.command,
            of.build,
            staleness(outcome),
            of.date
        );
    }
    text.push_str(
        "\n| figure | claim | paper | simulated | verdict | live | verdict |\n|---|---|---|---|---|---|---|\n",
    );
    for outcome in &outcomes {
        let id = of_figure(outcome, true).unwrap().id();
        for claim in &outcome.claims {
            let live = claim.live.as_ref().unwrap();
            let cells = [
                id,
                &claim.what,
                &claim.paper,
                &claim.ours,
                &claim.verdict_text(),
                &live.ours,
                &live.verdict_text(),
            ];
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    for outcome in &outcomes {
        let live = of_figure(outcome, true).unwrap();
        text.push_str(&values(live, of_figure(outcome, false)));
    }
    text.push('\n');
    text
}

/// The metrics of a figure in both worlds, means over the seeds.
fn values(live: &Recorded, simulated: Option<&Recorded>) -> String {
    let variants = live.variants();
    // A figure without x has all values at 0.
    let has_x = live.xs() != [0.0];
    let x_head = if has_x { " x |" } else { "" };
    let mut text = format!("\nValues of `{}`:\n\n| metric |{x_head}", live.id());
    for variant in &variants {
        let heads = [simulated.map(|_| "simulated"), Some("live")];
        for world in heads.into_iter().flatten() {
            let _ = write!(text, " {variant}, {world} |");
        }
    }
    let worlds = 1 + usize::from(simulated.is_some());
    let columns = 1 + usize::from(has_x) + worlds * variants.len();
    let _ = writeln!(text, "\n|{}", "---|".repeat(columns));
    for (metric, x) in live.metrics() {
        let x_cell = if has_x {
            format!(" {x} |")
        } else {
            String::new()
        };
        let _ = write!(text, "| {metric} |{x_cell}");
        for variant in &variants {
            for of in [simulated, Some(live)].into_iter().flatten() {
                let mean = of.mean(&metric, x, variant);
                let _ = write!(text, " {} |", mean.map_or_else(String::new, short));
            }
        }
        text.push('\n');
    }
    text
}

/// A remark where the settings of a figure are not those of its results any more.
fn staleness(outcome: &FigureOutcome) -> &'static str {
    let note = outcome.note.as_deref().unwrap_or_default();
    if note.contains("have changed since") {
        ", settings have changed since"
    } else {
        ""
    }
}

/// The values of x that a figure rests on.
fn points(outcome: &FigureOutcome) -> String {
    match &outcome.only_at {
        Some(only_at) => only_at.clone(),
        None => "all of this size".to_owned(),
    }
}

fn cells(line: &str) -> Vec<String> {
    let inner = line
        .strip_prefix('|')
        .and_then(|line| line.strip_suffix('|'));
    let cells = inner.into_iter().flat_map(|inner| inner.split('|'));
    cells.map(|cell| cell.trim().to_owned()).collect()
}

/// The row with its verdicts, and the first of these, with whether it is marked.
fn row(
    library: &Library,
    paper: &str,
    heads: &[String],
    mut cells: Vec<String>,
) -> (String, (Verdict, bool)) {
    let figure = library.figure(paper, &cells[0]).unwrap().content;
    let alike = || figure.claim.iter().filter(|claim| claim.what == cells[1]);
    // Where two claims have the same words, their values tell them apart.
    let is = |claim: &&ClaimConfig| cells.contains(&Unit::of(claim).paper(claim.paper));
    let claim = alike().find(is).or_else(|| alike().next());
    let claim = claim.unwrap_or_else(|| panic!("{}: no claim {:?}", cells[0], cells[1]));
    let mut first = None;
    let mut value = None;
    for (place, head) in heads.iter().enumerate() {
        match head.as_str() {
            "paper" => cells[place] = Unit::of(claim).paper(claim.paper),
            "ours" => value = Some(place),
            "verdict" => {
                let value = value.expect("a value before its verdict");
                let spread = match heads[place - 1].as_str() {
                    "over seeds" => cells[place - 1].as_str(),
                    _ => "",
                };
                let (verdict, note) = judged(claim, &cells[value], spread);
                cells[place] = with_note_and_marks(verdict, note.as_deref(), &claim.marks);
                first.get_or_insert(verdict);
            }
            _ => {}
        }
    }
    let judged = (
        first.unwrap_or(Verdict::NotMeasured),
        !claim.marks.is_empty(),
    );
    (format!("| {} |", cells.join(" | ")), judged)
}

fn judged(claim: &ClaimConfig, ours: &str, spread: &str) -> (Verdict, Option<String>) {
    let ours = numbers(ours);
    if ours.is_empty() {
        return (Verdict::NotMeasured, None);
    }
    let mut sets = vec![ours];
    match claim.at {
        // The least and the most over all points: both ends are of one measurement.
        At::Over(Over::All) => sets.extend(Some(numbers(spread)).filter(|ends| !ends.is_empty())),
        _ => sets.extend(numbers(spread).into_iter().map(|end| vec![end])),
    }
    decided(&verdict::possible_of_reduced(claim, &sets))
}

/// The numbers of a cell: "1.35 to 1.54%", "471 Mbps", "–".
fn numbers(cell: &str) -> Vec<f64> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let words = cell.split_whitespace();
    let numbers = words.map(|word| {
        word.trim_end_matches(|c: char| !is_part(c))
            .replace(',', "")
    });
    numbers.filter_map(|number| number.parse().ok()).collect()
}
