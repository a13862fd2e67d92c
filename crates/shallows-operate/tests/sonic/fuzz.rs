//! Configurations with mistakes: never a panic, and always an error that names the file.
//!
//! The mistakes come from a seed, so that a run repeats.

use crate::common::{Random, exercise};

const LEAF: &str = include_str!("../../scenarios/sonic/leaf.config_db.json");

/// Older notation, ranges, several ports in a key, a chassis, static limits, no PORT.
const OLD: &str = r#"{
    "DSCP_TO_TC_MAP": {"AZ": {"0": "1", "3": "3", "4": "4", "46": "5"}},
    "TC_TO_QUEUE_MAP": {"AZ": {"1": "1", "3": "3", "4": "4", "5": "5"}},
    "PORT_QOS_MAP": {
        "Ethernet0,Ethernet4": {"dscp_to_tc_map": "[DSCP_TO_TC_MAP|AZ]", "tc_to_queue_map": "[TC_TO_QUEUE_MAP|AZ]", "pfc_enable": "3,4", "scheduler": "port"},
        "global": {"dscp_to_tc_map": "AZ"}
    },
    "SCHEDULER": {
        "s0": {"type": "WRR", "weight": "5", "meter_type": "packets"},
        "s1": {"type": "STRICT", "pir": "1250000000", "pbs": "8192", "cir": "1", "cbs": "1"},
        "port": {"pir": "2500000000", "pbs": "65536"}
    },
    "WRED_PROFILE": {
        "W": {"ecn": "ecn_green_yellow", "wred_green_enable": "true", "green_min_threshold": "100000", "green_max_threshold": "400000", "green_drop_probability": "20"},
        "D": {"wred_green_enable": "true", "green_min_threshold": "100000", "green_max_threshold": "400000"}
    },
    "QUEUE": {
        "Ethernet0,Ethernet4|3-4": {"scheduler": "[SCHEDULER|s0]", "wred_profile": "[WRED_PROFILE|W]"},
        "Ethernet0|5": {"scheduler": "s1", "wred_profile": "D"},
        "lc1|asic0|Ethernet8|3": {"wred_profile": "W"},
        "CPU|7": {"scheduler": "s1"}
    },
    "BUFFER_POOL": {"egress": {"type": "both", "mode": "static", "size": "33004032", "xoff": "196608"}, "p": {"percentage": "90"}},
    "BUFFER_PROFILE": {
        "fixed": {"pool": "[BUFFER_POOL|egress]", "size": "1518", "static_th": "200000", "packet_discard_action": "trim"},
        "share": {"pool": "p", "size": "0", "dynamic_th": "3"}
    },
    "BUFFER_QUEUE": {"Ethernet0,Ethernet4|0-4": {"profile": "fixed"}, "Ethernet0|5-7": {"profile": "share"}}
}"#;

/// What a slip of the hand puts in the place of a token.
const SLIPS: [&str; 30] = [
    "",
    "0",
    "1",
    "-1",
    "1e30",
    "null",
    "true",
    "[]",
    "{}",
    "{",
    "\"\"",
    "\"0\"",
    "\"-8\"",
    "\"7\"",
    "\"63\"",
    "\"64\"",
    "\"100\"",
    "\"1500\"",
    "\"9223372036854775807\"",
    "\"18446744073709551615\"",
    "\"STRICT\"",
    "\"ecn_none\"",
    "\"Ethernet0|0-15\"",
    "\"Ethernet0|7\"",
    "\"|\"",
    "\"[WRED_PROFILE|W\"",
    "\"h\u{e9}\u{301}\"",
    "\\",
    ",",
    "\u{feff}",
];

/// Texts, words, and every other character by itself.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            c if c.is_ascii_whitespace() => rest
                .find(|c: char| !c.is_ascii_whitespace())
                .unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// A configuration with a few tokens deleted, doubled, exchanged or, most often, a text altered.
fn mutant(random: &mut Random) -> String {
    let mut tokens = tokens(if random.below(3) == 0 { LEAF } else { OLD });
    for _ in 0..=random.below(3) {
        let (any, other) = (random.below(tokens.len()), random.below(tokens.len()));
        let texts: Vec<usize> = (0..tokens.len())
            .filter(|&at| tokens[at].starts_with('"'))
            .collect();
        let slip = SLIPS[random.below(SLIPS.len())];
        match random.below(9) {
            0 => drop(tokens.remove(any)),
            1 => tokens.insert(any, tokens[any]),
            2 => tokens.swap(any, other),
            3 => tokens[any] = slip,
            _ if texts.is_empty() => {}
            4 | 5 => {
                let [a, b] = [
                    texts[random.below(texts.len())],
                    texts[random.below(texts.len())],
                ];
                tokens[a] = tokens[b];
            }
            _ => tokens[texts[random.below(texts.len())]] = slip,
        }
    }
    tokens.concat()
}

#[test]
fn mistakes_never_panic() {
    make_mistakes(29, 3_000);
}

#[test]
#[ignore = "takes as long as it is told to"]
fn fuzz_for_long_switch_configurations() {
    shallows_testing::fuzz("SONiC configurations", |seed| make_mistakes(seed, 3_000));
}

fn make_mistakes(seed: u64, cases: u64) -> u64 {
    let (mut random, mut read) = (Random::new(seed), 0_u64);
    for _ in 0..cases {
        let text = mutant(&mut random);
        read += u64::from(exercise("fuzz.json", &text).is_ok());
    }
    assert!(
        read > cases / 20,
        "most mistakes stop at the syntax: {read} of {cases}"
    );
    cases
}

#[test]
fn files_cut_short_never_panic() {
    for text in [LEAF, OLD] {
        for end in (0..text.len()).step_by(7) {
            let _ = exercise("fuzz.json", &text[..end]);
        }
    }
}

#[test]
fn nesting_has_an_end() {
    for text in ["[".repeat(100_000), "{\"QUEUE\":".repeat(100_000)] {
        exercise("fuzz.json", &text).expect_err("it is refused");
    }
}

#[test]
fn the_examples_are_sound() {
    for text in [LEAF, OLD] {
        exercise("fuzz.json", text).expect("it can be read");
        exercise("fuzz.json", &tokens(text).concat()).expect("it can be read");
    }
}
