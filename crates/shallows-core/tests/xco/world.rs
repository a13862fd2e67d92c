//! Hosts, controllers and what is on its way between them, in true time.

mod fabric;
mod look;

use std::collections::{BTreeMap, BTreeSet};

use shallows_core::control::Agent;
use shallows_core::host::gate::{Gate, Release, Verdict};
use shallows_core::packet::Descriptor;
use shallows_core::port::Framing;
use shallows_core::units::{Bytes, Rate, Time};
use shallows_core::xco::config::{OnDemand, Protocol};
use shallows_core::xco::controller::{Controller, ControllerConfig, Directives, Role};
use shallows_core::xco::coordinator::{Coordinator, CoordinatorConfig, GateConfig};
use shallows_core::xco::message::{ClusterKey, Station};

use crate::clock::Clock;
use crate::network::{Dice, Weather};
pub(crate) use fabric::TwoRacks;
use fabric::{LINKS, capacity, fabric, host_rate};

pub(crate) const HOSTS: u32 = 6;
/// Addresses of controllers; a world has the first one, two or three.
pub(crate) const CONTROLLERS: [u32; 3] = [100, 101, 102];
pub(crate) const SLOT: Time = Time::from_ms(4);
pub(crate) const PATIENCE: Time = Time::from_ms(60);
pub(crate) const PROTOCOL: Protocol = Protocol {
    keepalive: Time::from_ms(20),
    retry: Time::from_ms(5),
    silence: Time::from_ms(80),
    drift: 200,
};

pub(crate) const ON_DEMAND: OnDemand = OnDemand {
    window: Time::from_ms(4),
    large: 5,
    enter: 80,
    leave: 50,
    calm: Time::from_ms(12),
};

/// The slots of one host are longer.
fn weights() -> BTreeMap<u32, u32> {
    BTreeMap::from([(1, 2)])
}

/// What has gone wrong, in one sentence.
pub(crate) type Violation = String;

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) dice: Dice,
    pub(crate) weather: Weather,
    /// Pairs of addresses between which nothing passes.
    pub(crate) cut: BTreeSet<(u32, u32)>,
    pub(crate) directives: Directives,
    pub(crate) on_demand: Option<OnDemand>,
    hosts: Vec<HostNode>,
    controllers: Vec<ControllerNode>,
    agenda: BTreeMap<(Time, u64), Happening>,
    order: u64,
    incarnations: u64,
    key: ClusterKey,
    /// Lines that a person can read; only of runs that are known to fail.
    pub(crate) trace: Option<Vec<String>>,
    pub(crate) stats: Stats,
}

#[derive(Default, Debug)]
pub(crate) struct Stats {
    pub(crate) released: u64,
    /// Packets that needed no permission.
    pub(crate) passed: u64,
    pub(crate) longest_wait: Time,
    pub(crate) terms: u64,
}

struct HostNode {
    clock: Clock,
    coordinator: Option<Coordinator<Descriptor>>,
    wake: Option<Time>,
    /// Backlogged destinations, and when each last moved a packet.
    waiting: BTreeMap<u32, (u32, Time)>,
}

struct ControllerNode {
    clock: Clock,
    controller: Option<Controller<TwoRacks>>,
    /// How long it takes to answer.
    slowness: Time,
    wake: Option<Time>,
}

#[derive(Debug)]
enum Happening {
    Arrival {
        from: u32,
        to: u32,
        message: Vec<u8>,
    },
    Wake(u32),
}

impl World {
    pub(crate) fn new(
        seed: u64,
        controllers: usize,
        directives: Directives,
        on_demand: Option<OnDemand>,
        trace: bool,
    ) -> Self {
        let mut dice = Dice::new(seed);
        let mut clock = || {
            let drift = dice.below(401).cast_signed() - 200;
            Clock::new(Time::from_us(1 + dice.below(10_000_000)), drift)
        };
        let host = |clock| HostNode {
            clock,
            coordinator: None,
            wake: None,
            waiting: BTreeMap::new(),
        };
        let controller = |clock| ControllerNode {
            clock,
            controller: None,
            slowness: Time::ZERO,
            wake: None,
        };
        let hosts = (0..HOSTS).map(|_| host(clock())).collect();
        let controllers = (0..controllers).map(|_| controller(clock())).collect();
        Self {
            now: Time::ZERO,
            dice,
            weather: Weather::default(),
            cut: BTreeSet::new(),
            directives,
            on_demand,
            hosts,
            controllers,
            agenda: BTreeMap::new(),
            order: 0,
            incarnations: 0,
            key: ClusterKey::new(*b"a key of a test!"),
            trace: trace.then(Vec::new),
            stats: Stats::default(),
        }
    }

    /// The addresses of its controllers.
    pub(crate) fn addresses(&self) -> &'static [u32] {
        &CONTROLLERS[..self.controllers.len()]
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>12}  {}", self.now.to_string(), line()));
        }
    }

    /// Runs until a true time, and no further than the first violation.
    pub(crate) fn run_until(&mut self, end: Time) -> Result<(), Violation> {
        while let Some(entry) = self.agenda.first_entry() {
            let (time, _) = *entry.key();
            if time > end {
                break;
            }
            let happening = entry.remove();
            self.now = time;
            match happening {
                Happening::Arrival { from, to, message } => self.arrive(from, to, &message),
                Happening::Wake(who) => self.wake(who),
            }
            self.check()?;
        }
        self.now = end;
        Ok(())
    }

    fn plan(&mut self, time: Time, happening: Happening) {
        self.order += 1;
        self.agenda.insert((time, self.order), happening);
    }

    fn arrive(&mut self, from: u32, to: u32, message: &[u8]) {
        let now = self.now;
        if let Some(place) = CONTROLLERS.iter().position(|&address| address == to) {
            let node = &mut self.controllers[place];
            let local = node.clock.at(now);
            if let Some(controller) = &mut node.controller {
                controller.handle(local, from, message);
            }
            self.poll_controller(place);
        } else {
            let node = &mut self.hosts[to as usize];
            let local = node.clock.at(now);
            if let Some(coordinator) = &mut node.coordinator {
                coordinator.handle(local, from, message);
            }
            self.poll_host(to);
        }
    }

    fn wake(&mut self, who: u32) {
        if let Some(place) = CONTROLLERS.iter().position(|&address| address == who) {
            if self.controllers[place].wake == Some(self.now) {
                self.poll_controller(place);
            }
        } else if self.hosts[who as usize].wake == Some(self.now) {
            self.poll_host(who);
        }
    }

    fn send(&mut self, from: u32, to: u32, message: &[u8]) {
        let slowness = match CONTROLLERS.iter().position(|&address| address == from) {
            Some(place) => self.controllers[place].slowness,
            None => Time::ZERO,
        };
        if self.cut.contains(&(from, to)) || self.cut.contains(&(to, from)) {
            return self.note(|| format!("{from} to {to}: cut off"));
        }
        let delays = self.weather.delays(&mut self.dice);
        if delays.is_empty() {
            self.note(|| format!("{from} to {to}: lost"));
        }
        for delay in delays {
            let message = message.to_vec();
            self.plan(
                self.now + slowness + delay,
                Happening::Arrival { from, to, message },
            );
        }
    }

    fn poll_controller(&mut self, place: usize) {
        let node = &mut self.controllers[place];
        let local = node.clock.at(self.now);
        let Some(controller) = &mut node.controller else {
            return;
        };
        let before = (controller.role(), controller.epoch());
        while controller.timeout().is_some_and(|timeout| timeout <= local) {
            controller.handle_timeout(local);
        }
        let mut messages = Vec::new();
        let mut buffer = Vec::new();
        while let Some(to) = controller.transmit(local, &mut buffer) {
            messages.push((to, std::mem::take(&mut buffer)));
        }
        let after = (controller.role(), controller.epoch());
        let wake = controller
            .timeout()
            .map(|timeout| node.clock.reaches(self.now, timeout));
        node.wake = wake;
        let address = CONTROLLERS[place];
        if after != before {
            self.stats.terms += u64::from(after.0 == Role::Leader);
            self.note(|| format!("controller {address} is {:?} of {:?}", after.0, after.1));
        }
        for (to, message) in messages {
            self.send(address, to, &message);
        }
        if let Some(wake) = wake {
            self.plan(wake, Happening::Wake(address));
        }
    }

    fn poll_host(&mut self, host: u32) {
        let now = self.now;
        let node = &mut self.hosts[host as usize];
        let local = node.clock.at(now);
        let Some(coordinator) = &mut node.coordinator else {
            return;
        };
        let (mut messages, mut released) = (Vec::new(), Vec::new());
        let mut buffer = Vec::new();
        let mut rounds = 0;
        let next = loop {
            rounds += 1;
            assert!(rounds < 10_000, "host {host} never comes to rest at {now}");
            if coordinator
                .timeout()
                .is_some_and(|timeout| timeout <= local)
            {
                coordinator.handle_timeout(local);
            }
            while let Some(to) = coordinator.transmit(local, &mut buffer) {
                messages.push((to, std::mem::take(&mut buffer)));
            }
            match coordinator.release(local) {
                Release::Packet { to, .. } => released.extend(to),
                _ if coordinator
                    .timeout()
                    .is_some_and(|timeout| timeout <= local) => {}
                Release::At(time) => break Some(time),
                Release::Idle => break None,
            }
        };
        let timeout = coordinator.timeout();
        let wake = timeout.into_iter().chain(next).min();
        let wake = wake.map(|wake| node.clock.reaches(now, wake));
        node.wake = wake;
        for to in released {
            self.stats.released += 1;
            if let Some((packets, since)) = node.waiting.get_mut(&to) {
                let waited = now - std::mem::replace(since, now);
                self.stats.longest_wait = self.stats.longest_wait.max(waited);
                *packets -= 1;
                if *packets == 0 {
                    node.waiting.remove(&to);
                }
            }
        }
        for (to, message) in messages {
            self.send(host, to, &message);
        }
        if let Some(wake) = wake {
            self.plan(wake, Happening::Wake(host));
        }
    }

    /// Gives a host packets to send.
    pub(crate) fn offer(&mut self, host: u32, destination: u32, packets: u32) {
        for _ in 0..packets {
            let now = self.now;
            let node = &mut self.hosts[host as usize];
            let local = node.clock.at(now);
            let Some(coordinator) = &mut node.coordinator else {
                return;
            };
            let packet = Descriptor {
                size: 12_500,
                flow: u64::from(host) << 32 | u64::from(destination),
                ..Descriptor::default()
            };
            match coordinator.offer(local, packet, Some(destination)) {
                Verdict::Held => node.waiting.entry(destination).or_insert((0, now)).0 += 1,
                Verdict::Pass => self.stats.passed += 1,
                Verdict::Drop(_) => {}
            }
        }
        self.poll_host(host);
    }

    /// A virtual machine sends a frame from this host.
    pub(crate) fn speak(&mut self, host: u32, station: Station) {
        self.note(|| format!("{station:?} is at host {host}"));
        if let Some(coordinator) = &mut self.hosts[host as usize].coordinator {
            coordinator.note_station(station);
        }
        self.poll_host(host);
    }

    /// Hosts that do not know that a virtual machine is at `place`.
    pub(crate) fn ignorant(&self, station: Station, place: u32) -> Vec<u32> {
        let is_ignorant = |host: &u32| {
            let coordinator = self.hosts[*host as usize].coordinator.as_ref();
            coordinator.is_some_and(|it| it.place(station) != Some(place))
        };
        (0..HOSTS).filter(is_ignorant).collect()
    }

    pub(crate) fn start_host(&mut self, host: u32) {
        self.incarnations += 1;
        self.note(|| format!("host {host} starts"));
        let gate = GateConfig {
            queue: Bytes::new(250_000),
            ..GateConfig::default()
        };
        let config = CoordinatorConfig {
            host,
            controllers: self.addresses().to_vec(),
            incarnation: self.incarnations,
            rate: host_rate(host),
            framing: Framing::NONE,
            gate,
            budget: gate.budget(Rate::from_mbps(100), HOSTS),
            protocol: PROTOCOL,
            on_demand: self.on_demand,
        };
        let node = &mut self.hosts[host as usize];
        let local = node.clock.at(self.now);
        let coordinator = Coordinator::new(config, self.key.host(host), local);
        node.coordinator = Some(coordinator.expect("settings are sound").with_places());
        node.waiting.clear();
        self.poll_host(host);
    }

    pub(crate) fn crash_host(&mut self, host: u32) {
        self.note(|| format!("host {host} crashes"));
        self.hosts[host as usize].coordinator = None;
        self.hosts[host as usize].waiting.clear();
    }

    pub(crate) fn leave(&mut self, host: u32) {
        self.note(|| format!("host {host} leaves"));
        if let Some(coordinator) = &mut self.hosts[host as usize].coordinator {
            coordinator.leave();
        }
        self.poll_host(host);
        self.crash_host(host);
    }

    pub(crate) fn start_controller(&mut self, place: usize) {
        self.incarnations += 1;
        let address = CONTROLLERS[place];
        self.note(|| format!("controller {address} starts"));
        let peers = self.addresses().iter();
        let config = ControllerConfig {
            address,
            peers: peers.copied().filter(|&peer| peer != address).collect(),
            incarnation: self.incarnations,
            directives: self.directives,
            slot: SLOT,
            patience: PATIENCE,
            weights: weights(),
            protocol: PROTOCOL,
            on_demand: self.on_demand,
            ..ControllerConfig::default()
        };
        let node = &mut self.controllers[place];
        let local = node.clock.at(self.now);
        let controller = Controller::new(config, fabric(), &self.key, local);
        node.controller = Some(controller.expect("settings are sound"));
        self.poll_controller(place);
    }

    /// Has a controller read the same file again, which interrupts nothing for long.
    pub(crate) fn reload_controller(&mut self, place: usize) {
        self.note(|| format!("controller {} reads its file again", CONTROLLERS[place]));
        let node = &mut self.controllers[place];
        let local = node.clock.at(self.now);
        if let Some(controller) = &mut node.controller {
            let keys = (0..HOSTS).map(|host| self.key.host(host)).collect();
            controller.replace_fabric(local, fabric(), weights(), keys);
        }
        self.poll_controller(place);
    }

    pub(crate) fn crash_controller(&mut self, place: usize) {
        self.note(|| format!("controller {} crashes", CONTROLLERS[place]));
        self.controllers[place].controller = None;
    }

    pub(crate) fn slow_down(&mut self, place: usize, slowness: Time) {
        self.note(|| format!("controller {} answers after {slowness}", CONTROLLERS[place]));
        self.controllers[place].slowness = slowness;
    }

    pub(crate) fn jump_clock(&mut self, host: u32, milliseconds: i64) {
        self.note(|| format!("the clock of host {host} jumps by {milliseconds} ms"));
        // A driver that polls has just told the time before.
        self.poll_host(host);
        let now = self.now;
        self.hosts[host as usize].clock.jump(now, milliseconds);
        self.poll_host(host);
    }
}
