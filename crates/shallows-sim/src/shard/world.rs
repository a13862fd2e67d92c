//! The constants of a run, which all shards share.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use shallows_core::host::stage::StageTagger;
use shallows_core::tcp::TcpConfig;
use shallows_core::units::{Rate, Time};
use shallows_model::{Carriage, Channel, HostId, IdVec};

use super::HostPlace;
use crate::applications::{ApplicationPlan, Lane};
use crate::broadcast::Trees;
use crate::connections::{Connection, Directory, Routes};
use crate::ids::{ChannelId, ConnectionId, LaneId};
use crate::routing::Router;
use crate::transport::{Completion, Connections, TransportOverride};
use crate::workload::{Ends, Workload};

/// Constants shared by all shards of a run.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) workload: Arc<Workload>,
    pub(crate) directory: Directory,
    pub(crate) transport: TcpConfig,
    pub(crate) overrides: Vec<TransportOverride>,
    /// True if some connections are paced.
    pub(crate) has_pace: bool,
    pub(crate) connections: Connections,
    /// For each connection, how long a full segment and its ACK take on the idle fabric, if connections
    /// are warmed up.
    pub(crate) warm_ups: IdVec<ConnectionId, [Time; 2]>,
    pub(crate) completion: Completion,
    pub(crate) stages: Option<StageTagger>,
    pub(crate) control: ControlPlan,
    pub(crate) applications: ApplicationPlan,
    /// Location of each host.
    pub(crate) places: IdVec<HostId, HostPlace>,
    pub(crate) seed: u64,
}

/// Locations of control agents, and the paths of their messages.
#[derive(Debug)]
pub(crate) struct ControlPlan {
    pub(crate) carriage: Carriage,
    /// The host of each agent.
    pub(crate) hosts: Vec<HostId>,
    pub(crate) channels: IdVec<ChannelId, Channel>,
    pub(crate) slots: FxHashMap<Channel, ConnectionId>,
    /// True if messages are so fast that all events have to keep their order.
    pub(crate) is_immediate: bool,
}

impl World {
    /// Transport parameters of a connection.
    pub(super) fn transport(&self, connection: ConnectionId) -> &TcpConfig {
        let ends = self.ends(connection);
        TransportOverride::choose(&self.overrides, &self.transport, ends)
    }

    /// Hosts and service of a connection.
    #[inline]
    pub(super) fn ends(&self, connection: ConnectionId) -> Ends {
        self.directory.ends(&self.workload, connection)
    }

    /// Returns whether a connection is an application's.
    #[inline]
    pub(super) fn is_lane(&self, connection: ConnectionId) -> bool {
        matches!(self.directory.user(connection), Connection::Lane(_))
    }

    /// A lane of an application.
    pub(super) fn lane(&self, lane: LaneId) -> Lane {
        self.applications.lane(lane, self.directory.of_lane(lane))
    }

    /// The rate of the NIC that a connection sends by.
    pub(super) fn line_rate_of(&self, connection: ConnectionId) -> Rate {
        let Ends { src, .. } = self.ends(connection);
        self.places[src].rate
    }
}

/// The paths that packets take; they change when links do.
#[derive(Clone, Debug)]
pub(crate) struct Routing {
    pub(crate) router: Router,
    /// First links of each connection's paths, forth and back.
    pub(crate) routes: Routes,
    pub(crate) trees: Trees,
}
