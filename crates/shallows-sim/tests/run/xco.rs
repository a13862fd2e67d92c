//! XCo at the hosts: an incast that drops packets without it.

use shallows_core::port::{BufferConfig, PortConfig};
use shallows_core::tally::Tally;
use shallows_core::units::Time;
use shallows_core::xco::config::{OnDemand, Protocol};
use shallows_sim::{Directives, FlowOutcome, HierarchyConfig, Outage, XcoConfig};

use crate::udp::{RACKS, drops};
use crate::world::{World, flow};

/// Twelve hosts of three racks send 200 packets each to host 0, whose port has room for 40.
fn incast(xco: Option<XcoConfig>, threads: u32) -> (Vec<FlowOutcome>, Tally) {
    // After a slot, with which coordination begins.
    let start = Time::from_ms(5);
    let flows = (4..16).map(|src| flow(start, src, 0, 200)).collect();
    let mut world = World::new(RACKS, "controller = 'cubic'", flows);
    world.switches = PortConfig::fifo(BufferConfig::Shared {
        size: "60KB".parse().unwrap(),
    });
    world.setup.xco = xco;
    world.threads = threads;
    let mut run = world.start();
    assert_eq!(run.threads(), threads as usize);
    run.until(Time::from_ms(500));
    let outcomes: Vec<_> = run.flows().map(|(_, outcome)| outcome).collect();
    assert!(
        outcomes.iter().all(|outcome| outcome.fct.is_some()),
        "{outcomes:?}"
    );
    let links = 0..run.fabric.links().len() as u32;
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
        let (outcomes, dropped) = incast(Some(xco), 1);
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
            let one = incast(Some(xco.clone()), 1);
            assert!(one == incast(Some(xco.clone()), 2), "{xco:?}");
            assert!(one == incast(Some(xco.clone()), 4), "{xco:?}");
        }
    }
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
        let one = incast(Some(xco.clone()), 1);
        assert!(one == incast(Some(xco), 2));
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
    with(false, vec![crash(0, Some(Time::from_ms(6)))]);
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
        let one = incast(Some(xco.clone()), 1);
        assert_eq!(one.1, Tally::default());
        // All comes from other racks, which have half of the last link.
        let last = one.0.iter().filter_map(|outcome| outcome.fct).max();
        assert!(last > Some(Time::from_ns(2_400) * (12 * 200)), "{last:?}");
        assert!(one == incast(Some(xco.clone()), 2));
        assert!(one == incast(Some(xco), 4));
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
    let one = incast(Some(xco.clone()), 1);
    let (some, all) = (one.1.packets, without.packets);
    assert!(0 < some && some < all, "{some} of {all} drops");
    assert!(one == incast(Some(xco.clone()), 2));
    assert!(one == incast(Some(xco), 4));
}
