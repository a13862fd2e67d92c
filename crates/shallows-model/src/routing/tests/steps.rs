//! Paths of all sprayed packets between two hosts.

use super::*;

/// The steps of the paths that packets with many selectors take.
fn taken(router: &Router, pairs: &[(u32, u32)]) -> BTreeSet<(LinkId, LinkId)> {
    let mut steps = BTreeSet::new();
    for &(src, dst) in pairs {
        for selector in 0..2_000 {
            let links = path(router, src, dst, selector);
            steps.extend(links.windows(2).map(|pair| (pair[0], pair[1])));
        }
    }
    steps
}

#[test]
fn steps_are_those_of_all_sprayed_packets() {
    let fabrics = [leaf_spine(3, 2, 4), fat_tree(4), fat_tree_of(4, 4)];
    for fabric in fabrics {
        let router = router(&fabric, &RoutingConfig::Spray);
        let hosts = fabric.host_ids().count() as u32;
        let pairs = [(0, hosts - 1), (hosts - 1, 0)];
        let numbered = pairs.map(|(src, dst)| (HostId(src), HostId(dst)));
        let steps: BTreeSet<_> = router.steps(numbered).into_iter().collect();
        assert_eq!(steps, taken(&router, &pairs));
    }
}

#[test]
fn steps_are_in_order_and_each_is_there_once() {
    let fabric = fat_tree(4);
    let router = router(&fabric, &RoutingConfig::Spray);
    let all = || {
        let hosts = fabric.host_ids();
        hosts.flat_map(|src| fabric.host_ids().map(move |dst| (src, dst)))
    };
    let steps = router.steps(all().filter(|(src, dst)| src != dst));
    assert!(steps.is_sorted_by(|one, next| one < next));
    // Up: 16 NICs x (2 up, 2 hosts of the switch, of which one is the sender). Between edges and cores: 16 links up x (2 up, 1 down), 16 up to
    // cores x 3 other pods, 16 down from cores x 2 edges. Down: 16 links to edges x 2 hosts.
    assert_eq!(steps.len(), 16 * 4 + 16 * 3 + 16 * 3 + 16 * 2 + 16 * 2);
}

#[test]
fn a_fork_chooses_as_the_router_does() {
    for fabric in [leaf_spine(3, 2, 4), leaf_spine(2, 2, 1)] {
        let router = router(&fabric, &RoutingConfig::Spray);
        for (src, dst) in [(0, 3), (3, 0), (0, 1)] {
            let (fork, paths) = router.fork(HostId(src), HostId(dst)).unwrap();
            for selector in 0..200 {
                let chosen = &paths[fork.choose(selector)];
                assert_eq!(*chosen, path(&router, src, dst, selector));
            }
        }
    }
}

#[test]
fn there_is_no_fork_where_paths_part_twice_or_not_by_packet() {
    let fabric = fat_tree(4);
    let sprayed = router(&fabric, &RoutingConfig::Spray);
    assert!(sprayed.fork(HostId(0), HostId(15)).is_none());
    // Within a pod they part at the edge only.
    assert_eq!(sprayed.fork(HostId(0), HostId(3)).unwrap().1.len(), 2);
    let by_flow = router(&fabric, &RoutingConfig::Ecmp);
    assert!(by_flow.fork(HostId(0), HostId(3)).is_none());
}
