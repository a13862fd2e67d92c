//! Packet-level simulation of datacenter fabrics.

#![forbid(unsafe_code)]

mod applications;
mod barriers;
mod control;
mod density;
mod engine;
mod hosts;
mod interrupt;
mod layers;
mod network;
mod packet;
mod parallel;
mod partition;
mod paths;
mod setup;
mod shard;
mod simulation;
mod transport;
mod watch;
mod xco;

pub mod routing;
mod ticket;
pub mod topology;
pub mod workload;

pub use applications::{ApplicationEntry, ApplicationEntryError, ApplicationSetup, Latency};
pub use control::{
    AgentSetup, Carriage, Channel, Control, ControlError, GateAgent, HostAgent, LoneAgent,
};
pub use hosts::{HostSetup, NetworkConfig, QjumpConfig, QjumpError};
pub use interrupt::{Interrupt, Interrupted};
pub use layers::{Engine, EngineChoice, NoLayers};
pub use network::PortSetup;
pub use shard::PauseStats;
pub use simulation::{
    Completion, Connections, DatagramStats, FlowOutcome, Progress, SenderState, Setup, SetupError,
    Simulation, Status,
};
pub use ticket::Ticket;
pub use transport::TransportOverride;
pub use watch::{CapturedPacket, Content, Fault, LinkChange, Observation, Watch};
pub use xco::{Directives, HierarchyConfig, Outage, Weight, XcoConfig, XcoError};
