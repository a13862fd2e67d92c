use proptest::prelude::*;
use shallows_core::units::{Bytes, Rate, Time};

use super::*;
use crate::routing::{Router, RoutingConfig};

fn read(text: &str) -> TopologyConfig {
    #[derive(serde::Deserialize)]
    struct Scenario {
        topology: TopologyConfig,
    }
    toml::from_str::<Scenario>(text).unwrap().topology
}

fn build(text: &str) -> Fabric {
    read(text).build().unwrap()
}

fn error(text: &str) -> String {
    read(text).build().unwrap_err().to_string()
}

const LEAF_SPINE: &str = r#"
    [topology.leaf-spine]
    leaves = 12
    hosts-per-leaf = 12
    spines = 12
    host-rate = "10Gbps"
    host-delay = "20.2us"
    fabric-rate = "10Gbps"
    fabric-delay = "0.2us"
"#;

fn fat_tree(tiers: u32, radix: u32, oversubscription: u32) -> TopologyConfig {
    TopologyConfig::FatTree {
        tiers,
        radix,
        oversubscription,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::from_us(1),
        fabric_rate: Rate::from_gbps(10),
        fabric_delay: Time::from_us(1),
    }
}

/// Checks the promises of every fabric.
fn check_invariants(fabric: &Fabric) {
    for host in fabric.host_ids() {
        let up = fabric.link(fabric.uplink(host));
        let down = fabric.link(fabric.downlink(host));
        assert_eq!(up.from, Node::Host(host));
        assert_eq!(up.to, Node::Switch(fabric.place(host).rack));
        assert_eq!((down.from, down.to), (up.to, up.from));
        for nic in fabric.nics(host) {
            let (up, down) = (fabric.link(nic.up), fabric.link(nic.down));
            assert_eq!(
                (up.from, up.to),
                (Node::Host(host), Node::Switch(nic.switch))
            );
            assert_eq!((down.from, down.to), (up.to, up.from));
        }
    }
    let mut ends = Vec::new();
    for (number, link) in fabric.links().numbered() {
        let back = fabric.link(fabric.reverse(number));
        assert_eq!((back.from, back.to), (link.to, link.from));
        assert_eq!((back.rate, back.propagation), (link.rate, link.propagation));
        let is_host = matches!(link.from, Node::Host(_)) || matches!(link.to, Node::Host(_));
        let nics: usize = fabric.host_ids().map(|host| fabric.nics(host).len()).sum();
        assert_eq!(is_host, number.index() < 2 * nics);
        ends.push((link.from, link.to));
    }
    ends.sort_unstable();
    ends.dedup();
    assert_eq!(ends.len(), fabric.links().len());
}

/// Links of `fabric` that leave each switch.
fn degrees(fabric: &Fabric) -> Vec<usize> {
    let mut degrees = vec![0; fabric.switches() as usize];
    for link in fabric.links() {
        if let Node::Switch(switch) = link.from {
            degrees[switch as usize] += 1;
        }
    }
    degrees
}

#[test]
fn star() {
    let fabric = build("[topology]\nstar = { hosts = 9, rate = '1Gbps', delay = '10us' }");
    check_invariants(&fabric);
    assert_eq!((fabric.hosts(), fabric.switches()), (9, 1));
    assert_eq!(fabric.links().len(), 18);
    assert_eq!(fabric.name(Node::Host(HostId(8))), "h8");
    assert_eq!(fabric.name(Node::Switch(0)), "switch0");
}

#[test]
fn dumbbell_of_xco_figure_1b() {
    let fabric = build(
        "[topology.dumbbell]\nleft = 13\nright = 13\nrate = '1Gbps'\ndelay = '1us'
         uplink-rate = '10Gbps'\nuplink-delay = '2us'",
    );
    check_invariants(&fabric);
    assert_eq!((fabric.hosts(), fabric.switches()), (26, 2));
    assert_eq!(fabric.links().len(), 2 * 27);
    assert_eq!(fabric.link(LinkId(51)).rate, Rate::from_gbps(1));
    let uplink = fabric.link(LinkId(52));
    assert_eq!((uplink.from, uplink.to), (Node::Switch(0), Node::Switch(1)));
    assert_eq!(uplink.rate, Rate::from_gbps(10));
    assert_eq!(uplink.propagation, Time::from_us(2));
    assert_eq!(fabric.place(HostId(12)).rack, 0);
    assert_eq!(fabric.place(HostId(13)).rack, 1);
}

#[test]
fn chain_of_ear_figure_9() {
    let fabric = build(
        "[topology.chain]\nhosts = [2, 1, 1, 2]\nrate = '10Gbps'\ndelay = '1us'
         uplink-rate = '10Gbps'\nuplink-delay = '1us'",
    );
    check_invariants(&fabric);
    assert_eq!((fabric.hosts(), fabric.switches()), (6, 4));
    let router = Router::new(&fabric, &RoutingConfig::Ecmp, 0).unwrap();
    let path = |src, dst| {
        let mut path = Vec::new();
        router.path(HostId(src), HostId(dst), 0, &mut path).unwrap();
        path
    };
    // R1-R2 is link 12, R2-R3 14, R3-R4 16.
    assert_eq!(path(0, 4), [0, 12, 14, 16, 9].map(LinkId));
    assert_eq!(path(1, 2), [2, 12, 5].map(LinkId));
    assert_eq!(path(3, 5), [6, 16, 11].map(LinkId));
    assert_eq!(path(4, 0), [8, 17, 15, 13, 1].map(LinkId));
}

#[test]
fn leaf_spine_of_mq_ecn() {
    let fabric = build(LEAF_SPINE);
    check_invariants(&fabric);
    assert_eq!((fabric.hosts(), fabric.switches()), (144, 24));
    assert_eq!(fabric.links().len(), 2 * (144 + 144));
    assert_eq!(degrees(&fabric), [[24; 12], [12; 12]].concat());
    assert_eq!(fabric.place(HostId(143)).rack, 11);
    assert_eq!(fabric.name(Node::Switch(11)), "leaf11");
    assert_eq!(fabric.name(Node::Switch(12)), "spine0");
    assert_eq!(fabric.node("spine3"), Ok(Node::Switch(15)));
    assert_eq!(fabric.node("h77"), Ok(Node::Host(HostId(77))));
}

/// An idle one-packet flow in MQ-ECN's simulated fabric takes 86.528 us across racks and 83.264 us
/// within one: 81.6 or 80.8 us of propagation, and 1500 B and a 40 B ACK sent on each link.
#[test]
fn idle_round_trips_of_mq_ecn() {
    let fabric = build(LEAF_SPINE);
    let router = Router::new(&fabric, &RoutingConfig::DestinationModulo, 0).unwrap();
    let one_way = |src, dst, bytes| {
        let mut path = Vec::new();
        router.path(HostId(src), HostId(dst), 0, &mut path).unwrap();
        let sending = |&link: &LinkId| fabric.link(link).rate.transmission_time(Bytes::new(bytes));
        fabric.propagation(&path) + path.iter().map(sending).sum()
    };
    let round_trip = |a, b, data, ack| one_way(a, b, data) + one_way(b, a, ack);
    assert_eq!(round_trip(0, 143, 0, 0), Time::from_ns(81_600));
    assert_eq!(round_trip(0, 1, 0, 0), Time::from_ns(80_800));
    assert_eq!(round_trip(0, 143, 1500, 40), Time::from_ns(86_528));
    assert_eq!(round_trip(0, 1, 1500, 40), Time::from_ns(83_264));
}

#[test]
fn fat_tree_of_ear() {
    let fabric = fat_tree(4, 6, 2).build().unwrap();
    check_invariants(&fabric);
    assert_eq!(fabric.hosts(), 324);
    // "3 layers of 54 intermediate switches and one layer of 27 core switches".
    assert_eq!(fabric.switches(), 3 * 54 + 27);
    let degrees = degrees(&fabric);
    assert!(degrees[..54].iter().all(|&ports| ports == 9));
    assert!(degrees[54..].iter().all(|&ports| ports == 6));
    let names = [53, 54, 107, 108, 162].map(|switch| fabric.name(Node::Switch(switch)));
    assert_eq!(names, ["edge53", "agg0", "agg53", "upper0", "core0"]);
    // 6 hosts a rack, 3 racks a pod, 3 pods an upper pod, 6 upper pods.
    let last = fabric.place(HostId(323));
    assert_eq!((last.rack, last.pod, last.upper_pod), (53, 17, 5));
    let first_of_second = fabric.place(HostId(54));
    assert_eq!((first_of_second.pod, first_of_second.upper_pod), (3, 1));
}

#[test]
fn fat_tree_paths_grow_with_distance() {
    let fabric = fat_tree(4, 6, 2).build().unwrap();
    let router = Router::new(&fabric, &RoutingConfig::Ecmp, 1).unwrap();
    let mut path = Vec::new();
    for dst in 1..324 {
        router.path(HostId(0), HostId(dst), 9, &mut path).unwrap();
        let (a, b) = (fabric.place(HostId(0)), fabric.place(HostId(dst)));
        let expected = match () {
            () if a.rack == b.rack => 2,
            () if a.pod == b.pod => 4,
            () if a.upper_pod == b.upper_pod => 6,
            () => 8,
        };
        assert_eq!(path.len(), expected, "to h{dst}");
    }
}

#[test]
fn small_fat_tree_by_hand() {
    // Radix 4, three tiers: the textbook figure with 16 hosts and 20 switches.
    let fabric = fat_tree(3, 4, 1).build().unwrap();
    check_invariants(&fabric);
    assert_eq!((fabric.hosts(), fabric.switches()), (16, 20));
    assert_eq!(degrees(&fabric), [4; 20]);
    let joined = |a: &str, b: &str| {
        let ends = (fabric.node(a).unwrap(), fabric.node(b).unwrap());
        fabric
            .links()
            .iter()
            .any(|link| (link.from, link.to) == ends)
    };
    assert!(joined("edge0", "agg0") && joined("edge0", "agg1") && !joined("edge0", "agg2"));
    assert!(joined("agg0", "core0") && joined("agg0", "core1") && !joined("agg0", "core2"));
    assert!(joined("agg1", "core2") && joined("agg7", "core3") && joined("core0", "agg6"));
}

#[test]
fn fat_tree_of_eleven_thousand() {
    let fabric = fat_tree(3, 36, 1).build().unwrap();
    check_invariants(&fabric);
    assert_eq!(
        (fabric.hosts(), fabric.switches()),
        (11_664, 648 + 648 + 324)
    );
    assert_eq!(fabric.links().len(), 2 * 3 * 11_664);
    assert_eq!(Router::table_bytes(&fabric), 2_099_520);
}

#[test]
fn custom() {
    let fabric = build(
        r#"
        [topology.custom]
        hosts = ["client", "server"]
        switches = 2
        links = [
            { between = ["s0", "s1"], rate = "1Gbps", delay = "5us" },
            { between = ["s1", "server"], rate = "10Gbps", delay = "1us" },
            { between = ["client", "s0"], rate = "25Gbps", delay = "2us" },
        ]"#,
    );
    check_invariants(&fabric);
    assert_eq!(fabric.name(Node::Host(HostId(1))), "server");
    assert_eq!(fabric.link(LinkId(0)).rate, Rate::from_gbps(25));
    assert_eq!(fabric.link(LinkId(3)).from, Node::Switch(1));
    assert_eq!(fabric.link(LinkId(4)).propagation, Time::from_us(5));
}

/// Six hosts at six leaves in two groups of three.
#[test]
fn hosts_have_a_nic_at_each_leaf_of_their_group() {
    let text = LEAF_SPINE.replace("leaves = 12", "leaves = 6\nnics = 3");
    let fabric = build(&text.replace("hosts-per-leaf = 12", "hosts-per-leaf = 1"));
    check_invariants(&fabric);
    assert_eq!(fabric.links().len(), 2 * (6 * 3 + 6 * 12));
    let switches = |host| -> Vec<u32> {
        let nics = fabric.nics(HostId(host));
        nics.map(|nic| nic.switch).collect()
    };
    assert_eq!(switches(0), [0, 1, 2]);
    assert_eq!(switches(4), [4, 5, 3]);
    assert!(fabric.has_several_nics());
    assert_eq!(
        error(&LEAF_SPINE.replace("leaves = 12", "leaves = 12\nnics = 5")),
        "with 5 NICs leaves are in groups of 5, and 12 leaves do not make whole ones"
    );
}

fn custom_links(links: &[[&str; 2]]) -> TopologyConfig {
    let cable = |&[a, b]: &[&str; 2]| Cable {
        between: [a.to_owned(), b.to_owned()],
        rate: Rate::from_gbps(1),
        delay: Time::ZERO,
    };
    TopologyConfig::Custom {
        hosts: Nodes::Count(2),
        switches: Nodes::Count(2),
        links: links.iter().map(cable).collect(),
    }
}

#[test]
fn custom_mistakes_are_explained() {
    let message = |links: &[[&str; 2]]| custom_links(links).build().unwrap_err().to_string();
    let (h0, h1) = (["h0", "s0"], ["h1", "s1"]);
    assert_eq!(
        message(&[h0, h1, ["s0", "s2"]]),
        "link 2: there is no node \"s2\", did you mean \"s0\"?"
    );
    assert_eq!(
        message(&[h0, h1, ["s0", "gateway"]]),
        "link 2: there is no node \"gateway\""
    );
    assert_eq!(
        message(&[h0, h1, ["s0", "s1"], ["s1", "s0"]]),
        "links 2 and 3 both join s1 and s0; write one link with their rate"
    );
    assert_eq!(
        message(&[h0, h1, ["s0", "s0"]]),
        "link 2 joins s0 to itself"
    );
    assert_eq!(
        message(&[["h0", "h1"]]),
        "link 0 joins the hosts h0 and h1; put a switch between them"
    );
    assert_eq!(
        message(&[h0]),
        "host h1 has no link; every host needs one, to a switch"
    );
    assert_eq!(
        message(&[h0, ["s1", "h0"], h1]),
        "host h0 has links 0 and 1; a host has one"
    );
    let names = "[topology.custom]\nhosts = ['a']\nswitches = ['a']\nlinks = []";
    assert_eq!(error(names), "two nodes are called \"a\"");
}

#[test]
fn impossible_shapes_are_refused() {
    let star = |hosts| TopologyConfig::Star {
        hosts,
        rate: Rate::from_gbps(1),
        delay: Time::ZERO,
    };
    let message = |config: TopologyConfig| config.build().unwrap_err().to_string();
    assert_eq!(message(star(0)), "hosts must not be zero");
    assert_eq!(
        message(star(u32::MAX)),
        "the fabric would have 8589934590 directed links and take 8590 GB of memory; at most 16777216 are possible"
    );
    assert_eq!(
        message(fat_tree(3, 5, 1)),
        "the radix of a fat-tree is an even number from 2, not 5"
    );
    assert_eq!(
        message(fat_tree(2, 4, 1)),
        "a fat-tree has 3 or 4 tiers, not 2; for 2 tiers write leaf-spine"
    );
    assert_eq!(
        message(fat_tree(3, 4, 0)),
        "oversubscription must not be zero"
    );
    assert!(matches!(
        fat_tree(4, u32::MAX - 1, u32::MAX).build(),
        Err(TopologyError::TooLarge { .. })
    ));
    let zero_rate = TopologyConfig::Star {
        hosts: 1,
        rate: Rate::from_bps(0),
        delay: Time::ZERO,
    };
    assert_eq!(
        message(zero_rate),
        "the rate of a host link must not be zero"
    );
    let no_switch = "[topology.chain]\nhosts = []\nrate = '1Gbps'\ndelay = '0s'
                     uplink-rate = '1Gbps'\nuplink-delay = '0s'";
    assert_eq!(error(no_switch), "switches must not be zero");
}

#[test]
fn misspelled_keys_are_refused() {
    let text = "star = { hosts = 9, rate = '1Gbps', dely = '10us' }";
    let message = toml::from_str::<TopologyConfig>(text)
        .unwrap_err()
        .to_string();
    assert!(message.contains("dely"), "{message}");
    let text = "star = { hosts = 9, rate = 10, delay = '10us' }";
    let message = toml::from_str::<TopologyConfig>(text)
        .unwrap_err()
        .to_string();
    assert!(message.contains("expected a rate with a unit"), "{message}");
}

#[test]
fn configurations_survive_writing_and_reading() {
    let custom = custom_links(&[["h0", "s0"], ["h1", "s1"], ["s0", "s1"]]);
    for config in [read(LEAF_SPINE), fat_tree(4, 6, 2), custom] {
        let text = toml::to_string(&config).unwrap();
        assert_eq!(
            toml::from_str::<TopologyConfig>(&text).unwrap(),
            config,
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn regular_fabrics_hold_their_promises(
        leaves in 1_u32..6, hosts in 1_u32..5, spines in 1_u32..5,
        tiers in 3_u32..=4, half in 1_u32..4, oversubscription in 1_u32..4,
    ) {
        let (rate, delay) = (Rate::from_gbps(1), Time::ZERO);
        let leaf_spine = TopologyConfig::LeafSpine {
            nics: 1,
            leaves, hosts_per_leaf: hosts, spines,
            host_rate: rate, host_delay: delay, fabric_rate: rate, fabric_delay: delay,
        };
        check_invariants(&leaf_spine.build().unwrap());
        let tree = fat_tree(tiers, 2 * half, oversubscription).build().unwrap();
        check_invariants(&tree);
        prop_assert_eq!(tree.hosts(), 2 * half.pow(tiers) * oversubscription);
        let edges = 2 * half.pow(tiers - 1) as usize;
        let ports = degrees(&tree);
        prop_assert!(ports[edges..].iter().all(|&ports| ports == 2 * half as usize));
    }

    #[test]
    fn names_in_any_form_never_panic(a in "\\PC{0,12}", b in "[hs][0-9]{0,3}") {
        let _ = custom_links(&[[&a, &b], ["h0", "s0"], ["h1", "s1"]]).build();
    }
}
