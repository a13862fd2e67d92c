//! XCo at the hosts of a simulation: a coordinator at each, and a controller.

mod hierarchy;
mod outage;

use std::collections::VecDeque;

use shallows_core::control::LinkState;
use shallows_core::units::{Rate, Time};
use shallows_core::xco::config::SettingsError;
use shallows_core::xco::controller::{Controller, ControllerConfig};
use shallows_core::xco::coordinator::{Coordinator, CoordinatorConfig};
use shallows_core::xco::fabric::{CoordinatedFabric, Routes};
use shallows_core::xco::message::ClusterKey;
use shallows_model::{Carriage, Channel, HostId, LinkId, Outage, PortSetup, XcoConfig, XcoError};

use crate::control::{AgentSetup, Control, HostAgent};
use crate::routing::{Router, Selection};
use crate::ticket::Ticket;
use crate::topology::Fabric;

use outage::Unreliable;

/// The paths of the simulation's router. Where each flow has one of its own, the links that all
/// flows of the pair share.
#[derive(Clone, Debug)]
struct Paths(Router);

/// Paths that are compared to find what they share.
const SAMPLES: u64 = 16;

impl Routes for Paths {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        path.clear();
        let Self(router) = self;
        let (source, destination) = (HostId(source), HostId(destination));
        let mut links = Vec::new();
        if router.path(source, destination, 0, &mut links).is_err() {
            return;
        }
        path.extend(links.iter().map(|link| link.0));
        if router.selection() == Selection::Pair {
            return;
        }
        for selector in 1..SAMPLES {
            let other = router.path(source, destination, selector, &mut links);
            if other.is_ok() {
                path.retain(|&link| links.contains(&LinkId(link)));
            }
        }
    }

    fn set_link(&mut self, link: u32, state: LinkState) {
        self.0.set_link(LinkId(link), state);
    }
}

impl Control {
    /// XCo's coordinator for each host, and the controller.
    ///
    /// # Errors
    /// If the settings make no sense on this fabric.
    pub fn xco(
        config: &XcoConfig,
        fabric: &Fabric,
        router: &Router,
        ports: &PortSetup,
    ) -> Result<Control, XcoError> {
        let hosts = fabric.hosts();
        if fabric.has_several_nics() {
            return Err(XcoError::SeveralNics);
        }
        if let Some(host) = config.controller.filter(|&host| host >= hosts) {
            return Err(XcoError::NoSuchHost { host, hosts });
        }
        if config.controller.is_none() && config.slot <= config.delay * 2 {
            let (slot, delay) = (config.slot, config.delay);
            return Err(XcoError::ShortSlot { slot, delay });
        }
        if let Some(hierarchy) = config.hierarchy {
            config.check_weights(hosts)?;
            return hierarchy::control(config, fabric, router, ports, hierarchy);
        }
        if let Some(host) = config.controller.filter(|_| config.standby) {
            return Err(XcoError::StandbyInFabric(host));
        }
        config.check_weights(hosts)?;
        // Addresses are positions: the controller is in the place of its host's coordinator.
        let address = config.controller.unwrap_or(hosts);
        let addresses: Vec<u32> = (address..).take(1 + usize::from(config.standby)).collect();
        let outages = outage::by_controller(&config.outages, addresses.len() as u32)?;
        let known = coordinated(fabric, router)?;
        // All agents are ours, so the key need not be secret.
        let key = ClusterKey::new([0; 16]);
        let controllers = addresses.iter().zip(outages);
        let controllers = controllers.map(|(&own, outages)| {
            let settings = config.settings(own, &addresses);
            controller(settings, known.clone(), &key, outages)
        });
        let mut controllers = controllers.collect::<Result<VecDeque<_>, _>>()?;
        let mut agents = Vec::with_capacity(hosts as usize + addresses.len());
        for host in fabric.host_ids() {
            let agent = if config.controller == Some(host.0)
                && let Some(controller) = controllers.pop_front()
            {
                controller
            } else {
                let rate = fabric.link(fabric.uplink(host)).rate;
                let coordinator =
                    coordinator(config, (host, rate), &addresses, &key, (fabric, ports))?;
                HostAgent::Gate(Box::new(coordinator))
            };
            agents.push(AgentSetup { host, agent });
        }
        agents.extend(controllers.into_iter().map(|agent| AgentSetup {
            host: HostId(0),
            agent,
        }));
        let (carriage, channels) = carriage(config, hosts);
        let control = Control {
            agents,
            carriage,
            channels,
        };
        control.check(fabric)?;
        Ok(control)
    }
}

/// The transport of messages: between a controller at a host and all others as packets, else out of
/// band.
fn carriage(config: &XcoConfig, hosts: u32) -> (Carriage, Vec<Channel>) {
    let Some(controller) = config.controller else {
        let delay = config.delay;
        return (Carriage::OutOfBand { delay }, Vec::new());
    };
    let others = (0..hosts).filter(|&host| host != controller);
    let both = |host| [(host, controller), (controller, host)];
    let channels = others.flat_map(both).map(|(from, to)| Channel { from, to });
    let carriage = Carriage::Fabric {
        dscp: config.dscp,
        header: 28,
    };
    (carriage, channels.collect())
}

fn coordinator(
    config: &XcoConfig,
    (HostId(host), rate): (HostId, Rate),
    controllers: &[u32],
    key: &ClusterKey,
    (fabric, ports): (&Fabric, &PortSetup),
) -> Result<Coordinator<Ticket>, SettingsError> {
    let hosts = fabric.hosts();
    let slowest = fabric
        .host_ids()
        .map(|host| fabric.link(fabric.downlink(host)).rate);
    let slowest = slowest.min().unwrap_or(rate);
    let settings = CoordinatorConfig {
        host,
        controllers: controllers.to_vec(),
        incarnation: 1,
        rate,
        framing: ports.hosts.framing,
        gate: config.gate,
        budget: config.gate.budget(slowest, hosts),
        protocol: config.protocol,
        on_demand: config.on_demand,
    };
    Coordinator::new(settings, key.host(host), Time::ZERO)
}

/// The fabric as the controller knows it.
fn coordinated(fabric: &Fabric, router: &Router) -> Result<CoordinatedFabric<Paths>, XcoError> {
    let rate = |host| fabric.link(fabric.uplink(host)).rate;
    let rates: Vec<Rate> = fabric.host_ids().map(rate).collect();
    let links = fabric.links().iter().map(|link| link.rate).collect();
    Ok(CoordinatedFabric::new(rates, links, Paths(router.clone()))?)
}

fn controller(
    config: ControllerConfig,
    fabric: CoordinatedFabric<Paths>,
    key: &ClusterKey,
    outages: VecDeque<Outage>,
) -> Result<HostAgent, XcoError> {
    if outages.is_empty() {
        let controller = Controller::new(config, fabric, key, Time::ZERO)?;
        return Ok(HostAgent::Alone(Box::new(controller)));
    }
    let controller = Unreliable::new(config, fabric, key.clone(), outages)?;
    Ok(HostAgent::Alone(Box::new(controller)))
}
