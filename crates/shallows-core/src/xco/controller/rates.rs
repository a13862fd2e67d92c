//! Rate limits (§3.3): every backlogged pair may send all the time, but only so fast.
//!
//! A limit holds "until the next directive", which comes when a pair becomes backlogged or `slot`
//! has passed, and at most for [`LEASE`] slots. A host whose limits become lower says so at once,
//! and others get what it had only then or when its older limits have ended, so that rates of two
//! rounds never add up.

use super::{Controller, Directives, MOST_PERMITS, Routes};
use crate::units::{Rate, Time};

/// Limits are renewed every slot and end after this many, so that a lost directive silences a host
/// for no longer than the next one takes.
pub(super) const LEASE: u64 = 2;

/// Rates are computed at most this often in a slot.
const ROUNDS_IN_A_SLOT: u64 = 32;

/// The rates of pairs, given the capacities of links, the pairs' paths and the most that they can
/// send.
type Sharing = fn(&[Rate], &[(&[u32], Rate)]) -> Vec<Rate>;

/// "the capacity of the bottleneck link divided by the number of senders through the bottleneck"
/// (§3.3): of all links of the path, the least of such shares.
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

/// Max-min fairness: what a pair that is limited elsewhere leaves over goes to the others.
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

/// The rate limits of a host: the newest, and what older ones may still allow.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Destinations and rates.
    pub(super) rates: Vec<(u32, Rate)>,
    /// End of the limits, unless they are renewed.
    pub(super) end: Time,
    /// The most that the host may do by limits of which it has not said that they are replaced.
    old: Vec<(u32, Rate)>,
    old_end: Time,
}

impl Limits {
    /// The most that the host may send to a destination.
    fn bound(&self, now: Time, destination: u32) -> Rate {
        let bounds = self.in_force(now).filter(|(to, _)| *to == destination);
        let bounds = bounds.map(|(_, rate)| rate);
        bounds.max().unwrap_or(Rate::from_bps(0))
    }

    /// All limits that may be in force; a destination can be among them twice.
    fn in_force(&self, now: Time) -> impl Iterator<Item = (u32, Rate)> + '_ {
        let new = self.rates.iter().filter(move |_| now < self.end);
        let old = self.old.iter().filter(move |_| now < self.old_end);
        new.chain(old).copied()
    }

    /// All destinations that may have a limit in force, with the most that they may be sent.
    fn bounds(&self, now: Time) -> Vec<(u32, Rate)> {
        let mut bounds: Vec<_> = self.in_force(now).collect();
        bounds.sort_unstable_by_key(|&(to, rate)| (to, std::cmp::Reverse(rate)));
        bounds.dedup_by_key(|(to, _)| *to);
        bounds
    }

    /// Gives the host new limits, of which it has yet to hear.
    fn replace(&mut self, now: Time, rates: Vec<(u32, Rate)>, end: Time) {
        let bounds = self.bounds(now);
        let ends = [self.end, self.old_end].into_iter();
        self.old_end = ends.filter(|&end| now < end).max().unwrap_or(now);
        self.old = bounds;
        (self.rates, self.end) = (rates, end);
    }

    /// Takes all limits away from a host that has yet to hear of it, or never will.
    pub(super) fn retire(&mut self, now: Time) {
        self.replace(now, Vec::new(), now);
    }

    /// The host has said that the newest limits are those in force; whether that changes anything.
    pub(super) fn acknowledge(&mut self) -> bool {
        !std::mem::take(&mut self.old).is_empty()
    }
}

impl<R: Routes> Controller<R> {
    /// The start of a term, or the next round of rate limits.
    pub(super) fn start_round(&mut self, now: Time) {
        if !self.leadership.grants_at(now) {
            // A term that is about to begin, or a lease that is about to be renewed or lost.
            let begins = self.leadership.begins_after(now).unwrap_or(Time::MAX);
            self.next_round = begins.min(now + self.config.slot);
            return;
        }
        self.announce();
        let sharing: Sharing = match self.config.directives {
            Directives::Timeslice => {
                self.next_round = Time::MAX;
                let mut grants = std::mem::take(&mut self.grants);
                self.schedule.handle_all_silent(now, &mut grants);
                return self.deliver(now, grants);
            }
            Directives::RateLimit => equal,
            Directives::MaxMin => max_min,
        };
        self.last_round = now;
        self.next_round = now + self.config.slot;
        self.share(now, sharing);
    }

    /// Brings the next round forward, because a pair can have more than it has.
    pub(super) fn hasten_round(&mut self, now: Time) {
        let at = self.last_round + self.config.slot / ROUNDS_IN_A_SLOT;
        if !self.leadership.grants_at(now) || now < at {
            self.next_round = self.next_round.min(at.max(now));
        } else {
            self.start_round(now);
        }
    }

    /// Computes the rates of all pairs, and gives them to hosts where they changed or end soon.
    fn share(&mut self, now: Time, sharing: Sharing) {
        let pairs = self.schedule.pairs(MOST_PERMITS);
        let paths: Vec<(&[u32], Rate)> = pairs.iter().map(|p| (p.path, p.rate)).collect();
        let rates = sharing(&self.schedule.fabric().links, &paths);
        let mut spare = self.spare(now);
        let mut limits: Vec<Vec<(u32, Rate)>> = vec![Vec::new(); self.members.len()];
        self.is_short = false;
        for (pair, target) in pairs.iter().zip(rates) {
            let bound = self.members[pair.host as usize]
                .limits
                .bound(now, pair.destination);
            let mut rate = target.bps();
            // What others may still use is given when they have said that they do not.
            if let Some(more) = rate.checked_sub(bound.bps()) {
                let left = pair.path.iter().map(|&link| spare[link as usize]);
                let given = more.min(left.min().unwrap_or(0));
                self.is_short |= given < more;
                for &link in pair.path {
                    spare[link as usize] -= given;
                }
                rate = bound.bps() + given;
            }
            if rate > 0 {
                let limit = (pair.destination, Rate::from_bps(rate));
                limits[pair.host as usize].push(limit);
            }
        }
        let soon = now + self.config.slot * (LEASE - 1);
        for (host, rates) in (0..).zip(limits) {
            let member = &mut self.members[host as usize];
            let is_same = rates == member.limits.rates;
            if is_same && (rates.is_empty() || soon < member.limits.end) {
                continue;
            }
            let end = now + self.config.slot * LEASE;
            member.limits.replace(now, rates, end);
            member.grant += 1;
            self.counters.grants += 1;
            self.post(host);
        }
    }

    /// Rate of each link that the limits in force leave.
    fn spare(&self, now: Time) -> Vec<u64> {
        let fabric = self.schedule.fabric();
        let mut spare: Vec<u64> = fabric.links.iter().map(|link| link.bps()).collect();
        let mut path = Vec::new();
        for (host, member) in (0..).zip(&self.members) {
            for (destination, rate) in member.limits.bounds(now) {
                path.clear();
                fabric.routes.path(host, destination, &mut path);
                for &link in &path {
                    if let Some(spare) = spare.get_mut(link as usize) {
                        *spare = spare.saturating_sub(rate.bps());
                    }
                }
            }
        }
        spare
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
        for rates in [equal, max_min] {
            assert_eq!(rates(&mbps(&[1000; 6]), &pairs), mbps(&[200; 5]));
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
        let equal = equal(&capacities, &pairs);
        assert_eq!(equal[1..], mbps(&[200, 200, 200, 50]));
        assert_eq!(equal[0].bps(), 333_333_333);
        // Pair 4 keeps 50; link 1 gives 200 each; pair 0 has 1000 - 50 - 200.
        let fair = max_min(&capacities, &pairs);
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
            for (rates, is_fair) in [
                (equal(&capacities, &pairs), false),
                (max_min(&capacities, &pairs), true),
            ] {
                let mut loads = vec![0; capacities.len()];
                for ((path, most), rate) in pairs.iter().zip(&rates) {
                    prop_assert!(rate <= most);
                    path.iter().for_each(|&link| loads[link as usize] += rate.bps());
                }
                for (load, capacity) in loads.iter().zip(&capacities) {
                    prop_assert!(*load <= capacity.bps());
                }
                if !is_fair {
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
