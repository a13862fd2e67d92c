//! The paths and headers of packets.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use shallows_core::units::Bytes;
use shallows_model::HostId;

use super::{Routing, Shard, World};
use crate::ids::{ConnectionId, PortId};
use crate::packet::Envelope;
use crate::paths::Paths;
use crate::routing::Fork;
use crate::workload::Ends;

/// For two hosts, all paths of the packets between them by the choice of their fork; none if they
/// have no fork.
pub(super) type Forks = FxHashMap<(HostId, HostId), Option<(Fork, Box<[u32]>)>>;

/// Direction of a packet on its connection.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    /// From the source of the flow to its destination.
    Forth,
    /// From the destination to the source.
    Back,
}

impl Shard {
    /// Sends what is sent from now on by other paths.
    pub(crate) fn reroute(&mut self, routing: Arc<Routing>, paths: Paths<PortId>) {
        self.reroute_connections(&routing.routes);
        self.datagrams.reroute(&routing.routes);
        self.forks.clear();
        self.routing = routing;
        self.paths = paths;
    }

    /// The paths of packets on their way.
    pub(crate) fn paths(&self) -> &Paths<PortId> {
        &self.paths
    }

    /// A path for one packet, the `turn`th of its end of the connection.
    #[inline(never)]
    pub(super) fn spray(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        turn: u32,
    ) -> u32 {
        let Ends { src, dst, .. } = self.world.ends(connection);
        let (src, dst) = match direction {
            Direction::Forth => (src, dst),
            Direction::Back => (dst, src),
        };
        let selector = u64::from(connection.0) << 32 | u64::from(turn);
        let known = self.forks.get(&(src, dst));
        if let Some(Some((fork, routes))) = known {
            return routes[fork.choose(selector)];
        }
        if known.is_none() {
            self.find_fork(connection, direction, (src, dst));
        }
        self.find_path(connection, direction, (src, dst), selector)
    }

    /// Finds the paths of all sprayed packets between two hosts, if they part at one place.
    #[cold]
    fn find_fork(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        hosts: (HostId, HostId),
    ) {
        let nic = self.nic_of_other_end(connection, direction);
        let fork = self.routing.router.fork(hosts.0, hosts.1);
        let paths = &mut self.paths;
        let fork = fork.map(|(fork, all)| {
            let routes = all.iter().map(|links| {
                // Runs with sprayed packets have one shard.
                let ports = links.iter().copied().map(PortId::of_only_shard);
                paths.intern(ports, nic)
            });
            let routes = routes.collect();
            (fork, routes)
        });
        self.forks.insert(hosts, fork);
    }

    /// The path of one packet between two hosts.
    #[inline(never)]
    fn find_path(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        (src, dst): (HostId, HostId),
        selector: u64,
    ) -> u32 {
        let nic = self.nic_of_other_end(connection, direction);
        let links = &mut self.sprayed_links;
        match self.routing.router.path(src, dst, selector, links) {
            Ok(()) => {
                // Runs with sprayed packets have one shard.
                let ports = links.iter().copied().map(PortId::of_only_shard);
                self.paths.intern(ports, nic)
            }
            // Links are down: the packet is lost on the path that it had before.
            Err(_) => self.routing.routes[connection][direction as usize],
        }
    }

    /// The NIC of the host that packets of a direction go to.
    fn nic_of_other_end(&self, connection: ConnectionId, direction: Direction) -> PortId {
        let [forth, back] = self.routing.routes[connection];
        self.nic(match direction {
            Direction::Forth => back,
            Direction::Back => forth,
        })
    }
}

/// Fields that all packets of a connection share in one direction.
pub(super) fn envelope(
    world: &World,
    connection: ConnectionId,
    routing: &Routing,
    direction: Direction,
) -> Envelope {
    let [forth, back] = routing.routes[connection];
    let service = world.ends(connection).service as u8;
    Envelope {
        connection,
        route: match direction {
            Direction::Forth => forth,
            Direction::Back => back,
        },
        dscp: match &world.stages {
            Some(stages) => stages.stage(Bytes::ZERO),
            None => service,
        },
        header: world.transport(connection).header as u16,
    }
}
