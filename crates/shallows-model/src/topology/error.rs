use std::borrow::Cow;

use shallows_core::keyed::Keyed;
use shallows_core::units::Time;
use thiserror::Error;

use super::{LONGEST_DELAY, nearest};

/// The reason why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// Something must not be zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// Hosts with links of no rate.
    #[error("the rate of a host link must not be zero")]
    HostRate,
    /// Switches with links of no rate.
    #[error("the rate of a link between switches must not be zero")]
    FabricRate,
    /// A fat-tree switch has as many ports up as down.
    #[error("the radix of a fat-tree is an even number from 2, not {0}")]
    Radix(u32),
    /// A fat-tree of another height.
    #[error("a fat-tree has 3 or 4 tiers, not {0}; for 2 tiers write leaf-spine")]
    Tiers(u32),
    /// A group of leaves that is not complete.
    #[error(
        "with {nics} NICs leaves are in groups of {nics}, and {leaves} leaves do not make whole ones"
    )]
    Nics {
        /// Number of leaves.
        leaves: u32,
        /// NICs of a host.
        nics: u32,
    },
    /// A delay beyond all reason.
    #[error("the delay of a link is {0}, it can be at most {LONGEST_DELAY}")]
    Delay(Time),
    /// More than the engine numbers.
    #[error(
        "the fabric would have {links} directed links and take {} GB of memory; at most {most} are possible",
        links.div_ceil(1_000_000)
    )]
    TooLarge {
        /// Directed links asked for.
        links: u64,
        /// The limit.
        most: u64,
    },
    /// Two nodes share a name.
    #[error("two nodes are called {0:?}")]
    DuplicateName(String),
    /// A cable to a node that does not exist.
    #[error("link {index}: {unknown}")]
    UnknownNode {
        /// Position in the list of links, from 0.
        index: usize,
        /// The name and the nearest one.
        unknown: UnknownNode,
    },
    /// A cable with both ends in one node.
    #[error("link {index} joins {node} to itself")]
    Loop {
        /// Position in the list of links, from 0.
        index: usize,
        /// The node.
        node: String,
    },
    /// Two cables between the same nodes.
    #[error("links {first} and {second} both join {a} and {b}; write one link with their rate")]
    DuplicateLink {
        /// Position in the list of links, from 0.
        first: usize,
        /// Position in the list of links, from 0.
        second: usize,
        /// One end.
        a: String,
        /// The other end.
        b: String,
    },
    /// A cable without a switch.
    #[error("link {index} joins the hosts {a} and {b}; put a switch between them")]
    HostToHost {
        /// Position in the list of links, from 0.
        index: usize,
        /// One end.
        a: String,
        /// The other end.
        b: String,
    },
    /// A host that nobody can reach.
    #[error("host {0} has no link; every host needs one, to a switch")]
    NoLink(String),
    /// A host with more than one way out.
    #[error("host {host} has links {first} and {second}; a host has one")]
    SeveralLinks {
        /// The host.
        host: String,
        /// Position in the list of links, from 0.
        first: usize,
        /// Position in the list of links, from 0.
        second: usize,
    },
}

impl Keyed for TopologyError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let link = match self {
            Self::Zero(name) => return vec![(*name).into()],
            Self::HostRate => return vec!["host-rate".into(), "rate".into()],
            Self::FabricRate => return vec!["fabric-rate".into(), "rate".into()],
            Self::Radix(_) => return vec!["radix".into()],
            Self::Tiers(_) => return vec!["tiers".into()],
            Self::Nics { .. } => return vec!["nics".into()],
            Self::Delay(_) => {
                return ["delay", "host-delay", "fabric-delay"]
                    .map(Into::into)
                    .to_vec();
            }
            Self::TooLarge { .. } | Self::DuplicateName(_) | Self::NoLink(_) => return Vec::new(),
            Self::UnknownNode { index, .. }
            | Self::Loop { index, .. }
            | Self::HostToHost { index, .. } => index,
            Self::DuplicateLink { second, .. } | Self::SeveralLinks { second, .. } => second,
        };
        vec![format!("links.{link}").into()]
    }
}

/// A name that no node has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no node {name:?}{}", .nearest.as_ref().map(|n| format!(", did you mean {n:?}?")).unwrap_or_default())]
pub struct UnknownNode {
    /// The text as written.
    pub name: String,
    /// The most similar name, if one is close.
    pub nearest: Option<String>,
}

impl UnknownNode {
    pub(super) fn new<'a>(name: &str, known: impl IntoIterator<Item = &'a String>) -> Self {
        Self {
            name: name.to_owned(),
            nearest: nearest(name, known).map(str::to_owned),
        }
    }
}
