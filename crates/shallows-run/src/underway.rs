//! The flows that samples have to look at: those that have started and are not over.

use shallows_core::units::Time;
use shallows_model::workload::FlowSpec;
use shallows_model::{FlowId, IdVec};

/// Flows under way, kept from one sample to the next so that a sample costs what is under way then
/// and not what the whole run has.
#[derive(Debug)]
pub(crate) struct Underway {
    /// Flows with a start, in its order, which is that of their numbers; the first `begun` have
    /// started.
    timed: Vec<FlowId>,
    begun: usize,
    /// Those of them that are not over.
    active: Vec<FlowId>,
    /// Flows that wait for others and are not over.
    at_barriers: Vec<FlowId>,
}

impl Underway {
    /// Some of the flows of a workload.
    pub(crate) fn new(
        numbers: impl IntoIterator<Item = FlowId>,
        flows: &IdVec<FlowId, FlowSpec>,
    ) -> Self {
        let is_timed = |number: &FlowId| flows[*number].start != FlowSpec::AT_BARRIER;
        let (mut timed, mut at_barriers): (Vec<FlowId>, Vec<FlowId>) =
            numbers.into_iter().partition(is_timed);
        timed.sort_unstable();
        at_barriers.sort_unstable();
        Self {
            timed,
            begun: 0,
            active: Vec::new(),
            at_barriers,
        }
    }

    /// Visits the flows that have started by `now`, in the order of their numbers, and never again
    /// one for which `is_over` holds. Flows that wait for others are visited before their start too.
    pub(crate) fn visit(
        &mut self,
        now: Time,
        flows: &IdVec<FlowId, FlowSpec>,
        mut is_over: impl FnMut(FlowId) -> bool,
    ) {
        let coming = &self.timed[self.begun..];
        let begun = coming.partition_point(|&number| flows[number].start <= now);
        self.active.extend_from_slice(&coming[..begun]);
        self.begun += begun;
        self.active.retain(|&number| !is_over(number));
        self.at_barriers.retain(|&number| !is_over(number));
    }
}

#[cfg(test)]
mod tests {
    use shallows_model::HostId;

    use super::*;

    #[test]
    fn flows_are_visited_from_their_start_until_they_are_over() {
        let flow = |us| FlowSpec {
            start: Time::from_us(us),
            src: HostId(0),
            dst: HostId(1),
            bytes: 1,
            service: 0,
        };
        let mut flows: IdVec<FlowId, FlowSpec> = [1, 2, 2, 9].map(flow).into_iter().collect();
        flows.push(FlowSpec {
            start: FlowSpec::AT_BARRIER,
            ..flow(0)
        });
        let mut underway = Underway::new([4, 3, 2, 0].map(FlowId), &flows);
        let mut at = |us, over: &[u32]| {
            let mut seen = Vec::new();
            underway.visit(Time::from_us(us), &flows, |FlowId(number)| {
                seen.push(number);
                over.contains(&number)
            });
            seen
        };
        assert_eq!(at(0, &[]), [4]);
        assert_eq!(at(2, &[0]), [0, 2, 4]);
        assert_eq!(at(3, &[4]), [2, 4]);
        assert_eq!(at(9, &[2, 3]), [2, 3]);
        assert!(at(10, &[]).is_empty());
    }
}
