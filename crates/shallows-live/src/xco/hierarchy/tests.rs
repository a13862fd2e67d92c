use std::fmt::Write as _;

use super::*;

/// Two racks of two hosts, a controller for each, and a root with a standby.
fn racks() -> String {
    let controllers = [
        ("root", ""),
        ("p0", "pod = \"left\""),
        ("spare", ""),
        ("p1", "pod = \"right\""),
    ];
    let mut text =
        String::from("key-file = \"key\"\nslot = \"2ms\"\nhierarchy = { root-share = 20 }\n");
    for (place, (name, pod)) in controllers.into_iter().enumerate() {
        let _ = write!(
            text,
            "[[controller]]\nname = \"{name}\"\naddress = \"10.0.1.{place}:4783\"\n{pod}\n"
        );
    }
    for (host, switch) in ["left", "right", "left", "right"].into_iter().enumerate() {
        let _ = write!(
            text,
            "[[host]]\nname = \"h{host}\"\nrate = \"1Gbps\"\naddress = \"10.0.0.{host}:4784\"\n\
             pod-address = \"10.0.0.{host}:4785\"\nswitch = \"{switch}\"\n\
             stations = [\"02:00:00:00:00:0{host}\"]\n"
        );
    }
    text + "[[trunk]]\nbetween = [\"left\", \"right\"]\nrate = \"1Gbps\"\n"
}

#[test]
fn domains_have_their_own_numbers_and_addresses() {
    let cluster = Cluster::parse(&racks()).unwrap();
    let of = |name| cluster.domain_of_controller(cluster.controller(name).unwrap());
    let right = of("p1");
    assert_eq!(
        (right.level, right.pod, right.size()),
        (Level::Pod, Some(1), 2)
    );
    assert_eq!((right.number(3), right.number(0)), (Some(1), None));
    let addresses = |domain: &Domain| -> Vec<String> {
        let each = domain.addresses(&cluster).into_iter();
        each.map(|(number, at)| format!("{number} {at}")).collect()
    };
    let expected = [
        "0 10.0.0.1:4785",
        "1 10.0.0.3:4785",
        "1000000 10.0.1.3:4783",
    ];
    assert_eq!(addresses(&right), expected);
    let root = of("spare");
    assert_eq!((root.level, root.size()), (Level::Root, 4));
    // The second of the root's controllers, though the third of the file.
    assert_eq!(root.controller_number(2), Some(1_000_001));
    assert_eq!(addresses(&root)[4], "1000000 10.0.1.0:4783");
    let of_host: Vec<Level> = cluster
        .domains_of_host(3)
        .iter()
        .map(|of| of.level)
        .collect();
    assert_eq!(of_host, [Level::Pod, Level::Root]);
    assert_eq!(right.slot(cluster.slot), Time::from_us(2_500));
    assert_eq!(root.slot(cluster.slot), Time::from_ms(10));
    assert_eq!(right.part(Rate::from_gbps(1)), Rate::from_mbps(800));
}

#[test]
fn hosts_and_pods_have_keys_of_their_own() {
    let cluster = Cluster::parse(&racks()).unwrap();
    let key = ClusterKey::new([7; 16]);
    let KeyFile::Host { key: own, pod, .. } = cluster.host_key_file(&key, 3) else {
        panic!("not a host's");
    };
    let KeyFile::Pod { key: of_pod, .. } = cluster.pod_key_file(&key, "right").unwrap() else {
        panic!("not a pod's");
    };
    assert_eq!(own, key.named_host("h3").bytes());
    let derived = ClusterKey::new(of_pod).named_host("h3").bytes();
    assert_eq!(pod, Some(derived));
    assert_ne!(own, derived);
    assert_ne!(of_pod, key.named_host("right").bytes());
    assert!(cluster.pod_key_file(&key, "middle").is_err());
}

#[test]
fn what_is_wrong_with_a_hierarchy_is_said() {
    for (from, to, said) in [
        ("root-share = 20", "root-share = 0", "use 1 to 99 percent"),
        ("root-share = 20", "root-share = 100", "use 1 to 99 percent"),
        (
            "hierarchy = { root-share = 20 }",
            "",
            "has a pod, and the file no [hierarchy]",
        ),
        (
            "pod = \"left\"",
            "pod = \"middle\"",
            "no host is in pod \"middle\"",
        ),
        ("pod = \"left\"", "", "pod \"left\" has no controller"),
        (
            "pod-address = \"10.0.0.2:4785\"",
            "",
            "host h2 has no pod-address",
        ),
        ("10.0.0.2:4785", "10.0.0.1:4785", "is the address of two"),
        (
            "slot = \"2ms\"",
            "learn-places = true",
            "learn-places does not work",
        ),
        (
            "slot = \"2ms\"",
            "on-demand = {}",
            "on-demand does not work",
        ),
    ] {
        let text = racks();
        assert!(text.contains(from), "{from}");
        let error = Cluster::parse(&text.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
    // Hosts 0 and 1 in each other's pod: both pods use the trunk.
    let crossed = racks()
        .replacen("switch = \"left\"", "pod = \"right\"\nswitch = \"left\"", 1)
        .replacen(
            "switch = \"right\"",
            "pod = \"left\"\nswitch = \"right\"",
            1,
        );
    let error = Cluster::parse(&crossed).unwrap_err().to_string();
    assert!(error.contains("pods that share no link"), "{error}");
    let rootless = racks()
        .replace("name = \"root\"", "name = \"root\"\npod = \"left\"")
        .replace("name = \"spare\"", "name = \"spare\"\npod = \"left\"");
    let error = Cluster::parse(&rootless).unwrap_err().to_string();
    assert!(error.contains("no root"), "{error}");
}
