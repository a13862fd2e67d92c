//! Paths that the scenario lists.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{RoutingConfig, RoutingError};
use crate::ids::{HostId, LinkId};
use crate::topology::{Fabric, Node};

/// The links of each listed pair, and of its opposite.
#[derive(Clone, Debug)]
pub(super) struct ExplicitPaths {
    links: FxHashMap<(HostId, HostId), Vec<LinkId>>,
}

impl ExplicitPaths {
    /// The paths of `config`, if it lists any.
    pub(super) fn new(
        fabric: &Fabric,
        config: &RoutingConfig,
    ) -> Result<Option<Self>, RoutingError> {
        let RoutingConfig::Explicit { paths } = config else {
            return Ok(None);
        };
        let by_ends: FxHashMap<(Node, Node), LinkId> = fabric
            .links()
            .numbered()
            .map(|(number, link)| ((link.from, link.to), number))
            .collect();
        let mut numbers = BTreeMap::new();
        let mut links = FxHashMap::default();
        for (path, names) in paths.iter().enumerate() {
            let nodes = resolve(fabric, path, names)?;
            let (Some(&Node::Host(src)), Some(&Node::Host(dst))) = (nodes.first(), nodes.last())
            else {
                return Err(RoutingError::Ends { path });
            };
            if let Some(first) = numbers.insert((src, dst), path) {
                return Err(RoutingError::Duplicate {
                    first,
                    second: path,
                    src: fabric.name(Node::Host(src)).to_owned(),
                    dst: fabric.name(Node::Host(dst)).to_owned(),
                });
            }
            let hops = nodes.windows(2).map(|ends| {
                let link = by_ends.get(&(ends[0], ends[1])).copied();
                link.ok_or_else(|| RoutingError::NoLink {
                    path,
                    from: fabric.name(ends[0]).to_owned(),
                    to: fabric.name(ends[1]).to_owned(),
                })
            });
            links.insert((src, dst), hops.collect::<Result<Vec<_>, _>>()?);
        }
        for &(src, dst) in numbers.keys() {
            if !numbers.contains_key(&(dst, src)) {
                let forth = &links[&(src, dst)];
                let back = forth.iter().rev().map(|&link| fabric.reverse(link));
                let back = back.collect();
                links.insert((dst, src), back);
            }
        }
        Ok(Some(Self { links }))
    }

    pub(super) fn path(&self, src: HostId, dst: HostId) -> Option<&[LinkId]> {
        self.links.get(&(src, dst)).map(Vec::as_slice)
    }
}

/// The nodes of a path: none twice, hosts at its ends only.
fn resolve(fabric: &Fabric, path: usize, names: &[String]) -> Result<Vec<Node>, RoutingError> {
    let mut nodes = Vec::with_capacity(names.len());
    for (position, name) in names.iter().enumerate() {
        let node = fabric
            .node(name)
            .map_err(|unknown| RoutingError::UnknownNode { path, unknown })?;
        if nodes.contains(&node) {
            let node = name.clone();
            return Err(RoutingError::Loop { path, node });
        }
        let is_end = position == 0 || position + 1 == names.len();
        if matches!(node, Node::Host(_)) != is_end {
            return Err(RoutingError::Ends { path });
        }
        nodes.push(node);
    }
    if nodes.len() < 3 {
        return Err(RoutingError::Ends { path });
    }
    Ok(nodes)
}
