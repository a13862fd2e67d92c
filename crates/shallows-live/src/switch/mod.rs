//! A userspace Ethernet switch whose egress ports are those of `shallows-core`.
//!
//! ```text
//! device -> ring -> [uplink] -> bridge -> egress port -> [trunk -> bridge ->] device
//! ```
//!
//! [`Engine`] is the switch without devices and clock: frames and times in, frames and their due
//! times out, so that it is tested in virtual time. [`Switch`] drives it with real devices and the
//! real clock, as one thread that polls.
//!
//! Departures keep logical time: the engine computes when the last bit of a frame reaches the other
//! end of its link, one transmission exactly after the other, and the loop sends the frame once
//! that time has come. A loop that is late sends late, but no later frame inherits it and no
//! bandwidth is lost. How late it was is measured for every frame ([`Fidelity`]).

mod bridge;
mod buckets;
mod channel;
mod claim;
mod config;
mod control;
mod counters;
mod departures;
mod destinations;
mod engine;
mod fidelity;
mod link_name;
mod metrics;
mod monitor;
mod place;
mod port;
mod run;
mod samples;
mod snapshot;

pub use bridge::StationCounters;
pub use buckets::Buckets;
pub use channel::{Coordination, Level, Position};
pub(crate) use channel::{LONGEST_MESSAGE, STRANGER};
pub use config::{
    Classify, FidelityConfig, Forwarding, PortPlan, STATIONS_PER_PORT, SampleConfig, SwitchConfig,
    SwitchError, TrunkPlan, UplinkPlan, Wait,
};
pub use control::Control;
pub use counters::IngressCounters;
pub use departures::Departures;
pub use destinations::{Destinations, IpNetwork};
pub use engine::{Delivery, Engine, Refusal};
pub use fidelity::{Fidelity, Lateness, Verdict};
pub use link_name::LinkName;
pub(crate) use metrics::{Family, Labels, encode};
pub use monitor::{Monitor, Status, fetch_status, request_reload};
pub(crate) use place::{set_nice, sharpen_timers};
pub use port::PortEvent;
pub use run::{Report, Switch};
pub use samples::Samples;
pub use snapshot::{CoordinatorSnapshot, LinkSnapshot, QueueSnapshot, Snapshot};
pub(crate) use snapshot::{refused, write_counts};
