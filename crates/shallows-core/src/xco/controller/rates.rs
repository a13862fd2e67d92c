//! Rate limits (§3.3): every backlogged pair may send all the time, but only so fast.
//!
//! Rates are computed anew each `slot` for all pairs that are backlogged then, and hold until the
//! end of the slot and no longer, so that rates of two rounds never add up.

use serde::{Deserialize, Serialize};

use super::{Controller, MOST_PERMITS, Routes, Strategy};
use crate::units::{Rate, Time};

/// How links are shared among pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// "the capacity of the bottleneck link divided by the number of senders through the
    /// bottleneck" (§3.3): of all links of the path, the least of such shares.
    Equal,
    /// Max-min fairness: what a pair that is limited elsewhere leaves over goes to the others.
    MaxMin,
}

impl Sharing {
    /// The rate of each pair, given its path and the most that it can send.
    pub fn rates(self, capacities: &[Rate], pairs: &[(&[u32], Rate)]) -> Vec<Rate> {
        match self {
            Self::Equal => equal(capacities, pairs),
            Self::MaxMin => max_min(capacities, pairs),
        }
    }
}

fn equal(capacities: &[Rate], pairs: &[(&[u32], Rate)]) -> Vec<Rate> {
    let mut senders = vec![0_u64; capacities.len()];
    for &link in pairs.iter().flat_map(|(path, _)| *path) {
        senders[link as usize] += 1;
    }
    let share = |&link: &u32| capacities[link as usize].bps() / senders[link as usize];
    let rate = |(path, most): &(&[u32], Rate)| {
        let least = path.iter().map(share).min().unwrap_or(0);
        Rate::from_bps(least.min(most.bps()))
    };
    pairs.iter().map(rate).collect()
}

/// Progressive filling: the link with the least share for each unsettled pair settles its pairs.
fn max_min(capacities: &[Rate], pairs: &[(&[u32], Rate)]) -> Vec<Rate> {
    let mut left: Vec<u64> = capacities.iter().map(|capacity| capacity.bps()).collect();
    let mut unsettled = vec![0_u64; capacities.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); capacities.len()];
    for (pair, (path, _)) in pairs.iter().enumerate() {
        for &link in *path {
            unsettled[link as usize] += 1;
            users[link as usize].push(pair);
        }
    }
    let mut rates: Vec<Option<u64>> = vec![None; pairs.len()];
    let mut by_limit: Vec<usize> = (0..pairs.len()).collect();
    by_limit.sort_by_key(|&pair| (pairs[pair].1.bps(), pair));
    let mut by_limit = by_limit.into_iter().peekable();
    loop {
        while by_limit.next_if(|&pair| rates[pair].is_some()).is_some() {}
        let Some(&slowest) = by_limit.peek() else {
            break;
        };
        let busy = (0..left.len()).filter(|&link| unsettled[link] > 0);
        let shares = busy.map(|link| (left[link] / unsettled[link], link));
        let (share, link) = shares.min().unwrap_or((u64::MAX, 0));
        let limit = pairs[slowest].1.bps();
        let settled = if limit <= share {
            vec![slowest]
        } else {
            let open = users[link].iter().copied();
            open.filter(|&pair| rates[pair].is_none()).collect()
        };
        for pair in settled {
            let rate = share.min(limit);
            rates[pair] = Some(rate);
            for &link in pairs[pair].0 {
                left[link as usize] -= rate;
                unsettled[link as usize] -= 1;
            }
        }
    }
    rates
        .into_iter()
        .map(|rate| Rate::from_bps(rate.unwrap_or(0)))
        .collect()
}

impl<R: Routes> Controller<R> {
    /// The start of a term, or the next round of rate limits.
    pub(super) fn start_round(&mut self, now: Time) {
        if !self.leadership.grants_at(now) {
            // A lease that is about to be renewed or lost.
            self.next_round = now + self.config.slot;
            return;
        }
        self.announce();
        let Strategy::RateLimit(sharing) = self.config.strategy else {
            self.next_round = Time::MAX;
            let mut grants = std::mem::take(&mut self.grants);
            self.schedule.handle_all_silent(now, &mut grants);
            return self.deliver(now, grants);
        };
        self.next_round = now + self.config.slot;
        let pairs = self.schedule.pairs(MOST_PERMITS);
        let paths: Vec<(&[u32], Rate)> = pairs.iter().map(|p| (p.path, p.rate)).collect();
        let rates = sharing.rates(&self.schedule.fabric().links, &paths);
        let limits = pairs.iter().zip(rates);
        let limits: Vec<_> = limits
            .map(|(p, rate)| (p.host, p.destination, rate))
            .collect();
        for (host, destination, rate) in limits {
            let member = &mut self.members[host as usize];
            if member.limits_end <= now {
                member.limits.clear();
                member.limits_end = self.next_round;
                member.grant += 1;
                self.counters.grants += 1;
            }
            member.limits.push((destination, rate));
            self.post(host);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mbps(values: &[u64]) -> Vec<Rate> {
        values.iter().copied().map(Rate::from_mbps).collect()
    }

    #[test]
    fn five_senders_get_a_fifth_as_in_section_4_2() {
        let paths: Vec<[u32; 2]> = (0..5).map(|host| [host, 5]).collect();
        let pairs: Vec<_> = paths
            .iter()
            .map(|path| (&path[..], Rate::from_gbps(1)))
            .collect();
        for sharing in [Sharing::Equal, Sharing::MaxMin] {
            assert_eq!(sharing.rates(&mbps(&[1000; 6]), &pairs), mbps(&[200; 5]));
        }
    }

    #[test]
    fn max_min_gives_what_is_left_over_to_others() {
        // Pairs 0 and 1 share link 0; pairs 1 to 3 share link 1; pair 4 has 50 Mbps of its own.
        let paths: [&[u32]; 5] = [&[0], &[0, 1], &[1], &[1], &[0]];
        let most = mbps(&[1000, 1000, 1000, 1000, 50]);
        let pairs: Vec<_> = paths.into_iter().zip(most).collect();
        let capacities = mbps(&[1000, 600]);
        // Link 0 has three senders, link 1 three.
        let equal = Sharing::Equal.rates(&capacities, &pairs);
        assert_eq!(equal[1..], mbps(&[200, 200, 200, 50]));
        assert_eq!(equal[0].bps(), 333_333_333);
        // Pair 4 keeps 50; link 1 gives 200 each; pair 0 has 1000 - 50 - 200.
        let fair = Sharing::MaxMin.rates(&capacities, &pairs);
        assert_eq!(fair, mbps(&[750, 200, 200, 200, 50]));
    }

    proptest! {
        #[test]
        fn rates_fit_and_max_min_leaves_every_pair_a_full_link(
            capacities in prop::collection::vec(1..1_000_u64, 1..8),
            pairs in prop::collection::vec(
                (prop::collection::btree_set(0..8_u32, 1..4), 1..2_000_u64), 1..20),
        ) {
            let capacities = mbps(&capacities);
            let links = capacities.len() as u32;
            let paths: Vec<(Vec<u32>, Rate)> = pairs
                .into_iter()
                .map(|(path, most)| {
                    let mut path: Vec<u32> = path.into_iter().map(|link| link % links).collect();
                    path.sort_unstable();
                    path.dedup();
                    (path, Rate::from_mbps(most))
                })
                .collect();
            let pairs: Vec<_> = paths.iter().map(|(path, most)| (&path[..], *most)).collect();
            for sharing in [Sharing::Equal, Sharing::MaxMin] {
                let rates = sharing.rates(&capacities, &pairs);
                let mut loads = vec![0; capacities.len()];
                for ((path, most), rate) in pairs.iter().zip(&rates) {
                    prop_assert!(rate <= most);
                    path.iter().for_each(|&link| loads[link as usize] += rate.bps());
                }
                for (load, capacity) in loads.iter().zip(&capacities) {
                    prop_assert!(*load <= capacity.bps());
                }
                if sharing == Sharing::Equal {
                    continue;
                }
                for ((path, most), rate) in pairs.iter().zip(&rates) {
                    // Shares are whole bits per second: a full link may lack one for each pair.
                    let full = |&link: &u32| {
                        loads[link as usize] + 20 >= capacities[link as usize].bps()
                    };
                    prop_assert!(rate == most || path.iter().any(full));
                }
            }
        }
    }
}
