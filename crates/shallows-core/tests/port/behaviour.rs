//! Single behaviours of the port, each with numbers worked out by hand.

use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::{
    DropReason, EgressPort, MarkReason, Offer, Pool, PortConfig, QueueSet, Transmit,
};
use shallows_core::units::{Bytes, Rate, Time};

use crate::driver::{Driver, RATE, config, packet};

fn from_toml(toml: &str) -> PortConfig {
    toml::from_str(toml).expect("the test's configuration is sound")
}

fn order(driver: &mut Driver) -> Vec<u64> {
    std::iter::from_fn(|| driver.next())
        .map(|d| d.packet.tag)
        .collect()
}

#[test]
fn the_papers_buffer_drops_the_201st_packet() {
    // 300,000 B hold 200 packets of 1500 B, and one is on the wire.
    let mut driver = Driver::new(&from_toml(
        "buffer = { shared = { size = \"300KB\" } }\nscheduler = \"fifo\"",
    ));
    driver.offer(packet(0, 1500, 0));
    driver.next();
    for n in 0..200 {
        let outcome = driver
            .port
            .offer(driver.now, packet(0, 1500, n), &mut driver.pool);
        assert_eq!(outcome, Offer::Queued);
    }
    let outcome = driver
        .port
        .offer(driver.now, packet(0, 40, 200), &mut driver.pool);
    assert_eq!(outcome, Offer::Dropped(DropReason::PortFull));
    let drops = driver.port.counters(0).drops(DropReason::PortFull);
    assert_eq!((drops.packets, drops.bytes), (1, 40));
    let dropped: Vec<_> = driver.port.take_dropped().collect();
    assert_eq!(dropped, [(packet(0, 40, 200), DropReason::PortFull)]);
    assert_eq!(driver.port.take_dropped().count(), 0);
}

#[test]
fn queues_with_limits_of_their_own() {
    let mut driver = Driver::new(&from_toml(
        r#"
        queues = 2
        buffer = { per-queue = { limit = ["3KB", "2pkts"] } }
        scheduler = "strict"
        "#,
    ));
    for queue in [0, 1] {
        let outcomes = [(); 3].map(|()| {
            driver
                .port
                .offer(Time::ZERO, packet(queue, 1500, 0), &mut driver.pool)
        });
        let dropped = Offer::Dropped(DropReason::QueueFull);
        assert_eq!(outcomes, [Offer::Queued, Offer::Queued, dropped]);
    }
}

/// Choudhury and Hahne: with n queues that want more than they may have, alpha leaves
/// 1 / (1 + n x alpha) of the memory free, and each queue holds alpha times that.
#[test]
fn dynamic_thresholds_share_the_pool() {
    let config = from_toml(
        r#"
        queues = 2
        buffer = { dynamic = { alpha = 1.0 } }
        scheduler = "strict"
        "#,
    );
    let mut pool = Pool::new(Bytes::new(90_000));
    let mut ports = [0, 1].map(|id| EgressPort::new(RATE, &config, 1, id).unwrap());
    let offer = |port: &mut EgressPort<Descriptor>, pool: &mut Pool<Descriptor>, queue| {
        port.offer(Time::ZERO, packet(queue, 100, 0), pool)
    };
    // Alone, a queue may take half of the memory.
    while offer(&mut ports[0], &mut pool, 0) == Offer::Queued {}
    assert_eq!(ports[0].queue_bytes(0).get(), 45_000);
    // A second queue, of the other port, gets half of what is left; the first is over its share
    // now and gets no more.
    while offer(&mut ports[1], &mut pool, 1) == Offer::Queued {}
    assert_eq!(ports[1].queue_bytes(1).get(), 22_500);
    let refused = Offer::Dropped(DropReason::DynamicThreshold);
    assert_eq!(offer(&mut ports[0], &mut pool, 0), refused);
    // Once it has drained, the two meet at a third each.
    let mut now = Time::ZERO;
    while let Transmit::Packet(departure) = ports[0].transmit(now, &mut pool) {
        now = departure.finish;
        offer(&mut ports[0], &mut pool, 0);
        offer(&mut ports[1], &mut pool, 1);
        if ports[0].queue_bytes(0) == ports[1].queue_bytes(1) {
            break;
        }
    }
    assert_eq!(ports[0].queue_bytes(0).get(), 30_000);
    assert_eq!(pool.free().get(), 30_000);
}

#[test]
fn pool_marking_looks_at_all_ports() {
    let config = config(1, r#""fifo""#, r#"{ per-pool = { threshold = "2pkts" } }"#);
    let mut pool = Pool::unlimited();
    let mut ports = [0, 1].map(|id| EgressPort::new(RATE, &config, 1, id).unwrap());
    for _ in 0..2 {
        ports[0].offer(Time::ZERO, packet(0, 1500, 0), &mut pool);
    }
    ports[1].offer(Time::ZERO, packet(0, 1500, 0), &mut pool);
    assert_eq!(ports[0].counters(0).all_marks(), 0);
    assert_eq!(ports[1].counters(0).marks(MarkReason::Pool), 1);
}

#[test]
fn marks_count_once_and_only_where_they_change_something() {
    let mut driver = Driver::new(&config(
        1,
        r#""fifo""#,
        r#"{ per-queue = { threshold = "1B" } }"#,
    ));
    for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::NotEct, Ecn::Ce] {
        driver.offer(Descriptor {
            ecn,
            ..packet(0, 1500, 0)
        });
    }
    let sent: Vec<_> = std::iter::from_fn(|| driver.next())
        .map(|d| d.packet.ecn)
        .collect();
    assert_eq!(sent, [Ecn::Ce, Ecn::Ce, Ecn::NotEct, Ecn::Ce]);
    let counters = driver.port.counters(0);
    assert_eq!(counters.marks(MarkReason::Queue), 2);
    assert_eq!(counters.unmarkable, 1);
}

#[test]
fn packets_without_ecn_can_be_dropped_instead() {
    let mut driver = Driver::new(&from_toml(
        r#"
        buffer = "unlimited"
        scheduler = "fifo"
        marker = { scheme = { per-queue = { threshold = "1pkt" } }, not-ect = "drop" }
        "#,
    ));
    let plain = Descriptor {
        ecn: Ecn::NotEct,
        ..packet(0, 1500, 0)
    };
    let outcomes = [(); 2].map(|()| driver.port.offer(Time::ZERO, plain, &mut driver.pool));
    assert_eq!(
        outcomes,
        [Offer::Queued, Offer::Dropped(DropReason::NotEct)]
    );
}

#[test]
fn the_mark_point_decides_who_is_marked() {
    let run = |point: &str| {
        let mut driver = Driver::new(&from_toml(&format!(
            r#"
            buffer = "unlimited"
            scheduler = "fifo"
            marker = {{ scheme = {{ per-queue = {{ threshold = "2pkts" }} }}, point = "{point}" }}
            "#
        )));
        for tag in 0..4 {
            driver.offer(packet(0, 1500, tag));
        }
        std::iter::from_fn(|| driver.next())
            .filter(|d| d.packet.ecn == Ecn::Ce)
            .map(|d| d.packet.tag)
            .collect::<Vec<_>>()
    };
    // At enqueue the third and fourth find a queue of three and four; at dequeue the first and
    // second leave a queue of four and three.
    assert_eq!(run("enqueue"), [2, 3]);
    assert_eq!(run("dequeue"), [0, 1]);
}

#[test]
fn sojourn_marking_follows_the_wait() {
    // Three packets of 1.2 us: they wait 0, 1.2 and 2.4 us.
    let mut driver = Driver::new(&config(
        1,
        r#""fifo""#,
        r#"{ tcn = { sojourn = "1.2us" } }"#,
    ));
    for tag in 0..3 {
        driver.offer(packet(0, 1500, tag));
    }
    let sent: Vec<_> = std::iter::from_fn(|| driver.next()).collect();
    let waits: Vec<_> = sent.iter().map(|d| d.sojourn).collect();
    assert_eq!(
        waits,
        [Time::ZERO, Time::from_ns(1200), Time::from_ns(2400)]
    );
    let marked: Vec<_> = sent.iter().map(|d| d.packet.ecn == Ecn::Ce).collect();
    assert_eq!(marked, [false, false, true]);
}

#[test]
fn demepro_marks_a_packet_already_in_store() {
    let mut driver = Driver::new(&config(
        2,
        r#""strict""#,
        r#"{ demepro = { threshold = "3pkts" } }"#,
    ));
    for (queue, tag) in [(1, 10), (1, 11), (0, 0), (0, 1)] {
        driver.offer(packet(queue, 1500, tag));
    }
    // The fourth arrival makes four packets; both queues have two, and queue 0 is the lower.
    let marked: Vec<_> = std::iter::from_fn(|| driver.next())
        .filter(|d| d.packet.ecn == Ecn::Ce)
        .map(|d| d.packet.tag)
        .collect();
    assert_eq!(marked, [0]);
}

#[test]
fn wire_sizes_and_accounting() {
    let transmit = |extra: &str| {
        let mut driver = Driver::new(&from_toml(&format!(
            "buffer = \"unlimited\"\nscheduler = \"fifo\"\nframing = \"ethernet\"\n{extra}"
        )));
        driver.offer(packet(0, 1500, 0));
        let counted = driver.port.bytes().get();
        (counted, driver.next().unwrap().finish)
    };
    // 1538 B on the wire take 1230.4 ns in either case; only what is counted differs.
    let finish = Time::from_ps(1_230_400);
    assert_eq!(transmit(""), (1500, finish));
    assert_eq!(transmit("accounting = \"wire\""), (1538, finish));
}

#[test]
fn back_to_back_packets_never_drift() {
    // 1 B at 3 Gbps takes 2666.67 ps; a thousand of them take 2,666,667 ps and not 2,667,000.
    let config = config(1, r#""fifo""#, r#""none""#);
    let mut port = EgressPort::new(Rate::from_gbps(3), &config, 1, 1).unwrap();
    let mut pool = Pool::unlimited();
    for tag in 0..1000 {
        port.offer(Time::ZERO, packet(0, 1, tag), &mut pool);
    }
    let mut now = Time::ZERO;
    while let Transmit::Packet(departure) = port.transmit(now, &mut pool) {
        now = departure.finish;
    }
    assert_eq!(now, Time::from_ps(2_666_667));
}

#[test]
fn an_idle_link_forgets_what_it_rounded() {
    // At 3 Gbps three bytes take 8000 ps: back to back they end at 2667, 5334 and 8000 ps. After
    // a pause every byte is the first, and takes 2667.
    let config = config(1, r#""fifo""#, r#""none""#);
    for (pause, expected) in [(0, [2667, 2667, 2666]), (1, [2667; 3])] {
        let mut port = EgressPort::new(Rate::from_gbps(3), &config, 1, 1).unwrap();
        let mut pool = Pool::unlimited();
        let mut now = Time::ZERO;
        let mut spans = Vec::new();
        for tag in 0..3 {
            port.offer(now, packet(0, 1, tag), &mut pool);
            let Transmit::Packet(departure) = port.transmit(now, &mut pool) else {
                panic!("the link is free");
            };
            spans.push((departure.finish - now).ps());
            now = departure.finish + Time::from_ps(pause);
        }
        assert_eq!(spans, expected, "pause of {pause} ps");
    }
}

#[test]
fn the_shaper_paces_and_says_when_to_come_back() {
    let config = from_toml(
        r#"
        buffer = "unlimited"
        scheduler = "fifo"
        shaper = { rate = "995Mbps", bucket = "2.5KB" }
        "#,
    );
    let mut port = EgressPort::new(Rate::from_gbps(10), &config, 1, 1).unwrap();
    let mut pool = Pool::unlimited();
    for tag in 0..2 {
        port.offer(Time::ZERO, packet(0, 1500, tag), &mut pool);
    }
    let Transmit::Packet(first) = port.transmit(Time::ZERO, &mut pool) else {
        panic!("a full bucket lets the first packet go");
    };
    // 1000 tokens are left and 1.2 us of them come in while it is sent: 500 B = 4000 bits less
    // 1194 bits are missing, 2806 bits at 995 Mbps = 2,820,100.5 ps.
    let Transmit::Wait(at) = port.transmit(first.finish, &mut pool) else {
        panic!("the bucket is not full enough");
    };
    assert_eq!(at, Time::from_ps(1_200_000 + 2_820_101));
    assert!(matches!(port.transmit(at, &mut pool), Transmit::Packet(_)));
}

/// MQ-ECN eq. 5: one active queue has all of K, however far the port is shaped below its link.
#[test]
fn a_shaped_port_gives_its_only_active_queue_the_standard_threshold() {
    for (rate, framing, active) in [
        ("5Gbps", "none", 1),
        ("9.95Gbps", "ethernet", 1),
        ("1Gbps", "ethernet", 1),
        ("5Gbps", "ethernet", 4),
    ] {
        let config = from_toml(&format!(
            r#"
            queues = 4
            buffer = "unlimited"
            scheduler = {{ dwrr = {{ quantum = "1500B" }} }}
            marker = {{ scheme = {{ mq-ecn = {{ threshold = "32KB" }} }} }}
            shaper = {{ rate = "{rate}", bucket = "2500B" }}
            framing = "{framing}"
            "#
        ));
        let mut driver = Driver::new(&config);
        for tag in 0..400 {
            driver.offer(packet(tag as usize % active, 1500, tag));
        }
        for _ in 0..200 {
            driver.now = driver.next().unwrap().finish;
        }
        let threshold = driver.port.threshold(0).unwrap();
        let expected = 32_000.0 / active as f64;
        assert!(
            (threshold / expected - 1.0).abs() < 1e-6,
            "{rate}: {threshold}"
        );
    }
}

#[test]
fn paused_queues_wait_and_the_others_go_on() {
    for scheduler in [
        r#""strict""#,
        r#"{ wrr = { quantum = "1500B" } }"#,
        r#"{ dwrr = { quantum = "1500B" } }"#,
        "{ wfq = { weight = 1 } }",
    ] {
        let mut driver = Driver::new(&config(3, scheduler, r#""none""#));
        for queue in 0..3 {
            for n in 0..2 {
                driver.offer(packet(queue, 1500, 10 * queue as u64 + n));
            }
        }
        driver.port.pause(QueueSet::one(0));
        let mut sent = order(&mut driver);
        sent.sort_unstable();
        assert_eq!(sent, [10, 11, 20, 21], "{scheduler}");
        // A packet that arrives meanwhile waits with the others.
        driver.offer(packet(0, 1500, 2));
        assert!(driver.next().is_none());
        driver.port.resume(driver.now, QueueSet::one(0));
        assert_eq!(order(&mut driver), [0, 1, 2], "{scheduler}");
    }
}

#[test]
fn an_802_3x_pause_stops_everything_but_the_packet_on_the_wire() {
    let mut driver = Driver::new(&config(2, r#""strict""#, r#""none""#));
    for tag in 0..3 {
        driver.offer(packet(1, 1500, tag));
    }
    assert_eq!(driver.next().unwrap().packet.tag, 0);
    driver.port.pause(QueueSet::ALL);
    assert!(matches!(
        driver.port.transmit(driver.now, &mut driver.pool),
        Transmit::Idle
    ));
    driver.port.resume(driver.now, QueueSet::ALL);
    assert_eq!(order(&mut driver), [1, 2]);
}

#[test]
fn pfabric_serves_the_shortest_flow_in_its_order() {
    let mut driver = Driver::new(&config(1, r#""pfabric""#, r#""none""#));
    let flow = |flow, remaining, tag| Descriptor {
        flow,
        remaining,
        ..packet(0, 1500, tag)
    };
    // Flow 7's later packet is the most urgent; its earlier one leaves first.
    driver.offer(flow(5, 90_000, 0));
    driver.offer(flow(7, 6_000, 1));
    driver.offer(flow(7, 4_500, 2));
    driver.offer(flow(6, 5_000, 3));
    assert_eq!(order(&mut driver), [1, 2, 3, 0]);
}

#[test]
fn pfabric_drops_the_least_urgent() {
    let mut driver = Driver::new(&from_toml(
        "buffer = { shared = { size = \"2pkts\" } }\nscheduler = \"pfabric\"",
    ));
    let mut offer = |remaining, tag| {
        let packet = Descriptor {
            flow: tag,
            remaining,
            ..packet(0, 1500, tag)
        };
        driver.port.offer(Time::ZERO, packet, &mut driver.pool)
    };
    assert_eq!(offer(50, 0), Offer::Queued);
    assert_eq!(offer(90, 1), Offer::Queued);
    assert_eq!(offer(70, 2), Offer::Queued, "and 1 is given up for it");
    let full = Offer::Dropped(DropReason::PortFull);
    assert_eq!(offer(70, 3), full, "no more urgent than what is there");
    let dropped: Vec<_> = driver
        .port
        .take_dropped()
        .map(|(p, why)| (p.tag, why))
        .collect();
    assert_eq!(
        dropped,
        [(1, DropReason::Evicted), (3, DropReason::PortFull)]
    );
    assert_eq!(order(&mut driver), [0, 2]);
}

#[test]
fn push_out_serves_levels_in_order_and_drops_the_latest_of_the_lowest() {
    let mut driver = Driver::new(&from_toml(
        "buffer = { shared = { size = \"3pkts\" } }\nscheduler = \"push-out\"",
    ));
    let mut offer = |dscp, remaining, tag| {
        let packet = Descriptor {
            flow: tag,
            remaining,
            ..packet(dscp, 1500, tag)
        };
        driver.port.offer(Time::ZERO, packet, &mut driver.pool)
    };
    for tag in 0..2 {
        assert_eq!(offer(7, 9_000, tag), Offer::Queued);
    }
    assert_eq!(offer(3, 9_000, 2), Offer::Queued);
    let full = Offer::Dropped(DropReason::PortFull);
    assert_eq!(offer(7, 1_500, 3), full, "fewer bytes left do not count");
    assert_eq!(offer(3, 9_000, 4), Offer::Queued, "1 is given up for it");
    // An ACK of level 7 goes ahead of data of level 3.
    assert_eq!(offer(7, 0, 5), Offer::Queued, "0 is given up for it");
    assert_eq!(order(&mut driver), [5, 2, 4]);
}

#[test]
fn equal_seeds_give_equal_marks() {
    let marks = |seed, id| {
        let config = config(
            1,
            r#""fifo""#,
            r#"{ red = { min = "1pkt", max = "100pkts", max-probability = 0.5 } }"#,
        );
        let mut port = EgressPort::new(RATE, &config, seed, id).unwrap();
        let mut pool = Pool::unlimited();
        for tag in 0..50 {
            port.offer(Time::ZERO, packet(0, 1500, tag), &mut pool);
        }
        let mut now = Time::ZERO;
        let mut marked = Vec::new();
        while let Transmit::Packet(departure) = port.transmit(now, &mut pool) {
            now = departure.finish;
            marked.push(departure.packet.ecn);
        }
        marked
    };
    assert_eq!(marks(1, 1), marks(1, 1));
    assert_ne!(marks(1, 1), marks(1, 2));
    assert_ne!(marks(1, 1), marks(2, 1));
}
