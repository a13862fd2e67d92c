//! XCo in a live run: controllers in namespaces of their own, a coordinator before the uplink of
//! each host, and faults.
//!
//! A controller has a cable to the same switch as the hosts, so messages cross the links that data
//! crosses. A coordinator stands where a host's cable enters the switch, before the model of its
//! uplink, and speaks through a socket in the host's namespace.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use shallows_core::units::Time;
use shallows_core::xco::message::ClusterKey;
use shallows_model::{Forgery, Outage};
use thiserror::Error;

use super::cluster::{Cluster, ClusterError};
use super::controller::{ControllerDaemon, ControllerError};
use super::forge::{Attempt, Forger, open_tap};
use super::key::KeyFile;
use super::{ControllerSnapshot, incarnation};
use crate::lab::{Lab, LabError, Namespace};
use crate::since;
use crate::switch::{Control, Coordination, CoordinatorSnapshot, Position, Snapshot, set_nice};

/// The UDP port of controllers.
pub const CONTROLLER_PORT: u16 = 4783;
/// The UDP port of agents.
pub const AGENT_PORT: u16 = 4784;

/// Controllers share their CPU with the hosts, and come first.
const CONTROLLER_NICE: i32 = -15;

/// From one look at everybody to the next.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// Time that a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Controllers and coordinators of a run.
#[derive(Clone, Debug)]
pub struct XcoPlan {
    /// Hosts and controllers; the hosts are the first of the lab.
    pub cluster: Cluster,
    /// The hosts of the lab that the controllers are at.
    pub controllers_at: Vec<usize>,
    /// Outages of controllers.
    pub outages: Vec<Outage>,
    /// Host of the lab that poses as a controller, and its attempts.
    pub forger: Option<(usize, Forgery)>,
}

/// An end of an outage.
#[derive(Clone, Copy, Debug)]
enum Event {
    Crash,
    Restart,
}

impl Event {
    /// Times, controller and events of an outage.
    fn of(outage: &Outage) -> impl Iterator<Item = (Time, usize, Self)> {
        let controller = outage.controller as usize;
        let restart = outage.restart.map(|at| (at, controller, Self::Restart));
        [(outage.crash, controller, Self::Crash)]
            .into_iter()
            .chain(restart)
    }
}

/// The reason why the run cannot be coordinated.
#[derive(Debug, Error)]
pub enum XcoLabError {
    /// The lab.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A controller.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// A socket.
    #[error("a control socket of host {host}: {error}")]
    Socket {
        /// Host of the socket.
        host: usize,
        /// Error of the system.
        error: io::Error,
    },
    /// Hosts are not under control.
    #[error(
        "{0} hosts were not coordinated {1:?} after the controller began: is the machine too busy?"
    )]
    NotCoordinated(usize, Duration),
}

/// Observations of controllers and coordinators.
#[derive(Clone, Debug, Default)]
pub struct XcoObserved {
    /// Everything, twenty times a second.
    pub samples: Vec<XcoSample>,
    /// Events, in words.
    pub events: Vec<(Time, String)>,
    /// Attempts of the forger.
    pub forged: u64,
    /// Each controller at its end, one for each time that it ran.
    pub controllers: Vec<ControllerSnapshot>,
}

/// Everybody at one moment.
#[derive(Clone, Debug)]
pub struct XcoSample {
    /// Time of the sample.
    pub time: Time,
    /// The coordinators, by host.
    pub coordinators: Vec<CoordinatorSnapshot>,
    /// The controllers that run.
    pub controllers: Vec<Option<ControllerSnapshot>>,
    /// Bytes that the switch has accepted so far for each host.
    pub delivered: Vec<u64>,
    /// Packets that the switch's ports have dropped so far.
    pub drops: u64,
    /// Attempts of the forger so far.
    pub forged: u64,
}

/// Controllers that run.
pub(crate) struct XcoLab {
    plan: XcoPlan,
    key: ClusterKey,
    seats: Vec<Namespace>,
    running: Vec<Option<RunningController>>,
    forger: Option<Forger>,
    observed: XcoObserved,
}

#[derive(Debug)]
struct RunningController {
    control: Control<ControllerSnapshot>,
    thread: JoinHandle<Result<ControllerSnapshot, XcoLabError>>,
}

impl XcoLab {
    /// Starts the controllers, and makes what the switch needs for its coordinators.
    pub(crate) fn start(
        lab: &Lab,
        plan: &XcoPlan,
    ) -> Result<(Self, Vec<Coordination>), XcoLabError> {
        plan.cluster.check()?;
        let failed = |host| move |error| XcoLabError::Socket { host, error };
        let key = KeyFile::random().map_err(failed(0))?;
        let KeyFile::Cluster(key) = key else {
            unreachable!("a random key is a cluster's")
        };
        let key = ClusterKey::new(key);
        let destinations = plan.cluster.destinations()?;
        let whole = plan.cluster.whole();
        let mut coordinations = Vec::new();
        for (host, of) in plan.cluster.hosts.iter().enumerate() {
            let (number, address) = (host as u32, of.address);
            let socket = lab.host(host).enter(|| -> io::Result<UdpSocket> {
                let socket = UdpSocket::bind(address)?;
                socket.set_nonblocking(true)?;
                Ok(socket)
            })?;
            let cluster = &plan.cluster;
            coordinations.push(Coordination {
                host: number,
                level: whole.level,
                coordinator: cluster.make_coordinator(
                    &whole,
                    host,
                    cluster.host_key(&key, host),
                    incarnation(),
                    Time::ZERO,
                )?,
                position: Position::Uplink(host),
                destinations: destinations.clone(),
                socket: socket.map_err(failed(host))?,
                controllers: whole.controller_addresses(cluster),
                control_port: Some(CONTROLLER_PORT),
            });
        }
        let seats = plan.controllers_at.iter().map(|&host| lab.host(host));
        let seats: Vec<Namespace> = seats.cloned().collect();
        let mut started = Self {
            forger: plan
                .forger
                .map(|(at, forgery)| open_forger(lab, &plan.cluster, at, &forgery))
                .transpose()?,
            running: seats.iter().map(|_| None).collect(),
            plan: plan.clone(),
            key,
            seats,
            observed: XcoObserved::default(),
        };
        for place in 0..started.seats.len() {
            started.start_controller(place)?;
        }
        Ok((started, coordinations))
    }

    fn start_controller(&mut self, place: usize) -> Result<(), XcoLabError> {
        let control = Control::default();
        let daemon = self.seats[place].enter(|| {
            ControllerDaemon::open(&self.plan.cluster, place, &self.key, incarnation())
        })??;
        let inside = control.clone();
        let thread = thread::spawn(move || {
            set_nice(CONTROLLER_NICE).map_err(LabError::from)?;
            Ok(daemon.run(&inside, |_| {}))
        });
        self.running[place] = Some(RunningController { control, thread });
        Ok(())
    }

    fn stop_controller(&mut self, place: usize) -> Result<(), XcoLabError> {
        if let Some(RunningController { control, thread }) = self.running[place].take() {
            control.stop();
            match thread.join() {
                Ok(ended) => self.observed.controllers.push(ended?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    }

    /// Waits until all hosts are under control.
    pub(crate) fn await_coordination(
        &self,
        snapshot: impl Fn() -> Option<Snapshot>,
    ) -> Result<(), XcoLabError> {
        let protocol = &self.plan.cluster.protocol;
        // With standbys a leader is elected first.
        let patience = protocol.silence * 8 + self.plan.cluster.slot * 32;
        let patience = patience.to_duration() + Duration::from_secs(3);
        let deadline = Instant::now() + patience;
        loop {
            let others = snapshot().map_or(usize::MAX, |snapshot| {
                let modes = snapshot.coordinators.iter();
                modes.filter(|of| of.mode != "coordinated").count()
            });
            if others == 0 {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(XcoLabError::NotCoordinated(others, patience));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Watches everybody and lets outages happen, until `over`.
    pub(crate) fn observe(
        mut self,
        epoch: Instant,
        over: &AtomicBool,
        snapshot: impl Fn() -> Option<Snapshot>,
    ) -> Result<XcoObserved, XcoLabError> {
        let mut events: Vec<(Time, usize, Event)> =
            self.plan.outages.iter().flat_map(Event::of).collect();
        events.sort_by_key(|&(at, ..)| std::cmp::Reverse(at));
        let mut next_sample = epoch;
        let mut next_attempt = self.plan.forger.map(|(_, plan)| plan.start);
        while !over.load(Ordering::Relaxed) {
            let now = since(epoch);
            while let Some((_, place, event)) = events.pop_if(|&mut (at, ..)| at <= now) {
                self.apply(now, place, event)?;
            }
            if next_attempt.is_some_and(|at| at <= now) {
                next_attempt = self.forge(now);
            }
            if Instant::now() >= next_sample {
                next_sample += SAMPLE_EVERY;
                self.sample(epoch, &snapshot);
            }
            let event = events.last().map(|&(at, ..)| at);
            let wakeups = [event, next_attempt].into_iter().flatten().min();
            let wakeup = wakeups.map(|at| epoch + at.to_duration());
            let wakeup = wakeup.map_or(next_sample, |at| at.min(next_sample));
            thread::sleep(wakeup.saturating_duration_since(Instant::now()));
        }
        self.sample(epoch, &snapshot);
        for place in 0..self.running.len() {
            self.stop_controller(place)?;
        }
        Ok(std::mem::take(&mut self.observed))
    }

    fn apply(&mut self, now: Time, place: usize, event: Event) -> Result<(), XcoLabError> {
        let what = match event {
            Event::Crash => {
                self.stop_controller(place)?;
                "killed"
            }
            Event::Restart => {
                self.start_controller(place)?;
                "started"
            }
        };
        let name = &self.plan.cluster.controllers[place].name;
        let event = format!("controller {name} {what}");
        self.observed.events.push((now, event));
        Ok(())
    }

    /// One attempt of each kind, and when to try again.
    fn forge(&mut self, now: Time) -> Option<Time> {
        let (_, plan) = self.plan.forger?;
        if now >= plan.stop {
            self.observed.events.push((now, "forgery ends".to_owned()));
            return None;
        }
        if self.observed.forged == 0 {
            self.observed
                .events
                .push((now, "forgery begins".to_owned()));
        }
        let forger = self.forger.as_mut()?;
        for attempt in Attempt::ALL {
            // What does not leave the machine is not an attempt.
            let sent = forger.attempt(attempt).unwrap_or(false);
            self.observed.forged += u64::from(sent);
        }
        Some(now + plan.every)
    }

    fn sample(&mut self, epoch: Instant, snapshot: impl Fn() -> Option<Snapshot>) {
        let Some(snapshot) = snapshot() else {
            return;
        };
        let time = since(epoch);
        let hosts = self.plan.cluster.hosts.len();
        let links = snapshot.links[..hosts].iter();
        let accepted = links.map(|link| link.queues.iter().map(|q| q.accepted_bytes).sum());
        let running = self.running.iter();
        let controllers = running.map(|of| of.as_ref()?.control.snapshot(PATIENCE));
        self.observed.samples.push(XcoSample {
            time,
            delivered: accepted.collect(),
            drops: snapshot.drops(),
            controllers: controllers.collect(),
            coordinators: snapshot.coordinators,
            forged: self.observed.forged,
        });
    }
}

impl Drop for XcoLab {
    fn drop(&mut self) {
        for running in self.running.iter().flatten() {
            running.control.stop();
        }
    }
}

fn open_forger(
    lab: &Lab,
    cluster: &Cluster,
    at: usize,
    plan: &Forgery,
) -> Result<Forger, XcoLabError> {
    let host = plan.victim as usize;
    let failed = |host| move |error| XcoLabError::Socket { host, error };
    let tap = lab.host(host).enter(open_tap)?;
    let tap = tap.map_err(failed(host))?;
    let v4 = |address: SocketAddr| match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => SocketAddrV4::new([0; 4].into(), 0),
    };
    let (controller, address) = cluster.whole().controller_addresses(cluster)[0];
    let victim = cluster.hosts[host].address;
    let open = || {
        let victim = (plan.victim, v4(victim));
        Forger::new(tap, (controller, v4(address)), victim)
    };
    lab.host(at).enter(open)?.map_err(failed(at))
}
