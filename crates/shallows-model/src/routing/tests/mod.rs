mod random;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use shallows_core::units::{Rate, Time};

use super::*;
use crate::topology::{Cable, Node, Nodes, TopologyConfig};
use crate::workload::FlowSpec;

fn leaf_spine(leaves: u32, hosts_per_leaf: u32, spines: u32) -> Fabric {
    let config = TopologyConfig::LeafSpine {
        leaves,
        hosts_per_leaf,
        spines,
        nics: 1,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::from_ns(20_200),
        fabric_rate: Rate::from_gbps(10),
        fabric_delay: Time::from_ns(200),
    };
    config.build().unwrap()
}

/// Each host has a link to both leaves of its group: 0 and 1, 2 and 3, and so on.
fn two_nics(leaves: u32, hosts_per_leaf: u32, spines: u32) -> Fabric {
    let config = TopologyConfig::LeafSpine {
        leaves,
        hosts_per_leaf,
        spines,
        nics: 2,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::ZERO,
        fabric_rate: Rate::from_gbps(10),
        fabric_delay: Time::ZERO,
    };
    config.build().unwrap()
}

fn fat_tree(radix: u32) -> Fabric {
    fat_tree_of(3, radix)
}

fn fat_tree_of(tiers: u32, radix: u32) -> Fabric {
    let config = TopologyConfig::FatTree {
        tiers,
        radix,
        oversubscription: 1,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::ZERO,
        fabric_rate: Rate::from_gbps(10),
        fabric_delay: Time::ZERO,
    };
    config.build().unwrap()
}

fn router(fabric: &Fabric, config: &RoutingConfig) -> Router {
    Router::new(fabric, config, 1).unwrap()
}

fn path(router: &Router, src: u32, dst: u32, selector: u64) -> Vec<LinkId> {
    let mut links = vec![LinkId(99)];
    router
        .path(HostId(src), HostId(dst), selector, &mut links)
        .unwrap();
    links
}

/// The switch in the middle of a path across racks.
fn spine(fabric: &Fabric, links: &[LinkId]) -> Node {
    assert_eq!(links.len(), 4);
    fabric.link(links[1]).to
}

#[test]
fn destination_modulo_crosses_spine_d_mod_12() {
    let fabric = leaf_spine(12, 12, 12);
    let router = router(&fabric, &RoutingConfig::DestinationModulo);
    assert_eq!(router.selection(), Selection::Pair);
    for src in 0..144 {
        for dst in (0..144).filter(|&dst| dst != src) {
            let links = path(&router, src, dst, u64::from(src));
            if src / 12 == dst / 12 {
                assert_eq!(
                    links,
                    [fabric.uplink(HostId(src)), fabric.downlink(HostId(dst))]
                );
            } else {
                assert_eq!(spine(&fabric, &links), Node::Switch(12 + dst % 12));
            }
        }
    }
}

#[test]
fn destination_modulo_uses_every_core_of_a_fat_tree() {
    let fabric = fat_tree(6);
    let router = router(&fabric, &RoutingConfig::DestinationModulo);
    let core = |dst| fabric.link(path(&router, 0, dst, 0)[2]).to;
    let cores: BTreeSet<Node> = (9..54).map(core).collect();
    assert_eq!(cores.len(), 9);
}

#[test]
fn the_hash_of_ns2_by_hand() {
    // Bytes 1 0 0 0, 2 0 0 0, 3 0 0 0: ((1 * 9^4 + 2) * 9^4 + 3) * 9^3, modulo 2^32.
    assert_eq!(
        ns2_hash(1, 2, 3),
        (((6561_u64 + 2) * 6561 + 3) * 729 % (1 << 32)) as u32
    );
    // A byte from 128 on is negative: -56 * 9^11.
    let by_hand = (-56_i64 * 31_381_059_609).rem_euclid(1 << 32);
    assert_eq!(ns2_hash(200, 0, 0), by_hand as u32);
}

#[test]
fn a_pair_keeps_its_path_and_both_directions_have_one_connection() {
    let fabric = leaf_spine(12, 12, 12);
    let router = router(&fabric, &RoutingConfig::Ns2Hash);
    assert_eq!(router.selection(), Selection::Connection);
    let selector = |flow, src, dst, order| {
        router.flow_selector(FlowId(flow), (HostId(src), HostId(dst)), order)
    };
    // The first pairs of the script are (1, 0), (2, 0), ..., then (0, 1), (2, 1), ...
    assert_eq!(selector(77, 1, 0, ConnectionOrder::First), 0);
    assert_eq!(selector(77, 143, 0, ConnectionOrder::First), 142);
    assert_eq!(selector(77, 0, 1, ConnectionOrder::First), 143);
    assert_eq!(selector(77, 2, 1, ConnectionOrder::First), 144);
    let connection = selector(0, 15, 108, ConnectionOrder::First);
    assert_eq!(connection, selector(1, 15, 108, ConnectionOrder::First));
    let crosses = |src, dst| spine(&fabric, &path(&router, src, dst, connection));
    let expected = |src, dst| Node::Switch(12 + ns2_hash(src, dst, connection as u32) % 12);
    assert_eq!(crosses(15, 108), expected(15, 108));
    assert_eq!(crosses(108, 15), expected(108, 15));
    // Those that are added have number 0 between whichever hosts.
    assert_eq!(selector(77, 15, 108, ConnectionOrder::Added), 0);
}

#[test]
fn a_kept_pair_has_one_path_and_another_for_what_is_added() {
    let fabric = leaf_spine(12, 12, 12);
    let router = router(&fabric, &RoutingConfig::Ns2Hash);
    let flow = |src, dst| FlowSpec {
        start: Time::ZERO,
        src: HostId(src),
        dst: HostId(dst),
        bytes: 1,
        service: 0,
    };
    let flows = [flow(15, 108), flow(15, 108), flow(108, 15)];
    let [first, back] = [108 * 143 + 15, 15 * 143 + 107];
    let of = |connections| selectors(&router, &flows, connections).collect::<Vec<_>>();
    assert_eq!(of(Connections::Persistent), [first, 0, back]);
    assert_eq!(of(Connections::PerFlow), [first, first, back]);
}

#[test]
fn the_hash_by_ttl_takes_twelve_of_twenty_seven_paths() {
    let fabric = fat_tree_of(4, 6);
    let last = fabric.hosts() - 1;
    let router = router(&fabric, &RoutingConfig::TtlHash);
    assert_eq!(router.selection(), Selection::Flow);
    let paths: BTreeSet<Vec<LinkId>> = (0..2_000).map(|n| path(&router, 0, last, n)).collect();
    // Of numbers x modulo 3, those of x / 2 and x / 4 can have two values each: 3 * 2 * 2.
    assert_eq!(paths.len(), 12);
    // ACKs come back over the same core switch.
    for flow in 0..64 {
        let core = |links: &[LinkId]| fabric.link(links[3]).to;
        let (forth, back) = (path(&router, 0, last, flow), path(&router, last, 0, flow));
        assert_eq!(core(&forth), core(&back));
    }
}

#[test]
fn ecmp_spreads_flows_evenly_over_spines() {
    let fabric = leaf_spine(12, 12, 12);
    let router = router(&fabric, &RoutingConfig::Ecmp);
    assert_eq!(router.selection(), Selection::Flow);
    let mut counts = BTreeMap::new();
    for flow in 0..12_000 {
        let links = path(&router, 0, 143, flow);
        *counts.entry(spine(&fabric, &links)).or_insert(0_i32) += 1;
    }
    assert_eq!(counts.len(), 12);
    // Four standard deviations of a binomial with mean 1000.
    let even = counts.values().all(|count| (count - 1000).abs() < 122);
    assert!(even, "{counts:?}");
}

#[test]
fn choices_at_successive_switches_are_independent() {
    let fabric = fat_tree(6);
    let router = router(&fabric, &RoutingConfig::Spray);
    assert_eq!(router.selection(), Selection::Packet);
    let mut counts = BTreeMap::new();
    for packet in 0..9_000 {
        let links = path(&router, 0, 53, packet);
        *counts.entry(fabric.link(links[2]).to).or_insert(0_i32) += 1;
    }
    assert_eq!(counts.len(), 9);
    assert!(
        counts.values().all(|n| (n - 1000).abs() < 122),
        "{counts:?}"
    );
}

#[test]
fn seeds_and_selectors_decide_and_nothing_else() {
    let fabric = leaf_spine(4, 4, 8);
    let paths = |seed| {
        let router = Router::new(&fabric, &RoutingConfig::Ecmp, seed).unwrap();
        let pairs = (0..64).map(|flow| path(&router, 0, 15, flow));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(paths(1), paths(1));
    assert_ne!(paths(1), paths(2));
}

#[test]
fn pinned_paths() {
    // Any change here changes every published result.
    let fabric = leaf_spine(12, 12, 12);
    let router = Router::new(&fabric, &RoutingConfig::Ecmp, 42).unwrap();
    let spines = (0..6).map(|flow| spine(&fabric, &path(&router, 3, 77, flow)));
    let expected = [21, 12, 21, 15, 17, 14].map(Node::Switch);
    assert_eq!(spines.collect::<Vec<_>>(), expected);
}

#[test]
fn a_link_that_is_down_is_avoided_until_it_is_up() {
    let fabric = leaf_spine(2, 2, 2);
    let mut router = router(&fabric, &RoutingConfig::Ecmp);
    // Cables 4 and 5 go from leaf0 to the spines, 6 and 7 from leaf1.
    let (to_spine0, from_spine1) = (LinkId(8), LinkId(15));
    let spines = |router: &Router| {
        let all = (0..64).map(|flow| spine(&fabric, &path(router, 0, 3, flow)));
        all.collect::<BTreeSet<_>>()
    };
    assert_eq!(spines(&router).len(), 2);
    router.set_link(to_spine0, LinkState::Down);
    assert_eq!(spines(&router), BTreeSet::from([Node::Switch(3)]));
    // The other direction still has both.
    let back = (0..64).map(|flow| spine(&fabric, &path(&router, 3, 0, flow)));
    assert_eq!(back.collect::<BTreeSet<_>>().len(), 2);

    router.set_link(from_spine1, LinkState::Down);
    let none = router
        .path(HostId(0), HostId(3), 0, &mut Vec::new())
        .unwrap_err();
    assert_eq!(none.to_string(), "there is no path from h0 to h3");
    router.set_link(to_spine0, LinkState::Up);
    assert_eq!(spines(&router), BTreeSet::from([Node::Switch(2)]));
    router.set_link(from_spine1, LinkState::Up);
    assert_eq!(spines(&router).len(), 2);
}

#[test]
fn a_host_without_its_link_is_cut_off() {
    let fabric = leaf_spine(2, 2, 2);
    let mut router = router(&fabric, &RoutingConfig::Ecmp);
    router.set_link(fabric.uplink(HostId(0)), LinkState::Down);
    assert!(
        router
            .path(HostId(0), HostId(1), 0, &mut Vec::new())
            .is_err()
    );
    assert!(
        router
            .path(HostId(1), HostId(0), 0, &mut Vec::new())
            .is_ok()
    );
    router.set_link(fabric.downlink(HostId(0)), LinkState::Down);
    assert!(
        router
            .path(HostId(1), HostId(0), 0, &mut Vec::new())
            .is_err()
    );
    assert!(
        router
            .path(HostId(1), HostId(1), 0, &mut Vec::new())
            .is_err()
    );
}

/// Host 0 has links 0 and 1 at leaf 0 and links 2 and 3 at leaf 1; host 1 has links 4 and 5 at leaf 1
/// and 6 and 7 at leaf 0.
#[test]
fn flows_are_spread_over_nics_where_ways_are_shortest() {
    let fabric = two_nics(4, 1, 2);
    let ecmp = router(&fabric, &RoutingConfig::Ecmp);
    let paths = |router: &Router, src, dst| -> BTreeSet<Vec<LinkId>> {
        (0..500).map(|flow| path(router, src, dst, flow)).collect()
    };
    let both = [[0, 7], [2, 5]].map(|links| links.map(LinkId).to_vec());
    assert_eq!(paths(&ecmp, 0, 1), BTreeSet::from(both.clone()));
    // To the other group there are four pairs of NICs, and two spines between each.
    let far = paths(&ecmp, 0, 2);
    assert_eq!(far.len(), 8);
    assert!(far.iter().all(|links| links.len() == 4));
    let modulo = router(&fabric, &RoutingConfig::DestinationModulo);
    assert_eq!(path(&modulo, 0, 1, 9), both[1]);
    assert_eq!(path(&modulo, 1, 0, 9), [4, 3].map(LinkId));
}

#[test]
fn a_nic_without_its_link_is_left_for_the_other() {
    let fabric = two_nics(2, 1, 1);
    let mut router = router(&fabric, &RoutingConfig::Ecmp);
    let paths = |router: &Router, src, dst| -> BTreeSet<Vec<LinkId>> {
        (0..64).map(|flow| path(router, src, dst, flow)).collect()
    };
    router.set_link(LinkId(0), LinkState::Down);
    let left = [2, 5].map(LinkId).to_vec();
    assert_eq!(paths(&router, 0, 1), BTreeSet::from([left]));
    // The other direction of the cable is up.
    assert_eq!(paths(&router, 1, 0).len(), 2);
    // By leaf 1 to host 1's NIC at leaf 0 there is a way over the spine.
    router.set_link(LinkId(5), LinkState::Down);
    assert_eq!(path(&router, 0, 1, 0).len(), 4);
    router.set_link(LinkId(7), LinkState::Down);
    assert!(
        router
            .path(HostId(0), HostId(1), 0, &mut Vec::new())
            .is_err()
    );
}

fn explicit(paths: &[&[&str]]) -> RoutingConfig {
    let owned = |path: &&[&str]| path.iter().map(|&name| name.to_owned()).collect();
    RoutingConfig::Explicit {
        paths: paths.iter().map(owned).collect(),
    }
}

#[test]
fn explicit_paths_and_their_opposites() {
    let fabric = leaf_spine(2, 2, 2);
    let config = explicit(&[
        &["h0", "leaf0", "spine1", "leaf1", "h2"],
        &["h2", "leaf1", "spine0", "leaf0", "h0"],
        &["h1", "leaf0", "spine1", "leaf1", "h3"],
    ]);
    let mut router = router(&fabric, &config);
    for flow in 0..32 {
        assert_eq!(spine(&fabric, &path(&router, 0, 2, flow)), Node::Switch(3));
        assert_eq!(spine(&fabric, &path(&router, 2, 0, flow)), Node::Switch(2));
        assert_eq!(spine(&fabric, &path(&router, 1, 3, flow)), Node::Switch(3));
        assert_eq!(spine(&fabric, &path(&router, 3, 1, flow)), Node::Switch(3));
    }
    // A pair that is not listed is spread.
    let others = (0..64).map(|flow| spine(&fabric, &path(&router, 0, 3, flow)));
    assert_eq!(others.collect::<BTreeSet<_>>().len(), 2);

    let Node::Switch(spine1) = fabric.node("spine1").unwrap() else {
        unreachable!()
    };
    let to_spine1 = fabric
        .links()
        .numbered()
        .find(|(_, link)| (link.from, link.to) == (Node::Switch(0), Node::Switch(spine1)));
    router.set_link(to_spine1.unwrap().0, LinkState::Down);
    assert!(
        router
            .path(HostId(0), HostId(2), 0, &mut Vec::new())
            .is_err()
    );
}

#[test]
fn explicit_mistakes_are_explained() {
    let fabric = leaf_spine(2, 2, 2);
    let message = |paths: &[&[&str]]| {
        let config = explicit(paths);
        Router::new(&fabric, &config, 0).unwrap_err().to_string()
    };
    assert_eq!(
        message(&[&["h0", "leaf0", "spin1", "leaf1", "h2"]]),
        "path 0: there is no node \"spin1\", did you mean \"spine1\"?"
    );
    assert_eq!(
        message(&[&["h0", "leaf0", "leaf1", "h2"]]),
        "path 0: there is no link from leaf0 to leaf1"
    );
    let ends = "path 0 must lead from one host over switches to another host";
    assert_eq!(message(&[&["h0", "leaf0"]]), ends);
    assert_eq!(message(&[&["h0"]]), ends);
    assert_eq!(message(&[&[]]), ends);
    assert_eq!(message(&[&["h0", "leaf0", "h1", "leaf0", "h1"]]), ends);
    assert_eq!(
        message(&[&["h0", "leaf0", "spine0", "leaf0", "h1"]]),
        "path 0 passes leaf0 twice"
    );
    let twice: &[&str] = &["h0", "leaf0", "h1"];
    assert_eq!(
        message(&[twice, twice]),
        "paths 0 and 1 both lead from h0 to h1"
    );
}

#[test]
fn configurations_as_written() {
    #[derive(serde::Deserialize)]
    struct Scenario {
        routing: RoutingConfig,
    }
    let read = |text| toml::from_str::<Scenario>(text).unwrap().routing;
    assert_eq!(read("routing = 'ecmp'"), RoutingConfig::Ecmp);
    assert_eq!(read("routing = 'spray'"), RoutingConfig::Spray);
    assert_eq!(
        read("routing = 'destination-modulo'"),
        RoutingConfig::DestinationModulo
    );
    assert_eq!(read("routing = 'ns2-hash'"), RoutingConfig::Ns2Hash);
    assert_eq!(read("routing = 'ttl-hash'"), RoutingConfig::TtlHash);
    assert_eq!(
        read("routing = { explicit = { paths = [['h0', 'leaf0', 'h1']] } }"),
        explicit(&[&["h0", "leaf0", "h1"]])
    );
}

#[test]
fn twenty_thousand_hosts() {
    let fabric = fat_tree(44);
    assert_eq!(fabric.hosts(), 21_296);
    assert!(Router::table_bytes(&fabric) < 5_000_000);
    let router = router(&fabric, &RoutingConfig::Ecmp);
    assert_eq!(path(&router, 0, 21_295, 0).len(), 6);
}

#[test]
fn a_table_that_is_too_large_is_refused() {
    let config = TopologyConfig::Chain {
        hosts: vec![1; 40_000],
        rate: Rate::from_gbps(1),
        delay: Time::ZERO,
        uplink_rate: Rate::from_gbps(1),
        uplink_delay: Time::ZERO,
    };
    let error = Router::new(&config.build().unwrap(), &RoutingConfig::Ecmp, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the routing table would take 3.2GB, at most 2GB are allowed; put more hosts at each switch"
    );
}

#[test]
fn a_chain_of_seventy_thousand_switches() {
    let mut hosts = vec![0; 70_000];
    hosts[0] = 1;
    hosts[69_999] = 1;
    let config = TopologyConfig::Chain {
        hosts,
        rate: Rate::from_gbps(1),
        delay: Time::ZERO,
        uplink_rate: Rate::from_gbps(1),
        uplink_delay: Time::ZERO,
    };
    let router = router(&config.build().unwrap(), &RoutingConfig::Ecmp);
    assert_eq!(path(&router, 0, 1, 0).len(), 70_001);
}
