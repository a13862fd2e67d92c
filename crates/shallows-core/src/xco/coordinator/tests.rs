use super::*;
use crate::control::Agent as _;
use crate::host::gate::{Gate, Refusal, Release, Verdict};
use crate::packet::Descriptor;
use crate::port::Framing;
use crate::units::Bytes;
use crate::xco::config::Protocol;
use crate::xco::message::{ClusterKey, Held, Permit};

const CONTROLLER: u32 = 100;

/// A host at 1 Gbps, where a packet of 1250 B takes 10 us.
struct Host {
    coordinator: Coordinator<Descriptor>,
    sequence: u64,
}

impl Host {
    fn new(gate: GateConfig) -> Self {
        Self::with(gate, None)
    }

    fn with(gate: GateConfig, on_demand: Option<OnDemand>) -> Self {
        let config = CoordinatorConfig {
            host: 3,
            controllers: vec![CONTROLLER],
            incarnation: 1,
            rate: Rate::from_gbps(1),
            framing: Framing::NONE,
            gate,
            budget: gate.budget(Rate::from_gbps(1), 6),
            protocol: Protocol::default(),
            on_demand,
        };
        let key = ClusterKey::new([1; 16]).host(3);
        Self {
            coordinator: Coordinator::new(config, key, Time::ZERO).unwrap(),
            sequence: 0,
        }
    }

    /// A host that a controller has welcomed at time zero.
    fn coordinated(gate: GateConfig) -> Self {
        let mut host = Self::new(gate);
        assert_eq!(host.coordinator.standing(), Standing::Uncoordinated);
        // The first directive makes it the leader, which then has to acknowledge a report.
        host.direct(Time::ZERO, 0, &[]);
        host.reports(Time::ZERO);
        host.direct(Time::ZERO, 0, &[]);
        assert_eq!(host.coordinator.standing(), Standing::Coordinated);
        host
    }

    fn direct(&mut self, now: Time, grant: u64, permits: &[(u32, PermitKind, Time, Rate)]) {
        self.hold(now, grant, permits, Held::All);
    }

    fn hold(
        &mut self,
        now: Time,
        grant: u64,
        permits: &[(u32, PermitKind, Time, Rate)],
        held: Held,
    ) {
        self.sequence += 1;
        let header = Header {
            from: CONTROLLER,
            to: 3,
            incarnation: 1,
            sequence: self.sequence,
        };
        let permit = |&(destination, kind, until, rate): &_| Permit {
            destination,
            kind,
            until,
            rate,
        };
        let directive = Directive {
            epoch: Epoch {
                counter: 1,
                leader: CONTROLLER,
            },
            incarnation: 1,
            is_granting: true,
            stamp: Time::from_ns(self.sequence),
            acknowledged: self.coordinator.reporting.sequence,
            grant,
            held,
            permits: permits.iter().map(permit).collect(),
            ..Directive::default()
        };
        let mut bytes = Vec::new();
        let key = ClusterKey::new([1; 16]).host(3);
        message::seal(&key, &header, &Body::Directive(directive), &mut bytes);
        self.coordinator.handle(now, CONTROLLER, &bytes);
    }

    /// A slot to host 4 at full rate.
    fn slot(&mut self, now: Time, grant: u64, until: Time) {
        self.direct(
            now,
            grant,
            &[(4, PermitKind::Slot, until, Rate::from_gbps(1))],
        );
    }

    fn offer(&mut self, now: Time, to: u32, size: u32) -> Verdict {
        let packet = Descriptor {
            size,
            flow: u64::from(to),
            ..Descriptor::default()
        };
        self.coordinator.offer(now, packet, Some(to))
    }

    /// Departures from `now` on, with their times.
    fn departures(&mut self, mut now: Time) -> Vec<(Time, u32)> {
        let mut left = Vec::new();
        loop {
            match self.coordinator.release(now) {
                Release::Packet { to, .. } => left.extend(to.map(|to| (now, to))),
                Release::At(time) => now = time,
                Release::Idle => return left,
            }
        }
    }

    fn reports(&mut self, now: Time) -> Vec<Report> {
        self.coordinator.handle_timeout(now);
        let (mut reports, mut bytes) = (Vec::new(), Vec::new());
        while self.coordinator.transmit(now, &mut bytes).is_some() {
            let key = ClusterKey::new([1; 16]).host(3);
            if let Ok(Body::Report(report)) = message::open(&key, &std::mem::take(&mut bytes)) {
                reports.push(report);
            }
        }
        reports
    }
}

fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// One virtual machine floods the queue before another one sends to the same host.
#[test]
fn virtual_machines_share_the_slot_of_their_host() {
    let gate = GateConfig {
        queue: Bytes::new(100 * 1250),
        ..GateConfig::default()
    };
    let mut host = Host::coordinated(gate);
    let mut offer = |machine, verdict| {
        let packet = Descriptor {
            size: 1250,
            flow: u64::from(machine),
            machines: (machine, 9),
            ..Descriptor::default()
        };
        assert_eq!(host.coordinator.offer(us(1), packet, Some(4)), verdict);
    };
    for _ in 0..100 {
        offer(1, Verdict::Held);
    }
    offer(1, Verdict::Drop(Refusal::Full));
    for _ in 0..10 {
        offer(2, Verdict::Held);
    }
    // Room for 20 packets.
    host.slot(us(1), 1, us(201));
    let (mut now, mut sent) = (us(1), [0, 0]);
    loop {
        match host.coordinator.release(now) {
            Release::Packet { packet, .. } => sent[usize::from(packet.machines.0) - 1] += 1,
            Release::At(time) => now = time,
            Release::Idle => break,
        }
    }
    assert_eq!(sent, [10, 10]);
}

#[test]
fn packets_leave_one_after_the_other_and_none_after_the_slot() {
    let mut host = Host::coordinated(GateConfig::default());
    for _ in 0..3 {
        assert_eq!(host.offer(us(1), 4, 1250), Verdict::Held);
    }
    let backlogs =
        |reports: Vec<Report>| reports.into_iter().map(|r| r.backlog).collect::<Vec<_>>();
    assert_eq!(backlogs(host.reports(us(1))), [[4]]);
    assert_eq!(host.departures(us(1)), []);
    // The third would be on the wire until 130 us.
    host.slot(us(100), 1, us(129));
    assert_eq!(host.departures(us(100)), [(us(100), 4), (us(110), 4)]);
    host.slot(us(200), 2, us(210));
    assert_eq!(host.departures(us(200)), [(us(200), 4)]);
}

#[test]
fn a_late_directive_gives_no_slot() {
    let mut host = Host::coordinated(GateConfig::default());
    host.offer(us(1), 4, 1250);
    host.slot(us(100), 1, us(100));
    assert_eq!(host.departures(us(100)), []);
    assert_eq!(host.coordinator.counters().late_slots, 1);
}

#[test]
fn an_empty_queue_gives_its_slot_back_after_the_hysteresis() {
    let mut host = Host::coordinated(GateConfig::default());
    host.offer(us(1), 4, 1250);
    host.reports(us(1));
    host.slot(us(100), 1, us(2000));
    assert_eq!(host.departures(us(100)), [(us(100), 4)]);
    assert_eq!(host.coordinator.timeout(), Some(us(150)));
    // A packet in time keeps it.
    host.offer(us(149), 4, 1250);
    assert_eq!(host.departures(us(149)), [(us(149), 4)]);
    assert_eq!(host.reports(us(198)), []);
    let reports = host.reports(us(199));
    assert_eq!(reports.len(), 1);
    assert_eq!(
        (
            &reports[0].backlog[..],
            reports[0].is_sending,
            reports[0].grant
        ),
        (&[][..], false, 1)
    );
    assert_eq!(host.coordinator.counters().returned, 1);
}

#[test]
fn small_packets_pass_unless_their_flow_waits() {
    let mut host = Host::coordinated(GateConfig::default());
    assert_eq!(host.offer(us(1), 4, 84), Verdict::Pass);
    assert_eq!(host.offer(us(2), 4, 1250), Verdict::Held);
    assert_eq!(host.offer(us(3), 4, 84), Verdict::Held);
    assert_eq!(host.offer(us(4), 5, 84), Verdict::Pass);
}

#[test]
fn small_packets_over_the_budget_wait_and_pings_pass() {
    let mut host = Host::coordinated(GateConfig::default());
    let mut offer = |now, flow| {
        let packet = Descriptor {
            size: 84,
            flow,
            ..Descriptor::default()
        };
        host.coordinator.offer(now, packet, Some(4))
    };
    // 64 KiB for six hosts are 10,922 B for each, or 130 packets.
    let verdicts: Vec<_> = (0..1000).map(|_| offer(us(1), 1)).collect();
    let passed = verdicts.iter().filter(|&&of| of == Verdict::Pass).count();
    assert_eq!(passed, 130);
    assert!(verdicts[130..].iter().all(|&of| of == Verdict::Held));
    // A sixth of 1% of 1 Gbps is a packet in 0.4 ms; the flood stays behind what it has waiting.
    for ms in 1..10 {
        assert_eq!(offer(us(1000 * ms), 1), Verdict::Held);
        assert_eq!(offer(us(1000 * ms), 2), Verdict::Pass, "a ping");
    }
    assert_eq!(host.coordinator.counters().over_budget, 879);
}

#[test]
fn the_level_above_passes_what_waits() {
    let mut host = Host::coordinated(GateConfig {
        pass_dscp: Some(7),
        ..GateConfig::default()
    });
    assert_eq!(host.offer(us(1), 4, 1250), Verdict::Held);
    for dscp in [7, 0] {
        let packet = Descriptor {
            size: 1250,
            flow: 9,
            dscp,
            ..Descriptor::default()
        };
        let verdict = if dscp == 7 {
            Verdict::Pass
        } else {
            Verdict::Held
        };
        assert_eq!(host.coordinator.offer(us(2), packet, Some(4)), verdict);
    }
}

#[test]
fn acks_of_what_arrives_pass() {
    let mut host = Host::coordinated(GateConfig {
        small_share: 0,
        ..GateConfig::default()
    });
    for _ in 0..200 {
        host.offer(us(1), 4, 84);
    }
    let ack = |host: &mut Host, flow| {
        let packet = Descriptor {
            size: 40,
            flow,
            ..Descriptor::default()
        };
        host.coordinator.offer(us(2), packet, Some(4))
    };
    while ack(&mut host, 8) == Verdict::Pass {}
    for flow in 10..1000 {
        host.coordinator.received(us(2), 1500, 4);
        assert_eq!(ack(&mut host, flow), Verdict::Pass);
    }
}

#[test]
fn the_first_bytes_of_a_flow_pass_in_each_window() {
    let gate = GateConfig {
        small_flow: Bytes::new(2500),
        small_window: us(1000),
        ..GateConfig::default()
    };
    let mut host = Host::coordinated(gate);
    let verdicts = [1, 2, 3, 1001].map(|time| host.offer(us(time), 4, 1250));
    // The third is over the limit and waits, and then the fourth must not overtake it.
    assert_eq!(
        verdicts,
        [Verdict::Pass, Verdict::Pass, Verdict::Held, Verdict::Held]
    );
}

#[test]
fn queues_are_bounded() {
    let gate = GateConfig {
        queue: Bytes::new(2500),
        ..GateConfig::default()
    };
    let mut host = Host::coordinated(gate);
    let verdicts = [4, 4, 4, 5].map(|to| host.offer(us(1), to, 1250));
    let full = Verdict::Drop(Refusal::Full);
    assert_eq!(
        verdicts,
        [Verdict::Held, Verdict::Held, full, Verdict::Held]
    );
}

#[test]
fn a_new_queue_takes_its_time_as_in_section_4_8() {
    let gate = GateConfig {
        setup: Time::from_ms(75),
        ..GateConfig::default()
    };
    let mut host = Host::coordinated(gate);
    host.offer(us(1), 4, 1250);
    host.slot(Time::from_ms(70), 1, Time::from_ms(80));
    assert_eq!(
        host.departures(Time::from_ms(70)),
        [(Time::from_ms(75) + us(1), 4)]
    );
}

#[test]
fn a_rate_limit_spaces_packets_from_round_to_round() {
    let mut host = Host::coordinated(GateConfig::default());
    for _ in 0..4 {
        host.offer(us(1), 4, 1250);
    }
    let limit = |until| (4, PermitKind::Limit, us(until), Rate::from_mbps(100));
    host.direct(us(10), 1, &[limit(150)]);
    assert_eq!(host.departures(us(10)), [(us(10), 4), (us(110), 4)]);
    // The next is due at 210 us, in the next round.
    host.direct(us(160), 2, &[limit(300)]);
    assert_eq!(host.departures(us(160)), [(us(210), 4)]);
}

#[test]
fn an_exempt_destination_is_not_held() {
    let mut host = Host::coordinated(GateConfig::default());
    assert_eq!(host.offer(us(1), 9, 1250), Verdict::Held);
    let exempt = (9, PermitKind::Exempt, us(1000), Rate::from_bps(0));
    host.direct(us(10), 0, &[exempt]);
    assert_eq!(host.departures(us(10)), [(us(10), 9)]);
    assert_eq!(host.offer(us(20), 9, 1250), Verdict::Pass);
    assert_eq!(host.offer(us(1000), 9, 1250), Verdict::Held);
}

#[test]
fn without_a_controller_traffic_goes_on() {
    let mut host = Host::coordinated(GateConfig::default());
    host.offer(us(1), 4, 1250);
    host.offer(us(1), 5, 1250);
    let silence = Protocol::default().silence;
    host.reports(silence - us(1));
    assert_eq!(host.departures(silence - us(1)), []);
    host.reports(silence);
    assert_eq!(host.coordinator.standing(), Standing::Uncoordinated);
    assert_eq!(
        host.departures(silence),
        [(silence, 4), (silence + us(10), 5)]
    );
    assert_eq!(host.offer(silence + us(30), 4, 1250), Verdict::Pass);
}

#[test]
fn a_clock_that_goes_back_ends_the_slot() {
    let mut host = Host::coordinated(GateConfig::default());
    host.offer(us(1), 4, 1250);
    host.slot(us(100), 1, us(2000));
    assert_eq!(host.coordinator.permits(us(100)).count(), 1);
    assert_eq!(host.coordinator.release(us(50)), Release::Idle);
    assert_eq!(host.reports(us(50))[0].timeline, 1);
}

#[test]
fn on_demand_only_named_destinations_wait_for_permission() {
    let mut host = Host::with(GateConfig::default(), Some(OnDemand::default()));
    host.direct(Time::ZERO, 0, &[]);
    host.reports(Time::ZERO);
    host.hold(Time::ZERO, 0, &[], Held::Only(vec![]));
    assert_eq!(host.coordinator.standing(), Standing::Coordinated);
    // Free destinations share the wire in turn, a packet of 10 us each.
    assert_eq!(host.offer(us(1), 4, 1250), Verdict::Pass);
    for to in [4, 4, 5] {
        assert_eq!(host.offer(us(1), to, 1250), Verdict::Held);
    }
    assert_eq!(host.reports(us(1)), [], "nothing is to be permitted");
    assert_eq!(
        host.departures(us(1)),
        [(us(11), 4), (us(21), 5), (us(31), 4)]
    );
    // 6250 bytes in a window make a destination large.
    host.offer(us(50), 4, 1250);
    let rates = |reports: &[Report]| reports.iter().map(|r| r.rates.clone()).collect::<Vec<_>>();
    let reports = host.reports(us(50));
    assert!(rates(&reports).is_empty(), "5000 bytes are not");
    host.offer(us(70), 4, 1250);
    let reports = host.reports(us(70));
    assert_eq!(rates(&reports), [[(4, Rate::from_mbps(50))]]);
    // Its link nears congestion: what is queued is backlog now, and waits for a slot.
    host.offer(us(70), 4, 1250);
    host.hold(us(75), 0, &[], Held::Only(vec![4]));
    assert_eq!(host.departures(us(80)), []);
    let reports = host.reports(us(80));
    assert_eq!(reports.last().map(|r| &r.backlog[..]), Some(&[4][..]));
    assert_eq!(host.offer(us(90), 5, 1250), Verdict::Pass);
    host.hold(
        us(100),
        1,
        &[(4, PermitKind::Slot, us(200), Rate::from_gbps(1))],
        Held::Only(vec![4]),
    );
    assert_eq!(host.departures(us(100)), [(us(100), 4)]);
}
