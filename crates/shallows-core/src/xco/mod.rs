//! XCo: explicit coordination of who sends when (Rajanna et al., "XCo: Explicit Coordination to
//! Prevent Network Fabric Congestion in Cloud Computing Cluster Platforms").
//!
//! | module | what it holds |
//! |---|---|
//! | [`fabric`] | links, hosts and the path of each pair, as the controller knows them |
//! | [`schedule`] | Algorithm 1: timeslices |
//! | [`controller`] | the central controller and its standby, an [`Agent`](crate::control::Agent) |
//! | [`coordinator`] | a host's local coordinator, an agent and a [`Gate`](crate::host::gate::Gate) |
//! | [`message`] | what they say to each other |
//! | [`hierarchy`] | a controller for each pod and one above |
//! | [`config`] | what they have to agree on |

pub mod config;
pub mod controller;
pub mod coordinator;
pub mod fabric;
pub mod hierarchy;
pub mod message;
pub mod schedule;
