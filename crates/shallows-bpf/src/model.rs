//! The programs' arithmetic against that of the simulated controllers, over the same ACKs.

use std::collections::VecDeque;

use bytemuck::{Pod, Zeroable};
use shallows_core::packet::Ecn;
use shallows_core::tcp::congestion::{DctcpConfig, DelayDctcpConfig};
use shallows_core::tcp::{ControllerConfig, Receiver, Sender, TcpConfig};
use shallows_core::units::Time;

use crate::Parameters;
use crate::kernel::layout::RawParameters;
use crate::kernel::objects::open_model;
use crate::parameters::fraction;

const SEGMENT: u32 = 1_000;
/// Segments of each message in a round of them; the last of a message is short, unless it is whole.
const MESSAGES: [f64; 5] = [20.0, 0.3, 31.7, 1.1, 2.5];
/// ACKs compared: the program's table has 4,096 places.
const STEPS: usize = 4_000;

/// `struct step` of `model.bpf.c`.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct Step {
    una: u32,
    nxt: u32,
    acked: u32,
    marked: u32,
    delay_us: u32,
    full: u32,
    now_ms: u32,
    alpha: u32,
    reduced: u32,
    cwnd: u32,
    cnt: u32,
}

/// The simulated sender's state after the same ACK.
struct Reference {
    alpha: f64,
    reductions: u64,
}

/// A path that changes from calm to congested and back.
fn marked(segment: usize) -> bool {
    let every = [50, 7, 3, 1_000_000][segment / 250 % 4];
    segment.is_multiple_of(every)
}

/// Short segments take less time, and for some while the path is longer.
fn delay_us(segment: usize, full: bool) -> u32 {
    let wave = (segment % 97) as u32 * 4;
    let path = if full { 58 } else { 10 };
    let longer = if (1_500..2_600).contains(&segment) {
        600
    } else {
        0
    };
    path + longer + if segment % 500 < 200 { wave } else { 0 }
}

/// Runs a simulated sender of messages of different sizes and notes the ACKs that it sees. They
/// start short of the end of the kernel's sequence numbers, so that these wrap.
fn simulate(controller: ControllerConfig, with_delay: bool) -> (Vec<Step>, Vec<Reference>) {
    let config = TcpConfig {
        controller,
        segment: SEGMENT,
        handshake: false,
        ..TcpConfig::default()
    };
    let (mut sender, mut receiver) = (Sender::new(&config), Receiver::new(&config));
    let mut messages = MESSAGES.iter().cycle();
    let start = u32::MAX - 1_000_000;
    let (mut steps, mut references) = (Vec::new(), Vec::new());
    let (mut flight, mut sent, mut nxt) = (VecDeque::new(), 0, 0);
    while steps.len() < STEPS {
        let now_ms = steps.len() as u64 + 1;
        let now = Time::from_ms(now_ms);
        if sender.acked() == sender.written() {
            let segments = messages.next().expect("they come again");
            sender.write(now, (segments * f64::from(SEGMENT)) as u64);
        }
        while let Some(segment) = sender.poll_segment(now) {
            nxt = segment.seq + u64::from(segment.len);
            flight.push_back((sent, segment));
            sent += 1;
        }
        let (number, mut segment) = flight.pop_front().expect("a message was written");
        let full = segment.len >= SEGMENT;
        let ecn = if marked(number) { Ecn::Ce } else { Ecn::Ect0 };
        let delay_us = if with_delay {
            delay_us(number, full)
        } else {
            0
        };
        segment.sent_at = now - Time::from_us(delay_us.into());
        for ack in receiver.on_segment(now, &segment, ecn) {
            let acked = (ack.ack - sender.acked()) as u32;
            steps.push(Step {
                una: start.wrapping_add(ack.ack as u32),
                nxt: start.wrapping_add(nxt as u32),
                acked,
                marked: ack.ece.into(),
                delay_us,
                full: full.into(),
                now_ms: now_ms as u32,
                cwnd: 1_000,
                cnt: 500,
                ..Step::default()
            });
            sender.on_ack(now, &ack);
            references.push(Reference {
                alpha: sender.alpha().expect("it has an alpha"),
                reductions: sender.stats().reductions,
            });
        }
    }
    (steps, references)
}

/// The same ACKs through the kernel's program.
fn run(steps: &mut [Step], parameters: &Parameters) {
    let object = open_model().unwrap();
    let map = object.map("parameters");
    map.set(0u32, &RawParameters::from(parameters)).unwrap();
    let map = object.map("steps");
    for (i, step) in steps.iter().enumerate() {
        map.set(i as u32, step).unwrap();
    }
    // It has no use for the frame.
    let frame = [0; 64];
    let (answer, _) = object.programs()[0]
        .run(&[], &frame, steps.len() as u32)
        .unwrap();
    assert_eq!(answer, 0);
    for (i, step) in steps.iter_mut().enumerate() {
        *step = map.get(i as u32, 0).unwrap();
    }
}

fn compare(controller: ControllerConfig, with_delay: bool, parameters: &Parameters) {
    if let Err(reason) = crate::check() {
        shallows_testing::skip!("{reason}");
    }
    let (mut steps, references) = simulate(controller, with_delay);
    assert_eq!(steps.len(), STEPS);
    let short = steps.iter().filter(|step| step.full == 0).count();
    assert!(short > STEPS / 20, "{short}");
    run(&mut steps, parameters);
    let mut reductions = 0;
    let mut worst: f64 = 0.0;
    for (i, (step, reference)) in steps.iter().zip(&references).enumerate() {
        reductions += u64::from(step.reduced);
        let alpha = fraction(step.alpha);
        worst = worst.max((alpha - reference.alpha).abs());
        assert_eq!(reductions, reference.reductions, "at {i}: {step:?}");
        if step.reduced != 0 {
            // 1000 segments and a half, less alpha / 2 of them.
            let window = f64::from(step.cwnd) + f64::from(step.cnt) / f64::from(step.cwnd);
            let expected = 1_000.5 * (1.0 - reference.alpha / 2.0);
            assert!((window - expected).abs() < 0.01, "{window} for {expected}");
        }
    }
    println!("{reductions} reductions, alpha within {worst:.1e}");
    assert!(reductions > 100);
    assert!(worst < 2e-5, "{worst}");
}

#[test]
fn dctcp_computes_as_the_simulated_one() {
    let config = DctcpConfig::default();
    compare(
        ControllerConfig::Dctcp(config),
        false,
        &Parameters::default(),
    );
}

#[test]
fn ear_computes_as_the_simulated_one() {
    for base_lifetime in [None, Some(Time::from_ms(300))] {
        let config = DelayDctcpConfig {
            g: 0.1,
            initial_alpha: 0.0,
            base_lifetime,
            ..DelayDctcpConfig::default()
        };
        let parameters = Parameters {
            g: config.g,
            initial_alpha: config.initial_alpha,
            base_lifetime,
            ..Parameters::default()
        };
        compare(ControllerConfig::Ear(config), true, &parameters);
    }
}
