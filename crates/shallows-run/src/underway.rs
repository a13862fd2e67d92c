//! The flows that samples have to look at: those that have started and are not over.

use shallows_core::units::Time;
use shallows_model::workload::FlowSpec;

/// Flows under way, kept from one sample to the next so that a sample costs what is under way then
/// and not what the whole run has.
#[derive(Debug)]
pub(crate) struct Underway {
    /// Flows with a start, in its order, which is that of their numbers; the first `begun` have
    /// started.
    timed: Vec<u32>,
    begun: usize,
    /// Those of them that are not over.
    active: Vec<u32>,
    /// Flows that wait for others and are not over.
    at_barriers: Vec<u32>,
}

impl Underway {
    /// Some of the flows of a workload.
    pub(crate) fn new(numbers: impl IntoIterator<Item = u32>, flows: &[FlowSpec]) -> Self {
        let is_timed = |number: &u32| flows[*number as usize].start != FlowSpec::AT_BARRIER;
        let (mut timed, mut at_barriers): (Vec<u32>, Vec<u32>) =
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
        flows: &[FlowSpec],
        mut is_over: impl FnMut(u32) -> bool,
    ) {
        let coming = &self.timed[self.begun..];
        let begun = coming.partition_point(|&number| flows[number as usize].start <= now);
        self.active.extend_from_slice(&coming[..begun]);
        self.begun += begun;
        self.active.retain(|&number| !is_over(number));
        self.at_barriers.retain(|&number| !is_over(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_visited_from_their_start_until_they_are_over() {
        let flow = |us| FlowSpec {
            start: Time::from_us(us),
            src: 0,
            dst: 1,
            bytes: 1,
            service: 0,
        };
        let mut flows: Vec<FlowSpec> = [1, 2, 2, 9].map(flow).to_vec();
        flows.push(FlowSpec {
            start: FlowSpec::AT_BARRIER,
            ..flow(0)
        });
        let mut underway = Underway::new([4, 3, 2, 0], &flows);
        let mut at = |us, over: &[u32]| {
            let mut seen = Vec::new();
            underway.visit(Time::from_us(us), &flows, |number| {
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
