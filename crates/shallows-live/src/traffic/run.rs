use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use shallows_core::units::Time;
use shallows_model::workload::{FlowSpec, Workload};
use shallows_model::{Barriers, FlowId, Id as _, IdVec, Interrupt};

use super::client::{Connection, Done, Task};
use super::datagrams::{self, Datagrams};
use super::server::{self, Senders, Server};
use super::{FlowControllers, OperationTime, Outcome, StreamTotals, TrafficError, dscp};
use crate::lab::{self, Lab};
use crate::since;
use crate::switch::Departures;

/// Interval at which bytes that have arrived are noted, if an experiment has none of its own.
pub const GOODPUT_EVERY: Time = Time::from_ms(10);

/// Time that interrupted flows may take to report.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The longest time between two looks at whether to go on.
const ATTENTION: Duration = Duration::from_millis(50);

/// Flows between the hosts of a lab.
#[derive(Debug)]
pub struct Traffic<'a> {
    lab: &'a Lab,
    workload: &'a Workload,
    senders: Senders,
    /// Held, so that they serve.
    servers: Vec<Server>,
    connections: Vec<Connection>,
    datagrams: Option<Datagrams>,
    controllers: &'a FlowControllers,
    /// Connections without a flow.
    free: HashMap<Route, Vec<usize>>,
    outcomes: IdVec<FlowId, Outcome>,
    received: IdVec<FlowId, Arc<AtomicU64>>,
    agenda: BinaryHeap<Reverse<(Time, Step)>>,
    /// Flows in the agenda that have still to start.
    upcoming: usize,
    barriers: Barriers,
    /// The connection of each flow that runs.
    running: HashMap<FlowId, usize>,
    goodput: Goodput,
    /// Interval at which bytes that have arrived are noted.
    note_every: Time,
    epoch: Instant,
    done: (Sender<Done>, Receiver<Done>),
}

/// Bytes that have arrived over time, by DSCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goodput {
    /// The DSCP of each column.
    pub dscps: Vec<u8>,
    /// Time and bytes until then in each column.
    pub rows: Vec<(Time, Vec<u64>)>,
}

/// Observations of a run's flows.
#[derive(Debug, Default)]
pub struct Seen {
    /// Outcome of each flow.
    pub outcomes: IdVec<FlowId, Outcome>,
    /// Bytes that arrived over time.
    pub goodput: Goodput,
    /// Totals of UDP flows, if there were any.
    pub streams: Option<StreamTotals>,
    /// Latencies of UDP messages, where they are kept.
    pub messages: Vec<OperationTime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Stop(FlowId),
    Start(FlowId),
    Note,
}

impl<'a> Traffic<'a> {
    /// Notes bytes that have arrived at this interval.
    #[must_use]
    pub fn noting_every(self, note_every: Time) -> Self {
        Self { note_every, ..self }
    }

    /// Starts the servers that the flows need and opens a connection for each pair of hosts
    /// and controller.
    pub fn prepare(
        lab: &'a Lab,
        workload: &'a Workload,
        controllers: &'a FlowControllers,
        seed: u64,
        departures: &Arc<Departures>,
    ) -> Result<Self, TrafficError> {
        let flows = &workload.flows;
        let received: IdVec<FlowId, Arc<AtomicU64>> =
            flows.iter().map(|_| Arc::default()).collect();
        let dscps: BTreeSet<u8> = flows.iter().map(|flow| dscp(flow.service)).collect();
        let mut traffic = Self {
            lab,
            workload,
            controllers,
            senders: Senders::default(),
            servers: Vec::new(),
            connections: Vec::new(),
            datagrams: Datagrams::prepare(lab, workload, seed, departures, &received)?,
            free: HashMap::new(),
            outcomes: vec![Outcome::default(); flows.len()].into(),
            received,
            agenda: BinaryHeap::new(),
            upcoming: 0,
            barriers: Barriers::new(&workload.barriers, Interrupt::Never).unwrap_or_default(),
            running: HashMap::new(),
            goodput: Goodput {
                dscps: dscps.into_iter().collect(),
                rows: Vec::new(),
            },
            note_every: GOODPUT_EVERY,
            epoch: Instant::now(),
            done: channel(),
        };
        let connected = || {
            let numbers = flows.ids().filter(|&flow| workload.stream(flow).is_none());
            numbers.map(|flow| Route::of(flow, &flows[flow], controllers))
        };
        let servers = connected().map(|route| (route.src, route.controller));
        for (host, controller) in servers.collect::<BTreeSet<_>>() {
            let senders = traffic.senders.clone();
            let address = SocketAddrV4::new(lab::address(host), server::port(controller));
            let controller = controllers.name(controller);
            let server = server::start(lab.host(host), address, controller, senders)?;
            traffic.servers.push(server);
        }
        for route in connected().collect::<BTreeSet<_>>() {
            let connection = traffic.connect(route)?;
            traffic.free.entry(route).or_default().push(connection);
        }
        Ok(traffic)
    }

    /// Runs the flows, whose times count from `epoch`, until all have finished, until `until`, or
    /// until `go_on` says no.
    pub fn run(
        mut self,
        epoch: Instant,
        until: Option<Time>,
        go_on: impl Fn() -> bool,
    ) -> Result<Seen, TrafficError> {
        self.epoch = epoch;
        self.plan();
        let datagrams = self.datagrams.take().map(|of| of.start(epoch));
        let datagrams = datagrams.transpose()?;
        let stream_goes_on = |now| {
            datagrams
                .as_ref()
                .is_some_and(|of: &datagrams::Running| of.goes_on(now))
        };
        while self.upcoming > 0 || !self.running.is_empty() || stream_goes_on(self.now()) {
            let now = self.now();
            if until.is_some_and(|until| now >= until) || !go_on() {
                break;
            }
            self.do_what_is_due(now)?;
            self.wait(until);
        }
        self.note();
        let streams = datagrams.map(|of| of.finish(self.lab)).transpose()?;
        self.finish();
        self.settle_streams();
        let (streams, messages) = streams.unzip();
        Ok(Seen {
            outcomes: self.outcomes,
            goodput: self.goodput,
            streams,
            messages: messages.unwrap_or_default(),
        })
    }

    /// Records the outcome of UDP flows. They have no end of their own.
    fn settle_streams(&mut self) {
        let now = self.now();
        for of in &self.workload.datagrams {
            let number = of.flow;
            let start = self.workload.flows[number].start_time();
            self.outcomes[number] = Outcome {
                start: start.filter(|start| *start <= now),
                received: self.received[number].load(Ordering::Relaxed),
                ..Outcome::default()
            };
        }
    }

    fn plan(&mut self) {
        let workload = self.workload;
        let flows = workload.flows.numbered();
        for (number, flow) in flows.filter(|&(number, _)| workload.stream(number).is_none()) {
            if let Some(start) = flow.start_time() {
                self.agenda.push(Reverse((start, Step::Start(number))));
                self.upcoming += 1;
            }
            if let Some(stop) = workload.stop(number) {
                self.agenda.push(Reverse((stop, Step::Stop(number))));
            }
        }
        self.agenda.push(Reverse((Time::ZERO, Step::Note)));
    }

    fn do_what_is_due(&mut self, now: Time) -> Result<(), TrafficError> {
        while let Some(&Reverse((at, step))) = self.agenda.peek() {
            if at > now {
                break;
            }
            self.agenda.pop();
            match step {
                Step::Start(flow) => self.start(flow)?,
                Step::Stop(flow) => {
                    if let Some(connection) = self.running.get(&flow) {
                        self.connections[*connection].abort();
                    }
                }
                Step::Note => {
                    self.note();
                    let next = Reverse((now + self.note_every, Step::Note));
                    self.agenda.push(next);
                }
            }
        }
        Ok(())
    }

    /// Until the next step, or until a flow ends.
    fn wait(&mut self, until: Option<Time>) {
        let next = self.agenda.peek().map(|&Reverse((at, _))| at);
        let next = next.into_iter().chain(until).min().unwrap_or(Time::MAX);
        let left = next.saturating_sub(self.now()).to_duration();
        match self.done.1.recv_timeout(left.min(ATTENTION)) {
            Ok(done) => self.end(&done),
            // This program holds a sender itself, so it is always a time-out.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn start(&mut self, number: FlowId) -> Result<(), TrafficError> {
        self.upcoming -= 1;
        let flow = self.workload.flows[number];
        let route = Route::of(number, &flow, self.controllers);
        let free = self.free.get_mut(&route).and_then(Vec::pop);
        let connection = match free {
            Some(connection) => connection,
            None => self.connect(route)?,
        };
        self.running.insert(number, connection);
        self.connections[connection].fetch(Task {
            flow: number,
            bytes: flow.size(),
            dscp: dscp(flow.service),
            epoch: self.epoch,
            received: Arc::clone(&self.received[number]),
        });
        Ok(())
    }

    fn connect(&mut self, route: Route) -> Result<usize, TrafficError> {
        let number = self.connections.len();
        let client = self.lab.host(route.dst);
        let server = SocketAddrV4::new(lab::address(route.src), server::port(route.controller));
        let controller = self.controllers.name(route.controller);
        let done = self.done.0.clone();
        let connection = Connection::open(number, client, server, controller, &self.senders, done)?;
        self.connections.push(connection);
        Ok(number)
    }

    fn end(&mut self, done: &Done) {
        let flow = self.workload.flows[done.flow];
        self.outcomes[done.flow] = done.outcome;
        self.running.remove(&done.flow);
        if done.reusable {
            let route = Route::of(done.flow, &flow, self.controllers);
            self.free.entry(route).or_default().push(done.connection);
        }
        let now = self.now();
        for opened in self.barriers.completed(done.flow) {
            let barrier = &self.workload.barriers[opened];
            self.upcoming += barrier.releases.len();
            for &released in &barrier.releases {
                let start = Step::Start(released);
                self.agenda.push(Reverse((now + barrier.pause, start)));
            }
        }
    }

    fn note(&mut self) {
        let mut row = vec![0; self.goodput.dscps.len()];
        for (flow, received) in self.workload.flows.iter().zip(&self.received) {
            if let Ok(column) = self.goodput.dscps.binary_search(&dscp(flow.service)) {
                row[column] += received.load(Ordering::Relaxed);
            }
        }
        self.goodput.rows.push((self.now(), row));
    }

    /// Cuts off what still runs and hears how far it got.
    fn finish(&mut self) {
        for connection in self.running.values() {
            self.connections[*connection].abort();
        }
        let deadline = Instant::now() + LAST_WORDS;
        while !self.running.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.done.1.recv_timeout(left) {
                Ok(done) => self.end(&done),
                Err(_) => break,
            }
        }
        for connection in &self.connections {
            connection.abort();
        }
        // Servers see the end of their connections before the namespaces go.
        thread::sleep(Duration::from_millis(10));
    }

    fn now(&self) -> Time {
        since(self.epoch)
    }
}

/// The flows that can share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Route {
    src: usize,
    dst: usize,
    /// The index of a controller other than the hosts'.
    controller: Option<usize>,
}

impl Route {
    fn of(number: FlowId, flow: &FlowSpec, controllers: &FlowControllers) -> Self {
        Self {
            src: flow.src.index(),
            dst: flow.dst.index(),
            controller: controllers.index(number),
        }
    }
}
