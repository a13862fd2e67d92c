//! Fabrics written cable by cable.

use std::fmt::{self, Formatter};

use rustc_hash::FxHashMap;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use shallows_core::units::{Rate, Time};

use super::build::{MOST_LINKS, Parts, numbered};
use super::{Fabric, HostLocation, Node, TopologyError, UnknownNode};
use crate::ids::{Id as _, ids};

/// Number of nodes, or their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Nodes {
    /// A number of nodes, named by a letter and an index.
    Count(u32),
    /// One node per name.
    Names(Vec<String>),
}

impl Nodes {
    fn names(&self, prefix: &str) -> Result<Vec<String>, TopologyError> {
        match self {
            // A host has a cable and a switch is useless without one.
            Self::Count(count) if u64::from(*count) > MOST_LINKS => Err(TopologyError::TooLarge {
                links: 2 * u64::from(*count),
                most: MOST_LINKS,
            }),
            Self::Count(count) => Ok(numbered(prefix, *count).collect()),
            Self::Names(names) => Ok(names.clone()),
        }
    }
}

impl<'de> Deserialize<'de> for Nodes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Nodes;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a number of nodes or a list of their names")
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<Nodes, E> {
                let out_of_range = |_| E::invalid_value(Unexpected::Unsigned(count), &self);
                u32::try_from(count).map(Nodes::Count).map_err(out_of_range)
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Nodes, E> {
                let out_of_range = |_| E::invalid_value(Unexpected::Signed(count), &self);
                u32::try_from(count).map(Nodes::Count).map_err(out_of_range)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Nodes, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Nodes::Names)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// A cable of a custom fabric: two directed links of the same rate and delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cable {
    /// Names of the nodes at both ends.
    pub between: [String; 2],
    /// Rate of the cable.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
}

pub(super) fn build(
    hosts: &Nodes,
    switches: &Nodes,
    cables: &[Cable],
) -> Result<Fabric, TopologyError> {
    let (hosts, switches) = (hosts.names("h")?, switches.names("s")?);
    if hosts.is_empty() {
        return Err(TopologyError::Zero("hosts"));
    }
    if switches.is_empty() {
        return Err(TopologyError::Zero("switches"));
    }
    let mut parts = Parts::sized(0, cables.len() as u64)?;
    let ends = find_ends(&hosts, &switches, cables)?;

    let kind = |index: usize| (cables[index].rate, cables[index].delay);
    let racks = find_racks(&hosts, &ends)?;
    for (index, rack) in racks {
        let place = HostLocation {
            rack,
            pod: 0,
            upper_pod: 0,
        };
        parts.add_host(place, kind(index));
    }
    for (index, &(a, b)) in ends.iter().enumerate() {
        if let (Node::Switch(_), Node::Switch(_)) = (a, b) {
            parts.lay(a, b, kind(index));
        }
    }
    Ok(parts.named(hosts, switches))
}

/// The nodes at the ends of each cable.
fn find_ends(
    hosts: &[String],
    switches: &[String],
    cables: &[Cable],
) -> Result<Vec<(Node, Node)>, TopologyError> {
    let names = index_names(hosts, switches)?;
    let mut seen = FxHashMap::default();
    let ends = cables.iter().enumerate().map(|(index, cable)| {
        if cable.rate.bps() == 0 {
            return Err(TopologyError::Zero("rate"));
        }
        let find = |name: &String| {
            let found = names.get(name.as_str()).copied();
            found.ok_or_else(|| TopologyError::UnknownNode {
                index,
                unknown: UnknownNode::new(name, hosts.iter().chain(switches)),
            })
        };
        let [a_name, b_name] = cable.between.clone();
        let (a, b) = (find(&a_name)?, find(&b_name)?);
        if a == b {
            let node = a_name;
            return Err(TopologyError::Loop { index, node });
        }
        if let Some(first) = seen.insert((a.min(b), a.max(b)), index) {
            return Err(TopologyError::DuplicateLink {
                first,
                second: index,
                a: a_name,
                b: b_name,
            });
        }
        if let (Node::Host(_), Node::Host(_)) = (a, b) {
            return Err(TopologyError::HostToHost {
                index,
                a: a_name,
                b: b_name,
            });
        }
        Ok((a, b))
    });
    ends.collect()
}

/// The cable and the switch of each host.
fn find_racks(hosts: &[String], ends: &[(Node, Node)]) -> Result<Vec<(usize, u32)>, TopologyError> {
    let mut racks = vec![None; hosts.len()];
    for (second, &ends) in ends.iter().enumerate() {
        if let (Node::Host(host), Node::Switch(rack)) | (Node::Switch(rack), Node::Host(host)) =
            ends
        {
            let before = racks[host.index()].replace((second, rack));
            if let Some((first, _)) = before {
                return Err(TopologyError::SeveralLinks {
                    host: hosts[host.index()].clone(),
                    first,
                    second,
                });
            }
        }
    }
    let racks = racks.into_iter().zip(hosts);
    racks
        .map(|(rack, host)| rack.ok_or_else(|| TopologyError::NoLink(host.clone())))
        .collect()
}

fn index_names<'a>(
    hosts: &'a [String],
    switches: &'a [String],
) -> Result<FxHashMap<&'a str, Node>, TopologyError> {
    let hosts = ids().map(Node::Host).zip(hosts);
    let switches = (0..).map(Node::Switch).zip(switches);
    let mut names = FxHashMap::default();
    for (node, name) in hosts.chain(switches) {
        if names.insert(name.as_str(), node).is_some() {
            return Err(TopologyError::DuplicateName(name.clone()));
        }
    }
    Ok(names)
}
