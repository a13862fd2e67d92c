//! Transports of some flows in place of what all others have.

use shallows_core::tcp::TcpConfig;

use crate::workload::FlowSpec;

/// A transport of the flows of some services, from some hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportOverride {
    /// The services; all if there are none.
    pub services: Vec<u16>,
    /// The hosts that send; all if there are none.
    pub hosts: Vec<u32>,
    /// What both ends of their connections speak.
    pub transport: TcpConfig,
}

impl TransportOverride {
    fn covers(&self, flow: &FlowSpec) -> bool {
        (self.services.is_empty() || self.services.contains(&flow.service))
            && (self.hosts.is_empty() || self.hosts.contains(&flow.src))
    }

    /// The transport of a flow: that of the first override that covers it, else `usual`.
    pub fn choose<'a>(
        overrides: &'a [Self],
        usual: &'a TcpConfig,
        flow: &FlowSpec,
    ) -> &'a TcpConfig {
        let found = overrides.iter().find(|transport| transport.covers(flow));
        found.map_or(usual, |found| &found.transport)
    }
}
