use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use shallows_core::registry::Registry;
use shallows_core::tcp::EcnEcho;
use shallows_core::tcp::congestion::{AckSample, Control, Window};

use super::*;

/// Wherever in the building of many flows Ctrl-C comes, it ends it.
#[test]
fn building_can_be_interrupted_at_any_time() {
    for workload in [
        "poisson = { load = 0.5, size = '30KB', flows = 60000 }",
        "incast = { receiver = 0, size = '1KB', rounds = 400 }",
        "all-to-all = { size = '1KB', spread = '1s' }",
        "long-lived = [{ src = '0-9', dst = '10-19', count = 600, stop = '1ms' }]",
    ] {
        let text = format!(
            "topology.star = {{ hosts = 200, rate = '1Gbps', delay = '5us' }}
             ports.switch = {{ buffer = 'unlimited', scheduler = 'fifo' }}
             hosts.qjump = {{ epoch = '20us', levels = ['20KB'] }}
             connections = 'warmed-up'
             workload.{workload}"
        );
        let scenario: Scenario = text.parse().unwrap();
        let build = |polls: u32| {
            let left = AtomicU32::new(polls);
            let ask = || left.fetch_sub(1, Ordering::Relaxed) == 0;
            let interrupt = Interrupt::Ask(&ask);
            let plan = scenario.build_unless(interrupt)?;
            plan.simulation_unless(1, interrupt)?;
            Ok::<u32, Failure>(polls - left.load(Ordering::Relaxed))
        };
        let polls = build(u32::MAX).unwrap();
        assert!(polls > 10, "{workload}: {polls}");
        for poll in 0..polls {
            let ended = build(poll).unwrap_err();
            assert!(matches!(ended, Failure::NotBegun), "{workload}: {ended}");
        }
    }
}

/// The controller of some flows is of another crate, so a kept run depends on the program.
#[test]
fn a_custom_controller_of_some_flows_is_found() {
    #[derive(Debug)]
    struct Still;

    impl Control for Still {
        fn grow(&mut self, _: &mut Window, _: &AckSample) {}
    }

    let mut registry = Registry::default();
    registry.controller("still", EcnEcho::Precise, |_, _| Ok(Box::new(Still)));
    let has_custom = |controller: &str| {
        let text = format!(
            "topology.star = {{ hosts = 3, rate = '1Gbps', delay = '5us' }}
             ports.switch = {{ buffer = 'unlimited', scheduler = 'fifo' }}
             workload.flows = [{{ start = '0s', src = 0, dst = 1, size = '1MB' }}]
             transports = [{{ services = [0], set = {{ controller = '{controller}' }} }}]"
        );
        let (path, base) = (Path::new("x.toml"), Path::new(""));
        let scenario = Scenario::parse_in(path, &text, &[], base, &registry).unwrap();
        scenario.build().unwrap();
        scenario.has_custom_schemes()
    };
    assert!(has_custom("still"));
    assert!(!has_custom("reno"));
}

#[test]
fn what_keeps_a_simulation_from_starting_is_shown_at_its_key() {
    let text = r#"
topology.star = { hosts = 3, rate = "1Gbps", delay = "5us" }
ports.switch = { buffer = "unlimited", scheduler = "fifo" }
hosts.qjump = { epoch = "20us", levels = ["20B"] }
workload.flows = [{ start = "0s", src = 0, dst = 1, size = "1MB" }]
"#;
    let scenario: Scenario = text.parse().unwrap();
    let plan = scenario.build().unwrap();
    let refusal = plan.simulation(1).unwrap_err().to_string();
    assert!(refusal.contains("never pass"), "{refusal}");
    assert!(refusal.contains("scenario:4:"), "{refusal}");
}
