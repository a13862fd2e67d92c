//! The congestion window: how it grows and shrinks in standard TCP (RFC 5681).

use serde::{Deserialize, Serialize};

/// Growth of the window in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// By a fraction of a segment with each ACK (RFC 5681 eq. 3).
    #[default]
    Fractions,
    /// By a whole segment once as many ACKs are counted as the window has segments; a reduction
    /// sets the count to 0. This is `windowOption_` 0 of ns-2, which the published scripts of
    /// MQ-ECN, EAR and QJUMP choose.
    WholeSegments,
}

/// Congestion window and slow-start threshold in bytes. Real numbers, since congestion avoidance
/// adds fractions of a byte.
#[derive(Clone, Debug)]
pub struct Window {
    cwnd: f64,
    ssthresh: f64,
    segment: f64,
    /// The receive window: a congestion window beyond it would be untested.
    most: f64,
    /// Segments of the initial window.
    initial: u32,
    /// Segments that a reduction leaves at least.
    least: u32,
    /// Bytes of one ACK that count at most.
    counted: u64,
    growth: Growth,
    /// ACKs in congestion avoidance since the last growth or reduction, if it grows by whole segments.
    acks: u32,
}

impl Window {
    pub(crate) fn new(segment: u32, initial: u32, most: u64, segments_per_ack: u32) -> Self {
        let segment_bytes = f64::from(segment);
        Self {
            cwnd: f64::from(initial) * segment_bytes,
            ssthresh: f64::INFINITY,
            segment: segment_bytes,
            most: most as f64,
            initial,
            least: 1,
            counted: u64::from(segment) * u64::from(segments_per_ack),
            growth: Growth::Fractions,
            acks: 0,
        }
    }

    /// The same window, of which a reduction leaves this many segments at least.
    pub(crate) fn with_least(self, segments: u32) -> Self {
        Self {
            least: segments,
            ..self
        }
    }

    /// The same window, with this growth in congestion avoidance.
    pub(crate) fn with_growth(self, growth: Growth) -> Self {
        Self { growth, ..self }
    }

    /// Congestion window in bytes.
    #[inline]
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold in bytes; infinite before the first sign of congestion.
    #[inline]
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Bytes of data in a full segment.
    #[inline]
    pub fn segment(&self) -> f64 {
        self.segment
    }

    /// Returns whether the window is below the threshold.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows for `acked` bytes: by as many in slow start (RFC 5681 eq. 2), by one segment for each
    /// window of them in congestion avoidance (eq. 3, by bytes; or as [`Growth`] says).
    #[inline]
    pub fn grow(&mut self, acked: u64) {
        let acked = acked.min(self.counted).cast_signed() as f64;
        if self.in_slow_start() {
            self.set(self.cwnd + acked);
        } else if self.growth == Growth::Fractions {
            self.set(self.cwnd + self.segment * acked / self.cwnd);
        } else {
            self.count_ack();
        }
    }

    #[cold]
    fn count_ack(&mut self) {
        self.acks += 1;
        if f64::from(self.acks) * self.segment >= self.cwnd {
            self.acks = 0;
            self.set(self.cwnd + self.segment);
        }
    }

    /// Takes this window, within one segment and the receive window.
    #[inline]
    pub fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(self.segment, self.most);
    }

    /// Takes this threshold, at least two segments (RFC 5681 eq. 4).
    pub fn set_ssthresh(&mut self, bytes: f64) {
        self.ssthresh = bytes.max(2.0 * self.segment);
    }

    /// Goes on with `bytes` after congestion: threshold and window. The threshold stays at least
    /// two segments, the window at least `least-window` of them.
    pub fn reduce(&mut self, bytes: f64) {
        self.acks = 0;
        self.set_ssthresh(bytes);
        self.set(bytes.max(self.segments(self.least)));
    }

    /// After a loss: half of what was in flight, at least two segments (RFC 5681 §3.2).
    pub fn halve_flight(&mut self, flight: u64) {
        self.acks = 0;
        self.set_ssthresh(flight as f64 / 2.0);
        self.set(self.ssthresh.max(self.segments(self.least)));
    }

    /// After a timeout: one segment (RFC 5681 §3.1).
    pub fn collapse(&mut self) {
        self.acks = 0;
        self.set(self.segment);
    }

    /// Back to the initial window if that is less (RFC 5681 §4.1).
    pub(crate) fn shrink_to_initial(&mut self) {
        self.acks = 0;
        self.cwnd = self.cwnd.min(self.segments(self.initial));
    }

    /// Back to the initial window.
    pub(crate) fn reset_to_initial(&mut self) {
        self.acks = 0;
        self.cwnd = self.segments(self.initial);
    }

    /// Bytes of this many full segments.
    fn segments(&self, count: u32) -> f64 {
        f64::from(count) * self.segment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(initial: u32) -> Window {
        Window::new(1_000, initial, 100_000, 1)
    }

    #[test]
    fn slow_start_adds_what_was_acked_up_to_a_segment() {
        let mut window = window(10);
        window.grow(1_000);
        window.grow(400);
        window.grow(5_000);
        assert_eq!(window.cwnd(), 12_400.0);
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_a_window() {
        let mut window = window(10);
        window.reduce(8_000.0);
        window.grow(1_000);
        assert_eq!(window.cwnd(), 8_125.0);
        window.grow(1_000);
        assert_eq!(window.cwnd(), 8_125.0 + 1_000_000.0 / 8_125.0);
    }

    #[test]
    fn growth_by_whole_segments_counts_acks_and_a_reduction_loses_the_count() {
        let mut window = window(10).with_growth(Growth::WholeSegments);
        // Slow start counts nothing.
        window.grow(1_000);
        assert_eq!(window.cwnd(), 11_000.0);
        window.reduce(3_500.0);
        // Three ACKs are less than 3.5 segments, the fourth is not, however little it acknowledges.
        for (acked, cwnd) in [
            (1_000, 3_500.0),
            (1_000, 3_500.0),
            (1_000, 3_500.0),
            (1, 4_500.0),
        ] {
            window.grow(acked);
            assert_eq!(window.cwnd(), cwnd);
        }
        // Four of the five ACKs are counted when a mark, a loss or a timeout comes: all is lost.
        let cuts: [fn(&mut Window); 4] = [
            |window| window.reduce(4_500.0),
            |window| window.halve_flight(9_000),
            |window| {
                window.collapse();
                window.set(4_500.0);
            },
            |window| {
                window.shrink_to_initial();
                window.set_ssthresh(4_000.0);
            },
        ];
        for cut in cuts {
            (0..4).for_each(|_| window.grow(1_000));
            assert_eq!(window.cwnd(), 4_500.0);
            cut(&mut window);
            (0..4).for_each(|_| window.grow(1_000));
            assert_eq!(window.cwnd(), 4_500.0);
            window.reduce(4_500.0);
        }
        (0..5).for_each(|_| window.grow(1_000));
        assert_eq!(window.cwnd(), 5_500.0);
    }

    #[test]
    fn never_beyond_the_receive_window_nor_below_a_segment() {
        let mut window = window(99);
        for _ in 0..5 {
            window.grow(1_000);
        }
        assert_eq!(window.cwnd(), 100_000.0);
        window.reduce(10.0);
        assert_eq!((window.cwnd(), window.ssthresh()), (1_000.0, 2_000.0));
        window.halve_flight(3_000);
        assert_eq!((window.cwnd(), window.ssthresh()), (2_000.0, 2_000.0));
    }

    #[test]
    fn a_reduction_leaves_the_least_window_and_a_timeout_one_segment() {
        let mut window = window(10).with_least(3);
        window.reduce(10.0);
        assert_eq!((window.cwnd(), window.ssthresh()), (3_000.0, 2_000.0));
        window.halve_flight(3_000);
        assert_eq!((window.cwnd(), window.ssthresh()), (3_000.0, 2_000.0));
        window.collapse();
        assert_eq!(window.cwnd(), 1_000.0);
    }
}
