//! The packet path allocates nothing once a port, or a receiver, has seen its fullest moment.

use shallows_core::host::udp::{Receiver, Sender, UdpConfig};
use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::{EgressPort, Pool, PortConfig, SchedulerConfig, SchemeConfig, Transmit};
use shallows_core::units::{Rate, Time};

fn packets(port: &mut EgressPort<Descriptor>, pool: &mut Pool<Descriptor>, rounds: u64) {
    for n in 0..rounds {
        for queue in 0..8 {
            let packet = Descriptor {
                size: 1500,
                dscp: queue,
                flow: n,
                ecn: Ecn::Ect0,
                ..Descriptor::default()
            };
            port.offer(port.busy_until(), packet, pool);
        }
        for _ in 0..8 {
            let now = port.busy_until();
            assert!(matches!(port.transmit(now, pool), Transmit::Packet(_)));
        }
    }
}

#[test]
fn steady_state_allocates_nothing() {
    // These have one queue only, and pFabric and push-out walk through it.
    let single = ["fifo", "pfabric", "push-out"];
    let schedulers = SchedulerConfig::EXAMPLES;
    let many_queues = schedulers.iter().filter(|(name, _)| !single.contains(name));
    for (scheduler_name, scheduler) in many_queues {
        for (marker_name, marker) in SchemeConfig::EXAMPLES {
            let classifier = r#"{ size-class = { small = 2, medium = 3, large = 3, t-small = 2, t-large = 7 } }"#;
            let config: PortConfig = toml::from_str(&format!(
                "queues = 8\nclassifier = {classifier}\nbuffer = \"unlimited\"\nscheduler = {scheduler}\nmarker = {{ scheme = {marker} }}"
            ))
            .expect("the test's configuration is sound");
            if *scheduler_name == "strict" && marker_name == "mq-ecn" {
                continue;
            }
            let mut port = EgressPort::new(Rate::from_gbps(10), &config, 1, 1).unwrap();
            let mut pool = Pool::unlimited();
            packets(&mut port, &mut pool, 1);
            let used = allocation_counter::measure(|| packets(&mut port, &mut pool, 100));
            assert_eq!(used.count_total, 0, "{scheduler_name} with {marker_name}");
        }
    }
}

#[test]
fn fragments_allocate_nothing_once_the_memory_is_full() {
    let config: UdpConfig =
        toml::from_str("send = { message = {} }\nreassembly = { memory = \"1MB\" }")
            .expect("the test's configuration is sound");
    let mut sender = Sender::new(&config, Time::ZERO);
    let mut receiver = Receiver::new(&config);
    let mut packets = |count: u32| {
        for n in 0..count {
            let packet = sender
                .poll_packet(Time::ZERO)
                .expect("nothing stays in the host");
            sender.departs(Time::ZERO, packet.size);
            // Every other message or so is damaged.
            if !n.is_multiple_of(89) {
                receiver.handle_packet(Time::ZERO, &packet);
            }
        }
        receiver.stats().evicted
    };
    assert!(packets(5_000) > 0, "the memory was full once");
    let used = allocation_counter::measure(|| {
        packets(5_000);
    });
    assert_eq!(used.count_total, 0);
}
