//! Packet-level simulation of datacenter fabrics.

#![forbid(unsafe_code)]

mod barriers;
mod engine;
mod network;
mod packet;
mod parallel;
mod partition;
mod paths;
mod shard;
mod simulation;

pub mod routing;
pub mod topology;
pub mod workload;

pub use network::PortSetup;
pub use simulation::{
    Completion, Connections, FlowOutcome, Progress, Setup, SetupError, Simulation, Status,
};
