//! Packet-level simulation of datacenter fabrics.

#![forbid(unsafe_code)]

mod applications;
mod broadcast;
mod connections;
mod control;
mod density;
mod engine;
mod execution;
mod ids;
mod layers;
mod network;
mod packet;
mod parallel;
mod partition;
mod paths;
mod setup;
mod shard;
mod simulation;
mod ticket;
mod watch;
mod xco;

// What is simulated; modules here name it as if it were theirs.
use shallows_model::{barriers, hosts, interrupt, ports, routing, topology, transport, workload};

pub use applications::Latency;
pub use control::{AgentSetup, Control, HostAgent};
pub use layers::{Engine, EngineChoice, NoLayers};
pub use shard::PauseStats;
pub use simulation::{
    DatagramStats, FlowOutcome, Progress, SenderState, Settings, SetupError, Simulation, Status,
};
pub use ticket::Ticket;
pub use watch::{CapturedPacket, Content, DroppedPacket, Observation, Watch};
