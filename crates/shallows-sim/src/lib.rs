//! Packet-level simulation of datacenter fabrics.

#![forbid(unsafe_code)]

mod engine;
mod network;
mod packet;
mod paths;
mod simulation;

pub mod routing;
pub mod topology;
pub mod workload;

pub use network::PortSetup;
pub use simulation::{Completion, FlowOutcome, Progress, Setup, SetupError, Simulation, Status};
