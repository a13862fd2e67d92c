//! Tests of what the documentation shows: links lead somewhere, commands are ones that the program
//! takes, keys that they set exist, and ARCHITECTURE.md names the rooms of the house.

mod architecture;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;
use shallows_run::Scenario;
use shallows_run::examples::Example;

use crate::cli::{Cli, Command};
use crate::run;

/// Directories with pages, relative to the root of the repository.
const DIRECTORIES: [&str; 4] = [".", "docs", "data", "repro"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page, with its path relative to the root.
fn pages() -> Vec<(PathBuf, String)> {
    let mut pages = Vec::new();
    for directory in DIRECTORIES {
        collect(Path::new(directory), directory != ".", &mut pages);
    }
    pages.sort();
    assert!(pages.len() > 30, "{} pages", pages.len());
    pages
}

fn collect(directory: &Path, recurse: bool, pages: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(root().join(directory)).unwrap() {
        let entry = entry.unwrap();
        let path = directory.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            if recurse {
                collect(&path, true, pages);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(root().join(&path)).unwrap();
            let path = path.strip_prefix(".").unwrap_or(&path).to_owned();
            pages.push((path, text));
        }
    }
}

/// The lines outside blocks of code, and those inside, joined where a backslash continues them.
fn prose_and_code(text: &str) -> (Vec<&str>, Vec<String>) {
    let (mut prose, mut code, mut inside) = (Vec::new(), Vec::<String>::new(), false);
    let mut continued = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            prose.push(line);
        } else {
            let part = line.trim_end_matches('\\').trim();
            match code.last_mut().filter(|_| continued) {
                Some(last) => *last = format!("{last} {part}"),
                None => code.push(part.to_owned()),
            }
            continued = line.ends_with('\\');
        }
    }
    (prose, code)
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (prose, _) = prose_and_code(text);
    let headings = prose.iter().filter_map(|line| line.strip_prefix('#'));
    let anchor = |heading: &str| -> String {
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(is_kept);
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// The targets of a line's links and images.
fn links(line: &str) -> Vec<&str> {
    let targets = line.split("](").skip(1);
    targets
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .collect()
}

/// The pieces of code within a line of prose.
fn inline_code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn links_of_all_pages_lead_somewhere() {
    let pages = pages();
    let mut dead = Vec::new();
    for (path, text) in &pages {
        let (prose, _) = prose_and_code(text);
        for target in prose.into_iter().flat_map(links) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let to = match file {
                "" => path.clone(),
                file => path.parent().expect("a page has a directory").join(file),
            };
            let found = root().join(&to);
            let has_anchor = || anchors(&fs::read_to_string(&found).unwrap()).contains(anchor);
            if !found.exists() || (!anchor.is_empty() && !has_anchor()) {
                dead.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<&str> = contents.lines().flat_map(links).collect();
    for (path, _) in pages() {
        let page = match path.strip_prefix("docs") {
            Ok(page) => page.to_owned(),
            Err(_) => Path::new("..").join(&path),
        };
        let page = page.to_str().unwrap();
        let is_part = page == "SUMMARY.md" || page.starts_with("../data");
        assert!(is_part || listed.contains(page), "{page} is not listed");
    }
}

#[test]
fn commands_of_all_pages_are_taken() {
    let (mut wrong, mut commands) = (Vec::new(), 0);
    for (path, text) in pages() {
        // The changelog has commands of earlier versions.
        if path == Path::new("CHANGELOG.md") {
            continue;
        }
        let (prose, code) = prose_and_code(&text);
        let shown = code.iter().filter_map(|line| shown_command(line));
        let shown = shown.map(|command| (command, Completeness::Whole));
        let named = prose.into_iter().flat_map(inline_code);
        let named = named.filter(|code| code.starts_with("shallows "));
        let named = named.map(|command| (command.to_owned(), Completeness::Part));
        for (command, completeness) in shown.chain(named) {
            commands += 1;
            if let Err(problem) = check(&command, completeness) {
                wrong.push(format!("{}: {command}\n    {problem}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands > 100, "{commands} commands");
}

/// Length of a command's page: all options, or the common ones.
#[derive(Clone, Copy, PartialEq)]
enum Completeness {
    /// All of it: it can be typed.
    Whole,
    /// Its name and perhaps some options.
    Part,
}

/// The command that a line of a block of code shows, from its name on.
fn shown_command(line: &str) -> Option<String> {
    let line = line.trim_start_matches(['$', '#', ' ']);
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let line = line.strip_prefix("cargo run --release -- ").map_or_else(
        || line.to_owned(),
        |arguments| format!("shallows {arguments}"),
    );
    line.starts_with("shallows ").then_some(line)
}

fn check(command: &str, completeness: Completeness) -> Result<(), String> {
    // A comment, a pipe, a redirection or another command ends it; brackets are around options.
    let ends = [" # ", " | ", " > ", " 2>", " && ", " & ", "; "];
    let end = ends.iter().filter_map(|end| command.find(end)).min();
    let command = command[..end.unwrap_or(command.len())].trim_end_matches([';', '&']);
    let optional = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let words = shlex::split(command).ok_or("it has an open quote")?;
    let words: Vec<String> = words
        .iter()
        .map(|word| optional(word))
        .take_while(|word| word != "..." && word != "…")
        .collect();
    match Cli::try_parse_from(words) {
        Ok(cli) => check_keys(&cli.command),
        Err(said) => match said.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::InvalidValue
            | ErrorKind::ValueValidation
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                if completeness == Completeness::Part =>
            {
                Ok(())
            }
            _ => Err(said
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()),
        },
    }
}

/// Loads the scenario of `shallows run` with its settings, where it is built in.
fn check_keys(command: &Command) -> Result<(), String> {
    let Command::Run(args) = command else {
        return Ok(());
    };
    if Example::at(&args.scenario).is_none() || args.flows.is_some() {
        return Ok(());
    }
    let settings = run::settings(args).map_err(|failure| failure.to_string())?;
    let scenario = Scenario::read(&args.scenario, &settings);
    scenario.map(drop).map_err(|problem| problem.to_string())
}
