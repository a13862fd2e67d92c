//! The tables of `repro/*/README.md` follow the rules: verdicts, and the counts below a table, are
//! those of the values in it. `UPDATE=1 cargo test -p shallows-study readmes` rewrites them.

use std::path::Path;
use std::{env, fs};

use shallows_results::report::{Verdict, counts, with_note_and_marks};

use super::claim::{Unit, decided};
use super::library::Library;
use super::spec::{At, ClaimSpec, Over};
use super::verdict;

#[test]
fn verdicts_and_counts_are_those_of_the_values_in_the_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../repro");
    let library = Library::new(None);
    for paper in library.papers().unwrap() {
        let path = root.join(&paper).join("README.md");
        let text = fs::read_to_string(&path).unwrap();
        let expected = rewritten(&library, &paper, &text);
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &expected).unwrap();
            continue;
        }
        for (number, (is, should)) in text.lines().zip(expected.lines()).enumerate() {
            assert_eq!(is, should, "{}:{}", path.display(), number + 1);
        }
    }
}

fn rewritten(library: &Library, paper: &str, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut at = 0;
    while at < lines.len() {
        let heads = cells(&lines[at]);
        at += 1;
        let is_head = heads.first().is_some_and(|head| head == "figure");
        if !is_head || !heads.iter().any(|head| head == "verdict") {
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
    let figure = library.figure(paper, &cells[0]).unwrap();
    let alike = || figure.claim.iter().filter(|claim| claim.what == cells[1]);
    // Where two claims have the same words, their values tell them apart.
    let is = |claim: &&ClaimSpec| cells.contains(&Unit::of(claim).paper(claim.paper));
    let claim = alike().find(is).or_else(|| alike().next());
    let claim = claim.unwrap_or_else(|| panic!("{}: no claim {:?}", cells[0], cells[1]));
    let mut first = None;
    let mut value = None;
    for (place, head) in heads.iter().enumerate() {
        match head.as_str() {
            "paper" => cells[place] = Unit::of(claim).paper(claim.paper),
            "ours" | "simulated" | "live" => value = Some(place),
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

fn judged(claim: &ClaimSpec, ours: &str, spread: &str) -> (Verdict, Option<String>) {
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
