//! Files of the user's that are no scenarios, with errors that point into them.

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::de::DeTable;

use super::diagnostic::Diagnostic;
use super::source::{Source, SourcePlace};
use super::value;
use crate::examples::read_text;

/// A parsed TOML file with the places of its keys.
#[derive(Clone, Debug)]
pub struct Document<T> {
    /// Parsed content.
    pub content: T,
    source: Source,
}

impl<T: DeserializeOwned> Document<T> {
    /// Reads a file, or an example by its name.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        Self::parse(path, &read_text(path)?)
    }

    /// Reads a text; errors name it by `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Diagnostic> {
        let mut source = Source::new(path, text, Vec::new());
        let document =
            DeTable::parse(text).map_err(|error| Diagnostic::from_toml(&source, &error))?;
        source.index(document.get_ref());
        let content = value::read(document);
        let content = content.map_err(|error| Diagnostic::from_value(&source, &error))?;
        Ok(Self { content, source })
    }
}

impl<T> Document<T> {
    /// The text.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// A problem with the key at `path`, such as `"axis.0.values"`, or with the table around it.
    pub fn error(&self, path: &str, problem: impl Into<String>) -> Diagnostic {
        Diagnostic::at(&self.source, self.source.span_of(path), problem)
    }

    /// The file and line of the key at `path`, for people.
    pub fn place(&self, path: &str) -> String {
        let file = self.source.path().display();
        match self.source.place(self.source.span_of(path)) {
            SourcePlace::File { line, .. } => format!("{file}:{line}"),
            SourcePlace::WholeFile(_) | SourcePlace::Setting(_) => file.to_string(),
        }
    }
}
