//! The fabric as the controller knows it: directed links, hosts, and a path for each pair (§3.2.1,
//! inputs (a) to (c) of Algorithm 1).

use std::ops::Deref;

use thiserror::Error;

use crate::control::LinkState;
use crate::units::Rate;

/// The path that routing gives to a pair of hosts: P_sd.
///
/// The paper takes it from a spanning tree. Any function of the pair works, so a multi-path fabric
/// answers with the path that its load balancing assigns.
pub trait Routes {
    /// Appends the links from `source` to `destination` to `path`, which is empty. It stays empty
    /// where there is no path.
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>);

    /// Takes a link out of all paths or puts it back, where routes follow links that fail.
    fn set_link(&mut self, link: u32, state: LinkState) {
        let _ = (link, state);
    }
}

impl<F: Fn(u32, u32, &mut Vec<u32>)> Routes for F {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        self(source, destination, path);
    }
}

/// A fabric whose hosts a controller schedules: capacities of links and hosts, and the routes
/// between hosts. A topology has nodes and delays too, which no directive depends on.
#[derive(Clone, Debug)]
pub struct CoordinatedFabric<R> {
    pub(super) hosts: Vec<Rate>,
    pub(super) links: Vec<Rate>,
    pub(super) routes: R,
}

/// The reason why a fabric cannot be coordinated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FabricError {
    /// There is nobody to coordinate.
    #[error("the fabric has no hosts")]
    NoHosts,
    /// A host could never send.
    #[error("host {0} has a link of 0 bps; leave it out or give its rate")]
    SilentHost(u32),
}

impl<R: Routes> CoordinatedFabric<R> {
    /// A fabric with the outgoing capacity C_x of every host, the capacity C_ij of every directed
    /// link (0 for a link that is down), and its routes.
    ///
    /// # Errors
    /// If there are no hosts, or one could never send.
    pub fn new(hosts: Vec<Rate>, links: Vec<Rate>, routes: R) -> Result<Self, FabricError> {
        if hosts.is_empty() {
            return Err(FabricError::NoHosts);
        }
        if let Some(host) = hosts.iter().position(|rate| rate.bps() == 0) {
            return Err(FabricError::SilentHost(host as u32));
        }
        Ok(Self {
            hosts,
            links,
            routes,
        })
    }

    /// The same links and hosts with routes made of these.
    pub fn with_routes<S: Routes>(self, make: impl FnOnce(R) -> S) -> CoordinatedFabric<S> {
        CoordinatedFabric {
            hosts: self.hosts,
            links: self.links,
            routes: make(self.routes),
        }
    }

    /// Takes a link out of the routes or puts it back.
    pub fn set_link(&mut self, link: u32, state: LinkState) {
        self.routes.set_link(link, state);
    }

    /// Number of hosts; they are numbered from 0.
    pub fn hosts(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Path and rate of a pair, or `None` where it cannot be scheduled: a host that the fabric
    /// does not know, a host that sends to itself, no path, or a link on it that is down or
    /// unknown.
    ///
    /// The rate is C_x (§3.2.1), or the capacity of the slowest link of the path if that is less:
    /// the hybrid of timeslice and rate limit that §6 asks for, without which eq. 1 would starve a
    /// host that is faster than its path.
    pub(super) fn route(&self, source: u32, destination: u32) -> Option<(Path, Rate)> {
        let own = *self.hosts.get(source as usize)?;
        self.hosts.get(destination as usize)?;
        if source == destination {
            return None;
        }
        let mut path = Vec::new();
        self.routes.path(source, destination, &mut path);
        let mut rate = own;
        for &link in &path {
            rate = rate.min(*self.links.get(link as usize)?);
        }
        (!path.is_empty() && rate.bps() > 0).then(|| (Path::from(path), rate))
    }
}

/// Links of a path without an allocation: a fat-tree's longest path has six.
const INLINE: usize = 6;

/// The links of a pair's path. Short ones lie inside the pair, which the scheduler reads more often
/// than anything else.
#[derive(Clone, Debug)]
pub(super) enum Path {
    /// Up to [`INLINE`] links, and how many there are.
    Inline(u8, [u32; INLINE]),
    /// More links.
    Boxed(Box<[u32]>),
}

impl From<Vec<u32>> for Path {
    fn from(links: Vec<u32>) -> Self {
        if links.len() > INLINE {
            return Self::Boxed(links.into_boxed_slice());
        }
        let mut inline = [0; INLINE];
        inline[..links.len()].copy_from_slice(&links);
        Self::Inline(links.len() as u8, inline)
    }
}

impl Deref for Path {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            Self::Inline(length, links) => &links[..usize::from(*length)],
            Self::Boxed(links) => links,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(source: u32, destination: u32, path: &mut Vec<u32>) {
        path.extend(source.min(destination)..source.max(destination));
    }

    #[test]
    fn a_path_limits_the_rate() {
        let gbps = Rate::from_gbps;
        let fabric =
            CoordinatedFabric::new(vec![gbps(10); 4], vec![gbps(10), gbps(1), gbps(0)], line);
        let fabric = fabric.unwrap();
        let route = |from, to| {
            fabric
                .route(from, to)
                .map(|(path, rate)| (path.to_vec(), rate))
        };
        assert_eq!(route(0, 1), Some((vec![0], gbps(10))));
        assert_eq!(route(0, 2), Some((vec![0, 1], gbps(1))));
        assert_eq!(route(0, 3), None, "a link is down");
        assert_eq!(route(0, 0), None, "no path to itself");
        assert_eq!(route(0, 7), None, "unknown host");
        assert_eq!(route(7, 0), None, "unknown host");
    }

    #[test]
    fn long_paths_are_kept_whole() {
        for length in 0..20 {
            let links: Vec<u32> = (0..length).collect();
            assert_eq!(*Path::from(links.clone()), links[..]);
        }
    }

    #[test]
    fn a_fabric_needs_hosts_that_can_send() {
        let error = |hosts| CoordinatedFabric::new(hosts, vec![], line).err().unwrap();
        assert_eq!(error(vec![]), FabricError::NoHosts);
        let rates = vec![Rate::from_gbps(1), Rate::from_bps(0)];
        assert_eq!(error(rates), FabricError::SilentHost(1));
    }
}
