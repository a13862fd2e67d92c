//! Import and export are each other's inverse.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value};
use shallows_core::port::PortConfig;
use shallows_core::units::Bytes;
use shallows_operate::sonic::{
    ConfigDb, ExportOptions, Exported, Fidelity, ImportOptions, Operation, export, import,
};

const LEAF: &str = include_str!("../../scenarios/sonic/leaf.config_db.json");

/// Applies a patch as RFC 6902 says.
pub(crate) fn apply(before: &Value, patch: &[Operation]) -> Value {
    let mut value = before.clone();
    for step in patch {
        let (path, new) = match step {
            Operation::Add { path, value } => (path, Some((value, false))),
            Operation::Replace { path, value } => (path, Some((value, true))),
            Operation::Remove { path } => (path, None),
        };
        let (parent, key) = path.rsplit_once('/').expect("a pointer");
        let key = key.replace("~1", "/").replace("~0", "~");
        let parent = value.pointer_mut(parent).and_then(Value::as_object_mut);
        let parent: &mut Map<String, Value> = parent.expect("the parent exists");
        match new {
            Some((new, replaces)) => {
                let old = parent.insert(key, new.clone());
                assert_eq!(old.is_some(), replaces, "{path}");
            }
            None => assert!(parent.remove(&key).is_some(), "{path}"),
        }
    }
    value
}

/// A patch of exact statements, applied; the fragment says the same but for removals.
fn exported(base: &str, switch: &PortConfig, pool: Option<Bytes>) -> (Value, Exported) {
    let db = ConfigDb::parse("base.json", base).expect("the base is sound");
    let options = ExportOptions {
        pool,
        ..ExportOptions::default()
    };
    let change = export(&db, switch, &options).expect("it can be exported");
    let before: Value = serde_json::from_str(base).expect("the base is JSON");
    let after = apply(&before, &change.patch);
    let tables = change.fragment.as_object().expect("tables");
    for (name, rows) in tables {
        for (key, row) in rows.as_object().expect("rows") {
            assert_eq!(after[name][key], *row, "{name}|{key}");
        }
    }
    (after, change)
}

/// A configuration that is imported and exported does not change.
pub(crate) fn stays(file: &str, text: &str) {
    let db = ConfigDb::parse(file, text).expect("it can be read");
    let Ok(ports) = import(&db, &ImportOptions::default()) else {
        return;
    };
    // Each kind of port, by the links that it is imported for.
    let mut options = ExportOptions {
        pool: ports.pool,
        ..ExportOptions::default()
    };
    for group in db.groups() {
        let links = vec![(group.ports[0].clone(), vec!["all".to_owned()])];
        let wanted = ImportOptions { links, pool: None };
        if let Ok(ports) = import(&db, &wanted) {
            let config = ports.special[0].1.clone();
            options.special.push((group.ports[0].clone(), config));
        }
    }
    let change = export(&db, &ports.switch, &options).expect("it can be exported");
    let resized = |step: &Operation| match step {
        // Ports of several pools have one in a scenario.
        Operation::Replace { path, .. } | Operation::Add { path, .. } => {
            path.starts_with("/BUFFER_POOL/")
        }
        Operation::Remove { .. } => false,
    };
    let rest: Vec<_> = change.patch.iter().filter(|step| !resized(step)).collect();
    assert!(rest.is_empty(), "{file}: {rest:#?}");
}

#[test]
fn what_was_imported_is_exported_without_a_change() {
    stays("leaf.json", LEAF);
    let db = ConfigDb::parse("leaf.json", LEAF).expect("it is sound");
    let ports = import(&db, &ImportOptions::default()).expect("it has ports");
    let (_, change) = exported(LEAF, &ports.switch, ports.pool);
    assert!(change.patch.is_empty(), "{:#?}", change.patch);
    assert_eq!(change.fragment, serde_json::json!({}));
    assert!(
        change
            .statements
            .iter()
            .all(|of| of.fidelity == Fidelity::Exact)
    );
}

#[test]
fn the_shipped_fabric_has_the_ports_of_the_shipped_leaf() {
    let db = ConfigDb::parse("leaf.json", LEAF).expect("it is sound");
    let ports = import(&db, &ImportOptions::default()).expect("it has ports");
    let fabric = include_str!("../../scenarios/sonic/fabric.toml");
    let fabric: toml::Table = fabric.parse().expect("it is TOML");
    let switch = fabric["ports"]["switch"].clone();
    let switch: PortConfig = switch.try_into().expect("it is a port");
    assert_eq!(switch, ports.switch);
    assert_eq!(fabric["ports"]["pool"].as_str(), Some("16MB"));
    assert_eq!(ports.pool, Some(Bytes::new(16_000_000)));
}

/// Ports that a switch can have: seven or eight queues, each joined by some DSCP.
fn port() -> impl Strategy<Value = (PortConfig, Option<Bytes>)> {
    let queues = 7..=8_usize;
    queues.prop_flat_map(|queues| {
        let lengths = prop::collection::vec(1_500..4_000_000_u64, queues);
        let spreads = prop::collection::vec(0..2_000_000_u64, queues);
        let percents = prop::collection::vec(1..=100_u8, queues);
        let weights = prop::collection::vec(1..=20_u64, queues);
        let map = prop::collection::vec(0..queues, 64 - queues);
        let buffer = (any::<bool>(), -8..=7_i32, 1_500..40_000_000_u64);
        (
            lengths,
            spreads,
            percents,
            weights,
            map,
            buffer,
            0..=queues,
            0..4_u8,
        )
            .prop_map(
                move |(lengths, spreads, percents, weights, map, buffer, strict, steps)| {
                    text(
                        queues, &lengths, &spreads, &percents, &weights, &map, buffer, strict,
                        steps,
                    )
                },
            )
    })
}

#[allow(clippy::too_many_arguments)]
fn text(
    queues: usize,
    lengths: &[u64],
    spreads: &[u64],
    percents: &[u8],
    weights: &[u64],
    map: &[usize],
    (dynamic, exponent, size): (bool, i32, u64),
    strict: usize,
    steps: u8,
) -> (PortConfig, Option<Bytes>) {
    let list = |texts: Vec<String>| format!("[{}]", texts.join(", "));
    let bytes = |values: &[u64]| list(values.iter().map(|of| format!("\"{of}B\"")).collect());
    let classes = (0..queues).chain(map.iter().copied());
    let classes = list(classes.map(|queue| queue.to_string()).collect());
    let quanta: Vec<u64> = weights.iter().map(|weight| weight * 1_500).collect();
    let scheduler = match strict {
        0 => format!("{{ dwrr = {{ quantum = {} }} }}", bytes(&quanta)),
        strict if strict == queues => "\"strict\"".to_owned(),
        strict => format!(
            "{{ strict-over = {{ strict = {strict}, rest = \"dwrr\", quantum = {} }} }}",
            bytes(&quanta)
        ),
    };
    let marker = match steps {
        0 => "\"none\"".to_owned(),
        1 => format!("{{ per-queue = {{ threshold = {} }} }}", bytes(lengths)),
        _ => {
            let max: Vec<u64> = lengths
                .iter()
                .zip(spreads)
                .map(|(min, more)| min + more + 1)
                .collect();
            let percents = percents
                .iter()
                .map(|p| format!("{:?}", f64::from(*p) / 100.0));
            format!(
                "{{ red = {{ min = {}, max = {}, max-probability = {} }} }}",
                bytes(lengths),
                bytes(&max),
                list(percents.collect())
            )
        }
    };
    let buffer = if dynamic {
        format!(
            "{{ dynamic = {{ alpha = {:?} }} }}",
            f64::from(exponent).exp2()
        )
    } else {
        format!("{{ per-queue = {{ limit = {} }} }}", bytes(lengths))
    };
    let not_ect = if steps == 0 { "pass" } else { "drop" };
    let text = format!(
        "queues = {queues}\nclassifier = {{ dscp-map = {{ map = {classes} }} }}\nscheduler = {scheduler}\nbuffer = {buffer}\nmarker = {{ scheme = {marker}, not-ect = \"{not_ect}\" }}"
    );
    let config = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (config, dynamic.then(|| Bytes::new(size)))
}

/// A port as an import writes it: weights in lowest terms, one value where all are the same, no
/// entries of the map that repeat the last one.
fn normal(port: &PortConfig, pool: Option<Bytes>) -> PortConfig {
    let (after, _) = exported(LEAF, port, pool);
    let db = ConfigDb::parse("after.json", &after.to_string()).expect("it is sound");
    let ports = import(&db, &ImportOptions::default()).expect("it has ports");
    ports.switch
}

/// Returns whether two ports behave the same, by what they say of each queue.
fn same(a: &PortConfig, b: &PortConfig) {
    let queue = |port: &PortConfig, dscp: usize| match &port.classifier {
        shallows_core::port::ClassifierConfig::DscpMap { map, other } => {
            *map.get(dscp).unwrap_or(other)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(a.queues, b.queues);
    for dscp in 0..64 {
        assert_eq!(queue(a, dscp), queue(b, dscp), "DSCP {dscp}");
    }
    assert_eq!(
        format!("{:?}", spread(&a.marker)),
        format!("{:?}", spread(&b.marker))
    );
    assert_eq!(spread(&a.buffer), spread(&b.buffer));
    let (mut a, mut b) = (shares(a), shares(b));
    let (x, y) = (a.pop(), b.pop());
    assert_eq!((a, x), (b, y));
}

/// A part as a value in which one value for all is a list.
fn spread(part: &impl serde::Serialize) -> Value {
    fn each(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let lists = ["threshold", "limit", "min", "max", "max-probability"];
                    if lists.contains(&key.as_str()) && !value.is_array() {
                        *value = Value::Array(vec![value.clone()]);
                    }
                    if let Value::Array(values) = value {
                        let first = values.first().cloned();
                        if values.iter().all(|value| Some(value) == first.as_ref()) {
                            values.truncate(1);
                        }
                    }
                    each(value);
                }
            }
            Value::Array(values) => values.iter_mut().for_each(each),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(part).expect("a plain value");
    each(&mut value);
    value
}

/// How many queues are strict, and the shares of the others in lowest terms.
fn shares(port: &PortConfig) -> Vec<u64> {
    use shallows_core::port::SchedulerConfig::{Dwrr, Strict, StrictOver};
    let (strict, quantum) = match &port.scheduler {
        Strict => return vec![port.queues as u64],
        Dwrr { quantum } => (0, quantum),
        StrictOver {
            strict, quantum, ..
        } => (*strict, quantum),
        other => panic!("{other:?}"),
    };
    let quanta = quantum.each("quantum", port.queues).expect("one for each");
    let quanta: Vec<u64> = quanta[strict..]
        .iter()
        .map(|quantum| quantum.get())
        .collect();
    let common = quanta.iter().copied().reduce(divisor).unwrap_or(1);
    let shares = quanta.iter().map(|quantum| quantum / common);
    [strict as u64].into_iter().chain(shares).collect()
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(29),
        ..ProptestConfig::with_cases(200)
    })]

    #[test]
    fn what_is_exported_is_imported_the_same((config, pool) in port()) {
        let (after, change) = exported(LEAF, &config, pool);
        let db = ConfigDb::parse("after.json", &after.to_string()).expect("it is sound");
        let again = import(&db, &ImportOptions::default()).expect("it has ports");
        same(&again.switch, &config);
        prop_assert_eq!(again.pool, pool);
        // Once more changes nothing.
        let (_, twice) = exported(&after.to_string(), &config, pool);
        prop_assert!(twice.patch.is_empty(), "{:#?}", twice.patch);
        let missing = change.statements.iter().find(|of| of.fidelity == Fidelity::Missing);
        prop_assert!(missing.is_none(), "{:?}", missing);
        // What an import writes is a fixed point.
        prop_assert_eq!(&normal(&again.switch, pool), &again.switch);
    }
}
