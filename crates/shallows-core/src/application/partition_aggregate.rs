//! Partition/aggregate: a query goes to all servers at once and is answered when all have.

use serde::{Deserialize, Serialize};

use super::gather::{Ask, Gather, GatherPace};
use super::{
    Application, ApplicationError, Members, Plan, Protocol, Span, check_sizes, mesh,
    with_responders,
};
use crate::units::{Bytes, Time};

/// Queries of each client. The latencies are called `query`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PartitionAggregateConfig {
    /// Size of a request.
    pub request: Bytes,
    /// Size of a server's answer.
    pub response: Bytes,
    /// Interval between queries; if not given, a query follows the previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// Think time after an answer, if there is no interval.
    pub think: Time,
    /// Number of queries; unlimited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Transport of messages.
    pub protocol: Protocol,
}

impl Default for PartitionAggregateConfig {
    /// DCTCP's: requests of 1.6 KB, answers of 2 KB.
    fn default() -> Self {
        Self {
            request: Bytes::new(1600),
            response: Bytes::new(2000),
            interval: None,
            think: Time::ZERO,
            count: None,
            protocol: Protocol::Stream,
        }
    }
}

impl PartitionAggregateConfig {
    pub(super) fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        let sizes = [("request", self.request), ("response", self.response)];
        check_sizes(&sizes, self.protocol)?;
        let pace = match self.interval {
            Some(Time::ZERO) => return Err(ApplicationError::Zero("interval")),
            Some(interval) => GatherPace::Every(interval),
            None => GatherPace::After(self.think),
        };
        let (connections, of_clients) = mesh(members, 1, self.protocol, "partition-aggregate")?;
        let client = |connections: Vec<u32>| {
            let ask = |connection| Ask {
                connection,
                request: self.request.get(),
                response: self.response.get(),
            };
            let asks = connections.into_iter().map(ask).collect();
            let gather = Gather::new("query", asks, pace, self.count, span);
            Box::new(gather) as Box<dyn Application>
        };
        let parts = with_responders(of_clients.into_iter().map(client), members);
        Ok(Plan::new(connections, parts))
    }
}
