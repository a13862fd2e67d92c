//! One flow or one port, in detail.

use std::collections::BTreeMap;

use serde::Serialize;
use shallows_core::packet::Ecn;
use shallows_core::units::Time;
use shallows_model::{FlowId, LinkId};
use shallows_run::{Observer, Ticks};
use shallows_sim::{CapturedPacket, Content, Simulation};

use super::critical::Timeout;

/// Events of a flow that are listed.
const MOST_EVENTS: usize = 1_000;

/// The life of one flow.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowLife {
    /// Number of the flow.
    pub flow: u32,
    /// Links of its data packets, in order; several paths if packets are sprayed.
    pub path: Vec<String>,
    /// Timeouts, drops and retransmissions in the order of time, at most 1,000.
    pub events: Vec<FlowEvent>,
    /// Marks of its data packets, by port.
    pub marks: BTreeMap<String, u64>,
    /// Congestion window over time.
    pub windows: Vec<WindowAt>,
}

impl FlowLife {
    /// The flow.
    pub(super) fn id(&self) -> FlowId {
        FlowId(self.flow)
    }
}

/// An event in the life of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowEvent {
    /// Time of the event.
    pub time_us: f64,
    /// Description.
    pub event: String,
}

/// The congestion window at an instant.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WindowAt {
    /// Instant.
    pub time_us: f64,
    /// Congestion window.
    pub cwnd_bytes: f64,
}

/// A port in detail.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PortUse {
    /// Name of its link.
    pub port: String,
    /// Packets sent.
    pub packets: u64,
    /// Mean and longest wait of a packet.
    pub mean_wait_us: f64,
    /// See `mean_wait_us`.
    pub longest_wait_us: f64,
    /// Bytes and total wait by service.
    pub services: BTreeMap<u16, ServiceUse>,
    /// The ten flows with most bytes.
    pub flows: Vec<FlowUse>,
}

/// Traffic of one service at a port.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ServiceUse {
    /// Packets sent, ACKs included.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Mean wait of its packets.
    pub mean_wait_us: f64,
}

/// Traffic of one flow at a port.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FlowUse {
    /// Number of the flow.
    pub flow: u32,
    /// Bytes sent.
    pub bytes: u64,
}

pub(super) fn us(time: Time) -> f64 {
    time.ps() as f64 / 1e6
}

/// Follows one flow.
#[derive(Debug)]
pub(super) struct FlowFollower {
    pub(super) life: FlowLife,
    ticks: Ticks,
    /// Packets in flight that are marked already.
    marked: Vec<u32>,
}

impl FlowFollower {
    pub(super) fn new(flow: u32, first: Time, every: Time) -> Self {
        Self {
            life: FlowLife {
                flow,
                ..FlowLife::default()
            },
            ticks: Ticks::new(first, every),
            marked: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, at: Time, event: String) {
        if self.life.events.len() < MOST_EVENTS {
            let time_us = us(at);
            self.life.events.push(FlowEvent { time_us, event });
        }
    }

    pub(super) fn follow(
        &mut self,
        packet: &CapturedPacket,
        timeout: Option<Timeout>,
        (name, from_host, to_host): (&str, bool, bool),
    ) {
        let Content::Segment(segment) = packet.content else {
            return;
        };
        if packet.flow != Some(self.life.id()) {
            return;
        }
        if let Some(Timeout { at, waited }) = timeout {
            self.note(at, format!("timeout after {:.1} us", us(waited)));
        } else if from_host && segment.retransmission {
            self.note(segment.sent_at, format!("byte {} sent again", segment.seq));
        }
        if !self.life.path.iter().any(|link| link == name) {
            self.life.path.push(name.to_owned());
        }
        if packet.ecn == Ecn::Ce && !self.marked.contains(&packet.number) {
            *self.life.marks.entry(name.to_owned()).or_default() += 1;
            self.marked.push(packet.number);
        }
        if to_host || packet.arrival.is_none() {
            self.marked.retain(|&number| number != packet.number);
        }
    }
}

impl Observer for FlowFollower {
    fn next_sample(&self) -> Option<Time> {
        Some(self.ticks.next())
    }

    fn sample(
        &mut self,
        now: Time,
        simulation: &Simulation,
    ) -> Result<shallows_run::Step, shallows_run::Failure> {
        if self.ticks.is_due(now)
            && let Some(sender) = simulation.sender(self.life.id())
        {
            self.life.windows.push(WindowAt {
                time_us: us(now),
                cwnd_bytes: sender.cwnd,
            });
        }
        Ok(shallows_run::Step::Continue)
    }
}

/// Counts the traffic of one port.
#[derive(Debug)]
pub(super) struct PortMeter {
    pub(super) link: LinkId,
    name: String,
    packets: u64,
    longest: Time,
    /// Packets, bytes and total wait by service.
    services: BTreeMap<u16, (u64, u64, Time)>,
    flows: BTreeMap<u32, u64>,
}

impl PortMeter {
    pub(super) fn new(link: LinkId, name: &str) -> Self {
        Self {
            link,
            name: name.to_owned(),
            packets: 0,
            longest: Time::ZERO,
            services: BTreeMap::new(),
            flows: BTreeMap::new(),
        }
    }

    pub(super) fn count(&mut self, packet: &CapturedPacket, service: u16) {
        self.packets += 1;
        self.longest = self.longest.max(packet.sojourn);
        let (packets, bytes, wait) = self.services.entry(service).or_default();
        *packets += 1;
        *bytes += u64::from(packet.size);
        *wait = wait.saturating_add(packet.sojourn);
        let flow = packet.flow.unwrap_or(packet.connection);
        *self.flows.entry(flow.0).or_default() += u64::from(packet.size);
    }

    pub(super) fn finish(self) -> PortUse {
        let mean = |wait: Time, packets: u64| us(wait) / packets.max(1) as f64;
        let total = self.services.values().map(|&(_, _, wait)| wait);
        let total = total.fold(Time::ZERO, Time::saturating_add);
        let mut flows: Vec<_> = self.flows.into_iter().collect();
        flows.sort_by_key(|&(flow, bytes)| (std::cmp::Reverse(bytes), flow));
        let of_service = |(packets, bytes, wait)| ServiceUse {
            packets,
            bytes,
            mean_wait_us: mean(wait, packets),
        };
        PortUse {
            port: self.name,
            packets: self.packets,
            mean_wait_us: mean(total, self.packets),
            longest_wait_us: us(self.longest),
            services: self
                .services
                .into_iter()
                .map(|(service, of)| (service, of_service(of)))
                .collect(),
            flows: flows
                .into_iter()
                .take(10)
                .map(|(flow, bytes)| FlowUse { flow, bytes })
                .collect(),
        }
    }
}
