//! The coordinator as a gate before the NIC.

use super::{Coordinator, Standing};
use crate::host::gate::{Gate, Refusal, Release, Verdict};
use crate::packet::Packet;
use crate::units::{Bytes, Rate, Time};

impl<P: Packet> Gate<P> for Coordinator<P> {
    fn offer(&mut self, now: Time, packet: P, to: Option<u32>) -> Verdict {
        self.note_time(now);
        let Some(to) = to else {
            self.counters.unknown += 1;
            return Verdict::Pass;
        };
        let queue = self.queues.of(now, to);
        let coordinated = self.standing == Standing::Coordinated;
        let is_free = !coordinated || self.queues.is_free(queue, now);
        // On demand, destinations that need no permission share the wire in turn.
        let is_first = !coordinated || self.queues.holds_all() || self.free <= now;
        let is_idle = self.queues.is_empty(queue) && self.queues.is_ready(queue, now);
        let is_above = self.config.gate.pass_dscp == Some(packet.dscp());
        let passes = is_above || is_free && is_first && is_idle;
        if passes {
            self.occupy_wire(now, &packet, self.config.rate, queue);
            return Verdict::Pass;
        }
        let on_wire = self.config.framing.wire_size(packet.size());
        if self.queues.passes_as_small(now, queue, &packet, on_wire) {
            self.counters.small += 1;
            self.occupy_wire(now, &packet, self.config.rate, queue);
            return Verdict::Pass;
        }
        self.counters.over_budget += u64::from(self.queues.is_small(&packet));
        if !self.queues.push(now, queue, packet) {
            self.counters.full += 1;
            return Verdict::Drop(Refusal::Full);
        }
        self.note_queue(now, queue);
        Verdict::Held
    }

    fn release(&mut self, now: Time) -> Release<P> {
        self.note_time(now);
        if self.queues.held() == 0 {
            return Release::Idle;
        }
        if now < self.free {
            return Release::At(self.free);
        }
        let uncoordinated = self.standing != Standing::Coordinated;
        if let Some(queue) = self.queues.next_free(now, uncoordinated) {
            return self.send(now, queue, self.config.rate);
        }
        if let Some(slot) = self.slot
            && self.queues.is_ready(slot.queue, now)
            && let Some(&head) = self.queues.head(slot.queue)
            && now + self.wire_time(&head, slot.rate) <= slot.until
        {
            return self.send(now, slot.queue, slot.rate);
        }
        let next_limit = self
            .queues
            .limited(now)
            .min_by_key(|&(next, queue, _)| (next, queue));
        if let Some((next, queue, rate)) = next_limit
            && next <= now
            && let Some(&head) = self.queues.head(queue)
        {
            self.queues
                .limit_sent(queue, now + self.wire_time(&head, rate));
            return self.send(now, queue, self.config.rate);
        }
        let times = [
            next_limit.map(|(next, ..)| next),
            self.queues.next_ready(now),
        ];
        let next = times.into_iter().flatten().filter(|&time| time > now).min();
        next.map_or(Release::Idle, Release::At)
    }

    fn received(&mut self, now: Time, size: u32, from: u32) {
        let queue = self.queues.of(now, from);
        let on_wire = self.config.framing.wire_size(size);
        self.queues.received(queue, on_wire);
    }

    fn longest_wait(&self, now: Time) -> Option<Time> {
        Some(self.queues.longest_wait(now))
    }
}

impl<P: Packet> Coordinator<P> {
    fn send(&mut self, now: Time, queue: u32, rate: Rate) -> Release<P> {
        let to = self.queues.destination(queue);
        let Some(packet) = self.queues.pop(now, queue) else {
            return Release::Idle;
        };
        self.occupy_wire(now, &packet, rate, queue);
        if self.queues.is_empty(queue) {
            self.note_queue(now, queue);
        }
        Release::Packet {
            packet,
            to: Some(to),
        }
    }

    /// The next held packet leaves after this one, which is sent to the destination of `queue`.
    fn occupy_wire(&mut self, now: Time, packet: &P, rate: Rate, queue: u32) {
        self.free = self.free.max(now) + self.wire_time(packet, rate);
        let Some(meter) = &mut self.meter else {
            return;
        };
        let size = self.config.framing.wire_size(packet.size());
        let destination = self.queues.destination(queue);
        if meter.count(now, destination, u64::from(size)) {
            self.reporting.is_due = true;
        }
    }

    fn wire_time(&self, packet: &P, rate: Rate) -> Time {
        let size = self.config.framing.wire_size(packet.size());
        rate.transmission_time(Bytes::new(u64::from(size)))
    }
}
