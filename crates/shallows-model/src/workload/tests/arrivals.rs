use std::collections::{BTreeMap, BTreeSet};

use super::*;

#[test]
fn offered_load_is_the_requested_one_within_chance() {
    let fabric = star(16);
    for counted in [
        "'payload'",
        "{ wire = { payload = '1460B', overhead = '40B' } }",
    ] {
        for process in ["source", "pair"] {
            let text = format!(
                "[poisson]\nload = 0.6\nduration = '1s'\nsize = '14.6KB'\n\
                 process = '{process}'\ncounted = {counted}"
            );
            let workload = generate(&text, &fabric);
            assert!(is_sorted(&workload));
            // 0.6 x 160 Gbps in flows of 15,000 or 14,600 B is over 800,000 flows, so that
            // three standard errors are 0.34%.
            let load = workload.offered[0];
            assert_eq!(load.capacity, 160e9);
            assert_eq!(load.span, Time::from_secs(1));
            assert!((load.offered / 0.6 - 1.0).abs() < 0.0034, "{load:?}");
            let each = if counted == "'payload'" {
                14_600
            } else {
                15_000
            };
            assert_eq!(load.bytes, workload.flows.len() as u64 * each);
        }
    }
}

#[test]
fn gaps_of_a_source_are_exponential() {
    let fabric = star(4);
    let text = "[poisson]\nload = 0.5\nflows = 40000\nsize = '15KB'\ncounted = 'payload'";
    let workload = generate(text, &fabric);
    assert_eq!(workload.flows.len(), 40_000);
    let starts: Vec<Time> = workload
        .flows
        .iter()
        .filter(|flow| flow.src == HostId(2))
        .map(|flow| flow.start)
        .collect();
    let gaps: Vec<f64> = starts
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).ps() as f64)
        .collect();
    // 15,000 B at 5 Gbps.
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let expected = 24e6;
    let error = 3.0 / (gaps.len() as f64).sqrt();
    assert!((mean / expected - 1.0).abs() < error, "{mean}");
    let long = gaps.iter().filter(|&&gap| gap > expected).count() as f64;
    let share = long / gaps.len() as f64;
    assert!((share - (-1.0_f64).exp()).abs() < error, "{share}");
}

const MQ_ECN: &str = "
    [poisson]
    load = 0.6
    flows = 50000
    start = '1s'
    process = 'pair'
    services = { pair = 8 }
    [poisson.size]
    by-service = [
        { cdf = { name = 'cache', mean = '914KB' } },
        { cdf = { name = 'web-search', mean = '1671KB' } },
        { cdf = { name = 'hadoop', mean = '4149KB' } },
        { cdf = { name = 'data-mining', mean = '7495KB' } },
    ]";

#[test]
fn mq_ecn_gives_each_source_one_service_and_its_distribution() {
    let workload = generate(MQ_ECN, &leaf_spine());
    assert!(workload.flows[FlowId(0)].start > Time::from_secs(1));
    let mut largest = BTreeMap::new();
    for flow in &workload.flows {
        assert_eq!(u32::from(flow.service), (flow.src.0 + 1) % 8);
        assert_eq!(flow.bytes % 1460, 0);
        let entry = largest.entry(flow.service % 4).or_insert(0);
        *entry = flow.bytes.max(*entry);
    }
    let packets = |service: u16| largest[&service] / 1460;
    assert!(packets(0) <= 33_333 && packets(1) <= 20_000);
    assert!(packets(2) <= 333_333 && packets(3) <= 666_667 && packets(3) > 20_000);
}

#[test]
fn mq_ecn_arrival_rates_follow_the_published_formula() {
    let workload = generate(MQ_ECN, &leaf_spine());
    let span = (workload.flows[FlowId(49_999)].start - Time::from_secs(1)).as_secs_f64();
    for (remainder, mean) in [(0, 914e3), (1, 1671e3), (2, 4149e3), (3, 7495e3)] {
        let flows = workload.flows.iter();
        let count = flows.filter(|flow| flow.service % 4 == remainder).count() as f64;
        // load x 10 Gbps / (8 mean 143) for each of 36 x 143 pairs.
        let expected = 36.0 * 0.6 * 10e9 / (8.0 * mean) * span;
        let error = 4.0 / expected.sqrt();
        assert!(
            (count / expected - 1.0).abs() < error,
            "{remainder}: {count} {expected}"
        );
    }
}

#[test]
fn a_mixture_of_services_takes_the_mean_of_their_sizes() {
    let fabric = star(8);
    let text = "[poisson]\nload = 0.4\nduration = '500ms'\ncounted = 'payload'
                services = { weighted = [10, 20, 30, 40] }
                size.by-service = ['1KB', '20KB', '30KB', '2KB']";
    let workload = generate(text, &fabric);
    let total = workload.flows.len() as f64;
    for service in 0..4_u16 {
        let flows = workload.flows.iter();
        let share = flows.filter(|flow| flow.service == service).count() as f64 / total;
        let expected = f64::from(service + 1) / 10.0;
        assert!((share - expected).abs() < 2.0 / total.sqrt(), "{share}");
    }
    let load = workload.offered[0];
    assert!((load.offered / 0.4 - 1.0).abs() < 0.02, "{load:?}");
}

#[test]
fn services_by_pair_are_weighed_for_sources_too() {
    // 5 services do not divide 8 hosts, so a source's pairs differ.
    let fabric = star(8);
    for process in ["source", "pair"] {
        let text = format!(
            "[poisson]\nload = 0.4\nduration = '500ms'\ncounted = 'payload'
             process = '{process}'\nservices = {{ pair = 5 }}
             size.by-service = ['1KB', '20KB', '30KB', '2KB', '5KB']"
        );
        let load = generate(&text, &fabric).offered[0];
        assert!(
            (load.offered / 0.4 - 1.0).abs() < 0.02,
            "{process} {load:?}"
        );
    }
}

#[test]
fn testbed_with_one_receiver() {
    let fabric = star(9);
    let text = "[poisson]\nfrom = '0-7'\nto = 8\nload = 0.5\nload-of = 'destination-links'
                duration = '1s'\nsize = '15KB'\ncounted = 'payload'";
    let workload = generate(text, &fabric);
    assert!(
        workload
            .flows
            .iter()
            .all(|flow| flow.dst == HostId(8) && flow.src < HostId(8))
    );
    let load = workload.offered[0];
    assert_eq!(load.capacity, 10e9);
    // 41,667 flows: three standard errors are 1.5%.
    assert!((load.offered / 0.5 - 1.0).abs() < 0.015, "{load:?}");
}

#[test]
fn load_of_a_bottleneck() {
    let fabric = star(9);
    let text = "[poisson]\nfrom = '0-7'\nto = 8\nload = 0.5\nload-of = '1Gbps'
                duration = '1s'\nsize = '1500B'\ncounted = 'payload'";
    let load = generate(text, &fabric).offered[0];
    assert_eq!(load.capacity, 1e9);
    assert!((load.offered / 0.5 - 1.0).abs() < 0.015, "{load:?}");
}

#[test]
fn core_load_of_ear() {
    let fabric = ear();
    let text = "[poisson]\nload = 0.9\nload-of = 'rack-uplinks'\nflows = 400000
                size = '15KB'\ncounted = 'payload'";
    let workload = generate(text, &fabric);
    let load = workload.offered[0];
    // 54 racks with 3 uplinks each.
    assert_eq!(load.capacity, 54.0 * 30e9);
    assert!((load.offered / 0.9 - 1.0).abs() < 0.006, "{load:?}");
    // 318 of 323 others are in another rack, so a host offers 0.9 / 2 / (318 / 323).
    let all: u64 = workload.flows.iter().map(|flow| flow.bytes).sum();
    let edge = all as f64 * 8.0 / (324.0 * 10e9 * load.span.as_secs_f64());
    assert!(
        (edge / (0.45 * 323.0 / 318.0) - 1.0).abs() < 0.006,
        "{edge}"
    );
}

#[test]
fn every_pair_occurs_and_none_with_itself() {
    let fabric = star(6);
    let text = "[poisson]\nload = 0.5\nflows = 6000\nsize = '1KB'";
    let workload = generate(text, &fabric);
    let pairs: BTreeSet<_> = workload.flows.iter().map(|f| (f.src, f.dst)).collect();
    assert_eq!(pairs.len(), 30);
    assert!(pairs.iter().all(|(src, dst)| src != dst));
}

#[test]
fn a_source_draws_the_same_whoever_else_sends() {
    let fabric = star(9);
    let flows = |from: &str| {
        let text = format!(
            "[poisson]\nfrom = '{from}'\nload = 0.5\nduration = '10ms'\nsize = {{ cdf = 'cache' }}"
        );
        let flows = generate(&text, &fabric).flows;
        let own = flows.iter().filter(|flow| flow.src == HostId(3));
        own.copied().collect::<Vec<FlowSpec>>()
    };
    assert!(flows("3").len() > 1);
    assert_eq!(flows("3"), flows("all"));
}

#[test]
fn same_seed_same_flows() {
    let fabric = leaf_spine();
    let config = read(MQ_ECN);
    let flows = |seed| config.generate(&fabric, seed).unwrap().flows;
    assert_eq!(flows(1), flows(1));
    assert_ne!(flows(1), flows(2));
}

#[test]
fn mistakes_are_refused() {
    let fabric = star(4);
    let poisson = |rest: &str| refusal(&format!("[poisson]\nsize = '1KB'\n{rest}"), &fabric);
    assert_eq!(
        poisson("load = 0.0\nflows = 1"),
        "load is 0, it must be a positive number"
    );
    assert_eq!(
        poisson("load = nan\nflows = 1"),
        "load is NaN, it must be a positive number"
    );
    assert_eq!(
        poisson("load = 60\nflows = 1"),
        "load is 60, it must be a positive number, at most 2 (a share of the capacity: write 0.6 \
         for 60%)"
    );
    assert_eq!(poisson("load = 0.5"), "give either flows or duration");
    assert_eq!(
        poisson("load = 0.5\nflows = 1\nduration = '1s'"),
        "give either flows or duration"
    );
    assert_eq!(poisson("load = 0.5\nflows = 0"), "flows must not be zero");
    assert_eq!(
        poisson("load = 0.5\nduration = '60000s'"),
        "about 1.442e11 flows would take 15865 GB of memory; at most 100000000 are possible"
    );
    assert_eq!(
        poisson("load = 0.5\nflows = 1\nfrom = 4"),
        "there is no host 4, the fabric has hosts 0 to 3"
    );
    assert_eq!(
        poisson("load = 0.5\nflows = 1\nfrom = 2\nto = 2"),
        "h2 has no destination in its fabric"
    );
    assert_eq!(
        poisson("load = 0.5\nflows = 1\nload-of = 'rack-uplinks'"),
        "load-of = \"rack-uplinks\", but no traffic leaves the rack of h0"
    );
    assert_eq!(
        poisson("load = 1e-300\nflows = 1"),
        "only 0 of 1 flows would start in 213 days, the longest run"
    );
    assert_eq!(
        poisson("load = 0.5\nflows = 1\nservices = { balanced = 0 }"),
        "there must be at least one service with a weight"
    );
}
