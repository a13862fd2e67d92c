//! The sending end: what may be sent, and what ACKs and timeouts mean.
//!
//! - RFC 5681: windows, duplicate ACKs, the restart after idle time (§4.1). RFC 3042: limited
//!   transmit. RFC 6298: the timer; it is started anew with each ACK of new data (§5.3) and when
//!   fast retransmit begins.
//! - RFC 6582 or RFC 6675: loss recovery, in `recovery.rs`; timeouts are in `timeout.rs`, and the
//!   handshake is in `handshake.rs`.
//! - RFC 3168 §6.1.2: one reduction for the marks of a window of data. A window of data ends with
//!   the first ACK of something that was sent after the reduction.
//!
//! Differences:
//! - There is no Nagle algorithm, and no FIN: a connection lasts as long as its driver keeps it.
//! - A mark counts in an ACK of new data only, as in RFC 8257 §3.3 step 1.

mod handshake;
mod recovery;
mod timeout;

use super::congestion::{AckSample, Control, Controller, Signal, Window};
use super::rto::Rto;
use super::{Ack, AfterIdle, EcnEcho, MarkedGrowth, Recovery, Segment, TcpConfig};
use crate::units::Time;
use recovery::SackState;

/// Sends one direction of a connection's data. The [module](super) has the driving contract.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, which may be true in several phases"
)]
pub struct Sender {
    /// The oldest byte without an ACK (SND.UNA).
    una: u64,
    /// The next byte to send (SND.NXT), less than `max` only after a timeout.
    next: u64,
    /// The number after that of the last byte sent.
    max: u64,
    written: u64,
    /// Greatest distance of `next` from `una`: the lesser of the two windows, or more in limited
    /// transmit and fast recovery.
    usable: u64,
    phase: Phase,
    /// Fast retransmit or a partial ACK demands the segment at `una` whatever the window says.
    retransmit_now: bool,
    /// Say "congestion window reduced" with the next new data.
    cwr: bool,
    last_ack_marked: bool,
    cut_by_mark: bool,
    rules: Rules,
    deadline: Option<Time>,
    duplicate_acks: u32,
    timeouts_in_row: u32,
    last_sent: Time,
    rto: Rto,
    /// An ACK beyond this gives the next round-trip time.
    sample_after: u64,
    /// An ACK beyond this may reduce the window for a mark.
    reduced_until: u64,
    /// End of fast recovery, or of the recovery after a timeout.
    recover: u64,
    window: Window,
    controller: Controller,
    sack: SackState,
    stats: SenderStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing sent; the first data asks for a SYN.
    Closed,
    /// The SYN has no answer yet; `lost` if it was sent more than once.
    SynSent { lost: bool },
    /// Nothing known to be lost.
    Open,
    /// After a timeout, up to `recover`.
    Resend,
    /// Fast recovery by RFC 6582, with or without a partial ACK so far.
    NewReno { partial: bool },
    /// Fast recovery by RFC 6675.
    Sack,
}

/// Configured, constant parameters.
#[derive(Clone, Copy, Debug)]
struct Rules {
    segment: u32,
    duplicate_acks: u32,
    receive_window: u64,
    ecn: EcnEcho,
    marked_growth: MarkedGrowth,
    recovery: Recovery,
    limited_transmit: bool,
    after_idle: AfterIdle,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments with data, retransmissions included.
    pub segments_sent: u64,
    /// Bytes of data, retransmissions included.
    pub bytes_sent: u64,
    /// Segments that were sent before.
    pub retransmits: u64,
    /// Expiries of the retransmission timer, those of a SYN included.
    pub timeouts: u64,
    /// Times that fast recovery began; of RoCE, that a NAK sent the sender back.
    pub fast_recoveries: u64,
    /// ACKs of new data that were congestion signals: marked, or late; of RoCE, CNPs.
    pub marked_acks: u64,
    /// Reductions of the window for such signals; of RoCE, of the rate.
    pub reductions: u64,
}

impl Sender {
    /// A sender for a new connection. The configuration must be
    /// [valid](TcpConfig::validate).
    pub fn new(config: &TcpConfig) -> Self {
        Self::starting_at(config, 0)
    }

    /// A sender for a new connection whose first byte has the number `first`, as that of a receiver
    /// that was used before.
    pub fn starting_at(config: &TcpConfig, first: u64) -> Self {
        debug_assert_eq!(config.validate(), Ok(()));
        let receive_window = config.receive_bytes();
        let segments_per_ack = config.delayed_ack.map_or(1, |delayed| delayed.every);
        let mut window = Window::new(
            config.segment,
            config.initial_window,
            receive_window,
            segments_per_ack,
        )
        .with_least(config.least_window)
        .with_growth(config.growth);
        let controller = Controller::new(&config.controller, &mut window);
        Self {
            una: first,
            next: first,
            max: first,
            written: first,
            usable: window.cwnd() as u64,
            phase: if config.handshake {
                Phase::Closed
            } else {
                Phase::Open
            },
            retransmit_now: false,
            cwr: false,
            last_ack_marked: false,
            cut_by_mark: false,
            rules: Rules {
                segment: config.segment,
                duplicate_acks: config.duplicate_acks,
                receive_window,
                ecn: config.echo(),
                marked_growth: config.marked_growth,
                recovery: config.recovery,
                limited_transmit: config.limited_transmit,
                after_idle: config.after_idle,
            },
            deadline: None,
            duplicate_acks: 0,
            timeouts_in_row: 0,
            last_sent: Time::ZERO,
            rto: Rto::new(&config.rto),
            sample_after: first,
            reduced_until: first,
            recover: first,
            window,
            controller,
            sack: SackState::default(),
            stats: SenderStats::default(),
        }
    }

    /// The application hands over `bytes` to send after all before; `u64::MAX` never end.
    pub fn write(&mut self, now: Time, bytes: u64) {
        if self.una == self.max && self.stats.segments_sent > 0 {
            self.end_idle(now);
        }
        self.written = self.written.saturating_add(bytes);
    }

    /// The next segment that may be sent now.
    #[inline]
    pub fn poll_segment(&mut self, now: Time) -> Option<Segment> {
        match self.phase {
            Phase::Open => self.poll_new(now),
            _ => self.poll_rare(now),
        }
    }

    /// Takes an ACK.
    // Inlined, so that the driver's ACK stays in registers.
    #[inline(always)]
    pub fn on_ack(&mut self, now: Time, ack: &Ack) {
        if ack.syn || matches!(self.phase, Phase::Closed | Phase::SynSent { .. }) {
            self.on_syn_ack(now, ack);
            return;
        }
        if ack.ack > self.max {
            return;
        }
        let news = !ack.sack.is_empty() && self.note_sack(ack);
        if ack.ack > self.una {
            self.on_new_ack(now, ack);
        } else if ack.ack == self.una && self.max > self.una {
            self.on_duplicate_ack(now, news);
        }
    }

    /// Expiry of the retransmission timer.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Bytes acknowledged.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.una
    }

    /// Bytes that the application has handed over.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns whether all that was written is acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.una == self.written
    }

    /// Bytes taken to be in the network: `pipe` of RFC 6675 while losses are repaired by selective
    /// ACKs, else what was sent and not acknowledged, after a timeout only what was sent since.
    pub fn in_flight(&self) -> u64 {
        match self.phase {
            Phase::Sack => self.sack.pipe,
            Phase::Resend => self.resent(),
            _ => self.next - self.una,
        }
    }

    /// Congestion window in bytes.
    pub fn cwnd_bytes(&self) -> f64 {
        self.window.cwnd()
    }

    /// Slow-start threshold in bytes, infinite at first.
    pub fn ssthresh_bytes(&self) -> f64 {
        self.window.ssthresh()
    }

    /// The smoothed fraction of congestion, of controllers that have one.
    pub fn alpha(&self) -> Option<f64> {
        self.controller.alpha()
    }

    /// Smoothed round-trip time, once there is one.
    pub fn srtt(&self) -> Option<Time> {
        self.rto.srtt()
    }

    /// The timeout of what is sent now, with back-off.
    pub fn rto(&self) -> Time {
        self.rto.current()
    }

    /// Counters of the sender.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    #[inline]
    fn poll_new(&mut self, now: Time) -> Option<Segment> {
        let len = u64::from(self.rules.segment).min(self.written - self.next);
        if len == 0 || self.next + len - self.una > self.usable {
            return None;
        }
        Some(self.emit_next(now, len))
    }

    #[cold]
    fn poll_rare(&mut self, now: Time) -> Option<Segment> {
        match self.phase {
            Phase::Open => self.poll_new(now),
            Phase::Closed if self.is_done() => None,
            Phase::Closed => {
                self.phase = Phase::SynSent { lost: false };
                self.retransmit_now = true;
                self.poll_syn(now)
            }
            Phase::SynSent { .. } => self.poll_syn(now),
            Phase::Resend => self.poll_resend(now),
            Phase::NewReno { .. } => self.poll_new_reno(now),
            Phase::Sack => self.poll_sack(now),
        }
    }

    /// Sends `len` bytes from `next` on.
    #[inline]
    fn emit_next(&mut self, now: Time, len: u64) -> Segment {
        let segment = self.emit(now, self.next, len);
        self.next += len;
        self.max = self.max.max(self.next);
        segment
    }

    #[inline]
    fn emit(&mut self, now: Time, seq: u64, len: u64) -> Segment {
        let retransmission = seq < self.max;
        self.stats.segments_sent += 1;
        self.stats.bytes_sent += len;
        self.stats.retransmits += u64::from(retransmission);
        self.start_timer_if_idle(now);
        self.last_sent = now;
        Segment {
            seq,
            sent_at: now,
            len: len as u32,
            syn: false,
            retransmission,
            cwr: !retransmission && std::mem::take(&mut self.cwr),
            // RFC 3168 §6.1.5 forbids marks on retransmissions; DCTCP's precise echo counts on them.
            ect: match self.rules.ecn {
                EcnEcho::Off => false,
                EcnEcho::Classic => !retransmission,
                EcnEcho::Precise => true,
            },
        }
    }

    /// RFC 6298 §5.1.
    #[inline]
    fn start_timer_if_idle(&mut self, now: Time) {
        if self.deadline.is_none() {
            self.deadline = Some(now + self.rto.current());
        }
    }

    #[inline(always)]
    fn on_new_ack(&mut self, now: Time, ack: &Ack) {
        let flight = self.next.saturating_sub(self.una);
        let acked = ack.ack - self.una;
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        self.duplicate_acks = 0;
        self.timeouts_in_row = 0;
        if self.una > self.sample_after {
            self.rto.sample(now.saturating_sub(ack.echo));
            self.sample_after = self.next;
        }
        let sample = AckSample {
            now,
            acked,
            ack: ack.ack,
            next: self.next,
            flight,
            ece: ack.ece,
            one_way_delay: ack.one_way_delay,
            rtt: now.saturating_sub(ack.echo),
            srtt: self.rto.srtt().unwrap_or(Time::ZERO),
        };
        let signal = self.controller.observe(&sample);
        if signal.is_congestion() {
            self.on_signal(&sample);
        }
        self.sack.forget_below(self.una);
        if self.phase == Phase::Open {
            self.restart_timer(now);
            self.grow(&sample, signal);
            self.use_window();
        } else {
            self.advance_recovery(now, &sample, signal);
        }
        self.last_ack_marked = ack.ece;
    }

    /// RFC 6298 §5.2 and §5.3.
    #[inline]
    fn restart_timer(&mut self, now: Time) {
        self.deadline = (self.una < self.max).then(|| now + self.rto.current());
    }

    #[inline]
    fn grow(&mut self, sample: &AckSample, signal: Signal) {
        let may_grow = match signal {
            Signal::Clear => true,
            Signal::Mark => {
                self.rules.marked_growth == MarkedGrowth::InBursts && self.last_ack_marked
            }
            Signal::Delay => false,
        };
        if may_grow {
            self.controller.grow(&mut self.window, sample);
        }
    }

    /// Takes over the congestion window after it has changed.
    #[inline]
    fn use_window(&mut self) {
        // A window is far below 2^63, and the signed conversion takes half the instructions.
        let cwnd = (self.window.cwnd() as i64).cast_unsigned();
        self.usable = cwnd.min(self.rules.receive_window);
    }

    fn on_signal(&mut self, sample: &AckSample) {
        self.stats.marked_acks += 1;
        if self.una > self.reduced_until {
            self.controller.on_congestion(&mut self.window, sample);
            self.stats.reductions += 1;
            self.reduced_until = self.max;
            self.cut_by_mark = true;
            self.cwr = self.rules.ecn != EcnEcho::Off;
        }
    }

    /// Nothing was in flight, and now there is something to send again (RFC 5681 §4.1).
    fn end_idle(&mut self, now: Time) {
        let idle = now.saturating_sub(self.last_sent);
        self.controller.on_idle(idle);
        if idle <= self.rto.current() {
            return;
        }
        match self.rules.after_idle {
            AfterIdle::Keep => return,
            AfterIdle::Restart => self.window.shrink_to_initial(),
            AfterIdle::InitialWindow => self.window.reset_to_initial(),
        }
        self.use_window();
    }
}

#[cfg(test)]
mod tests;
