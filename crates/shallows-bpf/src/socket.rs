//! A socket that runs one of the controllers.

use std::net::SocketAddr;

use serde::Serialize;
use shallows_core::units::Time;

use crate::{Controller, Delay};

/// A socket and what its controller knows.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Socket {
    /// Its controller.
    pub controller: Controller,
    /// Inode of its network namespace.
    pub namespace: u32,
    /// Its own address.
    pub local: SocketAddr,
    /// The other end; unspecified for a listener.
    pub remote: SocketAddr,
    /// State of the connection.
    pub state: TcpState,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; none before the first sign of congestion.
    pub ssthresh: Option<u32>,
    /// Bytes of data in a full segment.
    pub segment: u32,
    /// Smoothed fraction of congestion, of controllers that have one.
    pub alpha: Option<f64>,
    /// Smoothed round-trip time.
    pub srtt: Time,
    /// The least round-trip time, which a late one is compared with. One-way delays have an unknown
    /// offset, so none is known of them.
    pub base_rtt: Option<Time>,
    /// By how much the latest delay exceeded the least.
    pub queueing: Option<Time>,
    /// Definition of the delay.
    pub delay: Option<Delay>,
    /// Segments that the other end has received.
    pub delivered: u32,
    /// Those of them whose ACK had ECN-Echo.
    pub delivered_ce: u32,
    /// Marked segments received; 0 before Linux 6.18.
    pub received_ce: u32,
    /// Segments sent again.
    pub retransmits: u32,
}

/// State of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TcpState {
    /// Data may flow.
    Established,
    /// Waits for connections, which will run the controller.
    Listen,
    /// Opening or closing.
    Other,
}
