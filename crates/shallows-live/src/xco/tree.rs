use shallows_core::xco::fabric::Routes;
use shallows_model::routing::first_links;

/// The paths of a tree of switches.
///
/// Link `2h` leads up from host `h` and link `2h + 1` down to it; behind those of all hosts trunk
/// `t` has two links in the same way, the first from its first switch to its second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    switch_of: Vec<usize>,
    /// For each pair of switches, the link from the first towards the second and where it ends.
    ways: Vec<Vec<Option<(u32, usize)>>>,
}

impl Tree {
    /// A tree of hosts, each at a switch, and trunks; `None` if it is none: there is a circle, or
    /// a switch that cannot be reached.
    pub fn new(switch_of: Vec<usize>, trunks: &[[usize; 2]]) -> Option<Self> {
        let ends = trunks.iter().flatten().chain(&switch_of);
        let switches = ends.max().map_or(0, |last| last + 1);
        if trunks.len() + 1 != switches {
            return None;
        }
        let first = 2 * switch_of.len() as u32;
        let mut neighbours = vec![Vec::new(); switches];
        for (link, &[a, b]) in (first..).step_by(2).zip(trunks) {
            neighbours[a].push((link, b));
            neighbours[b].push((link + 1, a));
        }
        let ways: Vec<_> = (0..switches)
            .map(|start| first_links(start, &neighbours))
            .collect();
        let missing = |(start, ways): (usize, &Vec<Option<_>>)| {
            (0..switches).any(|to| to != start && ways[to].is_none())
        };
        let is_whole = !ways.iter().enumerate().any(missing);
        is_whole.then_some(Self { switch_of, ways })
    }
}

impl Routes for Tree {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        let switch = |host: u32| self.switch_of.get(host as usize).copied();
        let (Some(mut at), Some(end)) = (switch(source), switch(destination)) else {
            return;
        };
        path.push(2 * source);
        while at != end {
            let Some((link, next)) = self.ways[at][end] else {
                return path.clear();
            };
            path.push(link);
            at = next;
        }
        path.push(2 * destination + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_over_the_trunks_between() {
        // Hosts 0 and 1 at switch 0, host 2 at switch 2; trunks 0-1 and 1-2.
        let tree = Tree::new(vec![0, 0, 2], &[[0, 1], [2, 1]]).unwrap();
        let path = |from, to| {
            let mut path = Vec::new();
            tree.path(from, to, &mut path);
            path
        };
        assert_eq!(path(0, 1), [0, 3]);
        assert_eq!(path(0, 2), [0, 6, 9, 5]);
        assert_eq!(path(2, 1), [4, 8, 7, 3]);
        assert_eq!(path(0, 9), [0; 0]);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        assert_eq!(Tree::new(vec![0, 1], &[]), None, "nothing between them");
        assert_eq!(Tree::new(vec![0, 1], &[[0, 1], [0, 1]]), None, "a circle");
        assert_eq!(Tree::new(vec![0, 1, 2], &[[0, 1], [0, 1]]), None);
    }
}
