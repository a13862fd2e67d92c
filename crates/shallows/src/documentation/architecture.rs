//! The tree in ARCHITECTURE.md against the tree of files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::root;

/// Notes beside an entry begin at this column or after it.
const NOTES: usize = 14;

/// Paths of the tree, with their notes, and its text by crate.
struct Tree {
    paths: Vec<PathBuf>,
    crates: BTreeMap<String, String>,
}

fn tree() -> Tree {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let block = text.split("```").nth(1).unwrap();
    let mut open: Vec<(usize, PathBuf)> = Vec::new();
    let (mut paths, mut crates) = (Vec::new(), BTreeMap::<String, String>::new());
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        if indent < NOTES {
            let name = line.split_whitespace().next().unwrap();
            open.retain(|(of, _)| *of < indent);
            let path = open.last().map_or(PathBuf::new(), |(_, path)| path.clone());
            let path = path.join(name.trim_end_matches('/'));
            open.push((indent, path.clone()));
            paths.push(path);
        }
        let mut parts = open.iter().flat_map(|(_, path)| path.iter());
        if let Some(name) = parts.find(|part| part.to_string_lossy().starts_with("shallows")) {
            let of_crate = crates.entry(name.to_string_lossy().into_owned());
            of_crate.or_default().push_str(line);
        }
    }
    Tree { paths, crates }
}

/// Names of the directories in a directory.
fn directories(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    let inside = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let names = inside.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

#[test]
fn what_it_names_is_there() {
    let tree = tree();
    assert!(tree.paths.len() > 80, "{}", tree.paths.len());
    for path in tree.paths {
        if !path.to_string_lossy().contains('<') {
            assert!(root().join(&path).exists(), "{}", path.display());
        }
    }
}

#[test]
fn every_crate_and_every_room_is_named() {
    let tree = tree();
    for name in directories(&root().join("crates")) {
        let of_crate = tree.crates.get(&name);
        let of_crate = of_crate.unwrap_or_else(|| panic!("{name} is not in the tree"));
        for room in directories(&root().join("crates").join(&name).join("src")) {
            let mut words = of_crate.split(|of: char| !of.is_alphanumeric() && of != '_');
            assert!(words.any(|word| word == room), "{name}/src/{room}");
        }
    }
}

/// Files of these crates whose code is unsafe, tests apart.
#[test]
fn unsafe_code_is_where_it_says() {
    let tree = tree();
    let mut found = 0;
    for name in ["shallows-bpf", "shallows-live"] {
        let mut open = vec![root().join("crates").join(name).join("src")];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                    continue;
                }
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                if !code.contains("allow(unsafe_code)") {
                    continue;
                }
                // Of a module, its directory.
                let place = match path.file_name() {
                    Some(file) if file != "mod.rs" => format!("/{}", file.to_string_lossy()),
                    _ => format!("{}/", directory.file_name().unwrap().to_string_lossy()),
                };
                assert!(tree.crates[name].contains(&place), "{}", path.display());
                found += 1;
            }
        }
    }
    assert!(found > 4, "{found}");
}
