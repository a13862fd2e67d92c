//! Floods the switch with short and with full frames, as root on an otherwise quiet machine.

use std::time::Duration;

use shallows_live::bench::throughput;
use shallows_live::io::IoKind;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for length in [60, 1514] {
        let time = Duration::from_secs(3);
        println!("{}", throughput(IoKind::Packet, length, time)?);
    }
    Ok(())
}
