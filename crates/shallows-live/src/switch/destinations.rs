use std::net::IpAddr;

use rustc_hash::FxHashMap;

use crate::frame::{Header, Mac, Network};

/// The host that a frame goes to: by its Ethernet address, or by its IP address where that is a
/// router's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    stations: FxHashMap<Mac, u32>,
    /// Longest prefix first.
    networks: Vec<(IpNetwork, u32)>,
}

/// Addresses that begin alike, such as `10.1.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    length: u8,
}

impl Destinations {
    /// Frames to this station are for `host`; false if they were another's.
    pub fn add_station(&mut self, station: Mac, host: u32) -> bool {
        *self.stations.entry(station).or_insert(host) == host
    }

    /// Packets to these addresses are for `host`, unless a station or a longer prefix says
    /// otherwise; false if they were another's.
    pub fn add_network(&mut self, network: IpNetwork, host: u32) -> bool {
        let mut same = self.networks.iter().filter(|(known, _)| *known == network);
        if let Some((_, owner)) = same.next() {
            return *owner == host;
        }
        let place = |(known, _): &(IpNetwork, u32)| known.length >= network.length;
        let place = self.networks.partition_point(place);
        self.networks.insert(place, (network, host));
        true
    }

    /// The host that a frame is for.
    #[inline]
    pub fn of(&self, frame: &[u8]) -> Option<u32> {
        self.find(frame, 0, (16, 24))
    }

    /// The host that a frame is from.
    #[inline]
    pub fn source_of(&self, frame: &[u8]) -> Option<u32> {
        self.find(frame, 6, (12, 8))
    }

    /// The host of the addresses at these offsets: Ethernet's in the frame, IP's in its header.
    fn find(&self, frame: &[u8], station: usize, (v4, v6): (usize, usize)) -> Option<u32> {
        let station = Mac(*frame.get(station..)?.first_chunk::<6>()?);
        if let Some(&host) = self.stations.get(&station) {
            return Some(host);
        }
        if self.networks.is_empty() || station.is_group() {
            return None;
        }
        let address: IpAddr = match Header::parse(frame)?.network {
            Network::Ipv4(at) => (*frame[at..].get(v4..)?.first_chunk::<4>()?).into(),
            Network::Ipv6(at) => (*frame[at..].get(v6..)?.first_chunk::<16>()?).into(),
            Network::Other | Network::Malformed(_) => return None,
        };
        let mut networks = self.networks.iter();
        let found = networks.find(|(network, _)| network.contains(address));
        found.map(|&(_, host)| host)
    }
}

impl IpNetwork {
    /// Returns whether it has this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differ = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                u128::from(own.to_bits() ^ other.to_bits()) << 96
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => own.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differ.leading_zeros() >= u32::from(self.length)
    }
}

impl std::str::FromStr for IpNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no IP network: write it as 10.1.0.0/24 or fd00::/64");
        let (address, length) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            "" => most,
            _ => length.parse().map_err(|_| wrong())?,
        };
        if length > most {
            return Err(wrong());
        }
        Ok(Self { address, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 frame to this station and address.
    fn frame(station: [u8; 6], address: [u8; 4]) -> Vec<u8> {
        let mut frame = station.to_vec();
        frame.extend([2, 0, 0, 0, 0, 1, 0x08, 0x00]);
        frame.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1]);
        frame.extend(address);
        frame
    }

    #[test]
    fn stations_come_first_and_then_the_longest_prefix() {
        let mut destinations = Destinations::default();
        assert!(destinations.add_station("02:00:00:00:00:09".parse().unwrap(), 9));
        assert!(destinations.add_network("10.1.0.0/16".parse().unwrap(), 1));
        assert!(destinations.add_network("10.1.2.0/24".parse().unwrap(), 2));
        assert!(!destinations.add_network("10.1.2.0/24".parse().unwrap(), 3));
        let of = |station, address| destinations.of(&frame(station, address));
        let router = [2, 0, 0, 0, 0, 7];
        assert_eq!(of([2, 0, 0, 0, 0, 9], [10, 1, 2, 3]), Some(9));
        assert_eq!(of(router, [10, 1, 2, 3]), Some(2));
        assert_eq!(of(router, [10, 1, 3, 3]), Some(1));
        assert_eq!(of(router, [10, 2, 0, 0]), None);
        assert_eq!(of([0xff; 6], [10, 1, 2, 3]), None, "a broadcast is for all");
        assert_eq!(destinations.of(&[0; 3]), None);
        assert!(destinations.add_network("10.0.0.1".parse().unwrap(), 5));
        assert_eq!(
            destinations.source_of(&frame(router, [10, 1, 2, 3])),
            Some(5)
        );
    }

    #[test]
    fn networks_are_read() {
        let network: IpNetwork = "fd00::/64".parse().unwrap();
        assert!(network.contains("fd00::1".parse().unwrap()));
        assert!(!network.contains("fd00:0:0:1::1".parse().unwrap()));
        assert!(!network.contains("10.0.0.1".parse().unwrap()));
        let all: IpNetwork = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("10.0.0.1".parse().unwrap()));
        for text in ["10.0.0/8", "10.0.0.0/33", "10.0.0.0/x", ""] {
            assert!(text.parse::<IpNetwork>().is_err(), "{text}");
        }
    }
}
