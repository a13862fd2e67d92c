//! What a flow would take if it were alone.
//!
//! All segments leave back to back at the start, and no window or switch holds them up: full
//! segments follow each other at the pace of the slowest link, and the last one is stored and
//! forwarded at each hop behind the one before it. Each hop adds its propagation delay, each
//! arrival at a host the host's delay. A handshake adds the way of a SYN and back. Where completion
//! is taken at the sender, the ACK's way back is added.
//!
//! Shapers, delayed ACKs and the growth of the window are not part of it: it is the least that any
//! transport could reach on these links.

use shallows_core::units::{Bytes, Time};
use shallows_sim::routing::{NoPath, Router};
use shallows_sim::topology::Fabric;
use shallows_sim::workload::FlowSpec;
use shallows_sim::{Completion, PortSetup, TransportOverride};

use crate::scenario::{Built, Diagnostic, Scenario};

/// Computes ideal flow completion times.
#[derive(Debug)]
pub(crate) struct Ideal<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) router: &'a Router,
    pub(crate) ports: &'a PortSetup,
    /// Bytes of data in a full segment.
    pub(crate) segment: u32,
    /// Bytes that a packet has beyond its data.
    pub(crate) header: u32,
    pub(crate) handshake: Handshake,
    pub(crate) completion: Completion,
}

/// Whether a connection begins with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    None,
    Syn,
}

/// What each flow of a scenario would take alone.
pub(crate) fn fcts(
    scenario: &Scenario,
    built: &Built,
    handshake: Handshake,
    completion: Completion,
) -> Result<Vec<Time>, Diagnostic> {
    let ideal = |(number, flow)| {
        let usual = &scenario.config.transport;
        let transport = TransportOverride::choose(&built.overrides, usual, flow);
        let ideal = Ideal {
            fabric: &built.fabric,
            router: &built.router,
            ports: &built.ports,
            segment: transport.segment,
            header: transport.header,
            handshake,
            completion,
        };
        ideal.fct(number, flow)
    };
    let flows = (0..).zip(&built.workload.flows);
    let fcts: Result<_, _> = flows.map(ideal).collect();
    fcts.map_err(|error| scenario.error("workload", error.to_string()))
}

impl Ideal<'_> {
    /// The ideal completion time of the flow numbered `number`; zero if it does not end by itself.
    pub(crate) fn fct(&self, number: u64, flow: &FlowSpec) -> Result<Time, NoPath> {
        if flow.bytes == FlowSpec::ENDLESS {
            return Ok(Time::ZERO);
        }
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        self.router.path(flow.src, flow.dst, number, &mut forth)?;
        self.router.path(flow.dst, flow.src, number, &mut back)?;
        let mut fct = self.train(&forth, flow.bytes);
        if self.completion == Completion::Sender {
            fct = fct.saturating_add(self.train(&back, 0));
        }
        if self.handshake == Handshake::Syn {
            let handshake = self.train(&forth, 0) + self.train(&back, 0);
            fct = fct.saturating_add(handshake);
        }
        Ok(fct)
    }

    /// From the first bit's departure to the last one's delivery of so many bytes of data.
    fn train(&self, path: &[u32], bytes: u64) -> Time {
        let segment = u64::from(self.segment);
        let full = bytes.saturating_sub(1) / segment;
        let last = (bytes - full * segment) as u32 + self.header;
        let first = self.segment + self.header;

        // When the first and the last of the full segments, and the last segment, are through.
        let (mut first_through, mut last_through) = (Time::ZERO, Time::ZERO);
        let mut slowest = Time::ZERO;
        for &number in path {
            let link = self.fabric.link(number);
            let framing = self.ports.config(self.fabric, number).framing;
            let wire = |packets: u64, size: u32| {
                let bytes = packets.saturating_mul(framing.wire_size(size).into());
                link.rate.transmission_time(Bytes::new(bytes))
            };
            let delay = self.ports.delay(self.fabric, number);
            let mut start = last_through;
            if full > 0 {
                first_through += wire(1, first);
                slowest = slowest.max(wire(full - 1, first));
                start = start.max(first_through.saturating_add(slowest));
                first_through += delay;
            }
            last_through = start.saturating_add(wire(1, last) + delay);
        }
        last_through
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use shallows_core::port::{BufferConfig, Framing, PerIndex, PortConfig};
    use shallows_core::units::Rate;
    use shallows_sim::routing::RoutingConfig;
    use shallows_sim::topology::TopologyConfig;

    use super::*;

    /// Two hosts at 10 Gbps around a link of `uplink`; 1 us a link.
    fn ideal(uplink: Rate, framing: Framing, bytes: u64, completion: Completion) -> Time {
        let us = Time::from_us(1);
        let topology = TopologyConfig::Dumbbell {
            left: 1,
            right: 1,
            rate: Rate::from_gbps(10),
            delay: us,
            uplink_rate: uplink,
            uplink_delay: us,
        };
        let fabric = topology.build().unwrap();
        let port = PortConfig {
            framing,
            ..PortConfig::fifo(BufferConfig::Unlimited)
        };
        let ideal = Ideal {
            router: &Router::new(&fabric, &RoutingConfig::Ecmp, 1).unwrap(),
            fabric: &fabric,
            ports: &PortSetup {
                switches: port.clone(),
                hosts: port,
                special: BTreeMap::new(),
                pool: None,
                host_delay: PerIndex::All(Time::ZERO),
            },
            segment: 1460,
            header: 40,
            handshake: Handshake::None,
            completion,
        };
        let flow = FlowSpec {
            start: Time::ZERO,
            src: 0,
            dst: 1,
            bytes,
            service: 0,
        };
        ideal.fct(0, &flow).unwrap()
    }

    #[test]
    fn one_packet_is_stored_and_forwarded_at_each_hop() {
        let equal = |bytes, completion| {
            ideal(Rate::from_gbps(10), Framing::NONE, bytes, completion).to_string()
        };
        // 3 x (1.2 us + 1 us), and back 3 x (0.032 us + 1 us).
        assert_eq!(equal(1460, Completion::Receiver), "6.6us");
        assert_eq!(equal(1460, Completion::Sender), "9.696us");
        // 1 B of data: 41 B take 32.8 ns.
        assert_eq!(equal(1, Completion::Receiver), "3.0984us");
    }

    #[test]
    fn more_packets_follow_at_the_pace_of_the_slowest_link() {
        let at_receiver = |uplink, bytes| {
            let uplink = Rate::from_gbps(uplink);
            ideal(uplink, Framing::NONE, bytes, Completion::Receiver).to_string()
        };
        // Ten packets: 9 x 1.2 us more than one.
        assert_eq!(at_receiver(10, 14_600), "17.4us");
        // At 1 Gbps a packet takes 12 us: 1.2 + 10 x 12 + 1.2 us and 3 us of propagation.
        assert_eq!(at_receiver(1, 14_600), "125.4us");
        // A short last packet still waits behind a full one at each hop: 1.2 us a hop for the full
        // one, then 32.8 ns at the last hop.
        assert_eq!(at_receiver(10, 1461), "6.6328us");
    }

    #[test]
    fn framing_counts_on_the_wire() {
        let rate = Rate::from_gbps(10);
        // 1500 + 18 + 20 = 1538 B take 1.2304 us a hop.
        assert_eq!(
            ideal(rate, Framing::ETHERNET, 1460, Completion::Receiver).to_string(),
            "6.6912us"
        );
    }
}
