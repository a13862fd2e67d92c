//! Words of doc comments and pages that can be checked: openings and phrases that readers stumble
//! over (CONTRIBUTING.md has the reasons).
//!
//! The allow list is a number per crate, of comments that are still to be rewritten; lower it with
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// First words of a doc comment that begin a riddle: "What hosts speak."
const OPENINGS: [&str; 9] = [
    "What", "How", "Whether", "When", "Where", "Which", "Who", "Whose", "Why",
];

/// Phrases of pages for users, with what to write.
const PHRASES: [(&str, &str); 9] = [
    (" in place of ", "instead of"),
    (" beside ", "next to, compared with, in addition to"),
    (" mended", "fixed"),
    (" so many ", "the number of"),
    (" so much ", "the amount of, or a factor"),
    (" is none;", "is not one"),
    ("half a thousand", "500"),
    ("brought together", "merged"),
    ("--features png", "every build draws PNG"),
];

/// Comments by crate that open with one of [`OPENINGS`].
const ALLOWED: &str = include_str!("words.toml");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|of| of == extension) {
            found.push(path);
        }
    }
}

/// First lines of the doc comments of a file, with their numbers.
fn openings(text: &str) -> Vec<(usize, &str)> {
    let mut is_inside = false;
    let mut first = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let comment = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        if let (Some(comment), false) = (comment, is_inside) {
            first.push((number + 1, comment.trim()));
        }
        is_inside = comment.is_some();
    }
    first
}

#[test]
fn doc_comments_open_with_a_noun_or_a_verb() {
    let allowed: BTreeMap<String, usize> = toml::from_str(ALLOWED).unwrap();
    let mut problems = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let directory = entry.unwrap().path();
        let name = directory
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let mut sources = Vec::new();
        files(&directory.join("src"), "rs", &mut sources);
        let mut odd = Vec::new();
        for path in sources {
            let text = fs::read_to_string(&path).unwrap();
            for (line, comment) in openings(&text) {
                let word = comment
                    .split([' ', '.', ',', ':', ';'])
                    .next()
                    .unwrap_or_default();
                if OPENINGS.contains(&word) {
                    odd.push(format!("{}:{line}: {comment}", path.display()));
                }
            }
        }
        let most = allowed.get(&name).copied().unwrap_or(0);
        if odd.len() > most {
            let list = odd.join("\n  ");
            problems.push(format!(
                "{name}: {} comments, {most} allowed:\n  {list}",
                odd.len()
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn pages_have_no_phrase_that_readers_stumble_over() {
    let mut pages = Vec::new();
    files(&root().join("docs"), "md", &mut pages);
    pages.push(root().join("README.md"));
    let mut problems = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for (number, line) in text.lines().enumerate() {
            for (phrase, better) in PHRASES {
                if line.contains(phrase) {
                    let place = format!("{}:{}", page.display(), number + 1);
                    problems.push(format!("{place}: {phrase:?}; better: {better}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The most lines of a source file.
const MOST_LINES: usize = 500;

/// Functions are held to 70 lines by clippy (`clippy.toml`).
#[test]
fn source_files_are_short() {
    let crates = root().join("crates");
    let mut sources = Vec::new();
    files(&crates, "rs", &mut sources);
    let mut problems = Vec::new();
    for path in sources {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let name = path.strip_prefix(&crates).unwrap().to_string_lossy();
        if lines > MOST_LINES {
            problems.push(format!("{name}: {lines} lines, {MOST_LINES} at most"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_riddle_is_found() {
    let text = "/// What hosts speak.\n/// It is TCP.\nfn f() {}\n//! A noun.\n";
    assert_eq!(openings(text), [(1, "What hosts speak."), (4, "A noun.")]);
}
