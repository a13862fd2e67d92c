//! Connections and latencies of applications at simulated hosts.

use shallows_core::application::Protocol;
use shallows_core::host::stack::Seat;
use shallows_core::units::Time;
use shallows_model::HostId;

use crate::broadcast::Broadcasts;
use crate::ids::{ConnectionId, LaneId};

/// A latency that an application has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency<'a> {
    /// Name of the application.
    pub application: &'a str,
    /// Number of the application among those of the model; `None` for messages of UDP flows.
    pub number: Option<u32>,
    /// The host that has seen it.
    pub host: HostId,
    /// Name of the operation.
    pub name: &'static str,
    /// Start time.
    pub start: Time,
    /// Latency of the operation.
    pub latency: Time,
}

/// Connections of applications, as all shards know them.
#[derive(Debug, Default)]
pub(crate) struct ApplicationPlan {
    pub(crate) connections: Vec<PlannedConnection>,
    /// The first connection of each application.
    pub(crate) first_connections: Vec<u32>,
    /// The hosts of each application's members.
    pub(crate) hosts: Vec<Vec<HostId>>,
    /// Directions that datagrams take together until switches copy them.
    pub(crate) broadcasts: Broadcasts,
}

/// A connection of an application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedConnection {
    pub(crate) application: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) protocol: Protocol,
}

/// One direction of a connection of an application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    /// The connection in the simulator.
    pub(crate) slot: ConnectionId,
    pub(crate) id: LaneId,
    /// The connection, by the application's own number.
    pub(crate) connection: u32,
    /// The member that receives.
    pub(crate) receiver: Seat,
    pub(crate) protocol: Protocol,
    /// True if it leads from the member that opens the connection.
    pub(crate) is_forth: bool,
}

impl ApplicationPlan {
    /// A lane, which is connection `slot` of the simulator.
    pub(crate) fn lane(&self, id: LaneId, slot: ConnectionId) -> Lane {
        let (place, is_forth) = (id.0 / 2, id.0.is_multiple_of(2));
        let planned = self.connections[place as usize];
        Lane {
            slot,
            id,
            connection: place - self.first_connections[planned.application as usize],
            receiver: Seat {
                application: planned.application,
                member: if is_forth { planned.to } else { planned.from },
            },
            protocol: planned.protocol,
            is_forth,
        }
    }

    /// The lane from a member of an application on one of its connections.
    pub(crate) fn lane_from(&self, seat: Seat, connection: u32) -> LaneId {
        let place = self.first_connections[seat.application as usize] + connection;
        let back = self.connections[place as usize].from != seat.member;
        LaneId(2 * place + u32::from(back))
    }

    /// The host of a member.
    pub(crate) fn host(&self, seat: Seat) -> HostId {
        self.hosts[seat.application as usize][seat.member as usize]
    }
}
