//! Striped reads: a block comes in equal parts from all servers, and the next is asked for when all
//! have come (XCo §2.1, incast).

use serde::{Deserialize, Serialize};

use super::gather::{Ask, Gather, GatherPace};
use super::{
    Application, ApplicationError, Members, Plan, Protocol, Span, check_sizes, mesh,
    with_responders,
};
use crate::units::{Bytes, Time};

/// Reads of each client. The latencies are called `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct StripedReadConfig {
    /// Size of a block, striped over all servers.
    pub block: Bytes,
    /// Size of a request.
    pub request: Bytes,
    /// Think time between blocks.
    pub think: Time,
    /// Number of blocks; unlimited if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl Default for StripedReadConfig {
    fn default() -> Self {
        Self {
            block: Bytes::new(1_000_000),
            request: Bytes::new(64),
            think: Time::ZERO,
            count: None,
        }
    }
}

impl StripedReadConfig {
    pub(super) fn plan(&self, members: Members, span: Span) -> Result<Plan, ApplicationError> {
        check_sizes(&[("request", self.request)], Protocol::Stream)?;
        let servers = u64::from(members.servers);
        if self.block.get() < servers {
            return Err(ApplicationError::Zero("a server's part of the block"));
        }
        let (connections, of_clients) = mesh(members, 1, Protocol::Stream, "striped-read")?;
        let client = |connections: Vec<u32>| {
            let ask = |(part, connection)| Ask {
                connection,
                request: self.request.get(),
                // The first parts are larger by a byte if the block does not divide.
                response: self.block.get() / servers + u64::from(part < self.block.get() % servers),
            };
            let asks = (0..).zip(connections).map(ask).collect();
            let pace = GatherPace::After(self.think);
            let gather = Gather::new("block", asks, pace, self.count, span);
            Box::new(gather) as Box<dyn Application>
        };
        let parts = with_responders(of_clients.into_iter().map(client), members);
        Ok(Plan::new(connections, parts))
    }
}
