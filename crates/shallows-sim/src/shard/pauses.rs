//! Links that can be paused, by 802.3x or 802.1Qbb.
//!
//! A switch charges every packet to the link that it came on, from its arrival until its
//! transmission starts or it is dropped. Where that is too much, a pause frame goes back on the same
//! cable, ahead of all packets, and stops the port at the other end when it is there. What is on its
//! way until then still comes: a buffer needs room for it. Hosts can be paused and do not pause
//! others.
//!
//! The account of a link is in the shard of the switch that it leads to, its port in that of the
//! node that it leaves. Between two shards a pause is mail, as late as its frame.

use std::collections::VecDeque;

use shallows_core::port::pause::{PAUSE_FRAME, PauseGauge, PauseSignal};
use shallows_core::port::{ConfigError, QueueSet};
use shallows_core::units::Time;
use shallows_model::{IdVec, LinkId};

use super::Shard;
use crate::engine::{Event, Key, Occasion};
use crate::ids::{PortId, ShardId};
use crate::partition::Partition;
use crate::paths::Hop;
use crate::ports::PortSetup;
use crate::topology::{Fabric, Link, Node};

/// The pauses of every link, as far as a shard has its port or its account.
#[derive(Debug)]
pub(crate) struct Pauses {
    links: IdVec<LinkId, PausableLink>,
    /// The link that each packet came on to the switch where it is.
    came_on: Vec<LinkId>,
}

/// A pause, or its end, on its way to the port of a link in another shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct PauseMessage {
    pub(super) arrival: Time,
    link: LinkId,
    signal: PauseSignal,
}

#[derive(Debug)]
struct PausableLink {
    /// Gauge of its packets in the switch that it leads to.
    gauge: Option<PauseGauge>,
    /// Pause signals on their way to the port of this link.
    told: VecDeque<PauseSignal>,
    propagation: Time,
    /// The shard of its port, and the port there.
    from: ShardId,
    port: PortId,
    /// The shard that it leads to.
    to: ShardId,
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
    /// Those that the ports ask for, if they do, in a shard.
    pub(crate) fn new(
        shard: ShardId,
        fabric: &Fabric,
        ports: &PortSetup,
        partition: &Partition,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(config) = ports.pause else {
            return Ok(None);
        };
        let queues = |link| ports.config(fabric, link).queues;
        let most = fabric.links().ids().map(queues).max();
        let pausable = |(number, link): (LinkId, &Link)| {
            let ((from, port), to) = (partition.place(number), partition.part_of(link.to));
            let gauge = match link.to {
                Node::Switch(_) if to == shard => Some(PauseGauge::new(config, most.unwrap_or(1))?),
                Node::Switch(_) | Node::Host(_) => None,
            };
            Ok(PausableLink {
                gauge,
                told: VecDeque::new(),
                propagation: link.propagation,
                from,
                port,
                to,
                leaves_switch: matches!(link.from, Node::Switch(_)),
                paused: QueueSet::EMPTY,
                since: Time::ZERO,
                stats: PauseStats::default(),
            })
        };
        let links = fabric.links().numbered().map(pausable);
        let links = links.collect::<Result<_, ConfigError>>()?;
        Ok(Some(Self {
            links,
            came_on: Vec::new(),
        }))
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
    /// Number and total duration of a link's pauses until `now`.
    pub(crate) fn pauses(&self, link: LinkId, now: Time) -> PauseStats {
        let Some(pauses) = self.pauses.as_deref() else {
            return PauseStats::default();
        };
        let link = &pauses.links[link];
        let mut stats = link.stats;
        if !link.paused.is_empty() {
            stats.paused += now.saturating_sub(link.since);
        }
        stats
    }

    /// The shard that a link leads to where links can be paused.
    pub(super) fn beyond(&self, link: LinkId) -> ShardId {
        let pauses = self.pauses.as_deref();
        pauses.map_or(self.part, |pauses| pauses.links[link].to)
    }

    /// Lets a packet arrive at the end of a link, with its account where it can be paused.
    pub(super) fn await_frame(&mut self, number: u32, link: LinkId, at: Time) {
        let hop = self.paths.hop(self.packets.get(number).ticket.route());
        if self.pauses.is_none() || hop.has_arrived() {
            return self.await_arrival(number, link, at);
        }
        self.packets.get_mut(number).ticket.advance();
        self.events.push(Event {
            time: at,
            key: Key::new(Occasion::Frame(link)),
            packet: number,
            hop,
        });
    }

    /// A packet is at a switch, or a pause at the node whose port it stops.
    pub(super) fn take_frame(&mut self, link: LinkId, packet: u32, hop: Hop<PortId>) {
        let port = hop.id();
        if !hop.has_arrived() {
            self.charge(link, port, packet);
            return self.forward(port, packet);
        }
        let Some(pauses) = self.pauses.as_deref_mut() else {
            return;
        };
        let stopped = &mut pauses.links[link.reverse()];
        if let Some(signal) = stopped.told.pop_front() {
            stopped.obey(self.now, signal);
            self.network
                .signal(&mut self.events, self.now, port, signal);
        }
    }

    fn charge(&mut self, link: LinkId, port: PortId, number: u32) {
        if let Some(pauses) = self.pauses.as_deref_mut() {
            let at = number as usize;
            if at >= pauses.came_on.len() {
                pauses.came_on.resize(at + 1, link);
            }
            pauses.came_on[at] = link;
        }
        let packet = self.packets.get(number);
        let queue = self.network.port(port).classify(&packet.ticket);
        let size = packet.size();
        let signal = self.gauge(link).and_then(|gauge| gauge.charge(queue, size));
        self.tell(link, signal);
    }

    /// A packet leaves the port of a link, or was dropped there: takes it off the account of the
    /// link that it came on.
    pub(super) fn release(&mut self, link: LinkId, number: u32) {
        let Some(pauses) = self.pauses.as_deref() else {
            return;
        };
        let PausableLink {
            port,
            leaves_switch,
            ..
        } = pauses.links[link];
        if !leaves_switch {
            return;
        }
        let link = pauses.came_on[number as usize];
        let packet = self.packets.get(number);
        let queue = self.network.port(port).classify(&packet.ticket);
        let size = packet.size();
        let gauge = self.gauge(link);
        let signal = gauge.and_then(|gauge| gauge.release(queue, size));
        self.tell(link, signal);
    }

    fn gauge(&mut self, link: LinkId) -> Option<&mut PauseGauge> {
        self.pauses.as_deref_mut()?.links[link].gauge.as_mut()
    }

    /// Sends a pause, or the end of one, back on the cable of a link.
    fn tell(&mut self, link: LinkId, signal: Option<PauseSignal>) {
        let (Some(signal), Some(pauses)) = (signal, self.pauses.as_deref_mut()) else {
            return;
        };
        let PausableLink {
            port, propagation, ..
        } = pauses.links[link.reverse()];
        let to = pauses.links[link].from;
        let sent = self.network.send_frame(port, self.now, PAUSE_FRAME);
        let message = PauseMessage {
            arrival: sent + propagation,
            link,
            signal,
        };
        if to == self.part {
            self.await_signal(message);
        } else {
            self.outbox[to].pauses.push(message);
        }
    }

    /// Lets a pause, or its end, arrive at the node whose port it is for.
    pub(super) fn await_signal(&mut self, message: PauseMessage) {
        let PauseMessage {
            arrival,
            link,
            signal,
        } = message;
        if let Some(pauses) = self.pauses.as_deref_mut() {
            let stopped = &mut pauses.links[link];
            stopped.told.push_back(signal);
            self.events.push(Event {
                time: arrival,
                key: Key::new(Occasion::Frame(link.reverse())),
                packet: 0,
                hop: Hop::arrived(stopped.port),
            });
        }
    }
}
