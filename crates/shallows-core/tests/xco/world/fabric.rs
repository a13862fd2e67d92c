//! Two racks of three hosts.

use shallows_core::units::Rate;
use shallows_core::xco::fabric::{CoordinatedFabric, Routes};

use super::HOSTS;

/// Two racks of three hosts under two spines. Hosts send at 100 Mbps, the first at 200 Mbps, which
/// is more than any path carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoRacks;

impl Routes for TwoRacks {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        path.push(source);
        let (from, to) = (source / 3, destination / 3);
        if from != to {
            let spine = (source + destination) % 2;
            path.extend([12 + 4 * from + spine, 14 + 4 * to + spine]);
        }
        path.push(6 + destination);
    }
}

/// Links 0 to 5 lead up from the hosts, all others carry 100 Mbps.
pub(super) fn capacity(link: u32) -> Rate {
    host_rate(link)
}

pub(super) fn host_rate(host: u32) -> Rate {
    Rate::from_mbps(if host == 0 { 200 } else { 100 })
}

pub(super) const LINKS: usize = 20;

pub(super) fn fabric() -> CoordinatedFabric<TwoRacks> {
    let rates = (0..HOSTS).map(host_rate).collect();
    let links = (0..LINKS as u32).map(capacity).collect();
    CoordinatedFabric::new(rates, links, TwoRacks).expect("the fabric is sound")
}
