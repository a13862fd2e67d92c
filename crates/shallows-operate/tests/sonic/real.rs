//! Configurations of real devices, which are not part of the tree.

use std::fs;

use shallows_operate::sonic::{ConfigDb, ImportOptions, import};

use crate::common::exercise;
use crate::yang::sonic_files;

#[test]
#[ignore = "needs the files of SONiC; SHALLOWS_SONIC names their directory"]
fn every_real_file_is_imported_or_says_why_not() {
    let sonic = sonic_files();
    let mut paths: Vec<_> = fs::read_dir(sonic.join("configs"))
        .expect("the directory exists")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path).expect("a file can be read");
        if let Err(error) = exercise(&name, &text) {
            println!("{error}");
            continue;
        }
        let db = ConfigDb::parse(&name, &text).expect("it was read before");
        match import(&db, &ImportOptions::default()) {
            Ok(ports) => println!("{name}: imported with {} notes", ports.notes.len()),
            Err(error) => println!("{error}"),
        }
    }
}
