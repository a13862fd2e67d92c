//! Lifetime of connections, ends of flows, and transports of some flows in place of the usual one.

use shallows_core::tcp::TcpConfig;

use crate::ids::HostId;
use crate::workload::Ends;

/// End of a flow for its completion time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Completion {
    /// The sender receives the ACK of the last byte, as in MQ-ECN.
    #[default]
    Sender,
    /// The receiver gets the last byte, as in ML-ECN.
    Receiver,
}

/// Lifetime of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// One connection per flow.
    #[default]
    PerFlow,
    /// Connections last for the whole run. A flow takes the oldest idle connection of its source,
    /// destination and service, with its window and estimates; if all are busy, a new connection is
    /// opened (MQ-ECN's simulations).
    Persistent,
    /// Persistent connections that have sent one full segment over the idle fabric before their
    /// first flow: they know the base delay, and the window has grown by one ACK (EAR's
    /// simulations).
    WarmedUp,
}

/// A transport of the flows of some services, from some hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportOverride {
    /// The services; all if there are none.
    pub services: Vec<u16>,
    /// The hosts that send; all if there are none.
    pub hosts: Vec<HostId>,
    /// Transport parameters of both ends of the connections.
    pub transport: TcpConfig,
}

impl TransportOverride {
    fn covers(&self, flow: Ends) -> bool {
        (self.services.is_empty() || self.services.contains(&flow.service))
            && (self.hosts.is_empty() || self.hosts.contains(&flow.src))
    }

    /// The transport of a flow: that of the first override that covers it, else `usual`.
    pub fn choose<'a>(
        overrides: &'a [Self],
        usual: &'a TcpConfig,
        flow: impl Into<Ends>,
    ) -> &'a TcpConfig {
        let found = Self::position(overrides, flow);
        found.map_or(usual, |found| &overrides[found].transport)
    }

    /// The index of the first override that covers a flow.
    pub fn position(overrides: &[Self], flow: impl Into<Ends>) -> Option<usize> {
        let flow = flow.into();
        overrides.iter().position(|of| of.covers(flow))
    }
}
