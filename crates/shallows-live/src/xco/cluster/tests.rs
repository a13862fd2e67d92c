use super::*;

const GOOD: &str = r#"
key-file = "key"

[[controller]]
name = "c0"
address = "10.0.0.100:4783"

[[controller]]
name = "c1"
address = "10.0.0.101:4783"

[[host]]
name = "h0"
rate = "1Gbps"
address = "10.0.0.1:4784"
switch = "left"
stations = ["02:00:00:00:00:01"]

[[host]]
name = "h1"
rate = "1Gbps"
address = "10.0.0.2:4784"
switch = "right"
networks = ["10.1.0.0/24"]

[[trunk]]
between = ["left", "right"]
rate = "10Gbps"
"#;

#[test]
fn hosts_and_controllers_have_numbers() {
    let cluster = Cluster::parse(GOOD).unwrap();
    assert_eq!(cluster.host("h1").unwrap(), 1);
    assert_eq!(cluster.controller("c1").unwrap(), 1);
    let addresses = cluster.whole().controller_addresses(&cluster);
    let addresses: Vec<u32> = addresses.iter().map(|a| a.0).collect();
    assert_eq!(addresses, [1_000_000, 1_000_001]);
    let error = cluster.host("h7").unwrap_err().to_string();
    assert!(error.contains("it has h0, h1"), "{error}");
}

#[test]
fn what_is_wrong_is_said() {
    let error = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        Cluster::parse(&text).unwrap_err().to_string()
    };
    for (from, to, said) in [
        (
            "rate = \"1Gbps\"",
            "rate = \"0bps\"",
            "\"0bps\" is not a rate: it is zero",
        ),
        (
            "rate = \"10Gbps\"",
            "rate = \"0bps\"",
            "\"0bps\" is not a rate: it is zero",
        ),
        ("\"h1\"", "\"h0\"", "h0 is the name of two"),
        ("\"h1\"", "\"h 1\"", "\"h 1\" is not a name"),
        ("\"h1\"", "\"h\\n1\"", "is not a name"),
        ("10.0.0.2:4784", "10.0.0.1:4784", "address of two"),
        (
            "networks = [\"10.1.0.0/24\"]",
            "",
            "neither stations nor networks",
        ),
        ("10.1.0.0/24", "10.1.0/24", "is no IP network"),
        ("02:00:00:00:00:01", "02:00", "is no Ethernet address"),
        ("switch = \"right\"", "switch = \"middle\"", "form a tree"),
        ("key-file = \"key\"", "", "key-file"),
        (
            "key-file = \"key\"",
            "key-file = \"key\"\nslot = \"0s\"",
            "slot must be longer",
        ),
        (
            "switch = \"left\"",
            "weight = 17\nswitch = \"left\"",
            "weight 17; use 1 to 16",
        ),
        (
            "key-file = \"key\"",
            "key-file = \"key\"\ngate = { pass-dscp = 0 }",
            "for scenarios",
        ),
        ("[[trunk]]", "[[truck]]", "truck"),
    ] {
        let error = error(from, to);
        assert!(error.contains(said), "{said}: {error}");
    }
    let without = GOOD.replace("[[controller]]", "[[host]]");
    assert!(Cluster::parse(&without).is_err());
}
