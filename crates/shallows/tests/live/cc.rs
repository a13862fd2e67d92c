//! Congestion controllers of the kernel, from the command line.

use shallows_testing::{alone, skip};
use snapbox::str;

use crate::support::{directory, shallows};

/// What a command printed, or why it could not work here.
fn cc(arguments: &[&str]) -> Result<String, String> {
    let output = shallows(&directory())
        .arg("cc")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

#[test]
fn a_controller_is_loaded_set_listed_shown_and_unloaded() {
    if let Err(reason) = cc(&["list"]) {
        let explained = ["needs root", "no BTF"];
        assert!(
            explained.iter().any(|what| reason.contains(what)),
            "{reason}"
        );
        skip!("{reason}");
    }
    // Controllers are the machine's.
    let _alone = alone();
    match cc(&["load", "ear", "threshold=108us"]) {
        Err(reason) if reason.contains("is loaded") || reason.contains("takes no TCP") => {
            skip!("{reason}");
        }
        loaded => assert!(loaded.unwrap().contains("shl_ear")),
    }
    let set = cc(&["set", "ear", "g=0.25", "delay=one-way"]);
    let list = cc(&["list"]);
    let show = cc(&["show", "ear", "--json"]);
    let unload = cc(&["unload", "ear"]);

    let settings = "g=0.25 initial-alpha=1 threshold=108us delay=one-way";
    assert!(set.unwrap().contains(settings));
    assert!(list.unwrap().contains(settings));
    let show: serde_json::Value = serde_json::from_str(&show.unwrap()).unwrap();
    assert_eq!(show["counters"]["ear"]["acks"], 0);
    assert!(unload.unwrap().contains("ear is unloaded"));
    assert!(cc(&["unload", "ear"]).unwrap_err().contains("not loaded"));
}

/// Whoever mounts the BPF file system decides who may put pins there.
#[test]
fn the_bpf_file_system_is_mounted_for_root_alone() {
    if !nix::unistd::geteuid().is_root() {
        skip!("it needs root");
    }
    // In a mount namespace of its own, where nothing is mounted there.
    let script = "while umount /sys/fs/bpf 2> /dev/null; do :; done; \"$0\" cc list > /dev/null; \
                  stat -fc %T /sys/fs/bpf; stat -c %a /sys/fs/bpf";
    let program = env!("CARGO_BIN_EXE_shallows");
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script, program])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !text.contains("bpf") {
        skip!(
            "no BPF file system: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    // The kernel may add the sticky bit.
    assert!(text.trim_end().ends_with("700"), "{text}");
}

#[test]
fn settings_are_checked_before_anything_is_loaded() {
    let load = ["cc", "load", "dctcp", "threshold=144us"];
    shallows(&directory())
        .args(load)
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
error: dctcp has no parameter "threshold"; it has g, initial-alpha

"#]]);
}
