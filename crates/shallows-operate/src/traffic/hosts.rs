//! Hosts of a scenario by addresses, and services by ports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use super::{Conversation, TrafficError};

/// Most hosts of a map.
const MOST_HOSTS: u32 = 1_000_000;

/// Prefixes of addresses with the hosts that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostMap {
    /// The longest prefixes first.
    prefixes: Vec<(Prefix, RangeInclusive<u32>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix {
    length: u32,
    is_v4: bool,
    bits: u128,
}

impl HostMap {
    /// Reads lines of `prefix,host`: `10.0.1.0/24,8-15` spreads the addresses of a prefix over eight
    /// hosts, `10.0.0.7,7` is one. A first line of names and lines that start with # are left out.
    pub fn parse(text: &str) -> Result<Self, TrafficError> {
        let mut prefixes = Vec::new();
        for (number, prefix, host) in pairs(text)? {
            if number == 1 && prefix == "prefix" {
                continue;
            }
            let wrong = |what: &str| TrafficError::line(number, what);
            let prefix = Prefix::parse(prefix)
                .ok_or_else(|| wrong("write a prefix such as 10.0.1.0/24, and a host"))?;
            let hosts = hosts(host)
                .ok_or_else(|| wrong("write a host such as 7, or hosts such as 8-15"))?;
            prefixes.push((prefix, hosts));
        }
        // A stable order: of equal prefixes the first line counts.
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.length));
        Ok(Self { prefixes })
    }

    /// A host for each address, in the order of the addresses.
    pub fn of_addresses(conversations: &[Conversation]) -> Self {
        let ends = conversations.iter();
        let ends = ends.flat_map(|of| [of.tuple.src, of.tuple.dst]);
        let addresses: BTreeSet<IpAddr> = ends.collect();
        let prefixes = (0..).zip(addresses);
        let prefixes = prefixes.map(|(host, address)| (Prefix::of(address), host..=host));
        Self {
            prefixes: prefixes.collect(),
        }
    }

    /// The host that has an address.
    pub fn host(&self, address: IpAddr) -> Option<u32> {
        let of = Prefix::of(address);
        let found = self.prefixes.iter().find(|(prefix, _)| prefix.has(of));
        let (_, hosts) = found?;
        let count = u128::from(hosts.end() - hosts.start()) + 1;
        Some(hosts.start() + u32::try_from(of.bits % count).ok()?)
    }

    /// The map as [`HostMap::parse`] reads it.
    pub fn to_csv(&self) -> String {
        let mut text = "prefix,host\n".to_owned();
        for (prefix, hosts) in &self.prefixes {
            let address: IpAddr = if prefix.is_v4 {
                Ipv4Addr::from(prefix.bits as u32).into()
            } else {
                Ipv6Addr::from(prefix.bits).into()
            };
            let (length, first, last) = (prefix.length, hosts.start(), hosts.end());
            let _ = writeln!(text, "{address}/{length},{first}-{last}");
        }
        text
    }

    /// The number of hosts that a scenario needs.
    pub fn count(&self) -> u32 {
        let last = self.prefixes.iter().map(|(_, hosts)| *hosts.end());
        last.max().map_or(0, |last| last + 1)
    }
}

impl Prefix {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self {
                length: 32,
                is_v4: true,
                bits: u128::from(u32::from(address)),
            },
            IpAddr::V6(address) => Self {
                length: 128,
                is_v4: false,
                bits: u128::from(address),
            },
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let whole = Self::of(address.parse().ok()?);
        let length = length.unwrap_or(whole.length);
        (length <= whole.length).then_some(Self { length, ..whole })
    }

    fn has(self, address: Self) -> bool {
        // Both are whole addresses; bits beyond the prefix do not count.
        let beyond = address.length - self.length.min(address.length);
        let shift = |bits: u128| bits.checked_shr(beyond).unwrap_or(0);
        self.is_v4 == address.is_v4 && shift(self.bits) == shift(address.bits)
    }
}

/// Services by the port of either end; DSCPs where none has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceMap(BTreeMap<u16, u16>);

impl ServiceMap {
    /// Reads lines of `port,service`.
    pub fn parse(text: &str) -> Result<Self, TrafficError> {
        let mut services = BTreeMap::new();
        for (number, port, service) in pairs(text)? {
            if number == 1 && port == "port" {
                continue;
            }
            let wrong =
                || TrafficError::line(number, "write a port and a service, such as 11211,46");
            let port = port.parse::<u16>().map_err(|_| wrong())?;
            let service = service.parse::<u16>().map_err(|_| wrong())?;
            services.insert(port, service);
        }
        Ok(Self(services))
    }

    /// The service of a conversation.
    pub fn service(&self, of: &Conversation) -> u16 {
        let ports = [of.tuple.dst_port, of.tuple.src_port];
        let service = ports.iter().find_map(|port| self.0.get(port)).copied();
        service.unwrap_or(of.dscp.into())
    }
}

/// Lines of two values with their numbers.
fn pairs(text: &str) -> Result<Vec<(usize, &str, &str)>, TrafficError> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| match line.split_once(',') {
            Some((first, second)) => Ok((number, first.trim(), second.trim())),
            None => Err(TrafficError::line(number, "write two values with a comma")),
        })
        .collect()
}

fn hosts(text: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last < MOST_HOSTS).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts_and_ranges_are_spread() {
        let map = "prefix,host\n# a rack\n10.0.1.0/24,8-15\n10.0.1.9/32,3\nfd00::/8, 20\n::/0,21\n";
        let map = HostMap::parse(map).unwrap();
        let host = |text: &str| map.host(text.parse().unwrap());
        // The address modulo the number of hosts.
        assert_eq!(host("10.0.1.11"), Some(8 + 3));
        assert_eq!(host("10.0.1.9"), Some(3));
        assert_eq!(host("::ffff:10.0.1.9"), Some(3));
        assert_eq!(host("10.0.2.1"), None);
        assert_eq!(host("fd00::1"), Some(20));
        assert_eq!(host("2001::1"), Some(21));
        assert_eq!(map.count(), 22);
        assert_eq!(HostMap::parse(&map.to_csv()).unwrap(), map);
        for wrong in [
            "10.0.0.0/33,1",
            "10.0.0.0/8",
            "x,1",
            "10.0.0.1,5-3",
            "10.0.0.1,x",
            "::/129,1",
        ] {
            assert!(HostMap::parse(wrong).is_err(), "{wrong}");
        }
    }
}
