//! XCo at the hosts: an incast that drops packets without it.

use shallows_core::port::{BufferConfig, PortConfig};
use shallows_core::tally::Tally;
use shallows_core::units::Time;
use shallows_core::xco::config::{OnDemand, Protocol};
use shallows_core::xco::coordinator::GateConfig;
use shallows_model::routing::{LinkState, Router};
use shallows_model::{Directives, FlowId, HierarchyConfig, HostId, LinkChange, Outage, XcoConfig};
use shallows_sim::{EngineChoice, FlowOutcome};

use crate::udp::{RACKS, drops, workload};
use crate::world::{Run, World, flow};

/// [`incast_at`] a time after a slot, with which coordination begins.
fn incast(xco: Option<&XcoConfig>, threads: u32) -> (Vec<FlowOutcome>, Tally) {
    incast_at(Time::from_ms(5), xco, threads)
}

/// Twelve hosts of three racks send 200 packets each to host 0, whose port has room for 40. Several
/// threads run it by events and in layers.
fn incast_at(start: Time, xco: Option<&XcoConfig>, threads: u32) -> (Vec<FlowOutcome>, Tally) {
    let run = |engine| incast_on(engine, start, xco, threads);
    if threads == 1 {
        return run(EngineChoice::Automatic);
    }
    let outcome = run(EngineChoice::Events);
    assert!(outcome == run(EngineChoice::Layers), "in layers");
    outcome
}

fn incast_on(
    engine: EngineChoice,
    start: Time,
    xco: Option<&XcoConfig>,
    threads: u32,
) -> (Vec<FlowOutcome>, Tally) {
    let flows = (4..16).map(|src| flow(start, src, 0, 200)).collect();
    let mut world = World::new(RACKS, "controller = 'cubic'", flows);
    world.switches = PortConfig::fifo(BufferConfig::Shared {
        size: "60KB".parse().unwrap(),
    });
    world.setup.xco = xco.cloned();
    (world.engine, world.threads) = (engine, threads);
    let mut run = world.start();
    assert_eq!(run.threads(), threads as usize);
    run.until(Time::from_ms(500));
    let outcomes: Vec<_> = run.flows().map(|(_, outcome)| outcome).collect();
    assert!(
        outcomes.iter().all(|outcome| outcome.fct.is_some()),
        "{outcomes:?}"
    );
    let links = run.fabric.links().ids();
    let dropped = links.map(|link| drops(&run, link)).sum();
    (outcomes, dropped)
}

#[test]
fn timeslices_prevent_the_drops_of_an_incast() {
    let (_, without) = incast(None, 1);
    assert!(without.packets > 100, "{without:?}");
    let in_the_fabric = XcoConfig {
        controller: Some(1),
        ..XcoConfig::default()
    };
    for xco in [XcoConfig::default(), in_the_fabric] {
        let (outcomes, dropped) = incast(Some(&xco), 1);
        assert_eq!(dropped, Tally::default());
        // One after the other: the last byte cannot be there before all have crossed the last link.
        let last = outcomes.iter().filter_map(|outcome| outcome.fct).max();
        assert!(last > Some(Time::from_ns(1_200) * (12 * 200)), "{last:?}");
        // Five windows of each flow, each followed by the hysteresis and two messages.
        assert!(last < Some(Time::from_ms(12)), "{last:?}");
    }
}

#[test]
fn coordinated_runs_are_the_same_on_any_number_of_threads() {
    let forms = [
        Directives::Timeslice,
        Directives::RateLimit,
        Directives::MaxMin,
    ];
    for directives in forms {
        for controller in [None, Some(1)] {
            let xco = XcoConfig {
                directives,
                controller,
                ..XcoConfig::default()
            };
            let one = incast(Some(&xco), 1);
            assert!(one == incast(Some(&xco), 2), "{xco:?}");
            assert!(one == incast(Some(&xco), 4), "{xco:?}");
        }
    }
}

/// Five hosts send messages of 100 B to one, as fast as they can.
#[test]
fn small_messages_have_a_budget() {
    let star = r#"star = { hosts = 6, rate = "1Gbps", delay = "5us" }"#;
    let senders = r#"
        udp = { src = "0-4", dst = 5, start = "5ms", stream = { send = { message = { size = "100B" } } } }
    "#;
    let dropped = |xco| {
        let mut world = World::new(star, "", Vec::new());
        world.workload = workload(star, senders);
        world.switches = PortConfig::fifo(BufferConfig::Shared {
            size: "128KB".parse().unwrap(),
        });
        world.setup.xco = xco;
        let mut run = world.start();
        run.until(Time::from_ms(50));
        let links = run.fabric.links().ids();
        let sent: u64 = (0..5)
            .filter_map(|flow| run.datagrams(FlowId(flow)))
            .map(|of| of.received.datagrams.packets)
            .sum();
        assert!(sent > 20_000, "{sent}");
        links.map(|link| drops(&run, link).packets).sum::<u64>()
    };
    assert!(dropped(None) > 10_000);
    assert_eq!(dropped(Some(XcoConfig::default())), 0);
}

/// Two hosts of a rack send over two spines. When a link to one of them fails, both send over the
/// other, and have to take turns.
#[test]
fn the_controller_follows_links_that_fail() {
    let senders = r#"
        udp = { src = "0-1", dst = "4-5", start = "5ms", stream = { send = { message = { size = "20KB" } } } }
    "#;
    let mut world = World::new(RACKS, "", Vec::new());
    world.workload = workload(RACKS, senders);
    world.switches = PortConfig::fifo(BufferConfig::Shared {
        size: "60KB".parse().unwrap(),
    });
    world.setup.xco = Some(XcoConfig::default());
    let fabric = world.topology.build().unwrap();
    let router = Router::new(&fabric, &world.routing, 1).unwrap();
    let mut path = Vec::new();
    router.path(HostId(0), HostId(4), 0, &mut path).unwrap();
    // Both directions of the cable.
    let cable = [path[1], path[1].reverse()];
    world.changes = cable
        .map(|link| LinkChange {
            at: Time::from_ms(10),
            link,
            state: LinkState::Down,
        })
        .into();
    let mut run = world.start();
    let dropped = |run: &Run| {
        let links = run.fabric.links().ids();
        links.map(|link| drops(run, link).packets).sum::<u64>()
    };
    let received = |run: &Run, flow| {
        run.datagrams(FlowId(flow))
            .unwrap()
            .received
            .delivered
            .bytes
    };
    run.until(Time::from_ms(10));
    assert_eq!(dropped(&run), 0);
    // Slots that ran when the link failed go on to their end.
    run.until(Time::from_ms(15));
    let before = (dropped(&run), [0, 1].map(|flow| received(&run, flow)));
    run.until(Time::from_ms(60));
    assert_eq!(dropped(&run), before.0);
    for flow in [0, 1] {
        // One of four flows; a quarter of 10 Gbps for 45 ms is 14 MB.
        let more = received(&run, flow) - before.1[flow as usize];
        assert!(more > 12_000_000, "{more}");
    }
}

/// Four hosts flood one under XCo and QJUMP. Single packets of a fifth, at QJUMP's top level, do not
/// wait for a slot if that level passes XCo's gates.
#[test]
fn qjumps_top_level_passes_the_gates() {
    let star = r#"star = { hosts = 6, rate = "1Gbps", delay = "5us" }"#;
    let flood = r#"
        udp = { src = "0-3", dst = 5, start = "5ms", service = 1, stream = { send = { message = { size = "20KB" } } } }
    "#;
    let longest = |pass_dscp| {
        let mut world = World::new(star, "", Vec::new());
        world.workload = workload(star, flood);
        let pings = (10..60).map(|ms| flow(Time::from_ms(ms), 4, 5, 1));
        world.workload.flows.extend(pings);
        world.switches = toml::from_str(
            "queues = 2\nscheduler = 'strict'\nbuffer = { shared = { size = '128KB' } }",
        )
        .unwrap();
        let qjump = "epoch = '100us'\nlevels = ['3KB', '1MB']\nexcess = 'hold'";
        world.setup.qjump = Some(toml::from_str(qjump).unwrap());
        let gate = GateConfig {
            pass_dscp,
            ..GateConfig::default()
        };
        world.setup.xco = Some(XcoConfig {
            gate,
            ..XcoConfig::default()
        });
        let mut run = world.start();
        run.until(Time::from_ms(70));
        let links = run.fabric.links().ids();
        assert_eq!(links.map(|link| drops(&run, link).packets).sum::<u64>(), 0);
        run.flows()
            .skip(4)
            .map(|(_, of)| of.fct.unwrap())
            .max()
            .unwrap()
    };
    let (waits, passes) = (longest(None), longest(Some(0)));
    assert!(waits > Time::from_ms(2), "{waits}");
    assert!(passes < Time::from_us(100), "{passes}");
}

/// Times that let a standby take over within the run.
fn hasty() -> XcoConfig {
    XcoConfig {
        protocol: Protocol {
            keepalive: Time::from_us(200),
            retry: Time::from_us(100),
            silence: Time::from_ms(1),
            ..Protocol::default()
        },
        slot: Time::from_us(200),
        ..XcoConfig::default()
    }
}

#[test]
fn traffic_outlives_its_controllers() {
    let crash = |controller, restart| Outage {
        controller,
        crash: Time::from_us(5_500),
        restart,
    };
    // All flows finish in any case.
    let with = |standby, outages| {
        let xco = XcoConfig {
            standby,
            outages,
            ..hasty()
        };
        let one = incast(Some(&xco), 1);
        assert!(one == incast(Some(&xco), 2));
        one.1.packets
    };
    assert_eq!(with(true, vec![]), 0);
    assert_eq!(
        with(true, vec![crash(1, None)]),
        0,
        "the standby gives no directives"
    );
    let for_good = with(false, vec![crash(0, None)]);
    assert!(for_good > 0, "hosts send uncoordinated");
    let restarted = with(false, vec![crash(0, Some(Time::from_us(5_600)))]);
    assert_eq!(restarted, 0, "the only controller leads again");
    with(true, vec![crash(0, None)]);
}

#[test]
fn controllers_of_racks_and_one_above_prevent_the_drops_too() {
    for pod_hosts in [None, Some(4)] {
        let xco = XcoConfig {
            hierarchy: Some(HierarchyConfig {
                pod_hosts,
                root_share: 50,
            }),
            ..XcoConfig::default()
        };
        let one = incast(Some(&xco), 1);
        assert_eq!(one.1, Tally::default());
        // All comes from other racks, which have half of the last link.
        let last = one.0.iter().filter_map(|outcome| outcome.fct).max();
        assert!(last > Some(Time::from_ns(2_400) * (12 * 200)), "{last:?}");
        assert!(one == incast(Some(&xco), 2));
        assert!(one == incast(Some(&xco), 4));
    }
}

/// A controller waits for the longest slot before its first permit, because there may have been
/// another one. Those of a hierarchy have parts of the links, so their slots are longer.
#[test]
fn hosts_send_uncoordinated_until_the_first_slot_of_a_hierarchy() {
    let hierarchy = XcoConfig {
        hierarchy: Some(HierarchyConfig {
            pod_hosts: None,
            root_share: 50,
        }),
        ..XcoConfig::default()
    };
    // Slots of 2 ms, and of 4 ms at half of the rate.
    for (xco, first) in [
        (XcoConfig::default(), Time::from_ms(2)),
        (hierarchy, Time::from_ms(4)),
    ] {
        let drops = |start| incast_at(start, Some(&xco), 1).1.packets;
        assert!(drops(first - Time::from_ms(1)) > 0, "{xco:?}");
        assert_eq!(drops(first + Time::from_ms(1)), 0, "{xco:?}");
    }
}

#[test]
fn on_demand_an_incast_is_noticed_after_it_has_begun() {
    let (_, without) = incast(None, 1);
    let xco = XcoConfig {
        on_demand: Some(OnDemand {
            window: Time::from_us(100),
            ..OnDemand::default()
        }),
        ..XcoConfig::default()
    };
    let one = incast(Some(&xco), 1);
    let (some, all) = (one.1.packets, without.packets);
    assert!(0 < some && some < all, "{some} of {all} drops");
    assert!(one == incast(Some(&xco), 2));
    assert!(one == incast(Some(&xco), 4));
}
