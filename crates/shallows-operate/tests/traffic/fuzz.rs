//! Sources with mistakes: an error or some traffic, never a panic.
//!
//! The mistakes come from a seed, so that a run repeats; `SHALLOWS_FUZZ_CASES=1000000` makes a
//! million of them.

use std::env;

use shallows_core::units::Rate;
use shallows_operate::traffic::{Format, HostMap, IDLE, ServiceMap, Workload, read};

use crate::build;
use crate::{RECORDS, data};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

const EDGES: [u8; 8] = [0, 1, 4, 0x7f, 0x80, 0xff, b'\t', b'9'];

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] = EDGES[random.below(EDGES.len())],
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, EDGES[random.below(EDGES.len())]),
            _ => {
                let end = (at + 1 + random.below(16)).min(bytes.len());
                let copied = bytes[at..end].to_vec();
                let place = random.below(bytes.len());
                bytes.splice(place..place, copied);
            }
        }
    }
}

#[test]
fn malformed_sources_never_crash() {
    let packets: Vec<_> = (0..8)
        .map(|i| data(i * 10, i as u32 * 1000, 1000))
        .collect();
    let frames = build::capture(&packets);
    let sources = [
        build::pcapng(&frames),
        build::pcap(&frames),
        build::ipfix(&RECORDS, Some(100)),
        build::v9(&RECORDS),
        build::sflow(&packets, 400),
        build::CONN_LOG.as_bytes().to_vec(),
        build::CONN_JSON.as_bytes().to_vec(),
        build::SS_LOG.as_bytes().to_vec(),
        b"prefix,host\n10.0.0.0/8,0-7\n::/0,9\n".to_vec(),
    ];
    let formats = [
        None,
        Some(Format::Capture),
        Some(Format::Netflow),
        Some(Format::Sflow),
        Some(Format::Zeek),
        Some(Format::Ss),
    ];
    let cases = env::var("SHALLOWS_FUZZ_CASES").ok();
    let cases: u64 = cases.and_then(|cases| cases.parse().ok()).unwrap_or(20_000);
    let mut random = Random(1);
    let (mut accepted, mut refused) = (0_u64, 0_u64);
    for _ in 0..cases {
        let mut source = sources[random.below(sources.len())].clone();
        mutate(&mut source, &mut random);
        let map = String::from_utf8_lossy(&source);
        let _ = HostMap::parse(&map).map(|map| HostMap::parse(&map.to_csv()).expect("its own"));
        let _ = ServiceMap::parse(&map);
        let format = if random.below(2) == 0 {
            None
        } else {
            formats[random.below(formats.len())]
        };
        let Ok(traffic) = read(&source, format, IDLE) else {
            refused += 1;
            continue;
        };
        accepted += 1;
        let hosts = HostMap::of_addresses(&traffic.conversations);
        if let Ok(workload) = Workload::new(&traffic, &hosts, &ServiceMap::default()) {
            let _ = (workload.flows_csv(), workload.load_csv());
            let _ = workload.poisson_toml(Rate::from_gbps(25), None);
            let _ = workload.sizes_csv(0);
        }
    }
    println!("{cases} mutated sources: {accepted} read, {refused} refused, no crash");
    assert!(accepted > cases / 10 && refused > cases / 10);
}
