//! Schemes from another crate (this one): registered by name, used in a file.

use serde::Deserialize;
use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::marker::{Marking, Needs, Seen};
use shallows_core::port::scheduler::Scheduling;
use shallows_core::port::{
    EgressPort, MarkPoint, MarkReason, Pool, PortConfig, QueueSet, Queues, RoundObserver, Transmit,
};
use shallows_core::registry::Registry;
use shallows_core::tcp::congestion::{AckSample, Control, Window};
use shallows_core::tcp::{EcnEcho, Receiver, Sender, TcpConfig};
use shallows_core::units::{Bytes, Rate, Time};

/// Marks every n-th packet, as it arrives and as it leaves.
#[derive(Debug)]
struct EveryNth {
    n: u32,
    seen: u32,
}

impl EveryNth {
    fn count(&mut self) -> Option<MarkReason> {
        self.seen += 1;
        self.seen
            .is_multiple_of(self.n)
            .then_some(MarkReason::Probability)
    }
}

impl Marking for EveryNth {
    fn needs(&self) -> Needs {
        Needs {
            dequeue: true,
            service: false,
        }
    }

    fn at_dequeue(
        &mut self,
        _: MarkPoint,
        _: Seen,
        _: &Queues,
        _: Time,
        _: bool,
    ) -> Option<MarkReason> {
        self.count()
    }
}

/// Serves the longest queue.
#[derive(Debug)]
struct LongestFirst;

impl Scheduling for LongestFirst {
    fn select(
        &mut self,
        _: Time,
        ready: QueueSet,
        queues: &Queues,
        _: &mut dyn RoundObserver,
    ) -> Option<usize> {
        ready.iter().max_by_key(|&queue| queues.queue_bytes(queue))
    }
}

/// Keeps the initial window for ever.
#[derive(Debug)]
struct Still;

impl Control for Still {
    fn grow(&mut self, _: &mut Window, _: &AckSample) {}
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.marker("every-nth", |parameters, port| {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Config {
            n: u32,
        }
        assert_eq!(port.queues(), 3);
        let Config { n } = parameters.read()?;
        Ok(Box::new(EveryNth { n, seen: 0 }))
    });
    registry.scheduler("longest-first", |_, _| Ok(Box::new(LongestFirst)));
    registry.controller("still", EcnEcho::Precise, |_, _| Ok(Box::new(Still)));
    registry
}

const PORT: &str = r#"
    queues = 3
    buffer = "unlimited"
    scheduler = "longest-first"
    marker = { scheme = { every-nth = { n = 2 } } }
"#;

#[test]
fn a_port_is_built_of_custom_schemes() {
    let mut config: PortConfig = toml::from_str(PORT).unwrap();
    registry().resolve_port(&mut config).unwrap();
    let mut port = EgressPort::new(Rate::from_gbps(10), &config, 1, 1).unwrap();
    let mut pool = Pool::unlimited();
    for (queue, packets) in [(0, 1), (1, 3), (2, 2)] {
        for _ in 0..packets {
            let packet = Descriptor {
                size: 1500,
                dscp: queue,
                ecn: Ecn::Ect0,
                ..Descriptor::default()
            };
            port.offer(Time::ZERO, packet, &mut pool);
        }
    }
    let mut sent = Vec::new();
    while let Transmit::Packet(departure) = port.transmit(port.busy_until(), &mut pool) {
        sent.push((departure.queue, departure.packet.ecn == Ecn::Ce));
    }
    // Of equally long queues the last one: 3 in queue 1, then 2 and 2, and so on.
    let queues: Vec<_> = sent.iter().map(|(queue, _)| *queue).collect();
    assert_eq!(queues, [1, 2, 1, 2, 1, 0]);
    let marked: Vec<_> = sent.iter().map(|(_, marked)| *marked).collect();
    assert_eq!(marked, [false, true, false, true, false, true]);
    assert_eq!(port.counters(2).marks(MarkReason::Probability), 2);
}

#[test]
fn a_custom_scheme_prints_back() {
    let config: PortConfig = toml::from_str(PORT).unwrap();
    let printed = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<PortConfig>(&printed).unwrap(), config);
}

#[test]
fn a_sender_has_a_custom_controller() {
    let mut config: TcpConfig = toml::from_str("controller = \"still\"").unwrap();
    assert!(config.validate().is_err(), "nobody knows the name yet");
    registry().resolve_transport(&mut config).unwrap();
    config.validate().unwrap();
    assert_eq!(config.echo(), EcnEcho::Precise);
    let (mut sender, mut receiver) = (Sender::new(&config), Receiver::new(&config));
    sender.write(Time::ZERO, 1_000_000);
    let segment = sender.poll_segment(Time::ZERO).expect("the window is open");
    let later = Time::from_us(50);
    for ack in receiver.on_segment(later, &segment, Ecn::Ect0) {
        sender.on_ack(later, &ack);
    }
    assert_eq!(sender.acked(), 1460);
    assert_eq!(sender.cwnd_bytes(), 14_600.0, "ten segments, and no more");
}

#[test]
fn mistakes_are_named() {
    let resolve = |text: &str| {
        let mut config: PortConfig = toml::from_str(text).map_err(|e| e.to_string())?;
        registry()
            .resolve_port(&mut config)
            .map_err(|error| error.to_string())?;
        EgressPort::<Descriptor>::new(Rate::from_gbps(10), &config, 1, 1)
            .map(|port| Bytes::new(u64::from(port.packets())))
            .map_err(|error| error.to_string())
    };
    let unknown = resolve(&PORT.replace("every-nth", "every-third")).unwrap_err();
    assert!(unknown.starts_with("unknown marker `every-third`, expected one of `none`"));
    assert!(unknown.ends_with("`demepro`, `every-nth`"), "{unknown}");
    let parameter = resolve(&PORT.replace("n = 2", "m = 2")).unwrap_err();
    assert!(parameter.contains("unknown field `m`"), "{parameter}");
}
