//! The versions of other crates that the covered ones are built with.

use std::collections::BTreeSet;

/// A package of a lock file.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    /// Empty for a package of this workspace.
    pub(crate) checksum: &'a str,
}

/// Every package that those of `roots` use, directly or not. Other packages of the workspace are
/// not followed.
pub(crate) fn dependencies<'a>(lock: &'a str, roots: &[&str]) -> BTreeSet<Package<'a>> {
    let all: Vec<(Package<'a>, Vec<&'a str>)> =
        lock.split("[[package]]").skip(1).map(read).collect();
    let mut found = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some(wanted) = open.pop() {
        let mut words = wanted.split(' ');
        let (name, version) = (words.next(), words.next());
        for (package, dependencies) in &all {
            let is_wanted = name == Some(package.name)
                && version.is_none_or(|version| version == package.version);
            let is_ours = package.checksum.is_empty();
            if is_wanted && (!is_ours || roots.contains(&package.name)) && found.insert(*package) {
                open.extend(dependencies);
            }
        }
    }
    found
}

/// A package and what it depends on: names, with a version where there are several.
fn read(text: &str) -> (Package<'_>, Vec<&str>) {
    let mut package = Package::default();
    let mut dependencies = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(" \"") {
            dependencies.push(name.trim_end_matches("\","));
        } else if let Some((key, value)) = line.split_once(" = ") {
            let value = value.trim_matches('"');
            match key {
                "name" => package.name = value,
                "version" => package.version = value,
                "checksum" => package.checksum = value,
                _ => {}
            }
        }
    }
    (package, dependencies)
}
