//! Mistakes in `[workload]`.

use snapbox::str;

use super::refused;
use crate::{TINY, shallows, with_tiny, write};

#[test]
fn load_in_percent() {
    refused(
        "load = 0.5",
        "load = 60",
        str![[r#"
error: load is 60, it must be a positive number, at most 2 (a share of the capacity: write 0.6 for 60%)
  --> tiny.toml:15:1
   |
15 | load = 60
   | ^^^^

"#]],
    );
}

#[test]
fn two_workloads_that_are_not_a_list() {
    refused(
        "[workload.poisson]",
        "[[workload.long-lived]]\nsrc = 0\ndst = 1\n\n[workload.poisson]",
        str![[r#"
error: poisson is a second workload in this table: write several as a list, each under [[workload]], such as poisson = { ... }
  --> tiny.toml:14:3
   |
14 | [[workload.long-lived]]
   |   ^^^^^^^^

"#]],
    );
}

#[test]
fn two_sizes_of_a_workload() {
    refused(
        "size = \"30KB\"",
        "size = { cdf = \"web-search\", uniform = { from = \"1KB\", to = \"2KB\" } }",
        str![[r#"
error: [..]
  --> tiny.toml:16:8
...
"#]],
    );
}

#[test]
fn flows_without_an_end() {
    let workload = TINY.split_once("[workload").unwrap().1;
    let long_lived = ".long-lived]]\nsrc = 0\ndst = 1\n";
    refused(
        &format!("[workload{workload}"),
        &format!("[[workload{long_lived}"),
        str![[r#"
error: some flows never stop, so the run would not end
  --> tiny.toml:14:3
   |
14 | [[workload.long-lived]]
   |   ^^^^^^^^
   = set until = "100ms" at the top of the file, or give a stop

"#]],
    );
}

#[test]
fn no_workload() {
    let workload = TINY.split_once("[workload").unwrap().1;
    refused(
        &format!("[workload{workload}"),
        "",
        str![[r#"
error: there is no workload, and no flows are given
 --> tiny.toml
  = add [workload.poisson] or another one, or use --flows FILE.csv

"#]],
    );
}

#[test]
fn bad_list_of_flows() {
    let directory = with_tiny();
    write(
        &directory,
        "flows.csv",
        "start_s,src,dst,bytes,service\n0.1,0,9,1460,0\n",
    );
    let run = ["run", "tiny.toml", "--flows"];
    let assert = shallows(&directory).args(run).arg("flows.csv").assert();
    assert.code(2).stderr_eq(str![[r#"
error: [..]/flows.csv: line 2: dst is 9, the fabric has hosts 0 to 3
 --> --flows flows.csv

"#]]);
    let assert = shallows(&directory).args(run).arg("none.csv").assert();
    assert.code(2).stderr_eq(str![[r#"
error: [..]/none.csv: there is no such file
 --> --flows none.csv

"#]]);
}
