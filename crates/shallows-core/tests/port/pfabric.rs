//! pFabric's switch and push-out against a queue that looks at every packet each time.

use proptest::prelude::*;
use shallows_core::packet::Descriptor;
use shallows_core::port::{DropReason, Offer, PortConfig};

use crate::driver::{Driver, packet};

/// Bytes that fit into the buffer.
const BUFFER: u32 = 6000;

#[derive(Clone, Debug)]
enum Operation {
    Offer {
        flow: u64,
        remaining: u64,
        level: usize,
        size: u32,
    },
    Transmit,
}

/// Few flows, ranks and levels, so that many packets are as urgent as others. For some packets there
/// is no room at all.
fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let size =
        prop_oneof![8 => Just(1500), 8 => Just(41), 8 => 40..=1500u32, 1 => Just(BUFFER + 1)];
    let offer = (0..5u64, 0..4u64, 0..3usize, size);
    let operation = prop_oneof![
        3 => offer.prop_map(|(flow, remaining, level, size)| Operation::Offer {
            flow, remaining, level, size
        }),
        2 => Just(Operation::Transmit),
    ];
    prop::collection::vec(operation, 1..400)
}

/// The queue, in order of arrival.
struct Reference {
    rank: fn(&Descriptor) -> u64,
    packets: Vec<Descriptor>,
}

impl Reference {
    fn offer(&mut self, arriving: Descriptor) -> (Offer, Vec<u64>) {
        let mut dropped = Vec::new();
        let bytes = |packets: &[Descriptor]| packets.iter().map(|packet| packet.size).sum::<u32>();
        while bytes(&self.packets) + arriving.size > BUFFER {
            let ranks = self.packets.iter().map(self.rank).enumerate();
            let least_urgent = ranks.max_by_key(|&(_, rank)| rank);
            match least_urgent {
                Some((position, rank)) if rank > (self.rank)(&arriving) => {
                    dropped.push(self.packets.remove(position).tag);
                }
                _ => {
                    dropped.push(arriving.tag);
                    return (Offer::Dropped(DropReason::PortFull), dropped);
                }
            }
        }
        self.packets.push(arriving);
        (Offer::Queued, dropped)
    }

    fn next(&mut self) -> Option<u64> {
        let most_urgent = self
            .packets
            .iter()
            .min_by_key(|packet| (self.rank)(packet))?;
        let flow = most_urgent.flow;
        let first = self.packets.iter().position(|packet| packet.flow == flow)?;
        Some(self.packets.remove(first).tag)
    }
}

fn port(scheduler: &str) -> PortConfig {
    let text =
        format!("buffer = {{ shared = {{ size = \"{BUFFER}B\" }} }}\nscheduler = \"{scheduler}\"");
    toml::from_str(&text).expect("the test's configuration is sound")
}

fn compare(
    scheduler: &str,
    rank: fn(&Descriptor) -> u64,
    operations: Vec<Operation>,
) -> Result<(), TestCaseError> {
    let mut driver = Driver::new(&port(scheduler));
    let mut reference = Reference {
        rank,
        packets: Vec::new(),
    };
    for (tag, operation) in operations.into_iter().enumerate() {
        match operation {
            Operation::Offer {
                flow,
                remaining,
                level,
                size,
            } => {
                let arriving = Descriptor {
                    flow,
                    remaining,
                    ..packet(level, size, tag as u64)
                };
                let outcome = driver.port.offer(driver.now, arriving, &mut driver.pool);
                let dropped = driver.port.take_dropped().map(|(packet, _)| packet.tag);
                prop_assert_eq!((outcome, dropped.collect()), reference.offer(arriving));
            }
            Operation::Transmit => {
                let departure = driver.next();
                prop_assert_eq!(departure.map(|it| it.packet.tag), reference.next());
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pfabric_does_what_looking_at_every_packet_does(operations in operations()) {
        compare("pfabric", |packet| packet.remaining, operations)?;
    }

    #[test]
    fn push_out_does_what_looking_at_every_packet_does(operations in operations()) {
        let rank = |packet: &Descriptor| match packet.remaining {
            0 => 0,
            _ => u64::from(packet.dscp),
        };
        compare("push-out", rank, operations)?;
    }
}
