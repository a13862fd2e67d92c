//! QJUMP: queues don't matter when you can jump them (Grosvenor et al., NSDI 2015).
//!
//! A host assigns each packet to a level. Every level may send so many bytes per *network epoch*,
//! and switches serve the levels in strict priority. The top level sends so little that even if
//! all hosts send at once to one of them, its packets arrive within the epoch; lower levels trade
//! that bound for throughput by their factor f.
//!
//! [`Network`] holds the arithmetic of §3 and §5, [`Plan`] chooses levels by it (§5), [`Limiter`] is
//! the rate limiter of §4, [`QjumpGate`] places it between a transport and its NIC, and
//! [`AutomaticLevels`] choose the levels of applications by what they send (§8):
//!
//! ```
//! use shallows_core::host::qjump::{Admission, Level, Limiter, LimiterConfig, Network, Phase};
//! use shallows_core::units::Time;
//!
//! let network = Network {
//!     hosts: 12,
//!     packet: "256B".parse()?,
//!     rate: "10Gbps".parse()?,
//!     processing: "4us".parse()?,
//! };
//! let config = LimiterConfig {
//!     epoch: network.network_epoch(Phase::Mesochronous),
//!     levels: vec![network.bytes_per_epoch(12.0), network.bytes_per_epoch(1.0)],
//!     ..LimiterConfig::default()
//! };
//! let mut limiter = Limiter::new(&config, Time::ZERO)?;
//! let top = Level::new(1).expect("there are eight levels");
//! assert_eq!(limiter.admit(Time::ZERO, top, 256), Admission::Pass);
//! assert_eq!(limiter.admit(Time::ZERO, top, 256), Admission::Drop);
//! assert_eq!(limiter.admit(config.epoch, top, 256), Admission::Pass);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Differences from the paper
//! | Listing 1 | here |
//! |---|---|
//! | one timer for all levels, whose expiry refills only the level that notices it | an epoch end per level |
//! | a new epoch after its first instant, `now > timeout` | epochs are half-open, `now >= end` |
//! | after idle time the timer catches up one epoch per packet, refilling each time | one refill, whatever time has passed |
//! | packets over the limit are dropped | or held until the next epoch, with [`Excess::Hold`] |
//! | a limiter for each host and level | or, as in the published simulation, for each flow: [`Scope::Flow`] |
//!
//! The published kernel module counts an epoch from the packet that opens it:
//! [`EpochClock::Reanchored`].

mod automatic;
mod gate;
mod limiter;
mod limits;
mod network;
mod plan;

#[cfg(test)]
mod tests;

pub use automatic::{
    ApplicationLevel, Assignment, AutomaticConfig, AutomaticError, AutomaticLevels,
    ControlConnections,
};
pub use gate::{QjumpGate, QjumpGateConfig};
pub use limiter::{
    Admission, EpochClock, Excess, Level, LevelCounters, Limiter, LimiterConfig, LimiterError,
    MAX_LEVELS, Scope,
};
pub use limits::{
    Allotment, FULL_FRAME, Limits, LimitsError, SHORTEST_EPOCH, SMALLEST_FRAME, mark_of,
    on_the_wire,
};
pub use network::{Network, NetworkError, Phase};
pub use plan::{
    Application, Caveat, FlowShare, Latency, Need, Plan, PlanError, PlannedLevel, Surroundings,
};
