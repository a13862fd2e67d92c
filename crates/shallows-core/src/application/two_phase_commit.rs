//! Two-phase commit with time-outs: all servers prepare and vote, then all commit and say so
//! (QJUMP §6.2, Fig. 6).
//!
//! A message that has no answer in time is sent again, to those that have not answered. Every server
//! votes yes. With [`FanOut::Broadcast`] the coordinator sends one datagram in each phase, which the
//! network copies to all servers ("the coordinator can send its messages by UDP broadcast when QJUMP
//! is enabled"); what is sent again goes to each server by itself.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::rounds::Rounds;
use super::{
    Action, Application, ApplicationError, Members, Message, Outbox, Plan, Protocol, Sample, Span,
    check_sizes, mesh, with_responders,
};
use crate::units::{Bytes, Time};

/// Transactions of each client, one after the other. The latencies are called `commit`, and
/// `timeout` for each time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TwoPhaseCommitConfig {
    /// Size of a message.
    pub size: Bytes,
    /// Timeout for answers.
    pub timeout: Time,
    /// Think time between transactions.
    pub think: Time,
    /// Number of transactions; unlimited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Transport of messages.
    pub protocol: Protocol,
    /// Messages of the coordinator: one for each server, or one that the network copies.
    pub fan_out: FanOut,
    /// Time that the coordinator takes to send one message; the next begins after it.
    pub send_time: Time,
}

/// Messages of a coordinator to its servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FanOut {
    /// One for each server.
    #[default]
    Unicast,
    /// One datagram in each phase, which switches copy where the paths to the servers part.
    Broadcast,
}

impl Default for TwoPhaseCommitConfig {
    fn default() -> Self {
        Self {
            size: Bytes::new(256),
            timeout: Time::from_ms(10),
            think: Time::ZERO,
            count: None,
            protocol: Protocol::Datagram,
            fan_out: FanOut::Unicast,
            send_time: Time::ZERO,
        }
    }
}

const PREPARE: u8 = 0;
const COMMIT: u8 = 1;

impl TwoPhaseCommitConfig {
    pub(super) fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        check_sizes(&[("size", self.size)], self.protocol)?;
        if self.timeout == Time::ZERO {
            return Err(ApplicationError::Zero("timeout"));
        }
        if self.fan_out == FanOut::Broadcast && self.protocol != Protocol::Datagram {
            return Err(ApplicationError::BroadcastStream);
        }
        let (connections, of_clients) = mesh(members, 1, self.protocol, "two-phase-commit")?;
        let broadcasts = match self.fan_out {
            FanOut::Unicast => Vec::new(),
            FanOut::Broadcast => of_clients.iter().filter_map(|of| range(of)).collect(),
        };
        let client = |connections: Vec<u32>| {
            Box::new(Coordinator {
                config: *self,
                answered: vec![false; connections.len()],
                connections,
                transactions: Rounds::new(span, self.think, self.count),
                phase: None,
                sent_at: Time::ZERO,
                desk: Outbox::default(),
            }) as Box<dyn Application>
        };
        let parts = with_responders(of_clients.into_iter().map(client), members);
        Ok(Plan {
            broadcasts,
            ..Plan::new(connections, parts)
        })
    }
}

/// The numbers of connections that follow each other.
fn range(connections: &[u32]) -> Option<Range<u32>> {
    let (first, last) = (connections.first()?, connections.last()?);
    Some(*first..last + 1)
}

#[derive(Debug)]
struct Coordinator {
    config: TwoPhaseCommitConfig,
    connections: Vec<u32>,
    transactions: Rounds,
    /// The phase of the transaction under way.
    phase: Option<Phase>,
    /// Participants that have answered in this phase.
    answered: Vec<bool>,
    /// Time at which the message at the head of the outbox has been sent.
    sent_at: Time,
    desk: Outbox,
}

#[derive(Clone, Copy, Debug)]
struct Phase {
    kind: u8,
    /// Start of the transaction.
    begun: Time,
    /// Time at which the messages were sent, and time of their retransmission.
    sent: Time,
    deadline: Time,
}

impl Coordinator {
    fn enter(&mut self, now: Time, kind: u8, begun: Time) {
        self.answered.fill(false);
        self.ask(now, kind, begun);
    }

    /// Asks those who have not answered.
    fn ask(&mut self, now: Time, kind: u8, begun: Time) {
        // A phase that is under way was asked before.
        let is_first = self.phase.is_none_or(|phase| phase.kind != kind);
        let size = self.config.size.get();
        let message = Message {
            bytes: size,
            kind,
            tag: self.transactions.number,
            reply: size,
        };
        if is_first && self.config.fan_out == FanOut::Broadcast {
            let all = range(&self.connections).unwrap_or_default();
            self.desk.outbox.push_back(Action::Broadcast {
                first: all.start,
                count: all.len() as u32,
                message,
            });
        } else {
            let missing = self.connections.iter().zip(&self.answered);
            for (&connection, _) in missing.filter(|(_, answered)| !**answered) {
                self.desk.send(connection, message);
            }
        }
        self.sent_at = now.saturating_add(self.config.send_time);
        self.phase = Some(Phase {
            kind,
            begun,
            sent: now,
            deadline: now.saturating_add(self.config.timeout),
        });
    }

    fn advance(&mut self, now: Time, phase: Phase) {
        if phase.kind == PREPARE {
            return self.enter(now, COMMIT, phase.begun);
        }
        self.phase = None;
        self.desk.record("commit", phase.begun, now);
        self.transactions.end(now);
    }
}

impl Application for Coordinator {
    fn poll(&mut self, now: Time) -> Action {
        if !self.desk.outbox.is_empty() && self.sent_at > now {
            return Action::Wait(self.sent_at);
        }
        if let Some(action) = self.desk.outbox.pop_front() {
            self.sent_at = now.saturating_add(self.config.send_time);
            return action;
        }
        if let Some(phase) = self.phase {
            if phase.deadline > now {
                return Action::Wait(phase.deadline);
            }
            self.desk.record("timeout", phase.sent, now);
            self.ask(now, phase.kind, phase.begun);
            return self.poll(now);
        }
        if self.transactions.begin(now) {
            self.enter(now, PREPARE, now);
            return self.poll(now);
        }
        self.transactions.wait()
    }

    fn delivered(&mut self, now: Time, connection: u32, message: Message) {
        let Some(phase) = self.phase else {
            return;
        };
        if message.tag != self.transactions.number || message.kind != phase.kind {
            return;
        }
        let place = self.connections.iter().position(|&of| of == connection);
        if let Some(place) = place {
            self.answered[place] = true;
        }
        if self.answered.iter().all(|&answered| answered) {
            self.advance(now, phase);
        }
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
