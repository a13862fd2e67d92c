//! QJUMP's limiters in front of the NICs of a part.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use shallows_core::host::qjump::{Admission, Level, Limiter, MAX_LEVELS};

use super::Shard;
use crate::engine::{Class, Key};
use crate::packet::Packet;

/// The limiters of hosts, by the ports of their NICs.
pub(crate) type Limits = FxHashMap<u32, HostLimits>;

/// The limiter of a host, and what waits for the next epoch.
#[derive(Debug)]
pub(crate) struct HostLimits {
    pub(crate) limiter: Limiter,
    held: [VecDeque<Packet>; MAX_LEVELS],
}

impl HostLimits {
    pub(crate) fn new(limiter: Limiter) -> Self {
        Self {
            limiter,
            held: Default::default(),
        }
    }
}

impl Shard {
    /// A packet of a host with limits.
    #[inline(never)]
    pub(super) fn launch_limited(&mut self, packet: Packet) {
        let port = self.paths.link(packet.route);
        let level = Level::new(packet.dscp());
        let (Some(limits), Some(level)) = (self.limits.get_mut(&port), level) else {
            return self.emit(packet);
        };
        let held = &mut limits.held[level.index()];
        held.push_back(packet);
        // Those before it have set the time at which the level goes on.
        if held.len() == 1 {
            self.release_level(port, level);
        }
    }

    /// A new epoch of a level of a host.
    pub(super) fn begin_epoch(&mut self, identity: u32) {
        let levels = MAX_LEVELS as u32;
        if let Some(level) = Level::new((identity % levels) as u8) {
            self.release_level(identity / levels, level);
        }
    }

    /// Sends what a level may send now.
    fn release_level(&mut self, port: u32, level: Level) {
        loop {
            let Some(limits) = self.limits.get_mut(&port) else {
                return;
            };
            let held = &mut limits.held[level.index()];
            let Some(&packet) = held.front() else {
                return;
            };
            match limits.limiter.admit(self.now, level, packet.size()) {
                Admission::Pass => {
                    held.pop_front();
                    self.emit(packet);
                }
                Admission::Drop => {
                    held.pop_front();
                    self.discard(port, &packet);
                }
                Admission::HoldUntil(at) => {
                    let identity = port * MAX_LEVELS as u32 + level.index() as u32;
                    return self.schedule(at, Key::new(Class::Epoch, identity));
                }
            }
        }
    }

    fn discard(&mut self, port: u32, packet: &Packet) {
        self.free_selective.extend(packet.selective());
        if packet.is_datagram() {
            self.drop_datagram(port, packet);
        }
    }
}
