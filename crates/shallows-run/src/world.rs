//! The worlds that a plan can run in: simulated, or live on this machine.

use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use shallows_model::Interrupt;
use shallows_results::record::Completeness;
use shallows_results::{Format, RunRecord};

use crate::driver::Observer;
use crate::failure::Failure;
use crate::plan::RunPlan;
use crate::scenario::Scenario;

/// A world: it admits plans, and runs those that it has admitted.
pub trait World: Sized {
    /// The plan as it runs here. What this world cannot honour is refused.
    fn admit(&self, plan: RunPlan) -> Result<Admitted<Self>, Failure>;

    /// Runs a plan and writes its results where `options` say. Observers look on.
    fn run(
        plan: &Admitted<Self>,
        options: &Options<'_>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Run, Failure>;
}

/// A plan that a world has admitted.
pub struct Admitted<W> {
    plan: RunPlan,
    world: PhantomData<W>,
}

impl<W: World> Admitted<W> {
    /// For worlds, once they have looked at the plan.
    pub(crate) fn new(plan: RunPlan) -> Self {
        Self {
            plan,
            world: PhantomData,
        }
    }

    /// Runs it.
    pub fn run(
        &self,
        options: &Options<'_>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Run, Failure> {
        W::run(self, options, observers)
    }
}

impl<W> Deref for Admitted<W> {
    type Target = RunPlan;

    fn deref(&self) -> &RunPlan {
        &self.plan
    }
}

impl<W> Debug for Admitted<W> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
    }
}

/// Options of a run that are not part of its plan.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Directory of the results and format of its tables; none are written without. What it may
    /// hold before is said at [`ResultDirectory::begin`](shallows_results::ResultDirectory::begin).
    pub out: Option<(&'a Path, Format)>,
    /// Threads to use, at most one for each CPU; results do not depend on it.
    pub threads: u32,
    /// Ends the run early, with partial results if it has begun.
    pub interrupted: Interrupt<'a>,
    /// Destination of the flow records.
    pub flows: FlowRecords,
}

impl Default for Options<'_> {
    /// One thread, and results in memory.
    fn default() -> Self {
        Self {
            out: None,
            threads: 1,
            interrupted: Interrupt::Never,
            flows: FlowRecords::InMemory,
        }
    }
}

/// Destination of the records of a run's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRecords {
    /// In [`RunRecord::flows`], and in the directory of the results if there is one.
    InMemory,
    /// In the directory of the results only, so that memory does not grow with their number;
    /// [`RunRecord::flows`] is empty. Without a directory they are nowhere.
    OnDisk,
}

/// A run that is over.
#[derive(Debug)]
pub struct Run {
    /// The record; without a summary if the run had no flows.
    pub record: RunRecord,
    /// Completeness of the run.
    pub completeness: Completeness,
    /// Names of the files that its probes left in the directory.
    pub probes: Vec<String>,
    /// Additional lines of a live run's report.
    pub report: String,
    /// Everything that was seen of a live run.
    #[cfg(live)]
    pub observed: Option<Box<shallows_live::experiment::Observed>>,
}

/// A run in the making.
///
/// ```
/// # use shallows_run::Scenario;
/// # let directory = tempfile::tempdir().unwrap();
/// # let out = directory.path().join("incast");
/// let scenario = Scenario::load("incast")?;
/// let run = scenario.runner().threads(2).output(&out).run()?;
/// # assert!(run.record.summary.is_some() && out.join("summary.json").is_file());
/// # Ok::<(), shallows_run::Failure>(())
/// ```
pub struct Runner<'a, W = Simulated> {
    scenario: &'a Scenario,
    world: W,
    output: Option<PathBuf>,
    format: Format,
    threads: u32,
    interrupted: Interrupt<'a>,
    flows: FlowRecords,
    observers: Vec<&'a mut dyn Observer>,
}

/// The simulated world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulated;

impl Scenario {
    /// Simulates it in memory, on one thread.
    pub fn run(&self) -> Result<RunRecord, Failure> {
        Ok(self.runner().run()?.record)
    }

    /// A run of it, simulated unless it is made [`live`](Runner::live).
    pub fn runner(&self) -> Runner<'_> {
        Runner {
            scenario: self,
            world: Simulated,
            output: None,
            format: Format::Parquet,
            threads: 1,
            interrupted: Interrupt::Never,
            flows: FlowRecords::InMemory,
            observers: Vec::new(),
        }
    }
}

impl<'a> Runner<'a> {
    /// Threads to use; results do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Somebody who looks on.
    #[must_use]
    pub fn observer(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observers.push(observer);
        self
    }

    /// Records of flows are on disk only, so that memory does not grow with their number.
    #[must_use]
    pub fn flows_on_disk(mut self) -> Self {
        self.flows = FlowRecords::OnDisk;
        self
    }

    /// The same live on this machine, slower by the factor if one is given. Observers and threads
    /// are for simulations.
    #[cfg(live)]
    #[must_use]
    pub fn live(self, scale: Option<f64>) -> Runner<'a, crate::live::Live> {
        Runner {
            scenario: self.scenario,
            world: crate::live::Live { scale },
            output: self.output,
            format: self.format,
            threads: 1,
            interrupted: self.interrupted,
            flows: FlowRecords::InMemory,
            observers: Vec::new(),
        }
    }
}

impl<'a, W: World> Runner<'a, W> {
    /// Directory of the results; without it they are in memory only.
    #[must_use]
    pub fn output(mut self, directory: impl Into<PathBuf>) -> Self {
        self.output = Some(directory.into());
        self
    }

    /// Format of the tables in the directory.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Ends the run early once it is set.
    #[must_use]
    pub fn interrupted_by(mut self, interrupt: Interrupt<'a>) -> Self {
        self.interrupted = interrupt;
        self
    }

    /// Runs it.
    pub fn run(mut self) -> Result<Run, Failure> {
        let plan = self.scenario.build_unless(self.interrupted)?;
        let options = Options {
            out: self.output.as_deref().map(|out| (out, self.format)),
            threads: self.threads,
            interrupted: self.interrupted,
            flows: self.flows,
        };
        let mut observers: Vec<&mut dyn Observer> = Vec::new();
        for observer in &mut self.observers {
            observers.push(&mut **observer);
        }
        self.world.admit(plan)?.run(&options, &mut observers)
    }
}
