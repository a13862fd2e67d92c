//! Density of a run's events in time, estimated before it begins.
//!
//! Threads wait for each other about once a lookahead. Where links cannot carry many packets in that
//! time, or the flows of the workload do not, they would wait longer than they work.

use shallows_core::units::{Bytes, Time};

use crate::connections::Routes;
use crate::paths::Paths;
use crate::setup::Setup;
use crate::workload::FlowSpec;
use shallows_model::LinkId;

/// Packets that links carry in a time, on average: at most, and as far as the workload tells.
pub(crate) fn packets_in(
    time: Time,
    setup: &Setup,
    (paths, routes): (&Paths<LinkId>, &Routes),
    has_other_traffic: bool,
) -> f64 {
    let most = capacity(time, setup);
    if has_other_traffic {
        return most;
    }
    workload(time, setup, paths, routes).map_or(most, |average| average.min(most))
}

/// Full packets on all links, and an ACK for each.
fn capacity(time: Time, setup: &Setup) -> f64 {
    let full = Bytes::new(u64::from(setup.transport.segment + setup.transport.header));
    let on_link = |(number, link): (LinkId, &crate::topology::Link)| {
        let shaper = setup.ports.config(&setup.fabric, number).shaper.as_ref();
        let rate = shaper.map_or(link.rate, |shaper| shaper.rate.min(link.rate));
        time.ps() as f64 / rate.transmission_time(full).ps() as f64
    };
    2.0 * setup.fabric.links().numbered().map(on_link).sum::<f64>()
}

/// All packets of the flows and their ACKs, over the time in which the flows start; nothing if some
/// flows do not say how much they send.
fn workload(time: Time, setup: &Setup, paths: &Paths<LinkId>, routes: &Routes) -> Option<f64> {
    let flows = &setup.workload.flows;
    let starts = || flows.iter().map(|flow| flow.start);
    let span = starts().max()?.saturating_sub(starts().min()?);
    let segment = u64::from(setup.transport.segment);
    let mut packets = 0.0;
    for (flow, routes) in flows.iter().zip(routes) {
        if flow.bytes == FlowSpec::ENDLESS {
            return None;
        }
        let hops: usize = routes.iter().map(|&route| paths.links(route).count()).sum();
        packets += flow.bytes.div_ceil(segment) as f64 * hops as f64;
    }
    Some(packets * time.ps() as f64 / span.ps() as f64)
}
