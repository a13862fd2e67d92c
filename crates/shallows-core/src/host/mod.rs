//! A host's side of its NIC: the gates, agents and applications of a host ([`stack`]), the contract
//! of gates ([`gate`]), QJUMP's limits ([`qjump`]), delays of the host itself
//! ([`jitter`]), tags of packets ([`stage`]), and traffic that
//! nothing holds back ([`udp`]).

pub mod gate;
pub mod jitter;
pub mod qjump;
pub mod stack;
pub mod stage;
pub mod udp;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::packet::Packet;
use jitter::JitterGateConfig;
use qjump::{AutomaticError, LimiterError, QjumpGateConfig};
use stack::LocalGate;

/// A gate of one host that needs no controller, in either world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostGateConfig {
    /// Random delays of the host itself.
    Jitter(JitterGateConfig),
    /// QJUMP's limits.
    Qjump(QjumpGateConfig),
}

impl HostGateConfig {
    /// Builds the gate.
    ///
    /// # Errors
    /// If its settings make no sense.
    pub fn build<P: Packet + std::fmt::Debug + Send + 'static>(
        &self,
    ) -> Result<Box<dyn LocalGate<P>>, GateError> {
        Ok(match self {
            Self::Jitter(config) => Box::new(config.build()),
            Self::Qjump(config) => Box::new(config.build()?),
        })
    }
}

/// The reason why a gate cannot be built.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GateError {
    /// QJUMP's limits.
    #[error(transparent)]
    Limiter(#[from] LimiterError),
    /// QJUMP's choice of levels.
    #[error(transparent)]
    Automatic(#[from] AutomaticError),
}
