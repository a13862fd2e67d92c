//! What only live runs have.

use serde::{Deserialize, Serialize};
use shallows_core::units::Time;
use shallows_sim::workload::HostSet;

/// Pings and programs beside the flows. A simulation passes over them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Live {
    /// Round-trip times to measure.
    pub(crate) probes: Vec<Probe>,
    /// Programs to run.
    pub(crate) commands: Vec<LiveCommand>,
}

/// ICMP echo requests from one host to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Probe {
    /// The host that asks.
    pub(crate) from: HostSet,
    /// The host that answers.
    pub(crate) to: HostSet,
    /// The service whose queue they wait in.
    #[serde(default)]
    pub(crate) service: u16,
    /// From one to the next.
    #[serde(default = "default_every")]
    pub(crate) every: Time,
}

/// A line for the shell at a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct LiveCommand {
    /// Where.
    pub(crate) host: HostSet,
    /// The line; `{h3}` is the address of host 3.
    pub(crate) run: String,
    /// When.
    #[serde(default)]
    pub(crate) start: Time,
    /// Whether the run lasts until it ends.
    #[serde(default)]
    pub(crate) role: Role,
}

/// Whether a program ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// It does, and the run waits for it.
    #[default]
    Client,
    /// It does not, and is terminated with the run.
    Server,
}

fn default_every() -> Time {
    Time::from_ms(10)
}
