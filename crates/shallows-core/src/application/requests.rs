//! Requests and responses with think time, like those of memcached and its load generators.

use serde::{Deserialize, Serialize};

use super::{
    Action, Application, ApplicationError, Members, Message, Outbox, Plan, Protocol, Sample, Span,
    check_sizes, mesh, wait, with_responders,
};
use crate::random::Coin;
use crate::units::{Bytes, Time};

/// GET and SET requests from each client to all servers in turn. The latencies are called `get` and
/// `set`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RequestsConfig {
    /// Size of a key with its overhead: a GET, and the answer to a SET.
    pub key: Bytes,
    /// Size of a value: the answer to a GET. A SET carries key and value.
    pub value: Bytes,
    /// Fraction of requests that are GETs.
    pub get_share: f64,
    /// Pacing of requests.
    pub pace: Pace,
    /// Number of requests per client; unlimited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Transport of messages.
    pub protocol: Protocol,
    /// Connections from each client to each server. A request follows the answer on its own
    /// connection, as memaslap's concurrent requests have a socket each.
    pub connections: u32,
    /// Seed of the choice between GET and SET.
    pub seed: u64,
}

/// Pacing of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pace {
    /// Closed loop: a request follows an answer after the think time.
    Closed {
        /// Think time after an answer.
        #[serde(default)]
        think: Time,
        /// Number of outstanding requests.
        #[serde(default = "one")]
        outstanding: u32,
    },
    /// Open loop: requests at a fixed interval.
    Open {
        /// Interval between requests.
        interval: Time,
    },
}

fn one() -> u32 {
    1
}

impl Default for RequestsConfig {
    /// memaslap's: keys of 64 B, values of 1024 B, nine GETs to one SET.
    fn default() -> Self {
        Self {
            key: Bytes::new(64),
            value: Bytes::new(1024),
            get_share: 0.9,
            pace: Pace::Closed {
                think: Time::ZERO,
                outstanding: 1,
            },
            count: None,
            protocol: Protocol::Stream,
            connections: 1,
            seed: 1,
        }
    }
}

const GET: u8 = 0;
const SET: u8 = 1;

impl RequestsConfig {
    pub(super) fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        check_sizes(&[("key", self.key), ("value", self.value)], self.protocol)?;
        check_sizes(&[("key and value", self.key + self.value)], self.protocol)?;
        if !(0.0..=1.0).contains(&self.get_share) {
            return Err(ApplicationError::Share(self.get_share));
        }
        let outstanding = match self.pace {
            Pace::Closed { outstanding: 0, .. } => {
                return Err(ApplicationError::Zero("outstanding"));
            }
            Pace::Open {
                interval: Time::ZERO,
            } => return Err(ApplicationError::Zero("interval")),
            Pace::Closed { outstanding, .. } => outstanding,
            Pace::Open { .. } => 1,
        };
        let each = self.connections;
        match self.pace {
            _ if each == 0 => return Err(ApplicationError::Zero("connections")),
            Pace::Closed { .. } if each > outstanding => {
                return Err(ApplicationError::UnusedConnections { each, outstanding });
            }
            _ => {}
        }
        let (connections, of_clients) = mesh(members, each, self.protocol, "requests")?;
        let client = |(number, connections)| {
            Box::new(Client {
                config: *self,
                connections,
                span,
                due: (0..outstanding)
                    .map(|lane| (span.start, lane % each))
                    .collect(),
                made: 0,
                coin: Coin::new(self.seed, number),
                desk: Outbox::default(),
            }) as Box<dyn Application>
        };
        let clients = (0..).zip(of_clients).map(client);
        let parts = with_responders(clients, members);
        Ok(Plan::new(connections, parts))
    }
}

#[derive(Debug)]
struct Client {
    config: RequestsConfig,
    connections: Vec<u32>,
    span: Span,
    /// Due times of requests, and the connection to a server that each uses.
    due: Vec<(Time, u32)>,
    made: u64,
    coin: Coin,
    desk: Outbox,
}

impl Client {
    fn request(&mut self, now: Time, lane: u32) {
        let Self { config, .. } = self;
        let (key, value) = (config.key.get(), config.value.get());
        let (kind, bytes, reply) = if self.coin.heads(config.get_share) {
            (GET, key, value)
        } else {
            (SET, key + value, key)
        };
        let each = u64::from(config.connections);
        let server = self.made % (self.connections.len() as u64 / each);
        let connection = self.connections[(server * each) as usize + lane as usize];
        self.made += 1;
        let message = Message {
            bytes,
            kind,
            tag: now.ps(),
            reply,
        };
        self.desk.send(connection, message);
    }

    fn goes_on(&self, at: Time) -> bool {
        self.config.count.is_none_or(|count| self.made < count) && self.span.is_open(at)
    }
}

impl Application for Client {
    fn poll(&mut self, now: Time) -> Action {
        while let Some(index) = self.due.iter().position(|&(due, _)| due <= now)
            && self.goes_on(now)
        {
            let (due, lane) = self.due.swap_remove(index);
            self.request(now, lane);
            if let Pace::Open { interval } = self.config.pace {
                let next = (lane + 1) % self.config.connections;
                self.due.push((due.saturating_add(interval), next));
            }
        }
        let next = self.due.iter().map(|&(due, _)| due).min();
        let next = next.filter(|&at| self.goes_on(at));
        let idle = || wait(next);
        self.desk.outbox.pop_front().unwrap_or_else(idle)
    }

    fn delivered(&mut self, now: Time, connection: u32, message: Message) {
        let name = if message.kind == GET { "get" } else { "set" };
        self.desk.record(name, Time::from_ps(message.tag), now);
        if let Pace::Closed { think, .. } = self.config.pace {
            let first = self.connections.first().copied().unwrap_or_default();
            let lane = (connection - first) % self.config.connections;
            self.due.push((now.saturating_add(think), lane));
        }
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
