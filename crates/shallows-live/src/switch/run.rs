use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use shallows_core::units::Time;

use super::channel::{Channels, Coordination, Position};
use super::departures::Streams;
use super::place::CpuPlacement;
use super::port::{Port, has_failed};
use super::samples::Sampler;
use super::{
    Control, Delivery, Departures, Engine, Fidelity, IngressCounters, Refusal, Samples, Snapshot,
    SwitchConfig, SwitchError, Wait,
};
use crate::frame::{Mac, Network};
use crate::io::{IoError, Received};
use crate::since;

/// Frames taken from one device before it is the next one's turn: more would make the others late.
const FRAMES_AT_A_TURN: usize = 8;

/// Room for two VLAN tags.
const TAGS: usize = 8;

/// Time that a switch may take at its end to send stored frames.
const LONGEST_DRAIN: Duration = Duration::from_secs(2);

/// Most sleep in [`Wait::Block`], so that requests from other threads are seen.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Interval at which each port checks that its device is present.
const WATCH_EVERY: Time = Time::from_ms(200);

/// A switch with its devices open. It runs on the thread that calls [`run`](Self::run).
#[derive(Debug)]
pub struct Switch {
    engine: Engine,
    ports: Vec<Port>,
    wait: Wait,
    place: CpuPlacement,
    fidelity: Fidelity,
    sampler: Option<Sampler>,
    deliveries: Vec<Delivery>,
    channels: Channels,
    /// The port to look at next, and when.
    watch: (usize, Time),
    epoch: Instant,
}

/// Final report of a switch.
#[derive(Clone, Debug)]
pub struct Report {
    /// All counters.
    pub snapshot: Snapshot,
    /// Queue lengths, if they were asked for.
    pub samples: Samples,
    /// The instant that the switch counts its times from.
    pub epoch: Instant,
}

impl Switch {
    /// Opens the devices, in the network namespace of the calling thread.
    pub fn open(config: &SwitchConfig) -> Result<Self, SwitchError> {
        config.check()?;
        let ports = config.ports.iter().map(Port::open);
        let ports: Vec<Port> = ports.collect::<Result<_, IoError>>()?;
        let longest = ports.iter().map(Port::longest).max();
        let engine = Engine::new(config, longest.unwrap_or_default() + TAGS)?;
        Ok(Self {
            sampler: config.sample.map(|sample| Sampler::new(sample, &engine)),
            engine,
            ports,
            wait: config.wait,
            place: CpuPlacement {
                cpu: config.cpu,
                nice: config.nice,
            },
            fidelity: Fidelity::new(config.fidelity),
            deliveries: Vec::new(),
            channels: Channels::new()?,
            watch: (0, Time::ZERO),
            epoch: Instant::now(),
        })
    }

    /// Puts one of XCo's coordinators before a link of the switch.
    pub fn coordinate(&mut self, coordination: Coordination) -> Result<(), SwitchError> {
        let Coordination {
            host,
            level,
            coordinator,
            position,
            destinations,
            socket,
            controllers,
            control_port,
        } = coordination;
        let link = match position {
            Position::Uplink(device) => self.engine.uplink(device),
            Position::Egress(device) => (device < self.ports.len()).then_some(device),
        };
        let link = link.ok_or(SwitchError::NoLink(position))?;
        self.engine
            .coordinate(link, (host, level, coordinator), destinations, control_port);
        Ok(self.channels.add(socket, controllers)?)
    }

    /// Leaves frames to the own address of a port's device to the machine.
    pub fn keep_own(&mut self, port: usize) -> Result<(), SwitchError> {
        Ok(self.ports[port].keep_own()?)
    }

    /// Tells senders of UDP to `port` what has left their hosts. `stations` are the hosts' addresses
    /// in the order of the ports.
    pub fn tell_departures(
        &mut self,
        port: u16,
        stations: impl Iterator<Item = Mac>,
        departures: Arc<Departures>,
    ) {
        self.engine.tell(Streams::new(port, stations, departures));
    }

    /// Switches until it is told to stop, then sends what it holds.
    pub fn run(mut self, control: &Control) -> Result<Report, SwitchError> {
        let _urgency = self.place.take()?;
        let mut before = self.now();
        while !control.is_stopped() {
            let now = self.now();
            self.fidelity.turned(now - before);
            before = now;
            self.send_due(now);
            self.channels.listen(now, &mut self.engine);
            let idle = !self.receive(now);
            self.channels.send(&mut self.engine);
            if let Some(sampler) = &mut self.sampler {
                sampler.look(now, &self.engine);
            }
            if let Some(cluster) = control.take_change() {
                self.engine.take_over(&cluster);
            }
            if control.take_request() {
                control.answer(self.snapshot());
            }
            if now >= self.watch.1 {
                self.watch(now, control);
            }
            if idle && self.wait == Wait::Block {
                self.sleep(control);
                before = self.now();
            }
        }
        self.drain();
        let snapshot = self.snapshot();
        Ok(Report {
            snapshot,
            samples: self.sampler.map(Sampler::finish).unwrap_or_default(),
            epoch: self.epoch,
        })
    }

    fn now(&self) -> Time {
        since(self.epoch)
    }

    /// Sends what has reached the end of its link by `now`.
    #[inline]
    fn send_due(&mut self, now: Time) {
        self.engine.advance(now, &mut self.deliveries);
        if self.deliveries.is_empty() {
            return;
        }
        // Stable, so that the frames of a device stay in order.
        self.deliveries.sort_by_key(|delivery| delivery.device);
        for batch in self.deliveries.chunk_by(|a, b| a.device == b.device) {
            let port = &mut self.ports[batch[0].device];
            let frames = batch
                .iter()
                .map(|delivery| self.engine.bytes(&delivery.frame));
            port.send(frames);
        }
        let sent = self.now();
        for delivery in self.deliveries.drain(..) {
            self.fidelity.sent(delivery.due, sent);
            self.engine.release(&delivery.frame);
        }
    }

    /// Takes what has come in, a few frames from each device; false if there was nothing.
    #[inline]
    fn receive(&mut self, now: Time) -> bool {
        let mut any = false;
        for (number, port) in self.ports.iter_mut().enumerate() {
            let (longest, own) = (port.longest(), port.own());
            let Port {
                device: Some(device),
                counters,
                ..
            } = port
            else {
                continue;
            };
            for _ in 0..FRAMES_AT_A_TURN {
                let Some(received) = device.receive() else {
                    break;
                };
                any = true;
                if own.is_some_and(|own| received.bytes.starts_with(&own.0)) {
                    counters.own += 1;
                    continue;
                }
                take(&mut self.engine, counters, now, (number, longest), received);
            }
        }
        any
    }

    fn drain(&mut self) {
        // What leaving coordinators release joins ports whose earlier events have happened.
        let now = self.now();
        self.send_due(now);
        self.engine.leave(now);
        self.channels.send(&mut self.engine);
        let deadline = Instant::now() + LONGEST_DRAIN;
        // Coordinators have something to do for ever.
        while self.engine.frames() > 0 && Instant::now() < deadline {
            let now = self.now();
            self.send_due(now);
        }
    }

    /// Looks after one port; all have had their turn after [`WATCH_EVERY`].
    #[cold]
    fn watch(&mut self, now: Time, control: &Control) {
        let (port, _) = self.watch;
        if let Some(event) = self.ports[port].look_after() {
            control.tell(event);
        }
        let next = (port + 1) % self.ports.len();
        self.watch = (next, now + WATCH_EVERY / self.ports.len() as u64);
    }

    /// Sleeps until a frame is due or comes in, or a device goes away.
    fn sleep(&mut self, control: &Control) {
        let due = self.engine.next().map(|due| due.saturating_sub(self.now()));
        let due = due.map(Time::to_duration);
        let longest = due.map_or(LONGEST_SLEEP, |left| left.min(LONGEST_SLEEP));
        let files = self.ports.iter().filter_map(Port::file);
        let files = files.chain(self.channels.file());
        let files = files.map(|file| PollFd::new(file, PollFlags::POLLIN));
        let mut files: Vec<PollFd<'_>> = files.collect();
        // An interrupted or failed sleep is a short one.
        let _ = ppoll(&mut files, Some(TimeSpec::from_duration(longest)), None);
        // Or every sleep from now on would end at once.
        if files.iter().any(has_failed) {
            drop(files);
            for port in self.ports.iter_mut().filter(|port| port.device.is_some()) {
                if let Some(event) = port.look_after() {
                    control.tell(event);
                }
            }
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let devices = self.ports.iter_mut().map(|port| {
            port.count_missed();
            (port.name().to_owned(), port.counters.clone())
        });
        let devices = devices.collect();
        let uptime = self.epoch.elapsed().as_secs_f64();
        Snapshot {
            unsent_messages: self.channels.unsent,
            ..Snapshot::new(uptime, devices, &mut self.engine, &self.fidelity)
        }
    }
}

/// Looks at a frame that came in, counts it and hands it to the engine.
#[inline]
fn take(
    engine: &mut Engine,
    counters: &mut IngressCounters,
    now: Time,
    (device, longest): (usize, usize),
    received: Received<'_>,
) {
    let bytes = received.bytes;
    counters.frames += 1;
    counters.bytes += bytes.len() as u64;
    counters.unfinished += u64::from(received.unfinished);
    if received.cut || bytes.len() > longest + TAGS {
        counters.oversized += 1;
        return;
    }
    let arrived = match received.tag {
        None => engine.arrive(now, device, (bytes, &[])),
        // The kernel has taken the outermost tag out; the frame goes on with it.
        Some((kind, tci)) => {
            let mut head = [0; 16];
            let addresses = bytes.len().min(12);
            head[..addresses].copy_from_slice(&bytes[..addresses]);
            head[12..14].copy_from_slice(&kind.to_be_bytes());
            head[14..].copy_from_slice(&tci.to_be_bytes());
            engine.arrive(now, device, (&head, &bytes[addresses..]))
        }
    };
    match arrived {
        Ok(network) => counters.count(network),
        Err(Refusal::NoMemory) => counters.no_memory += 1,
        Err(Refusal::Runt) => counters.runts += 1,
    }
}

impl IngressCounters {
    fn count(&mut self, network: Network) {
        match network {
            Network::Ipv4(_) | Network::Ipv6(_) => {}
            Network::Other => self.not_ip += 1,
            Network::Malformed(problem) => self.malformed[problem as usize] += 1,
        }
    }
}
