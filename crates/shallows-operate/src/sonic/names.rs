//! Names of ports, in the order in which people count them.

use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

/// The name of a port, such as `Ethernet4`; in a chassis `lc1|asic0|Ethernet4`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortName(String);

impl PortName {
    /// A name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without line card and ASIC.
    pub(super) fn local(&self) -> &str {
        self.0.rsplit('|').next().unwrap_or(&self.0)
    }

    /// Prefix and number at the end.
    fn parts(&self) -> (&str, Option<u64>) {
        let digits = self.0.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = self.0.split_at(self.0.len() - digits);
        (prefix, number.parse().ok())
    }
}

impl Ord for PortName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts()
            .cmp(&other.parts())
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for PortName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Display for PortName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Some ports as a phrase: `Ethernet0`, `Ethernet0 and Ethernet4`, `Ethernet0 to Ethernet124 (32
/// ports)`.
pub(super) fn phrase(ports: &[PortName]) -> String {
    match ports {
        [] => "no port".to_owned(),
        [one] => one.to_string(),
        [one, two] => format!("{one} and {two}"),
        [first, .., last] => format!("{first} to {last} ({} ports)", ports.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_counted_as_people_do() {
        let mut names = ["Ethernet12", "CPU", "Ethernet4", "Ethernet0"].map(PortName::new);
        names.sort();
        assert_eq!(
            names.map(|name| name.to_string()),
            ["CPU", "Ethernet0", "Ethernet4", "Ethernet12"]
        );
    }
}
