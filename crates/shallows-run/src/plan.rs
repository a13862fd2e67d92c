//! The plan of a run: a scenario and all that is built from it.

use std::ops::{Deref, DerefMut};

use shallows_model::{Interrupt, Model};
use shallows_results::size_class::SizeClasses;
use shallows_sim::{EngineChoice, Settings, SetupError, Simulation};

use crate::failure::Failure;
use crate::scenario::{Diagnostic, Pings, Probes, Scenario};

/// Everything that a run needs, checked. It reads like its [`Model`].
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The scenario.
    pub scenario: Scenario,
    /// The model, for either world.
    pub model: Model,
    /// Time series to record besides the flows.
    pub probes: Probes,
    /// Bounds of small, medium and large flows.
    pub size_classes: SizeClasses,
}

impl Deref for RunPlan {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}

impl DerefMut for RunPlan {
    fn deref_mut(&mut self) -> &mut Model {
        &mut self.model
    }
}

impl RunPlan {
    /// A simulation, on the engine that suits it.
    pub fn simulation(&self, threads: u32) -> Result<Simulation, Diagnostic> {
        self.simulation_on(EngineChoice::Automatic, threads)
    }

    /// A simulation on a given engine.
    pub fn simulation_on(
        &self,
        engine: EngineChoice,
        threads: u32,
    ) -> Result<Simulation, Diagnostic> {
        let settings = Settings {
            engine,
            ..self.settings(threads)?
        };
        let simulation = Simulation::new(self.simulated(), settings);
        simulation.map_err(|error| self.not_set_up(&error))
    }

    /// A simulation, unless it is interrupted before it can begin.
    pub(crate) fn simulation_unless(
        &self,
        threads: u32,
        interrupt: Interrupt<'_>,
    ) -> Result<Simulation, Failure> {
        let (model, settings) = (self.simulated(), self.settings(threads)?);
        let simulation = Simulation::new_unless(model, settings, interrupt);
        simulation.map_err(|error| match error {
            SetupError::Interrupted(_) => Failure::NotBegun,
            error => self.not_set_up(&error).into(),
        })
    }

    /// The model with the applications that send the pings of probes, after the others.
    fn simulated(&self) -> Model {
        let mut model = self.model.clone();
        let pings = self.probes.pings.iter();
        model.applications.extend(pings.map(Pings::application));
        model
    }

    /// Settings of a simulation. Agents keep state, so each simulation has its own.
    pub(crate) fn settings(&self, threads: u32) -> Result<Settings, Diagnostic> {
        let Model {
            fabric,
            router,
            ports,
            ..
        } = &self.model;
        Ok(Settings {
            control: self.scenario.control(fabric, router, ports)?,
            watch: self.probes.watch.clone(),
            threads,
            engine: EngineChoice::Automatic,
        })
    }

    /// The key behind the reason why a simulation cannot start.
    fn not_set_up(&self, error: &SetupError) -> Diagnostic {
        let scenario = &self.scenario;
        let problem = error.to_string();
        let table = match error {
            SetupError::Threads(_) | SetupError::Layers(_) | SetupError::Interrupted(_) => {
                return Diagnostic::new(problem);
            }
            SetupError::Port(error) => return scenario.error_in("ports", error),
            SetupError::Transport(error) => return scenario.error_in("transport", error),
            SetupError::Limits(error) => return scenario.error_in("hosts.qjump", error),
            SetupError::NeverPasses { .. } => "hosts.qjump",
            SetupError::Control(_) => "hosts.xco",
            SetupError::NoPath { .. } if scenario.has("routing") => "routing",
            SetupError::NoPath { .. } => "topology",
            SetupError::Application(_) => "application",
            SetupError::Datagrams(_) | SetupError::NoFlows => "workload",
        };
        scenario.error(table, problem)
    }
}
