//! Controllers that crash and start again.

use std::collections::VecDeque;

use shallows_core::control::{Agent, LinkState};
use shallows_core::units::Time;
use shallows_core::xco::controller::{Controller, ControllerConfig};
use shallows_core::xco::fabric::{CoordinatedFabric, Routes};
use shallows_core::xco::message::ClusterKey;
use shallows_model::{Outage, XcoError};

/// A controller with outages.
#[derive(Debug)]
pub(super) struct Unreliable<R> {
    config: ControllerConfig,
    fabric: CoordinatedFabric<R>,
    key: ClusterKey,
    /// `None` while it is down.
    controller: Option<Controller<R>>,
    /// Outages to come, the current one included.
    outages: VecDeque<Outage>,
}

impl<R: Routes + Clone> Unreliable<R> {
    pub(super) fn new(
        config: ControllerConfig,
        fabric: CoordinatedFabric<R>,
        key: ClusterKey,
        outages: VecDeque<Outage>,
    ) -> Result<Self, XcoError> {
        let controller = Controller::new(config.clone(), fabric.clone(), &key, Time::ZERO)?;
        Ok(Self {
            config,
            fabric,
            key,
            controller: Some(controller),
            outages,
        })
    }

    /// Crashes and starts that are due.
    fn advance(&mut self, now: Time) {
        while let Some(&outage) = self.outages.front()
            && outage.crash <= now
        {
            self.controller = None;
            if outage.restart.is_none_or(|restart| now < restart) {
                return;
            }
            self.outages.pop_front();
            self.config.incarnation += 1;
            let (config, fabric) = (self.config.clone(), self.fabric.clone());
            // The same settings were sound when the run began.
            self.controller = Controller::new(config, fabric, &self.key, now).ok();
        }
    }
}

impl<R: Routes + Clone> Agent for Unreliable<R> {
    fn handle(&mut self, now: Time, from: u32, message: &[u8]) {
        self.advance(now);
        if let Some(controller) = &mut self.controller {
            controller.handle(now, from, message);
        }
    }

    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        self.controller.as_mut()?.transmit(now, buffer)
    }

    fn timeout(&self) -> Option<Time> {
        let outage = self.outages.front();
        match &self.controller {
            Some(controller) => {
                let crash = outage.map(|outage| outage.crash);
                controller.timeout().into_iter().chain(crash).min()
            }
            None => outage?.restart,
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        if let Some(controller) = &mut self.controller {
            controller.handle_timeout(now);
        }
    }

    fn link_changed(&mut self, now: Time, link: u32, state: LinkState) {
        self.advance(now);
        self.fabric.set_link(link, state);
        if let Some(controller) = &mut self.controller {
            controller.link_changed(now, link, state);
        }
    }
}

/// The outages of each controller in their order.
pub(super) fn by_controller(
    outages: &[Outage],
    controllers: u32,
) -> Result<Vec<VecDeque<Outage>>, XcoError> {
    let mut lists = vec![VecDeque::new(); controllers as usize];
    let mut sorted = outages.to_vec();
    sorted.sort_by_key(|outage| (outage.controller, outage.crash));
    for outage in sorted {
        let controller = outage.controller;
        let list: &mut VecDeque<Outage> =
            lists
                .get_mut(controller as usize)
                .ok_or(XcoError::NoSuchController {
                    controller,
                    controllers,
                })?;
        let crash = outage.crash;
        if outage.restart.is_some_and(|restart| restart <= crash) {
            return Err(XcoError::RestartsBeforeCrash { crash });
        }
        if let Some(last) = list.back()
            && last.restart.is_none_or(|restart| crash <= restart)
        {
            return Err(XcoError::CrashesTwice { controller, crash });
        }
        list.push_back(outage);
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn outage(controller: u32, crash: u64, restart: Option<u64>) -> Outage {
        Outage {
            controller,
            crash: Time::from_ms(crash),
            restart: match restart {
                Some(ms) => Some(Time::from_ms(ms)),
                None => None,
            },
        }
    }

    fn star(source: u32, destination: u32, path: &mut Vec<u32>) {
        path.extend([source, 2 + destination]);
    }

    #[test]
    fn a_controller_is_silent_while_it_is_down() {
        let rate = shallows_core::units::Rate::from_gbps(1);
        let routes = star as fn(u32, u32, &mut Vec<u32>);
        let fabric = CoordinatedFabric::new(vec![rate; 2], vec![rate; 4], routes).unwrap();
        let config = ControllerConfig {
            address: 2,
            ..ControllerConfig::default()
        };
        let outages = [outage(0, 10, Some(30)), outage(0, 40, None)].into();
        let key = ClusterKey::new([0; 16]);
        let mut agent = Unreliable::new(config, fabric, key, outages).unwrap();
        let mut log = Vec::new();
        let mut buffer = Vec::new();
        while let Some(now) = agent.timeout() {
            agent.handle_timeout(now);
            while agent.transmit(now, &mut buffer).is_some() {
                buffer.clear();
            }
            log.push((now, agent.controller.is_some()));
        }
        let is_up = |ms: u64| {
            let by = log.iter().rfind(|(at, _)| *at <= Time::from_ms(ms));
            by.unwrap().1
        };
        assert_eq!(
            [9, 10, 29, 30, 39, 40].map(is_up),
            [true, false, false, true, true, false]
        );
        assert_eq!(agent.config.incarnation, 2);
    }

    #[test]
    fn outages_that_cannot_be_are_refused() {
        let refusal = |outages: &[Outage]| by_controller(outages, 1).unwrap_err().to_string();
        assert_eq!(
            refusal(&[outage(1, 1, None)]),
            "outage of controller 1, their numbers end at 0; 1 is the standby, which standby = true adds"
        );
        assert_eq!(
            refusal(&[outage(0, 5, Some(5))]),
            "a controller that crashes at 5ms must restart later"
        );
        assert_eq!(
            refusal(&[outage(0, 5, Some(9)), outage(0, 7, None)]),
            "controller 0 crashes at 7ms, when it is down already"
        );
        assert!(by_controller(&[outage(0, 5, Some(9)), outage(0, 10, None)], 1).is_ok());
    }
}
