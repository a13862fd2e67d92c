//! Requests and responses with think time, like those of memcached and its load generators.

use serde::{Deserialize, Serialize};

use super::{
    Action, Application, ApplicationError, Desk, Members, Message, Plan, Protocol, Sample, Span,
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
    /// A key with what goes with it: a GET, and the answer to a SET.
    pub key: Bytes,
    /// A value: the answer to a GET. A SET has both.
    pub value: Bytes,
    /// The share of GETs.
    pub get_share: f64,
    /// When a client asks.
    pub pace: Pace,
    /// How many requests each client makes; without end if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// How messages travel.
    pub protocol: Protocol,
    /// Of the choice between GET and SET.
    pub seed: u64,
}

/// When a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pace {
    /// As soon as it has an answer and has thought about it.
    Closed {
        /// From an answer to the next request.
        #[serde(default)]
        think: Time,
        /// Requests that may wait for their answers at once.
        #[serde(default = "one")]
        outstanding: u32,
    },
    /// At an interval, whatever has been answered.
    Open {
        /// From one request to the next.
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
        let (connections, of_clients) = mesh(members, 1, self.protocol, "requests")?;
        let client = |(number, connections)| {
            Box::new(Client {
                config: *self,
                connections,
                span,
                due: vec![span.start; outstanding as usize],
                made: 0,
                coin: Coin::new(self.seed, number),
                desk: Desk::default(),
            }) as Box<dyn Application>
        };
        let clients = (0..).zip(of_clients).map(client);
        let parts = with_responders(clients, members);
        Ok(Plan { connections, parts })
    }
}

#[derive(Debug)]
struct Client {
    config: RequestsConfig,
    connections: Vec<u32>,
    span: Span,
    /// When requests are to be made.
    due: Vec<Time>,
    made: u64,
    coin: Coin,
    desk: Desk,
}

impl Client {
    fn request(&mut self, now: Time) {
        let Self { config, .. } = self;
        let (key, value) = (config.key.get(), config.value.get());
        let (kind, bytes, reply) = if self.coin.heads(config.get_share) {
            (GET, key, value)
        } else {
            (SET, key + value, key)
        };
        let servers = self.connections.len() as u64;
        let connection = self.connections[(self.made % servers) as usize];
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
        while let Some(index) = self.due.iter().position(|&due| due <= now)
            && self.goes_on(now)
        {
            let due = self.due.swap_remove(index);
            self.request(now);
            if let Pace::Open { interval } = self.config.pace {
                self.due.push(due.saturating_add(interval));
            }
        }
        let next = self.due.iter().copied().min();
        let next = next.filter(|&at| self.goes_on(at));
        let idle = || wait(next);
        self.desk.outbox.pop_front().unwrap_or_else(idle)
    }

    fn delivered(&mut self, now: Time, _: u32, message: Message) {
        let name = if message.kind == GET { "get" } else { "set" };
        self.desk.record(name, Time::from_ps(message.tag), now);
        if let Pace::Closed { think, .. } = self.config.pace {
            self.due.push(now.saturating_add(think));
        }
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
