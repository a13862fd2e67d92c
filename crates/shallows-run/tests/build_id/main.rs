//! The build id covers what decides a run, and nothing else.

#[path = "../../build/lockfile.rs"]
mod lockfile;
#[path = "../../build/sources.rs"]
mod sources;
#[path = "../../build/tokens.rs"]
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use sources::{Covered, LIVE, Part, SIMULATED, walk};
use tempfile::TempDir;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The path without `..`, so that paths can be compared. Links are not followed: a crate embeds data
/// by its own path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn covered(parts: &[Part]) -> BTreeSet<PathBuf> {
    let covered = Covered::of(here(), parts).unwrap();
    covered.files.keys().map(|path| plain(path)).collect()
}

/// A copy of all covered files, and of the tests among them, that can be edited.
struct Copy {
    root: TempDir,
    before: u64,
}

impl Copy {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let workspace = plain(&here().join("../.."));
        let mut files: Vec<PathBuf> = covered(SIMULATED).into_iter().collect();
        for name in ["shallows-core", "shallows-run", "shallows-results"] {
            walk(&workspace.join("crates").join(name).join("src"), &mut files).unwrap();
        }
        for file in files {
            let to = root.path().join(file.strip_prefix(&workspace).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&file, to).unwrap();
        }
        let mut copy = Self { root, before: 0 };
        copy.before = copy.id();
        copy
    }

    fn id(&self) -> u64 {
        let here = self.root.path().join("crates/shallows-run");
        Covered::of(&here, SIMULATED).unwrap().id("1")
    }

    /// Returns whether replacing a text in a file changes the id.
    fn changes_with(&self, file: &str, old: &str, new: &str) -> bool {
        let path = self.root.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{file} has no {old:?}");
        fs::write(&path, text.replacen(old, new, 1)).unwrap();
        let changed = self.id() != self.before;
        fs::write(&path, text).unwrap();
        changed
    }
}

#[test]
fn prose_tests_and_figures_leave_the_id_alone() {
    let copy = Copy::new();
    for (file, old, new) in [
        ("shallows-core/src/lib.rs", "//! ", "//! More words. "),
        ("shallows-core/src/keyed.rs", "/// ", "/// Other words: "),
        (
            "shallows-run/src/scenario/fuzz.rs",
            "use ",
            "use std::fs as other;\nuse ",
        ),
        (
            "shallows-run/src/scenario/setting.rs",
            "values_are_toml",
            "values_are_still_toml",
        ),
        (
            "shallows-results/src/figure/svg.rs",
            "fn ",
            "fn other() {}\nfn ",
        ),
        (
            "shallows-run/src/lib.rs",
            "forbid(unsafe_code)",
            "deny(unsafe_code)",
        ),
    ] {
        let file = format!("crates/{file}");
        assert!(
            !copy.changes_with(&file, old, new),
            "{file}: {old} -> {new}"
        );
    }
}

#[test]
fn code_data_statistics_and_dependencies_change_the_id() {
    let copy = Copy::new();
    for (file, old, new) in [
        (
            "shallows-core/src/lib.rs",
            "pub mod",
            "pub mod x {}\npub mod",
        ),
        ("shallows-model/src/lib.rs", "mod ", "mod x {}\npub mod "),
        ("shallows-sim/src/lib.rs", "mod ", "fn f() {}\nmod "),
        (
            "shallows-results/src/statistics.rs",
            "fn ",
            "fn f() {}\nfn ",
        ),
        ("shallows-results/src/summary.rs", "fn ", "fn f() {}\nfn "),
        ("shallows-study/src/measured.rs", "fn ", "fn f() {}\nfn "),
        ("shallows-run/src/run.rs", "fn ", "fn f() {}\nfn "),
    ] {
        let file = format!("crates/{file}");
        assert!(copy.changes_with(&file, old, new), "{file}: {old} -> {new}");
    }
    let embedded = covered(SIMULATED);
    let sizes = embedded
        .iter()
        .find(|path| path.ends_with("web-search.csv"));
    let workspace = plain(&here().join("../.."));
    let sizes = sizes.expect("the shipped distributions are covered");
    let sizes = sizes.strip_prefix(&workspace).unwrap().to_str().unwrap();
    assert!(copy.changes_with(sizes, "\n", "\n\n"), "{sizes}");
    let locked = "name = \"rand_xoshiro\"\nversion = \"";
    assert!(copy.changes_with("Cargo.lock", locked, &format!("{locked}9")));
    let of_commands = "name = \"clap\"\nversion = \"";
    assert!(!copy.changes_with("Cargo.lock", of_commands, &format!("{of_commands}9")));
}

/// Source files, and the part of each that is not tests.
fn sources_of(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    walk(&directory.join("src"), &mut files).unwrap();
    files.retain(|path| path.extension().is_some_and(|end| end == "rs"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    };
    let mut sources: Vec<(PathBuf, String)> = files.into_iter().map(read).collect();
    let items = sources
        .iter()
        .flat_map(|(_, text)| text.split("#[cfg(test)]\n").skip(1));
    let declarations = items.filter_map(|item| item.lines().next()?.strip_suffix(';'));
    let of_tests = declarations.filter_map(|item| item.split("mod ").nth(1));
    let of_tests: BTreeSet<String> = of_tests.map(str::to_owned).collect();
    sources.retain(|(path, _)| {
        let mut parts = path
            .iter()
            .filter_map(|part| Path::new(part).file_stem()?.to_str());
        !parts.any(|part| of_tests.contains(part))
    });
    for (_, text) in &mut sources {
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        *text = code.to_owned();
    }
    sources
}

#[test]
fn every_module_and_every_embedded_file_is_covered() {
    let mut covered_files = covered(SIMULATED);
    covered_files.extend(covered(LIVE));
    let is_apart = |path: &Path| {
        let text = path.to_string_lossy();
        let is_drawn = ["figure", "report"]
            .iter()
            .any(|part| text.contains(&format!("shallows-results/src/{part}")));
        // A shipped scenario is part of a run's key as any other is.
        is_drawn || text.ends_with("shallows-run/src/examples.rs")
    };
    let mut embeds = 0;
    for name in ["core", "model", "sim", "results", "run", "bpf", "live"] {
        let directory = plain(&here().join(format!("../shallows-{name}")));
        for (path, code) in sources_of(&directory) {
            if is_apart(&path) {
                continue;
            }
            assert!(
                covered_files.contains(&path),
                "{} is not covered",
                path.display()
            );
            for (at, _) in code.match_indices("include_") {
                let literal = code[at..].split('"').nth(1).unwrap();
                let begin = path.parent().unwrap().join(literal);
                let directory = plain(begin.parent().unwrap());
                let file = begin
                    .file_name()
                    .map_or("".into(), |of| of.to_string_lossy());
                let is_covered = |known: &&PathBuf| {
                    let known_name = known.file_name().unwrap().to_string_lossy();
                    known.starts_with(&directory)
                        && (literal.ends_with('/') || known_name.starts_with(&*file))
                };
                let found = covered_files.iter().filter(is_covered).count();
                assert!(found > 0, "{}: {literal} is not covered", path.display());
                embeds += found;
            }
        }
    }
    assert!(embeds > 12, "{embeds} embedded files were found");
}

#[test]
fn every_crate_that_runs_need_is_covered() {
    let manifest = fs::read_to_string(here().join("Cargo.toml")).unwrap();
    let lines = manifest
        .lines()
        .filter(|line| line.starts_with("shallows-"));
    let names = lines.filter_map(|line| line.split(' ').next());
    // For tests only.
    let names: BTreeSet<&str> = names.filter(|&name| name != "shallows-testing").collect();
    let parts = SIMULATED.iter().chain(LIVE);
    let known: BTreeSet<&str> = parts.map(|part| part.name).collect();
    assert!(
        names.len() > 3 && names.is_subset(&known),
        "{names:?}, {known:?}"
    );
}

#[test]
fn comments_are_told_from_texts_and_tests_from_code() {
    let words = |text: &str| tokens::code(text).join(" ");
    for (text, code) in [
        ("a // b\nc", "a c"),
        ("a /* b /* c */ \" */ d", "a d"),
        ("\"// no comment\" // one", "\"// no comment\""),
        (r#"r"\" "/*" /**/"#, r#"r"\" "/*""#),
        (r##"br#"" // "# x"##, r##"br#"" // "# x"##),
        (r"'\'' '/' // x", r"'\'' '/'"),
        (
            "fn f<'a>(x: &'a str) {} // '",
            "fn f < 'a > ( x : & 'a str ) { }",
        ),
        (r"b'\\' b'/'  '\u{2f}'", r"b'\\' b'/' '\u{2f}'"),
        (
            "/// doc\n#[doc = \"x\"]\n#[expect(a, reason = \"b\")]\nfn f() {}",
            "fn f ( ) { }",
        ),
        (
            "#![warn(x)]\n#[derive(A)]\nstruct S;",
            "# [ derive ( A ) ] struct S ;",
        ),
        (
            "#[cfg(test)]\nmod tests {\n{ x } }\nfn f() {}",
            "fn f ( ) { }",
        ),
        (
            "#[cfg(test)]\n#[path = \"x\"]\npub(crate) mod tests;\na",
            "a",
        ),
        ("#[cfg(test)]\nuse a::{b, c};\nd", "d"),
        ("#[cfg(test)]\nconst A: [u8; 2] = [1, 2];\nd", "d"),
        ("#[cfg(test)]\nconst fn a() -> [u8; 2] { b }\nd", "d"),
        (
            "S { #[cfg(test)] a: 1, b }",
            "S { # [ cfg ( test ) ] a : 1 , b }",
        ),
        ("r#type", "r # type"),
    ] {
        assert_eq!(words(text), code, "{text}");
    }
}
