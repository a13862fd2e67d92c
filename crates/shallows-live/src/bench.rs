//! Benchmark of the switch: frames per second and CPU time per frame.

use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use shallows_core::units::{Rate, Time};

use crate::experiment::{ExperimentError, HOSTS_NICE, RunningSwitch};
use crate::frame::ETHERNET_HEADER;
use crate::io::{Device, IoKind};
use crate::lab::{self, Cpus, Lab, LabError, LabPlan};
use crate::switch::{Engine, Forwarding, PortPlan, SwitchConfig, SwitchError, set_nice};

/// Faster than any device here, so that the port holds nothing back.
const UNSHAPED: Rate = Rate::from_gbps(1000);

/// Frames handed to the kernel at once.
const BATCH: usize = 32;

/// Frames for the engine's part.
const ENGINE_FRAMES: usize = 6_400 * BATCH;

/// Result for one frame length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Throughput {
    /// Kind of I/O.
    pub io: IoKind,
    /// Length of a frame.
    pub frame_bytes: usize,
    /// Frames a second that left the switch.
    pub frames_per_s: f64,
    /// Share of the frames that came in and found no place.
    pub lost: f64,
    /// Total time of the switch per frame.
    pub total_ns: f64,
    /// Time of it for parsing, forwarding, marking and scheduling.
    pub engine_ns: f64,
    /// The rest: the devices.
    pub io_ns: f64,
}

/// Floods the switch with frames of this length for a while.
pub fn throughput(
    io: IoKind,
    frame_bytes: usize,
    time: Duration,
) -> Result<Throughput, ExperimentError> {
    let engine_ns = engine_cost(frame_bytes)?;
    let cpus = Cpus::split()?;
    let plan = LabPlan {
        hosts: 2,
        mtu: 1500,
        settings: Vec::new(),
        route: Vec::new(),
        cpus: cpus.clone(),
    };
    let flood = || {
        plan.cpus.pin_to_hosts()?;
        set_nice(HOSTS_NICE).map_err(LabError::from)?;
        let lab = Lab::build(&plan)?;
        let switch = RunningSwitch::start(lab.switch(), &config(&cpus, io)?, Vec::new(), None)?;
        let stop = AtomicBool::new(false);
        let (first, last) = thread::scope(|scope| {
            let sender = scope.spawn(|| send(&lab, frame_bytes, &stop));
            thread::sleep(time / 4);
            let first = switch.snapshot();
            thread::sleep(time);
            let last = switch.snapshot();
            stop.store(true, Ordering::Relaxed);
            match sender.join() {
                Ok(result) => result.map(|()| (first, last)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })?;
        switch.stop()?;
        lab.remove();
        let (first, last) = first.zip(last).ok_or(ExperimentError::NoSwitch)?;
        let seconds = last.uptime_s - first.uptime_s;
        let sent = (last.devices[1].1.sent - first.devices[1].1.sent) as f64;
        let came = (last.devices[0].1.frames - first.devices[0].1.frames) as f64;
        let missed = (last.devices[0].1.missed - first.devices[0].1.missed) as f64;
        let total_ns = 1e9 * seconds / sent.max(1.0);
        Ok(Throughput {
            io,
            frame_bytes,
            frames_per_s: sent / seconds,
            lost: 1.0 - sent / (came + missed).max(1.0),
            total_ns,
            engine_ns,
            io_ns: total_ns - engine_ns,
        })
    };
    thread::scope(|scope| match scope.spawn(flood).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// MQ-ECN over DWRR, as in the experiments, with no rate to hold anything back.
fn config(cpus: &Cpus, io: IoKind) -> Result<SwitchConfig, SwitchError> {
    let mut config = SwitchConfig::parse(
        "port = []
        [egress]
        queues = 4
        buffer = { shared = { size = \"300KB\" } }
        scheduler = { dwrr = { quantum = \"1500B\" } }
        marker = { scheme = { mq-ecn = { threshold = \"32KB\" } } }",
    )?;
    let port = |host: usize| PortPlan {
        io,
        stations: vec![lab::station(host).to_string()],
        ..PortPlan::new(lab::port(host), UNSHAPED)
    };
    config.cpu = cpus.switch;
    config.nice = Some(-20);
    config.forwarding = Forwarding::Static;
    config.ports = vec![port(0), port(1)];
    Ok(config)
}

/// An ECN-capable IPv4 packet from host 0 to host 1, of a protocol that nobody listens to.
fn frame(length: usize) -> Vec<u8> {
    let total = (length - ETHERNET_HEADER) as u16;
    let mut frame = [lab::station(1).0, lab::station(0).0].concat();
    frame.extend([0x08, 0x00, 0x45, 0x02]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 253, 0, 0]);
    frame.extend(lab::address(0).octets());
    frame.extend(lab::address(1).octets());
    frame.resize(length, 0);
    frame
}

/// Sends as fast as the kernel takes frames.
fn send(lab: &Lab, length: usize, stop: &AtomicBool) -> Result<(), ExperimentError> {
    let device = lab
        .host(0)
        .enter(|| Device::open(lab::DEVICE, IoKind::Packet))?;
    let mut device = device.map_err(SwitchError::from)?;
    let frame = frame(length);
    while !stop.load(Ordering::Relaxed) {
        device.send(std::iter::repeat_n(&frame[..], BATCH));
    }
    Ok(())
}

/// Nanoseconds that the engine takes for a frame: what the loop does without devices. Frames come
/// in bursts to four queues, so that all of them wait, take turns and pass the threshold.
fn engine_cost(length: usize) -> Result<f64, SwitchError> {
    let cpus = Cpus {
        switch: None,
        hosts: Vec::new(),
    };
    let mut engine = Engine::new(&config(&cpus, IoKind::default())?, 2048)?;
    let frames = [0, 1, 2, 3].map(|dscp| {
        let mut frame = frame(length);
        frame[ETHERNET_HEADER + 1] |= dscp << 2;
        frame
    });
    let mut deliveries = Vec::new();
    let begun = Instant::now();
    for burst in 0..ENGINE_FRAMES / BATCH {
        let now = Time::from_us(burst as u64);
        engine.advance(now, &mut deliveries);
        for delivery in deliveries.drain(..) {
            engine.release(&delivery.frame);
        }
        for number in 0..BATCH {
            // The bench's frames always fit.
            let _ = engine.arrive(now, 0, (&frames[number % frames.len()], &[]));
        }
    }
    Ok(begun.elapsed().as_nanos() as f64 / ENGINE_FRAMES as f64)
}

impl Display for Throughput {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let io = match self.io {
            IoKind::Packet => "AF_PACKET",
            IoKind::Tap => "TAP",
            IoKind::Xdp => "AF_XDP",
        };
        write!(
            f,
            "{io:9} {:>4} B frames: {:>7.0} frames/s, {:>4.0} ns each: {:>4.0} ns for I/O, {:.0} ns \
             for parsing, forwarding, marking and scheduling; {:.1}% lost",
            self.frame_bytes,
            self.frames_per_s,
            self.total_ns,
            self.io_ns,
            self.engine_ns,
            100.0 * self.lost
        )
    }
}
