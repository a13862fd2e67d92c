//! Barrier synchronisation: each host tells all others that it is there, and goes on when it has
//! heard of all (QJUMP §2, Fig. 3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Action, Application, ApplicationError, Members, Message, Outbox, Plan, Protocol, Sample, Span,
    check_sizes, peers, wait,
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
        let (connections, of_clients) = peers(members, Protocol::Stream, "barrier")?;
        let member = |connections: Vec<u32>| {
            Box::new(Member {
                config: *self,
                connections,
                span,
                round: 0,
                arrived_at: None,
                next: Some(span.start),
                heard: BTreeMap::new(),
                desk: Outbox::default(),
            }) as Box<dyn Application>
        };
        let parts = of_clients.into_iter().map(member).collect();
        Ok(Plan::new(connections, parts))
    }
}

#[derive(Debug)]
struct Member {
    config: BarrierConfig,
    connections: Vec<u32>,
    span: Span,
    round: u64,
    /// Time at which this host reached the barrier where it waits.
    arrived_at: Option<Time>,
    /// Time at which it reaches the next barrier.
    next: Option<Time>,
    /// Messages of each round; others may be ahead.
    heard: BTreeMap<u64, usize>,
    desk: Outbox,
}

impl Member {
    fn arrive(&mut self, now: Time) {
        (self.arrived_at, self.next) = (Some(now), None);
        for &connection in &self.connections {
            let message = Message {
                bytes: self.config.size.get(),
                kind: 0,
                tag: self.round,
                reply: 0,
            };
            self.desk.send(connection, message);
        }
        self.leave_if_complete(now);
    }

    fn leave_if_complete(&mut self, now: Time) {
        let heard = self.heard.get(&self.round).copied().unwrap_or_default();
        if let Some(start) = self.arrived_at
            && heard == self.connections.len()
        {
            self.heard.remove(&self.round);
            self.desk.record("barrier", start, now);
            self.round += 1;
            let goes_on = self.config.count.is_none_or(|count| self.round < count);
            let next = now.saturating_add(self.config.think);
            self.arrived_at = None;
            self.next = Some(next).filter(|_| goes_on);
        }
    }
}

impl Application for Member {
    fn poll(&mut self, now: Time) -> Action {
        if let Some(action) = self.desk.outbox.pop_front() {
            return action;
        }
        match self.next.filter(|&at| self.span.is_open(at)) {
            Some(due) if due <= now => {
                self.arrive(now);
                self.poll(now)
            }
            next => wait(next),
        }
    }

    fn delivered(&mut self, now: Time, _: u32, message: Message) {
        *self.heard.entry(message.tag).or_default() += 1;
        self.leave_if_complete(now);
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
