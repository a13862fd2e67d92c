//! The agent of a host: a switch between the devices of its VMs and its NIC, with a coordinator
//! before the NIC.
//!
//! ```text
//! tap0, vnet1, ... -> bridge -> coordinator -> NIC -> network
//! ```
//!
//! Frames between devices of one host do not pass the coordinator. Control messages are datagrams
//! of the machine itself: frames to the NIC's own address are left to it. In a hierarchy there are two
//! coordinators before the NIC, one for the host's pod and one for all beyond.

use std::net::UdpSocket;

use shallows_core::port::{BufferConfig, PortConfig};
use shallows_core::units::{Bytes, Length, Rate, Time};
use thiserror::Error;

use super::cluster::{Cluster, ClusterError, HostPlan};
use super::controller::ControllerError;
use super::key::HostKeys;
use crate::switch::{
    Classify, Coordination, FidelityConfig, Forwarding, PortPlan, Position, STATIONS_PER_PORT,
    Switch, SwitchConfig, SwitchError,
};

/// The NIC is the first port.
const NIC: usize = 0;

/// An agent that has sent fewer frames is not called late: the first ones of an idle host come from
/// a cold cache and a sleeping CPU.
const LEAST_JUDGED: u64 = 1_000;

/// Buffer before the NIC while the host sends uncoordinated.
const BUFFER: Bytes = Bytes::new(1_000_000);

/// The rate towards devices inside, which have no wire.
const INSIDE: Rate = Rate::from_gbps(100);

/// The reason why an agent cannot run.
#[derive(Debug, Error)]
pub enum AgentError {
    /// Its file.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Its devices.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// Its socket.
    #[error(transparent)]
    Socket(#[from] ControllerError),
}

/// Opens the devices and the socket of a host's agent, in the network namespace of the calling
/// thread.
pub fn open(
    cluster: &Cluster,
    host: usize,
    keys: &HostKeys,
    incarnation: u64,
) -> Result<Switch, AgentError> {
    let plan = &cluster.hosts[host];
    let mut switch = Switch::open(&config(cluster, plan)?)?;
    switch.keep_own(NIC)?;
    for domain in cluster.domains_of_host(host) {
        let address = domain.host_address(plan);
        let failed = |error| ControllerError::Socket { address, error };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let key = keys.of(domain.level).clone();
        switch.coordinate(Coordination {
            host: domain.number(host).unwrap_or_default(),
            level: domain.level,
            coordinator: cluster.make_coordinator(&domain, host, key, incarnation, Time::ZERO)?,
            position: Position::Egress(NIC),
            destinations: domain.destinations(cluster)?,
            socket,
            controllers: domain.controller_addresses(cluster),
            control_port: None,
        })?;
    }
    Ok(switch)
}

/// The switch of an agent. The NIC is its first port.
pub fn config(cluster: &Cluster, host: &HostPlan) -> Result<SwitchConfig, ClusterError> {
    let missing = |what| ClusterError::NoDevice(host.name.clone(), what);
    if host.nic.is_empty() {
        return Err(missing("nic"));
    }
    if host.inside.is_empty() {
        return Err(missing("inside devices"));
    }
    let egress = PortConfig {
        framing: cluster.framing,
        ..PortConfig::fifo(BufferConfig::Shared {
            size: Length::Bytes(BUFFER),
        })
    };
    let mut ports = vec![PortPlan::new(&host.nic, host.rate)];
    ports.extend(host.inside.iter().map(|inside| PortPlan {
        io: inside.io,
        ..PortPlan::new(&inside.device, INSIDE)
    }));
    Ok(SwitchConfig {
        cpu: host.cpu,
        nice: None,
        wait: host.wait,
        forwarding: Forwarding::Learning,
        stations_per_port: STATIONS_PER_PORT,
        classify: Classify::Dscp,
        seed: 0,
        metrics: host.metrics,
        fidelity: FidelityConfig {
            // What matters is how much of a slot is lost.
            late: FidelityConfig::default().late.max(cluster.slot / 10),
            least: LEAST_JUDGED,
            ..FidelityConfig::default()
        },
        sample: None,
        pool: None,
        egress,
        ports,
        trunks: Vec::new(),
    })
}
