//! Windows that are too long, and windows in which nothing happens.

use std::collections::BTreeMap;
use std::sync::Arc;

use shallows_core::port::{BufferConfig, PerIndex, PortConfig, ShaperConfig};
use shallows_core::tcp::TcpConfig;
use shallows_core::units::{Bytes, Rate, Time};
use shallows_model::{Completion, Connections, HostId, HostSetup, Model, PortSetup};

use super::{Engine, EngineChoice};
use crate::routing::{Router, RoutingConfig};
use crate::topology::TopologyConfig;
use crate::workload::{FlowSpec, Workload};
use crate::{Settings, Simulation, Status};

/// Eight flows between four hosts at a switch.
fn simulation() -> Simulation {
    let port = PortConfig::fifo(BufferConfig::Unlimited);
    simulation_with(port, EngineChoice::Automatic)
}

fn simulation_with(port: PortConfig, engine: EngineChoice) -> Simulation {
    let config = TopologyConfig::Star {
        hosts: 4,
        rate: Rate::from_gbps(10),
        delay: Time::from_us(5),
    };
    let fabric = config.build().unwrap();
    let flow = |number: u32| FlowSpec {
        start: Time::from_ns(u64::from(number) * 700),
        src: HostId(number % 4),
        dst: HostId((number + 1 + number / 4) % 4),
        bytes: 300_000,
        service: 0,
    };
    let model = Model {
        router: Router::new(&fabric, &RoutingConfig::DestinationModulo, 1).unwrap(),
        fabric,
        ports: PortSetup {
            switches: port.clone(),
            hosts: port,
            special: BTreeMap::new(),
            pool: None,
            pause: None,
            host_delay: PerIndex::All(Time::ZERO),
        },
        transport: TcpConfig::default(),
        overrides: Vec::new(),
        connections: Connections::PerFlow,
        hosts: HostSetup::default(),
        applications: Vec::new(),
        workload: Arc::new(Workload {
            flows: (0..8).map(flow).collect(),
            ..Workload::default()
        }),
        completion: Completion::Sender,
        faults: BTreeMap::new(),
        changes: Vec::new(),
        seed: 1,
        until: None,
    };
    let settings = Settings {
        engine,
        ..Settings::default()
    };
    Simulation::new(model, settings).unwrap()
}

/// Runs it with windows that are longer by these times.
fn run(up: Time, down: Time) -> usize {
    let mut simulation = simulation();
    simulation.stretch_windows(up, down);
    let status = simulation.run(Time::from_secs(1), u64::MAX);
    assert_eq!(status, Status::Finished);
    simulation.progress().done
}

#[test]
fn a_window_is_the_least_time_from_host_to_host() {
    let Engine::Layers { window, layers } = *simulation().engine() else {
        panic!("{}", simulation().engine());
    };
    // Twice 5 us and the 32 ns of an ACK of 40 B, each less a picosecond.
    assert_eq!(window, Time::from_ps(2 * (5_032_000 - 1)));
    assert_eq!(layers, 2);
    assert_eq!(run(Time::ZERO, Time::ZERO), 8);
}

/// A packet waits for days at a port of 1 bps: there are ten billion windows in each of them.
#[test]
fn time_in_which_nothing_happens_costs_nothing() {
    let outcomes = |engine| {
        let shaper = ShaperConfig {
            rate: Rate::from_bps(1),
            bucket: Bytes::new(1),
        };
        let port = PortConfig {
            shaper: Some(shaper),
            ..PortConfig::fifo(BufferConfig::Unlimited)
        };
        let mut simulation = simulation_with(port, engine);
        simulation.run(Time::from_secs(8 * 24 * 3600), 100_000);
        let sent: u32 = simulation.flows().map(|(_, outcome)| outcome.sent).sum();
        assert!(sent > 8, "{sent}");
        simulation
            .flows()
            .map(|(_, outcome)| outcome)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        outcomes(EngineChoice::Layers),
        outcomes(EngineChoice::Events)
    );
}

#[test]
#[should_panic(expected = "windows are too long")]
fn switches_that_run_too_far_ahead_are_refused() {
    run(Time::from_us(1), Time::ZERO);
}

#[test]
#[should_panic(expected = "windows are too long")]
fn hosts_that_run_too_far_ahead_are_refused() {
    run(Time::ZERO, Time::from_us(1));
}
