//! Numbers of the simulator's own kinds.

use shallows_model::{FlowId, LinkId, ids};

ids! {
    /// An egress port, by its number in its shard.
    pub(crate) struct PortId;
    /// A shard: the part of a fabric that one thread runs.
    pub(crate) struct ShardId;
    /// A connection of flows, applications or control agents.
    pub(crate) struct ConnectionId;
    /// One direction of a connection of an application: even forth, odd back.
    pub(crate) struct LaneId;
    /// A channel from one control agent to another.
    pub(crate) struct ChannelId;
}

impl ConnectionId {
    /// The connection of a flow, if it opens one.
    #[inline]
    pub(crate) fn of_flow(FlowId(flow): FlowId) -> Self {
        Self(flow)
    }

    /// The number that packets of applications and agents have in place of a flow's. Those of
    /// their connections are beyond all flows.
    #[inline]
    pub(crate) fn in_place_of_flow(self) -> FlowId {
        FlowId(self.0)
    }
}

impl LaneId {
    /// The other direction.
    pub(crate) fn opposite(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl PortId {
    /// The port of a link in a run of one shard, which has all ports in the order of their links.
    pub(crate) fn of_only_shard(link: LinkId) -> Self {
        Self(link.0)
    }
}
