//! Several threads where there is little to do for them.

use shallows_core::units::{Bytes, Time};
use shallows_model::workload::FlowSpec;
use shallows_model::{Completion, FlowId};
use shallows_sim::{Control, EngineChoice, Simulation};

use crate::world::{LEAF_SPINE, World, flow};

/// A rack of four at 100 Mbps, and another: a packet takes 120 us, and a lookahead is 10 us.
const SLOW: &str = r#"leaf-spine = { leaves = 2, hosts-per-leaf = 4, spines = 1, host-rate = "100Mbps", host-delay = "5us", fabric-rate = "100Mbps", fabric-delay = "5us" }"#;

/// The fabric of the quickstart.
const SMALL: &str = r#"leaf-spine = { leaves = 4, hosts-per-leaf = 4, spines = 4, host-rate = "10Gbps", host-delay = "5us", fabric-rate = "10Gbps", fabric-delay = "1us" }"#;

/// Both engines, each of which may have several threads.
const ENGINES: [EngineChoice; 2] = [EngineChoice::Events, EngineChoice::Layers];

#[test]
fn sparse_traffic_runs_on_one_thread() {
    for engine in ENGINES {
        let world = |threads| {
            let flows = (0..4).map(|src| flow(Time::ZERO, src, 4 + src, 2_000));
            World {
                threads,
                engine,
                ..World::new(SLOW, "", flows.collect())
            }
        };
        let mut run = world(2).start();
        run.finish();
        assert_eq!(run.threads(), 2);
        assert_eq!(run.shared_events(), 0, "{engine:?}");
        let fcts: Vec<_> = run.flows().map(|(_, outcome)| outcome.fct).collect();
        assert_eq!(fcts, world(1).fcts());
    }
}

/// Where the workload shows before the run that threads have too little to do, there is one part.
#[test]
fn what_is_sparse_from_the_start_is_not_divided() {
    let parts = |topology: &str, flows: Vec<FlowSpec>| {
        let world = World::new(topology, "", flows);
        let (mut model, mut settings) = world.setup(Control::default());
        (settings.threads, settings.engine) = (2, EngineChoice::Automatic);
        // Layers do not fit.
        model.ports.pool = Some(Bytes::new(10_000_000));
        Simulation::new(model, settings).unwrap().threads()
    };
    // Links of 100 Mbps never have many packets in a lookahead.
    let at_once =
        |hosts: u32| (0..hosts).map(move |src| flow(Time::ZERO, src, (src + 1) % hosts, 9));
    assert_eq!(parts(SLOW, at_once(8).collect()), 1);
    // Nor do 16 hosts at 10 Gbps, where a lookahead is 1 us: at most 55 for each part.
    assert_eq!(parts(SMALL, at_once(16).collect()), 1);
    // 144 hosts at 10 Gbps do, unless each waits for a millisecond.
    assert_eq!(parts(LEAF_SPINE, at_once(144).collect()), 2);
    let rarely = at_once(144).zip(0..).map(|(flow, number)| FlowSpec {
        start: Time::from_ms(number),
        ..flow
    });
    assert_eq!(parts(LEAF_SPINE, rarely.collect()), 1);
}

#[test]
fn dense_traffic_runs_on_all_threads() {
    for engine in ENGINES {
        let flows = (0..144).map(|src| flow(Time::ZERO, src, (src + 12) % 144, 500));
        let mut run = World {
            threads: 2,
            engine,
            ..World::new(LEAF_SPINE, "", flows.collect())
        }
        .start();
        run.finish();
        let (shared, all) = (run.shared_events(), run.progress().events);
        assert!(
            shared * 10 > all * 8,
            "{engine:?}: {shared} of {all} events"
        );
    }
}

/// Traffic that is dense for a while and then sparse leaves the threads again.
#[test]
fn threads_stop_where_traffic_becomes_sparse() {
    ENGINES.into_iter().for_each(stop_where_sparse);
}

fn stop_where_sparse(engine: EngineChoice) {
    let dense = (0..144).map(|src| flow(Time::ZERO, src, (src + 12) % 144, 500));
    let sparse = (0..4000).map(|number| {
        let start = Time::from_ms(100) + Time::from_us(100) * u64::from(number);
        flow(start, number % 12, 12 + number % 12, 1)
    });
    let mut run = World {
        threads: 2,
        engine,
        ..World::new(LEAF_SPINE, "", dense.chain(sparse).collect())
    }
    .start();
    run.until(Time::from_ms(100));
    let (dense_shared, before) = (run.shared_events(), run.progress().events);
    run.finish();
    let shared = run.shared_events() - dense_shared;
    let all = run.progress().events - before;
    assert!(all > 20_000, "{all} events");
    assert!(shared < all / 10, "{engine:?}: {shared} of {all} events");
}

/// The receiver has everything, and then its sender, which has had no ACK, is stopped: the flow was
/// complete at the receiver, whichever part is merged first.
#[test]
fn a_stop_after_the_last_byte_changes_no_completion() {
    for (src, dst) in [(0, 4), (4, 0)] {
        let fct = |threads, stop| {
            let world = World {
                threads,
                completion: Completion::Receiver,
                ..World::new(SLOW, "", vec![flow(Time::ZERO, src, dst, 2)])
            };
            let mut run = world.stopping(stop).start();
            run.finish_lossy();
            run.flow(FlowId(0)).1.fct.expect("it is complete")
        };
        let complete = fct(1, Time::from_secs(1));
        let stop = complete + Time::from_us(1);
        for threads in [1, 2] {
            assert_eq!(
                fct(threads, stop),
                complete,
                "{threads} threads, from {src}"
            );
        }
    }
}
