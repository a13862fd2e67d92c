//! Barrier synchronisation: each host tells all others that it is there, and goes on when it has
//! heard of all (QJUMP §2, Fig. 3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rounds::Rounds;
use super::{
    Action, Application, ApplicationError, Members, Message, Outbox, Plan, Protocol, Sample, Span,
    among_peers, check_sizes,
};
use crate::units::{Bytes, Time};

/// Barriers among all clients. The latency `barrier` runs from a host's own message until it has
/// received the messages of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BarrierConfig {
    /// Size of a message.
    pub size: Bytes,
    /// Think time of a host between two barriers.
    pub think: Time,
    /// Number of barriers; unlimited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl Default for BarrierConfig {
    fn default() -> Self {
        Self {
            size: Bytes::new(64),
            think: Time::ZERO,
            count: None,
        }
    }
}

impl BarrierConfig {
    pub(super) fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        check_sizes(&[("size", self.size)], Protocol::Stream)?;
        among_peers(members, "barrier", |connections| {
            Box::new(Member {
                size: self.size,
                connections,
                rounds: Rounds::new(span, self.think, self.count),
                arrived_at: None,
                heard: BTreeMap::new(),
                desk: Outbox::default(),
            })
        })
    }
}

#[derive(Debug)]
struct Member {
    size: Bytes,
    connections: Vec<u32>,
    /// Barriers.
    rounds: Rounds,
    /// Time at which this host reached the barrier where it waits.
    arrived_at: Option<Time>,
    /// Messages of each round; others may be ahead.
    heard: BTreeMap<u64, usize>,
    desk: Outbox,
}

impl Member {
    fn arrive(&mut self, now: Time) {
        self.arrived_at = Some(now);
        for &connection in &self.connections {
            let message = Message {
                bytes: self.size.get(),
                kind: 0,
                tag: self.rounds.number,
                reply: 0,
            };
            self.desk.send(connection, message);
        }
        self.leave_if_complete(now);
    }

    fn leave_if_complete(&mut self, now: Time) {
        let round = self.rounds.number;
        let heard = self.heard.get(&round).copied().unwrap_or_default();
        if let Some(start) = self.arrived_at
            && heard == self.connections.len()
        {
            self.heard.remove(&round);
            self.desk.record("barrier", start, now);
            self.rounds.end(now);
            self.arrived_at = None;
        }
    }
}

impl Application for Member {
    fn poll(&mut self, now: Time) -> Action {
        if let Some(action) = self.desk.outbox.pop_front() {
            return action;
        }
        if self.rounds.begin(now) {
            self.arrive(now);
            return self.poll(now);
        }
        self.rounds.wait()
    }

    fn delivered(&mut self, now: Time, _: u32, message: Message) {
        *self.heard.entry(message.tag).or_default() += 1;
        self.leave_if_complete(now);
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
