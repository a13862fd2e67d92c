//! What the integration tests share.

use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::{Departure, EgressPort, Pool, PortConfig, Transmit};
use shallows_core::units::{Rate, Time};

/// The links of all tests: 1500 B take 1.2 us.
pub(crate) const RATE: Rate = Rate::from_gbps(10);

/// A packet of a queue, told from others by its tag.
pub(crate) fn packet(queue: usize, size: u32, tag: u64) -> Descriptor {
    Descriptor {
        size,
        flow: tag,
        dscp: queue as u8,
        ecn: Ecn::Ect0,
        tag,
        ..Descriptor::default()
    }
}

/// A port from TOML with `queues`, `scheduler` and `marker` filled in and an unlimited buffer.
pub(crate) fn config(queues: usize, scheduler: &str, marker: &str) -> PortConfig {
    toml::from_str(&format!(
        r#"
        queues = {queues}
        buffer = "unlimited"
        scheduler = {scheduler}
        marker = {{ scheme = {marker} }}
        "#
    ))
    .expect("the test's configuration is sound")
}

/// A port and its pool, driven in virtual time that jumps to when the link is free.
pub(crate) struct Driver {
    pub(crate) port: EgressPort<Descriptor>,
    pub(crate) pool: Pool<Descriptor>,
    pub(crate) now: Time,
}

impl Driver {
    pub(crate) fn new(config: &PortConfig) -> Self {
        Self {
            port: EgressPort::new(RATE, config, 1, 1).expect("the test's port is sound"),
            pool: Pool::unlimited(),
            now: Time::ZERO,
        }
    }

    pub(crate) fn offer(&mut self, packet: Descriptor) {
        self.port.offer(self.now, packet, &mut self.pool);
    }

    /// The next departure, at the earliest time at which there is one.
    pub(crate) fn next(&mut self) -> Option<Departure<Descriptor>> {
        loop {
            match self.port.transmit(self.now, &mut self.pool) {
                Transmit::Packet(departure) => return Some(departure),
                Transmit::Wait(at) => self.now = at,
                Transmit::Idle => return None,
            }
        }
    }
}
