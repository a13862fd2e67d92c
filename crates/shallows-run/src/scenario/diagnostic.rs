//! Errors that point at the place in the scenario that they come from.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;
use std::path::Path;

use shallows_core::port::TEXT_OR_TABLE;

use super::source::{Source, SourcePlace};
use super::value::{Problem, ValueError};

/// A problem of a scenario: message, place and advice.
#[derive(Debug)]
pub struct Diagnostic {
    message: String,
    help: Option<String>,
    place: Option<SourcePlace>,
}

impl Diagnostic {
    /// An error without a place, such as a file that cannot be read.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
            place: None,
        }
    }

    /// An error in what a span of the source says.
    pub(crate) fn at(source: &Source, span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            place: Some(source.place(span)),
            ..Self::new(message)
        }
    }

    /// An error in the syntax.
    pub(crate) fn from_toml(source: &Source, error: &toml::de::Error) -> Self {
        let message = error.message().trim().replace('\n', "; ");
        let span = error.span().unwrap_or_else(|| source.whole());
        Self::at(source, span, message)
    }

    /// An error that a type of the scenario reports.
    pub(crate) fn from_value(source: &Source, error: &ValueError) -> Self {
        let Explanation { message, help } = error.problem.explained();
        let span = error.span.clone().unwrap_or_else(|| source.whole());
        Self {
            message,
            help,
            place: Some(source.place(span)),
        }
    }

    /// The problem, in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Advice on what to write instead, if there is any.
    pub fn hint(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The file and, from 1, the line; no line where the whole file is meant, nothing where it is a
    /// setting.
    pub fn location(&self) -> Option<(&Path, Option<usize>)> {
        match self.place.as_ref()? {
            SourcePlace::File { path, line, .. } => Some((path, Some(*line))),
            SourcePlace::WholeFile(path) => Some((path, None)),
            SourcePlace::Setting(_) => None,
        }
    }

    /// A name that is none of those that are `known`.
    pub(crate) fn unknown(
        source: &Source,
        span: Range<usize>,
        noun: &str,
        name: &str,
        known: &[&str],
    ) -> Self {
        let Explanation { message, help } = Explanation::unknown(noun, name, known);
        Self {
            message,
            help,
            place: Some(source.place(span)),
        }
    }

    /// The same error with the part of a larger work that it is about, such as a point of a study.
    #[must_use]
    pub fn about(mut self, part: &str) -> Self {
        self.message = format!("{} (in {part})", self.message);
        self
    }

    /// Returns whether it has advice.
    pub(crate) fn has_help(&self) -> bool {
        self.help.is_some()
    }

    /// The same with advice.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Error for Diagnostic {}

impl Display for Diagnostic {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        let mut indent = 1;
        match &self.place {
            Some(SourcePlace::Setting(setting)) => write!(f, "\n --> {setting}")?,
            Some(SourcePlace::WholeFile(path)) => write!(f, "\n --> {}", path.display())?,
            Some(SourcePlace::File {
                path,
                line,
                column,
                text,
                width,
            }) => {
                indent = line.to_string().len();
                let (gap, before) = (" ".repeat(indent), " ".repeat(column - 1));
                let carets = "^".repeat(*width);
                write!(f, "\n{gap}--> {}:{line}:{column}", path.display())?;
                write!(f, "\n{gap} |\n{line} | {text}\n{gap} | {before}{carets}")?;
            }
            None => {}
        }
        if let Some(help) = &self.help {
            write!(f, "\n{} = {help}", " ".repeat(indent))?;
        }
        Ok(())
    }
}

/// A problem in words, and advice.
pub(crate) struct Explanation {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Explanation {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: Some(help.into()),
        }
    }

    fn unknown(noun: &str, name: &str, known: &[&str]) -> Self {
        let suggestion = match nearest(name, known) {
            Some(nearest) => format!(", did you mean {nearest:?}?"),
            None => String::new(),
        };
        let message = format!("unknown {noun} {name:?}{suggestion}");
        if let Some(help) = other_file(name, known).or_else(|| elsewhere(name, known)) {
            return Self::new(message, help);
        }
        match known {
            [] => Self::new(message, "nothing is expected here"),
            [one] => Self::new(message, format!("expected {one}")),
            _ => Self::new(message, format!("expected one of {}", known.join(", "))),
        }
    }
}

/// Advice for a study that is read as a scenario, or the other way round.
fn other_file(name: &str, known: &[&str]) -> Option<String> {
    let is_study = ["axis", "scenario", "metrics", "figure"].contains(&name);
    let is_scenario = ["topology", "ports", "workload", "transport"].contains(&name);
    if known.contains(&"topology") && is_study {
        Some("this is a study, which varies a scenario: shallows sweep FILE".to_owned())
    } else if known.contains(&"axis") && is_scenario {
        Some("this is a scenario: shallows run FILE".to_owned())
    } else {
        None
    }
}

/// Advice for the last part of a key that stands at the top of a scenario.
fn elsewhere(name: &str, known: &[&str]) -> Option<String> {
    if !known.contains(&"topology") || nearest(name, known).is_some() {
        return None;
    }
    let mut paths = crate::schema::paths_to(name);
    paths.sort_by_key(|path| (path.matches('.').count(), path.clone()));
    paths.truncate(3);
    (!paths.is_empty()).then(|| format!("did you mean {}?", paths.join(" or ")))
}

impl Problem {
    /// The problem in the words of a scenario.
    pub(crate) fn explained(&self) -> Explanation {
        match self {
            Self::UnknownKey { name, known } => unknown("key", name, known),
            Self::UnknownName { name, known } => unknown("name", name, known),
            Self::MissingKey(name) => Explanation::new(
                format!("missing key {name:?}"),
                match name.as_str() {
                    "rest" => "add rest = \"dwrr\", or rest = \"wrr\", to this table".to_owned(),
                    name => format!("add {name} = ... to this table"),
                },
            ),
            Self::NoParameters => Explanation::new(
                "this has parameters, and none are given",
                "write a table such as { name = { parameter = value } }",
            ),
            Self::SeveralChosen => Explanation::new(
                "more than one is chosen here",
                "keep one of the keys of this table",
            ),
            Self::NothingChosen => {
                Explanation::new("nothing is chosen here", "name one, with its parameters")
            }
            Self::TableForList => Explanation::new(
                "this is one table where a list of tables belongs",
                "write its header with two brackets, as in [[workload.long-lived]]",
            ),
            Self::WrongType { found, expected } => {
                let message = format!("invalid type: {found}, expected {}", in_words(expected));
                let help = (expected == TEXT_OR_TABLE).then(|| {
                    "a number with a unit is a text, such as \"300KB\" or \"65pkts\"".to_owned()
                });
                Explanation { message, help }
            }
            Self::Other(message) => Explanation {
                message: message.trim().replace('\n', "; "),
                help: None,
            },
        }
    }
}

fn unknown(noun: &str, name: &str, known: &[String]) -> Explanation {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Explanation::unknown(noun, name, &known)
}

/// Numbers instead of the names of Rust's types.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "f64" => "a number",
        other => other,
    }
}

/// The name that was probably meant.
pub(crate) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let distances = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), *known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.chars().count() / 3).max(1)).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_mistake_is_near_and_another_word_is_not() {
        let known = ["queues", "buffer", "scheduler"];
        assert_eq!(nearest("quees", &known), Some("queues"));
        assert_eq!(nearest("sheduler", &known), Some("scheduler"));
        assert_eq!(nearest("marker", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn problems_become_words() {
        let texts = |problem: Problem| {
            let explanation = problem.explained();
            (explanation.message, explanation.help.unwrap_or_default())
        };
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let (message, help) = texts(Problem::UnknownKey {
            name: "quees".to_owned(),
            known: names(&["queues", "packet"]),
        });
        assert_eq!(message, "unknown key \"quees\", did you mean \"queues\"?");
        assert_eq!(help, "expected one of queues, packet");
        let (message, help) = texts(Problem::UnknownName {
            name: "dwr".to_owned(),
            known: names(&["fifo", "dwrr"]),
        });
        assert_eq!(message, "unknown name \"dwr\", did you mean \"dwrr\"?");
        assert_eq!(help, "expected one of fifo, dwrr");
        let (message, help) = texts(Problem::MissingKey("buffer".to_owned()));
        assert_eq!(message, "missing key \"buffer\"");
        assert_eq!(help, "add buffer = ... to this table");
        let (message, _) = texts(Problem::WrongType {
            found: "floating point `4.5`".to_owned(),
            expected: "u32".to_owned(),
        });
        assert_eq!(
            message,
            "invalid type: floating point `4.5`, expected a whole number"
        );
    }
}
