//! Floods the switch with short and with full frames, as root on an otherwise quiet machine.

use std::time::Duration;

use shallows_live::bench::throughput;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for length in [60, 1514] {
        println!("{}", throughput(length, Duration::from_secs(3))?);
    }
    Ok(())
}
