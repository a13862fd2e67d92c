//! Source of a scenario: a file, and settings of the command line on top.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A scenario's text. Positions beyond the end of the file stand for settings, one for each.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    path: PathBuf,
    text: String,
    settings: Vec<String>,
    /// Spans of keys and of items of lists.
    spans: BTreeMap<String, Range<usize>>,
    /// Spans of the keys' plain values.
    values: BTreeMap<String, Range<usize>>,
}

/// A place that a reader finds.
#[derive(Debug)]
pub(crate) enum SourcePlace {
    File {
        path: PathBuf,
        /// From 1, as the column.
        line: usize,
        column: usize,
        text: String,
        /// Number of characters to underline.
        width: usize,
    },
    /// No place in particular, as of something that is missing.
    WholeFile(PathBuf),
    /// An option as it was written.
    Setting(String),
}

impl Source {
    pub(crate) fn new(path: &Path, text: &str, settings: Vec<String>) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            settings,
            spans: BTreeMap::new(),
            values: BTreeMap::new(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The span that stands for a setting.
    pub(crate) fn setting_span(&self, index: usize) -> Range<usize> {
        let start = self.text.len() + 1 + index;
        start..start + 1
    }

    /// Remembers where each key is.
    pub(crate) fn index(&mut self, table: &DeTable<'_>) {
        self.index_table(table, "");
    }

    fn index_table(&mut self, table: &DeTable<'_>, prefix: &str) {
        for (key, value) in table {
            let path = format!("{prefix}{}", key.get_ref());
            self.spans.insert(path.clone(), key.span());
            self.index_value(value, path);
        }
    }

    fn index_value(&mut self, value: &Spanned<DeValue<'_>>, path: String) {
        match value.get_ref() {
            DeValue::Table(table) => self.index_table(table, &format!("{path}.")),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}.{index}");
                    self.spans.insert(path.clone(), item.span());
                    self.index_value(item, path);
                }
            }
            _ => {
                self.values.insert(path, value.span());
            }
        }
    }

    /// Span of the name of a choice at `path`: as its value, or as the key of its parameters.
    pub(crate) fn span_of_name(&self, path: &str, name: &str) -> Range<usize> {
        match self.values.get(path) {
            Some(span) => span.clone(),
            None => self.span_of(&format!("{path}.{name}")),
        }
    }

    /// Span of `path`, such as `"ports.switch"`, or of the nearest table around it.
    pub(crate) fn span_of(&self, path: &str) -> Range<usize> {
        let mut path = path;
        loop {
            if let Some(span) = self.spans.get(path) {
                return span.clone();
            }
            match path.rsplit_once('.') {
                Some((parent, _)) => path = parent,
                None => return self.whole(),
            }
        }
    }

    /// The keys that are given in the table at `path`.
    pub(crate) fn keys_of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        let inside = move |key: &'a String| key.strip_prefix(path)?.strip_prefix('.');
        let keys = self.spans.keys().filter_map(inside);
        keys.filter(|key| !key.contains('.'))
    }

    /// The whole file.
    pub(crate) fn whole(&self) -> Range<usize> {
        0..self.text.len()
    }

    /// Returns whether the scenario says anything at `path`.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.spans.contains_key(path)
    }

    /// Span of `key`, or of a path of keys, in the table at `path` or in one within it.
    pub(crate) fn span_of_key(&self, path: &str, key: &str) -> Option<Range<usize>> {
        let (prefix, suffix) = (format!("{path}."), format!(".{key}"));
        let inside = self.spans.range(prefix.clone()..);
        let mut inside = inside.take_while(|(found, _)| found.starts_with(&prefix));
        let (_, span) = inside.find(|(found, _)| found.ends_with(&suffix))?;
        Some(span.clone())
    }

    /// The last boundary of characters up to a position.
    fn boundary(&self, position: usize) -> usize {
        let mut before = (0..=position).rev();
        before
            .find(|&position| self.text.is_char_boundary(position))
            .unwrap_or_default()
    }

    pub(crate) fn place(&self, span: Range<usize>) -> SourcePlace {
        if let Some(setting) = span.start.checked_sub(self.text.len() + 1) {
            return SourcePlace::Setting(self.settings[setting].clone());
        }
        if span.len() >= self.text.trim_end().len() {
            return SourcePlace::WholeFile(self.path.clone());
        }
        let start = self.boundary(span.start);
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let text = self.text[line_start..].lines().next().unwrap_or_default();
        let line_end = line_start + text.len();
        let end = self.boundary(span.end.min(line_end));
        let width = self.text.get(start..end).map_or(0, |s| s.chars().count());
        SourcePlace::File {
            path: self.path.clone(),
            line: before.matches('\n').count() + 1,
            column: self.text[line_start..start].chars().count() + 1,
            // A tab would move the line away from its carets.
            text: text.replace('\t', " "),
            width: width.max(1),
        }
    }
}
