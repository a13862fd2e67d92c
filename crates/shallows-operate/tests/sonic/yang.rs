//! Exports against SONiC's own YANG models: types, ranges, patterns, enumerations, references,
//! mandatory fields, and the rule that a maximum is not below its minimum.
//!
//! A small reader of YANG is enough for the tables of queues. Conditions in XPath other than that
//! rule are passed over.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use serde_json::{Map, Value, json};
use shallows_core::port::{PortConfig, SchemeConfig};
use shallows_operate::sonic::{ConfigDb, ExportOptions, ImportOptions, export, import};

const LEAF: &str = include_str!("../../scenarios/sonic/leaf.config_db.json");

/// Tables of queues with their modules.
const TABLES: [(&str, &str); 9] = [
    ("WRED_PROFILE", "sonic-wred-profile"),
    ("SCHEDULER", "sonic-scheduler"),
    ("QUEUE", "sonic-queue"),
    ("BUFFER_POOL", "sonic-buffer-pool"),
    ("BUFFER_PROFILE", "sonic-buffer-profile"),
    ("BUFFER_QUEUE", "sonic-buffer-queue"),
    ("DSCP_TO_TC_MAP", "sonic-dscp-tc-map"),
    ("TC_TO_QUEUE_MAP", "sonic-tc-queue-map"),
    ("PORT_QOS_MAP", "sonic-port-qos-map"),
];

/// The directory with SONiC's files, which are not part of the tree: configurations of devices in
/// `configs` and models in `yang`.
pub(crate) fn sonic_files() -> PathBuf {
    let directory = env::var_os("SHALLOWS_SONIC").expect("SHALLOWS_SONIC names a directory");
    PathBuf::from(directory)
}

/// A statement of YANG.
#[derive(Debug, Default)]
struct Statement {
    keyword: String,
    argument: String,
    inside: Vec<Self>,
}

impl Statement {
    fn all<'a>(&'a self, keyword: &'a str) -> impl Iterator<Item = &'a Self> {
        self.inside.iter().filter(move |of| of.keyword == keyword)
    }

    fn one(&self, keyword: &str) -> Option<&Self> {
        self.inside.iter().find(|of| of.keyword == keyword)
    }
}

/// Words, texts in quotes, and the signs `{`, `}` and `;`.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest = rest
                .split_once('\n')
                .map_or("", |(_, after)| after)
                .trim_start();
            continue;
        } else if rest.starts_with("/*") {
            rest = rest
                .split_once("*/")
                .map_or("", |(_, after)| after)
                .trim_start();
            continue;
        } else if first == '"' || first == '\'' {
            let end = rest[1..].find(first).expect("a text ends") + 1;
            tokens.push(rest[..end].to_owned());
            end + 1
        } else if "{};+".contains(first) {
            tokens.push(first.to_string());
            1
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "{};".contains(c));
            let end = end.unwrap_or(rest.len());
            tokens.push(format!("\"{}", &rest[..end]));
            end
        };
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The statements up to the end of a block.
fn statements(tokens: &mut std::vec::IntoIter<String>) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut words: Vec<String> = Vec::new();
    while let Some(token) = tokens.next() {
        let end = match &*token {
            "}" => return found,
            "{" => statements(tokens),
            ";" => Vec::new(),
            "+" => continue,
            word => {
                words.push(word[1..].to_owned());
                continue;
            }
        };
        let mut parts = std::mem::take(&mut words).into_iter();
        found.push(Statement {
            keyword: parts.next().unwrap_or_default(),
            argument: parts.collect(),
            inside: end,
        });
    }
    found
}

/// A module and the types that others use.
struct Models {
    modules: BTreeMap<&'static str, Statement>,
    types: BTreeMap<String, Statement>,
}

impl Models {
    fn read(directory: &std::path::Path) -> Self {
        let read = |name: &str| {
            let text = fs::read_to_string(directory.join(format!("{name}.yang")));
            let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut module = statements(&mut tokens(&text).into_iter());
            module.pop().expect("a module")
        };
        let types = read("sonic-types").inside.into_iter();
        let types = types.filter(|of| of.keyword == "typedef");
        Self {
            modules: TABLES
                .iter()
                .map(|(table, module)| (*table, read(module)))
                .collect(),
            types: types.map(|of| (of.argument.clone(), of)).collect(),
        }
    }

    /// The list of a table whose key has as many parts as this one.
    fn list(&self, table: &str, parts: usize) -> &Statement {
        let module = &self.modules[table];
        let container = module.one("container").expect("a container");
        let container = container.all("container").find(|of| of.argument == table);
        let mut lists = container.expect("the table").all("list");
        let count = |list: &Statement| {
            let key = list.one("key").expect("a key");
            key.argument.split_whitespace().count()
        };
        lists
            .find(|list| count(list) == parts)
            .expect("a list with such keys")
    }

    /// Problems of a row.
    fn row(&self, db: &Value, table: &str, key: &str, row: &Map<String, Value>) -> Vec<String> {
        let parts: Vec<&str> = key.split('|').collect();
        let list = self.list(table, parts.len());
        let names = list.one("key").expect("a key").argument.split_whitespace();
        let mut problems = Vec::new();
        let leaf = |list: &'_ Statement, name: &str| {
            list.inside
                .iter()
                .position(|of| of.keyword == "leaf" && of.argument == name)
        };
        let mut check = |list: &Statement, name: &str, value: &str| match leaf(list, name) {
            Some(at) => {
                let kind = list.inside[at].one("type").expect("a type");
                if let Err(problem) = self.value(db, kind, value) {
                    problems.push(format!("{table}|{key} {name} = {value:?}: {problem}"));
                }
            }
            None => problems.push(format!("{table}|{key}: there is no leaf {name}")),
        };
        for (name, value) in names.zip(&parts) {
            check(list, name, value);
        }
        if let Some(inner) = list.one("list") {
            // A map: fields are keys of an inner list with one more leaf.
            let inner_key = &inner.one("key").expect("a key").argument;
            let other = inner.all("leaf").find(|leaf| leaf.argument != *inner_key);
            let other = &other.expect("a value").argument;
            for (from, to) in row {
                check(inner, inner_key, from);
                check(inner, other, to.as_str().unwrap_or_default());
            }
            return problems;
        }
        for (name, value) in row {
            check(list, name, value.as_str().unwrap_or_default());
        }
        for leaf in list.all("leaf") {
            let is_mandatory = leaf
                .one("mandatory")
                .is_some_and(|of| of.argument == "true");
            if is_mandatory && !row.contains_key(&leaf.argument) {
                problems.push(format!("{table}|{key}: {} is missing", leaf.argument));
            }
            let number = |name: &str| row.get(name)?.as_str()?.parse::<u64>().ok();
            for must in leaf.all("must") {
                let rule = must.argument.trim_matches(['(', ')']);
                let least = rule
                    .strip_prefix("current() >= current()/../")
                    .and_then(number);
                if least > number(&leaf.argument) && row.contains_key(&leaf.argument) {
                    problems.push(format!("{table}|{key}: {} breaks {rule}", leaf.argument));
                }
            }
        }
        problems
    }

    fn value(&self, db: &Value, kind: &Statement, value: &str) -> Result<(), String> {
        let name = &*kind.argument;
        match name {
            "string" => text(kind, value),
            "boolean" => matches!(value, "true" | "false")
                .then_some(())
                .ok_or_else(|| "neither true nor false".to_owned()),
            "enumeration" => {
                let has = kind.all("enum").any(|of| of.argument == value);
                has.then_some(())
                    .ok_or_else(|| "not in the enumeration".to_owned())
            }
            "union" => {
                let mut members = kind.all("type").map(|of| self.value(db, of, value));
                let fits = members.any(|of| of.is_ok());
                fits.then_some(())
                    .ok_or_else(|| "no member of the union has it".to_owned())
            }
            "leafref" => {
                let path = &kind.one("path").expect("a path").argument;
                let table = path.split('/').nth(2).expect("a table");
                let table = table.split(':').next_back().unwrap_or(table);
                let has = db[table].get(value).is_some();
                has.then_some(())
                    .ok_or_else(|| format!("there is no {table}|{value}"))
            }
            _ => {
                if let Some((least, most)) = bits(name) {
                    let number: i128 = value.parse().map_err(|_| "not a number".to_owned())?;
                    let range = kind.one("range").map(|of| &*of.argument);
                    return in_range(number, least, most, range);
                }
                let own = name.split(':').next_back().unwrap_or(name);
                let definition = self.types.get(own);
                let definition = definition.unwrap_or_else(|| panic!("no type {name}"));
                self.value(db, definition.one("type").expect("a type"), value)
            }
        }
    }
}

/// Least and most of an integer type.
fn bits(name: &str) -> Option<(i128, i128)> {
    if let Some(bits) = name.strip_prefix("uint") {
        return Some((0, (1 << bits.parse::<u32>().ok()?) - 1));
    }
    let half = 1 << (name.strip_prefix("int")?.parse::<u32>().ok()? - 1);
    Some((-half, half - 1))
}

fn in_range(number: i128, least: i128, most: i128, range: Option<&str>) -> Result<(), String> {
    let parts = range.unwrap_or("min..max").split('|').map(str::trim);
    let end = |text: &str| match text.trim() {
        "min" => least,
        "max" => most,
        number => number.parse().expect("a number"),
    };
    let mut parts = parts.map(|part| part.split_once("..").unwrap_or((part, part)));
    let is_in = parts.any(|(from, to)| (end(from)..=end(to)).contains(&number));
    let is_in = is_in && (least..=most).contains(&number);
    is_in
        .then_some(())
        .ok_or_else(|| format!("out of {}", range.unwrap_or("its type")))
}

fn text(kind: &Statement, value: &str) -> Result<(), String> {
    if let Some(length) = kind.one("length") {
        in_range(value.len() as i128, 0, i128::MAX, Some(&length.argument))?;
    }
    for pattern in kind.all("pattern") {
        let pattern = &pattern.argument;
        let regex = regex::Regex::new(&format!("^(?:{pattern})$")).expect("a pattern");
        if !regex.is_match(value) {
            return Err(format!("does not match {pattern}"));
        }
    }
    Ok(())
}

/// Checks the rows of some tables; references are looked up in the whole configuration.
fn check(models: &Models, db: &Value, rows: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (table, _) in TABLES {
        for (key, row) in rows[table].as_object().into_iter().flatten() {
            let row = row.as_object().expect("a row");
            problems.extend(models.row(db, table, key, row));
        }
    }
    problems
}

fn schemes() -> Vec<SchemeConfig> {
    [
        "{ per-queue = { threshold = '62.5KB' } }",
        "{ per-queue = { threshold = { rtt = '20us', lambda = 1.0 } } }",
        "{ per-queue = { threshold = ['1KB', '9KB', '9KB', '70KB', '3MB', '2KB', '9KB'] } }",
        "{ red = { min = '100KB', max = '400KB', max-probability = 0.2 } }",
        "{ mq-ecn = { threshold = '62.5KB' } }",
        "{ tcn = { sojourn = '20us' } }",
        "{ per-port = { threshold = '62.5KB' } }",
        "'none'",
    ]
    .map(|text| {
        let table: toml::Table = format!("scheme = {text}").parse().expect("TOML");
        table["scheme"].clone().try_into().expect("a scheme")
    })
    .into()
}

#[test]
#[ignore = "needs the files of SONiC; SHALLOWS_SONIC names their directory"]
fn exports_are_valid_by_sonics_own_models() {
    let sonic = sonic_files();
    let models = Models::read(&sonic.join("yang"));
    let base: Value = serde_json::from_str(LEAF).expect("the leaf is JSON");
    assert_eq!(check(&models, &base, &base), [""; 0]);
    let db = ConfigDb::parse("leaf.json", LEAF).expect("it is sound");
    let ports = import(&db, &ImportOptions::default()).expect("it has ports");
    let mut switches: Vec<PortConfig> = Vec::new();
    for scheme in schemes() {
        let mut switch = ports.switch.clone();
        switch.marker.scheme = scheme;
        switches.push(switch);
    }
    for text in [
        "scheduler = { dwrr = { quantum = ['1B', '9MB', '3KB', '1500B', '1500B', '7KB', '1KB'] } }",
        "scheduler = { wrr = { quantum = ['1KB', '2KB', '3KB', '4KB', '5KB', '60KB', '700KB'] } }",
        "scheduler = 'strict'",
        "scheduler = { wfq = { weight = [1, 2, 3, 4, 5, 60, 700] } }",
        "buffer = { dynamic = { alpha = 300.0 } }",
        "buffer = { per-queue = { limit = '200KB' } }",
        "buffer = { shared = { size = '200KB' } }",
    ] {
        let mut value = toml::Value::try_from(&ports.switch).expect("it is data");
        let changed: toml::Table = text.parse().expect("TOML");
        let table = value.as_table_mut().expect("a table");
        table.extend(changed);
        let switch: Result<PortConfig, _> = value.try_into();
        switches.push(switch.unwrap_or_else(|error| panic!("{text}: {error}")));
    }
    let mut rows = 0;
    for switch in &switches {
        let change = export(&db, switch, &ExportOptions::default()).expect("it can be exported");
        let after = serde_json::to_value(&change.after).expect("it is JSON");
        let fragment = serde_json::to_value(&change.fragment).expect("it is JSON");
        assert_eq!(
            check(&models, &after, &after),
            [""; 0],
            "{:?}",
            switch.marker.scheme
        );
        rows += fragment.as_object().map_or(0, Map::len);
    }
    assert!(rows > 0, "the exports change something");
}

#[test]
#[ignore = "needs the files of SONiC; SHALLOWS_SONIC names their directory"]
fn the_reader_finds_what_the_models_forbid() {
    let sonic = sonic_files();
    let models = Models::read(&sonic.join("yang"));
    let base: Value = serde_json::from_str(LEAF).expect("the leaf is JSON");
    for (table, key, row) in [
        ("SCHEDULER", "s", json!({ "weight": "0" })),
        ("SCHEDULER", "s", json!({ "weight": "101" })),
        ("SCHEDULER", "s", json!({ "type": "dwrr" })),
        ("WRED_PROFILE", "a b", json!({})),
        ("WRED_PROFILE", &"w".repeat(33), json!({})),
        ("WRED_PROFILE", "W", json!({ "ecn": "all" })),
        (
            "WRED_PROFILE",
            "W",
            json!({ "green_drop_probability": "101" }),
        ),
        (
            "WRED_PROFILE",
            "W",
            json!({ "green_min_threshold": "2", "green_max_threshold": "1" }),
        ),
        ("WRED_PROFILE", "W", json!({ "green_minimum": "2" })),
        ("QUEUE", "Ethernet0|0", json!({ "wred_profile": "NOWHERE" })),
        ("QUEUE", "Ethernet999|0", json!({})),
        ("BUFFER_PROFILE", "b", json!({ "size": "0" })),
        ("BUFFER_QUEUE", "Ethernet0|16", json!({})),
        ("DSCP_TO_TC_MAP", "M", json!({ "64": "0" })),
        ("DSCP_TO_TC_MAP", "M", json!({ "1": "16" })),
    ] {
        let row = row.as_object().expect("a row");
        assert_ne!(
            models.row(&base, table, key, row),
            [""; 0],
            "{table}|{key} {row:?}"
        );
    }
}
