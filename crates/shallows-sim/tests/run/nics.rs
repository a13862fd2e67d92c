//! Hosts with several NICs.

use shallows_core::host::qjump::Level;
use shallows_core::units::Time;
use shallows_model::routing::{LinkState, RoutingConfig};
use shallows_model::{HostId, LinkChange, LinkId};
use shallows_sim::{Engine, FlowOutcome};

use crate::world::{World, flow};

const TRANSPORT: &str = r#"
initial-window = 1000
rto = { initial = "5ms", minimum = "5ms" }
controller = { dctcp = { initial-alpha = 0.0 } }
"#;

/// Hosts 0 and 1 have their first NIC at leaf 0, hosts 2 and 3 at leaf 1; with two NICs the other is
/// at the other leaf.
fn topology(nics: u32) -> String {
    format!(
        r#"leaf-spine = {{ leaves = 2, hosts-per-leaf = 2, spines = 1, nics = {nics}, host-rate = "10Gbps", host-delay = "1us", fabric-rate = "100Gbps", fabric-delay = "1us" }}"#
    )
}

/// Host 0 sends 100 packets to each of hosts 2 and 3, which have different NICs by the number of the
/// destination: even ones the first.
fn world(nics: u32) -> World {
    let flows = vec![flow(Time::ZERO, 0, 2, 100), flow(Time::ZERO, 0, 3, 100)];
    World::new(&topology(nics), TRANSPORT, flows)
}

/// A packet of 1500 B takes 1.2 us on a link, an ACK of 40 B 32 ns. With two NICs each flow has one:
/// 100 packets on the first link, the last of them on the second, and its ACK on two links, with
/// 1 us of delay on all four. All ACKs go to host 0's first NIC, where those of host 3 meet those
/// of host 2 and wait for them.
#[test]
fn two_nics_have_twice_the_rate_of_one() {
    let run = world(2).run();
    let Engine::Events(reason) = run.engine() else {
        panic!("layers do not fit");
    };
    assert_eq!(reason.to_string(), "hosts have several NICs");
    let fcts: Vec<_> = run.flows().map(|(_, outcome)| outcome.fct).collect();
    let alone = Time::from_ns(100 * 1_200 + 1_200 + 2 * 32 + 4 * 1_000);
    assert_eq!(fcts, [Some(alone), Some(alone + Time::from_ns(32))]);
    // With one NIC they take turns.
    let last = world(1).fcts().into_iter().flatten().max();
    assert!(last > Some(Time::from_ns(200 * 1_200)), "{last:?}");
}

/// The first NIC of host 0 fails while both are in use.
#[test]
fn flows_leave_a_nic_that_fails() {
    let mut world = world(2);
    let [first, second] = [LinkId(0), LinkId(2)];
    world.changes = vec![LinkChange {
        at: Time::from_us(50),
        link: first,
        state: LinkState::Down,
    }];
    let mut run = world.start();
    run.finish_lossy();
    assert!(run.lost_on(first) > 0);
    let outcomes: Vec<_> = run.flows().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes[1].retransmits, 0);
    // A timeout, and what was lost once more.
    assert!(outcomes[0].timeouts > 0);
    let fct = outcomes[0].fct.expect("the other NIC takes over");
    assert!(fct < Time::from_ms(12), "{fct}");
    let moved = run.port(second).queued(0).packets - 100;
    assert_eq!(moved, u64::from(outcomes[0].retransmits));
}

/// Limits are those of a host: what it sends by either NIC passes one limiter.
#[test]
fn a_gate_is_before_all_nics() {
    let mut world = world(2);
    let limits = "qjump = { epoch = '20us', levels = ['25KB'], excess = 'hold' }";
    world.setup = toml::from_str(limits).expect("limits of one level");
    let run = world.run();
    let limiter = run.limiter(HostId(0)).expect("host 0 has limits");
    let counters = limiter.counters(Level::new(0).expect("a level"));
    assert_eq!(counters.passed.packets, 200);
    // 25 KB in each 20 us are 10 Gbps over both NICs.
    let last = run.flows().filter_map(|(_, outcome)| outcome.fct).max();
    assert!(last > Some(Time::from_us(220)), "{last:?}");
}

/// NICs of a host at leaves of different parts.
#[test]
fn several_nics_are_the_same_on_any_number_of_threads() {
    let outcome = |threads, routing: RoutingConfig| -> Vec<FlowOutcome> {
        let topology = r#"leaf-spine = { leaves = 4, hosts-per-leaf = 4, spines = 2, nics = 2, host-rate = "10Gbps", host-delay = "5us", fabric-rate = "10Gbps", fabric-delay = "20us" }"#;
        let to =
            |src: u32, step: u32| flow(Time::from_us(u64::from(src)), src, (src + step) % 16, 60);
        let flows = (0..16).flat_map(|src| [to(src, 5), to(src, 9)]);
        let mut world = World::new(topology, TRANSPORT, flows.collect());
        world.routing = routing;
        world.threads = threads;
        let run = world.run();
        assert_eq!(run.threads(), threads as usize);
        run.flows().map(|(_, outcome)| outcome).collect()
    };
    for routing in [RoutingConfig::Ecmp, RoutingConfig::TtlHash] {
        let one = outcome(1, routing.clone());
        for threads in [2, 4] {
            assert!(
                outcome(threads, routing.clone()) == one,
                "{threads} threads"
            );
        }
    }
}
