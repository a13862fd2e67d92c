//! Control agents: their messages as packets and out of band, and agents that are gates.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use shallows_core::control::Agent;
use shallows_core::host::gate::{Gate, Release, Verdict};
use shallows_core::packet::Packet;
use shallows_core::port::{BufferConfig, PortConfig};
use shallows_core::units::Time;
use shallows_model::ids::ids;
use shallows_model::{Carriage, Channel, HostId};
use shallows_sim::{AgentSetup, Control, EngineChoice, FlowOutcome, HostAgent, Ticket};

use crate::udp::RACKS;
use crate::world::{World, flow};

const PAIR: &str = r#"star = { hosts = 2, rate = "1Gbps", delay = "5us" }"#;

/// What agents have seen: when, who, from whom, what.
type Log = Arc<Mutex<Vec<(Time, u32, u32, Vec<u8>)>>>;

/// Answers every message with one byte less, until none are left.
#[derive(Debug)]
struct Counter {
    address: u32,
    outbox: VecDeque<(u32, Vec<u8>)>,
    log: Log,
}

impl Counter {
    fn agent(address: u32, first: Option<(u32, Vec<u8>)>, log: &Log) -> HostAgent {
        HostAgent::Alone(Box::new(Self {
            address,
            outbox: first.into_iter().collect(),
            log: Arc::clone(log),
        }))
    }
}

impl Agent for Counter {
    fn handle(&mut self, now: Time, from: u32, message: &[u8]) {
        let seen = (now, self.address, from, message.to_vec());
        self.log.lock().unwrap().push(seen);
        if let [_, rest @ ..] = message {
            self.outbox.push_back((from, rest.to_vec()));
        }
    }

    fn transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        let (to, message) = self.outbox.pop_front()?;
        buffer.extend(message);
        Some(to)
    }

    fn timeout(&self) -> Option<Time> {
        None
    }

    fn handle_timeout(&mut self, _: Time) {}
}

/// Two agents that count down from three bytes, and a flow to have one.
fn count_down(carriage: Carriage, engine: EngineChoice) -> Vec<(Time, u32, u32, Vec<u8>)> {
    let log = Log::default();
    let agents = [
        Counter::agent(0, Some((1, vec![3, 2, 1])), &log),
        Counter::agent(1, None, &log),
    ];
    let agents = ids().zip(agents);
    let control = Control {
        agents: agents
            .map(|(host, agent)| AgentSetup { host, agent })
            .collect(),
        carriage,
        channels: [(0, 1), (1, 0)]
            .map(|(from, to)| Channel { from, to })
            .to_vec(),
    };
    let flows = vec![flow(Time::from_ms(1), 0, 1, 1)];
    let world = World {
        engine,
        ..World::new(PAIR, "", flows)
    };
    let mut run = world.start_with(control);
    // Control packets are in no flow's books.
    run.finish_lossy();
    drop(run);
    Arc::try_unwrap(log).unwrap().into_inner().unwrap()
}

#[test]
fn messages_are_packets_of_the_fabric() {
    let carriage = Carriage::Fabric {
        dscp: 0,
        header: 122,
    };
    // 125 B take 1 us at 1 Gbps on each of two links of 5 us; each answer has 8 ns less on each.
    let expected = [
        (Time::from_ns(12_000), 1, 0, vec![3, 2, 1]),
        (Time::from_ns(23_984), 0, 1, vec![2, 1]),
        (Time::from_ns(35_952), 1, 0, vec![1]),
        (Time::from_ns(47_904), 0, 1, vec![]),
    ];
    // In layers too, where the first message, at time zero, is all that wakes its host.
    for engine in [EngineChoice::Events, EngineChoice::Layers] {
        assert_eq!(count_down(carriage, engine), expected, "{engine:?}");
    }
}

#[test]
fn messages_out_of_band_take_their_delay() {
    let delay = Time::from_us(40);
    let seen = count_down(Carriage::OutOfBand { delay }, EngineChoice::Automatic);
    let times: Vec<_> = seen.iter().map(|seen| seen.0).collect();
    assert_eq!(times, [1, 2, 3, 4].map(|n| delay * n));
}

/// Holds every packet until a message permits as many as it has bytes, and asks for permission
/// when it holds the first.
#[derive(Debug, Default)]
struct Turnstile {
    held: VecDeque<(Ticket, Option<u32>)>,
    permits: usize,
    asks: bool,
}

impl Gate<Ticket> for Turnstile {
    fn offer(&mut self, _: Time, packet: Ticket, to: Option<u32>) -> Verdict {
        assert!(packet.size() >= 40);
        self.asks |= self.held.is_empty();
        self.held.push_back((packet, to));
        Verdict::Held
    }

    fn release(&mut self, _: Time) -> Release<Ticket> {
        if self.permits == 0 {
            return Release::Idle;
        }
        let Some((packet, to)) = self.held.pop_front() else {
            return Release::Idle;
        };
        self.permits -= 1;
        Release::Packet { packet, to }
    }
}

impl Agent for Turnstile {
    fn handle(&mut self, _: Time, _: u32, message: &[u8]) {
        self.permits += message.len();
        self.asks = self.held.len() > self.permits;
    }

    fn transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        buffer.push(self.held.len() as u8);
        std::mem::take(&mut self.asks).then_some(CONTROLLER)
    }

    fn timeout(&self) -> Option<Time> {
        None
    }

    fn handle_timeout(&mut self, _: Time) {}
}

/// Permits two packets to whoever asks, a while later.
#[derive(Debug, Default)]
struct Controller {
    due: VecDeque<(Time, u32)>,
    now: Time,
}

impl Agent for Controller {
    fn handle(&mut self, now: Time, from: u32, message: &[u8]) {
        assert_eq!(message.len(), 1);
        self.now = now;
        self.due.push_back((now + Time::from_us(3), from));
    }

    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        let &(due, to) = self.due.front()?;
        if due > now {
            return None;
        }
        self.due.pop_front();
        buffer.extend([0; 2]);
        Some(to)
    }

    fn timeout(&self) -> Option<Time> {
        self.due.front().map(|&(due, _)| due)
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
    }
}

/// The address after those of 16 hosts.
const CONTROLLER: u32 = 16;

/// A turnstile at every host, and the controller at host 5 beside its own.
fn turnstiles(carriage: Carriage) -> Control {
    let agent = |host| AgentSetup {
        host,
        agent: HostAgent::Gate(Box::<Turnstile>::default()),
    };
    let mut agents: Vec<_> = (0..CONTROLLER).map(HostId).map(agent).collect();
    agents.push(AgentSetup {
        host: HostId(5),
        agent: HostAgent::Alone(Box::<Controller>::default()),
    });
    let others = (0..CONTROLLER).filter(|&host| host != 5);
    let both = |host| {
        let (to, from) = (CONTROLLER, host);
        [Channel { from, to }, Channel { from: to, to: from }]
    };
    Control {
        agents,
        carriage,
        channels: others.flat_map(both).collect(),
    }
}

/// Outcomes of flows that wait for permission at their hosts, and the hops of their packets.
fn coordinated(engine: EngineChoice, carriage: Carriage, threads: u32) -> (Vec<FlowOutcome>, u64) {
    let flows = (0..24).map(|n: u32| {
        let (src, dst) = (n * 7 % 16, (n * 7 + 3 + n % 9) % 16);
        let start = Time::from_us(20) * u64::from(n);
        flow(start, src, if src == dst { (dst + 1) % 16 } else { dst }, 8)
    });
    let flows = flows.filter(|flow| flow.src != HostId(5) && flow.dst != HostId(5));
    let mut world = World::new(
        RACKS,
        "rto = { minimum = '50ms', initial = '50ms' }",
        flows.collect(),
    );
    world.switches = PortConfig::fifo(BufferConfig::Shared {
        size: "60KB".parse().unwrap(),
    });
    (world.engine, world.threads) = (engine, threads);
    let mut run = world.start_with(turnstiles(carriage));
    run.until(Time::from_ms(40));
    assert_eq!(run.threads(), threads as usize);
    let outcomes: Vec<_> = run.flows().map(|(_, outcome)| outcome).collect();
    assert!(
        outcomes.iter().all(|outcome| outcome.fct.is_some()),
        "{outcomes:?}"
    );
    (outcomes, run.progress().packet_hops)
}

#[test]
fn agents_are_gates_on_any_number_of_threads() {
    let fabric = Carriage::Fabric {
        dscp: 0,
        header: 60,
    };
    let out_of_band = Carriage::OutOfBand {
        delay: Time::from_us(7),
    };
    let slowest = [fabric, out_of_band].map(|carriage| {
        let one = coordinated(EngineChoice::Automatic, carriage, 1);
        for engine in [EngineChoice::Events, EngineChoice::Layers] {
            for threads in [2, 4] {
                assert!(
                    one == coordinated(engine, carriage, threads),
                    "{engine:?} {carriage:?} {threads}"
                );
            }
        }
        one.0.iter().filter_map(|outcome| outcome.fct).max()
    });
    assert!(
        slowest[0] > slowest[1],
        "control packets take longer: {slowest:?}"
    );
}

#[test]
fn a_delay_of_next_to_nothing_keeps_a_run_on_one_thread() {
    let log = Log::default();
    let agent = |host| AgentSetup {
        host: HostId(host),
        agent: Counter::agent(host, Some((1 - host, vec![0; 50])), &log),
    };
    let control = Control {
        agents: (0..2).map(agent).collect(),
        carriage: Carriage::OutOfBand {
            delay: Time::from_ns(1),
        },
        channels: Vec::new(),
    };
    let mut world = World::new(RACKS, "", vec![flow(Time::ZERO, 0, 15, 3)]);
    world.threads = 4;
    let mut run = world.start_with(control);
    assert_eq!(run.threads(), 1);
    run.finish();
    assert_eq!(log.lock().unwrap().len(), 102);
}
