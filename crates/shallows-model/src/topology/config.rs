//! A fabric as written in a scenario.

use serde::{Deserialize, Serialize};
use shallows_core::units::{Rate, Time};

use super::build::{self, Cabling};
use super::{Cable, Fabric, LONGEST_DELAY, Nodes, TopologyError, custom};

/// The shape of a fabric. Delays are propagation delays of one direction of a link.
///
/// ```
/// # use shallows_model::topology::TopologyConfig;
/// # #[derive(serde::Deserialize)] struct Scenario { topology: TopologyConfig }
/// let scenario: Scenario = toml::from_str(
///     r#"
///     [topology.leaf-spine]
///     leaves = 12
///     hosts-per-leaf = 12
///     spines = 12
///     host-rate = "10Gbps"
///     host-delay = "20.2us"
///     fabric-rate = "10Gbps"
///     fabric-delay = "0.2us"
///     "#,
/// )?;
/// assert_eq!(scenario.topology.build().unwrap().hosts(), 144);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum TopologyConfig {
    /// One switch, `switch0`.
    Star {
        /// Hosts.
        hosts: u32,
        /// Rate of every link.
        rate: Rate,
        /// Delay of every link.
        delay: Time,
    },
    /// Two switches, `switch0` and `switch1`, and an uplink of a speed of its own (XCo Fig. 1b: 13
    /// hosts at 1 Gbps on each side of 10 Gbps; Fig. 5: 2 hosts on each side of 1 Gbps).
    Dumbbell {
        /// Hosts of the first switch; they have the lowest numbers.
        left: u32,
        /// Hosts at the second switch.
        right: u32,
        /// Rate of host links.
        rate: Rate,
        /// Delay of host links.
        delay: Time,
        /// Rate of the link between the switches.
        uplink_rate: Rate,
        /// Delay of the link between the switches.
        uplink_delay: Time,
    },
    /// Switches in a row, `switch0`, `switch1` and so on. EAR Fig. 9 has four: its flow F1 from the
    /// first to the last shares R1-R2 with F2 and R3-R4 with F3, which `hosts = [2, 1, 1, 2]` has
    /// room for.
    Chain {
        /// Hosts at each switch, one number for each switch.
        hosts: Vec<u32>,
        /// Rate of host links.
        rate: Rate,
        /// Delay of host links.
        delay: Time,
        /// Rate of links between switches.
        uplink_rate: Rate,
        /// Delay of links between switches.
        uplink_delay: Time,
    },
    /// Every leaf has a link to every spine: `leaf0`, `spine0`.
    LeafSpine {
        /// Leaves.
        leaves: u32,
        /// Hosts at each leaf.
        hosts_per_leaf: u32,
        /// Spines.
        spines: u32,
        /// NICs of each host. Leaves are in groups of this many, and a host has a link to each leaf of
        /// its group, the first to its own. Flows choose among NICs as among equally short paths.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        nics: u32,
        /// Rate of host links.
        host_rate: Rate,
        /// Delay of host links.
        host_delay: Time,
        /// Rate of links between leaves and spines.
        fabric_rate: Rate,
        /// Delay of links between leaves and spines.
        fabric_delay: Time,
    },
    /// A folded Clos of switches with `radix` ports, half of them up and half down but for the top
    /// tier, which has all of them down: `edge0`, `agg0`, with four tiers `upper0`, and `core0`.
    FatTree {
        /// Tiers of switches: 3 or 4.
        tiers: u32,
        /// Ports of a switch.
        radix: u32,
        /// Hosts for each uplink of an edge switch: 2 in EAR §4.2. Edge switches have as many more
        /// ports.
        #[serde(default = "one")]
        oversubscription: u32,
        /// Rate of host links.
        host_rate: Rate,
        /// Delay of host links.
        host_delay: Time,
        /// Rate of links between switches.
        fabric_rate: Rate,
        /// Delay of links between switches.
        fabric_delay: Time,
    },
    /// Any fabric, cable by cable.
    Custom {
        /// Number of hosts (`h0`, `h1`, ...), or their names.
        hosts: Nodes,
        /// Number of switches (`s0`, `s1`, ...), or their names.
        switches: Nodes,
        /// The cables.
        links: Vec<Cable>,
    },
}

impl TopologyConfig {
    /// The fabric.
    pub fn build(&self) -> Result<Fabric, TopologyError> {
        let fabric = self.lay_out()?;
        let mut delays = fabric.links().iter().map(|link| link.propagation);
        match delays.find(|delay| *delay > LONGEST_DELAY) {
            Some(delay) => Err(TopologyError::Delay(delay)),
            None => Ok(fabric),
        }
    }

    fn lay_out(&self) -> Result<Fabric, TopologyError> {
        match *self {
            Self::Star { hosts, rate, delay } => {
                let cabling = Cabling::uniform(rate, delay)?;
                build::chain(&[hosts], cabling)
            }
            Self::Dumbbell {
                left,
                right,
                rate,
                delay,
                uplink_rate,
                uplink_delay,
            } => {
                let cabling = Cabling::new(rate, delay, uplink_rate, uplink_delay)?;
                build::chain(&[left, right], cabling)
            }
            Self::Chain {
                ref hosts,
                rate,
                delay,
                uplink_rate,
                uplink_delay,
            } => {
                let cabling = Cabling::new(rate, delay, uplink_rate, uplink_delay)?;
                build::chain(hosts, cabling)
            }
            Self::LeafSpine {
                leaves,
                hosts_per_leaf,
                spines,
                nics,
                host_rate,
                host_delay,
                fabric_rate,
                fabric_delay,
            } => {
                let cabling = Cabling::new(host_rate, host_delay, fabric_rate, fabric_delay)?;
                build::leaf_spine((leaves, nics), hosts_per_leaf, spines, cabling)
            }
            Self::FatTree {
                tiers,
                radix,
                oversubscription,
                host_rate,
                host_delay,
                fabric_rate,
                fabric_delay,
            } => {
                let cabling = Cabling::new(host_rate, host_delay, fabric_rate, fabric_delay)?;
                build::fat_tree(tiers, radix, oversubscription, cabling)
            }
            Self::Custom {
                ref hosts,
                ref switches,
                ref links,
            } => custom::build(hosts, switches, links),
        }
    }
}

fn one() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_one(count: &u32) -> bool {
    *count == 1
}
