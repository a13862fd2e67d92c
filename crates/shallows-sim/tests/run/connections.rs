//! Connections that outlast their flows.

use shallows_core::units::Time;
use shallows_model::workload::{FlowSpec, Stop};
use shallows_model::{Connections, FlowId, HostId, TransportOverride};
use shallows_sim::{EngineChoice, Simulation, Status};

use crate::world::{LEAF_SPINE, World, endless, flow};

const TRANSPORT: &str = r#"
initial-window = 2
after-idle = "keep"
rto = { initial = "5ms", minimum = "5ms" }
controller = { dctcp = { initial-alpha = 0.0 } }
"#;

fn world(connections: Connections, flows: &[(u64, u64)]) -> World {
    let flows = flows
        .iter()
        .map(|&(start, packets)| flow(Time::from_us(start), 0, 143, packets))
        .collect();
    World {
        connections,
        ..World::new(LEAF_SPINE, TRANSPORT, flows)
    }
}

#[test]
fn a_flow_goes_on_with_the_window_of_the_one_before() {
    // 30 packets in windows of 2, 4, 8 and 16 take four round trips; the next 20 fit the window.
    let flows = [(0, 30), (1_000, 20)];
    let kept = world(Connections::Persistent, &flows).fcts();
    let fresh = world(Connections::PerFlow, &flows).fcts();
    assert_eq!(kept[0], fresh[0]);
    let (Some(kept), Some(fresh)) = (kept[1], fresh[1]) else {
        panic!("both complete");
    };
    // One round trip and 20 packets against four round trips.
    assert_eq!(kept, Time::from_ps(86_528_000) + Time::from_ns(1200) * 19);
    assert!(fresh > Time::from_ps(86_528_000) * 3);
}

#[test]
fn a_busy_connection_is_left_alone() {
    // The second starts while the first is on its way, so it has a connection of its own; the
    // third takes over that of the first, which is the older one.
    let flows = [(0, 30), (100, 2), (2_000, 20), (2_000, 20)];
    let fcts = world(Connections::Persistent, &flows).fcts();
    let alone = Time::from_ps(86_528_000) + Time::from_ns(1200) * 19;
    assert!(fcts[2].is_some_and(|fct| fct >= alone && fct < Time::from_us(150)));
    // The window of the second connection had grown to 4 only.
    assert!(fcts[3].is_some_and(|fct| fct > Time::from_us(170)));
}

#[test]
fn a_warmed_up_connection_has_sent_a_segment() {
    // A window of 2 has grown to 3, and then to 6: three packets, a round trip, three more. A cold
    // connection would send 2, then 4.
    let alone = |packets: u64| Time::from_ps(86_528_000) + Time::from_ns(1200) * (packets - 1);
    let fcts = |connections, flows| world(connections, flows).fcts();
    let flows = [(0, 3), (1_000, 6), (10_000, 12)];
    let warm = fcts(Connections::WarmedUp, &flows);
    assert_eq!(warm, [3, 6, 12].map(|packets| Some(alone(packets))));
    let cold = fcts(Connections::Persistent, &flows);
    assert!(cold[0].is_some_and(|fct| fct > alone(3)));
}

#[test]
fn a_warmed_up_connection_knows_its_base_delay() {
    // Two hosts share a link of 1 Gbps. A cold connection that starts into the queue of the other,
    // some 700 us long, takes that for its base delay and goes on; a warm one takes it for
    // congestion.
    let dumbbell = r#"dumbbell = { left = 2, right = 1, rate = "10Gbps", delay = "5us", uplink-rate = "1Gbps", uplink-delay = "5us" }"#;
    let transport = r#"
        initial-window = 20
        receive-window = 60
        handshake = true
        controller = { delay-dctcp = { t = "300us", initial-alpha = 1.0 } }
    "#;
    let share = |connections| {
        let mut late = endless(1, 2);
        late.start = Time::from_ms(5);
        let mut flows = vec![endless(0, 2), late];
        flows[0].service = 1;
        let mut world = World::new(dumbbell, transport, flows).stopping(Time::from_ms(50));
        world.connections = connections;
        // The first hears nothing and keeps 60 packets in the queue.
        world.overrides.push(TransportOverride {
            services: vec![1],
            hosts: Vec::new(),
            transport: toml::from_str("controller = 'reno'\nreceive-window = 60").unwrap(),
        });
        let run = world.run();
        let delivered: Vec<_> = run.flows().map(|(_, outcome)| outcome.delivered).collect();
        delivered[1] as f64 / delivered.iter().sum::<u64>() as f64
    };
    let (cold, warm) = (share(Connections::Persistent), share(Connections::WarmedUp));
    assert!(cold > 0.2, "{cold}");
    assert!(warm < 0.1, "{warm}");
}

#[test]
fn an_endless_flow_on_a_kept_connection_stops() {
    let mut world = world(Connections::Persistent, &[(0, 30), (1_000, 1), (5_000, 20)]);
    world.workload.flows[FlowId(1)].bytes = FlowSpec::ENDLESS;
    world.workload.stops = vec![Stop {
        flow: FlowId(1),
        at: Time::from_us(3_000),
    }];
    let fcts = world.fcts();
    assert_eq!(fcts[1], Some(Time::from_us(2_000)));
    assert!(
        fcts[2].is_some(),
        "the next one has a connection of its own"
    );
}

#[test]
fn threads_do_not_matter() {
    let flows: Vec<_> = (0..100)
        .map(|n: u64| {
            flow(
                Time::from_us(n * 7),
                (n % 5) as u32,
                140 + (n % 3) as u32,
                1 + n % 40,
            )
        })
        .collect();
    let run = |engine, threads| {
        World {
            connections: Connections::Persistent,
            engine,
            threads,
            ..World::new(LEAF_SPINE, TRANSPORT, flows.clone())
        }
        .run()
    };
    let alone = run(EngineChoice::Automatic, 1);
    let alone: Vec<_> = alone.flows().map(|(_, outcome)| outcome).collect();
    for engine in [EngineChoice::Events, EngineChoice::Layers] {
        for threads in [2, 3, 4, 5] {
            let simulation = run(engine, threads);
            assert_eq!(simulation.threads(), threads as usize);
            let together: Vec<_> = simulation.flows().map(|(_, outcome)| outcome).collect();
            assert_eq!(together, alone, "{engine:?} on {threads} threads");
        }
    }
}

/// Two controllers in one run: the flows of service 1 are deaf to marks, and those of service 0,
/// which are not, leave them the link.
#[test]
fn services_and_hosts_may_have_transports_of_their_own() {
    let star = r#"star = { hosts = 3, rate = "1Gbps", delay = "5us" }"#;
    let shares = |services: Vec<u16>, hosts: Vec<u32>| {
        let flows = vec![
            endless(0, 2),
            FlowSpec {
                service: 1,
                ..endless(1, 2)
            },
        ];
        let mut world = World::new(star, "", flows).stopping(Time::from_ms(100));
        world.switches = toml::from_str(
            "buffer = { shared = { size = '200KB' } }\nscheduler = 'fifo'
            marker.scheme.per-queue.threshold = '20pkts'",
        )
        .unwrap();
        let transport = toml::from_str("controller = 'cubic'\necn = 'off'").unwrap();
        if !services.is_empty() || !hosts.is_empty() {
            world.overrides.push(TransportOverride {
                services,
                hosts: hosts.into_iter().map(HostId).collect(),
                transport,
            });
        }
        let run = world.run();
        let delivered: Vec<_> = run.flows().map(|(_, outcome)| outcome.delivered).collect();
        delivered[1] as f64 / delivered.iter().sum::<u64>() as f64
    };
    let alike = shares(Vec::new(), Vec::new());
    assert!(alike < 0.6, "{alike}");
    let by_service = shares(vec![1], Vec::new());
    assert!(by_service > 0.9, "{by_service}");
    let by_host = shares(Vec::new(), vec![1]);
    assert_eq!(by_service, by_host);
    let neither = shares(vec![1], vec![0]);
    assert_eq!(alike, neither, "service 1 of host 0 sends nothing");
}

#[test]
fn many_small_pieces_on_threads_do_not_matter() {
    let flows: Vec<_> = (0..60)
        .map(|n: u64| {
            let (src, dst) = ((n % 30) as u32, 140 - (n % 50) as u32);
            flow(Time::from_us(n * 3), src, dst, 1 + n % 20)
        })
        .collect();
    let run = |engine, threads, most| {
        let world = World {
            threads,
            engine,
            ..World::new(LEAF_SPINE, TRANSPORT, flows.clone())
        };
        let mut run = world.start();
        let mut progress = Vec::new();
        for us in (1..400).step_by(4) {
            let end = Time::from_us(us);
            while Simulation::run(&mut run, end, most) == Status::Running {}
            progress.push(run.progress().done);
            assert_eq!(
                run.next_time().is_none(),
                run.progress().done == flows.len()
            );
        }
        run.finish();
        let outcomes: Vec<_> = run.flows().map(|(_, outcome)| outcome).collect();
        (progress, outcomes)
    };
    let alone = run(EngineChoice::Automatic, 1, u64::MAX);
    for engine in [EngineChoice::Events, EngineChoice::Layers] {
        for threads in [2, 4, 7] {
            assert_eq!(run(engine, threads, u64::MAX), alone);
            assert_eq!(run(engine, threads, 1), alone);
        }
    }
}
