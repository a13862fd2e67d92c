//! Crates embed only what their packages contain.

use std::fs;
use std::path::{Component, Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The first string after each `include_str!` and `include_bytes!`.
fn embedded(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for word in ["include_str!", "include_bytes!"] {
        let after = text.match_indices(word).map(|(at, _)| &text[at..]);
        found.extend(after.filter_map(|after| after.split('"').nth(1)));
    }
    found
}

#[test]
fn no_crate_embeds_a_file_from_outside() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut checked = 0;
    for entry in fs::read_dir(crates).unwrap() {
        let root = entry.unwrap().path();
        let mut files = Vec::new();
        sources(&root, &mut files);
        for file in files {
            // This file has the macros in strings.
            if file.ends_with("tests/embedded.rs") {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let directory = file.parent().unwrap().strip_prefix(&root).unwrap();
            for path in embedded(&text) {
                let mut depth = directory.components().count();
                for part in Path::new(path).components() {
                    depth = match part {
                        Component::ParentDir => depth.checked_sub(1).unwrap_or_else(|| {
                            panic!("{}: {path} is outside of its crate", file.display())
                        }),
                        _ => depth + 1,
                    };
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
}
