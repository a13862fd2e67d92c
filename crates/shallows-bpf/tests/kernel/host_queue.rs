//! What the limiter and the device's queue make of levels together, between two hosts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use shallows_bpf::qjump::verify::{self, Verdict};
use shallows_bpf::qjump::{self, Allotment, Device, Error, Limits, Options, QueueChoice, Side};
use shallows_core::host::qjump::Excess;
use shallows_core::units::{Bytes, Time};
use socket2::SockRef;

use crate::hosts::{Hosts, to};
use crate::lab::within;
use crate::limiter;

/// 12 hosts at 10 Gbps: ptpd at level 2, memcached at level 1.
fn planned() -> Limits {
    Limits {
        epoch: "9.376us".parse().unwrap(),
        levels: vec![
            Allotment::Unlimited,
            Allotment::Bytes(Bytes::new(1538)),
            Allotment::Bytes(Bytes::new(280)),
        ],
        ..limiter::limits()
    }
}

fn apply(hosts: &Hosts, limits: &Limits, queue: QueueChoice) -> Result<qjump::Report, Error> {
    let options = Options {
        queue,
        ..Options::default()
    };
    qjump::apply(&hosts.device(), limits, &options)
}

#[test]
fn the_top_level_does_not_wait_behind_bulk_in_its_own_host() {
    let Some(hosts) = Hosts::new("order") else {
        return;
    };
    for (inside, queue) in [
        (Some("pfifo_fast"), QueueChoice::Keep),
        (None, QueueChoice::Install),
    ] {
        if let Some(inside) = inside {
            hosts.slow(inside);
        }
        let report = apply(&hosts, &planned(), queue).unwrap();
        assert_eq!(report.queue.problem, None);
        assert_eq!(hosts.status().queue, Some(report.queue));
        if inside.is_none() {
            // All of it through one slow class: HTB serves its classes by what they may borrow.
            println!("installed: {:?}", hosts.status().queue);
            qjump::remove(&hosts.device()).unwrap();
            continue;
        }
        for level in [2, 1] {
            let idle = hosts.latencies(level, false);
            let loaded = hosts.latencies(level, true);
            println!(
                "level {level}: idle p50 {:?}, p99 {:?}; next to bulk p50 {:?}, p99 {:?}",
                idle[idle.len() / 2],
                idle[idle.len() * 99 / 100],
                loaded.get(loaded.len() / 2),
                loaded.get(loaded.len() * 99 / 100)
            );
            assert_eq!((idle.len(), loaded.len()), (100, 100), "level {level}");
            // Bulk waits for seconds; without the right band level 2 would too.
            assert!(loaded[50] < Duration::from_millis(20), "{loaded:?}");
        }
        qjump::remove(&hosts.device()).unwrap();
        hosts.tc("qdisc del dev eth0 root");
    }
}

#[test]
fn a_queue_that_serves_no_levels_is_refused() {
    let Some(hosts) = Hosts::new("refuse") else {
        return;
    };
    hosts.slow("pfifo");
    let refused = apply(&hosts, &planned(), QueueChoice::Keep);
    let Err(Error::Queue { qdisc, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(qdisc, "tbf, pfifo");
    let refused = apply(&hosts, &planned(), QueueChoice::Install);
    let Err(error @ Error::Queue { .. }) = refused else {
        panic!("somebody's own qdisc is not replaced: {refused:?}");
    };
    println!("{error}");
    let report = apply(&hosts, &planned(), QueueChoice::Ignore).unwrap();
    assert!(report.queue.problem.is_some());
    let shown = hosts.status().queue.unwrap();
    assert!(shown.problem.is_some(), "{shown}");
}

#[test]
fn ssh_and_scp_are_not_cut_off() {
    let Some(hosts) = Hosts::new("ssh") else {
        return;
    };
    apply(&hosts, &planned(), QueueChoice::Keep).unwrap();
    for tos in [0, 0x48, 0x20, 0x08, 0x10] {
        assert_eq!(hosts.transfer(None, tos, 5000), 5000, "TOS {tos:#x}");
    }
    let status = hosts.status();
    let dropped = status.levels.iter().map(|level| level.dropped_packets);
    assert_eq!(dropped.sum::<u64>(), 0, "{status:?}");
}

/// A sender of datagrams that asks for errors gets ENOBUFS for each that the limiter drops.
#[test]
fn a_sender_that_asks_is_told_of_drops() {
    let Some(hosts) = Hosts::new("told") else {
        return;
    };
    apply(&hosts, &planned(), QueueChoice::Keep).unwrap();
    // Full frames never pass at level 2.
    let deaf = hosts.udp(Some(2));
    deaf.send_to(&[0; 1472], to(7000)).unwrap();
    let asking = hosts.udp(Some(2));
    setsockopt(&asking, sockopt::Ipv4RecvErr, &true).unwrap();
    let error = asking.send_to(&[0; 1472], to(7000)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS));
    asking.send_to(&[0; 100], to(7000)).unwrap();
    assert_eq!(hosts.status().levels[2].dropped_packets, 2);
}

#[test]
fn what_exceeds_a_level_waits_where_the_queue_holds_it() {
    let Some(hosts) = Hosts::new("hold") else {
        return;
    };
    // 15,380 B, ten full frames, in 10 ms: 12.3 Mbps.
    let limits = Limits {
        epoch: Time::from_ms(10),
        levels: vec![
            Allotment::Unlimited,
            Allotment::Bytes(Bytes::new(15_380)),
            Allotment::Bytes(Bytes::new(280)),
        ],
        excess: Excess::Hold,
        hold_limit: Some(Bytes::new(200_000)),
        ..limiter::limits()
    };
    let report = apply(&hosts, &limits, QueueChoice::Keep).unwrap();
    println!("{}", report.queue);
    // A burst of two hundred frames from a small send buffer: the sender is made to wait.
    let receiver = hosts.receive_at(7000);
    let socket = hosts.udp(Some(1));
    SockRef::from(&socket).set_send_buffer_size(1).unwrap();
    let began = Instant::now();
    let received = thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                socket.send_to(&[0; 1472], to(7000)).unwrap();
            }
        });
        let patience = Some(Duration::from_millis(500));
        receiver.set_read_timeout(patience).unwrap();
        let mut packet = [0; 1500];
        (0..200)
            .take_while(|_| receiver.recv(&mut packet).is_ok())
            .count()
    });
    let took = began.elapsed();
    assert_eq!(received, 200);
    // 190 frames after the first burst, ten per epoch.
    assert!(took >= Duration::from_millis(170), "{took:?}");
    // TCP, whose packets of many segments exceed the level's bytes, is cut into frames there.
    let began = Instant::now();
    assert_eq!(hosts.transfer(Some(1), 0, 300_000), 300_000);
    let took = began.elapsed();
    println!("300 kB at 12.3 Mbps took {took:?}");
    assert!(took >= Duration::from_millis(170), "{took:?}");
    let status = hosts.status();
    assert_eq!(status.levels[1].waiting_bytes, Some(0));
    assert_eq!(status.levels[1].dropped_packets, 0, "{status:?}");
    // Full frames never pass at level 2.
    let top = hosts.udp(Some(2));
    top.send_to(&[0; 1472], to(7000)).unwrap();
    assert_eq!(hosts.status().levels[2].dropped_packets, 1);
    // Bulk has no limit.
    assert_eq!(hosts.transfer(None, 0, 30_000_000), 30_000_000);
    qjump::remove(&hosts.device()).unwrap();
    let qdiscs = std::process::Command::new("tc")
        .args(["-n", &hosts.sender, "qdisc", "show", "dev", "eth0"])
        .output()
        .unwrap();
    let qdiscs = String::from_utf8_lossy(&qdiscs.stdout).into_owned();
    assert!(qdiscs.starts_with("qdisc noqueue 0: root"), "{qdiscs}");
}

#[test]
fn large_segments_of_bulk_pass_whole() {
    let Some(hosts) = Hosts::new("gso") else {
        return;
    };
    apply(&hosts, &planned(), QueueChoice::Keep).unwrap();
    let before = hosts.status().levels[0];
    assert_eq!(hosts.transfer(None, 0, 30_000_000), 30_000_000);
    let after = hosts.status().levels[0];
    let packets = after.passed_packets - before.passed_packets;
    let bytes = after.passed_bytes - before.passed_bytes;
    // 20,719 segments of 1,448 B, each of which is charged as a frame of its own.
    assert!(packets < 5000, "{packets} packets");
    assert!(bytes >= 30_000_000 + 20_719 * (66 + 24), "{bytes} bytes");
}

#[test]
fn a_guest_is_limited_where_its_frames_come_in() {
    let Some(hosts) = Hosts::new("guest") else {
        return;
    };
    // The receiver is the hypervisor, and the sender the guest behind its veth.
    let vif = Device {
        netns: Some(hosts.receiver.clone()),
        ..hosts.device()
    };
    let options = Options {
        side: Side::Guest,
        ..Options::default()
    };
    qjump::apply(&vif, &limiter::limits(), &options).unwrap();
    let receiver = hosts.receive_at(7000);
    let guest = hosts.udp(None);
    // The guest marks by DSCP: 19 is level 2, of which 280 B pass in ten seconds.
    SockRef::from(&guest).set_tos_v4(19 << 2).unwrap();
    for _ in 0..5 {
        guest.send_to(&[0; 58], to(7000)).unwrap();
    }
    SockRef::from(&guest).set_tos_v4(0).unwrap();
    for _ in 0..5 {
        guest.send_to(&[0; 1472], to(7000)).unwrap();
    }
    let patience = Some(Duration::from_millis(300));
    receiver.set_read_timeout(patience).unwrap();
    let mut packet = [0; 1500];
    let received = std::iter::from_fn(|| receiver.recv(&mut packet).ok());
    // Two frames of 124 B on the wire, and all without a level.
    assert_eq!(
        received.collect::<Vec<_>>(),
        [58, 58, 1472, 1472, 1472, 1472, 1472]
    );
    let limiters = qjump::status().unwrap();
    let of_guest = limiters.iter().find(|of| of.device == vif).unwrap();
    let two = of_guest.levels[2];
    assert_eq!((two.passed_packets, two.dropped_packets), (2, 3));
    assert_eq!(of_guest.side, Side::Guest);
    let hold = Limits {
        excess: Excess::Hold,
        ..limiter::limits()
    };
    let refused = qjump::apply(&vif, &hold, &options);
    assert!(matches!(refused, Err(Error::GuestsWait)), "{refused:?}");
    qjump::remove(&vif).unwrap();
}

#[test]
fn priority_tags_arrive() {
    let Some(hosts) = Hosts::new("tag") else {
        return;
    };
    let limits = Limits {
        priority_tag: true,
        ..planned()
    };
    apply(&hosts, &limits, QueueChoice::Keep).unwrap();
    // A receiver takes frames of VLAN 0 as if they had no tag.
    assert_eq!(hosts.transfer(None, 0, 100_000), 100_000);
    let receiver = hosts.receive_at(7000);
    let patience = Some(Duration::from_millis(500));
    receiver.set_read_timeout(patience).unwrap();
    hosts.udp(Some(2)).send_to(&[0; 58], to(7000)).unwrap();
    assert_eq!(receiver.recv(&mut [0; 100]).unwrap(), 58);
    // With the four bytes of the tag.
    assert_eq!(hosts.status().levels[2].passed_bytes, 128);
}

#[test]
fn probes_tell_whether_levels_are_served() {
    let Some(hosts) = Hosts::new("verify") else {
        return;
    };
    for (inside, queue) in [
        ("pfifo_fast", QueueChoice::Keep),
        ("pfifo limit 50", QueueChoice::Ignore),
    ] {
        hosts.slow(inside);
        apply(&hosts, &planned(), queue).unwrap();
        let done = AtomicBool::new(false);
        let probed = thread::scope(|scope| {
            scope.spawn(|| {
                within(&hosts.receiver, || {
                    verify::answer(to(7011), &done, || Ok(())).unwrap();
                });
            });
            thread::sleep(Duration::from_millis(100));
            let probed = within(&hosts.sender, || verify::probe(to(7011), 3, 50).unwrap());
            done.store(true, Ordering::Relaxed);
            probed
        });
        println!("{inside}: {probed:?}");
        let expected = match queue {
            QueueChoice::Keep => Verdict::Served,
            _ => Verdict::NotServed(vec![1, 2]),
        };
        assert_eq!(verify::verdict(&probed), expected, "{inside}: {probed:?}");
        qjump::remove(&hosts.device()).unwrap();
        hosts.tc("qdisc del dev eth0 root");
    }
}
