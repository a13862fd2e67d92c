//! What only live runs have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;
use shallows_sim::workload::HostSet;

/// Pings and programs beside the flows. A simulation passes over them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Live {
    /// Round-trip times to measure.
    pub probes: Vec<Probe>,
    /// Programs to run.
    pub commands: Vec<LiveCommand>,
    /// What becomes of XCo's controllers.
    #[serde(skip_serializing_if = "LiveXco::is_default")]
    pub xco: LiveXco,
}

/// Standbys, faults and forgery beside `[hosts.xco]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LiveXco {
    /// Controllers that stand by, each in a namespace of its own.
    pub standbys: usize,
    /// What happens to controllers.
    pub faults: Vec<LiveFault>,
    /// Somebody without the key who wants to be taken for the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forge: Option<LiveForgery>,
}

impl LiveXco {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Something that happens to a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LiveFault {
    /// When.
    pub at: Time,
    /// Which one: 0 is the first, those after it stand by.
    pub controller: usize,
    /// What.
    pub action: FaultAction,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultAction {
    /// It ends without a word.
    Kill,
    /// It is started again.
    Start,
}

/// Directives without the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LiveForgery {
    /// The host that is to believe them.
    pub victim: u32,
    /// When it begins.
    pub start: Time,
    /// When it ends.
    pub stop: Time,
    /// From one attempt to the next.
    #[serde(default = "default_every")]
    pub every: Time,
}

/// ICMP echo requests from one host to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Probe {
    /// The host that asks.
    pub from: HostSet,
    /// The host that answers.
    pub to: HostSet,
    /// The service whose queue they wait in.
    #[serde(default)]
    pub service: u16,
    /// From one to the next.
    #[serde(default = "default_every")]
    pub every: Time,
}

/// A line for the shell at a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LiveCommand {
    /// Where.
    pub host: HostSet,
    /// The line; `{h3}` is the address of host 3, `{netns}` the namespace of its own host,
    /// `{shallows}` this program.
    pub run: String,
    /// When.
    #[serde(default)]
    pub start: Time,
    /// Whether the run lasts until it ends.
    #[serde(default)]
    pub role: Role,
    /// How long it may take.
    #[serde(default = "default_timeout")]
    pub timeout: Time,
    /// Whether the run may go on and count if it fails.
    #[serde(default)]
    pub may_fail: bool,
    /// Whether it runs as root, and not as the user who called sudo or as nobody.
    #[serde(default)]
    pub as_root: bool,
    /// Whether it runs on the machine itself, and not in the host's network namespace `{netns}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// The program whose latencies the record takes from what the line prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<LatencyFormat>,
}

/// A program that prints latencies.
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

/// Whether a program ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It does, and the run waits for it.
    #[default]
    Client,
    /// It does not, and is terminated with the run.
    Server,
}

fn default_timeout() -> Time {
    Time::from_secs(600)
}

fn default_every() -> Time {
    Time::from_ms(10)
}
