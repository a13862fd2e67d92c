use std::fs;

use shallows_live::lab::{Lab, clean};

use crate::{need_a_lab, plan};

fn ours() -> Vec<String> {
    let prefix = format!("shallows-{}-", std::process::id());
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

#[test]
fn a_lab_leaves_nothing_behind() {
    need_a_lab!();
    let lab = Lab::build(&plan(2)).unwrap();
    assert_eq!(ours().len(), 3);
    let cleaned = clean().unwrap();
    assert_eq!(
        cleaned.alive.len(),
        3,
        "what lives is left alone: {cleaned:?}"
    );
    lab.remove();
    assert_eq!(ours(), [""; 0]);
}
