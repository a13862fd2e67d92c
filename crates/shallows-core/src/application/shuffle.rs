//! Shuffle: every host sends to every other, a few at a time (MapReduce, QJUMP Fig. 5).

use serde::{Deserialize, Serialize};

use super::rounds::Rounds;
use super::{
    Action, Application, ApplicationError, Members, Message, Outbox, Plan, Protocol, Sample, Span,
    among_peers, check_sizes,
};
use crate::units::{Bytes, Time};

/// A shuffle among all clients. The latencies are called `transfer` and, for all transfers of a host,
/// `shuffle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ShuffleConfig {
    /// Bytes from each host to each other.
    pub size: Bytes,
    /// Parallel transfers of a host per wave. The next wave starts when all of them are done.
    #[serde(default = "one")]
    pub parallel: u32,
    /// Think time between shuffles.
    #[serde(default)]
    pub think: Time,
    /// Number of shuffles; unlimited if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

fn one() -> u32 {
    1
}

/// Tells the sender that a transfer is complete.
const RECEIPT: u64 = 8;
const DATA: u8 = 0;

impl ShuffleConfig {
    pub(super) fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        check_sizes(&[("size", self.size)], Protocol::Stream)?;
        if self.parallel == 0 {
            return Err(ApplicationError::Zero("parallel"));
        }
        among_peers(members, "shuffle", |connections| {
            Box::new(Member {
                config: *self,
                connections,
                rounds: Rounds::new(span, self.think, self.count),
                begun: None,
                sent: 0,
                under_way: 0,
                desk: Outbox::default(),
            })
        })
    }
}

#[derive(Debug)]
struct Member {
    config: ShuffleConfig,
    /// To the other hosts, beginning with the one after this.
    connections: Vec<u32>,
    /// Shuffles.
    rounds: Rounds,
    /// Start of the shuffle in progress.
    begun: Option<Time>,
    /// Transfers of it that were begun, and those of the wave under way.
    sent: usize,
    under_way: usize,
    desk: Outbox,
}

impl Member {
    fn begin_wave(&mut self, now: Time) {
        let rest = &self.connections[self.sent..];
        let wave = rest.len().min(self.config.parallel as usize);
        for &connection in &rest[..wave] {
            let message = Message {
                bytes: self.config.size.get(),
                kind: DATA,
                tag: now.ps(),
                reply: RECEIPT,
            };
            self.desk.send(connection, message);
        }
        self.sent += wave;
        self.under_way = wave;
    }

    fn complete_transfer(&mut self, now: Time, start: Time) {
        self.desk.record("transfer", start, now);
        self.under_way -= 1;
        if self.under_way > 0 {
            return;
        }
        if self.sent < self.connections.len() {
            return self.begin_wave(now);
        }
        if let Some(begun) = self.begun.take() {
            self.desk.record("shuffle", begun, now);
            self.rounds.end(now);
        }
    }
}

impl Application for Member {
    fn poll(&mut self, now: Time) -> Action {
        if let Some(action) = self.desk.outbox.pop_front() {
            return action;
        }
        if self.rounds.begin(now) {
            (self.begun, self.sent) = (Some(now), 0);
            self.begin_wave(now);
            return self.poll(now);
        }
        self.rounds.wait()
    }

    fn delivered(&mut self, now: Time, connection: u32, message: Message) {
        if message.reply > 0 {
            self.desk.answer(connection, message);
        } else {
            self.complete_transfer(now, Time::from_ps(message.tag));
        }
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
