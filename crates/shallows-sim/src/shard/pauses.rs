//! Links that can be paused, by 802.3x or 802.1Qbb.
//!
//! A switch charges every packet to the link that it came on, from its arrival until its
//! transmission starts or it is dropped. Where that is too much, a pause frame goes back on the same
//! cable, ahead of all packets, and stops the port at the other end when it is there. What is on its
//! way until then still comes: a buffer needs room for it. Hosts can be paused and do not pause
//! others.

use std::collections::VecDeque;

use shallows_core::port::pause::{PAUSE_FRAME, PauseGauge, PauseSignal};
use shallows_core::port::{ConfigError, QueueSet};
use shallows_core::units::Time;

use super::Shard;
use crate::engine::{Class, Event, Key};
use crate::network::Sent;
use crate::paths::ARRIVED;
use crate::ports::PortSetup;
use crate::topology::{Fabric, Node};

/// The pauses of every link.
#[derive(Debug)]
pub(crate) struct Pauses(Vec<PausableLink>);

#[derive(Debug)]
struct PausableLink {
    /// Gauge of its packets in the switch that it leads to.
    gauge: Option<PauseGauge>,
    /// Pause signals on their way to the port of this link.
    told: VecDeque<PauseSignal>,
    propagation: Time,
    leaves_switch: bool,
    paused: QueueSet,
    since: Time,
    stats: PauseStats,
}

/// Number and total duration of a link's pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseStats {
    /// Frames that stopped one of its queues, or all.
    pub pauses: u64,
    /// Time with a queue stopped.
    pub paused: Time,
}

impl Pauses {
    /// Those that the ports ask for, if they do.
    pub(crate) fn new(fabric: &Fabric, ports: &PortSetup) -> Result<Option<Self>, ConfigError> {
        let Some(config) = ports.pause else {
            return Ok(None);
        };
        let queues = |link| ports.config(fabric, link).queues;
        let most = (0..fabric.links().len() as u32).map(queues).max();
        let pausable = |link: &crate::topology::Link| {
            let gauge = match link.to {
                Node::Host(_) => None,
                Node::Switch(_) => Some(PauseGauge::new(config, most.unwrap_or(1))?),
            };
            Ok(PausableLink {
                gauge,
                told: VecDeque::new(),
                propagation: link.propagation,
                leaves_switch: matches!(link.from, Node::Switch(_)),
                paused: QueueSet::EMPTY,
                since: Time::ZERO,
                stats: PauseStats::default(),
            })
        };
        let links: Result<_, ConfigError> = fabric.links().iter().map(pausable).collect();
        Ok(Some(Self(links?)))
    }
}

impl PausableLink {
    /// Keeps account of a pause or its end.
    fn obey(&mut self, now: Time, signal: PauseSignal) {
        let was_free = self.paused.is_empty();
        match signal {
            PauseSignal::Pause(queues) => {
                self.stats.pauses += 1;
                self.paused = self.paused.union(queues);
                if was_free {
                    self.since = now;
                }
            }
            PauseSignal::Resume(queues) => {
                self.paused = self.paused.difference(queues);
                if !was_free && self.paused.is_empty() {
                    self.stats.paused += now - self.since;
                }
            }
        }
    }
}

impl Shard {
    /// Number and total duration of a link's pauses so far.
    pub(crate) fn pauses(&self, link: u32) -> PauseStats {
        let Some(Pauses(links)) = self.pauses.as_deref() else {
            return PauseStats::default();
        };
        let link = &links[link as usize];
        let mut stats = link.stats;
        if !link.paused.is_empty() {
            stats.paused += self.now.saturating_sub(link.since);
        }
        stats
    }

    /// Lets a packet arrive at the end of a link, with its account where it can be paused.
    pub(super) fn carry(&mut self, number: u32, sent: Sent) {
        let next = self.paths.link(self.packets.get(number).ticket.route());
        if self.pauses.is_none() || next & ARRIVED != 0 {
            return self.await_arrival(number, sent.link, sent.arrival);
        }
        self.packets.get_mut(number).ticket.advance();
        self.events.push(Event {
            time: sent.arrival,
            key: Key::new(Class::Frame, sent.link),
            packet: number,
            port: next,
        });
    }

    /// A packet is at a switch, or a pause at the port that it stops.
    pub(super) fn take_frame(&mut self, link: u32, packet: u32, port: u32) {
        if port & ARRIVED == 0 {
            self.charge(link, port, packet);
            return self.forward(port, packet);
        }
        let port = port & !ARRIVED;
        let Some(Pauses(links)) = self.pauses.as_deref_mut() else {
            return;
        };
        let link = &mut links[port as usize];
        if let Some(signal) = link.told.pop_front() {
            link.obey(self.now, signal);
            self.network
                .signal(&mut self.events, self.now, port, signal);
        }
    }

    fn charge(&mut self, link: u32, port: u32, number: u32) {
        let packet = self.packets.get(number);
        let queue = self.network.port(port).classify(&packet.ticket);
        let size = packet.size();
        let signal = self.gauge(link).and_then(|gauge| gauge.charge(queue, size));
        self.tell(link, signal);
    }

    /// A packet leaves a port, or was dropped there: takes it off the account of the link that it
    /// came on.
    pub(super) fn release(&mut self, port: u32, number: u32) {
        let leaves_switch = |Pauses(links): &Pauses| links[port as usize].leaves_switch;
        if !self.pauses.as_deref().is_some_and(leaves_switch) {
            return;
        }
        let packet = self.packets.get(number);
        // Its route is past the link of this port.
        let link = self.paths.link(packet.ticket.route() - 2);
        let queue = self.network.port(port).classify(&packet.ticket);
        let size = packet.size();
        let gauge = self.gauge(link);
        let signal = gauge.and_then(|gauge| gauge.release(queue, size));
        self.tell(link, signal);
    }

    fn gauge(&mut self, link: u32) -> Option<&mut PauseGauge> {
        let Pauses(links) = self.pauses.as_deref_mut()?;
        links[link as usize].gauge.as_mut()
    }

    /// Sends a pause, or the end of one, back on the cable of a link.
    fn tell(&mut self, link: u32, signal: Option<PauseSignal>) {
        let (Some(signal), Some(Pauses(links))) = (signal, self.pauses.as_deref_mut()) else {
            return;
        };
        let back = link ^ 1;
        links[link as usize].told.push_back(signal);
        let sent = self.network.send_frame(back, self.now, PAUSE_FRAME);
        self.events.push(Event {
            time: sent + links[back as usize].propagation,
            key: Key::new(Class::Frame, back),
            packet: 0,
            port: ARRIVED | link,
        });
    }
}
