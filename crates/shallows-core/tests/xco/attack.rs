//! Messages that are forged, replayed, cut, random or meant for others: counted, without effect.

use proptest::prelude::*;
use shallows_core::control::Agent;
use shallows_core::packet::Descriptor;
use shallows_core::port::Framing;
use shallows_core::units::{Rate, Time};
use shallows_core::xco::config::{OnDemand, Protocol};
use shallows_core::xco::controller::{Controller, ControllerConfig};
use shallows_core::xco::coordinator::{Coordinator, CoordinatorConfig, GateConfig};
use shallows_core::xco::fabric::CoordinatedFabric;
use shallows_core::xco::message::{
    self, Body, ClusterKey, Directive, Epoch, Header, Held, Permit, PermitKind, Refused, Report,
    Station,
};

use crate::network::Dice;
use crate::world::TwoRacks;

const CONTROLLER: u32 = 100;

fn cluster() -> ClusterKey {
    ClusterKey::new(*b"a key of a test!")
}

fn controller() -> Controller<TwoRacks> {
    let config = ControllerConfig {
        address: CONTROLLER,
        on_demand: Some(OnDemand::default()),
        ..ControllerConfig::default()
    };
    let hosts = vec![Rate::from_gbps(1); 6];
    let fabric = CoordinatedFabric::new(hosts, vec![Rate::from_gbps(1); 20], TwoRacks).unwrap();
    Controller::new(config, fabric, &cluster(), Time::ZERO).unwrap()
}

fn coordinator() -> Coordinator<Descriptor> {
    let config = CoordinatorConfig {
        host: 3,
        controllers: vec![CONTROLLER],
        incarnation: 7,
        rate: Rate::from_gbps(1),
        framing: Framing::ETHERNET,
        gate: GateConfig::default(),
        budget: GateConfig::default().budget(Rate::from_gbps(1), 6),
        protocol: Protocol::default(),
        on_demand: Some(OnDemand::default()),
    };
    Coordinator::new(config, cluster().host(3), Time::ZERO).unwrap()
}

fn header(from: u32, to: u32, sequence: u64) -> Header {
    Header {
        from,
        to,
        incarnation: 1,
        sequence,
    }
}

fn sealed(key_of: u32, header: &Header, body: &Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    message::seal(&cluster().host(key_of), header, body, &mut bytes);
    bytes
}

/// A directive that gives host 3 a slot to host 4.
fn slot() -> Body {
    Body::Directive(Directive {
        epoch: Epoch {
            counter: 1,
            leader: CONTROLLER,
        },
        incarnation: 7,
        is_granting: true,
        stamp: Time::from_ms(1),
        acknowledged: 1,
        grant: 1,
        permits: vec![Permit {
            destination: 4,
            kind: PermitKind::Slot,
            until: Time::from_ms(5),
            rate: Rate::from_gbps(1),
        }],
        ..Directive::default()
    })
}

fn report() -> Body {
    Body::Report(Report {
        clock: Time::from_ms(1),
        backlog: vec![4, 5],
        ..Report::default()
    })
}

#[test]
fn a_slot_is_obeyed_once_and_from_its_controller_alone() {
    let now = Time::from_ms(1);
    let mut host = coordinator();
    let good = sealed(3, &header(CONTROLLER, 3, 1), &slot());
    let tries = [
        (9, good.clone(), Refused::Sender),
        (
            CONTROLLER,
            sealed(3, &header(9, 3, 1), &slot()),
            Refused::Sender,
        ),
        (
            CONTROLLER,
            sealed(3, &header(CONTROLLER, 4, 1), &slot()),
            Refused::Addressee,
        ),
        (
            CONTROLLER,
            sealed(4, &header(CONTROLLER, 3, 1), &slot()),
            Refused::Forged,
        ),
        (
            CONTROLLER,
            sealed(3, &header(CONTROLLER, 3, 1), &report()),
            Refused::Malformed,
        ),
        (CONTROLLER, good[..good.len() - 1].to_vec(), Refused::Forged),
        (CONTROLLER, good[..40].to_vec(), Refused::Malformed),
        (CONTROLLER, [&[2], &good[1..]].concat(), Refused::Version),
        (CONTROLLER, Vec::new(), Refused::Malformed),
    ];
    for (from, bytes, reason) in tries {
        let before = host.counters().messages.refused(reason);
        host.handle(now, from, &bytes);
        assert_eq!(
            host.counters().messages.refused(reason),
            before + 1,
            "{reason:?}"
        );
        assert_eq!(host.permits(now).count(), 0, "{reason:?}");
    }
    assert_eq!(host.counters().messages.accepted, 0);
    host.handle(now, CONTROLLER, &good);
    assert_eq!(
        host.permits(now).collect::<Vec<_>>(),
        [(4, Rate::from_gbps(1))]
    );
    host.handle(now, CONTROLLER, &good);
    assert_eq!(host.counters().messages.refused(Refused::Replayed), 1);
}

#[test]
fn an_older_term_is_not_obeyed() {
    let now = Time::from_ms(1);
    let mut host = coordinator();
    let of_term = |counter, sequence| {
        let Body::Directive(mut directive) = slot() else {
            unreachable!()
        };
        directive.epoch.counter = counter;
        sealed(
            3,
            &header(CONTROLLER, 3, sequence),
            &Body::Directive(directive),
        )
    };
    host.handle(now, CONTROLLER, &of_term(5, 1));
    assert_eq!(host.epoch().counter, 5);
    host.handle(now, CONTROLLER, &of_term(4, 2));
    assert_eq!(host.counters().messages.refused(Refused::Outdated), 1);
    assert_eq!(host.epoch().counter, 5);
}

#[test]
fn a_slot_for_another_life_of_the_host_is_not_obeyed() {
    let Body::Directive(mut directive) = slot() else {
        unreachable!()
    };
    directive.incarnation = 6;
    let mut host = coordinator();
    let bytes = sealed(3, &header(CONTROLLER, 3, 1), &Body::Directive(directive));
    host.handle(Time::from_ms(1), CONTROLLER, &bytes);
    assert_eq!(host.counters().messages.refused(Refused::Outdated), 1);
    assert_eq!(host.permits(Time::from_ms(1)).count(), 0);
}

#[test]
fn a_host_cannot_report_for_another() {
    let mut controller = controller();
    let now = Time::from_ms(1);
    controller.handle(now, 2, &sealed(3, &header(2, CONTROLLER, 1), &report()));
    assert_eq!(controller.counters().messages.refused(Refused::Forged), 1);
    controller.handle(now, 77, &sealed(77, &header(77, CONTROLLER, 1), &report()));
    assert_eq!(controller.counters().messages.refused(Refused::Sender), 1);
    assert_eq!(controller.joined(), 0);
    let good = sealed(2, &header(2, CONTROLLER, 1), &report());
    controller.handle(now, 2, &good);
    assert_eq!(controller.joined(), 1);
    controller.handle(now, 2, &good);
    assert_eq!(controller.counters().messages.refused(Refused::Replayed), 1);
}

fn attack_both(
    host: &mut Coordinator<Descriptor>,
    leader: &mut Controller<TwoRacks>,
    bytes: &[u8],
) {
    let now = Time::from_ms(1);
    let (from_leader, from_host) = (host.counters().messages, leader.counters().messages);
    host.handle(now, CONTROLLER, bytes);
    leader.handle(now, 3, bytes);
    for (before, after) in [
        (from_leader, host.counters().messages),
        (from_host, leader.counters().messages),
    ] {
        assert_eq!(after.accepted, before.accepted, "{bytes:?}");
        let sum = |counts: &message::MessageCounters| counts.refused.iter().sum::<u64>();
        assert_eq!(sum(&after), sum(&before) + 1, "{bytes:?}");
    }
    assert_eq!(
        (host.permits(now).count(), host.epoch()),
        (0, Epoch::default())
    );
    assert_eq!((leader.joined(), leader.schedule().backlogged()), (0, 0));
}

/// A message that was valid before something happened to it.
fn spoil(dice: &mut Dice) -> Vec<u8> {
    let valid = [
        sealed(3, &header(CONTROLLER, 3, 1), &slot()),
        sealed(3, &header(3, CONTROLLER, 1), &report()),
    ];
    let mut bytes = valid[dice.below(2) as usize].clone();
    match dice.below(3) {
        0 => bytes.truncate(dice.below(bytes.len() as u64) as usize),
        1 => {
            let extra = 1 + dice.below(40);
            bytes.extend((0..extra).map(|_| dice.below(256) as u8));
        }
        _ => {
            for _ in 0..=dice.below(3) {
                let place = dice.below(bytes.len() as u64) as usize;
                bytes[place] ^= 1 << dice.below(8);
            }
            if valid.contains(&bytes) {
                bytes[0] ^= 1;
            }
        }
    }
    bytes
}

#[test]
#[ignore = "takes as long as it is told to"]
fn fuzz_for_long_control_messages() {
    shallows_testing::fuzz("control messages", |seed| {
        let (mut host, mut leader) = (coordinator(), controller());
        let mut dice = Dice::new(seed);
        for _ in 0..10_000 {
            let spoiled = spoil(&mut dice);
            attack_both(&mut host, &mut leader, &spoiled);
            let random: Vec<u8> = (0..dice.below(120))
                .map(|_| dice.below(256) as u8)
                .collect();
            attack_both(&mut host, &mut leader, &random);
        }
        20_000
    });
}

fn rates() -> impl Strategy<Value = (u32, Rate)> {
    (0..20_u32, any::<u64>()).prop_map(|(to, rate)| (to, Rate::from_bps(rate)))
}

fn stations() -> impl Strategy<Value = Station> {
    any::<[u8; 6]>().prop_map(Station)
}

fn permits() -> impl Strategy<Value = Permit> {
    let kinds = prop_oneof![
        Just(PermitKind::Slot),
        Just(PermitKind::Limit),
        Just(PermitKind::Exempt)
    ];
    (any::<u32>(), kinds, any::<u64>(), any::<u64>()).prop_map(
        |(destination, kind, until, rate)| Permit {
            destination,
            kind,
            until: Time::from_ps(until),
            rate: Rate::from_bps(rate),
        },
    )
}

proptest! {
    #[test]
    fn spoiled_and_random_messages_change_nothing(
        seed in any::<u64>(),
        random in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (mut host, mut leader) = (coordinator(), controller());
        let mut dice = Dice::new(seed);
        for _ in 0..20 {
            attack_both(&mut host, &mut leader, &spoil(&mut dice));
        }
        attack_both(&mut host, &mut leader, &random);
    }

    #[test]
    fn what_is_sealed_can_be_opened(
        permits in prop::collection::vec(permits(), 0..=message::MOST_PERMITS),
        backlog in prop::collection::vec(any::<u32>(), 0..=message::MOST_DESTINATIONS),
        rates in prop::collection::vec(rates(), 0..=message::MOST_RATES),
        held in prop::collection::vec(any::<u32>(), 0..=message::MOST_HELD),
        claims in prop::option::of(prop::collection::vec(stations(), 0..=message::MOST_CLAIMS)),
        places in prop::collection::vec((stations(), any::<u32>()), 0..=message::MOST_PLACES),
        numbers in any::<[u64; 4]>(),
        flags in any::<[bool; 2]>(),
    ) {
        // A controller gives the room of permits to what is held.
        let room = (message::MOST_PERMITS - permits.len()) * 5;
        let held: Vec<u32> = held.into_iter().take(room).collect();
        // And what is then left to places.
        let taken = if flags[1] { 0 } else { (4 * held.len()).div_ceil(21) };
        let room = (21 * (message::MOST_PERMITS - permits.len()).saturating_sub(taken)).checked_sub(10);
        let places = room.map(|room| message::Places {
            version: numbers[3],
            places: places.into_iter().take(room / 10).collect(),
        });
        let epoch = Epoch { counter: numbers[0] as u32, leader: numbers[1] as u32 };
        let bodies = [
            Body::Directive(Directive {
                epoch,
                incarnation: numbers[2],
                is_granting: flags[0],
                stamp: Time::from_ps(numbers[3]),
                acknowledged: numbers[0],
                timeline: numbers[1] as u32,
                grant: numbers[2],
                held: if flags[1] { Held::All } else { Held::Only(held) },
                permits,
                places,
            }),
            Body::Report(Report {
                wants_answer: flags[0],
                is_sending: flags[1],
                epoch,
                echo: (numbers[2], Time::from_ps(numbers[3])),
                clock: Time::from_ps(numbers[0]),
                timeline: numbers[3] as u32,
                grant: numbers[1],
                backlog,
                rates,
                claims: claims.map(|stations| message::Claims { seen: numbers[2], stations }),
                ..Report::default()
            }),
            Body::Beat(message::Beat { epoch, leads: flags[0] }),
        ];
        for body in bodies {
            let head = Header { from: 1, to: 2, incarnation: numbers[0], sequence: numbers[1] };
            let bytes = sealed(3, &head, &body);
            prop_assert!(bytes.len() <= 1500, "fits an Ethernet frame: {}", bytes.len());
            prop_assert_eq!(message::peek(&bytes), Ok(head));
            prop_assert_eq!(message::open(&cluster().host(3), &bytes), Ok(body));
        }
    }

    /// Any directive that is authentic, whatever it says, leaves the host in a sound state.
    #[test]
    fn no_authentic_directive_makes_a_host_panic(
        permits in prop::collection::vec(permits(), 0..20),
        held in prop::collection::vec(0..20_u32, 0..20),
        places in prop::collection::vec((stations(), any::<u32>()), 0..20),
        version in any::<u64>(),
        grant in any::<u64>(),
        stamp in any::<u64>(),
    ) {
        let Body::Directive(directive) = slot() else { unreachable!() };
        let body = Body::Directive(Directive {
            permits,
            held: Held::Only(held),
            places: Some(message::Places { version, places }),
            grant,
            stamp: Time::from_ps(stamp),
            ..directive
        });
        let mut host = coordinator().with_places();
        let now = Time::from_ms(1);
        host.handle(now, CONTROLLER, &sealed(3, &header(CONTROLLER, 3, 1), &body));
        let mut buffer = Vec::new();
        while host.transmit(now, &mut buffer).is_some() {
            buffer.clear();
        }
        let later = Time::from_secs(1);
        host.handle_timeout(later);
        prop_assert!(host.permits(later).count() == 0, "no permit outlasts the silence");
    }

    /// Any report that is authentic leaves the controller in a sound state.
    #[test]
    fn no_authentic_report_makes_a_controller_panic(
        backlog in prop::collection::vec(0..20_u32, 0..30),
        rates in prop::collection::vec(rates(), 0..=message::MOST_RATES),
        stations in prop::collection::vec(stations(), 0..=message::MOST_CLAIMS),
        numbers in any::<[u64; 4]>(),
        flags in any::<[bool; 2]>(),
    ) {
        let mut controller = controller();
        for (sequence, now) in [(1, Time::from_ms(1)), (2, Time::from_ms(600))] {
            let body = Body::Report(Report {
                wants_answer: flags[0],
                is_sending: flags[1],
                epoch: Epoch { counter: numbers[0] as u32 % 4, leader: CONTROLLER },
                echo: (numbers[1], Time::from_ps(numbers[2])),
                clock: Time::from_ps(numbers[3]),
                grant: numbers[0],
                backlog: backlog.clone(),
                rates: rates.clone(),
                claims: Some(message::Claims { seen: numbers[1], stations: stations.clone() }),
                ..Report::default()
            });
            controller.handle(now, 3, &sealed(3, &header(3, CONTROLLER, sequence), &body));
            controller.handle_timeout(now);
            let mut buffer = Vec::new();
            while controller.transmit(now, &mut buffer).is_some() {
                buffer.clear();
            }
        }
    }
}
