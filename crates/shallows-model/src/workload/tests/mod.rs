mod arrivals;
mod locality;
pub(super) mod mutation;
mod notation;
mod patterns;
mod properties;
mod services;

use shallows_core::units::Rate;

use super::*;
use crate::topology::TopologyConfig;

fn star(hosts: u32) -> Fabric {
    let config = TopologyConfig::Star {
        hosts,
        rate: Rate::from_gbps(10),
        delay: Time::from_us(1),
    };
    config.build().unwrap()
}

fn leaf_spine() -> Fabric {
    let config = TopologyConfig::LeafSpine {
        nics: 1,
        leaves: 12,
        hosts_per_leaf: 12,
        spines: 12,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::from_us(20),
        fabric_rate: Rate::from_gbps(10),
        fabric_delay: Time::from_ns(200),
    };
    config.build().unwrap()
}

fn ear() -> Fabric {
    let config = TopologyConfig::FatTree {
        tiers: 4,
        radix: 6,
        oversubscription: 2,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::from_us(1),
        fabric_rate: Rate::from_gbps(10),
        fabric_delay: Time::from_us(1),
    };
    config.build().unwrap()
}

fn read(text: &str) -> WorkloadConfig {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

fn generate(text: &str, fabric: &Fabric) -> Workload {
    read(text).generate(fabric, 1).unwrap()
}

fn refusal(text: &str, fabric: &Fabric) -> String {
    read(text).generate(fabric, 1).unwrap_err().to_string()
}

fn is_sorted(workload: &Workload) -> bool {
    workload
        .flows
        .as_slice()
        .is_sorted_by_key(|flow| flow.start)
}
