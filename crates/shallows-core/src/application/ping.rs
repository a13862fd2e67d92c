//! Ping: a small message to every server at an interval, and the time until its echo.

use serde::{Deserialize, Serialize};

use super::{
    Action, Application, ApplicationError, Members, Message, Outbox, Plan, Protocol, Sample, Span,
    check_sizes, mesh, wait, with_responders,
};
use crate::units::{Bytes, Time};

/// Pings from each client to each server. The latencies are called `ping`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PingConfig {
    /// Interval between pings.
    pub interval: Time,
    /// Payload of a ping and of its echo.
    #[serde(default = "size")]
    pub size: Bytes,
    /// Number of pings; unlimited if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Transport of pings.
    #[serde(default = "datagram")]
    pub protocol: Protocol,
}

/// Default size of `ping`.
fn size() -> Bytes {
    Bytes::new(56)
}

fn datagram() -> Protocol {
    Protocol::Datagram
}

impl PingConfig {
    pub(super) fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        if self.interval == Time::ZERO {
            return Err(ApplicationError::Zero("interval"));
        }
        check_sizes(&[("size", self.size)], self.protocol)?;
        let (connections, of_clients) = mesh(members, 1, self.protocol, "ping")?;
        let client = |connections| {
            Box::new(Pinger {
                config: *self,
                connections,
                span,
                next: span.start,
                left: self.count.unwrap_or(u64::MAX),
                desk: Outbox::default(),
            }) as Box<dyn Application>
        };
        let parts = with_responders(of_clients.into_iter().map(client), members);
        Ok(Plan::new(connections, parts))
    }
}

#[derive(Debug)]
struct Pinger {
    config: PingConfig,
    connections: Vec<u32>,
    span: Span,
    next: Time,
    left: u64,
    desk: Outbox,
}

impl Application for Pinger {
    fn poll(&mut self, now: Time) -> Action {
        if now >= self.next && self.left > 0 && self.span.is_open(now) {
            self.left -= 1;
            let bytes = self.config.size.get();
            for &connection in &self.connections {
                let message = Message {
                    bytes,
                    kind: 0,
                    tag: now.ps(),
                    reply: bytes,
                };
                self.desk.send(connection, message);
            }
            self.next = self.next.saturating_add(self.config.interval);
        }
        let goes_on = self.left > 0 && self.span.is_open(self.next);
        let next = || wait(goes_on.then_some(self.next));
        self.desk.outbox.pop_front().unwrap_or_else(next)
    }

    fn delivered(&mut self, now: Time, _: u32, message: Message) {
        let sent = Time::from_ps(message.tag);
        self.desk.record("ping", sent, now);
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
