//! The sending end: go-back-N at a rate.

use super::super::SendingEnd;
use super::{Completion, Law, RateControl as _};
use crate::tcp::rto::Rto;
use crate::tcp::{Ack, AckKind, Segment, SenderStats, TcpConfig};
use crate::units::{Bytes, Rate, Time};

/// Sends one direction of a connection's data at a rate.
#[derive(Debug)]
pub struct Sender {
    /// The oldest byte without an ACK.
    una: u64,
    /// The next byte to send, less than `max` after going back.
    next: u64,
    /// The number after that of the last byte sent.
    max: u64,
    written: u64,
    segment: u32,
    header: u32,
    line_rate: Rate,
    law: Law,
    slot: NicSlot,
    /// Time of the last packet, and its bytes with headers: the next follows at the rate.
    last_sent: Time,
    last_size: Bytes,
    timeout: Option<Time>,
    rto: Rto,
    /// An ACK beyond this gives the next round-trip time.
    sample_after: u64,
    stats: SenderStats,
}

/// The connection's place in its NIC, for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NicSlot {
    Free,
    /// A packet waits, nobody knows how long.
    Taken,
    /// The last bit of the packet leaves then.
    FreeAt(Time),
}

impl Sender {
    /// A sender for a new connection whose first byte has the number `first`, if its controller
    /// paces packets.
    pub(crate) fn starting_at(config: &TcpConfig, line_rate: Rate, first: u64) -> Option<Self> {
        debug_assert_eq!(config.validate(), Ok(()));
        Some(Self {
            una: first,
            next: first,
            max: first,
            written: first,
            segment: config.segment,
            header: config.header,
            line_rate,
            law: Law::new(&config.controller, line_rate)?,
            slot: NicSlot::Free,
            last_sent: Time::ZERO,
            last_size: Bytes::ZERO,
            timeout: None,
            rto: Rto::new(&config.rto),
            sample_after: first,
            stats: SenderStats::default(),
        })
    }

    /// The rate at which it may send now, headers included.
    pub fn rate(&self) -> Rate {
        self.law.rate()
    }

    /// The time from which on the rate allows the next packet. It follows the rate: one that falls
    /// after the last packet defers the next.
    fn paced_until(&self) -> Time {
        let gap = self.law.rate().transmission_time(self.last_size);
        self.last_sent.saturating_add(gap)
    }

    /// The time at which the next packet may go, as far as it is known.
    fn next_packet(&self) -> Option<Time> {
        match self.slot {
            _ if self.next == self.written => None,
            NicSlot::Taken => None,
            NicSlot::Free => Some(self.paced_until()),
            NicSlot::FreeAt(at) => Some(self.paced_until().max(at)),
        }
    }

    fn on_new_ack(&mut self, now: Time, ack: &Ack) {
        let acked = ack.ack - self.una;
        let rtt = now.saturating_sub(ack.echo);
        self.una = ack.ack;
        self.next = self.next.max(self.una);
        if self.una > self.sample_after {
            self.rto.sample(rtt);
            self.sample_after = self.next;
        }
        self.timeout = (self.una < self.max).then(|| now + self.rto.current());
        let packet = acked.min(u64::from(self.segment)) + u64::from(self.header);
        let on_wire = self.line_rate.transmission_time(Bytes::new(packet));
        let rate = self.law.rate();
        self.law.on_ack(&Completion {
            now,
            acked,
            rtt: rtt.saturating_sub(on_wire),
        });
        self.stats.reductions += u64::from(self.law.rate() < rate);
    }

    /// Sends everything after the last ACK again.
    fn go_back(&mut self) {
        self.next = self.una;
        self.sample_after = self.una;
    }
}

impl SendingEnd for Sender {
    fn write(&mut self, now: Time, bytes: u64) {
        self.law.advance(now);
        self.written = self.written.saturating_add(bytes);
    }

    fn poll_packet(&mut self, now: Time) -> Option<Segment> {
        self.law.advance(now);
        if self.next_packet().is_none_or(|at| now < at) {
            return None;
        }
        let (seq, retransmission) = (self.next, self.next < self.max);
        let len = u64::from(self.segment).min(self.written - seq);
        self.next += len;
        self.max = self.max.max(self.next);
        let size = len as u32 + self.header;
        self.slot = NicSlot::Taken;
        self.last_sent = now;
        self.last_size = Bytes::new(u64::from(size));
        self.law.on_sent(size);
        self.stats.segments_sent += 1;
        self.stats.bytes_sent += len;
        self.stats.retransmits += u64::from(retransmission);
        self.timeout = self.timeout.or(Some(now + self.rto.current()));
        Some(Segment {
            seq,
            sent_at: now,
            len: len as u32,
            syn: false,
            retransmission,
            cwr: false,
            ect: self.law.is_ect(),
        })
    }

    fn handle_packet(&mut self, now: Time, ack: &Ack) {
        self.law.advance(now);
        if ack.kind == AckKind::Cnp {
            let rate = self.law.rate();
            self.law.on_cnp(now);
            self.stats.marked_acks += 1;
            self.stats.reductions += u64::from(self.law.rate() < rate);
            return;
        }
        if ack.ack > self.max || ack.ack < self.una {
            return;
        }
        if ack.ack > self.una {
            self.on_new_ack(now, ack);
        }
        if ack.kind == AckKind::Nak && self.una < self.max {
            self.stats.fast_recoveries += 1;
            self.go_back();
        }
    }

    fn departs(&mut self, now: Time, at: Time) {
        self.law.advance(now);
        if self.slot == NicSlot::Taken {
            self.slot = NicSlot::FreeAt(at);
        }
    }

    fn deadline(&self) -> Option<Time> {
        let packet = self.next_packet();
        // A faster rate lets a waiting packet go earlier; nothing else hangs on the rate's timers.
        let change = packet.and_then(|_| self.law.next_change());
        [packet, change, self.timeout].into_iter().flatten().min()
    }

    fn on_deadline(&mut self, now: Time) {
        self.law.advance(now);
        if self.timeout.is_some_and(|timeout| timeout <= now) {
            self.stats.timeouts += 1;
            self.rto.back_off();
            self.timeout = Some(now + self.rto.current());
            self.go_back();
        }
    }

    fn acked(&self) -> u64 {
        self.una
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn cwnd_bytes(&self) -> f64 {
        let rtt = self.rto.srtt().unwrap_or(Time::ZERO);
        self.law.rate().bps() as f64 / 8.0 * rtt.as_secs_f64()
    }

    fn alpha(&self) -> Option<f64> {
        self.law.alpha()
    }

    fn srtt(&self) -> Option<Time> {
        self.rto.srtt()
    }

    fn stats(&self) -> &SenderStats {
        &self.stats
    }
}
