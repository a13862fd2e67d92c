//! Estimate of a run's memory, compared with this machine's.

use shallows_model::routing::Router;
use shallows_model::topology::Fabric;
use shallows_model::workload::WorkloadConfig;

use super::{Diagnostic, Scenario};
use crate::platform::available_memory;

/// Bytes per flow, from reading the scenario to writing its record.
const FLOW: u64 = 330;
/// Bytes per directed link and its port.
const LINK: u64 = 1_200;
/// Bytes per queue of a port.
const QUEUE: u64 = 210;
/// Tables of routes: what is built, what runs, and what its parts look at.
const ROUTERS: u64 = 3;

/// Lower bound of a run's memory in bytes, without packets in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needed {
    fabric: u64,
    flows: u64,
}

impl Scenario {
    /// Refuses what this machine has no room for.
    pub(super) fn check_memory(&self, fabric: &Fabric, flows: u64) -> Result<(), Diagnostic> {
        let ports = &self.config.ports;
        let special = ports.special.iter().map(|special| special.port.queues);
        let queues = [ports.switch.queues, ports.host().queues];
        // Numbers of queues beyond reason are refused for themselves.
        let most = queues.into_iter().chain(special).max().unwrap_or(1).min(64) as u64;
        let links = fabric.links().len() as u64;
        let needed = Needed {
            fabric: links * (LINK + QUEUE * most) + ROUTERS * Router::table_bytes(fabric),
            flows: flows * FLOW,
        };
        match available_memory() {
            Some(available) if needed.total() > available => Err(self.too_large(needed, available)),
            _ => Ok(()),
        }
    }

    fn too_large(&self, needed: Needed, available: u64) -> Diagnostic {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        let problem = format!(
            "the run would take {:.1} GB of memory ({:.1} GB for the fabric, {:.1} GB for flows) \
             and {:.1} GB are available",
            gb(needed.total()),
            gb(needed.fabric),
            gb(needed.flows),
            gb(available),
        );
        let (path, help) = if needed.fabric > needed.flows {
            (
                "topology",
                "make the fabric smaller, or use a machine with more memory",
            )
        } else {
            ("workload", "use fewer flows, or a machine with more memory")
        };
        self.error(path, problem).help(help)
    }

    /// Number of flows that the scenario states, as far as it does.
    pub(super) fn known_flows(&self) -> u64 {
        let workloads = self.config.workload.0.iter();
        let flows = workloads.map(|workload| match workload {
            WorkloadConfig::Poisson(poisson) => poisson.flows.unwrap_or_default(),
            _ => 0,
        });
        flows.fold(0, u64::saturating_add)
    }
}

impl Needed {
    fn total(self) -> u64 {
        self.fabric + self.flows
    }
}
