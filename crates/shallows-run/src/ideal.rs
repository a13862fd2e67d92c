//! Ideal completion times: the time that each flow would take alone.
//!
//! All segments leave back to back at the start, and no window or switch holds them up: full
//! segments follow each other at the pace of the slowest link, and the last one is stored and
//! forwarded at each hop behind the one before it. Each hop adds its propagation delay, each
//! arrival at a host the host's delay. A handshake adds the way of a SYN and back, unless connections
//! outlast their flows. Where completion
//! is taken at the sender, the way back of the last ACK is added, behind those of all segments
//! before: on a slower way back it may have to wait for them.
//!
//! It is exact to the picosecond. A link rounds the end of a transmission up, and where the next
//! one follows at once it rounds the end of both.
//!
//! Shapers, delayed ACKs and the growth of the window are not part of it: it is the least that a
//! transport with an ACK for each segment could reach on these links.

use shallows_core::units::{Bytes, Rate, Time};
use shallows_model::routing::{NoPath, Router};
use shallows_model::topology::Fabric;
use shallows_model::workload::FlowSpec;
use shallows_model::{Completion, Connections, Interrupt, LinkId, PortSetup, TransportOverride};

use crate::failure::Failure;
use crate::plan::RunPlan;

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

/// Connection setup before the first data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    None,
    Syn,
}

/// Ideal completion time of each flow of a scenario. A flow that opens a connection of its own has
/// the handshake of its transport; most flows find a connection that lasts open already.
pub(crate) fn fcts(
    plan: &RunPlan,
    (connections, completion): (Connections, Completion),
    interrupt: Interrupt<'_>,
) -> Result<Vec<Time>, Failure> {
    let ideal = |(number, flow)| {
        let transport = TransportOverride::choose(&plan.overrides, &plan.transport, flow);
        // RoCE has none.
        let has_handshake = transport.handshake && !transport.is_paced();
        let ideal = Ideal {
            fabric: &plan.fabric,
            router: &plan.router,
            ports: &plan.ports,
            segment: transport.segment,
            header: transport.header,
            handshake: if has_handshake && connections == Connections::PerFlow {
                Handshake::Syn
            } else {
                Handshake::None
            },
            completion,
        };
        ideal.fct(number, flow)
    };
    let flows = &plan.workload.flows;
    let mut fcts = Vec::with_capacity(flows.len());
    for flow in (0..).zip(flows) {
        let is_given_up = interrupt.check_at(fcts.len()).is_err();
        if is_given_up {
            return Err(Failure::NotBegun);
        }
        let fct =
            ideal(flow).map_err(|error| plan.scenario.error("workload", error.to_string()))?;
        fcts.push(fct);
    }
    Ok(fcts)
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
        let segment = u64::from(self.segment);
        let fulls = flow.bytes.saturating_sub(1) / segment;
        let mut train = Train::new(fulls);
        let last = (flow.bytes - fulls * segment) as u32;
        self.pass(&forth, &mut train, self.segment, last);
        if self.completion == Completion::Sender {
            self.pass(&back, &mut train, 0, 0);
        }
        let mut fct = train.last;
        if self.handshake == Handshake::Syn {
            let mut syn = Train::new(0);
            self.pass(&forth, &mut syn, 0, 0);
            self.pass(&back, &mut syn, 0, 0);
            fct = fct.saturating_add(syn.last);
        }
        Ok(fct)
    }

    /// Lets packets with so many bytes of data pass the links of a path.
    fn pass(&self, path: &[LinkId], train: &mut Train, full: u32, last: u32) {
        for &number in path {
            let framing = self.ports.config(self.fabric, number).framing;
            let wire_size = |data: u32| u64::from(framing.wire_size(data + self.header));
            let link = Hop {
                rate: self.fabric.link(number).rate,
                delay: self.ports.delay(self.fabric, number),
                full: wire_size(full),
                last: wire_size(last),
            };
            train.pass(&link);
        }
    }
}

/// Packets of one size and a last one of another, where they have come to.
#[derive(Debug)]
struct Train {
    /// Number of full packets before the last one.
    fulls: u64,
    /// Arrival times of the first and the last full packet, and of the last packet.
    first_full: Time,
    last_full: Time,
    last: Time,
    /// Bytes and rate of the link that has spread them most.
    pace: (u64, Rate),
}

/// A link on the way, with the bytes of packets as it counts them.
#[derive(Debug)]
struct Hop {
    rate: Rate,
    delay: Time,
    full: u64,
    last: u64,
}

impl Train {
    /// All at one place at time zero.
    fn new(fulls: u64) -> Self {
        Self {
            fulls,
            first_full: Time::ZERO,
            last_full: Time::ZERO,
            last: Time::ZERO,
            pace: (0, Rate::from_bps(1)),
        }
    }

    fn pass(&mut self, hop: &Hop) {
        let time = |bytes: u64| hop.rate.transmission_time(Bytes::new(bytes));
        // The bytes that the link sends in one go up to the last of the full packets, and since
        // when.
        let (since, bytes) = if self.is_slowed_by(hop) {
            self.pace = (hop.full, hop.rate);
            (self.first_full, self.fulls.saturating_mul(hop.full))
        } else {
            (
                self.last_full,
                hop.full.min(self.fulls.saturating_mul(hop.full)),
            )
        };
        let busy_until = since.saturating_add(time(bytes));
        self.last = if self.fulls == 0 || self.last > busy_until {
            self.last.saturating_add(time(hop.last))
        } else {
            since.saturating_add(time(bytes.saturating_add(hop.last)))
        };
        self.first_full = self.first_full.saturating_add(time(hop.full));
        self.last_full = busy_until;
        for at in [&mut self.first_full, &mut self.last_full, &mut self.last] {
            *at = at.saturating_add(hop.delay);
        }
    }

    /// Returns whether full packets come as fast as the link can send them, or faster.
    fn is_slowed_by(&self, hop: &Hop) -> bool {
        let (bytes, rate) = self.pace;
        u128::from(hop.full) * u128::from(rate.bps())
            >= u128::from(bytes) * u128::from(hop.rate.bps())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use shallows_core::port::{BufferConfig, Framing, PerIndex, PortConfig};
    use shallows_model::routing::RoutingConfig;
    use shallows_model::topology::TopologyConfig;

    use shallows_model::HostId;

    use super::*;
    use crate::Scenario;

    /// Time that a handshake adds to a flow of service 0 and to one of service 1, which has these
    /// keys of its own.
    fn handshakes(handshake: bool, special: &str) -> [Time; 2] {
        let text = format!(
            r#"
            topology.star = {{ hosts = 2, rate = "10Gbps", delay = "5us" }}
            ports.switch = {{ buffer = "unlimited", scheduler = "fifo" }}
            transport.handshake = {handshake}
            transports = [{{ services = [1], set = {{ {special} }} }}]
            workload.flows = [
                {{ start = "0s", src = 0, dst = 1, size = "1MB", service = 0 }},
                {{ start = "0s", src = 0, dst = 1, size = "1MB", service = 1 }},
            ]
        "#
        );
        let scenario: Scenario = text.parse().unwrap();
        let plan = scenario.build().unwrap();
        let fcts = |connections| {
            let moments = (connections, Completion::Sender);
            fcts(&plan, moments, Interrupt::Never).unwrap()
        };
        let (open, opened) = (fcts(Connections::Persistent), fcts(Connections::PerFlow));
        [0, 1].map(|flow| opened[flow] - open[flow])
    }

    #[test]
    fn a_flow_has_the_handshake_of_its_own_transport() {
        // A SYN and its answer of 40 B take 32 ns and 5 us on each of two links.
        let round_trip = Time::from_ns(4 * 5_032);
        let none = Time::ZERO;
        assert_eq!(handshakes(true, "handshake = false"), [round_trip, none]);
        assert_eq!(handshakes(false, "handshake = true"), [none, round_trip]);
    }

    #[test]
    fn flows_of_roce_have_no_handshake() {
        let [tcp, roce] = handshakes(true, r#"controller = "dcqcn""#);
        assert!(tcp > Time::ZERO);
        assert_eq!(roce, Time::ZERO);
    }

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
                pause: None,
                host_delay: PerIndex::All(Time::ZERO),
            },
            segment: 1460,
            header: 40,
            handshake: Handshake::None,
            completion,
        };
        let flow = FlowSpec {
            start: Time::ZERO,
            src: HostId(0),
            dst: HostId(1),
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

    #[test]
    fn the_last_ack_waits_for_the_one_before_on_a_slow_way_back() {
        // Two segments at 10 Gbps, of 1500 B and 41 B, are at the other end after 1.2 us and after
        // 1.2328 us. Their ACKs of 40 B take 1.6 us each at 200 Mbps: the second waits for the
        // first until 2.8 us, and is back at 4.4 us.
        let mut train = Train::new(1);
        let hop = |rate, full, last| Hop {
            rate,
            delay: Time::ZERO,
            full,
            last,
        };
        train.pass(&hop(Rate::from_gbps(10), 1500, 41));
        assert_eq!(train.last.to_string(), "1.2328us");
        train.pass(&hop(Rate::from_mbps(200), 40, 40));
        assert_eq!(train.last.to_string(), "4.4us");
    }

    #[test]
    fn links_that_follow_at_once_round_once() {
        // At 3 Gbps a byte takes 2666.67 ps: 100 B 266,667 ps, 200 B 533,334, 201 B 536,000.
        let mut train = Train::new(2);
        let hop = Hop {
            rate: Rate::from_gbps(3),
            delay: Time::ZERO,
            full: 100,
            last: 1,
        };
        train.pass(&hop);
        assert_eq!(
            [train.last_full, train.last].map(Time::ps),
            [533_334, 536_000]
        );
        // The next link begins at 266,667 ps and has no gap.
        train.pass(&hop);
        assert_eq!(
            [train.last_full, train.last].map(Time::ps),
            [800_001, 802_667]
        );
    }

    #[test]
    fn lone_flows_on_odd_links_take_exactly_their_ideal_time() {
        let odd = [3_000_000_000, 999_999_937, 1_234_567_891, 10_000_000_000];
        for (case, uplink) in (0..).zip(odd) {
            for (turn, rate) in (case..).zip(odd) {
                let completion = ["sender", "receiver"][turn % 2];
                for bytes in [1, 1460, 1461, 14_601, 100_000, 1_000_003] {
                    lone_flow([rate, uplink], bytes, turn % 3 == 0, completion);
                }
            }
        }
    }

    fn lone_flow(rates: [u64; 2], bytes: u64, handshake: bool, completion: &str) {
        let text = format!(
            "completion = '{completion}'
            [topology.dumbbell]
            left = 1
            right = 1
            rate = '{}bps'
            delay = '1us'
            uplink-rate = '{}bps'
            uplink-delay = '3us'
            [ports]
            switch = {{ buffer = 'unlimited', scheduler = 'fifo', framing = 'ethernet' }}
            host = {{ buffer = 'unlimited', scheduler = 'fifo' }}
            [transport]
            initial-window = 10000
            receive-window = 10000
            handshake = {handshake}
            [workload]
            flows = [{{ src = 0, dst = 1, size = '{bytes}B' }}]",
            rates[0], rates[1],
        );
        let scenario = Scenario::parse(std::path::Path::new("lone.toml"), &text, &[]);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let plan = scenario.build().unwrap_or_else(|error| panic!("{error}"));
        let moments = (plan.connections, scenario.config.completion);
        let ideal = fcts(&plan, moments, Interrupt::Never);
        let mut simulation = plan.simulation(1).unwrap_or_else(|error| panic!("{error}"));
        while simulation.run(Time::MAX, u64::MAX) == shallows_sim::Status::Running {}
        let simulated: Vec<_> = simulation
            .flows()
            .filter_map(|(_, outcome)| outcome.fct)
            .collect();
        assert_eq!(
            simulated,
            ideal.unwrap_or_else(|error| panic!("{error}")),
            "{text}"
        );
    }
}
