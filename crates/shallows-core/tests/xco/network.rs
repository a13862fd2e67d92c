//! A network that loses, doubles, delays and reorders messages, and splits.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shallows_core::units::Time;

/// Random numbers of one run.
pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit.max(1)
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// A time up to `most`, in whole microseconds.
    pub(crate) fn time(&mut self, most: Time) -> Time {
        Time::from_us(self.below(most / Time::from_us(1) + 1))
    }
}

/// What can go wrong on the way, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    /// Messages that are late by up to `lateness`, and so overtaken.
    pub(crate) late: u64,
    pub(crate) lateness: Time,
}

impl Weather {
    pub(crate) fn storm(dice: &mut Dice) -> Self {
        let lateness = [1, 10, 100, 400][dice.below(4) as usize];
        Self {
            loss: [0, 5, 20, 50][dice.below(4) as usize],
            duplication: [0, 5, 30][dice.below(3) as usize],
            late: [0, 10, 50][dice.below(3) as usize],
            lateness: Time::from_ms(lateness),
        }
    }

    /// How long each copy of a message is on its way; none if it is lost.
    pub(crate) fn delays(&self, dice: &mut Dice) -> Vec<Time> {
        if dice.percent(self.loss) {
            return Vec::new();
        }
        let copies = 1 + u64::from(dice.percent(self.duplication));
        let delay = |dice: &mut Dice| {
            let usual = Time::from_us(5) + dice.time(Time::from_us(40));
            if dice.percent(self.late) {
                usual + dice.time(self.lateness)
            } else {
                usual
            }
        };
        (0..copies).map(|_| delay(dice)).collect()
    }
}
