//! Configuration and counters of a coordinator.

use serde::{Deserialize, Serialize};

use super::SmallBudget;
use crate::port::Framing;
use crate::units::{Bytes, Rate, Time};
use crate::xco::config::{MOST_SMALL_SHARE, OnDemand, Protocol, SettingsError};
use crate::xco::message::MessageCounters;

/// Configuration of a coordinator.
#[derive(Clone, Debug)]
pub struct CoordinatorConfig {
    /// The host's number, which is also its address.
    pub host: u32,
    /// The addresses of the controllers.
    pub controllers: Vec<u32>,
    /// Larger after each restart.
    pub incarnation: u64,
    /// C_x.
    pub rate: Rate,
    /// Framing on the wire.
    pub framing: Framing,
    /// Configuration of the host's gate.
    pub gate: GateConfig,
    /// Budget of small packets; see [`GateConfig::budget`].
    pub budget: SmallBudget,
    /// Times of the protocol.
    pub protocol: Protocol,
    /// Coordination on demand: only of traffic that crosses links near congestion.
    pub on_demand: Option<OnDemand>,
}

/// Parameters of a coordinator's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GateConfig {
    /// Limit of the bytes that a virtual machine, or a host without any, may queue for one
    /// destination host.
    pub queue: Bytes,
    /// Time for which an empty queue keeps its slot.
    pub hysteresis: Time,
    /// Setup time of the queue of a new destination (§4.8: 75 ms).
    pub setup: Time,
    /// Packets up to this size pass without permission, within a budget.
    pub small_packet: Bytes,
    /// Share of each link that small packets of all hosts may use, in percent. Controllers subtract
    /// it from what they permit.
    pub small_share: u32,
    /// A flow that sends at most this much per `small-window` passes without permission.
    pub small_flow: Bytes,
    /// Window of `small-flow`.
    pub small_window: Time,
    /// Packets with this DSCP field pass without permission and without a budget: QJUMP's top level,
    /// whose own limiter keeps it within what the links bear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_dscp: Option<u8>,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self {
            queue: Bytes::new(4_000_000),
            hysteresis: Time::from_us(50),
            setup: Time::ZERO,
            small_packet: Bytes::new(128),
            small_share: 1,
            small_flow: Bytes::ZERO,
            small_window: Time::from_ms(10),
            pass_dscp: None,
        }
    }
}

impl GateConfig {
    /// Refuses a share that would leave too little for permits.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        match self.small_share {
            0..=MOST_SMALL_SHARE => Ok(()),
            share => Err(SettingsError::SmallShare(share)),
        }
    }
}

/// Packets and messages counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoordinatorCounters {
    /// Messages in.
    pub messages: MessageCounters,
    /// Packets that passed without permission, being small.
    pub small: u64,
    /// Small packets that waited for permission, being over the budget.
    pub over_budget: u64,
    /// Packets that found their queue full.
    pub full: u64,
    /// Packets that passed because their destination is unknown.
    pub unknown: u64,
    /// Slots received in time.
    pub slots: u64,
    /// Slots that had ended before they arrived.
    pub late_slots: u64,
    /// Slots given back.
    pub returned: u64,
    /// Times it lost all controllers.
    pub lost_control: u64,
    /// Times its clock went back.
    pub clock_jumps: u64,
}
