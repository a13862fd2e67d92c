//! The connections of a run: of flows, of applications, and of control agents.

use shallows_model::workload::{Ends, Workload};
use shallows_model::{FlowId, Id as _, IdVec};

use crate::ids::{ChannelId, ConnectionId, LaneId};

/// For each connection, where its paths begin, forth and back.
pub(crate) type Routes = IdVec<ConnectionId, [u32; 2]>;

/// The user of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Flows, of which this is the first.
    Flow(FlowId),
    /// An application, in one direction.
    Lane(LaneId),
    /// Control agents, in one direction.
    Channel(ChannelId),
}

/// All connections, by number: one for each flow, which not all open, then lanes, then channels.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    flows: u32,
    lanes: u32,
    /// Hosts and services of lanes and channels.
    others: Vec<Ends>,
}

impl Directory {
    /// The connections of a workload's flows.
    pub(crate) fn new(workload: &Workload) -> Self {
        Self {
            flows: workload.flows.len() as u32,
            lanes: 0,
            others: Vec::new(),
        }
    }

    /// Adds both directions of an application's connection. Channels come after all of them.
    pub(crate) fn add_lanes(&mut self, ends: [Ends; 2]) {
        self.others.extend(ends);
        self.lanes += 2;
    }

    /// Adds a channel.
    pub(crate) fn add_channel(&mut self, ends: Ends) -> ConnectionId {
        self.others.push(ends);
        ConnectionId(self.flows + self.others.len() as u32 - 1)
    }

    /// Number of connections.
    pub(crate) fn len(&self) -> usize {
        self.flows as usize + self.others.len()
    }

    /// The connection of a lane.
    pub(crate) fn of_lane(&self, lane: LaneId) -> ConnectionId {
        ConnectionId(self.flows + lane.0)
    }

    /// The user of a connection.
    #[inline]
    pub(crate) fn user(&self, connection: ConnectionId) -> Connection {
        let Some(other) = connection.0.checked_sub(self.flows) else {
            return Connection::Flow(FlowId(connection.0));
        };
        match other.checked_sub(self.lanes) {
            None => Connection::Lane(LaneId(other)),
            Some(channel) => Connection::Channel(ChannelId(channel)),
        }
    }

    /// Hosts and service of a connection.
    #[inline]
    pub(crate) fn ends(&self, workload: &Workload, connection: ConnectionId) -> Ends {
        match workload.flows.get(FlowId(connection.0)) {
            Some(flow) => flow.into(),
            None => self.others[connection.index() - self.flows as usize],
        }
    }

    /// Hosts and services of all connections.
    pub(crate) fn all<'a>(&'a self, workload: &'a Workload) -> impl Iterator<Item = Ends> + 'a {
        let flows = workload.flows.iter().map(Ends::from);
        flows.chain(self.others.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use shallows_core::units::Time;
    use shallows_model::HostId;
    use shallows_model::workload::FlowSpec;

    use super::*;

    #[test]
    fn every_connection_has_one_user() {
        let ends = |src, dst| Ends {
            src: HostId(src),
            dst: HostId(dst),
            service: 3,
        };
        let flow = |src, dst| FlowSpec {
            start: Time::ZERO,
            src: HostId(src),
            dst: HostId(dst),
            bytes: 1,
            service: 3,
        };
        let workload = Workload {
            flows: vec![flow(0, 1), flow(1, 2)].into(),
            ..Workload::default()
        };
        let mut directory = Directory::new(&workload);
        directory.add_lanes([ends(4, 5), ends(5, 4)]);
        assert_eq!(directory.add_channel(ends(6, 7)), ConnectionId(4));
        let users: Vec<Connection> = (0..5)
            .map(|number| directory.user(ConnectionId(number)))
            .collect();
        let expected = [
            Connection::Flow(FlowId(0)),
            Connection::Flow(FlowId(1)),
            Connection::Lane(LaneId(0)),
            Connection::Lane(LaneId(1)),
            Connection::Channel(ChannelId(0)),
        ];
        assert_eq!(users, expected);
        assert_eq!(directory.of_lane(LaneId(1)), ConnectionId(3));
        let all: Vec<Ends> = directory.all(&workload).collect();
        assert_eq!(all.len(), directory.len());
        for (number, expected) in (0..).zip(all) {
            assert_eq!(directory.ends(&workload, ConnectionId(number)), expected);
        }
    }
}
