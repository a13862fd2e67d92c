//! The paths and headers of packets.

use std::sync::Arc;

use shallows_core::units::Bytes;

use super::{Routing, Shard, World};
use crate::ids::{ConnectionId, PortId};
use crate::packet::Envelope;
use crate::paths::Paths;
use crate::workload::Ends;

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
        let [forth, back] = self.routing.routes[connection];
        let (src, dst, usual, answer) = match direction {
            Direction::Forth => (src, dst, forth, back),
            Direction::Back => (dst, src, back, forth),
        };
        let nic = self.nic(answer);
        let selector = u64::from(connection.0) << 32 | u64::from(turn);
        let links = &mut self.sprayed_links;
        match self.routing.router.path(src, dst, selector, links) {
            Ok(()) => {
                // Runs with sprayed packets have one shard.
                let ports = links.iter().copied().map(PortId::of_only_shard);
                self.paths.intern(ports, nic)
            }
            // Links are down: the packet is lost on the path that it had before.
            Err(_) => usual,
        }
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
