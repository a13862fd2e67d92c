//! The measuring window of a run in steady state.
//!
//! Flows that start in the window are counted. Earlier ones warm the fabric up; later ones keep the
//! load up, and the run ends when the counted flows are done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;
use shallows_model::FlowId;
use shallows_model::ids::ids;
use shallows_model::topology::Node;
use shallows_results::record::FlowRecord;
use shallows_sim::Simulation;

use crate::driver::{Observer, Step};
use crate::failure::Failure;
use crate::plan::RunPlan;
use crate::ports::sent_bytes;

/// Looks at the counted flows during a time as long as the window.
const LOOKS: u64 = 200;

/// Measuring window: flows that start in it are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Measure {
    /// Start of the window. Earlier flows warm the fabric up and are not counted.
    #[serde(default)]
    pub from: Time,
    /// End of the window. Later flows are background load: they are not counted, and the run ends
    /// when the counted flows are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

impl Measure {
    /// Returns whether a flow that starts at a time is counted.
    pub fn counts(&self, start: Time) -> bool {
        start >= self.from && self.to.is_none_or(|to| start < to)
    }

    /// Returns whether a record is of a counted flow.
    pub(crate) fn has(&self, record: &FlowRecord) -> bool {
        self.counts(record.start)
    }
}

/// Ends a run when its counted flows are done, and measures the load that hosts carried meanwhile.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    plan: &'a RunPlan,
    measure: Measure,
    next: Option<Time>,
    every: Time,
    /// Bytes that hosts had sent at the start of the window.
    before: Option<u64>,
    /// Utilisation of the hosts' links during the window.
    pub(crate) carried: Option<f64>,
    /// Counted flows that are not done; none before the end of the window.
    open: Vec<FlowId>,
}

impl<'a> Window<'a> {
    pub(crate) fn new(plan: &'a RunPlan, measure: Measure) -> Self {
        let to = measure.to;
        let span = to.map_or(Time::ZERO, |to| to.saturating_sub(measure.from));
        Self {
            plan,
            next: to.map(|to| {
                if measure.from > Time::ZERO {
                    measure.from
                } else {
                    to
                }
            }),
            measure,
            every: Time::from_ps(span.ps() / LOOKS).max(Time::from_us(1)),
            before: None,
            carried: None,
            open: Vec::new(),
        }
    }

    /// Bytes that hosts have put on their links.
    fn sent(&self, simulation: &Simulation) -> (u64, f64) {
        let fabric = &self.plan.fabric;
        let links = fabric.links().numbered();
        let of_hosts = links.filter(|(_, link)| matches!(link.from, Node::Host(_)));
        let (mut bytes, mut capacity) = (0, 0.0);
        for (number, link) in of_hosts {
            let port = simulation.port(number);
            let config = self.plan.ports.config(fabric, number);
            let queues = 0..port.queue_count();
            bytes += queues
                .map(|queue| sent_bytes(port, config, queue))
                .sum::<u64>();
            capacity += link.rate.bps() as f64 / 8.0;
        }
        (bytes, capacity)
    }
}

impl Observer for Window<'_> {
    fn next_sample(&self) -> Option<Time> {
        self.next
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<Step, Failure> {
        if self.next != Some(now) {
            return Ok(Step::Continue);
        }
        let to = self.measure.to.unwrap_or(Time::MAX);
        if now < to {
            self.before = Some(self.sent(simulation).0);
            self.next = Some(to);
            return Ok(Step::Continue);
        }
        if now == to {
            let (bytes, capacity) = self.sent(simulation);
            let span = to.saturating_sub(self.measure.from).as_secs_f64();
            let bytes = bytes - self.before.unwrap_or(0);
            self.carried = Some(bytes as f64 / (capacity * span));
            let flows = ids().zip(simulation.flows());
            let counted = flows.filter(|(_, (_, of))| self.measure.counts(of.start));
            self.open = counted.map(|(number, _)| number).collect();
        }
        self.open
            .retain(|&flow| simulation.flow(flow).1.fct.is_none());
        self.next = Some(now.saturating_add(self.every));
        Ok(match self.open[..] {
            [] => Step::End,
            _ => Step::Continue,
        })
    }
}
