use std::collections::BTreeSet;

use super::*;

#[test]
fn permutations_have_each_host_once() {
    let fabric = leaf_spine();
    let workload = generate(
        "[permutation]\nsize = '10MB'\nspread = '100us'\nstart = '1ms'",
        &fabric,
    );
    assert!(is_sorted(&workload));
    let sources: BTreeSet<HostId> = workload.flows.iter().map(|flow| flow.src).collect();
    let targets: BTreeSet<HostId> = workload.flows.iter().map(|flow| flow.dst).collect();
    assert_eq!((sources.len(), targets.len()), (144, 144));
    for flow in &workload.flows {
        assert_ne!(flow.src, flow.dst);
        assert_eq!(flow.bytes, 10_000_000);
        let starts = Time::from_us(1000)..Time::from_us(1100);
        assert!(starts.contains(&flow.start));
    }
}

#[test]
fn a_shift_is_a_permutation() {
    let workload = generate("[permutation]\nsize = '1KB'\nshift = 2", &star(5));
    let pairs: Vec<_> = workload.flows.iter().map(|f| (f.src.0, f.dst.0)).collect();
    assert_eq!(pairs, [(0, 2), (1, 3), (2, 4), (3, 0), (4, 1)]);
    assert_eq!(
        refusal("[permutation]\nsize = '1KB'\nshift = 5", &star(5)),
        "shift, modulo the number of hosts, must not be zero"
    );
}

#[test]
fn all_to_all_has_every_pair() {
    let workload = generate("[all-to-all]\nsize = '1KB'\nhosts = '1-3'", &star(5));
    let pairs: Vec<_> = workload.flows.iter().map(|f| (f.src.0, f.dst.0)).collect();
    assert_eq!(pairs, [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]);
    assert_eq!(
        refusal("[all-to-all]\nsize = '1KB'\nhosts = 1", &star(5)),
        "all-to-all needs at least 2 hosts"
    );
}

#[test]
fn incast_rounds_wait_for_each_other() {
    let text = "[incast]\nreceiver = 'h3'\nblock = '10B'\nrounds = 3\nstart = '1us'
                pause = '5us'";
    let workload = generate(text, &star(4));
    let bytes: Vec<u64> = workload.flows.iter().map(|flow| flow.bytes).collect();
    assert_eq!(bytes, [4, 3, 3, 4, 3, 3, 4, 3, 3]);
    assert!(
        workload.flows.as_slice()[..3]
            .iter()
            .all(|f| f.start == Time::from_us(1))
    );
    assert!(
        workload.flows.as_slice()[3..]
            .iter()
            .all(|f| f.start == FlowSpec::AT_BARRIER)
    );
    assert!(
        workload
            .flows
            .iter()
            .all(|flow| flow.dst == HostId(3) && flow.src < HostId(3))
    );
    let barrier = |waits_for: [u32; 3], releases: [u32; 3]| Barrier {
        waits_for: waits_for.map(FlowId).into(),
        releases: releases.map(FlowId).into(),
        pause: Time::from_us(5),
    };
    let expected = [barrier([0, 1, 2], [3, 4, 5]), barrier([3, 4, 5], [6, 7, 8])];
    assert_eq!(workload.barriers, expected);
}

#[test]
fn incast_mistakes_are_refused() {
    let message = |rest: &str| refusal(&format!("[incast]\n{rest}"), &star(4));
    assert_eq!(message("receiver = 1"), "give either size or block");
    assert_eq!(
        message("receiver = 1\nblock = '2B'"),
        "a sender's part of the block must not be zero"
    );
    assert_eq!(
        message("receiver = '1-2'\nsize = '1KB'"),
        "\"1-2\" must be one host, it is 2"
    );
    assert_eq!(
        message("receiver = 1\nsenders = 1\nsize = '1KB'"),
        "a flow from h1 to itself"
    );
}

#[test]
fn long_lived_flows_start_and_stop() {
    let text = "long-lived = [
        { src = 0, dst = 2, start = '10ms', stop = '20ms', service = 1 },
        { src = 'h0,h1', dst = 2, count = 2, stop = '5ms' },
        { src = 1, dst = 3 },
    ]";
    let workload = generate(text, &star(4));
    assert_eq!(workload.flows.len(), 6);
    assert!(is_sorted(&workload));
    assert!(workload.flows.iter().all(|f| f.bytes == FlowSpec::ENDLESS));
    assert_eq!(workload.flows[FlowId(5)].service, 1);
    let stops: Vec<_> = workload
        .stops
        .iter()
        .map(|stop| (stop.flow.0, stop.at))
        .collect();
    let ms = Time::from_ms;
    assert_eq!(
        stops,
        [(0, ms(5)), (1, ms(5)), (2, ms(5)), (3, ms(5)), (5, ms(20))]
    );
    let text = "long-lived = [{ src = 0, dst = 2, start = '2s', stop = '1s' }]";
    assert_eq!(
        refusal(text, &star(4)),
        "a flow stops at 1s, which is not after its start at 2s"
    );
}

#[test]
fn flows_one_by_one() {
    let text = "flows = [
        { src = 'h1', dst = 'h2', size = '1MB', start = '1us' },
        { src = 0, dst = 2, size = '2KB', service = 3 },
    ]";
    let workload = generate(text, &star(3));
    assert_eq!(workload.flows[FlowId(0)].bytes, 2_000);
    assert_eq!(workload.flows[FlowId(1)].src, HostId(1));
    let text = "flows = [{ src = 'h9', dst = 'h2', size = '1MB' }]";
    assert_eq!(
        refusal(text, &star(3)),
        "there is no node \"h9\", did you mean \"h0\"?"
    );
}

#[test]
fn several_workloads_keep_their_stops_and_barriers() {
    let configs = [
        read("[incast]\nreceiver = 3\nsize = '1KB'\nrounds = 2\nsenders = '0-1'\nstart = '1ms'"),
        read("long-lived = [{ src = 0, dst = 2, stop = '20ms' }]"),
        read("[poisson]\nload = 0.5\nflows = 10\nsize = '1KB'"),
    ];
    let fabric = star(4);
    let workload = WorkloadConfig::generate_all(&configs, &fabric, 7).unwrap();
    assert!(is_sorted(&workload));
    assert_eq!(workload.flows.len(), 4 + 1 + 10);
    assert_eq!(workload.offered.len(), 1);
    let stop = workload.stops[0];
    assert_eq!(workload.flows[stop.flow].bytes, FlowSpec::ENDLESS);
    let barrier = &workload.barriers[0];
    for &flow in &barrier.waits_for {
        assert_eq!(workload.flows[flow].start, Time::from_ms(1));
    }
    for &flow in &barrier.releases {
        assert_eq!(workload.flows[flow].start, FlowSpec::AT_BARRIER);
    }
}

#[test]
fn equal_workloads_differ_in_their_draws() {
    let one = read("[poisson]\nload = 0.5\nflows = 10\nsize = '1KB'");
    let fabric = star(4);
    let both = [one.clone(), one.clone()];
    let workload = WorkloadConfig::generate_all(&both, &fabric, 7).unwrap();
    let starts: BTreeSet<Time> = workload.flows.iter().map(|flow| flow.start).collect();
    assert_eq!(starts.len(), 20);
    let wrong = [one, read("[permutation]\nsize = '0B'")];
    let error = WorkloadConfig::generate_all(&wrong, &fabric, 7).unwrap_err();
    assert_eq!(error.to_string(), "workload 1: size must not be zero");
}

#[test]
fn the_last_picosecond_of_the_clock_is_no_start() {
    let text = "long-lived = [{ src = 0, dst = 2, start = '18446744073709551615ps' }]";
    let message = refusal(text, &star(4));
    assert!(message.starts_with("the start of a flow"), "{message}");
}
