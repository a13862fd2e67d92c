//! XCo: explicit coordination of who sends when (Rajanna et al., "XCo: Explicit Coordination to
//! Prevent Network Fabric Congestion in Cloud Computing Cluster Platforms").
//!
//! | module | what it holds |
//! |---|---|
//! | [`fabric`] | links, hosts and the path of each pair, as the controller knows them |
//! | [`schedule`] | Algorithm 1: timeslices |

pub mod fabric;
pub mod schedule;
