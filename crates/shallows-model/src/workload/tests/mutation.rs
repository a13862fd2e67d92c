//! Files with mistakes, made from sound ones.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{RngSeed, TestRunner};

/// Many cases, the same in every run.
pub(in super::super) fn fuzzing() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(2_000)
    }
}

/// Tries mutants of a text, for as long as the search takes.
pub(in super::super) fn fuzz_for_long(
    what: &str,
    text: &'static str,
    check: impl Fn(&str) -> Result<(), TestCaseError>,
) {
    shallows_testing::fuzz(what, |seed| {
        let config = ProptestConfig {
            rng_seed: RngSeed::Fixed(seed),
            failure_persistence: None,
            ..fuzzing()
        };
        let cases = u64::from(config.cases);
        let tried = TestRunner::new(config).run(&mutant(text), |text| check(&text));
        tried.unwrap_or_else(|error| panic!("{error}"));
        cases
    });
}

/// Tokens that a typing error, or a faulty script, puts in.
const SLIPS: [&str; 16] = [
    "",
    "0",
    "-1",
    "1e30",
    "1e-30",
    "NaN",
    "inf",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "0x10",
    ",",
    "\n",
    "#",
    "\u{feff}",
    "h\u{e9}",
];

/// The text with a few tokens deleted, doubled, exchanged or altered.
pub(in super::super) fn mutant(text: &'static str) -> impl Strategy<Value = String> {
    let change = (
        0..4u8,
        any::<Index>(),
        any::<Index>(),
        select(SLIPS.to_vec()),
    );
    prop::collection::vec(change, 1..5).prop_map(move |changes| {
        let mut tokens: Vec<&str> = text
            .split_inclusive(|c: char| !c.is_alphanumeric() && c != '.')
            .collect();
        for (kind, at, other, slip) in changes {
            if tokens.is_empty() {
                break;
            }
            let (at, other) = (at.index(tokens.len()), other.index(tokens.len()));
            match kind {
                0 => drop(tokens.remove(at)),
                1 => tokens.insert(at, tokens[at]),
                2 => tokens.swap(at, other),
                _ => tokens[at] = slip,
            }
        }
        tokens.concat()
    })
}
