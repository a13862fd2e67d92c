//! Loss recovery: NewReno (RFC 6582), selective ACKs (RFC 6675, or as ns-2's `FullTcp/Sack` has
//! them), and the slow way after a timeout.
//!
//! RFC 6675 in its own names: HighACK is `una - 1`, HighData `max - 1`, RecoveryPoint `recover - 1`;
//! HighRxt is kept as the number after it, `high_rxt`. Since everything not SACKed below a lost byte
//! is lost too, IsLost (§4) is one number: `lost_below`.
//!
//! Differences: a full ACK ends NewReno's recovery with the lesser window of its two options
//! (RFC 6582 §3.2 step 3). RFC 6675's pipe is computed from the ranges with each ACK of a recovery,
//! not octet by octet.

use super::super::congestion::Loss;
use super::super::ranges::RangeSet;
use super::{Ack, AckSample, Control, EcnEcho, Phase, Recovery, Segment, Sender, Signal};
use crate::units::Time;

/// State from selective ACKs.
#[derive(Clone, Debug, Default)]
pub(super) struct SackState {
    /// SACKed bytes beyond `una`.
    pub(super) scoreboard: RangeSet,
    high_rxt: u64,
    lost_below: u64,
    pub(super) pipe: u64,
    /// True if the rescue retransmission of this recovery is used up.
    rescued: bool,
}

impl SackState {
    pub(super) fn forget(&mut self) {
        self.scoreboard.clear();
    }

    #[inline]
    pub(super) fn forget_below(&mut self, una: u64) {
        if !self.scoreboard.is_empty() {
            self.scoreboard.remove_below(una);
        }
    }

    /// §4 IsLost: lost is what has DupThresh ranges or more than (DupThresh - 1) segments above it.
    fn find_lost(&mut self, una: u64, dup_thresh: u32, segment: u32) {
        let enough_bytes = u64::from(dup_thresh - 1) * u64::from(segment);
        let (mut ranges, mut bytes) = (0, 0);
        self.lost_below = una;
        for range in self.scoreboard.descending() {
            ranges += 1;
            bytes += range.end - range.start;
            if ranges >= dup_thresh || bytes > enough_bytes {
                self.lost_below = range.start;
                return;
            }
        }
    }

    /// §4 SetPipe: what is not SACKed and not lost, and what was retransmitted and not SACKed.
    fn set_pipe(&mut self, una: u64, max: u64) {
        let missing = |start: u64, end: u64| {
            if start < end {
                end - start - self.scoreboard.count(start, end)
            } else {
                0
            }
        };
        self.pipe = missing(self.lost_below.max(una), max) + missing(una, self.high_rxt);
    }

    /// §4 NextSeg rule 4: the last segment that is neither SACKed nor beyond `max`.
    fn rescue(&self, una: u64, max: u64, segment: u64) -> (u64, u64) {
        let mut ranges = self.scoreboard.descending().peekable();
        let end = match ranges.peek() {
            Some(last) if last.end == max => ranges.next().map_or(max, |last| last.start),
            _ => max,
        };
        let start = ranges.next().map_or(una, |below| below.end);
        (start.max(end.saturating_sub(segment)), end)
    }
}

impl Sender {
    /// Takes in what an ACK reports beyond itself; answers whether any of it is news.
    #[cold]
    pub(super) fn note_sack(&mut self, ack: &Ack) -> bool {
        let mut news = false;
        for (start, end) in ack.sack.blocks(ack.ack) {
            if end <= self.max {
                news |= self.sack.scoreboard.insert(start.max(self.una), end);
            }
        }
        news
    }

    /// A duplicate ACK; with selective ACKs it counts if it brings news (RFC 6675 §2).
    #[cold]
    pub(super) fn on_duplicate_ack(&mut self, now: Time, news: bool) {
        if self.rules.recovery == Recovery::Sack && !news {
            return;
        }
        self.duplicate_acks += 1;
        match self.phase {
            Phase::Open => {
                if self.loss_is_certain() {
                    self.enter_recovery(now);
                } else {
                    self.allow_limited_transmit();
                }
            }
            Phase::NewReno { .. } => self.usable += u64::from(self.rules.segment),
            Phase::Sack => self.note_arrivals(1),
            Phase::Resend | Phase::Closed | Phase::SynSent { .. } => {}
        }
    }

    /// An ACK of new data outside of [`Phase::Open`].
    #[cold]
    pub(super) fn advance_recovery(&mut self, now: Time, sample: &AckSample, signal: Signal) {
        let complete = self.una >= self.recover;
        match self.phase {
            Phase::Resend => {
                self.restart_timer(now);
                self.grow(sample, signal);
                self.use_window();
            }
            Phase::NewReno { partial } if !complete => {
                self.on_partial_ack(now, sample.acked, partial);
                return;
            }
            Phase::NewReno { .. } => {
                self.restart_timer(now);
                let segment = self.window.segment();
                let flight = (self.max - self.una) as f64;
                let calm = flight.max(segment) + segment;
                self.window.set(self.window.cwnd().min(calm));
            }
            Phase::Sack => {
                self.restart_timer(now);
                // FullTcp takes a partial ACK for two packets: the retransmission and what was lost.
                self.note_arrivals(2);
                if complete && self.rules.recovery == Recovery::FullTcp {
                    self.grow(sample, signal);
                }
            }
            Phase::Open | Phase::Closed | Phase::SynSent { .. } => {}
        }
        if complete {
            self.phase = Phase::Open;
            self.retransmit_now = false;
            self.use_window();
        }
    }

    /// Next segment to resend after a timeout: from `next` on, skipping what has been SACKed since.
    pub(super) fn poll_resend(&mut self, now: Time) -> Option<Segment> {
        let segment = u64::from(self.rules.segment);
        let (seq, sacked_from) = self.sack.scoreboard.gap_from(self.next);
        let end = if seq < self.max {
            self.max
        } else {
            self.written
        };
        let len = segment.min(sacked_from.unwrap_or(end).min(end) - seq);
        self.next = seq;
        let beyond = seq + len - self.una > self.rules.receive_window;
        if len == 0 || beyond || self.resent() + len > self.usable {
            return None;
        }
        if self.timeouts_in_row < self.controller.probe_after() {
            return Some(self.emit_next(now, len));
        }
        // One byte, once, until it is answered.
        (self.next == self.una).then(|| self.emit_next(now, 1))
    }

    /// Bytes sent since the timeout that have no ACK of any kind.
    pub(super) fn resent(&self) -> u64 {
        self.next - self.una - self.sack.scoreboard.count(self.una, self.next)
    }

    pub(super) fn poll_new_reno(&mut self, now: Time) -> Option<Segment> {
        if std::mem::take(&mut self.retransmit_now) {
            let len = u64::from(self.rules.segment).min(self.max - self.una);
            return Some(self.emit(now, self.una, len));
        }
        self.new_data()?;
        self.poll_new(now)
    }

    pub(super) fn poll_sack(&mut self, now: Time) -> Option<Segment> {
        let segment = u64::from(self.rules.segment);
        let full_tcp = self.rules.recovery == Recovery::FullTcp;
        if std::mem::take(&mut self.retransmit_now) {
            let retransmission = self.retransmit(now, self.una);
            self.note_arrivals(0);
            return Some(retransmission);
        }
        // §5 step C: as long as a whole segment fits.
        if (self.window.cwnd() as u64) < self.sack.pipe + segment {
            return None;
        }
        let (hole, next_sacked) = self
            .sack
            .scoreboard
            .gap_from(self.sack.high_rxt.max(self.una));
        let lost_below = if full_tcp && next_sacked.is_some() {
            self.max
        } else {
            self.sack.lost_below
        };
        let sent = if hole < lost_below {
            self.retransmit(now, hole)
        } else if let Some(len) = self.new_data() {
            self.emit_next(now, len)
        } else if next_sacked.is_some() {
            self.retransmit(now, hole)
        } else if !self.sack.rescued && !full_tcp {
            self.sack.rescued = true;
            let (start, end) = self.sack.rescue(self.una, self.max, segment);
            self.emit(now, start, end - start)
        } else {
            return None;
        };
        self.sack.pipe += u64::from(sent.len);
        Some(sent)
    }

    /// Sends the hole that begins at `hole`, up to a segment of it.
    fn retransmit(&mut self, now: Time, hole: u64) -> Segment {
        let (_, next_sacked) = self.sack.scoreboard.gap_from(hole);
        let end = next_sacked.unwrap_or(self.max);
        let len = u64::from(self.rules.segment).min(end - hole);
        self.sack.high_rxt = hole + len;
        self.emit(now, hole, len)
    }

    /// The length of the next new segment that the receiver has room for.
    fn new_data(&self) -> Option<u64> {
        let len = u64::from(self.rules.segment).min(self.written - self.next);
        let fits = self.next + len - self.una <= self.rules.receive_window;
        (len > 0 && fits).then_some(len)
    }

    /// Returns whether duplicate ACKs say that the segment at `una` is lost, in a window that has not been
    /// repaired yet: RFC 6582 §3.2 step 2, RFC 6675 §5 and §5.1.
    fn loss_is_certain(&mut self) -> bool {
        let thresh = self.rules.duplicate_acks;
        match self.rules.recovery {
            Recovery::NewReno => {
                self.duplicate_acks >= thresh && (self.una > self.recover || self.recover == 0)
            }
            Recovery::Sack => {
                self.sack.find_lost(self.una, thresh, self.rules.segment);
                self.duplicate_acks >= thresh || self.sack.lost_below > self.una
            }
            Recovery::FullTcp => {
                let repaired = self.una > self.recover || self.recover == 0;
                self.duplicate_acks == thresh && (repaired || self.cut_by_mark)
            }
        }
    }

    fn enter_recovery(&mut self, now: Time) {
        let segment = u64::from(self.rules.segment);
        self.stats.fast_recoveries += 1;
        let loss = Loss {
            flight: match self.rules.recovery {
                Recovery::FullTcp => self.window.cwnd() as u64,
                Recovery::Sack | Recovery::NewReno => self.flight_size(),
            },
            answered: self.cut_by_mark && self.una <= self.reduced_until,
            next: self.next,
        };
        self.controller.on_loss(&mut self.window, &loss);
        self.recover = self.max;
        self.reduced_until = self.max;
        self.cut_by_mark = false;
        self.cwr = self.rules.ecn != EcnEcho::Off;
        self.retransmit_now = true;
        self.deadline = Some(now + self.rto.current());
        self.use_window();
        match self.rules.recovery {
            Recovery::NewReno => {
                self.usable += u64::from(self.rules.duplicate_acks) * segment;
                self.phase = Phase::NewReno { partial: false };
            }
            Recovery::Sack | Recovery::FullTcp => {
                self.sack.high_rxt = self.una;
                self.sack.rescued = false;
                self.phase = Phase::Sack;
                self.set_pipe();
            }
        }
    }

    /// RFC 6582 §3.2 step 3: deflate, send the next hole; only the first restarts the timer.
    fn on_partial_ack(&mut self, now: Time, acked: u64, partial: bool) {
        let segment = u64::from(self.rules.segment);
        self.usable = self.usable.saturating_sub(acked);
        if acked >= segment {
            self.usable += segment;
        }
        self.retransmit_now = true;
        if !partial {
            self.restart_timer(now);
        }
        self.phase = Phase::NewReno { partial: true };
    }

    /// An ACK came in: RFC 6675 reckons anew, `FullTcp` takes `packets` to have left the network.
    fn note_arrivals(&mut self, packets: u64) {
        if self.rules.recovery == Recovery::FullTcp {
            let left = packets * u64::from(self.rules.segment);
            self.sack.pipe = self.sack.pipe.saturating_sub(left);
        } else {
            self.set_pipe();
        }
    }

    fn set_pipe(&mut self) {
        let rules = self.rules;
        if rules.recovery == Recovery::FullTcp {
            let sacked = self.sack.scoreboard.count(self.una, self.max);
            self.sack.lost_below = self.una;
            self.sack.pipe = self.max - self.una - sacked;
            return;
        }
        self.sack
            .find_lost(self.una, rules.duplicate_acks, rules.segment);
        self.sack.set_pipe(self.una, self.max);
    }

    /// RFC 3042: a new segment for each of the first two duplicate ACKs.
    fn allow_limited_transmit(&mut self) {
        if self.rules.limited_transmit {
            self.use_window();
            let more = u64::from(self.duplicate_acks.min(2)) * u64::from(self.rules.segment);
            self.usable = (self.usable + more).min(self.rules.receive_window);
        }
    }
}
