//! Coordination on demand (§6): which pairs need permission.
//!
//! Hosts report the rates of their large pairs. A link *nears congestion* when these add up to
//! [`OnDemand::enter`] of its capacity and the hosts behind them could together send more than it
//! carries, which is eq. 1 not met: a link that one host has for itself stays out of it, however
//! busy. It is calm again when the sum has been below [`OnDemand::leave`] for [`OnDemand::calm`].
//! A large pair with a link near congestion on its path is *held*, which every directive to its host
//! says, until all its links are calm. All other pairs send without permission.

use super::{Controller, Held, Routes};
use crate::units::{Rate, Time};
use crate::xco::config::OnDemand;
use crate::xco::fabric::{CoordinatedFabric, Path};

#[derive(Debug)]
pub(super) struct Demand {
    config: OnDemand,
    links: Vec<LinkDemand>,
    /// Pairs of each host that are large or held, by destination.
    hosts: Vec<Vec<Known>>,
    /// Links near congestion.
    near: Vec<u32>,
    /// Hosts that have to hear of a change.
    changed: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct LinkDemand {
    /// The sum of reported rates.
    load: u64,
    /// Hosts behind them, each with the number of its pairs.
    senders: Vec<(u32, u32)>,
    is_near: bool,
    /// Hosts with held pairs across it, while it nears congestion.
    holders: Vec<u32>,
    /// Since when the load has been below the threshold to leave.
    below: Option<Time>,
}

#[derive(Clone, Debug)]
struct Known {
    destination: u32,
    rate: Rate,
    path: Path,
    is_held: bool,
}

impl Demand {
    pub(super) fn new<R: Routes>(config: OnDemand, fabric: &CoordinatedFabric<R>) -> Self {
        Self {
            config,
            links: vec![LinkDemand::default(); fabric.links.len()],
            hosts: vec![Vec::new(); fabric.hosts.len()],
            near: Vec::new(),
            changed: Vec::new(),
        }
    }

    /// Forgets hosts from this number on.
    pub(super) fn truncate(&mut self, hosts: u32) {
        self.hosts.truncate(hosts as usize);
    }

    /// Takes the rates of a host; those that it does not mention are small.
    fn report<R: Routes>(
        &mut self,
        now: Time,
        host: u32,
        rates: &[(u32, Rate)],
        fabric: &CoordinatedFabric<R>,
    ) {
        let mut known = std::mem::take(&mut self.hosts[host as usize]);
        let mut touched = Vec::new();
        for pair in &mut known {
            let rate = rates.iter().find(|(to, _)| *to == pair.destination);
            let rate = rate.map_or(Rate::from_bps(0), |&(_, rate)| rate);
            self.set_rate(host, pair, rate, fabric, &mut touched);
        }
        for &(destination, rate) in rates {
            let place = known.binary_search_by_key(&destination, |pair| pair.destination);
            if let Err(place) = place
                && let Some((path, _)) = fabric.route(host, destination)
            {
                let mut pair = Known {
                    destination,
                    rate: Rate::from_bps(0),
                    path,
                    is_held: false,
                };
                self.set_rate(host, &mut pair, rate, fabric, &mut touched);
                known.insert(place, pair);
            }
        }
        self.hosts[host as usize] = known;
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|&link| self.judge(now, link, fabric));
        self.hold_pairs(host);
        for link in touched {
            let senders = self.links[link as usize].senders.clone();
            for (host, _) in senders {
                self.hold_pairs(host);
            }
        }
    }

    fn set_rate<R>(
        &mut self,
        host: u32,
        pair: &mut Known,
        rate: Rate,
        fabric: &CoordinatedFabric<R>,
        touched: &mut Vec<u32>,
    ) {
        // No host sends faster than its link, whatever it says.
        let rate = rate.min(fabric.hosts[host as usize]);
        let before = std::mem::replace(&mut pair.rate, rate);
        if before == rate {
            return;
        }
        for &link in pair.path.iter() {
            let demand = &mut self.links[link as usize];
            demand.load = demand.load - before.bps() + rate.bps();
            if before.bps() == 0 {
                demand.add_sender(host);
            } else if rate.bps() == 0 {
                demand.remove_sender(host);
            }
            touched.push(link);
        }
    }

    /// Decides whether a link nears congestion; whether it has begun to.
    fn judge<R>(&mut self, now: Time, link: u32, fabric: &CoordinatedFabric<R>) -> bool {
        let capacity = fabric.links[link as usize];
        let demand = &mut self.links[link as usize];
        let share = |percent: u32| capacity.scaled(u64::from(percent), 100).bps();
        let sources = demand.senders.iter().map(|&(host, _)| host);
        let most: u64 = sources.map(|host| fabric.hosts[host as usize].bps()).sum();
        if !demand.is_near {
            demand.is_near = demand.load >= share(self.config.enter) && most > capacity.bps();
            if demand.is_near {
                demand.below = None;
                self.near.push(link);
            }
            return demand.is_near;
        }
        if demand.load >= share(self.config.leave) {
            demand.below = None;
        } else {
            demand.below.get_or_insert(now);
        }
        false
    }

    /// Ends what has been calm for long enough.
    fn cool(&mut self, now: Time) {
        let (links, calm) = (&mut self.links, self.config.calm);
        let mut holders = Vec::new();
        self.near.retain(|&link| {
            let demand = &mut links[link as usize];
            demand.is_near = demand.below.is_none_or(|below| now < below + calm);
            if !demand.is_near {
                holders.append(&mut demand.holders);
            }
            demand.is_near
        });
        for host in holders {
            self.hold_pairs(host);
        }
    }

    fn timeout(&self) -> Option<Time> {
        let below = self
            .near
            .iter()
            .filter_map(|&link| self.links[link as usize].below);
        below.min().map(|below| below + self.config.calm)
    }

    /// Brings what a host has to hold up to date, and forgets pairs that are neither large nor held.
    fn hold_pairs(&mut self, host: u32) {
        let links = &mut self.links;
        let mut is_new = false;
        self.hosts[host as usize].retain_mut(|pair| {
            let was_held = std::mem::take(&mut pair.is_held);
            for &link in pair.path.iter() {
                let demand = &mut links[link as usize];
                if demand.is_near {
                    pair.is_held = true;
                    if let Err(place) = demand.holders.binary_search(&host) {
                        demand.holders.insert(place, host);
                    }
                }
            }
            is_new |= was_held != pair.is_held;
            pair.is_held || pair.rate.bps() > 0
        });
        if is_new {
            self.changed.push(host);
        }
    }

    /// Held destinations of a directive to the host with this number of permits.
    pub(super) fn held(&self, host: u32, permits: usize) -> Held {
        let held = self.hosts[host as usize].iter().filter(|pair| pair.is_held);
        Held::beside(permits, held.map(|pair| pair.destination).collect())
    }
}

impl LinkDemand {
    fn add_sender(&mut self, host: u32) {
        match self.senders.binary_search_by_key(&host, |&(host, _)| host) {
            Ok(place) => self.senders[place].1 += 1,
            Err(place) => self.senders.insert(place, (host, 1)),
        }
    }

    fn remove_sender(&mut self, host: u32) {
        if let Ok(place) = self.senders.binary_search_by_key(&host, |&(host, _)| host) {
            self.senders[place].1 -= 1;
            if self.senders[place].1 == 0 {
                self.senders.remove(place);
            }
        }
    }
}

impl<R: Routes> Controller<R> {
    /// Takes the rates of a host's report, and tells hosts what they have to hold.
    pub(super) fn note_rates(&mut self, now: Time, host: u32, rates: &[(u32, Rate)]) {
        if let Some(demand) = &mut self.demand {
            demand.report(now, host, rates, self.schedule.fabric());
        }
        self.post_held();
    }

    /// Links that are calm again.
    pub(super) fn cool(&mut self, now: Time) {
        if let Some(demand) = &mut self.demand {
            demand.cool(now);
        }
        self.post_held();
    }

    /// Earliest time at which a link may be calm.
    pub(super) fn next_calm(&self) -> Time {
        let calm = self.demand.as_ref().and_then(Demand::timeout);
        calm.unwrap_or(Time::MAX)
    }

    /// Begins anew, as a leader whose term has ended; with what is known if `keep`, as after new
    /// routes.
    pub(super) fn restart_demand(&mut self, now: Time, keep: bool) {
        let Some(config) = self.config.on_demand else {
            return;
        };
        let fabric = self.schedule.fabric();
        let mut demand = Demand::new(config, fabric);
        if let Some(old) = self.demand.take().filter(|_| keep) {
            for (host, known) in (0..).zip(&old.hosts) {
                let rates = known.iter().map(|pair| (pair.destination, pair.rate));
                let rates: Vec<_> = rates.filter(|(_, rate)| rate.bps() > 0).collect();
                demand.report(now, host, &rates, fabric);
            }
            // What was held and is not any more is for the host to hear too.
            demand.changed = (0..old.hosts.len() as u32).collect();
        }
        self.demand = Some(demand);
        self.post_held();
    }

    fn post_held(&mut self) {
        let Some(demand) = &mut self.demand else {
            return;
        };
        for host in std::mem::take(&mut demand.changed) {
            if self.members[host as usize].heard.is_some() {
                self.post(host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS: Rate = Rate::from_gbps(1);

    /// Six hosts at one switch: link `h` up from a host, link `6 + h` down to it.
    fn star(source: u32, destination: u32, path: &mut Vec<u32>) {
        path.extend([source, 6 + destination]);
    }

    type Star = CoordinatedFabric<fn(u32, u32, &mut Vec<u32>)>;

    fn demand() -> (Demand, Star) {
        let fabric = CoordinatedFabric::new(vec![GBPS; 6], vec![GBPS; 12], star as _).unwrap();
        (Demand::new(OnDemand::default(), &fabric), fabric)
    }

    fn ms(ms: u64) -> Time {
        Time::from_ms(ms)
    }

    fn rates(list: &[(u32, u64)]) -> Vec<(u32, Rate)> {
        let rate = |&(to, mbps)| (to, Rate::from_mbps(mbps));
        list.iter().map(rate).collect()
    }

    fn held(demand: &Demand) -> Vec<(u32, u32)> {
        let of = |host: u32| {
            let Held::Only(destinations) = demand.held(host, 0) else {
                panic!("there is room");
            };
            destinations.into_iter().map(move |to| (host, to))
        };
        (0..6).flat_map(of).collect()
    }

    #[test]
    fn a_link_nears_congestion_at_80_percent_and_is_calm_20_ms_below_50() {
        let (mut demand, fabric) = demand();
        demand.report(ms(1), 1, &rates(&[(0, 400), (5, 100)]), &fabric);
        demand.report(ms(1), 2, &rates(&[(0, 399)]), &fabric);
        assert_eq!(held(&demand), []);
        // Host 3 makes it 850 of 1000 Mbps; what goes elsewhere stays free.
        demand.report(ms(2), 3, &rates(&[(0, 51)]), &fabric);
        assert_eq!(held(&demand), [(1, 0), (2, 0), (3, 0)]);
        assert_eq!(std::mem::take(&mut demand.changed), [3, 1, 2]);
        assert_eq!(demand.timeout(), None);
        // 500 Mbps are not below half.
        demand.report(ms(3), 1, &rates(&[(0, 50)]), &fabric);
        assert_eq!(demand.timeout(), None);
        demand.report(ms(4), 3, &[], &fabric);
        assert_eq!(demand.timeout(), Some(ms(24)));
        // A new large pair is held at once.
        demand.report(ms(5), 4, &rates(&[(0, 60)]), &fabric);
        assert_eq!(held(&demand), [(1, 0), (2, 0), (3, 0), (4, 0)]);
        demand.cool(ms(23));
        assert_eq!(demand.near.len(), 1);
        demand.report(ms(23), 4, &[], &fabric);
        assert_eq!(demand.timeout(), Some(ms(43)), "449 Mbps from 23 ms on");
        demand.cool(ms(43));
        assert_eq!(held(&demand), []);
        assert_eq!(demand.hosts[3].len() + demand.hosts[4].len(), 0);
    }

    #[test]
    fn one_host_cannot_congest_a_link_as_fast_as_its_own() {
        let (mut demand, fabric) = demand();
        demand.report(ms(1), 1, &rates(&[(0, 1000)]), &fabric);
        assert_eq!(held(&demand), []);
        // Its own link carries two large pairs, and still only it.
        demand.report(ms(2), 1, &rates(&[(0, 500), (2, 500)]), &fabric);
        assert_eq!(held(&demand), []);
        demand.report(ms(3), 3, &rates(&[(2, 300)]), &fabric);
        assert_eq!(held(&demand), [(1, 2), (3, 2)]);
    }

    #[test]
    fn rates_that_cannot_be_are_cut() {
        let (mut demand, fabric) = demand();
        let most = Rate::from_bps(u64::MAX);
        demand.report(
            ms(1),
            1,
            &[(0, most), (0, most), (9, most), (1, most)],
            &fabric,
        );
        demand.report(ms(1), 2, &[(0, most)], &fabric);
        assert_eq!(demand.links[6].load, 2 * GBPS.bps());
        demand.report(ms(2), 1, &[], &fabric);
        demand.report(ms(2), 2, &[], &fabric);
        assert!(demand.links.iter().all(|link| link.load == 0));
        assert!(demand.links.iter().all(|link| link.senders.is_empty()));
    }
}
