//! The files that decide the results of a run: modules of a crate from its root on, and the files
//! that they embed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use super::{lockfile, tokens};

/// A crate, or one file of a crate.
pub(crate) struct Part {
    /// The crate.
    pub(crate) name: &'static str,
    /// Its directory, relative to this crate's.
    directory: &'static str,
    /// The file to begin with.
    root: &'static str,
    follow: Follow,
}

enum Follow {
    /// All modules but these, which are declared in the root.
    AllBut(&'static [&'static str]),
    /// No modules.
    Nothing,
}

const LIBRARY: &str = "src/lib.rs";

const fn library(
    name: &'static str,
    directory: &'static str,
    skip: &'static [&'static str],
) -> Part {
    Part {
        name,
        directory,
        root: LIBRARY,
        follow: Follow::AllBut(skip),
    }
}

/// The parts that decide the results of a simulated run, and its statistics. `measured.rs` says what
/// is kept of a run.
pub(crate) const SIMULATED: &[Part] = &[
    library("shallows-core", "../shallows-core", &[]),
    library("shallows-model", "../shallows-model", &[]),
    library("shallows-sim", "../shallows-sim", &[]),
    library(
        "shallows-results",
        "../shallows-results",
        &["figure", "report"],
    ),
    // Examples are scenarios like those in files.
    library("shallows-run", ".", &["examples", "live"]),
    Part {
        name: "shallows-study",
        directory: "../shallows-study",
        root: "src/measured.rs",
        follow: Follow::Nothing,
    },
];

/// The parts that decide the results of a live run, besides [`SIMULATED`].
pub(crate) const LIVE: &[Part] = &[
    library("shallows-bpf", "../shallows-bpf", &[]),
    library("shallows-live", "../shallows-live", &[]),
    Part {
        name: "shallows-run",
        directory: ".",
        root: "src/live.rs",
        follow: Follow::AllBut(&[]),
    },
];

/// A source that cannot be followed.
pub(crate) struct SourceError {
    path: PathBuf,
    problem: String,
}

impl fmt::Debug for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

/// Files, with what of them counts.
#[derive(Default)]
pub(crate) struct Covered {
    /// The directory of this crate.
    here: PathBuf,
    /// Tokens or bytes, by path.
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    /// Files and directories whose change can change the id.
    pub(crate) watched: BTreeSet<PathBuf>,
}

impl Covered {
    /// What `parts` consist of, seen from `here`, the directory of this crate. A part that is not
    /// there, as in a package from a registry, is left to the version.
    pub(crate) fn of(here: &Path, parts: &[Part]) -> Result<Self, SourceError> {
        let mut covered = Self {
            here: here.to_owned(),
            ..Self::default()
        };
        for part in parts {
            let directory = here.join(part.directory);
            let root = directory.join(part.root);
            if root.is_file() {
                covered.watched.insert(directory.join("src"));
                covered.add_module(&directory, &root, &part.follow)?;
            }
        }
        let lock = here.join("../../Cargo.lock");
        if let Ok(text) = fs::read_to_string(&lock) {
            let libraries = parts.iter().filter(|part| part.root == LIBRARY);
            let roots: Vec<&str> = libraries.map(|part| part.name).collect();
            let packages = lockfile::dependencies(&text, &roots);
            let lines = packages.iter();
            let lines = lines.map(|of| format!("{} {} {}\n", of.name, of.version, of.checksum));
            let lines: String = lines.collect();
            covered.watched.insert(lock.clone());
            covered.files.insert(lock, lines.into_bytes());
        }
        Ok(covered)
    }

    /// A hash of all that, by FNV-1a: not for adversaries, and stable for ever.
    pub(crate) fn id(&self, version: &str) -> u64 {
        let files = self.files.iter();
        let files = files.flat_map(|(path, content)| {
            let path = path.strip_prefix(&self.here).unwrap_or(path);
            let path = path.to_string_lossy().into_owned().into_bytes();
            path.into_iter().chain([0]).chain(content.iter().copied())
        });
        version
            .bytes()
            .chain(files)
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
    }

    fn add_module(
        &mut self,
        package: &Path,
        path: &Path,
        follow: &Follow,
    ) -> Result<(), SourceError> {
        let fail = |problem: String| SourceError {
            path: path.to_owned(),
            problem,
        };
        let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let code = tokens::code(&text);
        // No token has a line break at its end.
        let content = code.iter().flat_map(|token| [token, "\n"]);
        let content: String = content.collect();
        self.files.insert(path.to_owned(), content.into_bytes());
        for pattern in includes(&code).map_err(&fail)? {
            let pattern = pattern.rooted(package, path.parent().unwrap_or(Path::new("")));
            let files = pattern.files().map_err(|error| fail(error.to_string()))?;
            if files.is_empty() {
                return Err(fail(format!("nothing is embedded by {pattern:?}")));
            }
            for file in files {
                let content = fs::read(&file).map_err(|error| fail(error.to_string()))?;
                self.watched.insert(file.clone());
                self.files.insert(file, content);
            }
        }
        let Follow::AllBut(skip) = follow else {
            return Ok(());
        };
        for name in modules(&code).filter(|name| !skip.contains(name)) {
            let module = module_path(path, name)
                .ok_or_else(|| fail(format!("there is no file of the module {name}")))?;
            self.add_module(package, &module, &Follow::AllBut(&[]))?;
        }
        Ok(())
    }
}

/// Modules in files of their own.
fn modules<'a>(code: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    code.windows(3).filter_map(|three| match three {
        ["mod", name, ";"] => Some(*name),
        _ => None,
    })
}

/// The file of the module `name` that the file at `path` declares.
fn module_path(path: &Path, name: &str) -> Option<PathBuf> {
    let parent = path.parent()?;
    let children = match path.file_stem()?.to_str()? {
        "lib" | "mod" => parent.to_owned(),
        stem => parent.join(stem),
    };
    let candidates = [
        children.join(format!("{name}.rs")),
        children.join(name).join("mod.rs"),
    ];
    candidates.into_iter().find(|path| path.is_file())
}

/// Paths of embedded files: what is before and after the part that a macro fills in, if one does.
#[derive(Clone, Debug, PartialEq)]
struct Pattern {
    from_package: bool,
    before: String,
    after: Option<String>,
}

impl Pattern {
    /// From the directory that it is relative to.
    fn rooted(self, package: &Path, module: &Path) -> Self {
        let root = if self.from_package { package } else { module };
        let path = root.join(self.before.trim_start_matches('/'));
        Self {
            before: path.to_string_lossy().into_owned(),
            ..self
        }
    }

    /// The files that it can mean.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let Some(after) = &self.after else {
            return Ok(vec![PathBuf::from(&self.before)]);
        };
        let directory = match self.before.rfind('/') {
            Some(end) => &self.before[..end],
            None => ".",
        };
        let mut files = Vec::new();
        walk(Path::new(directory), &mut files)?;
        files.retain(|file| {
            let name = file.to_string_lossy();
            name.starts_with(&self.before) && name.ends_with(after.as_str())
        });
        Ok(files)
    }
}

/// Every file below a directory.
pub(crate) fn walk(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The files that `include_str!` and its like embed.
fn includes(code: &[&str]) -> Result<Vec<Pattern>, String> {
    let mut patterns = Vec::new();
    for (at, three) in code.windows(3).enumerate() {
        if let ["include_str" | "include_bytes" | "include", "!", "("] = three {
            let end = tokens::closing(code, at + 2).ok_or("a bracket is open")?;
            let arguments = &code[at + 3..end];
            let pattern = pattern(arguments);
            patterns.push(pattern.ok_or_else(|| {
                let arguments = arguments.concat();
                format!(
                    "the build id does not understand {}!({arguments})",
                    three[0]
                )
            })?);
        }
    }
    Ok(patterns)
}

/// `"path"`, or `concat!` of literals and at most one thing between them that is not.
fn pattern(arguments: &[&str]) -> Option<Pattern> {
    let parts = match arguments {
        ["concat", "!", "(", parts @ .., ")"] => parts,
        one => one,
    };
    let parts = parts.strip_suffix(&[","]).unwrap_or(parts);
    let (from_package, parts) = match parts {
        [
            "env",
            "!",
            "(",
            "\"CARGO_MANIFEST_DIR\"",
            ")",
            ",",
            rest @ ..,
        ] => (true, rest),
        all => (false, all),
    };
    let mut pattern = Pattern {
        from_package,
        before: String::new(),
        after: None,
    };
    for part in parts.split(|token| *token == ",") {
        let literal = match part {
            [literal] => literal
                .strip_prefix('"')
                .and_then(|of| of.strip_suffix('"')),
            _ => None,
        };
        match (literal, &mut pattern.after) {
            (Some(text), None) => pattern.before.push_str(text),
            (Some(text), Some(after)) => after.push_str(text),
            (None, after @ None) => *after = Some(String::new()),
            (None, Some(after)) => after.clear(),
        }
    }
    (!pattern.before.is_empty()).then_some(pattern)
}
