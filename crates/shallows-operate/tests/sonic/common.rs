//! What the tests share.

use shallows_core::packet::Descriptor;
use shallows_core::port::{EgressPort, PortConfig};
use shallows_core::units::{Rate, Time};
use shallows_operate::sonic::{
    ConfigDb, Context, ImportOptions, Imported, ReadError, check, import,
};

use crate::round_trip::stays;

/// A seeded stream of numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, or 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) % bound.max(1) as u64) as usize
    }
}

/// Reads a configuration and does with it all that can be done.
pub(crate) fn exercise(file: &str, text: &str) -> Result<(), ReadError> {
    let db = match ConfigDb::parse(file, text) {
        Ok(db) => db,
        Err(error) => {
            assert!(!error.problems.is_empty());
            let lines = text.split('\n').count();
            for problem in &error.problems {
                assert!(!problem.reason.is_empty());
                assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)));
            }
            assert!(error.to_string().starts_with(file));
            return Err(error);
        }
    };
    let context = Context {
        rtt: Some(Time::from_us(20)),
        speed: Some(Rate::from_gbps(100)),
        qjump: vec![0, 8, 46],
    };
    for finding in check(&db, &context) {
        assert!(finding.says.len() > 10, "{finding:?}");
    }
    match import(&db, &ImportOptions::default()) {
        Ok(ports) => {
            sound(&ports);
            stays(file, text);
        }
        Err(error) => assert!(error.to_string().starts_with(file), "{error}"),
    }
    Ok(())
}

/// Imported ports can be built, and their text says the same.
fn sound(ports: &Imported) {
    let mut found = vec![ports.switch.clone()];
    found.extend(ports.special.iter().map(|(_, port)| port.clone()));
    for port in &found {
        let built = EgressPort::<Descriptor>::new(Rate::from_gbps(100), port, 1, 0);
        built.unwrap_or_else(|error| panic!("{error}: {port:?}"));
    }
    let text = ports.to_toml();
    let table: toml::Table = text
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {text}"));
    let again: PortConfig = table["ports"]["switch"].clone().try_into().expect("a port");
    assert_eq!(again, ports.switch, "{text}");
}
