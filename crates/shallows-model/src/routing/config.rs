//! Routing as written in a scenario.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use shallows_core::keyed::Keyed;
use shallows_core::units::Bytes;
use thiserror::Error;

use super::{Choice, Selection};
use crate::topology::UnknownNode;

/// Choice among equally short paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum RoutingConfig {
    /// By a seeded hash of the flow, independently at each switch. Data and ACKs of a flow choose
    /// for themselves.
    #[default]
    Ecmp,
    /// By a seeded hash of each packet.
    Spray,
    /// By the number `d` of the destination (D-mod-k): of `n` next hops, in link order, a switch
    /// takes the one at `d mod n`, and the next switch with a choice continues with `d / n`. On
    /// leaf-spine, packets to host `d` cross spine `d mod spines`; on a fat-tree all core switches
    /// are in use.
    DestinationModulo,
    /// By the byte-wise hash of ns-2's multipath patch over the two ends of a packet and the number
    /// of its connection, with one connection for each pair of hosts: what MQ-ECN's authors
    /// simulate. A pair keeps its path for the whole run, and the hash is uneven.
    Ns2Hash,
    /// By the bits of one random number per flow, as in the simulations of EAR's authors: of `n`
    /// next hops the one at `(number >> (32 - TTL)) mod n`, where TTL is 32 minus the number of
    /// links crossed. ACKs have the same number. If `n` is not a power of two, the choices at
    /// successive switches depend on each other: a four-tier fat-tree of radix 6 has 27 paths
    /// between distant hosts and uses 12.
    TtlHash,
    /// By a list. A path serves the opposite direction too unless that has one of its own; pairs
    /// that are not in the list take one of the shortest paths by flow hash.
    Explicit {
        /// Each is the names of the nodes from host to host.
        paths: Vec<Vec<String>>,
    },
}

impl RoutingConfig {
    pub(super) fn choice(&self) -> Choice {
        match self {
            Self::Ecmp | Self::Explicit { .. } => Choice::Hash(Selection::Flow),
            Self::Spray => Choice::Hash(Selection::Packet),
            Self::DestinationModulo => Choice::DestinationModulo,
            Self::Ns2Hash => Choice::Ns2Hash,
            Self::TtlHash => Choice::TtlHash,
        }
    }
}

impl Keyed for RoutingError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let path = match self {
            Self::TooLarge { .. } => return Vec::new(),
            Self::UnknownNode { path, .. }
            | Self::Ends { path }
            | Self::NoLink { path, .. }
            | Self::Loop { path, .. } => path,
            Self::Duplicate { second, .. } => second,
        };
        vec![format!("paths.{path}").into()]
    }
}

/// The reason why paths cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RoutingError {
    /// More than should be kept in memory.
    #[error(
        "the routing table would take {bytes}, at most {most} are allowed; put more hosts at each switch"
    )]
    TooLarge {
        /// The amount that it would take.
        bytes: Bytes,
        /// The limit.
        most: Bytes,
    },
    /// A path over a node that does not exist.
    #[error("path {path}: {unknown}")]
    UnknownNode {
        /// Position in the list of paths, from 0.
        path: usize,
        /// The name and the nearest one.
        unknown: UnknownNode,
    },
    /// A path that does not lead from host to host.
    #[error("path {path} must lead from one host over switches to another host")]
    Ends {
        /// Position in the list of paths, from 0.
        path: usize,
    },
    /// A path over a link that does not exist.
    #[error("path {path}: there is no link from {from} to {to}")]
    NoLink {
        /// Position in the list of paths, from 0.
        path: usize,
        /// A node of the path.
        from: String,
        /// The node after it.
        to: String,
    },
    /// A path that passes a node twice.
    #[error("path {path} passes {node} twice")]
    Loop {
        /// Position in the list of paths, from 0.
        path: usize,
        /// The node.
        node: String,
    },
    /// Two paths for one pair.
    #[error("paths {first} and {second} both lead from {src} to {dst}")]
    Duplicate {
        /// Position in the list of paths, from 0.
        first: usize,
        /// Position in the list of paths, from 0.
        second: usize,
        /// The sending host.
        src: String,
        /// The receiving host.
        dst: String,
    },
}
