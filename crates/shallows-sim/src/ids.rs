//! Numbers of the simulator's own kinds.

use shallows_model::{LinkId, ids};

ids! {
    /// An egress port, by its number in its shard.
    pub(crate) struct PortId;
    /// A shard: the part of a fabric that one thread runs.
    pub(crate) struct ShardId;
}

impl PortId {
    /// The port of a link in a run of one shard, which has all ports in the order of their links.
    pub(crate) fn of_only_shard(link: LinkId) -> Self {
        Self(link.0)
    }
}
