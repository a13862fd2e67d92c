use proptest::prelude::*;

use super::*;

/// A fabric of hosts at given switches and cables between given switches, where possible.
fn random_fabric(racks: &[u32], switches: u32, cables: &[(u32, u32)]) -> Fabric {
    let cable = |a: String, b: String| Cable {
        between: [a, b],
        rate: Rate::from_gbps(1),
        delay: Time::ZERO,
    };
    let hosts = (0..).zip(racks).map(|(host, rack)| {
        let rack = rack % switches;
        cable(format!("h{host}"), format!("s{rack}"))
    });
    let pairs: BTreeSet<(u32, u32)> = cables
        .iter()
        .map(|&(a, b)| (a % switches, b % switches))
        .map(|(a, b)| (a.min(b), a.max(b)))
        .filter(|(a, b)| a != b)
        .collect();
    let between = pairs
        .iter()
        .map(|(a, b)| cable(format!("s{a}"), format!("s{b}")));
    let config = TopologyConfig::Custom {
        hosts: Nodes::Count(racks.len() as u32),
        switches: Nodes::Count(switches),
        links: hosts.chain(between).collect(),
    };
    config.build().unwrap()
}

/// Links on the shortest way from each switch to each, by relaxing until nothing changes.
fn reference_distances(fabric: &Fabric, down: &BTreeSet<LinkId>) -> Vec<Vec<Option<usize>>> {
    let count = fabric.switches() as usize;
    let mut best: Vec<Vec<Option<usize>>> = vec![vec![None; count]; count];
    for (switch, row) in best.iter_mut().enumerate() {
        row[switch] = Some(0);
    }
    for _ in 0..count {
        for (number, link) in fabric.links().numbered() {
            let (Node::Switch(from), Node::Switch(to)) = (link.from, link.to) else {
                continue;
            };
            if down.contains(&number) {
                continue;
            }
            let beyond = best[to as usize].clone();
            for (now, beyond) in best[from as usize].iter_mut().zip(beyond) {
                let over = beyond.map(|links| links + 1);
                if over.is_some_and(|over| now.is_none_or(|now| over < now)) {
                    *now = over;
                }
            }
        }
    }
    best
}

proptest! {
    #[test]
    fn paths_are_connected_shortest_and_complete(
        racks in prop::collection::vec(0_u32..8, 2..7),
        switches in 1_u32..8,
        cables in prop::collection::vec((0_u32..8, 0_u32..8), 0..20),
        down in prop::collection::btree_set(0_u32..50, 0..4),
        which in 0_usize..3,
        selector: u64,
    ) {
        let fabric = random_fabric(&racks, switches, &cables);
        let config = [RoutingConfig::Ecmp, RoutingConfig::Spray, RoutingConfig::DestinationModulo];
        let mut router = router(&fabric, &config[which]);
        let down: BTreeSet<LinkId> =
            fabric.links().ids().filter(|link| down.contains(&link.0)).collect();
        for &link in &down {
            router.set_link(link, LinkState::Down);
        }
        let distances = reference_distances(&fabric, &down);
        let mut links = Vec::new();
        for src in fabric.host_ids() {
            for dst in fabric.host_ids().filter(|&dst| dst != src) {
                let (a, b) = (fabric.place(src).rack, fabric.place(dst).rack);
                let blocked = down.contains(&fabric.uplink(src)) || down.contains(&fabric.downlink(dst));
                let expected = distances[a as usize][b as usize].filter(|_| !blocked);
                let found = router.path(src, dst, selector, &mut links);
                prop_assert_eq!(found.is_ok(), expected.is_some());
                let Some(expected) = expected else { continue };
                prop_assert_eq!(links.len(), expected + 2);
                prop_assert_eq!(fabric.link(links[0]).from, Node::Host(src));
                prop_assert_eq!(fabric.link(links[expected + 1]).to, Node::Host(dst));
                for pair in links.windows(2) {
                    prop_assert_eq!(fabric.link(pair[0]).to, fabric.link(pair[1]).from);
                }
                prop_assert!(links.iter().all(|link| !down.contains(link)));
                let nodes: BTreeSet<Node> =
                    links.iter().map(|&link| fabric.link(link).from).collect();
                prop_assert_eq!(nodes.len(), links.len());
            }
        }
    }
}
