//! Applications without I/O: who sends which message when, and how long it took.
//!
//! An [`Application`] is the part of one host. Its driver opens connections and carries messages
//! for it, in the simulator beside the bytes of a flow, on live hosts as a header in the bytes. The
//! part sees messages and time and nothing else, and records its own latencies.
//!
//! ```
//! use shallows_core::application::{Action, Application, ApplicationConfig, Members, Span};
//! use shallows_core::units::Time;
//!
//! let config: ApplicationConfig = toml::from_str("ping = { interval = \"1ms\" }")?;
//! let members = Members { clients: 1, servers: 1 };
//! let mut plan = config.plan(members, Span::default())?;
//! let [client, server] = &mut plan.parts[..] else { unreachable!() };
//! let Action::Send { connection, message } = client.poll(Time::ZERO) else { unreachable!() };
//! server.delivered(Time::from_us(10), connection, message);
//! let Action::Send { message, .. } = server.poll(Time::from_us(10)) else { unreachable!() };
//! client.delivered(Time::from_us(20), connection, message);
//! assert_eq!(client.take_samples()[0].latency, Time::from_us(20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The driving contract:
//! - Call [`poll`](Application::poll) until it answers [`Action::Wait`] or [`Action::Idle`]: at the
//!   start, at the time it names, and after every [`delivered`](Application::delivered).
//! - Messages of one stream arrive whole and in order; those in datagrams may be lost.
//! - `now` never goes back.

mod barrier;
mod gather;
mod partition_aggregate;
mod ping;
mod requests;
mod responder;
mod rounds;
mod short_connections;
mod shuffle;
mod striped_read;
#[cfg(test)]
mod tests;
mod two_phase_commit;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::host::udp::MAX_MESSAGE;
use crate::units::{Bytes, Time};

pub use barrier::BarrierConfig;
pub use partition_aggregate::PartitionAggregateConfig;
pub use ping::PingConfig;
pub use requests::{Pace, RequestsConfig};
pub use short_connections::ShortConnectionsConfig;
pub use shuffle::ShuffleConfig;
pub use striped_read::StripedReadConfig;
pub use two_phase_commit::{FanOut, TwoPhaseCommitConfig};

/// The part of an application at one host.
pub trait Application: Debug + Send {
    /// Next action of the application.
    fn poll(&mut self, now: Time) -> Action;

    /// The last byte of a message from the other end of a connection has arrived.
    fn delivered(&mut self, now: Time, connection: u32, message: Message);

    /// Takes the latencies recorded since the last call.
    fn take_samples(&mut self) -> Vec<Sample>;
}

/// An action of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make the connection anew, as after a close: nothing is in flight on it.
    Open {
        /// Its number.
        connection: u32,
    },
    /// Send a message to the other end.
    Send {
        /// The connection.
        connection: u32,
        /// The message.
        message: Message,
    },
    /// Send a message in one datagram to the other ends of several connections. The network copies
    /// it.
    Broadcast {
        /// The first connection.
        first: u32,
        /// Number of connections, which follow each other.
        count: u32,
        /// The message.
        message: Message,
    },
    /// Nothing before this time, unless a message is delivered.
    Wait(Time),
    /// Nothing until a message is delivered.
    Idle,
}

/// An application's description of the bytes that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its length.
    pub bytes: u64,
    /// Kind of message, in the application's own numbering.
    pub kind: u8,
    /// Tag that matches an answer to its request.
    pub tag: u64,
    /// The length of the answer that is wanted, or zero.
    pub reply: u64,
}

/// A latency as the application sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Name of the operation.
    pub name: &'static str,
    /// Start time.
    pub start: Time,
    /// Latency of the operation.
    pub latency: Time,
}

/// Number of participating hosts, by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    /// Those that ask, or that all do the same.
    pub clients: u32,
    /// Those that answer.
    pub servers: u32,
}

/// Period in which an application runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Start time.
    pub start: Time,
    /// Time from which it starts nothing new.
    pub stop: Option<Time>,
}

impl Span {
    /// Returns whether something new may begin.
    fn is_open(&self, now: Time) -> bool {
        self.stop.is_none_or(|stop| now < stop)
    }
}

/// Transport of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A persistent TCP connection.
    #[default]
    Stream,
    /// A new TCP connection per message exchange, with a handshake.
    ShortStream,
    /// UDP datagrams, which may be lost.
    Datagram,
}

/// A connection between two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The member that opens it.
    pub from: u32,
    /// The other.
    pub to: u32,
    /// Transport protocol.
    pub protocol: Protocol,
}

/// An application ready to run: its connections, and a part for each member.
#[derive(Debug)]
pub struct Plan {
    /// Connections are called by their position.
    pub connections: Vec<Connection>,
    /// In the order of the members.
    pub parts: Vec<Box<dyn Application>>,
    /// Connections that one member reaches by a [broadcast](Action::Broadcast), for each that has
    /// one.
    pub broadcasts: Vec<Range<u32>>,
}

impl Plan {
    /// An application without broadcasts.
    fn new(connections: Vec<Connection>, parts: Vec<Box<dyn Application>>) -> Self {
        Self {
            connections,
            parts,
            broadcasts: Vec::new(),
        }
    }
}

/// An application as written in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ApplicationConfig {
    /// Round-trip times.
    Ping(PingConfig),
    /// Requests and responses, like those of a key-value store.
    Requests(RequestsConfig),
    /// Barriers among all clients.
    Barrier(BarrierConfig),
    /// A query to all servers at once.
    PartitionAggregate(PartitionAggregateConfig),
    /// Blocks that are striped over the servers.
    StripedRead(StripedReadConfig),
    /// All clients to all in waves.
    Shuffle(ShuffleConfig),
    /// A new connection for each request.
    ShortConnections(ShortConnectionsConfig),
    /// Transactions that all servers must agree to.
    TwoPhaseCommit(TwoPhaseCommitConfig),
}

/// The reason why an application cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ApplicationError {
    /// Nobody to ask.
    #[error("{0} needs clients and servers")]
    NeedsServers(&'static str),
    /// Those that all do the same must be several, and nobody else.
    #[error("{0} needs at least 2 clients and no servers")]
    NeedsPeers(&'static str),
    /// Something must not be zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// A share that cannot be.
    #[error("get-share is {0}, it must be from 0 to 1")]
    Share(f64),
    /// Connections that no request would use.
    #[error(
        "{each} connections to a server are more than the {outstanding} requests that may wait at \
         once: set outstanding to {each} or more"
    )]
    UnusedConnections {
        /// Connections to a server.
        each: u32,
        /// Requests at once.
        outstanding: u32,
    },
    /// Streams have one receiver.
    #[error("fan-out = \"broadcast\" needs protocol = \"datagram\": a stream has one receiver")]
    BroadcastStream,
    /// More than a datagram carries.
    #[error("{name} is {bytes}, a datagram carries at most {MAX_MESSAGE}B")]
    TooLarge {
        /// The parameter.
        name: &'static str,
        /// Its value.
        bytes: Bytes,
    },
}

impl ApplicationConfig {
    /// The application among these members.
    ///
    /// # Errors
    /// If the parameters or the members make no sense.
    pub fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        match self {
            Self::Ping(config) => config.plan(members, span),
            Self::Requests(config) => config.plan(members, span),
            Self::Barrier(config) => config.plan(members, span),
            Self::PartitionAggregate(config) => config.plan(members, span),
            Self::StripedRead(config) => config.plan(members, span),
            Self::Shuffle(config) => config.plan(members, span),
            Self::ShortConnections(config) => config.plan(members, span),
            Self::TwoPhaseCommit(config) => config.plan(members, span),
        }
    }

    /// Returns whether it sends datagrams that the network copies.
    pub fn broadcasts(&self) -> bool {
        matches!(self, Self::TwoPhaseCommit(config) if config.fan_out == FanOut::Broadcast)
    }

    /// Number of operations, if it is limited.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Ping(config) => config.count,
            Self::Requests(config) => config.count,
            Self::Barrier(config) => config.count,
            Self::PartitionAggregate(config) => config.count,
            Self::StripedRead(config) => config.count,
            Self::Shuffle(config) => config.count,
            Self::ShortConnections(config) => config.count,
            Self::TwoPhaseCommit(config) => config.count,
        }
    }

    /// Its name in a scenario.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ping(_) => "ping",
            Self::Requests(_) => "requests",
            Self::Barrier(_) => "barrier",
            Self::PartitionAggregate(_) => "partition-aggregate",
            Self::StripedRead(_) => "striped-read",
            Self::Shuffle(_) => "shuffle",
            Self::ShortConnections(_) => "short-connections",
            Self::TwoPhaseCommit(_) => "two-phase-commit",
        }
    }
}

/// Outgoing messages and latencies to report: the state that every role has.
#[derive(Debug, Default)]
struct Outbox {
    outbox: VecDeque<Action>,
    samples: Vec<Sample>,
}

impl Outbox {
    fn send(&mut self, connection: u32, message: Message) {
        self.outbox.push_back(Action::Send {
            connection,
            message,
        });
    }

    /// Answers a message, if that is wanted.
    fn answer(&mut self, connection: u32, message: Message) {
        if message.reply > 0 {
            let reply = Message {
                bytes: message.reply,
                reply: 0,
                ..message
            };
            self.send(connection, reply);
        }
    }

    /// Records what began at `start` and is done `now`.
    fn record(&mut self, name: &'static str, start: Time, now: Time) {
        self.samples.push(Sample {
            name,
            start,
            latency: now.saturating_sub(start),
        });
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }
}

/// `Wait` or `Idle`.
fn wait(until: Option<Time>) -> Action {
    until.map_or(Action::Idle, Action::Wait)
}

/// Connections from every client to every server, `each` of them, by client.
fn mesh(
    members: Members,
    each: u32,
    protocol: Protocol,
    name: &'static str,
) -> Result<(Vec<Connection>, Vec<Vec<u32>>), ApplicationError> {
    if members.clients == 0 || members.servers == 0 {
        return Err(ApplicationError::NeedsServers(name));
    }
    let mut connections = Vec::new();
    let mut of_clients = Vec::new();
    for from in 0..members.clients {
        let begin = connections.len() as u32;
        for server in 0..members.servers {
            let to = members.clients + server;
            let connection = Connection { from, to, protocol };
            connections.extend((0..each).map(|_| connection));
        }
        of_clients.push((begin..connections.len() as u32).collect());
    }
    Ok((connections, of_clients))
}

/// An application with a stream between each two of the clients. `part` makes that of a client
/// from its connections to the others, beginning with the one after it.
fn among_peers(
    members: Members,
    name: &'static str,
    part: impl Fn(Vec<u32>) -> Box<dyn Application>,
) -> Result<Plan, ApplicationError> {
    let count = members.clients;
    if count < 2 || members.servers > 0 {
        return Err(ApplicationError::NeedsPeers(name));
    }
    let protocol = Protocol::Stream;
    let mut connections = Vec::new();
    let mut between = std::collections::BTreeMap::new();
    for from in 0..count {
        for to in from + 1..count {
            between.insert((from, to), connections.len() as u32);
            connections.push(Connection { from, to, protocol });
        }
    }
    let number = |a: u32, b: u32| between[&(a.min(b), a.max(b))];
    let of_client = |client: u32| {
        let others = (1..count).map(|step| (client + step) % count);
        others.map(|other| number(client, other)).collect()
    };
    let parts = (0..count).map(of_client).map(part).collect();
    Ok(Plan::new(connections, parts))
}

/// Refuses sizes that are zero, or too large for datagrams.
fn check_sizes(
    sizes: &[(&'static str, Bytes)],
    protocol: Protocol,
) -> Result<(), ApplicationError> {
    for &(name, bytes) in sizes {
        if bytes == Bytes::ZERO {
            return Err(ApplicationError::Zero(name));
        }
        if protocol == Protocol::Datagram && bytes.get() > MAX_MESSAGE {
            return Err(ApplicationError::TooLarge { name, bytes });
        }
    }
    Ok(())
}

/// The parts of clients, and a responder for each server.
fn with_responders(
    clients: impl Iterator<Item = Box<dyn Application>>,
    members: Members,
) -> Vec<Box<dyn Application>> {
    let server = |_| Box::<responder::Responder>::default() as Box<dyn Application>;
    clients.chain((0..members.servers).map(server)).collect()
}
