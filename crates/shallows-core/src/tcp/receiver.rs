//! The receiving end: reassembly, ACKs, and the echo of marks.
//!
//! - RFC 5681 §4.2: a segment out of order, or one that fills a gap, is answered at once; others may
//!   wait for the next or for a timer, if ACKs are delayed.
//! - RFC 2018 §4: an ACK reports up to three ranges beyond the gap, the newest first.
//! - RFC 3168 §6.1.3 or RFC 8257 §3.2: the echo. When the marking changes while an ACK is delayed,
//!   one ACK with the old state goes out before the one with the new (the two ACKs of §3.2).
//! - RFC 7323 §4.3: a delayed ACK echoes the timestamp of the first segment that it answers.
//!
//! Differences: an ACK of a segment out of order echoes the timestamp of that segment; the sender
//! takes round-trip times from ACKs of new data only. There are no duplicate SACKs (RFC 2883). Data
//! is read as it arrives, so the window offered never shrinks.

use super::ranges::RangeSet;
use super::{
    Ack, AckCount, AckKind, Acks, DelayedAck, EcnEcho, Recovery, SackBlocks, Segment, TcpConfig,
};
use crate::packet::Ecn;
use crate::units::Time;

/// Receives one direction of a connection's data.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The next byte expected (RCV.NXT).
    next: u64,
    /// The ACK that waits.
    delayed: Option<Delayed>,
    out_of_order: RangeSet,
    /// First bytes of the segments out of order that came last, newest first.
    newest: [u64; SackBlocks::MOST],
    delay: Option<DelayedAck>,
    /// Bytes of data in a full segment.
    full: u32,
    recovery: Recovery,
    echo: EcnEcho,
    /// ECN-Echo of the next ACK.
    ece: bool,
    ect_acks: bool,
    ce_segments: u64,
    duplicate_bytes: u64,
}

/// Segments without an answer.
#[derive(Clone, Copy, Debug)]
struct Delayed {
    segments: u32,
    bytes: u64,
    /// Timestamp of the first.
    echo: Time,
    /// One-way delay of the last.
    one_way_delay: Time,
    deadline: Time,
}

impl Receiver {
    /// A receiver that has nothing yet.
    pub fn new(config: &TcpConfig) -> Self {
        Self {
            next: 0,
            delayed: None,
            out_of_order: RangeSet::default(),
            newest: [0; SackBlocks::MOST],
            delay: config.delayed_ack,
            full: config.segment,
            recovery: config.recovery,
            echo: config.echo(),
            ece: false,
            ect_acks: config.ect_acks && config.echo() != EcnEcho::Off,
            ce_segments: 0,
            duplicate_bytes: 0,
        }
    }

    /// Takes a segment that arrived with this ECN field; gives the ACKs to send now.
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acks {
        let before = self.hear(segment, ecn);
        let one_way_delay = now.saturating_sub(segment.sent_at);
        // Nearly all segments are the next one, with nothing waiting on either side of it.
        if segment.seq == self.next && !segment.syn && self.out_of_order.is_empty() {
            return self.in_order(now, segment, one_way_delay, before);
        }
        self.irregular(segment, one_way_delay, before)
    }

    /// Time at which a delayed ACK is due.
    pub fn deadline(&self) -> Option<Time> {
        self.delayed.map(|delayed| delayed.deadline)
    }

    /// Sends the delayed ACK if it is due.
    pub fn on_deadline(&mut self, now: Time) -> Option<Ack> {
        let due = self.delayed.take_if(|delayed| delayed.deadline <= now)?;
        Some(self.ack(due.echo, due.one_way_delay))
    }

    /// Bytes that arrived in order, without a gap.
    #[inline]
    pub fn received(&self) -> u64 {
        self.next
    }

    /// Segments that arrived with the congestion mark.
    pub fn ce_segments(&self) -> u64 {
        self.ce_segments
    }

    /// Bytes that had arrived before in whole segments.
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }

    /// Bytes that wait beyond a gap.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order.count(self.next, u64::MAX)
    }

    /// Updates the echo; gives the echo of before if it must be told of (RFC 8257 §3.2).
    #[inline]
    fn hear(&mut self, segment: &Segment, ecn: Ecn) -> Option<bool> {
        let ce = ecn == Ecn::Ce;
        self.ce_segments += u64::from(ce);
        match self.echo {
            EcnEcho::Off => None,
            EcnEcho::Classic => {
                // A mark on the very segment that says "reduced" starts anew.
                self.ece = ce || (self.ece && !segment.cwr);
                None
            }
            EcnEcho::Precise => {
                let before = std::mem::replace(&mut self.ece, ce);
                (before != ce).then_some(before)
            }
        }
    }

    #[inline]
    fn in_order(
        &mut self,
        now: Time,
        segment: &Segment,
        one_way_delay: Time,
        before: Option<bool>,
    ) -> Acks {
        let Some(delay) = self.delay else {
            self.next = segment.end();
            return Acks::One(self.ack(segment.sent_at, one_way_delay));
        };
        // The ACK of what came before the change, with the echo from before.
        let old = before.and_then(|ece| {
            let delayed = self.delayed.take()?;
            Some(Ack {
                ece,
                ..self.ack(delayed.echo, delayed.one_way_delay)
            })
        });
        self.next = segment.end();
        let waiting = self.delayed.take();
        let delayed = Delayed {
            segments: waiting.map_or(0, |w| w.segments) + 1,
            bytes: waiting.map_or(0, |w| w.bytes) + u64::from(segment.len),
            echo: waiting.map_or(segment.sent_at, |w| w.echo),
            one_way_delay,
            deadline: waiting.map_or(now + delay.timeout, |w| w.deadline),
        };
        let waits = match delay.count {
            AckCount::Segments => delayed.segments < delay.every,
            AckCount::FullSegments => delayed.bytes < u64::from(delay.every) * u64::from(self.full),
        };
        if waits && before.is_none() {
            self.delayed = Some(delayed);
            return Acks::None;
        }
        let new = self.ack(delayed.echo, one_way_delay);
        old.map_or(Acks::One(new), |old| Acks::Two(old, new))
    }

    /// A SYN, old data, or data next to a gap: answered at once, and whatever waited with it.
    #[cold]
    fn irregular(&mut self, segment: &Segment, one_way_delay: Time, before: Option<bool>) -> Acks {
        let old = self.delayed.take().filter(|_| before.is_some());
        let old = old.map(|delayed| Ack {
            ece: !self.ece,
            ..self.ack(delayed.echo, delayed.one_way_delay)
        });
        if !segment.syn {
            self.store(segment.seq.max(self.next), segment.end(), segment.len);
        }
        let new = Ack {
            syn: segment.syn,
            ..self.ack(segment.sent_at, one_way_delay)
        };
        old.map_or(Acks::One(new), |old| Acks::Two(old, new))
    }

    fn store(&mut self, start: u64, end: u64, len: u32) {
        if !self.out_of_order.insert(start, end) {
            self.duplicate_bytes += u64::from(len);
        }
        if let Some(first) = self.out_of_order.first()
            && first.start <= self.next
        {
            self.next = first.end;
            self.out_of_order.remove_below(self.next);
        } else if start < end {
            if self.out_of_order.holding(start) != self.out_of_order.holding(self.newest[0]) {
                self.newest.rotate_right(1);
            }
            self.newest[0] = start;
        }
    }

    #[inline]
    fn ack(&self, echo: Time, one_way_delay: Time) -> Ack {
        Ack {
            kind: AckKind::Ack,
            ack: self.next,
            echo,
            one_way_delay,
            sack: self.sack_blocks(),
            ece: self.ece,
            syn: false,
            ect: self.ect_acks,
        }
    }

    #[inline]
    fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if !self.out_of_order.is_empty() && self.recovery != Recovery::NewReno {
            self.report(&mut blocks);
        }
        blocks
    }

    #[cold]
    fn report(&self, blocks: &mut SackBlocks) {
        for range in self
            .newest
            .iter()
            .filter_map(|&seq| self.out_of_order.holding(seq))
        {
            blocks.push(self.next, (range.start, range.end));
        }
        // Those that nothing new has joined lately fill up the rest.
        for range in self.out_of_order.descending().take(SackBlocks::MOST) {
            blocks.push(self.next, (range.start, range.end));
        }
    }
}

#[cfg(test)]
mod tests;
