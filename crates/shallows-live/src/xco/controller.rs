//! The controller as a daemon: one thread over one UDP socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use rustc_hash::FxHashMap;
use shallows_core::control::Agent as _;
use shallows_core::units::Time;
use shallows_core::xco::controller::{Controller, Role};
use shallows_core::xco::message::ClusterKey;
use thiserror::Error;

use super::ControllerSnapshot;
use super::cluster::{Cluster, ClusterError};
use super::hierarchy::Paths;
use crate::since;
use crate::switch::{Buckets, Control, LONGEST_MESSAGE, STRANGER, Wait, refused};

/// Most sleep, so that requests from other threads are seen.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// The longest latency that is told apart, in ns.
const LONGEST_LATENCY: u64 = 10_000_000_000;

/// Messages taken before timers have their turn again.
const MESSAGES_AT_A_TURN: usize = 64;

/// The reason why a controller cannot run.
#[derive(Debug, Error)]
pub enum ControllerError {
    /// Its file.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Its socket.
    #[error("cannot take messages at {address}: {error}")]
    Socket {
        /// Address of the socket.
        address: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
}

/// A controller with its socket open.
#[derive(Debug)]
pub struct ControllerDaemon {
    name: String,
    cluster: Cluster,
    key: ClusterKey,
    controller: Controller<Paths>,
    socket: UdpSocket,
    /// Agents by where their messages come from, and the other way.
    numbers: FxHashMap<SocketAddr, u32>,
    addresses: FxHashMap<u32, SocketAddr>,
    wait: Wait,
    epoch: Instant,
    latency: Histogram<u64>,
    unsent: u64,
    buffer: Vec<u8>,
}

/// A controller that leads, stands by or tries to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// New role.
    pub role: Role,
    /// The term of leadership.
    pub term: u32,
}

impl std::fmt::Display for RoleChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { role, term } = self;
        match role {
            Role::Leader => write!(f, "leads, term {term}"),
            Role::Candidate => write!(f, "asks hosts to follow it, term {term}"),
            Role::Standby => write!(f, "stands by, term {term}"),
        }
    }
}

impl ControllerDaemon {
    /// Opens the socket of the controller at this place of the file, in the network namespace of
    /// the calling thread.
    ///
    /// # Panics
    /// If the cluster has no controller at this place.
    pub fn open(
        cluster: &Cluster,
        place: usize,
        key: &ClusterKey,
        incarnation: u64,
    ) -> Result<Self, ControllerError> {
        let plan = &cluster.controllers[place];
        let address = plan.address;
        let failed = |error| ControllerError::Socket { address, error };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let domain = cluster.domain_of_controller(place);
        let addresses: FxHashMap<u32, SocketAddr> = domain.addresses(cluster).into_iter().collect();
        Ok(Self {
            name: plan.name.clone(),
            cluster: cluster.clone(),
            key: key.clone(),
            controller: cluster.make_controller(place, key, incarnation, Time::ZERO)?,
            socket,
            numbers: addresses.iter().map(|(&of, &at)| (at, of)).collect(),
            addresses,
            wait: plan.wait,
            epoch: Instant::now(),
            latency: Histogram::new_with_bounds(1, LONGEST_LATENCY, 3)
                .expect("three digits are a precision"),
            unsent: 0,
            buffer: Vec::new(),
        })
    }

    /// Works until it is told to stop, and tells when its role changes.
    pub fn run(
        mut self,
        control: &Control<ControllerSnapshot>,
        mut tell: impl FnMut(RoleChange),
    ) -> ControllerSnapshot {
        let mut role = None;
        while !control.is_stopped() {
            let idle = !self.receive();
            let now = self.now();
            if self.controller.timeout().is_some_and(|due| due <= now) {
                let begun = Instant::now();
                self.controller.handle_timeout(now);
                self.send(begun);
            }
            if role != Some(self.controller.role()) {
                role = Some(self.controller.role());
                let (role, term) = (self.controller.role(), self.controller.epoch().counter);
                tell(RoleChange { role, term });
            }
            if let Some(cluster) = control.take_change() {
                self.take_over(*cluster);
            }
            if control.take_request() {
                control.answer(self.snapshot());
            }
            if idle && self.wait == Wait::Block {
                self.sleep();
            }
        }
        self.snapshot()
    }

    /// Goes on with another file, of which [`Cluster::changes`] has said that it can.
    fn take_over(&mut self, cluster: Cluster) {
        let begun = Instant::now();
        let now = self.now();
        // Both were tried when the file was read.
        let whole = cluster.whole();
        let (Ok(fabric), Ok(tree)) = (cluster.domain_fabric(&whole), cluster.tree()) else {
            return;
        };
        let before = &self.cluster;
        // A hierarchy takes no change over.
        if before.hierarchy.is_some() {
            return;
        }
        let is_same = before.hosts == cluster.hosts && before.trunks.len() == cluster.trunks.len();
        if is_same {
            // Slots go on; only what crosses a trunk can change.
            let rates = (0..).zip(before.link_rates().into_iter().zip(cluster.link_rates()));
            for (link, (_, rate)) in rates.filter(|(_, (before, after))| before != after) {
                self.controller.set_capacity(now, link, rate);
            }
            if before.tree().ok().as_ref() != Some(&tree) {
                self.controller.set_routes(now, Paths::All(tree));
            }
        } else {
            let keys = cluster.host_keys(&self.key);
            let weights = whole.weights(&cluster);
            self.controller.replace_fabric(now, fabric, weights, keys);
        }
        self.addresses = whole.addresses(&cluster).into_iter().collect();
        self.numbers = self.addresses.iter().map(|(&of, &at)| (at, of)).collect();
        self.cluster = cluster;
        self.send(begun);
    }

    fn now(&self) -> Time {
        since(self.epoch)
    }

    /// Takes messages that have come in; false if there was none.
    fn receive(&mut self) -> bool {
        let mut buffer = [0; LONGEST_MESSAGE];
        for taken in 0..MESSAGES_AT_A_TURN {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, source)) => {
                    let begun = Instant::now();
                    let from = self.numbers.get(&source).copied().unwrap_or(STRANGER);
                    let now = self.now();
                    self.controller.handle(now, from, &buffer[..length]);
                    self.send(begun);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return taken > 0,
                // An ICMP error of an earlier message: the next one may be there.
                Err(_) => {}
            }
        }
        true
    }

    /// Sends all that there is to say about an event that was seen at `begun`.
    fn send(&mut self, begun: Instant) {
        let mut any = false;
        loop {
            self.buffer.clear();
            let now = self.now();
            let Some(to) = self.controller.transmit(now, &mut self.buffer) else {
                break;
            };
            any = true;
            let address = self.addresses.get(&to);
            let sent = address.map(|address| self.socket.send_to(&self.buffer, address));
            // The protocol repeats what is lost.
            self.unsent += u64::from(!matches!(sent, Some(Ok(_))));
        }
        if any {
            self.latency
                .saturating_record(begun.elapsed().as_nanos() as u64);
        }
    }

    fn sleep(&self) {
        let due = self.controller.timeout().unwrap_or(Time::MAX);
        let left = due.saturating_sub(self.now()).to_duration();
        let mut files = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let left = TimeSpec::from_duration(left.min(LONGEST_SLEEP));
        // An interrupted or failed sleep is a short one.
        let _ = ppoll(&mut files, Some(left), None);
    }

    fn snapshot(&self) -> ControllerSnapshot {
        let controller = &self.controller;
        let counters = controller.counters();
        let hosts = controller.schedule().fabric().hosts();
        let busy = |host: &u32| controller.schedule().directive(*host).is_some();
        let us = |quantile| self.latency.value_at_quantile(quantile) as f64 / 1e3;
        ControllerSnapshot {
            name: self.name.clone(),
            uptime_s: self.epoch.elapsed().as_secs_f64(),
            mode: match controller.role() {
                Role::Standby => "standby",
                Role::Candidate => "candidate",
                Role::Leader => "leader",
            }
            .to_owned(),
            epoch: controller.epoch().counter,
            leader: controller.epoch().leader,
            hosts: hosts.into(),
            joined: controller.joined() as u64,
            pairs: controller.schedule().backlogged() as u64,
            slots: (0..hosts).filter(busy).count() as u64,
            grants: counters.grants,
            returned: counters.returned,
            expired: counters.expired,
            terms: counters.terms,
            clock_jumps: counters.clock_jumps,
            accepted: counters.messages.accepted,
            refused: refused(&counters.messages),
            unsent: self.unsent,
            events: self.latency.len(),
            latency_p50_us: us(0.5),
            latency_p99_us: us(0.99),
            latency_max_us: self.latency.max() as f64 / 1e3,
            latency_buckets: Buckets::of(&self.latency),
        }
    }
}
