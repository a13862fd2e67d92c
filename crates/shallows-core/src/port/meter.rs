//! The length of a queue, as a marker is to see it.

use super::marker::{Measure, MeasureUnit, Presence, Seen};
use super::queues::Queues;
use super::state::Arrival;
use crate::units::{Bytes, Time};

/// Applies a [`Measure`].
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// All but the default one, for which the lengths are at hand.
    special: Option<Box<Special>>,
}

#[derive(Clone, Debug)]
struct Special {
    measure: Measure,
    /// Nominal packet size.
    packet: u64,
    /// Queue and size of the packet in service, and when it is done.
    in_service: (usize, u32),
    busy_until: Time,
}

impl Meter {
    pub(crate) fn new(measure: Measure, packet: Bytes) -> Self {
        let special = Special {
            measure,
            packet: packet.get(),
            in_service: (0, 0),
            busy_until: Time::ZERO,
        };
        Self {
            special: (measure != Measure::default()).then(|| Box::new(special)),
        }
    }

    /// Returns whether lengths are in bytes, with the packet itself and without the one in service.
    pub(crate) fn is_plain(&self) -> bool {
        self.special.is_none()
    }

    /// A packet of `size` bytes left `queue` and is in service until `finish`.
    pub(crate) fn sent(&mut self, queue: usize, size: u32, finish: Time) {
        if let Some(special) = &mut self.special {
            special.in_service = (queue, size);
            special.busy_until = finish;
        }
    }

    /// The marker's view of a packet with this DSCP that is not yet, or no longer, in its queue,
    /// while the pool holds `pool` bytes.
    #[inline]
    pub(crate) fn seen(&self, packet: Arrival, stage: u8, queues: &Queues, pool: u64) -> Seen {
        let Arrival { now, queue, size } = packet;
        let size = u64::from(size);
        let (queue_length, port_length) = match &self.special {
            None => (queues.queue_bytes(queue) + size, queues.bytes() + size),
            Some(special) => special.lengths(now, queue, size, queues),
        };
        Seen {
            now,
            queue,
            queue_length,
            port_length,
            pool_length: pool + size,
            queue_packets: queues.queue_packets(queue) + 1,
            stage,
        }
    }
}

impl Special {
    /// Lengths of the queue and of the port.
    #[cold]
    fn lengths(&self, now: Time, queue: usize, size: u64, queues: &Queues) -> (u64, u64) {
        let measure = |bytes: u64, packets: u32| match self.measure.unit {
            MeasureUnit::Bytes => bytes,
            MeasureUnit::Packets => u64::from(packets) * self.packet,
        };
        let mut queue_length = measure(queues.queue_bytes(queue), queues.queue_packets(queue));
        let mut port_length = measure(queues.bytes(), queues.packets());
        if self.measure.subject == Presence::Included {
            queue_length += measure(size, 1);
            port_length += measure(size, 1);
        }
        if self.measure.in_service == Presence::Included && now < self.busy_until {
            let (from, size) = self.in_service;
            let occupied = measure(u64::from(size), 1);
            port_length += occupied;
            queue_length += if from == queue { occupied } else { 0 };
        }
        (queue_length, port_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Descriptor;
    use crate::port::Pool;
    use crate::port::queues::Stored;

    fn stored(size: u32) -> Stored<Descriptor> {
        Stored {
            packet: Descriptor::default(),
            arrived: Time::ZERO,
            size,
            noted: false,
        }
    }

    /// Lengths of queue and port seen by a 40 B packet that joins queue 0 with 1500 B in it, while
    /// queue 1 holds 1000 B and a packet of 700 B of queue 0 is on the wire until 1 us.
    fn lengths(measure: Measure, now: Time) -> (u64, u64) {
        let (mut queues, mut pool) = (Queues::new(2), Pool::unlimited());
        queues.push(0, stored(1500), &mut pool);
        queues.push(1, stored(1000), &mut pool);
        let mut meter = Meter::new(measure, Bytes::new(1500));
        meter.sent(0, 700, Time::from_us(1));
        let packet = Arrival {
            now,
            queue: 0,
            size: 40,
        };
        let seen = meter.seen(packet, 0, &queues, pool.used().get());
        (seen.queue_length, seen.port_length)
    }

    #[test]
    fn every_measure_by_hand() {
        let default = Measure::default();
        let excluded = Measure {
            subject: Presence::Excluded,
            ..default
        };
        let in_service = Measure {
            in_service: Presence::Included,
            ..default
        };
        let packets = Measure {
            unit: MeasureUnit::Packets,
            ..default
        };
        let all = Measure {
            unit: MeasureUnit::Packets,
            ..in_service
        };
        assert_eq!(lengths(default, Time::ZERO), (1540, 2540));
        assert_eq!(lengths(excluded, Time::ZERO), (1500, 2500));
        assert_eq!(lengths(in_service, Time::ZERO), (2240, 3240));
        assert_eq!(
            lengths(in_service, Time::from_us(1)),
            (1540, 2540),
            "it is gone"
        );
        assert_eq!(lengths(packets, Time::ZERO), (3000, 4500));
        assert_eq!(lengths(all, Time::ZERO), (4500, 6000));
    }
}
