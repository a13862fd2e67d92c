//! Conversations as the workload of a scenario: a list of flows, sizes and load.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use shallows_core::units::Rate;

use super::hosts::{HostMap, ServiceMap};
use super::{Conversation, Traffic, TrafficError};

/// Intervals of the load profile.
const BINS: u64 = 100;

/// Most points of a distribution of sizes.
const MOST_SIZES: usize = 1_000;

/// A flow of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Nanoseconds from the first flow.
    pub start: u64,
    /// Host that sends.
    pub src: u32,
    /// Host that receives.
    pub dst: u32,
    /// Payload.
    pub bytes: u64,
    /// Service.
    pub service: u16,
}

/// Traffic between the hosts of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// In the order of their starts.
    pub flows: Vec<Flow>,
    /// Number of hosts.
    pub hosts: u32,
    /// From the first start to the last sign of a conversation, in nanoseconds.
    pub duration: u64,
    /// Packets of which one was sampled.
    pub sampling: u64,
    /// Notes on what was left out, with reasons.
    pub notes: Vec<String>,
}

/// A service's part of the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceLoad {
    /// Flows.
    pub flows: u64,
    /// Payload.
    pub bytes: u64,
}

impl Workload {
    /// Gives conversations their hosts and services.
    pub fn new(
        traffic: &Traffic,
        hosts: &HostMap,
        services: &ServiceMap,
    ) -> Result<Self, TrafficError> {
        let mut notes = traffic.notes.clone();
        let factor = if traffic.is_corrected {
            1
        } else {
            traffic.sampling
        };
        let (mut outside, mut local) = ((0_u64, 0_u64), 0_u64);
        let mut flows = Vec::new();
        let (mut first, mut last) = (u64::MAX, 0);
        for of in &traffic.conversations {
            let Conversation { tuple, bytes, .. } = of;
            let (Some(src), Some(dst)) = (hosts.host(tuple.src), hosts.host(tuple.dst)) else {
                outside = (outside.0 + 1, outside.1.saturating_add(*bytes));
                continue;
            };
            if src == dst {
                local += 1;
                continue;
            }
            (first, last) = (first.min(of.start), last.max(of.end));
            flows.push(Flow {
                start: of.start,
                src,
                dst,
                bytes: bytes.saturating_mul(factor),
                service: services.service(of),
            });
        }
        if flows.is_empty() {
            let problem = "no conversation is between two of the hosts";
            return Err(TrafficError::new(problem));
        }
        for flow in &mut flows {
            flow.start -= first;
        }
        flows.sort_unstable();
        if outside.0 > 0 {
            let (count, bytes) = outside;
            notes.push(format!(
                "{count} conversations with {bytes} bytes have an end that is not in the map of \
                 hosts, and are left out"
            ));
        }
        if local > 0 {
            notes.push(format!(
                "{local} conversations stay within a host and are left out"
            ));
        }
        Ok(Self {
            flows,
            hosts: hosts.count(),
            duration: last.saturating_sub(first),
            sampling: traffic.sampling,
            notes,
        })
    }

    /// By service.
    pub fn services(&self) -> BTreeMap<u16, ServiceLoad> {
        let mut services: BTreeMap<u16, ServiceLoad> = BTreeMap::new();
        for flow in &self.flows {
            let of = services.entry(flow.service).or_default();
            of.flows += 1;
            of.bytes = of.bytes.saturating_add(flow.bytes);
        }
        services
    }

    /// The share of the hosts' links that bytes take.
    pub fn load(&self, bytes: u64, rate: Rate) -> f64 {
        let seconds = self.duration.max(1) as f64 / 1e9;
        let capacity = rate.bps() as f64 / 8.0 * f64::from(self.hosts);
        bytes as f64 / seconds / capacity
    }

    /// Refuses lists of flows and sizes of sampled traffic: flows of few packets are mostly not in
    /// it, and no factor brings them back.
    pub fn whole_flows(&self) -> Result<(), TrafficError> {
        if self.sampling <= 1 {
            return Ok(());
        }
        let problem = format!(
            "one packet in {} was sampled: loads are corrected for it, but flows of fewer packets are \
             mostly missing, so there is no list of flows and no distribution of sizes; use --sizes \
             with a distribution that you know",
            self.sampling
        );
        Err(TrafficError::new(problem))
    }

    /// A list of flows, as `workload.list` reads it.
    pub fn flows_csv(&self) -> String {
        let mut text = "start_s,src,dst,bytes,service\n".to_owned();
        for flow in &self.flows {
            let (seconds, rest) = (flow.start / 1_000_000_000, flow.start % 1_000_000_000);
            let _ = writeln!(
                text,
                "{seconds}.{rest:09},{},{},{},{}",
                flow.src, flow.dst, flow.bytes, flow.service
            );
        }
        text
    }

    /// The distribution of sizes of a service, as `size.cdf.file` reads it in bytes.
    pub fn sizes_csv(&self, service: u16) -> String {
        let of_service = self.flows.iter().filter(|flow| flow.service == service);
        let mut sizes: Vec<u64> = of_service.map(|flow| flow.bytes).collect();
        sizes.sort_unstable();
        let mut text = "bytes,probability\n".to_owned();
        let count = sizes.len();
        if let Some(least) = sizes.first() {
            let _ = writeln!(text, "{least},0");
        }
        let points = count.min(MOST_SIZES);
        for point in 1..=points {
            let rank = point * count / points;
            let _ = writeln!(text, "{},{}", sizes[rank - 1], point as f64 / points as f64);
        }
        text
    }

    /// Bytes that started in each interval, by service.
    pub fn load_csv(&self) -> String {
        let bin = (self.duration / BINS).max(1);
        let mut bins: BTreeMap<(u64, u16), u64> = BTreeMap::new();
        for flow in &self.flows {
            let bytes = bins.entry((flow.start / bin, flow.service)).or_default();
            *bytes = bytes.saturating_add(flow.bytes);
        }
        let mut text = "start_s,service,bytes\n".to_owned();
        for ((number, service), bytes) in bins {
            let start = (number * bin) as f64 / 1e9;
            let _ = writeln!(text, "{start},{service},{bytes}");
        }
        text
    }

    /// Random arrivals with the load and the sizes of each service, as part of a scenario.
    pub fn poisson_toml(&self, rate: Rate, sizes: Option<&str>) -> String {
        let mut text = format!(
            "# Loads are of {} hosts at {rate}, over {:.6} s.\n",
            self.hosts,
            self.duration as f64 / 1e9
        );
        for (service, of) in self.services() {
            let size = match sizes {
                Some(name) => format!("{name:?}"),
                None => format!("{{ file = \"sizes-{service}.csv\", unit = \"bytes\" }}"),
            };
            let load = self.load(of.bytes, rate);
            let _ = write!(
                text,
                "\n[[workload]]\n[workload.poisson]\nload = {load:.6}\nsize = {{ cdf = {size} }}\n\
                 flows = {}\nservices = {{ fixed = {service} }}\n",
                of.flows
            );
        }
        text
    }
}
