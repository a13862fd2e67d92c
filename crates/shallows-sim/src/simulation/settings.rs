//! Settings of a run, and the reasons why it cannot start.

use std::io;
use std::sync::Arc;

use shallows_core::application::ApplicationError;
use shallows_core::host::udp::ConfigError as UdpError;
use shallows_core::port::ConfigError as PortError;
use shallows_core::tcp::ConfigError as TcpError;
use shallows_core::units::Bytes;
use shallows_model::ControlError;
use thiserror::Error;

use crate::control::Control;
use crate::hosts::QjumpError;
use crate::interrupt::Interrupted;
use crate::layers::{EngineChoice, NoLayers};
use crate::routing::NoPath;
use crate::watch::Watch;

/// Settings of a simulation beyond its model.
#[derive(Debug)]
pub struct Settings {
    /// Agents of control protocols.
    pub control: Control,
    /// Packets to observe on their way.
    pub watch: Watch,
    /// Threads to use at most. Results do not depend on it.
    pub threads: u32,
    /// Engine to use. Results do not depend on it.
    pub engine: EngineChoice,
}

impl Default for Settings {
    /// One thread, without agents and observations.
    fn default() -> Self {
        Self {
            control: Control::default(),
            watch: Watch::default(),
            threads: 1,
            engine: EngineChoice::Automatic,
        }
    }
}

/// The reason why a run cannot start.
#[derive(Clone, Debug, Error)]
pub enum SetupError {
    /// Somebody gave up waiting for it.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A port of a switch or host.
    #[error("ports: {0}")]
    Port(#[from] PortError),
    /// The transport.
    #[error("transport: {0}")]
    Transport(#[from] TcpError),
    /// Configuration of UDP flows.
    #[error("datagrams: {0}")]
    Datagrams(#[from] UdpError),
    /// The limits of hosts.
    #[error("qjump: {0}")]
    Limits(#[from] QjumpError),
    /// A flow of which no packet passes the limits, not even an ACK.
    #[error("qjump: packets of {size} bytes of flow {flow}, service {level}, never pass: {}", match .allotment {
        Some(bytes) => format!("the service may send {bytes} per epoch"),
        None => "it has no limit in levels".to_owned(),
    })]
    NeverPasses {
        /// Its number.
        flow: usize,
        /// Its level.
        level: u16,
        /// Its smallest packets.
        size: u32,
        /// Bytes per epoch of the level.
        allotment: Option<Bytes>,
    },
    /// An application.
    #[error("application: {0}")]
    Application(#[from] ApplicationError),
    /// Agents of control protocols.
    #[error("control: {0}")]
    Control(#[from] ControlError),
    /// A flow's hosts are not connected.
    #[error("flow {flow}: {reason}")]
    NoPath {
        /// Its number.
        flow: usize,
        /// The two hosts.
        reason: NoPath,
    },
    /// The system gives us no threads.
    #[error("threads: {0}; ask for fewer")]
    Threads(#[from] Arc<io::Error>),
    /// The setup demands layers, and the run does not fit.
    #[error("layers: {0}")]
    Layers(#[from] NoLayers),
    /// Nothing to simulate.
    #[error("the workload has no flows")]
    NoFlows,
}
