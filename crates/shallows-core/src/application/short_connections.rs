//! Short connections: a new one for each request, in several sequences side by side (XCo §2.3,
//! Fig. 6).

use serde::{Deserialize, Serialize};

use super::{
    Action, Application, ApplicationError, Members, Message, Outbox, Plan, Protocol, Sample, Span,
    check_sizes, mesh, wait, with_responders,
};
use crate::units::{Bytes, Time};

/// Sequences of connections from each client to each server. The latencies are called
/// `connection`, from the SYN to the last byte of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ShortConnectionsConfig {
    /// Number of parallel sequences from a client to a server.
    pub parallel: u32,
    /// Size of a request.
    pub request: Bytes,
    /// Size of a response.
    pub response: Bytes,
    /// Think time between connections.
    pub think: Time,
    /// Number of connections per sequence; unlimited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl Default for ShortConnectionsConfig {
    /// netperf's TCP_CRR, with an answer of 8 KB.
    fn default() -> Self {
        Self {
            parallel: 1,
            request: Bytes::new(1),
            response: Bytes::new(8192),
            think: Time::ZERO,
            count: None,
        }
    }
}

impl ShortConnectionsConfig {
    pub(super) fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        let sizes = [("request", self.request), ("response", self.response)];
        check_sizes(&sizes, Protocol::ShortStream)?;
        if self.parallel == 0 {
            return Err(ApplicationError::Zero("parallel"));
        }
        let protocol = Protocol::ShortStream;
        let (connections, of_clients) =
            mesh(members, self.parallel, protocol, "short-connections")?;
        let client = |connections: Vec<u32>| {
            let sequence = |connection| Sequence {
                connection,
                next: Some(span.start),
                left: self.count.unwrap_or(u64::MAX),
            };
            Box::new(Client {
                config: *self,
                sequences: connections.into_iter().map(sequence).collect(),
                span,
                desk: Outbox::default(),
            }) as Box<dyn Application>
        };
        let parts = with_responders(of_clients.into_iter().map(client), members);
        Ok(Plan::new(connections, parts))
    }
}

#[derive(Debug)]
struct Client {
    config: ShortConnectionsConfig,
    sequences: Vec<Sequence>,
    span: Span,
    desk: Outbox,
}

#[derive(Debug)]
struct Sequence {
    connection: u32,
    next: Option<Time>,
    left: u64,
}

impl Application for Client {
    fn poll(&mut self, now: Time) -> Action {
        if let Some(action) = self.desk.outbox.pop_front() {
            return action;
        }
        let span = self.span;
        let mut next: Option<Time> = None;
        for sequence in &mut self.sequences {
            let due = sequence.next;
            match due.filter(|&at| sequence.left > 0 && span.is_open(at)) {
                Some(due) if due <= now => {
                    (sequence.next, sequence.left) = (None, sequence.left - 1);
                    let connection = sequence.connection;
                    let message = Message {
                        bytes: self.config.request.get(),
                        kind: 0,
                        tag: now.ps(),
                        reply: self.config.response.get(),
                    };
                    self.desk.outbox.push_back(Action::Open { connection });
                    self.desk.send(connection, message);
                }
                due => next = [next, due].into_iter().flatten().min(),
            }
        }
        let idle = || wait(next);
        self.desk.outbox.pop_front().unwrap_or_else(idle)
    }

    fn delivered(&mut self, now: Time, connection: u32, message: Message) {
        let start = Time::from_ps(message.tag);
        self.desk.record("connection", start, now);
        let mut sequences = self.sequences.iter_mut();
        if let Some(sequence) = sequences.find(|of| of.connection == connection) {
            sequence.next = Some(now.saturating_add(self.config.think));
        }
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
