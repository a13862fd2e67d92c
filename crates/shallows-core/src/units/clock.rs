use super::rate::PS_PER_BYTE_AT_1BPS;
use super::{Bytes, Rate, Time};

/// Times back-to-back transmissions at a rate without drift.
///
/// Rounding each packet up to a picosecond on its own would make a busy link slower than its rate.
/// The clock carries what it rounded up into the next packet, so that since the last
/// [`restart`](Self::restart) all spans together are exactly the
/// [`transmission_time`](Rate::transmission_time) of all bytes together.
#[derive(Debug, Clone)]
pub struct TransmissionClock {
    /// Picoseconds per byte are `numerator / denominator` in lowest terms.
    numerator: u64,
    denominator: u64,
    /// Accumulated excess of the spans so far, in `1 / denominator` picoseconds; under one
    /// picosecond.
    overshoot: u64,
}

impl TransmissionClock {
    /// A clock for an idle link.
    ///
    /// # Panics
    /// If `rate` is zero: nothing would ever be sent.
    pub fn new(rate: Rate) -> Self {
        assert!(rate.bps() > 0, "a link needs a rate above zero");
        let divisor = greatest_common_divisor(PS_PER_BYTE_AT_1BPS, rate.bps());
        Self {
            numerator: PS_PER_BYTE_AT_1BPS / divisor,
            denominator: rate.bps() / divisor,
            overshoot: 0,
        }
    }

    /// The rate of the link.
    pub fn rate(&self) -> Rate {
        Rate::from_bps(PS_PER_BYTE_AT_1BPS / self.numerator * self.denominator)
    }

    /// The span from the end of the transmission before to the end of that of `bytes`.
    #[inline]
    pub fn advance(&mut self, bytes: Bytes) -> Time {
        if self.is_exact() {
            return Time::from_ps(bytes.get() * self.numerator);
        }
        if let Some(needed) = bytes.get().checked_mul(self.numerator) {
            return self.advance_fraction(needed);
        }
        let (span, overshoot) = self.clone().advance_halves(bytes);
        self.overshoot = overshoot;
        span
    }

    /// True if no span is ever rounded: a byte takes whole picoseconds.
    #[inline]
    pub(crate) fn is_exact(&self) -> bool {
        self.denominator == 1
    }

    /// Forgets the rounding: the link went idle and the next transmission starts on a new instant.
    #[inline]
    pub fn restart(&mut self) {
        self.overshoot = 0;
    }

    #[inline]
    fn advance_fraction(&mut self, needed: u64) -> Time {
        let Some(missing) = needed.checked_sub(self.overshoot) else {
            self.overshoot -= needed;
            return Time::ZERO;
        };
        let (whole, part) = (missing / self.denominator, missing % self.denominator);
        if part == 0 {
            self.overshoot = 0;
            return Time::from_ps(whole);
        }
        self.overshoot = self.denominator - part;
        Time::from_ps(whole + 1)
    }

    /// More bytes than the product holds: the parts of a transmission add up like any others. With
    /// the overshoot after it; by value, so that a clock can be in registers.
    #[cold]
    fn advance_halves(mut self, bytes: Bytes) -> (Time, u64) {
        let half = Bytes::new(bytes.get() / 2);
        let span = self.advance(half) + self.advance(bytes - half);
        (span, self.overshoot)
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}
