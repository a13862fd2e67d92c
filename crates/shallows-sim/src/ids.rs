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
    /// A host, by its number in its shard.
    pub(crate) struct LocalHostId;
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

/// In [layers](crate::layers) the ports of hosts are the first of a shard: for each host that of its
/// NIC, then the one that leads to it
/// ([`Partition::in_layers`](crate::partition::Partition::in_layers)).
impl LocalHostId {
    /// The port of its NIC.
    #[inline(always)]
    pub(crate) fn nic(self) -> PortId {
        PortId(2 * self.0)
    }

    /// The port that leads to it.
    #[inline(always)]
    pub(crate) fn downlink(self) -> PortId {
        PortId(2 * self.0 + 1)
    }

    /// The host with this NIC.
    #[inline(always)]
    pub(crate) fn of_nic(nic: PortId) -> Self {
        Self(nic.0 / 2)
    }

    /// The host that a port leads to, if it does, in a shard with this many hosts.
    #[inline(always)]
    pub(crate) fn behind(PortId(port): PortId, hosts: u32) -> Option<Self> {
        (port < 2 * hosts && port % 2 == 1).then_some(Self(port / 2))
    }
}

impl PortId {
    /// The port of a link in a run of one shard, which has all ports in the order of their links.
    pub(crate) fn of_only_shard(link: LinkId) -> Self {
        Self(link.0)
    }
}
