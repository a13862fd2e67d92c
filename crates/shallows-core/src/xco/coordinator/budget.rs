//! Budgets of small packets, which need no permission.
//!
//! Two sources fill the budget of a destination: time, at a rate that all senders together keep
//! below [`GateConfig::small_share`] of the slowest link, and what comes from that destination, of
//! which an eighth may be answered. The second lets ACKs pass, which are never more than that of
//! the permitted data that they acknowledge. A small packet over the budget waits for permission
//! like any other.

use super::GateConfig;
use crate::units::{Bytes, Rate, Time};

/// Answers may be this fraction of what they answer, in bytes on the wire: one ACK of 84 B for each
/// segment of 672 B or more.
const ANSWERED: u64 = 8;

/// All hosts together may send this much at once to one of them.
const BURST: u64 = 65_536;

/// Every host may send this much at once: three packets of 84 B.
const LEAST_BURST: u64 = 256;

/// Unused room for answers, so that ACKs may come later than their data.
const ANSWERS: u64 = 16_384;

/// Tokens are kept in bits divided by this, as a rate in bits per second counts them in a
/// picosecond.
const FRACTIONS: u64 = 8 * 1_000_000_000_000;

/// Budget of small packets for each destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallBudget {
    /// In the long run, apart from answers.
    pub rate: Rate,
    /// At once.
    pub burst: Bytes,
}

impl GateConfig {
    /// The budget of each of `hosts` hosts whose slowest link has this rate.
    pub fn budget(&self, slowest: Rate, hosts: u32) -> SmallBudget {
        let hosts = u64::from(hosts.max(1));
        let share = u128::from(slowest.bps()) * u128::from(self.small_share) / 100;
        SmallBudget {
            rate: Rate::from_bps((share / u128::from(hosts)) as u64),
            burst: Bytes::new((BURST / hosts).max(LEAST_BURST)),
        }
    }
}

/// The budget of one destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    /// In fractions of a byte.
    left: u64,
    filled: Time,
}

impl Tokens {
    /// A full budget.
    pub(super) fn new(now: Time, budget: &SmallBudget) -> Self {
        Self {
            left: fractions(budget.burst.get()),
            filled: now,
        }
    }

    /// Takes a packet of this size on the wire out of the budget; false if there is not enough.
    pub(super) fn take(&mut self, now: Time, budget: &SmallBudget, size: u32) -> bool {
        let full = fractions(budget.burst.get());
        if self.left < full {
            let time = now.saturating_sub(self.filled).ps();
            let earned = u128::from(budget.rate.bps()) * u128::from(time);
            self.left = full.min(
                u64::try_from(earned)
                    .unwrap_or(u64::MAX)
                    .saturating_add(self.left),
            );
        }
        self.filled = now;
        let cost = fractions(u64::from(size));
        let passes = cost <= self.left;
        if passes {
            self.left -= cost;
        }
        passes
    }

    /// Adds what may be answered to a packet of this size on the wire.
    pub(super) fn answer(&mut self, size: u32) {
        let most = fractions(ANSWERS);
        if self.left < most {
            self.left = most.min(self.left + fractions(u64::from(size)) / ANSWERED);
        }
    }

    /// Goes on from an earlier time.
    pub(super) fn restart_clock(&mut self, now: Time) {
        self.filled = now;
    }
}

fn fractions(bytes: u64) -> u64 {
    bytes * FRACTIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budgets_of_all_senders_are_a_share_of_the_link() {
        let gate = GateConfig::default();
        let budget = gate.budget(Rate::from_gbps(1), 6);
        assert_eq!(budget.rate.bps() * 6 / 1000, 9_999);
        assert_eq!(budget.burst, Bytes::new(10_922));
        let budget = gate.budget(Rate::from_gbps(1), 4096);
        assert_eq!((budget.rate.bps(), budget.burst.get()), (2_441, 256));
    }

    #[test]
    fn time_and_answers_fill_it() {
        // 8 kbps are a byte in a millisecond.
        let budget = SmallBudget {
            rate: Rate::from_bps(8_000),
            burst: Bytes::new(256),
        };
        let ms = Time::from_ms;
        let mut tokens = Tokens::new(ms(0), &budget);
        let mut take = |at, size| tokens.take(ms(at), &budget, size);
        assert!(take(0, 84) && take(0, 84) && take(0, 84));
        assert!(!take(71, 84), "4 and 71 bytes");
        assert!(take(80, 84) && !take(80, 1));
        assert!(take(10_000, 256) && !take(10_000, 1), "a full one");
        let mut tokens = Tokens::new(ms(0), &budget);
        assert!(tokens.take(ms(0), &budget, 256));
        for _ in 0..1_000 {
            tokens.answer(1538);
            assert!(tokens.take(ms(0), &budget, 84), "ACKs of full segments");
        }
        for _ in 0..1_000 {
            tokens.answer(1538);
        }
        assert!(tokens.take(ms(0), &budget, 16_384) && !tokens.take(ms(0), &budget, 1));
    }
}
