//! The scenarios that are shipped.

use std::fs;

use snapbox::str;

use crate::{directory, read_text, shallows, shipped, write};

#[test]
fn every_shipped_scenario_runs() {
    for name in [
        "quickstart.toml",
        "incast.toml",
        "dumbbell.toml",
        "live.toml",
        "pause.toml",
        "dcqcn.toml",
        "timely.toml",
        "xco-incast.toml",
    ] {
        let directory = directory();
        let run = ["run", "--json", "--set", "name=shipped"];
        let output = shallows(&directory)
            .args(run)
            .arg(shipped(name))
            .output()
            .unwrap();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {problem}");
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["classes"]["all"]["unfinished"], 0, "{name}");
    }
    let count = fs::read_dir(shipped(".")).unwrap().count();
    // Besides these: those as simulated by the authors, a large one of QJUMP and a sawtooth that end
    // amid their flows, and directories with those of SONiC, the live ones of QJUMP and XCo, and
    // studies.
    assert_eq!(count, 18, "a new scenario belongs into this test");
}

/// The two times that the authors' own simulator gives, and that the ideal must be too.
#[test]
fn an_idle_packet_takes_what_it_takes_in_the_authors_simulator() {
    let directory = directory();
    write(
        &directory,
        "idle.csv",
        "start_s,src,dst,bytes,service\n1,0,13,1460,0\n2,0,1,1460,7\n3,143,0,14600,3\n",
    );
    let run = [
        "run", "--flows", "idle.csv", "--format", "csv", "--out", "o",
    ];
    let scenario = shipped("mq-ecn-as-simulated.toml");
    shallows(&directory)
        .args(run)
        .arg(scenario)
        .assert()
        .success();
    snapbox::assert_data_eq!(
        read_text(&directory, "o/flows.csv"),
        str![[r#"
id,start_s,src,dst,bytes,service,fct_us,ideal_fct_us,retransmits,timeouts,marks,finished,sent,dropped
0,1.000000000000,0,13,1460,0,86.528000,86.528000,0,0,0,true,1,0
1,2.000000000000,0,1,1460,7,83.264000,83.264000,0,0,0,true,1,0
2,3.000000000000,143,0,14600,3,97.328000,97.328000,0,0,0,true,10,0

"#]]
    );
}

/// What the authors' own simulator gives on this fabric: three packets are lost at the end of slow
/// start, and two that come later find room in the same NIC.
#[test]
fn two_flows_take_as_long_as_in_the_authors_simulator() {
    let directory = directory();
    write(
        &directory,
        "two.csv",
        "start_s,src,dst,bytes,service\n0.000013304,0,2,3011980,0\n0.000756828,0,3,2920,0\n",
    );
    let run = ["run", "--flows", "two.csv", "--format", "csv", "--out", "o"];
    let fabric = ["leaves=2", "hosts-per-leaf=2", "spines=2"];
    let fabric = fabric.map(|key| format!("--set=topology.leaf-spine.{key}"));
    shallows(&directory)
        .args(run)
        .args(fabric)
        .arg(shipped("mq-ecn-as-simulated.toml"))
        .assert()
        .success();
    snapbox::assert_data_eq!(
        read_text(&directory, "o/flows.csv"),
        str![[r#"
id,start_s,src,dst,bytes,service,fct_us,ideal_fct_us,retransmits,timeouts,marks,finished,sent,dropped
0,0.000013304000,0,2,3011980,0,2688.512000,2560.928000,3,0,675,true,2066,3
1,0.000756828000,0,3,2920,0,321.388000,87.728000,0,0,2,true,2,0

"#]]
    );
}

/// By hand: 1.2 us a link there, 0.04 us back, 21 us a host link and 1 us any other each way. The
/// window of a warmed-up connection lets 11 packets go at once.
#[test]
fn an_idle_packet_of_ears_simulation_takes_its_links() {
    let directory = directory();
    write(
        &directory,
        "idle.csv",
        "start_s,src,dst,bytes,service\n1,0,31,1450,0\n2,0,5,1450,0\n3,0,1,1450,0\n4,9,31,15950,0\n",
    );
    let run = [
        "run", "--flows", "idle.csv", "--format", "csv", "--out", "o",
    ];
    shallows(&directory)
        .args(run)
        .arg(shipped("ear-as-simulated.toml"))
        .assert()
        .success();
    snapbox::assert_data_eq!(
        read_text(&directory, "o/flows.csv"),
        str![[r#"
id,start_s,src,dst,bytes,service,fct_us,ideal_fct_us,retransmits,timeouts,marks,finished,sent,dropped
0,1.000000000000,0,31,1450,0,99.440000,99.440000,0,0,0,true,1,0
1,2.000000000000,0,5,1450,0,92.960000,92.960000,0,0,0,true,1,0
2,3.000000000000,0,1,1450,0,86.480000,86.480000,0,0,0,true,1,0
3,4.000000000000,9,31,15950,0,111.440000,111.440000,0,0,0,true,11,0

"#]]
    );
}

/// Commands in the comments of a scenario are promises.
#[test]
fn what_the_quickstart_suggests_works() {
    let text = fs::read_to_string(shipped("quickstart.toml")).unwrap();
    let suggestions = text
        .lines()
        .filter_map(|line| line.strip_prefix("#     --"));
    let mut count = 0;
    for suggestion in suggestions {
        let (option, _) = suggestion.split_once("  ").unwrap();
        let (name, value) = option.trim().split_once(' ').unwrap();
        let directory = directory();
        let run = shallows(&directory).args(["run", "--set", "workload.poisson.flows=20"]);
        let run = run.arg(format!("--{name}")).arg(value);
        run.arg(shipped("quickstart.toml")).assert().success();
        count += 1;
    }
    assert_eq!(count, 5);
}

/// 1.2 (n - 1) us and 14.68 us across racks or 13.264 us within one (QJUMP's published simulation), at
/// any level.
#[test]
fn an_idle_flow_takes_what_it_takes_in_qjumps_simulator() {
    let directory = directory();
    write(
        &directory,
        "idle.csv",
        "start_s,src,dst,bytes,service\n1,0,31,1460,0\n2,0,1,1460,0\n3,0,31,8760,0\n4,0,1,17520,0\n",
    );
    let run = [
        "run", "--flows", "idle.csv", "--format", "csv", "--out", "o",
    ];
    shallows(&directory)
        .args(run)
        .arg(shipped("qjump-as-simulated.toml"))
        .assert()
        .success();
    snapbox::assert_data_eq!(
        read_text(&directory, "o/flows.csv"),
        str![[r#"
id,start_s,src,dst,bytes,service,fct_us,ideal_fct_us,retransmits,timeouts,marks,finished,sent,dropped
0,1.000000000000,0,31,1460,0,14.680000,14.680000,0,0,0,true,1,0
1,2.000000000000,0,1,1460,0,13.264000,13.264000,0,0,0,true,1,0
2,3.000000000000,0,31,8760,0,20.680000,20.680000,0,0,0,true,6,0
3,4.000000000000,0,1,17520,1,26.464000,26.464000,0,0,0,true,12,0

"#]]
    );
}
