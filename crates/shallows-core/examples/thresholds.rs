//! What MQ-ECN makes of a threshold of 65 packets as queues become busy.
//!
//! Drives a 10 Gbps port of eight equal DWRR queues, keeps 1 to 8 of them backlogged, and prints
//! the marking threshold that each settles at, beside the two static choices of MQ-ECN §2 and the
//! queueing delay that they allow.

use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::{EgressPort, Pool, PortConfig, Transmit};
use shallows_core::units::{Rate, Time};

const RATE: Rate = Rate::from_gbps(10);
const PACKET: u32 = 1500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config: PortConfig = toml::from_str(
        r#"
        queues = 8
        buffer = "unlimited"
        scheduler = { dwrr = { quantum = "1500B" } }
        marker = { scheme = { mq-ecn = { threshold = "65pkts" } } }
        "#,
    )?;
    println!("10 Gbps, 8 equal DWRR queues, K = 65 packets");
    println!(
        "threshold of a busy queue in packets, and delay when all busy queues are full to it\n"
    );
    println!("busy queues      MQ-ECN          standard (eq. 1)    minimum (eq. 2)");
    for busy in 1..=8 {
        let mq_ecn = settled_threshold(&config, busy)?;
        let cell = |packets: f64| {
            let delay = packets * busy as f64 * f64::from(PACKET) * 8.0 / RATE.bps() as f64 * 1e6;
            format!("{packets:6.2} {delay:6.1} us")
        };
        println!(
            "{busy:>11}  {}   {}   {}",
            cell(mq_ecn),
            cell(65.0),
            cell(65.0 / 8.0)
        );
    }
    Ok(())
}

/// The threshold in packets after `busy` queues have been backlogged for 50 rounds.
fn settled_threshold(config: &PortConfig, busy: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut port = EgressPort::new(RATE, config, 1, 1)?;
    let mut pool = Pool::unlimited();
    let packet = |queue: usize| Descriptor {
        size: PACKET,
        dscp: queue as u8,
        ecn: Ecn::Ect0,
        ..Descriptor::default()
    };
    for queue in 0..busy {
        for _ in 0..2 {
            port.offer(Time::ZERO, packet(queue), &mut pool);
        }
    }
    for _ in 0..50 * busy {
        let now = port.busy_until();
        if let Transmit::Packet(departure) = port.transmit(now, &mut pool) {
            port.offer(now, packet(departure.queue), &mut pool);
        }
    }
    let bytes = port.threshold(0).ok_or("mq-ecn always has a threshold")?;
    Ok(bytes / f64::from(PACKET))
}
