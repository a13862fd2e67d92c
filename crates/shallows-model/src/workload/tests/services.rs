use super::super::random::{Purpose, Stream};
use super::*;

#[test]
fn maps_by_hand() {
    let mut stream = Stream::new(1, Purpose::Flow, 0);
    let mut draw =
        |map: &ServiceMap, src, dst| map.draw(HostId(src), HostId(dst), 144, &mut stream);
    assert_eq!(draw(&ServiceMap::Fixed(5), 1, 2), 5);
    assert_eq!(draw(&ServiceMap::Source(8), 17, 2), 1);
    // (3 x 144 + 11) mod 8 = 443 mod 8, and (11 mod 8) as 8 divides 144.
    assert_eq!(draw(&ServiceMap::Pair(8), 10, 2), 3);
    assert_eq!(draw(&ServiceMap::Pair(32), 10, 2), 27);
    assert_eq!(draw(&ServiceMap::Pair(32), 10, 3), 11);
}

#[test]
fn random_maps_keep_their_weights() {
    let mut stream = Stream::new(1, Purpose::Flow, 0);
    let mut count = |map: &ServiceMap| {
        let mut counts = [0_i32; 4];
        for _ in 0..40_000 {
            counts[usize::from(map.draw(HostId(0), HostId(1), 2, &mut stream))] += 1;
        }
        counts
    };
    let balanced = count(&ServiceMap::Balanced(4));
    assert!(
        balanced.iter().all(|n| (n - 10_000).abs() < 350),
        "{balanced:?}"
    );
    let weighted = count(&ServiceMap::Weighted(vec![10, 0, 30, 60]));
    for (n, expected) in weighted.iter().zip([4_000, 0, 12_000, 24_000]) {
        assert!((n - expected).abs() < 400, "{weighted:?}");
    }
    assert_eq!(weighted[1], 0);
}

#[test]
fn services_may_follow_the_size() {
    let flows = |services: &str| {
        let text = format!(
            "[poisson]\nload = 0.5\nsize = {{ cdf = 'web-search-bytes' }}\nflows = 2000\nservices = {services}"
        );
        let config: WorkloadConfig = toml::from_str(&text).unwrap();
        config.generate(&star(8), 1)
    };
    let plain = flows("{ fixed = 0 }").unwrap().flows;
    let by_size = flows("{ by-size = ['100KB', '10MB'] }").unwrap().flows;
    let mut seen = [0; 3];
    for (plain, flow) in plain.iter().zip(&by_size) {
        assert_eq!((plain.start, plain.bytes), (flow.start, flow.bytes));
        let service = u16::from(flow.bytes > 100_000) + u16::from(flow.bytes > 10_000_000);
        assert_eq!(flow.service, service);
        seen[usize::from(service)] += 1;
    }
    assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
    let wrong = flows("{ by-size = ['10MB', '100KB'] }").unwrap_err();
    assert_eq!(wrong.to_string(), "the sizes of by-size must increase");
}
