//! Scenarios and studies that are built in: every command takes their names instead of a file.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::Path;

use crate::platform::read_file;
use crate::scenario::{Diagnostic, nearest, unreadable};

/// A scenario or study that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its name, such as `quickstart`.
    pub name: &'static str,
    /// The command that takes it.
    pub kind: ExampleKind,
    /// Its file.
    pub text: &'static str,
}

/// Kind of an example: scenario or study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExampleKind {
    /// For `shallows run`.
    Scenario,
    /// For `shallows sweep`.
    Study,
    /// For `shallows tune --knobs`.
    Knobs,
}

macro_rules! example {
    ($kind:ident, $name:literal, $file:literal) => {
        Example {
            name: $name,
            kind: ExampleKind::$kind,
            text: include_str!(concat!("../scenarios/", $file)),
        }
    };
}

impl Example {
    /// All of them.
    pub const ALL: [Self; 21] = [
        example!(Scenario, "quickstart", "quickstart.toml"),
        example!(Scenario, "dumbbell", "dumbbell.toml"),
        example!(Scenario, "incast", "incast.toml"),
        example!(Scenario, "sawtooth", "sawtooth.toml"),
        example!(Scenario, "pause", "pause.toml"),
        example!(Scenario, "dcqcn", "dcqcn.toml"),
        example!(Scenario, "timely", "timely.toml"),
        example!(Scenario, "live", "live.toml"),
        example!(Scenario, "ear-beside-cubic", "ear-beside-cubic.toml"),
        example!(Scenario, "xco-incast", "xco-incast.toml"),
        example!(Scenario, "xco/failover", "xco/failover.toml"),
        example!(Scenario, "qjump/before", "qjump/before.toml"),
        example!(Scenario, "qjump/after", "qjump/after.toml"),
        example!(Scenario, "qjump-scale", "qjump-scale.toml"),
        example!(Scenario, "mq-ecn-as-simulated", "mq-ecn-as-simulated.toml"),
        example!(Scenario, "ear-as-simulated", "ear-as-simulated.toml"),
        example!(Scenario, "qjump-as-simulated", "qjump-as-simulated.toml"),
        example!(Scenario, "sonic/fabric", "sonic/fabric.toml"),
        example!(Study, "thresholds", "studies/thresholds.toml"),
        example!(Study, "marking", "studies/marking.toml"),
        example!(Knobs, "sonic/schemes", "sonic/schemes.toml"),
    ];

    /// The example with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|example| example.name == name)
    }

    /// The example that a path stands for: one whose name it is, where there is no such file.
    pub fn at(path: &Path) -> Option<Self> {
        Self::find(path.to_str()?).filter(|_| !path.is_file())
    }

    /// The first sentence of the comment that the file begins with.
    pub fn summary(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("# "));
        let comment = lines.collect::<Vec<_>>().join(" ");
        match comment.split_once(". ") {
            Some((first, _)) => format!("{first}."),
            None => comment,
        }
    }
}

/// The text of a file, or of the example whose name `path` is if there is no such file.
pub fn read_text(path: &Path) -> Result<Cow<'static, str>, Diagnostic> {
    if let Some(example) = Example::at(path) {
        return Ok(Cow::Borrowed(example.text));
    }
    let text = read_file(path).map_err(|error| {
        let diagnostic = unreadable(path, &error);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match Example::find(&stem) {
            Some(Example { name, .. }) if error.kind() == ErrorKind::NotFound => {
                diagnostic.help(format!(
                    "{name}, without path and ending, is one that is built in; \
                     `shallows new {name} > {name}.toml` writes it to a file"
                ))
            }
            None if error.kind() == ErrorKind::NotFound && !diagnostic.has_help() => {
                let names = Example::ALL.map(|example| example.name);
                diagnostic.help(match nearest(&stem, &names) {
                    Some(name) => format!("did you mean {name}, which is built in?"),
                    None => "`shallows examples` lists scenarios and studies that are built in"
                        .to_owned(),
                })
            }
            _ => diagnostic,
        }
    });
    text.map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::Scenario;

    #[test]
    fn every_shipped_file_is_built_in() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let mut texts = Vec::new();
        let mut directories = vec![directory];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path: PathBuf = entry.unwrap().path();
                let is_toml = path.extension().is_some_and(|end| end == "toml");
                if path.is_dir() {
                    directories.push(path);
                } else if is_toml {
                    texts.push(fs::read_to_string(path).unwrap());
                }
            }
        }
        assert_eq!(texts.len(), Example::ALL.len());
        for text in texts {
            assert!(Example::ALL.iter().any(|of| of.text == text), "{text}");
        }
    }

    #[test]
    fn a_name_is_read_unless_there_is_a_file() {
        let quickstart = Scenario::load("quickstart").unwrap();
        assert_eq!(quickstart.config.name.as_deref(), Some("quickstart"));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("quickstart");
        fs::write(&file, "seed = 1").unwrap();
        assert_eq!(read_text(&file).unwrap(), "seed = 1");
        let missing = read_text(Path::new("no/such/incast.toml")).unwrap_err();
        assert!(missing.to_string().contains("shallows new incast"));
    }

    #[test]
    fn summaries_are_sentences() {
        for example in Example::ALL {
            let summary = example.summary();
            assert!(summary.ends_with('.') && summary.len() < 400, "{summary}");
            assert!(!summary.contains("    "), "{summary}");
        }
    }
}
