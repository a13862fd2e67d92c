use super::super::locality::Destinations;
use super::*;

fn shares(locality: &str) -> [f64; 4] {
    let fabric = ear();
    let text = format!("[poisson]\nload = 0.5\nflows = 40000\nsize = '1KB'\nlocality = {locality}");
    let mut counts = [0.0; 4];
    for flow in &generate(&text, &fabric).flows {
        let (a, b) = (fabric.place(flow.src), fabric.place(flow.dst));
        let apart = [a.rack != b.rack, a.pod != b.pod, a.upper_pod != b.upper_pod];
        let level = apart.iter().filter(|&&apart| apart).count();
        counts[level] += 1.0 / 40_000.0;
    }
    counts
}

fn assert_near(actual: [f64; 4], expected: [f64; 4]) {
    for (a, b) in actual.into_iter().zip(expected) {
        assert!((a - b).abs() < 0.01, "{actual:?}, expected {expected:?}");
    }
}

#[test]
fn four_cases_of_ear() {
    // A host has 5 others in its rack of 6, 17 in its pod of 18, 53 in its upper pod of 54.
    let all = 323.0;
    assert_eq!(shares("{ rack = 1 }")[1..], [0.0; 3]);
    assert_near(shares("{ pod = 1 }"), [5.0 / 17.0, 12.0 / 17.0, 0.0, 0.0]);
    assert_near(
        shares("{ upper-pod = 1 }"),
        [5.0 / 53.0, 12.0 / 53.0, 36.0 / 53.0, 0.0],
    );
    assert_near(
        shares("{ all = 1 }"),
        [5.0 / all, 12.0 / all, 36.0 / all, 270.0 / all],
    );
}

#[test]
fn mixtures_add_up() {
    let pod = [5.0 / 17.0, 12.0 / 17.0];
    assert_near(
        shares("{ rack = 3, pod = 1 }"),
        [0.75 + 0.25 * pod[0], 0.25 * pod[1], 0.0, 0.0],
    );
}

#[test]
fn pairs_and_sources_agree() {
    let fabric = ear();
    let sources: Vec<HostId> = fabric.host_ids().collect();
    let config = LocalityConfig {
        rack: 0.2,
        pod: 0.3,
        upper_pod: 0.1,
        all: 0.4,
    };
    let to = Destinations::new(&fabric, Some(config), &sources, &sources).unwrap();
    let total: f64 = fabric
        .host_ids()
        .map(|dst| to.share(HostId(100), dst))
        .sum();
    assert!((total - 1.0).abs() < 1e-12);
    let rack = fabric.place(HostId(100)).rack;
    let outside = fabric
        .host_ids()
        .filter(|&dst| fabric.place(dst).rack != rack);
    let leaving: f64 = outside.map(|dst| to.share(HostId(100), dst)).sum();
    assert!((leaving - to.leaving(&fabric, HostId(100))).abs() < 1e-12);
    assert_eq!(to.share(HostId(100), HostId(100)), 0.0);
}

#[test]
fn impossible_shares_are_refused() {
    let fabric = star(4);
    for shares in [
        "{}",
        "{ rack = -1, all = 2 }",
        "{ all = inf }",
        "{ all = nan }",
    ] {
        let text = format!("[poisson]\nload = 0.5\nflows = 1\nsize = '1KB'\nlocality = {shares}");
        assert_eq!(
            refusal(&text, &fabric),
            "the shares of locality must be from 0 and not all 0"
        );
    }
}
