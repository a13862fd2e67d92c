//! The program by itself: the kernel runs it on frames that we make.

use std::thread;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use shallows_core::host::qjump::{EpochClock, Excess};
use shallows_core::units::{Bytes, Time};

use super::attachment::program;
use super::layout::{RawApplication, RawAutomatic};
use super::*;
use crate::qjump::{Allotment, LevelStatus};

const PASS: u32 = u32::MAX;
const DROP: u32 = 2;
/// Offsets in `struct __sk_buff`.
const PRIORITY: usize = 32;
const WIRE_LEN: usize = 160;
const GSO_SEGS: usize = 164;
const GSO_SIZE: usize = 176;
const SK_BUFF: usize = 184;

/// The program with some limits; none, with the reason printed, where the kernel does not take it.
fn limiter(limits: &Limits) -> Option<Object> {
    if let Err(reason) = check_readable() {
        shallows_testing::skipped(&reason.to_string());
        return None;
    }
    limits.validate().unwrap();
    let object = objects::open_qjump().unwrap();
    set_up(&object, limits, &Service::of_guest(), None).unwrap();
    Some(object)
}

fn limits(epoch: Time, levels: &[Option<u64>]) -> Limits {
    let allotment = |bytes: &Option<u64>| match bytes {
        Some(bytes) => Allotment::Bytes(Bytes::new(*bytes)),
        None => Allotment::Unlimited,
    };
    Limits {
        epoch,
        levels: levels.iter().map(allotment).collect(),
        clock: EpochClock::Grid,
        excess: Excess::Drop,
        hold_limit: None,
        dscp: None,
        priority_tag: false,
    }
}

/// Sends a frame through the program: its answer, and the frame afterwards. Level 0 is no level.
fn send(object: &Object, level: u8, wire_len: u32, frame: &[u8]) -> (u32, Vec<u8>) {
    let priority = match level {
        0 => 0,
        level => priority_of(level),
    };
    send_with(object, &[(PRIORITY, priority), (WIRE_LEN, wire_len)], frame)
}

/// Sends a frame with these fields of `struct __sk_buff`.
fn send_with(object: &Object, fields: &[(usize, u32)], frame: &[u8]) -> (u32, Vec<u8>) {
    let mut context = [0; SK_BUFF];
    for &(at, value) in fields {
        context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    let program = program(object, Side::Egress);
    program.run(&context, frame, 1).unwrap()
}

fn level(object: &Object, level: u32) -> LevelStatus {
    let bucket: RawBucket = value(object.map("buckets"), level, LOCK).unwrap();
    bucket.status(now_ns().unwrap())
}

/// An IPv4 frame of so many bytes with this TOS.
fn ipv4(length: usize, tos: u8) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let total = (length - 14) as u16;
    frame[14] = 0x45;
    frame[15] = tos;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = !ones_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// RFC 1071.
fn ones_sum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    ((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// Ten seconds: no test lasts until the second epoch.
const LONG: Time = Time::from_secs(10);

/// A machine that is up for 213 days has more picoseconds than 64 bits count.
#[test]
fn epochs_begin_on_their_grid_however_long_the_machine_is_up() {
    let limits = limits(Time::from_ms(1), &[None]);
    for days in [1, 214, 10_000] {
        let zero = days * 86_400_000_000_000;
        assert_eq!(epoch_start(&limits, zero + 2_345_678), zero + 2_000_000);
    }
}

#[test]
fn a_level_sends_its_bytes_and_no_more() {
    let Some(object) = limiter(&limits(LONG, &[None, Some(372), Some(152)])) else {
        return;
    };
    // 124 B on the wire.
    let frame = ipv4(100, 0);
    for answer in [PASS, PASS, PASS, DROP, DROP] {
        assert_eq!(send(&object, 1, 100, &frame).0, answer);
    }
    // Another level has tokens of its own; a packet beyond its allotment never passes.
    assert_eq!(send(&object, 2, 129, &frame).0, DROP);
    assert_eq!(send(&object, 2, 128, &frame).0, PASS);
    for _ in 0..10 {
        assert_eq!(send(&object, 0, 100, &frame).0, PASS);
    }
    let one = level(&object, 1);
    assert_eq!((one.passed_packets, one.passed_bytes), (3, 372));
    assert_eq!((one.dropped_packets, one.dropped_bytes), (2, 248));
    assert_eq!((one.epochs, one.tokens), (1, Some(0)));
    let zero = level(&object, 0);
    assert_eq!((zero.passed_packets, zero.tokens), (10, None));
}

#[test]
fn after_idle_epochs_there_is_one_allotment() {
    for clock in [EpochClock::Grid, EpochClock::Reanchored] {
        let limits = Limits {
            clock,
            ..limits(LONG, &[None, Some(174)])
        };
        let Some(object) = limiter(&limits) else {
            return;
        };
        let frame = ipv4(100, 0);
        // As if the level had been idle for three epochs and a half.
        let idle_since = now_ns().unwrap().wrapping_sub(35_000_000_000);
        let bucket = RawBucket::new(&limits, 1, idle_since);
        write(object.map("buckets"), 1, &bucket).unwrap();
        assert_eq!(send(&object, 1, 100, &frame).0, PASS);
        assert_eq!(send(&object, 1, 100, &frame).0, DROP, "{clock:?}");
        let bucket: RawBucket = value(object.map("buckets"), 1, LOCK).unwrap();
        assert_eq!(bucket.status(now_ns().unwrap()).epochs, 1);
        // The grid goes on where it was; else the packet has opened the epoch.
        let ends = bucket.epoch_end.wrapping_sub(idle_since);
        match clock {
            EpochClock::Grid => assert_eq!(ends, 40_000_000_000),
            EpochClock::Reanchored => assert!(ends >= 45_000_000_000),
        }
    }
}

#[test]
fn the_level_is_written_into_the_header() {
    let Some(object) = limiter(&limits(LONG, &[None, None, None, None, None, None])) else {
        return;
    };
    // ECT(0) stays; the checksum is right.
    let (_, after) = send(&object, 5, 100, &ipv4(100, 0x02));
    assert_eq!(after[15], 43 << 2 | 0x02);
    assert_eq!(ones_sum(&after[14..34]), 0xFFFF);
    // A number of ours that is no level is the lowest, whatever it says in the header.
    let (_, after) = send(&object, 6, 100, &ipv4(100, 0xB8));
    assert_eq!(after[15], 0);
    assert_eq!(ones_sum(&after[14..34]), 0xFFFF);

    let mut ipv6 = vec![0; 100];
    ipv6[12..14].copy_from_slice(&[0x86, 0xDD]);
    // Traffic class 3, flow label 0x54321.
    ipv6[14..18].copy_from_slice(&[0x60, 0x35, 0x43, 0x21]);
    let (_, after) = send(&object, 5, 100, &ipv6);
    let class = 43 << 2 | 3;
    assert_eq!(
        after[14..18],
        [0x60 | class >> 4, class << 4 | 0x5, 0x43, 0x21]
    );

    let mut tagged = ipv4(100, 0);
    tagged.splice(12..12, [0x81, 0x00, 0x20, 0x64]);
    let (_, after) = send(&object, 5, 104, &tagged);
    assert_eq!(after[14..16], [0xA0, 0x64], "PCP 5, VLAN 100");
    assert_eq!(after[19], 43 << 2);
}

#[test]
fn what_has_no_priority_has_the_level_that_it_carries() {
    let Some(object) = limiter(&limits(LONG, &[None, None, Some(124)])) else {
        return;
    };
    // A reply of the kernel with the TOS of the request: 19 is level 2.
    let (answer, after) = send(&object, 0, 100, &ipv4(100, 19 << 2));
    assert_eq!((answer, after[15]), (PASS, 19 << 2));
    assert_eq!(send(&object, 0, 100, &ipv4(100, 19 << 2)).0, DROP);
    // ARP can carry none.
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    assert_eq!(send(&object, 2, 60, &arp).0, PASS);
    assert_eq!(level(&object, 0).passed_packets, 1);
    assert_eq!(level(&object, 2).passed_packets, 1);
}

#[test]
fn what_programs_and_the_kernel_set_by_themselves_is_no_level() {
    let Some(object) = limiter(&limits(LONG, &[None, Some(84), Some(84)])) else {
        return;
    };
    // ssh's interactive and bulk traffic, minimum cost; with the priorities that the kernel makes
    // of them, and those that a program may set without root.
    for tos in [0x48, 0x20, 0x08, 0x10] {
        for priority in 0..7 {
            let fields = [(PRIORITY, priority), (WIRE_LEN, 1514)];
            let (answer, _) = send_with(&object, &fields, &ipv4(100, tos));
            assert_eq!(answer, PASS, "TOS {tos}, priority {priority}");
        }
    }
    assert_eq!(level(&object, 0).passed_packets, 28);
}

#[test]
fn what_is_charged_is_what_the_wire_carries() {
    let Some(object) = limiter(&limits(LONG, &[None, Some(1_000_000)])) else {
        return;
    };
    let charged = |fields: &[(usize, u32)], frame: &[u8]| {
        let before = level(&object, 1).passed_bytes;
        let fields = [&[(PRIORITY, priority_of(1))], fields].concat();
        assert_eq!(send_with(&object, &fields, frame).0, PASS);
        level(&object, 1).passed_bytes - before
    };
    // Padded to 60 B; preamble, check sequence and gap.
    assert_eq!(charged(&[(WIRE_LEN, 42)], &ipv4(42, 0)), 84);
    assert_eq!(charged(&[(WIRE_LEN, 1514)], &ipv4(1514, 0)), 1538);
    // Three segments of 700 B and one of 400 B, each with 54 B of headers and 24 B more.
    let mut gso = ipv4(54 + 2500, 0);
    (gso[23], gso[46]) = (6, 0x50);
    let fields = [(GSO_SEGS, 4), (GSO_SIZE, 700)];
    assert_eq!(charged(&fields, &gso), 2500 + 4 * 78);
    // As many if a guest does not say so.
    assert_eq!(charged(&fields[1..], &gso), 2500 + 4 * 78);
}

#[test]
fn a_trial_ends_by_itself() {
    let limits = limits(LONG, &[None, Some(84)]);
    let Some(object) = limiter(&limits) else {
        return;
    };
    let frame = ipv4(100, 0);
    assert_eq!(send(&object, 1, 100, &frame).0, DROP);
    let until = now_ns().unwrap();
    set_up(&object, &limits, &Service::of_guest(), Some(until)).unwrap();
    let (answer, after) = send(&object, 1, 100, &frame);
    assert_eq!(
        (answer, after),
        (PASS, frame),
        "as if there were no limiter"
    );
}

#[test]
fn what_can_wait_passes_unless_it_never_fits() {
    let limits = Limits {
        excess: Excess::Hold,
        ..limits(LONG, &[None, Some(124)])
    };
    let Some(object) = limiter(&limits) else {
        return;
    };
    let frame = ipv4(100, 0);
    for _ in 0..3 {
        assert_eq!(send(&object, 1, 100, &frame).0, PASS);
    }
    assert_eq!(send(&object, 1, 101, &frame).0, DROP);
    let one = level(&object, 1);
    assert_eq!((one.passed_packets, one.dropped_packets), (3, 1));
    assert_eq!(one.tokens, Some(0));
}

#[test]
fn untagged_frames_get_a_priority_tag_if_asked_for() {
    let limits = Limits {
        priority_tag: true,
        ..limits(LONG, &[None, None, Some(128)])
    };
    let Some(object) = limiter(&limits) else {
        return;
    };
    // 100 B, the tag, and 24 B.
    let (answer, after) = send(&object, 2, 100, &ipv4(100, 0));
    assert_eq!(answer, PASS);
    // The kernel shows a tag that is not in the frame as if it were not there.
    assert!(after.len() == 100 || after[12..16] == [0x81, 0x00, 0x40, 0x00]);
    assert_eq!(level(&object, 2).passed_bytes, 128);
}

#[test]
fn what_exceeds_a_chosen_level_goes_at_a_lower_one() {
    let Some(object) = limiter(&limits(LONG, &[None, Some(372), Some(152)])) else {
        return;
    };
    let frame = ipv4(100, 0);
    let until_ns = now_ns().unwrap() + 60_000_000_000;
    let choose = |until_ns, round| {
        write(
            object.map("automatic"),
            0,
            &RawAutomatic { until_ns, round },
        )
        .unwrap();
    };
    choose(until_ns, 1);
    // The frame belongs to a socket of this process, which begins at the lowest level.
    assert_eq!(send(&object, 0, 100, &frame).1[15], 0);
    let cgroups: Vec<u64> = object.map("applications").keys().unwrap();
    let [cgroup] = cgroups[..] else {
        panic!("{cgroups:?}");
    };
    object.map("chosen").set(cgroup, &2u32).unwrap();
    // 152 B at level 2, 372 B at level 1, and the rest at level 0.
    for dscp in [19, 11, 11, 11, 0, 0] {
        let (answer, after) = send(&object, 0, 100, &frame);
        assert_eq!((answer, after[15]), (PASS, dscp << 2));
    }
    // A level by hand keeps its rule, and is not the application's.
    assert_eq!(send(&object, 1, 100, &frame).0, DROP);
    let read = || -> RawApplication { object.map("applications").get(cgroup, LOCK).unwrap() };
    let sent = read();
    assert_eq!(
        (sent.packets, sent.bytes, sent.lowered_packets),
        (7, 868, 5)
    );
    assert_eq!((sent.peak_of(1), sent.peak_of(2)), (Some(868), None));
    // The epoch goes on in the next round.
    choose(until_ns, 2);
    send(&object, 0, 100, &frame);
    let sent = read();
    assert_eq!((sent.peak_of(1), sent.peak_of(2)), (Some(868), Some(992)));
    // Nobody chooses any more.
    choose(0, 3);
    assert_eq!(send(&object, 0, 100, &frame).1[15], 0);
    assert_eq!(read().packets, 8);
}

/// Has two CPUs send at level 1 at once, each by `work`.
fn on_two_cpus<T: Send>(object: &Object, work: impl Fn(&Object) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let senders = [0, 1].map(|cpu| {
            let work = &work;
            scope.spawn(move || {
                let mut cpus = CpuSet::new();
                cpus.set(cpu).unwrap();
                // Where there is one CPU only, they take turns on it.
                let _ = sched_setaffinity(Pid::from_raw(0), &cpus);
                work(object)
            })
        });
        senders.map(|sender| sender.join().unwrap()).into()
    })
}

/// Runs the program so many times on a packet of 100 bytes at level 1; the last answer.
fn run(object: &Object, times: u32) -> u32 {
    let mut context = [0; SK_BUFF];
    context[PRIORITY..PRIORITY + 4].copy_from_slice(&priority_of(1).to_ne_bytes());
    let frame = ipv4(100, 11 << 2);
    let program = program(object, Side::Egress);
    program.run(&context, &frame, times).unwrap().0
}

#[test]
fn two_cpus_lose_no_count_and_spend_no_token_twice() {
    // 1,000 packets a millisecond: both CPUs offer many times that.
    let Some(object) = limiter(&limits(Time::from_ms(1), &[None, Some(124_000)])) else {
        return;
    };
    let started = now_ns().unwrap();
    on_two_cpus(&object, |object| run(object, 1_000_000));
    let elapsed = now_ns().unwrap() - started;
    let status = level(&object, 1);
    println!("{status:?} in {elapsed} ns");
    assert_eq!(status.passed_packets + status.dropped_packets, 2_000_000);
    assert!(status.dropped_packets > 0, "the limit was reached");
    assert!(status.passed_bytes <= status.epochs * 124_000);
    assert!(status.epochs <= elapsed / 1_000_000 + 2);
}

#[test]
fn what_two_senders_see_pass_is_within_the_limit() {
    // Counted by the senders, not by the program: 100 packets an epoch of 10 ms.
    let Some(object) = limiter(&limits(Time::from_ms(10), &[None, Some(12_400)])) else {
        return;
    };
    let started = now_ns().unwrap();
    let passed = on_two_cpus(&object, |object| {
        (0..100_000).filter(|_| run(object, 1) == PASS).count() as u64
    });
    let epochs = (now_ns().unwrap() - started) / 10_000_000 + 2;
    println!("{passed:?} passed in at most {epochs} epochs");
    assert!(passed.iter().sum::<u64>() <= 100 * epochs);
    assert!(passed.iter().sum::<u64>() >= 100);
}
