//! Flows of a part: when they start and stop, and what became of them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use shallows_core::host::gate::Refusal;
use shallows_core::port::DropReason;
use shallows_model::{FlowId, HostId, IdVec};

use super::Shard;
use crate::barriers::Barriers;
use crate::engine::{Key, Occasion};
use crate::simulation::FlowOutcome;

/// The state of flows that is not their transport's.
#[derive(Debug)]
pub(super) struct Flows {
    /// Flows of this part that start at a given time, in that order, and the next of them.
    starting: Vec<FlowId>,
    next_start: usize,
    /// In layers, where they are sorted by host, the next of each host.
    next_starts: IdVec<HostId, usize>,
    barriers: Barriers,
    pub(super) outcomes: IdVec<FlowId, FlowOutcome>,
    /// Packets of senders that ports and gates have dropped.
    drops: FxHashMap<(FlowId, DropReason), u32>,
    refusals: FxHashMap<(FlowId, Refusal), u32>,
    done: usize,
}

impl Flows {
    pub(super) fn new(
        starting: Vec<FlowId>,
        outcomes: IdVec<FlowId, FlowOutcome>,
        barriers: Barriers,
    ) -> Self {
        Self {
            starting,
            next_start: 0,
            next_starts: IdVec::new(),
            barriers,
            outcomes,
            drops: FxHashMap::default(),
            refusals: FxHashMap::default(),
            done: 0,
        }
    }

    pub(super) fn count_drop(&mut self, flow: FlowId, reason: DropReason) {
        *self.drops.entry((flow, reason)).or_default() += 1;
    }

    pub(super) fn count_refusal(&mut self, flow: FlowId, refusal: Refusal) {
        *self.refusals.entry((flow, refusal)).or_default() += 1;
    }
}

impl Shard {
    /// Flows that are complete.
    pub(crate) fn done(&self) -> usize {
        self.flows.done
    }

    /// The outcome of a flow, as far as it is known here.
    pub(crate) fn outcome(&self, flow: FlowId) -> FlowOutcome {
        let Flows {
            drops, refusals, ..
        } = &self.flows;
        let mut outcome = self.flows.outcomes[flow];
        let dropped = DropReason::ALL.map(|reason| drops.get(&(flow, reason)));
        let refused = Refusal::ALL.map(|refusal| refusals.get(&(flow, refusal)));
        outcome.drops = dropped.into_iter().chain(refused).flatten().sum();
        if let Some(source) = self.source_of(flow) {
            source.tell(&mut outcome);
        }
        outcome
    }

    /// Packets of each sender that ports have dropped, by flow and reason.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (FlowId, DropReason, u32)> {
        let drops = self.flows.drops.iter();
        drops.map(|(&(flow, reason), &count)| (flow, reason, count))
    }

    /// Packets of each sender that the gates of its host have dropped, by flow and reason.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (FlowId, Refusal, u32)> {
        let refusals = self.flows.refusals.iter();
        refusals.map(|(&(flow, refusal), &count)| (flow, refusal, count))
    }

    /// Schedules the first start of each host; its others follow one by one.
    pub(super) fn await_first_flows(&mut self) {
        let world = Arc::clone(&self.world);
        let src = |flow: &FlowId| world.workload.flows[*flow].src;
        self.flows.starting.sort_by_key(src);
        for host in world.places.ids() {
            let first = self.flows.starting.partition_point(|flow| src(flow) < host);
            self.flows.next_starts.push(first);
            self.await_next_flow_of(host);
        }
    }

    /// Schedules the start of the next flow of a host.
    fn await_next_flow_of(&mut self, host: HostId) {
        let next = self.flows.next_starts[host];
        if let Some(&flow) = self.flows.starting.get(next) {
            let spec = self.world.workload.flows[flow];
            if spec.src == host {
                self.schedule(spec.start, Key::new(Occasion::Start(flow)));
            }
        }
    }

    /// Schedules the start of the next flow that waits for no barrier.
    pub(super) fn await_next_flow(&mut self) {
        if let Some(&flow) = self.flows.starting.get(self.flows.next_start) {
            let start = self.world.workload.flows[flow].start;
            self.schedule(start, Key::new(Occasion::Start(flow)));
        }
    }

    pub(super) fn start_flow(&mut self, flow: FlowId) {
        if self.layers.is_some() {
            let host = self.world.workload.flows[flow].src;
            self.flows.next_starts[host] += 1;
            self.await_next_flow_of(host);
        } else if self.flows.starting.get(self.flows.next_start) == Some(&flow) {
            self.flows.next_start += 1;
            self.await_next_flow();
        }
        self.flows.outcomes[flow].start = self.now;
        if self.world.workload.stream(flow).is_some() {
            self.start_datagrams(flow);
        } else {
            self.start_on_connection(flow);
        }
    }

    /// Ends a flow that does not end by itself, or is not done.
    pub(super) fn stop_flow(&mut self, flow: FlowId) {
        self.stop_connection(flow);
        self.stop_datagrams(flow);
    }

    /// Notes that a flow is complete.
    pub(super) fn complete(&mut self, flow: FlowId) {
        let outcome = &mut self.flows.outcomes[flow];
        if outcome.fct.is_none() {
            outcome.fct = Some(self.now - outcome.start);
            self.flows.done += 1;
            self.open_barriers(flow);
        }
    }

    /// Starts the flows that waited for this one last.
    fn open_barriers(&mut self, flow: FlowId) {
        for opened in self.flows.barriers.completed(flow) {
            let world = Arc::clone(&self.world);
            let barrier = &world.workload.barriers[opened];
            for &flow in &barrier.releases {
                self.schedule(self.now + barrier.pause, Key::new(Occasion::Start(flow)));
            }
        }
    }
}
