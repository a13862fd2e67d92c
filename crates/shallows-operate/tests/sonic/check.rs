//! What the check finds in configurations, above all the mistakes that people ask about.

use serde_json::{Value, json};
use shallows_core::units::Time;
use shallows_operate::sonic::{ConfigDb, Context, Finding, Rule, Severity, check};

const LEAF: &str = include_str!("../../scenarios/sonic/leaf.config_db.json");

fn leaf() -> Value {
    serde_json::from_str(LEAF).expect("the example is sound")
}

fn findings(db: &Value, context: &Context) -> Vec<Finding> {
    let text = serde_json::to_string_pretty(db).expect("values are JSON");
    let db = ConfigDb::parse("leaf.json", &text).expect("it can be read");
    check(&db, context)
}

fn with_rtt() -> Context {
    Context {
        rtt: Some(Time::from_us(20)),
        ..Context::default()
    }
}

/// The first finding of a rule.
#[track_caller]
fn one(findings: &[Finding], rule: Rule) -> &Finding {
    let found = findings.iter().find(|finding| finding.rule == rule);
    found.unwrap_or_else(|| panic!("no {rule:?} among {findings:#?}"))
}

fn none(findings: &[Finding], rule: Rule) -> bool {
    findings.iter().all(|finding| finding.rule != rule)
}

#[test]
fn depths_are_times_and_multiples_of_the_bandwidth_delay_product() {
    let found = findings(&leaf(), &with_rtt());
    let depths: Vec<&str> = found
        .iter()
        .filter(|finding| finding.rule == Rule::Depth)
        .map(|finding| finding.says.as_str())
        .collect();
    // 1 MiB x 8 / 25 Gbps = 335.5 us; C x RTT = 62.5 KB; 1048576 / 62500 = 16.8.
    assert_eq!(
        depths,
        [
            "queues 0, 2 and 3 of Ethernet0 to Ethernet7 (8 ports) start to mark at 1 MiB, which is 336 us at 25G and 16.8 times C x RTT; the probability rises to 5% at 2 MiB and is 1 above",
            "queues 0, 2 and 3 of Ethernet48 to Ethernet60 (4 ports) start to mark at 1 MiB, which is 83.9 us at 100G and 4.19 times C x RTT; the probability rises to 5% at 2 MiB and is 1 above",
        ]
    );
    assert_eq!(one(&found, Rule::TooDeep).severity, Severity::Warning);
    let speeds = one(&found, Rule::SeveralSpeeds);
    assert!(speeds.says.contains("336 us at 25G and 83.9 us at 100G"));
}

#[test]
fn a_shallow_step_is_neither_too_deep_nor_too_shallow() {
    for (k, expected) in [
        (62_500, None),
        (8_929, None),
        (8_900, Some(Rule::TooShallow)),
        (125_001, Some(Rule::TooDeep)),
    ] {
        let mut db = leaf();
        for end in ["min", "max"] {
            db["WRED_PROFILE"]["ECN_TEMPLATE"][format!("green_{end}_threshold")] =
                json!(k.to_string());
        }
        db["PORT"] = json!({ "Ethernet0": { "speed": "25000" } });
        db["QUEUE"] = json!({ "Ethernet0|3": { "wred_profile": "ECN_TEMPLATE" } });
        db["BUFFER_QUEUE"] = json!({});
        let found = findings(&db, &with_rtt());
        for rule in [Rule::TooShallow, Rule::TooDeep] {
            assert_eq!(!none(&found, rule), expected == Some(rule), "K = {k}");
        }
    }
}

// The five mistakes that the project's own threads are about.

#[test]
fn mistake_1_wred_is_not_switched_on() {
    let mut db = leaf();
    let profile = db["WRED_PROFILE"]["ECN_TEMPLATE"].as_object_mut().unwrap();
    profile.remove("wred_green_enable");
    let found = findings(&db, &Context::default());
    let finding = one(&found, Rule::NotEnabled);
    assert_eq!(finding.severity, Severity::Error);
    assert!(
        finding
            .says
            .contains("nothing is marked on platforms that follow SAI")
    );
    assert_eq!(finding.place.to_string(), "WRED_PROFILE|ECN_TEMPLATE");
    assert!(finding.line.is_some());
    assert_eq!(
        finding.fix.as_deref(),
        Some("set \"wred_green_enable\": \"true\"")
    );
}

#[test]
fn mistake_2_min_is_above_max() {
    let mut db = leaf();
    db["WRED_PROFILE"]["ECN_TEMPLATE"]["green_min_threshold"] = json!("3000000");
    let found = findings(&db, &Context::default());
    let finding = one(&found, Rule::MinAboveMax);
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.place.field.as_deref(), Some("green_min_threshold"));
    assert!(finding.says.contains("begins at 3 MB and ends at 2 MiB"));
}

#[test]
fn mistake_3_a_profile_that_was_never_made_or_that_no_queue_has() {
    let mut db = leaf();
    db["QUEUE"]["Ethernet0|5"]["wred_profile"] = json!("ECN_CACHE");
    db["WRED_PROFILE"]["ECN_CASH"] = db["WRED_PROFILE"]["ECN_TEMPLATE"].clone();
    let found = findings(&db, &Context::default());
    let dangling = one(&found, Rule::DanglingReference);
    assert_eq!(
        dangling.place.to_string(),
        "QUEUE|Ethernet0|5, wred_profile"
    );
    assert!(
        dangling
            .fix
            .as_deref()
            .unwrap()
            .starts_with("write \"ECN_CASH\"")
    );
    let unused = one(&found, Rule::UnusedProfile);
    assert!(unused.says.contains("ECN_CASH, so it has no effect"));
}

#[test]
fn mistake_4_packets_that_are_not_ect_are_dropped_at_the_same_depth() {
    let found = findings(&leaf(), &Context::default());
    let finding = one(&found, Rule::NotEctDropped);
    assert_eq!(finding.severity, Severity::Note);
    assert!(
        finding
            .says
            .contains("drops packets that are not ECT from 1 MiB on")
    );
    let mut db = leaf();
    db["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = json!("3,4");
    let found = findings(&db, &Context::default());
    let finding = one(&found, Rule::NotEctDropped);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding
            .says
            .contains("also in the lossless queue 3 of Ethernet0")
    );
}

#[test]
fn mistake_5_placeholders_and_ecn_none() {
    let mut db = leaf();
    for end in ["min", "max"] {
        db["WRED_PROFILE"]["ECN_TEMPLATE"][format!("green_{end}_threshold")] = json!("0");
    }
    let found = findings(&db, &Context::default());
    assert!(
        one(&found, Rule::NoThreshold)
            .says
            .contains("a placeholder")
    );

    let mut db = leaf();
    db["WRED_PROFILE"]["ECN_TEMPLATE"]["green_min_threshold"] = json!(" 166912");
    let text = db.to_string();
    let error = ConfigDb::parse("leaf.json", &text).unwrap_err().to_string();
    assert_eq!(
        error,
        "leaf.json:1: WRED_PROFILE|ECN_TEMPLATE, green_min_threshold: \" 166912\" has a space; write \"166912\""
    );

    let mut db = leaf();
    db["WRED_PROFILE"]["ECN_TEMPLATE"]["ecn"] = json!("ecn_none");
    let found = findings(&db, &Context::default());
    let finding = one(&found, Rule::DropsInsteadOfMarks);
    assert!(
        finding
            .says
            .contains("dropped above 1 MiB and never marked")
    );
}

#[test]
fn traffic_in_a_queue_without_a_profile() {
    let found = findings(&leaf(), &Context::default());
    let uncovered: Vec<&str> = found
        .iter()
        .filter(|finding| finding.rule == Rule::Uncovered)
        .map(|finding| finding.says.as_str())
        .collect();
    assert_eq!(
        uncovered[0],
        "DSCP 46 goes to queue 5 of Ethernet0 to Ethernet60 (12 ports), which no WRED profile covers: it is not marked, and fills its buffer"
    );
    assert_eq!(uncovered.len(), 2, "queues 5 and 6, whatever the speed");
}

#[test]
fn weights_that_add_to_nothing_and_strict_queues_that_starve() {
    let mut db = leaf();
    let found = findings(&db, &Context::default());
    let finding = one(&found, Rule::Starvation);
    assert!(finding.says.contains("queue 6 of Ethernet0"));
    assert!(finding.says.contains("queues 0, 2, 3 and 5 get nothing"));
    assert!(none(&found, Rule::Weight));
    db["SCHEDULER"]["scheduler.control"]["pir"] = json!("125000000");
    let found = findings(&db, &Context::default());
    assert!(none(&found, Rule::Starvation));
    for name in ["bulk", "rpc", "storage", "cache"] {
        db["SCHEDULER"][format!("scheduler.{name}")]["weight"] = json!("0");
    }
    let found = findings(&db, &Context::default());
    assert!(one(&found, Rule::Weight).says.contains("add to nothing"));
    db["SCHEDULER"]["scheduler.bulk"]["weight"] = json!("7");
    db["SCHEDULER"]["scheduler.rpc"]["weight"] = json!("700");
    let found = findings(&db, &Context::default());
    let weights = found.iter().filter(|finding| finding.rule == Rule::Weight);
    let says: Vec<&str> = weights.map(|finding| finding.says.as_str()).collect();
    assert!(
        says.iter()
            .any(|says| says.contains("weight 0, so that queues 3"))
    );
    assert!(says.iter().any(|says| says.contains("weight 700")));
}

#[test]
fn buffers_that_cannot_hold_the_threshold() {
    let mut db = leaf();
    // alpha = 1/2: a third of the pool for one busy queue.
    db["BUFFER_POOL"]["egress_lossy_pool"]["size"] = json!("3145725");
    let found = findings(&db, &Context::default());
    let finding = one(&found, Rule::SmallBuffer);
    assert_eq!(finding.severity, Severity::Error);
    assert!(
        finding
            .says
            .contains("packets are dropped before any is marked")
    );
    db["BUFFER_POOL"]["egress_lossy_pool"]["size"] = json!("3145728");
    let found = findings(&db, &Context::default());
    assert_eq!(one(&found, Rule::SmallBuffer).severity, Severity::Warning);
    db["BUFFER_POOL"]["egress_lossy_pool"]["size"] = json!("6291456");
    let found = findings(&db, &Context::default());
    assert!(none(&found, Rule::SmallBuffer));
    db["BUFFER_PROFILE"]["egress_lossy_profile"] =
        json!({ "pool": "egress_lossy_pool", "size": "1024", "static_th": "1000000" });
    let found = findings(&db, &Context::default());
    assert!(
        one(&found, Rule::SmallBuffer)
            .says
            .contains("can hold 1 MB")
    );
}

#[test]
fn qjump_levels_need_strict_queues_in_order() {
    // Levels 0, 1 and 2 are DSCP 0, 8 and 16.
    let context = Context {
        qjump: vec![0, 8, 16],
        ..Context::default()
    };
    let mut db = leaf();
    let found = findings(&db, &context);
    let finding = one(&found, Rule::QjumpNotStrict);
    assert!(
        finding.says.contains("level 1 (DSCP 8) is in queue 0"),
        "{finding:?}"
    );
    db["DSCP_TO_TC_MAP"]["FABRIC"]["8"] = json!("6");
    db["DSCP_TO_TC_MAP"]["FABRIC"]["16"] = json!("7");
    let found = findings(&db, &context);
    let finding = one(&found, Rule::QjumpNotStrict);
    assert!(finding.says.contains("queue 7"), "{finding:?}");
    for port in [0, 1, 2, 3, 4, 5, 6, 7, 48, 52, 56, 60] {
        db["QUEUE"][format!("Ethernet{port}|7")] = json!({ "scheduler": "scheduler.control" });
    }
    assert!(none(&findings(&db, &context), Rule::QjumpNotStrict));
}

#[test]
fn names_fields_and_rows_that_do_not_fit() {
    let mut db = leaf();
    db["WRED_PROFILE"]["ECN_TEMPLATE"]["wred_gren_enable"] = json!("true");
    db["QUEUE"]["Ethernet0|3-4"] = json!({ "scheduler": "scheduler.bulk" });
    db["QUEUE"]["Ethernet99|3"] = json!({ "scheduler": "scheduler.bulk" });
    db["PORT_QOS_MAP"]["Ethernet1"]["dscp_to_tc_map"] = json!("[DSCP_TO_TC_MAP|FABRIC]");
    db["PORT_QOS_MAP"]
        .as_object_mut()
        .unwrap()
        .remove("Ethernet2");
    db["TC_TO_QUEUE_MAP"]["FABRIC"]
        .as_object_mut()
        .unwrap()
        .remove("2");
    let found = findings(&db, &Context::default());
    let field = one(&found, Rule::UnknownField);
    assert_eq!(field.fix.as_deref(), Some("write \"wred_green_enable\""));
    assert!(
        one(&found, Rule::GivenTwice)
            .says
            .contains("\"Ethernet0|3-4\"")
    );
    let dangling = one(&found, Rule::DanglingReference);
    assert!(dangling.says.contains("no port Ethernet99"));
    let classes = found
        .iter()
        .filter(|finding| finding.rule == Rule::Unclassified);
    let says: Vec<&str> = classes.map(|finding| finding.says.as_str()).collect();
    assert!(
        says.iter()
            .any(|says| says.starts_with("Ethernet2 has no dscp_to_tc_map"))
    );
    assert!(says.iter().any(|says| says.starts_with("DSCP 18 of")));
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let read = |text: &str| ConfigDb::parse("db.json", text).unwrap_err().to_string();
    assert!(read("").starts_with("db.json:1: not JSON"));
    assert!(read("[]").contains("not an object with tables"));
    assert!(read("{}").contains("none of the tables"));
    assert!(read(r#"{"X": {"QUEUE": {}}}"#).contains("inside \"X\"; take them out"));
    assert!(read(r#"{"QUEUE": {}, "QUEUE": {}}"#).contains("given twice"));
    let error = read(
        "{\"QUEUE\": {\n\"Ethernet0\": {},\n\"Ethernet0|4-3\": {},\n\"Ethernet0|16\": {\"scheduler\": []}},\n\"SCHEDULER\": {\"a\": {\"type\": \"FIFO\",\n\"weight\": \"ten\"}}}",
    );
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 5, "{error}");
    assert_eq!(
        lines[0],
        "db.json:6: SCHEDULER|a, weight: \"ten\" is not a whole number from 0 to 4294967295"
    );
    assert_eq!(
        lines[1],
        "db.json:5: SCHEDULER|a, type: \"FIFO\" is not one of STRICT, DWRR, WRR"
    );
    assert!(lines[2].starts_with("db.json:2: QUEUE|Ethernet0: the key names no queue"));
    assert!(lines[4].starts_with("db.json:3: QUEUE|Ethernet0|4-3: the queues run backwards"));
}

#[test]
fn codes_are_numbered_in_order() {
    for (number, rule) in (1..).zip(Rule::ALL) {
        assert_eq!(rule.code(), format!("S{number:02}"));
    }
}
