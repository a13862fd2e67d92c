//! Ethernet flow control: exact times, no drops, and the flows that suffer for others.

use shallows_core::port::pause::{PauseConfig, PauseScope};
use shallows_core::port::{BufferConfig, PortConfig};
use shallows_core::units::{Bytes, Length, Time};
use shallows_model::LinkId;
use shallows_model::workload::FlowSpec;
use shallows_sim::PauseStats;

use crate::world::{World, flow};

/// Windows that never hold a sender back.
const EAGER: &str =
    "initial-window = 400\nreceive-window = 400\nrto = { initial = '1s', minimum = '1s' }";

fn pause(high: u64, low: u64, per: PauseScope) -> PauseConfig {
    PauseConfig {
        high: Bytes::new(high),
        low: Bytes::new(low),
        per,
    }
}

/// Host 0 has ten times the rate of host 1.
const SLOW_RECEIVER: &str = r#"
    [custom]
    hosts = 2
    switches = 1
    links = [
        { between = ["h0", "s0"], rate = "10Gbps", delay = "1us" },
        { between = ["h1", "s0"], rate = "1Gbps", delay = "1us" },
    ]
"#;

#[test]
fn a_pause_takes_its_time_and_lasts_until_the_low_mark() {
    let mut world = World::new(SLOW_RECEIVER, EAGER, vec![flow(Time::ZERO, 0, 1, 40)]);
    world.pause = Some(pause(4500, 1500, PauseScope::Link));
    let mut run = world.start();
    // Packet k of 1500 B is at the switch at (k + 1) * 1.2 us + 1 us. Packet 0 passes; 1 to 3 make
    // 4500 B, and packet 4 at 7 us is above the mark. The frame of 46 B takes 36.8 ns and 1 us, and
    // stops the host at 8.0368 us, while it sends packet 6.
    run.until(Time::from_ns(8037));
    assert_eq!(run.pauses(LinkId(0)).pauses, 1);
    assert_eq!(
        run.port(LinkId(0)).queued(0).packets,
        40,
        "the rest waits in the NIC"
    );
    run.until(Time::from_us(60));
    assert_eq!(run.port(LinkId(0)).packets(), 33);
    // The packets leave the switch from 2.2 us on, one in 12 us. When packet 5 does, at 62.2 us,
    // only packet 6 is left, and the host goes on at 63.2368 us.
    run.until(Time::from_us(68));
    let paused = Time::from_ns(63_237 - 8_037);
    assert_eq!(run.pauses(LinkId(0)), PauseStats { pauses: 1, paused });
    run.finish();
    assert_eq!(
        run.pauses(LinkId(1)),
        PauseStats::default(),
        "the other way is free"
    );
}

/// Ten hosts send to one at once.
fn incast() -> World {
    let flows = (1..11).map(|src| flow(Time::ZERO, src, 0, 100)).collect();
    let topology = r#"star = { hosts = 11, rate = "10Gbps", delay = "1us" }"#;
    let mut world = World::new(topology, EAGER, flows);
    world.switches = PortConfig::fifo(BufferConfig::Shared {
        size: Length::Bytes(Bytes::new(300_000)),
    });
    world
}

#[test]
fn pauses_prevent_drops() {
    let total = |world: World| {
        let run = world.run();
        let flows = run.flows().map(|(_, outcome)| outcome);
        let (drops, last) = flows.fold((0, Time::ZERO), |(drops, last), outcome| {
            (drops + outcome.drops, last.max(outcome.fct.unwrap()))
        });
        (drops, last)
    };
    let (drops, _) = total(incast());
    assert!(drops > 0, "too much at once");
    let mut paused = incast();
    // For each of ten ports 15 kB and what comes until it is stopped: less than 30 kB.
    paused.pause = Some(pause(15_000, 7_500, PauseScope::Link));
    let (drops, last) = total(paused);
    assert_eq!(drops, 0);
    // 1000 packets of 1.2 us at the receiver, and the way there.
    let ideal = Time::from_us(1200);
    assert!(ideal < last && last < ideal + Time::from_us(10), "{last}");
}

/// Eight hosts send to host 0; one of them has something for host 9 as well, in another queue.
fn victim(per: Option<PauseScope>) -> Time {
    let service = |service, flow| FlowSpec { service, ..flow };
    let mut flows: Vec<_> = (1..9).map(|src| flow(Time::ZERO, src, 0, 200)).collect();
    flows.push(service(1, flow(Time::from_us(50), 1, 9, 20)));
    let topology = r#"star = { hosts = 10, rate = "10Gbps", delay = "1us" }"#;
    let mut world = World::new(topology, EAGER, flows);
    let port = "queues = 2\nbuffer = 'unlimited'\nscheduler = { dwrr = { quantum = '1.5KB' } }";
    world.switches = toml::from_str(port).unwrap();
    world.hosts = world.switches.clone();
    world.pause = per.map(|per| pause(15_000, 7_500, per));
    world.fcts()[8].unwrap()
}

#[test]
fn a_paused_link_blocks_packets_for_others_and_a_paused_queue_does_not() {
    let free = victim(None);
    let (link, queue) = (
        victim(Some(PauseScope::Link)),
        victim(Some(PauseScope::Queue)),
    );
    // Host 1 may send an eighth of the time, and the victim is served half of that.
    assert!(
        link > free * 2,
        "{link} is head-of-line blocking, {free} is not"
    );
    // With its queue to itself it is served while the other one is stopped.
    assert!(queue <= free, "{queue} against {free}");
}
