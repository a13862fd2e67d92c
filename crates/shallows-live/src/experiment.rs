//! One live run: a lab, a switch, traffic, and what was seen of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::net::if_::if_nametoindex;
use shallows_bpf::StageTags;
use shallows_core::host::stage::StageTagger;
use shallows_core::units::Time;
use shallows_model::workload::Workload;
use shallows_model::{ApplicationSetup, FlowId, IdVec};
use thiserror::Error;

use crate::command::{self, CommandOutcome, CommandPlan};
use crate::lab::{self, Lab, LabError, LabPlan, Namespace, StealClock};
use crate::since;
use crate::switch::{
    Control, Coordination, Departures, Report, Snapshot, Switch, SwitchConfig, SwitchError,
    set_nice, sharpen_timers,
};
use crate::traffic::{
    FlowControllers, Goodput, OperationTime, Outcome, Ping, ProbePlan, Prober, STREAM_PORT,
    StreamTotals, Traffic, TrafficError, prepare,
};
use crate::xco::lab::{XcoLab, XcoLabError, XcoObserved, XcoPlan};

/// Time that a switch may take to open its devices.
const START: Duration = Duration::from_secs(20);

/// Niceness of the hosts' programs: ahead of what else the machine does, behind the switch.
pub(crate) const HOSTS_NICE: i32 = -10;

/// Everything about a live run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The hosts.
    pub lab: LabPlan,
    /// The switch, whose port `n` is [`lab::port`]`(n)`.
    pub switch: SwitchConfig,
    /// The flows. Services are DSCPs, below 64.
    pub workload: Arc<Workload>,
    /// Congestion controllers of some flows instead of the lab's.
    pub controllers: FlowControllers,
    /// Of the jitter of UDP senders.
    pub seed: u64,
    /// Applications, which need an `until`.
    pub applications: Vec<ApplicationSetup>,
    /// Interval of goodput samples.
    pub goodput_every: Time,
    /// Pings, each from a host.
    pub probes: Vec<(usize, ProbePlan)>,
    /// Programs.
    pub commands: Vec<CommandPlan>,
    /// A directory for what they print, which is made anew; none if it is not to be kept.
    pub outputs: Option<PathBuf>,
    /// End of the run, if not with its last flow and command.
    pub until: Option<Time>,
    /// XCo's controllers and coordinators.
    pub xco: Option<XcoPlan>,
    /// Stages that every host tags its TCP packets with, instead of the DSCP of their flow.
    pub stages: Option<StageTagger>,
}

/// Observations of a run.
#[derive(Debug)]
pub struct Observed {
    /// Outcome of each flow.
    pub outcomes: IdVec<FlowId, Outcome>,
    /// Bytes that arrived over time.
    pub goodput: Goodput,
    /// Operations of applications, and latencies of UDP messages where they are kept.
    pub operations: Vec<OperationTime>,
    /// Totals of UDP flows, if there were any.
    pub streams: Option<StreamTotals>,
    /// The pings of each probe.
    pub pings: Vec<Vec<Ping>>,
    /// Outcome of each command.
    pub commands: Vec<CommandOutcome>,
    /// The switch's own report.
    pub report: Report,
    /// From the switch's first instant to the flows'.
    pub offset: Time,
    /// Share of CPU time that the hypervisor took away.
    pub steal: Option<f64>,
    /// Duration of the traffic.
    pub duration: Time,
    /// XCo's controllers and coordinators, if there were any.
    pub xco: Option<XcoObserved>,
}

/// The reason why an experiment cannot run.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The lab.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The switch.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The traffic.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// XCo.
    #[error(transparent)]
    Xco(#[from] XcoLabError),
    /// The stage tags.
    #[error(transparent)]
    Stages(#[from] shallows_bpf::Error),
    /// The switch does not begin to work.
    #[error("the switch did not start within {START:?}; is its CPU free?")]
    NoSwitch,
    /// The switch stopped in the middle of the run.
    #[error("the switch ended before the traffic did; this is a bug")]
    SwitchLost,
}

impl Experiment {
    /// Builds the lab, runs everything and removes the lab. Ends early when
    /// `interrupted` answers with true.
    pub fn run(
        &self,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Observed, ExperimentError> {
        thread::scope(|scope| {
            // On a thread of its own, because it is pinned and so is all that it starts.
            let run = scope.spawn(|| self.run_here(interrupted));
            joined(run)
        })
    }

    fn run_here(
        &self,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Observed, ExperimentError> {
        self.lab.cpus.pin_to_hosts()?;
        set_nice(HOSTS_NICE).map_err(LabError::from)?;
        sharpen_timers();
        let lab = Lab::build(&self.lab)?;
        let stages = self.stages.as_ref();
        let _tags = stages.map(|stages| self.tag(&lab, stages)).transpose()?;
        let (xco, coordinations) = match &self.xco {
            Some(plan) => {
                let (xco, coordinations) = XcoLab::start(&lab, plan)?;
                (Some(xco), coordinations)
            }
            None => (None, Vec::new()),
        };
        let departures = Arc::new(Departures::new(self.lab.hosts));
        let told = self.has_streams().then(|| Arc::clone(&departures));
        let switch = RunningSwitch::start(lab.switch(), &self.switch, coordinations, told)?;
        if let Some(xco) = &xco {
            xco.await_coordination(|| switch.snapshot())?;
        }
        let steal = StealClock::start();
        let seen = self.watch(&lab, &switch, xco, &departures, interrupted);
        let report = switch.stop()?;
        let (mut observed, epoch) = seen?.into_observed(report);
        let offset = epoch.saturating_duration_since(observed.report.epoch);
        observed.offset = Time::from_duration(offset);
        observed.steal = steal.share();
        lab.remove();
        Ok(observed)
    }

    /// Lets all hosts tag what they send, before the first connection is opened.
    fn tag(&self, lab: &Lab, stages: &StageTagger) -> Result<StageTags, ExperimentError> {
        let mut tags = StageTags::load(stages)?;
        for host in 0..self.lab.hosts {
            lab.host(host).enter(|| {
                let device = if_nametoindex(lab::DEVICE).map_err(|error| LabError::File {
                    what: format!("looking for {}", lab::DEVICE),
                    error: error.into(),
                })?;
                Ok::<_, ExperimentError>(tags.attach(device)?)
            })??;
        }
        Ok(tags)
    }

    fn has_streams(&self) -> bool {
        !self.workload.datagrams.is_empty()
    }

    fn watch(
        &self,
        lab: &Lab,
        switch: &RunningSwitch,
        xco: Option<XcoLab>,
        departures: &Arc<Departures>,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Seen, ExperimentError> {
        let traffic = Traffic::prepare(
            lab,
            &self.workload,
            &self.controllers,
            self.seed,
            departures,
        )?;
        let traffic = traffic.noting_every(self.goodput_every);
        let members = prepare(lab, &self.applications)?;
        let epoch = Instant::now();
        let mut probers = Vec::new();
        for (host, plan) in &self.probes {
            probers.push(Prober::start(lab.host(*host), *plan, epoch)?);
        }
        let go_on = || !interrupted() && !switch.has_ended();
        let until = self.until;
        let over = AtomicBool::new(false);
        let directory = self.outputs.as_deref();
        directory.map_or(Ok(()), command::remove_directory)?;
        let directory = directory.filter(|_| !self.commands.is_empty());
        directory.map_or(Ok(()), command::create_directory)?;
        let is_over = || !go_on() || until.is_some_and(|until| since(epoch) >= until);
        let watched = AtomicBool::new(false);
        let (traffic, operations, commands, ended, xco) = thread::scope(|scope| {
            let xco = xco.map(|xco| {
                let watched = &watched;
                scope.spawn(move || xco.observe(epoch, watched, || switch.snapshot()))
            });
            let members = members.into_iter();
            let members: Vec<_> = members
                .map(|member| scope.spawn(move || member.run(epoch, is_over)))
                .collect();
            let commands = self.commands.iter().enumerate().map(|(number, command)| {
                let over = &over;
                let stop = move || is_over() || (over.load(Ordering::Relaxed) && !command.awaited);
                let host = lab.host(command.host);
                scope.spawn(move || command.run(number, host, epoch, directory, stop))
            });
            let commands: Vec<_> = commands.collect();
            let traffic = traffic.run(epoch, until, go_on);
            let operations: Vec<_> = members.into_iter().map(joined).collect();
            let commands = self.end_commands(commands, &over);
            // What is taken down after the end is not of the run.
            let ended = until.unwrap_or(Time::MAX).min(since(epoch));
            watched.store(true, Ordering::Relaxed);
            (traffic, operations, commands, ended, xco.map(joined))
        });
        let xco = xco.transpose()?;
        let pings = probers.into_iter().map(Prober::finish).collect();
        let flows = traffic?;
        let operations: Result<Vec<_>, _> = operations.into_iter().collect();
        let mut operations = operations?.concat();
        operations.extend(flows.messages);
        operations.sort_by_key(|operation| operation.start);
        let commands: Result<Vec<_>, _> = commands.into_iter().collect();
        let commands = commands?;
        Ok(Seen {
            outcomes: flows.outcomes,
            goodput: flows.goodput,
            streams: flows.streams,
            operations,
            pings,
            commands,
            epoch,
            duration: ended,
            xco,
        })
    }

    /// Waits for the commands that the run waits for and then says that it is over, which ends the
    /// others; answers with the results of all in their order.
    fn end_commands<T>(
        &self,
        commands: Vec<thread::ScopedJoinHandle<'_, T>>,
        over: &AtomicBool,
    ) -> Vec<T> {
        let commands = commands.into_iter().enumerate();
        let (awaited, others): (Vec<_>, Vec<_>) =
            commands.partition(|(number, _)| self.commands[*number].awaited);
        let join = |(number, command)| (number, joined(command));
        let mut results: Vec<(usize, T)> = awaited.into_iter().map(join).collect();
        over.store(true, Ordering::Relaxed);
        results.extend(others.into_iter().map(join));
        results.sort_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

struct Seen {
    outcomes: IdVec<FlowId, Outcome>,
    goodput: Goodput,
    streams: Option<StreamTotals>,
    operations: Vec<OperationTime>,
    pings: Vec<Vec<Ping>>,
    commands: Vec<CommandOutcome>,
    epoch: Instant,
    duration: Time,
    xco: Option<XcoObserved>,
}

impl Seen {
    fn into_observed(self, report: Report) -> (Observed, Instant) {
        let observed = Observed {
            outcomes: self.outcomes,
            goodput: self.goodput,
            streams: self.streams,
            operations: self.operations,
            pings: self.pings,
            commands: self.commands,
            report,
            offset: Time::ZERO,
            steal: None,
            duration: self.duration,
            xco: self.xco,
        };
        (observed, self.epoch)
    }
}

/// A switch on a thread of its own.
pub(crate) struct RunningSwitch {
    control: Control,
    thread: Option<thread::JoinHandle<Result<Report, ExperimentError>>>,
}

impl RunningSwitch {
    pub(crate) fn start(
        namespace: &Namespace,
        config: &SwitchConfig,
        coordinations: Vec<Coordination>,
        departures: Option<Arc<Departures>>,
    ) -> Result<Self, ExperimentError> {
        let control = Control::default();
        let (namespace, config, inside) = (namespace.clone(), config.clone(), control.clone());
        let thread = thread::spawn(move || {
            namespace.join()?;
            let mut switch = Switch::open(&config)?;
            for coordination in coordinations {
                switch.coordinate(coordination)?;
            }
            if let Some(departures) = departures {
                let stations = (0..departures.hosts()).map(lab::station);
                switch.tell_departures(STREAM_PORT, stations, departures);
            }
            Ok(switch.run(&inside)?)
        });
        let switch = Self {
            control,
            thread: Some(thread),
        };
        let deadline = Instant::now() + START;
        while Instant::now() < deadline && !switch.has_ended() {
            if switch.control.snapshot(Duration::from_millis(50)).is_some() {
                return Ok(switch);
            }
        }
        switch.stop()?;
        Err(ExperimentError::NoSwitch)
    }

    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        self.control.snapshot(START)
    }

    fn has_ended(&self) -> bool {
        self.thread
            .as_ref()
            .is_none_or(thread::JoinHandle::is_finished)
    }

    pub(crate) fn stop(mut self) -> Result<Report, ExperimentError> {
        let lost = self.has_ended();
        self.control.stop();
        let thread = self.thread.take().ok_or(ExperimentError::SwitchLost)?;
        match thread.join() {
            Ok(Ok(_)) if lost => Err(ExperimentError::SwitchLost),
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for RunningSwitch {
    fn drop(&mut self) {
        self.control.stop();
    }
}

/// Result of a thread.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
