//! Configuration and counters of a controller.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rates::LEASE;
use crate::units::{Rate, Time};
use crate::xco::config::{MOST_SMALL_SHARE, OnDemand, Protocol, SettingsError};
use crate::xco::fabric::CoordinatedFabric;
use crate::xco::message::MessageCounters;
use crate::xco::schedule::Timing;

/// The largest weight of a host.
pub const MOST_WEIGHT: u32 = 16;

/// Configuration of a controller.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Its own address.
    pub address: u32,
    /// The addresses of the other controllers of the same hosts.
    pub peers: Vec<u32>,
    /// Larger after each restart.
    pub incarnation: u64,
    /// Form of directives.
    pub directives: Directives,
    /// The length of a timeslice, or how long a rate limit holds: 2 or 10 ms in the paper.
    pub slot: Time,
    /// After how long in its slot a host may be moved; see [`Timing::preempt_after`].
    pub preempt_after: Option<Time>,
    /// Time that a pair waits before it claims its path; see [`Timing::patience`].
    pub patience: Time,
    /// Hosts whose slots are longer by a factor, 2 to [`MOST_WEIGHT`] (§6: "timeslice lengths").
    pub weights: BTreeMap<u32, u32>,
    /// The share of each link that is left to small packets, in percent; see
    /// [`GateConfig::small_share`](crate::xco::coordinator::GateConfig::small_share).
    pub small_share: u32,
    /// Times of the protocol.
    pub protocol: Protocol,
    /// Coordination on demand: only of traffic that crosses links near congestion.
    pub on_demand: Option<OnDemand>,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            address: 0,
            peers: Vec::new(),
            incarnation: 1,
            directives: Directives::Timeslice,
            slot: Time::from_ms(2),
            preempt_after: None,
            patience: Time::from_ms(100),
            weights: BTreeMap::new(),
            small_share: 0,
            protocol: Protocol::default(),
            on_demand: None,
        }
    }
}

/// Form of a directive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Directives {
    // §3.2. A host that is faster than a link of the path sends at the rate of that link in its
    // slot, which is the hybrid of §6.
    /// One destination at a time, at full rate.
    #[default]
    Timeslice,
    // §3.3.
    /// All destinations at once, each at an equal share of its bottleneck.
    RateLimit,
    /// All destinations at once, at max-min fair rates.
    MaxMin,
}

/// Events and messages counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounters {
    /// Messages in.
    pub messages: MessageCounters,
    /// Slots and rate limits given.
    pub grants: u64,
    /// Slots that were given back before they ended.
    pub returned: u64,
    /// Slots that ended by the clock.
    pub expired: u64,
    /// Reports of hosts whose clock had jumped.
    pub clock_jumps: u64,
    /// Times it became the leader.
    pub terms: u64,
}

impl ControllerConfig {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        self.protocol.check()?;
        if self.slot == Time::ZERO {
            return Err(SettingsError::Zero("slot"));
        }
        if let Some(settings) = &self.on_demand {
            settings.check()?;
        }
        if self.small_share > MOST_SMALL_SHARE {
            return Err(SettingsError::SmallShare(self.small_share));
        }
        if self.peers.contains(&self.address) {
            return Err(SettingsError::Twice(self.address));
        }
        for (&host, &weight) in &self.weights {
            if !(1..=MOST_WEIGHT).contains(&weight) {
                return Err(SettingsError::Weight { host, weight });
            }
        }
        Ok(())
    }

    pub(super) fn timing(&self) -> Timing {
        Timing {
            preempt_after: self.preempt_after,
            patience: self.patience,
        }
    }

    /// Leaves the share of small packets out of a fabric.
    pub(super) fn reserve<R>(&self, fabric: &mut CoordinatedFabric<R>) {
        for link in &mut fabric.links {
            *link = self.permitted(*link);
        }
    }

    /// Rate of a link that permits may use.
    pub(super) fn permitted(&self, capacity: Rate) -> Rate {
        let left = u128::from(100 - self.small_share.min(100));
        Rate::from_bps((u128::from(capacity.bps()) * left / 100) as u64)
    }

    /// The longest that a permit lasts.
    pub(super) fn longest_slot(&self) -> Time {
        match self.directives {
            Directives::Timeslice => {
                self.slot * u64::from(self.weights.values().copied().max().unwrap_or(1))
            }
            Directives::RateLimit | Directives::MaxMin => self.slot * LEASE,
        }
    }
}
