//! XCo on real machines: the controller as a daemon, and the agent that holds a host's frames back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cluster`] | the file that all machines share: controllers, hosts, links |
//! | [`hierarchy`] | controllers of pods under a root |
//! | [`key`] | the files with keys |
//! | [`controller`] | the controller's loop over UDP |
//! | [`agent`] | a switch with a coordinator before its NIC |
//! | [`lab`] | controllers and coordinators of a live run, their faults, and what was seen |
//! | [`reload`] | which changes of the file a running daemon takes over |
//! | [`forge`] | directives without the key, to show that they are refused |
//!
//! The mechanisms are those of `shallows_core::xco`; here are sockets, files and clocks.

pub mod agent;
pub mod cluster;
pub mod controller;
pub mod forge;
pub mod hierarchy;
pub mod key;
pub mod lab;
pub mod reload;
mod status;
mod tree;

use std::time::{SystemTime, UNIX_EPOCH};

pub use status::ControllerSnapshot;
pub use tree::Tree;

/// A number that is larger after each restart: the time of day.
pub fn incarnation() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}
