use std::collections::BTreeMap;

use super::*;
use crate::control::Agent as _;

const SECRET: [u8; 16] = [1; 16];
const CONTROLLER: u32 = 100;

/// Host 0 receives from hosts 1 to 5 at 1 Gbps: link `h` up from a host, link `6 + h` down to it.
fn star(source: u32, destination: u32, path: &mut Vec<u32>) {
    path.extend([source, 6 + destination]);
}

struct Cluster {
    controller: Controller<fn(u32, u32, &mut Vec<u32>)>,
    sequence: u64,
}

impl Cluster {
    fn new(change: impl FnOnce(&mut ControllerConfig)) -> Self {
        let mut config = ControllerConfig {
            address: CONTROLLER,
            ..ControllerConfig::default()
        };
        change(&mut config);
        let rate = Rate::from_gbps(1);
        let routes = star as fn(u32, u32, &mut Vec<u32>);
        let fabric = CoordinatedFabric::new(vec![rate; 6], vec![rate; 12], routes).unwrap();
        let key = ClusterKey::new(SECRET);
        Self {
            controller: Controller::new(config, fabric, &key, Time::ZERO).unwrap(),
            sequence: 0,
        }
    }

    fn report(&mut self, now: Time, host: u32, grant: u64, backlog: &[u32]) {
        self.sequence += 1;
        let header = Header {
            from: host,
            to: CONTROLLER,
            incarnation: 1,
            sequence: self.sequence,
        };
        let report = Report {
            epoch: self.controller.epoch(),
            clock: now,
            grant,
            backlog: backlog.to_vec(),
            ..Report::default()
        };
        let mut bytes = Vec::new();
        let key = ClusterKey::new(SECRET).host(host);
        message::seal(&key, &header, &Body::Report(report), &mut bytes);
        self.controller.handle(now, host, &bytes);
    }

    /// Permits sent at `now`: host, destination, until.
    fn permits(&mut self, now: Time) -> Vec<(u32, u32, Time, PermitKind)> {
        self.controller.handle_timeout(now);
        let (mut permits, mut bytes) = (Vec::new(), Vec::new());
        while let Some(host) = self.controller.transmit(now, &mut bytes) {
            let key = ClusterKey::new(SECRET).host(host);
            let body = message::open(&key, &std::mem::take(&mut bytes));
            if let Ok(Body::Directive(directive)) = body {
                let permit = |p: &Permit| (host, p.destination, p.until, p.kind);
                permits.extend(directive.permits.iter().map(permit));
            }
        }
        permits
    }
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

fn pairs(permits: &[(u32, u32, Time, PermitKind)]) -> Vec<(u32, u32)> {
    permits.iter().map(|&(host, to, ..)| (host, to)).collect()
}

#[test]
fn it_waits_for_slots_of_a_predecessor_and_then_gives_them_in_turn() {
    let mut cluster = Cluster::new(|config| config.protocol.drift = 0);
    for host in 1..4 {
        cluster.report(ms(1), host, 0, &[0]);
    }
    assert_eq!(cluster.permits(ms(1)), []);
    // Slots of 2 ms may be in force until then.
    let start = ms(2) + Time::from_us(1);
    assert_eq!(
        cluster.permits(start),
        [(1, 0, start + ms(2), PermitKind::Slot)]
    );
    assert_eq!(pairs(&cluster.permits(start + ms(1))), []);
    assert_eq!(pairs(&cluster.permits(start + ms(2))), [(2, 0)]);
    // Host 2 has nothing more to send after half of its slot.
    cluster.report(start + ms(3), 2, 1, &[]);
    assert_eq!(pairs(&cluster.permits(start + ms(3))), [(3, 0)]);
    assert_eq!(pairs(&cluster.permits(start + ms(5))), [(1, 0)]);
    let counters = cluster.controller.counters();
    assert_eq!(
        (counters.grants, counters.returned, counters.expired),
        (4, 1, 2)
    );
}

#[test]
fn hosts_hear_at_once_that_permits_are_given() {
    let mut cluster = Cluster::new(|config| config.protocol.drift = 0);
    for host in [2, 4] {
        cluster.report(ms(1), host, 0, &[]);
    }
    cluster.permits(ms(1));
    let start = ms(2) + Time::from_us(1);
    cluster.controller.handle_timeout(start);
    let (mut told, mut bytes) = (Vec::new(), Vec::new());
    while let Some(host) = cluster.controller.transmit(start, &mut bytes) {
        let key = ClusterKey::new(SECRET).host(host);
        if let Ok(Body::Directive(directive)) = message::open(&key, &bytes) {
            told.push((host, directive.is_granting));
        }
        bytes.clear();
    }
    assert_eq!(told, [(2, true), (4, true)]);
}

#[test]
fn weights_make_slots_longer() {
    let mut cluster = Cluster::new(|config| {
        config.protocol.drift = 0;
        config.weights.insert(1, 3);
    });
    cluster.report(ms(10), 1, 0, &[0]);
    cluster.report(ms(10), 2, 0, &[0]);
    assert_eq!(cluster.permits(ms(10)), [(1, 0, ms(16), PermitKind::Slot)]);
    assert_eq!(cluster.permits(ms(16)), [(2, 0, ms(18), PermitKind::Slot)]);
}

#[test]
fn the_slot_of_a_silent_host_is_free_when_it_has_ended() {
    let mut cluster = Cluster::new(|config| config.slot = ms(400));
    cluster.permits(ms(401));
    cluster.report(ms(410), 1, 0, &[0]);
    assert_eq!(pairs(&cluster.permits(ms(410))), [(1, 0)]);
    cluster.report(ms(800), 2, 0, &[0]);
    assert_eq!(pairs(&cluster.permits(ms(809))), []);
    assert_eq!(pairs(&cluster.permits(ms(810))), [(2, 0)]);
    // Host 1 was last heard of at 410 ms.
    cluster.permits(ms(935));
    assert_eq!(cluster.controller.joined(), 1);
    assert_eq!(cluster.controller.schedule().backlogged(), 1);
}

#[test]
fn what_cannot_be_scheduled_is_exempt() {
    let mut cluster = Cluster::new(|config| config.protocol.drift = 0);
    cluster.report(ms(10), 1, 0, &[77, 1]);
    let until = ms(10) + Protocol::default().silence;
    let exempt = |to| (1, to, until, PermitKind::Exempt);
    assert_eq!(cluster.permits(ms(10)), [exempt(77), exempt(1)]);
}

#[test]
fn rates_are_shares_that_end_together() {
    let mut cluster = Cluster::new(|config| {
        config.protocol.drift = 0;
        config.directives = Directives::RateLimit;
    });
    for host in 1..6 {
        cluster.report(ms(1), host, 0, &[0]);
    }
    let start = ms(4) + Time::from_us(1);
    let permits = cluster.permits(start);
    assert_eq!(pairs(&permits), [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]);
    let limited = |permit: &(u32, u32, Time, PermitKind)| (permit.2, permit.3);
    let same = (start + ms(4), PermitKind::Limit);
    assert!(permits.iter().all(|permit| limited(permit) == same));
    assert_eq!(
        cluster.controller.members[1].limits.rates,
        [(0, Rate::from_mbps(200))]
    );
    // They are renewed before they end.
    let renewed = cluster.permits(start + ms(2));
    let same = (start + ms(6), PermitKind::Limit);
    assert!(renewed.iter().all(|permit| limited(permit) == same));
    assert_eq!(pairs(&renewed), pairs(&permits));
}

#[test]
fn a_new_sender_gets_its_rate_as_soon_as_the_others_have_given_way() {
    let mut cluster = Cluster::new(|config| {
        config.protocol.drift = 0;
        config.directives = Directives::RateLimit;
    });
    cluster.report(ms(1), 1, 0, &[0]);
    let start = ms(5);
    assert_eq!(pairs(&cluster.permits(start)), [(1, 0)]);
    let rates = |cluster: &Cluster, host: usize| {
        let limits = &cluster.controller.members[host].limits;
        limits.rates.iter().map(|limit| limit.1).collect::<Vec<_>>()
    };
    assert_eq!(rates(&cluster, 1), [Rate::from_gbps(1)]);
    // Not at the next round, but at once: host 1 is told first, as it has all of the link.
    let soon = start + Time::from_us(100);
    cluster.report(soon, 2, 0, &[0]);
    assert_eq!(pairs(&cluster.permits(soon)), [(1, 0)]);
    assert_eq!(rates(&cluster, 1), [Rate::from_mbps(500)]);
    assert_eq!(rates(&cluster, 2), []);
    let later = soon + Time::from_us(100);
    let grant = cluster.controller.members[1].grant;
    cluster.report(later, 1, grant, &[0]);
    assert_eq!(pairs(&cluster.permits(later)), [(2, 0)]);
    assert_eq!(rates(&cluster, 2), [Rate::from_mbps(500)]);
}

#[test]
fn hosts_join_and_leave_while_it_runs() {
    let mut cluster = Cluster::new(|config| config.protocol.drift = 0);
    cluster.report(ms(3), 1, 0, &[0]);
    assert_eq!(pairs(&cluster.permits(ms(3))), [(1, 0)]);
    let fabric = |hosts| {
        let rate = Rate::from_gbps(1);
        let path = |source: u32, destination: u32, path: &mut Vec<u32>| {
            path.extend([2 * source, 2 * destination + 1]);
        };
        let routes = path as fn(u32, u32, &mut Vec<u32>);
        CoordinatedFabric::new(vec![rate; hosts], vec![rate; 2 * hosts], routes).unwrap()
    };
    let keys = |hosts| {
        (0..hosts)
            .map(|host| ClusterKey::new(SECRET).host(host))
            .collect()
    };
    let controller = &mut cluster.controller;
    controller.replace_fabric(ms(3), fabric(7), BTreeMap::new(), keys(7));
    cluster.report(ms(4), 6, 0, &[0]);
    assert_eq!(
        cluster.permits(ms(4)),
        [],
        "the slot of host 1 may be in use"
    );
    // Host 1 was backlogged before, and neither has had a slot since.
    let after = |time: u64| ms(time) + Time::from_us(time);
    assert_eq!(pairs(&cluster.permits(after(5))), [(1, 0)]);
    assert_eq!(pairs(&cluster.permits(after(7))), [(6, 0)]);
    let controller = &mut cluster.controller;
    controller.replace_fabric(after(7), fabric(6), BTreeMap::new(), keys(6));
    let refused = cluster
        .controller
        .counters()
        .messages
        .refused(Refused::Sender);
    cluster.report(ms(8), 6, 0, &[0]);
    let messages = &cluster.controller.counters().messages;
    assert_eq!(messages.refused(Refused::Sender), refused + 1);
    assert_eq!(pairs(&cluster.permits(after(9))), [(1, 0)]);
}

#[test]
fn a_host_that_follows_a_newer_term_makes_it_begin_another() {
    let mut cluster = Cluster::new(|_| {});
    let before = cluster.controller.epoch();
    assert_eq!(
        (before.counter, cluster.controller.role()),
        (1, Role::Leader)
    );
    cluster.controller.note_epoch(
        ms(5),
        Epoch {
            counter: 9,
            ..before
        },
    );
    assert_eq!(cluster.controller.epoch().counter, 10);
    assert_eq!(cluster.controller.role(), Role::Leader);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let refusal = |change: fn(&mut ControllerConfig)| {
        let mut config = ControllerConfig::default();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert_eq!(
        refusal(|c| c.slot = Time::ZERO),
        "slot must be longer than 0"
    );
    assert_eq!(
        refusal(|c| c.peers = vec![0]),
        "controller 0 is given twice"
    );
    let weight = refusal(|c| {
        c.weights.insert(7, 0);
    });
    assert_eq!(weight, "host 7 has weight 0; use 1 to 16");
    let weight = refusal(|c| {
        c.weights.insert(7, 17);
    });
    assert_eq!(weight, "host 7 has weight 17; use 1 to 16");
}
