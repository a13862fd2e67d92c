//! Keys of live runs only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;
use shallows_model::Forgery;
use shallows_model::workload::HostSet;

/// Programs of live runs, and what such runs need besides. A simulation ignores them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Live {
    /// Programs to run.
    pub commands: Vec<LiveCommand>,
    /// Keys of the scenario that a live run cannot honour and may leave out, such as `completion`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Attacks on XCo.
    #[serde(skip_serializing_if = "LiveXco::is_default")]
    pub xco: LiveXco,
}

/// Attacks on the coordinators of `[hosts.xco]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LiveXco {
    /// A forger without the key that poses as the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forge: Option<Forgery>,
}

impl LiveXco {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A shell command on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LiveCommand {
    /// Host that runs the command.
    pub host: HostSet,
    /// The command line. `{h3}` is the address of host 3, `{netns}` the namespace of the command's
    /// host, `{shallows}` this program.
    pub run: String,
    /// Start time.
    #[serde(default)]
    pub start: Time,
    /// Background service, or a command that the run waits for.
    #[serde(default)]
    pub role: Role,
    /// Time limit.
    #[serde(default = "default_timeout")]
    pub timeout: Time,
    /// Accept the run even if this command fails.
    #[serde(default)]
    pub may_fail: bool,
    /// Run as root instead of the user who called sudo (or nobody).
    #[serde(default)]
    pub as_root: bool,
    /// Run on the machine itself instead of in the host's network namespace `{netns}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Program whose printed latencies become results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<LatencyFormat>,
}

/// Program whose output has latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyFormat {
    /// `ping -D`: `ping` of the application `ping`.
    Ping,
    /// memcached's load generator: `get` and `set` of the application `memcached`.
    Memcaslap,
    /// ptpd's statistics: `offset` of the application `ptpd`, the distance from its master.
    Ptpd,
}

/// Role of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The run waits until it ends.
    #[default]
    Client,
    /// It is terminated at the end of the run.
    Server,
}

fn default_timeout() -> Time {
    Time::from_secs(600)
}
