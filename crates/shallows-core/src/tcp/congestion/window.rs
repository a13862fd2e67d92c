//! The congestion window: how it grows and shrinks in standard TCP (RFC 5681).

/// Congestion window and slow-start threshold in bytes. Real numbers, since congestion avoidance
/// adds fractions of a byte.
#[derive(Clone, Debug)]
pub struct Window {
    cwnd: f64,
    ssthresh: f64,
    segment: f64,
    /// The receive window: a congestion window beyond it would be untested.
    most: f64,
    initial: f64,
    /// Bytes that a reduction leaves at least.
    least: f64,
    /// Bytes of one ACK that count at most.
    counted: u64,
}

impl Window {
    pub(crate) fn new(segment: u32, initial: u32, most: u64, segments_per_ack: u32) -> Self {
        let segment_bytes = f64::from(segment);
        Self {
            cwnd: f64::from(initial) * segment_bytes,
            ssthresh: f64::INFINITY,
            segment: segment_bytes,
            most: most as f64,
            initial: f64::from(initial) * segment_bytes,
            least: segment_bytes,
            counted: u64::from(segment) * u64::from(segments_per_ack),
        }
    }

    /// The same window, of which a reduction leaves this many segments at least.
    pub(crate) fn with_least(self, segments: u32) -> Self {
        Self {
            least: f64::from(segments) * self.segment,
            ..self
        }
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
    /// window of them in congestion avoidance (eq. 3, by bytes).
    #[inline]
    pub fn grow(&mut self, acked: u64) {
        let acked = acked.min(self.counted).cast_signed() as f64;
        if self.in_slow_start() {
            self.set(self.cwnd + acked);
        } else {
            self.set(self.cwnd + self.segment * acked / self.cwnd);
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
        self.set_ssthresh(bytes);
        self.set(bytes.max(self.least));
    }

    /// After a loss: half of what was in flight, at least two segments (RFC 5681 §3.2).
    pub fn halve_flight(&mut self, flight: u64) {
        self.set_ssthresh(flight as f64 / 2.0);
        self.set(self.ssthresh.max(self.least));
    }

    /// After a timeout: one segment (RFC 5681 §3.1).
    pub fn collapse(&mut self) {
        self.set(self.segment);
    }

    /// Back to the initial window if that is less (RFC 5681 §4.1).
    pub(crate) fn shrink_to_initial(&mut self) {
        self.cwnd = self.cwnd.min(self.initial);
    }

    /// Back to the initial window.
    pub(crate) fn reset_to_initial(&mut self) {
        self.cwnd = self.initial;
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
