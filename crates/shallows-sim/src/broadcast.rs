//! Trees along which switches copy broadcast datagrams.
//!
//! A broadcast leaves its host as one packet. Its path is cut into segments: one ends at each switch
//! where the paths to the receivers part, and there the packet is copied into the segments that
//! begin there. A packet is on the connection of the first receiver behind its segment. Each switch
//! is entered once, as in the spanning tree of a real network; links that lead to no receiver carry
//! nothing, as with snooping switches.

use rustc_hash::FxHashMap;
use shallows_model::topology::Node;
use shallows_model::{IdVec, LinkId};

use crate::connections::Routes;
use crate::ids::ConnectionId;
use crate::paths::Paths;

/// The connections that one broadcast reaches, and the ends of links, by which their paths join.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broadcasts {
    /// The directions from the sender to its receivers.
    pub(crate) groups: Vec<Vec<ConnectionId>>,
    /// Both ends of each link; empty without groups.
    pub(crate) ends: IdVec<LinkId, (Node, Node)>,
}

/// A segment of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The direction to the first receiver behind it.
    pub(crate) slot: ConnectionId,
    /// Position of its first link among the paths.
    pub(crate) route: u32,
}

/// The trees of all broadcasts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trees {
    /// The segments at which a broadcast begins, one for each NIC that it leaves by, by the first
    /// connection that it reaches.
    roots: FxHashMap<ConnectionId, Vec<Branch>>,
    /// Segments that begin where another ends, by its connection and the position after it.
    splits: FxHashMap<(ConnectionId, u32), Vec<Branch>>,
}

impl Trees {
    pub(crate) fn new(broadcasts: &Broadcasts, paths: &mut Paths<LinkId>, routes: &Routes) -> Self {
        let mut trees = Self::default();
        for group in &broadcasts.groups {
            let tree = Tree::new(&broadcasts.ends, paths, group, routes);
            if let (Some(tree), Some(&first)) = (tree, group.first()) {
                let roots = trees.lay(&tree, tree.root, paths);
                trees.roots.insert(first, roots);
            }
        }
        trees
    }

    /// The segments at which the broadcast begins whose first receiver is on this connection.
    pub(crate) fn roots(&self, first: ConnectionId) -> &[Branch] {
        self.roots.get(&first).map_or(&[], Vec::as_slice)
    }

    /// The segments into which a packet that has arrived is copied; none if it is at its host.
    pub(crate) fn split(&self, slot: ConnectionId, position: u32) -> Option<&[Branch]> {
        if self.splits.is_empty() {
            return None;
        }
        self.splits.get(&(slot, position)).map(Vec::as_slice)
    }

    /// Stores the segments that begin at a node and all behind them.
    fn lay(&mut self, tree: &Tree<'_>, from: Node, paths: &mut Paths<LinkId>) -> Vec<Branch> {
        let mut branches = Vec::new();
        for &link in tree.links_of(from) {
            let mut links = vec![link];
            let mut end = tree.ends[link].1;
            while let [next] = *tree.links_of(end) {
                links.push(next);
                end = tree.ends[next].1;
            }
            let behind = self.lay(tree, end, paths);
            let (slot, next) = match (behind.first(), tree.receivers.get(&end)) {
                (Some(first), _) => (first.slot, tree.links_of(end)[0]),
                (None, Some(&receiver)) => receiver,
                (None, None) => continue,
            };
            let route = paths.add_segment(&links, next);
            if !behind.is_empty() {
                let position = route + links.len() as u32 + 1;
                self.splits.insert((slot, position), behind);
            }
            branches.push(Branch { slot, route });
        }
        branches
    }
}

/// The links of one broadcast.
struct Tree<'a> {
    ends: &'a IdVec<LinkId, (Node, Node)>,
    root: Node,
    /// Links that leave each node, in the order of the receivers.
    links: FxHashMap<Node, Vec<LinkId>>,
    /// Directions by the host that they lead to, with the link of its NIC.
    receivers: FxHashMap<Node, (ConnectionId, LinkId)>,
}

impl<'a> Tree<'a> {
    /// Joins the paths of a group: each leaves the tree at the last node that is in it already.
    fn new(
        ends: &'a IdVec<LinkId, (Node, Node)>,
        paths: &Paths<LinkId>,
        group: &[ConnectionId],
        routes: &Routes,
    ) -> Option<Self> {
        let first = routes[*group.first()?][0];
        let root = ends[paths.links(first).next()?].0;
        let mut tree = Self {
            ends,
            root,
            links: FxHashMap::from_iter([(root, Vec::new())]),
            receivers: FxHashMap::default(),
        };
        for &slot in group {
            let route = routes[slot][0];
            let path: Vec<LinkId> = paths.links(route).collect();
            let nic = paths.hop(route + path.len() as u32).id();
            let is_in = |&link: &LinkId| tree.links.contains_key(&ends[link].0);
            let begin = path.iter().rposition(is_in)?;
            for &link in &path[begin..] {
                let (from, to) = ends[link];
                tree.links.entry(from).or_default().push(link);
                tree.links.entry(to).or_default();
            }
            let host = ends[*path.last()?].1;
            tree.receivers.insert(host, (slot, nic));
        }
        Some(tree)
    }

    fn links_of(&self, node: Node) -> &[LinkId] {
        self.links.get(&node).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use shallows_model::HostId;

    use super::*;

    /// The position of a path's first link.
    fn route(paths: &mut Paths<LinkId>, links: &[u32]) -> [u32; 2] {
        let links: Vec<LinkId> = links.iter().copied().map(LinkId).collect();
        [paths.intern(links.iter().copied(), LinkId(9)), 0]
    }

    fn links(paths: &Paths<LinkId>, branch: Branch) -> Vec<u32> {
        paths.links(branch.route).map(|link| link.0).collect()
    }

    const fn host(number: u32) -> Node {
        Node::Host(HostId(number))
    }

    const fn switch(number: u32) -> Node {
        Node::Switch(number)
    }

    /// Host 0 at switch 0, hosts 1 and 2 at switch 1, host 3 at switch 2; 3 is above all switches.
    /// Hosts 1 to 3 are reached on the connections 0, 1 and 2.
    #[test]
    fn paths_part_where_receivers_do() {
        let ends = vec![
            (host(0), switch(0)),
            (switch(0), switch(3)),
            (switch(3), switch(1)),
            (switch(1), host(1)),
            (switch(1), host(2)),
            (switch(3), switch(2)),
            (switch(2), host(3)),
        ];
        let mut paths = Paths::default();
        let lanes: [&[u32]; 3] = [&[0, 1, 2, 3], &[0, 1, 2, 4], &[0, 1, 5, 6]];
        let routes = lanes
            .map(|path| route(&mut paths, path))
            .into_iter()
            .collect();
        let groups = vec![[0, 1, 2].map(ConnectionId).to_vec()];
        let trees = Trees::new(
            &Broadcasts {
                groups,
                ends: ends.into(),
            },
            &mut paths,
            &routes,
        );

        let links = |branch: &Branch| links(&paths, *branch);
        let end = |branch: &Branch| branch.route + links(branch).len() as u32 + 1;
        let [root] = *trees.roots(ConnectionId(0)) else {
            panic!("one NIC has one root");
        };
        assert_eq!((root.slot.0, links(&root)), (0, vec![0, 1]));
        let top = trees.split(ConnectionId(0), end(&root)).unwrap();
        let seen: Vec<_> = top.iter().map(|of| (of.slot.0, links(of))).collect();
        assert_eq!(seen, [(0, vec![2]), (2, vec![5, 6])]);
        let rack = trees.split(ConnectionId(0), end(&top[0])).unwrap();
        let seen: Vec<_> = rack.iter().map(|of| (of.slot.0, links(of))).collect();
        assert_eq!(seen, [(0, vec![3]), (1, vec![4])]);
        // Those at hosts go no further.
        for leaf in [&rack[0], &rack[1], &top[1]] {
            assert_eq!(trees.split(leaf.slot, end(leaf)), None);
        }
    }

    /// Two paths by different switches are joined, so that each switch is entered once.
    #[test]
    fn a_switch_is_entered_once() {
        let ends = vec![
            (host(0), switch(0)),
            (switch(0), switch(1)),
            (switch(1), switch(3)),
            (switch(0), switch(2)),
            (switch(2), switch(3)),
            (switch(3), host(1)),
            (switch(3), host(2)),
        ];
        let mut paths = Paths::default();
        let lanes: [&[u32]; 2] = [&[0, 1, 2, 5], &[0, 3, 4, 6]];
        let routes = lanes
            .map(|path| route(&mut paths, path))
            .into_iter()
            .collect();
        let groups = vec![[0, 1].map(ConnectionId).to_vec()];
        let trees = Trees::new(
            &Broadcasts {
                groups,
                ends: ends.into(),
            },
            &mut paths,
            &routes,
        );
        let [root] = *trees.roots(ConnectionId(0)) else {
            panic!("one NIC has one root");
        };
        assert_eq!(links(&paths, root), [0, 1, 2]);
        let behind = trees.split(ConnectionId(0), root.route + 4).unwrap();
        assert_eq!(
            behind.iter().map(|of| of.slot.0).collect::<Vec<_>>(),
            [0, 1]
        );
    }
}
