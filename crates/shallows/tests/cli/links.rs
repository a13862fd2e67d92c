//! Links with faults, and ports of their own.

use snapbox::str;

use crate::{TINY, directory, shallows, with_tiny, write};

/// The summary of the tiny scenario with some settings.
fn summary(settings: &[&str]) -> serde_json::Value {
    let directory = with_tiny();
    let mut run = shallows(&directory).args(["run", "tiny.toml", "--json"]);
    for setting in settings {
        run = run.args(["--set", setting]);
    }
    let output = run.output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{problem}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// How often something was dropped for a reason; none if the reason is not among them.
fn drops(summary: &serde_json::Value, reason: &str) -> Option<u64> {
    let reasons = summary["drops"].as_array().unwrap();
    let found = reasons.iter().find(|row| row["reason"] == reason)?;
    found["other"].as_u64()
}

#[test]
fn a_lossy_link_loses_packets_and_flows_get_over_it() {
    let lossy = summary(&["links=[{ link = \"*->h3\", loss = 0.05, corruption = 0.05 }]"]);
    assert!(drops(&lossy, "lost on a link").unwrap() > 0);
    assert_eq!(lossy["classes"]["all"]["unfinished"], 0);
    assert!(lossy["retransmits"]["small"].as_u64().unwrap() > 0);
    assert_eq!(drops(&summary(&[]), "lost on a link"), None);
}

#[test]
fn a_link_that_is_down_loses_all() {
    let settings = [
        "links=[{ link = \"h3<->switch0\", down = \"100us\", up = \"20ms\" }]",
        "until=10ms",
    ];
    let down = summary(&settings);
    assert!(drops(&down, "lost on a link").unwrap() > 0);
    assert!(down["classes"]["all"]["unfinished"].as_u64().unwrap() > 0);
    let back = summary(&settings[..1]);
    assert_eq!(back["classes"]["all"]["unfinished"], 0);
}

#[test]
fn a_special_port_is_used() {
    let small = "ports.special=[{ links = \"*->h3\", port = { buffer = { shared = { size = \"3KB\" } }, scheduler = \"fifo\" } }]";
    assert_eq!(drops(&summary(&[]), "port full"), Some(0));
    assert!(drops(&summary(&[small]), "port full").unwrap() > 0);
}

/// Runs the tiny scenario with more lines.
fn refused(lines: &str, message: impl snapbox::IntoData) {
    let directory = directory();
    write(&directory, "tiny.toml", &format!("{TINY}{lines}\n"));
    let assert = shallows(&directory).args(["run", "tiny.toml"]).assert();
    assert.code(2).stdout_eq("").stderr_eq(message);
    assert!(!directory.path().join("out").exists(), "work was begun");
}

#[test]
fn mistakes_are_pointed_at() {
    refused(
        "[[links]]\nlink = \"h0->switch1\"\nloss = 0.5",
        str![[r#"
error: there is no link "h0->switch1", did you mean "h0->switch0"?
  --> tiny.toml:20:1
   |
20 | link = "h0->switch1"
   | ^^^^

"#]],
    );
    refused(
        "[[links]]\nlink = \"h0->switch0\"\nloss = 1.5",
        str![[r#"
error: loss is 1.5, it is a share from 0 to 1
  --> tiny.toml:21:1
   |
21 | loss = 1.5
   | ^^^^

"#]],
    );
    refused(
        "[[links]]\nlink = \"h0->switch0\"\ndown = \"5ms\"\nup = \"1ms\"",
        str![[r#"
error: it comes up at 1ms and goes down at 5ms: up must be later
  --> tiny.toml:22:1
   |
22 | up = "1ms"
   | ^^

"#]],
    );
    refused(
        "[[links]]\nlink = \"h0->switch0\"\ndown = \"5ms\"\n[[links]]\nlink = \"all\"\ndown = \"9ms\"",
        str![[r#"
error: h0->switch0 is down at that time by an entry before
  --> tiny.toml:24:1
   |
24 | down = "9ms"
   | ^^^^

"#]],
    );
    refused(
        "[[ports.special]]\nlinks = \"*->h3\"\nport = { queues = 65, buffer = \"unlimited\", scheduler = \"fifo\" }",
        str![[r#"
error: [..]queues[..]
  --> tiny.toml:21:10
   |
21 | port = { queues = 65, buffer = "unlimited", scheduler = "fifo" }
   |          ^^^^^^

"#]],
    );
}
