//! Execution of a run: its engine, and the number of its parts.
//!
//! There are two engines. **Layers** have no event queue: all ports take their packets of a window,
//! layer by layer ([`layers`](crate::layers)). The **event queue** handles one event after the other
//! ([`engine`](crate::engine)). Both give the same bytes, and both can run on several threads, each
//! with one part of the fabric ([`partition`](crate::partition), [`parallel`](crate::parallel)).
//! [`choose`] decides, in this order:
//!
//! 1. Layers, where they fit. They do not where a port depends on one that comes after it, where
//!    records keep the order of time, or where hosts know at once what happens elsewhere
//!    ([`refuse`](crate::layers::refuse) has the list).
//! 2. The event queue after all, where a window has room for fewer than two packets: that is as
//!    fast.
//! 3. As many parts as there are threads, where each has enough to do between two meetings with
//!    the others. In layers parts meet once a window, or as often as packets cross in different
//!    layers. By events they wait for each other once in a lookahead, the least time that a packet
//!    takes from one part to another.
//! 4. One part, where the links or flows cannot have so many packets.
//!
//! That is before the run. During the run the [crew](crate::parallel::Crew) of threads lets the
//! calling thread run all parts in turns, where traffic turns out to be sparse, or where the
//! machine is so busy that one thread is faster.

use shallows_core::units::Time;
use shallows_model::LinkId;

use crate::connections::Routes;
use crate::density;
use crate::layers::{Engine, EngineChoice, LayerPlan, NoLayers, PartPlan};
use crate::parallel::{self, Ties};
use crate::partition::Partition;
use crate::paths::Paths;
use crate::setup::Setup;

/// Execution of a run.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) engine: Engine,
    pub(crate) partition: Partition,
    /// Synchronization of the parts.
    pub(crate) ties: Ties,
    /// The layers of each part; none if the run goes by events.
    pub(crate) layers: Vec<PartPlan>,
}

/// The packets of a run, as far as they are known before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic<'a> {
    pub(crate) paths: &'a Paths<LinkId>,
    /// The beginnings of each connection's paths, forth and back.
    pub(crate) routes: &'a Routes,
    /// Bytes of the smallest packet.
    pub(crate) smallest: u32,
    /// The delay of messages out of band, if there are any.
    pub(crate) letters: Option<Time>,
    /// True if there is more than the flows show.
    pub(crate) has_others: bool,
}

/// Chooses the engine and the parts of a run on at most `threads` threads. `fits` says what does not fit layers,
/// as far as it was found before agents moved to their hosts.
pub(crate) fn choose(
    setup: &Setup,
    fits: Result<(), NoLayers>,
    threads: u32,
    traffic: Traffic<'_>,
) -> Result<Execution, NoLayers> {
    let plan = fits.and_then(|()| LayerPlan::new(setup, traffic.paths, traffic.smallest));
    let plan = match setup.engine {
        EngineChoice::Events => Err(NoLayers::Demanded),
        EngineChoice::Layers => Ok(plan?),
        EngineChoice::Automatic => plan.and_then(|plan| plan.pays(setup).map(|()| plan)),
    };
    Ok(match plan {
        Ok(plan) => in_layers(&plan.with_letters(traffic.letters), setup, threads, traffic),
        Err(reason) => by_events(reason, setup, threads, traffic),
    })
}

fn in_layers(plan: &LayerPlan, setup: &Setup, threads: u32, traffic: Traffic<'_>) -> Execution {
    let mut partition = Partition::in_layers(&setup.fabric, threads);
    let packets = parallel::DENSE * u64::from(partition.parts());
    if partition.parts() > 1 && has_fewer(packets, plan.window(), setup, traffic) {
        partition = Partition::in_layers(&setup.fabric, 1);
    }
    Execution {
        engine: plan.engine(),
        layers: plan.divide(&partition, traffic.paths),
        ties: Ties::Windows(partition.parts()),
        partition,
    }
}

fn by_events(reason: NoLayers, setup: &Setup, threads: u32, traffic: Traffic<'_>) -> Execution {
    let mut partition = Partition::new(&setup.fabric, threads);
    let mut lookaheads = partition.lookaheads(&setup.fabric, &setup.ports, traffic.smallest);
    if let Some(delay) = traffic.letters {
        (lookaheads.iter_mut().flatten()).for_each(|least| *least = delay.min(*least));
    }
    let least = lookaheads.iter().flatten().copied().min();
    let least = least.unwrap_or(Time::ZERO);
    let packets = parallel::DENSE * u64::from(partition.parts());
    if partition.parts() > 1 && has_fewer(packets, least, setup, traffic) {
        partition = Partition::new(&setup.fabric, 1);
        lookaheads = vec![vec![Time::MAX]];
    }
    Execution {
        engine: Engine::Events(reason),
        layers: Vec::new(),
        ties: Ties::Lookaheads(lookaheads),
        partition,
    }
}

/// Returns whether there are fewer packets in a time than it takes, unless an engine is demanded.
fn has_fewer(packets: u64, time: Time, setup: &Setup, traffic: Traffic<'_>) -> bool {
    let routed = (traffic.paths, traffic.routes);
    setup.engine == EngineChoice::Automatic
        && density::packets_in(time, setup, routed, traffic.has_others) < packets as f64
}
