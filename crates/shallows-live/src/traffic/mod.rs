//! Traffic between the hosts of a lab: flows over persistent connections, UDP flows, applications,
//! and ping.
//!
//! As in MQ-ECN §5.1.2 a client asks a server for a number of bytes over a connection that is kept,
//! and the server answers with them, in packets of the DSCP that it was asked for. The flow's
//! source is the server, its destination the client. Its completion time is taken at the client,
//! from before the request to the last byte, so the request's way is part of it.
//!
//! A connection carries one flow at a time. A flow that finds none free between its hosts gets a
//! new one, whose handshake comes before its time is taken.

mod application;
mod client;
mod datagrams;
mod prober;
mod run;
mod server;
mod tcp_info;

use shallows_core::units::Time;
use shallows_model::{FlowId, IdVec};
use thiserror::Error;

use crate::lab::{LabError, Unprivileged};

pub use application::OperationTime;
pub(crate) use application::prepare;
pub(crate) use datagrams::STREAM_PORT;
pub use datagrams::{HEADER as STREAM_HEADER, LATE as STREAM_LATE, StreamTotals};
pub use prober::{Ping, ProbePlan, Prober};
pub use run::{GOODPUT_EVERY, Goodput, Seen, Traffic};

/// Congestion controllers of some flows instead of the one that the hosts have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowControllers {
    /// Their names in the kernel.
    pub names: Vec<String>,
    /// The index of each flow's controller in `names`, by the number of the flow. A flow beyond the
    /// end has the hosts' controller.
    pub of_flow: IdVec<FlowId, Option<usize>>,
}

impl FlowControllers {
    fn index(&self, flow: FlowId) -> Option<usize> {
        self.of_flow.get(flow).copied().flatten()
    }

    fn name(&self, index: Option<usize>) -> Option<&str> {
        Some(self.names.get(index?)?)
    }
}

/// Payload of a request: bytes that are wanted, and their DSCP.
const REQUEST: usize = 9;

/// Outcome of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Send time of its request, if it was sent.
    pub start: Option<Time>,
    /// From then to the last byte, if it came.
    pub fct: Option<Time>,
    /// Bytes that arrived.
    pub received: u64,
    /// Segments that its sender sent again.
    pub retransmits: u32,
    /// Retransmission timeouts of its sender.
    pub timeouts: u32,
    /// Segments whose marks the sender was told of.
    pub marks: u32,
}

/// The reason why traffic cannot run.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// A namespace cannot be entered.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A socket.
    #[error("{what}: {error}")]
    Socket {
        /// Attempted operation.
        what: String,
        /// Error of the system.
        error: std::io::Error,
    },
}

/// The DSCP of a service's packets. Services of a live run are below 64.
fn dscp(service: u16) -> u8 {
    service as u8
}

/// Makes the calling thread an unprivileged user's: its sockets are open, and it needs no more.
fn give_up_root() {
    // Without root there is nothing to give up.
    let _ = Unprivileged::find().become_on_this_thread();
}

impl TrafficError {
    fn new(what: impl Into<String>, error: std::io::Error) -> Self {
        Self::Socket {
            what: what.into(),
            error,
        }
    }
}
