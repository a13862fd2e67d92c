//! A controller for each pod and one above them, as agents of a simulation.

use shallows_core::host::stack::LocalAgent;
use shallows_core::units::{Rate, Time};
use shallows_core::xco::controller::{Controller, ControllerConfig};
use shallows_core::xco::fabric::{CoordinatedFabric, Routes};
use shallows_core::xco::hierarchy::{
    Divided, HierarchyError, Numbers, Pods, Renumbered, TwoLevelCoordinator,
};
use shallows_core::xco::message::ClusterKey;
use shallows_model::{Carriage, HierarchyConfig, HostId, PortSetup, XcoConfig, XcoError};

use super::{coordinated, coordinator};
use crate::control::{AgentSetup, Control, HostAgent};
use crate::routing::Router;
use crate::topology::Fabric;

/// A cluster's key; all agents are ours, so that it need not be secret, only different from others.
fn key(cluster: u32) -> ClusterKey {
    ClusterKey::new(u128::from(cluster).to_le_bytes())
}

/// The cluster of the root; pods have those after it.
const ROOT: u32 = 0;

/// Two coordinators for each host, which are one agent, the root and a controller for each pod.
pub(super) fn control(
    config: &XcoConfig,
    fabric: &Fabric,
    router: &Router,
    ports: &PortSetup,
    hierarchy: HierarchyConfig,
) -> Result<Control, XcoError> {
    for (is_set, key) in [
        (config.controller.is_some(), "controller"),
        (config.standby, "standby"),
        (!config.outages.is_empty(), "outages"),
    ] {
        if is_set {
            return Err(XcoError::NotInHierarchy(key));
        }
    }
    let hosts = fabric.hosts();
    let pods = pods(fabric, hierarchy.pod_hosts)?;
    let known = coordinated(fabric, router)?;
    let Divided { root, pods: inside } = pods.divide(&known, hierarchy.root_share)?;
    // Addresses are positions: hosts, the root, then the controllers of pods.
    let numbers = |pod: u32| Numbers::new(pods.hosts(pod), hosts + 1 + pod);
    let share = |rate: Rate, percent: u32| rate.scaled(u64::from(percent), 100);
    let mut agents = Vec::with_capacity((hosts + 1 + pods.count()) as usize);
    for (host, (pod, number)) in fabric
        .host_ids()
        .filter_map(|host| Some((host, pods.place(host.0)?)))
    {
        let rate = fabric.link(fabric.uplink(host)).rate;
        let numbers = numbers(pod);
        let own = share(rate, 100 - hierarchy.root_share);
        let all = (fabric, ports);
        let of_pod = (&[numbers.controller()][..], key(ROOT + 1 + pod));
        let own = coordinator(config, (HostId(number), own), of_pod.0, &of_pod.1, all)?;
        let beyond = share(rate, hierarchy.root_share);
        let beyond = coordinator(config, (host, beyond), &[hosts], &key(ROOT), all)?;
        let both = TwoLevelCoordinator::new(own, numbers, beyond);
        let agent = HostAgent::Gate(Box::new(both));
        agents.push(AgentSetup { host, agent });
    }
    let mut add = |agent: Box<dyn LocalAgent>| {
        let agent = HostAgent::Alone(agent);
        agents.push(AgentSetup {
            host: HostId(0),
            agent,
        });
    };
    // Slots are longer as links are slower, so that one carries as much as without pods.
    let slot = |percent: u32| config.slot * 100 / u64::from(percent);
    let mut settings = config.settings(hosts, &[hosts]);
    settings.slot = slot(hierarchy.root_share);
    add(Box::new(controller(settings, root, &key(ROOT))?));
    for (pod, inside) in (0..).zip(inside) {
        let numbers = numbers(pod);
        let mut settings = config.settings(numbers.controller(), &[]);
        settings.slot = slot(100 - hierarchy.root_share);
        settings.weights = (0..)
            .zip(pods.hosts(pod))
            .filter_map(|(number, host)| Some((number, *settings.weights.get(host)?)))
            .collect();
        let inner = controller(settings, inside, &key(ROOT + 1 + pod))?;
        add(Box::new(Renumbered::new(inner, numbers)));
    }
    let control = Control {
        agents,
        carriage: Carriage::OutOfBand {
            delay: config.delay,
        },
        channels: Vec::new(),
    };
    control.check(fabric)?;
    Ok(control)
}

fn pods(fabric: &Fabric, size: Option<u32>) -> Result<Pods, HierarchyError> {
    let places = || fabric.host_ids().map(|host| fabric.place(host));
    match size {
        Some(size) => Pods::of_size(size, fabric.hosts()),
        None => Pods::of(places().map(|place| place.pod))
            .or_else(|_| Pods::of(places().map(|place| place.rack))),
    }
}

fn controller<R: Routes>(
    config: ControllerConfig,
    fabric: CoordinatedFabric<R>,
    key: &ClusterKey,
) -> Result<Controller<R>, XcoError> {
    Ok(Controller::new(config, fabric, key, Time::ZERO)?)
}
