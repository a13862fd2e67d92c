//! Everything that a run depends on, in either world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shallows_core::tcp::TcpConfig;
use shallows_core::units::Time;

use crate::applications::ApplicationSetup;
use crate::faults::{Fault, LinkChange};
use crate::hosts::HostSetup;
use crate::ids::LinkId;
use crate::ports::PortSetup;
use crate::routing::Router;
use crate::topology::Fabric;
use crate::transport::{Completion, Connections, TransportOverride};
use crate::workload::{FlowSpec, Workload};

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Model {
    /// Hosts, switches and links.
    pub fabric: Fabric,
    /// Paths through the fabric.
    pub router: Router,
    /// Egress ports.
    pub ports: PortSetup,
    /// TCP parameters.
    pub transport: TcpConfig,
    /// TCP parameters of some flows; the first entry that covers a flow counts.
    pub overrides: Vec<TransportOverride>,
    /// Lifetime of connections.
    pub connections: Connections,
    /// End of a flow for its completion time.
    pub completion: Completion,
    /// Host mechanisms before the NIC.
    pub hosts: HostSetup,
    /// Applications.
    pub applications: Vec<ApplicationSetup>,
    /// The flows. They are shared, because they can be most of the memory.
    pub workload: Arc<Workload>,
    /// Faults of links.
    pub faults: BTreeMap<LinkId, Fault>,
    /// Links that go down and come back, in the order of time.
    pub changes: Vec<LinkChange>,
    /// Seed of every random choice.
    pub seed: u64,
    /// End of the run; the end of the last flow if not given.
    pub until: Option<Time>,
}

impl Model {
    /// Returns true if some flows end by themselves: not those that are UDP or last as long as the run.
    pub fn has_finite_flows(&self) -> bool {
        let workload = &self.workload;
        let mut flows = workload.flows.numbered();
        flows.any(|(number, flow)| {
            flow.bytes != FlowSpec::ENDLESS && workload.stream(number).is_none()
        })
    }

    /// The links that may lose packets, each once.
    pub fn faulty_links(&self) -> BTreeSet<LinkId> {
        let changed = self.changes.iter().map(|change| change.link);
        self.faults.keys().copied().chain(changed).collect()
    }
}
