//! The order in which candidates are tried: coarse to fine with few seeds, then a race.
//!
//! Every candidate is compared with the scenario as it is, seed by seed, so few seeds tell much.
//!
//! 1. *Refinement.* The first round tries a coarse lattice of all ordered knobs for each choice of
//!    the others, with [`FIRST`] seeds. Each further round halves the stride and tries the
//!    neighbours of the best candidates; it also halves the number of choices that stay. From the
//!    third round on candidates have a quarter of all seeds.
//! 2. *Race.* Successive halving: the best [`RACERS`] get twice the seeds, half of them twice as
//!    many again, until the last [`FINALISTS`] have all seeds. If none of them keeps the constraints and
//!    is better than the scenario as it is, the next best get more seeds until one does.
//! 3. *Polish.* The neighbours of the winner are tried, and the race is run again.
//!
//! # Optimizer crates
//!
//! None of them fits. `argmin` 0.11 minimizes functions of real vectors without noise; its simplex
//! has no lists, no choices, no constraints and no notion of a seed. `tpe` 0.3 samples each
//! parameter by itself and at random, needs tens of trials before its model is used, and gives
//! every trial the same budget. `egobox-ego` fits Gaussian processes with constraints, but brings 154
//! crates, `ndarray` and `linfa` among them, and does not know pairs. What makes a search short here
//! is nothing that they have: common seeds, and seeds that go where they decide.

use std::collections::BTreeMap;

use shallows_run::Failure;

/// Seeds of a candidate's first comparison, the fewest that give an interval.
pub(crate) const FIRST: usize = 2;

/// Candidates that get all seeds, at least.
const FINALISTS: usize = 3;

/// Candidates that enter the race.
const RACERS: usize = 8;

/// Number of rounds that try the neighbours of the winner.
const POLISHES: usize = 2;

/// A value for each knob, by number.
pub(crate) type Candidate = Vec<usize>;

/// A knob, as far as the search is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dimension {
    pub(crate) points: usize,
    pub(crate) is_ordered: bool,
}

/// Score of a candidate by the seeds that it has; less is better.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Score {
    /// Share by which constraints are broken; candidates that break none come first.
    pub(crate) violation: f64,
    pub(crate) cost: f64,
}

impl Score {
    /// A candidate without a value.
    pub(crate) const FAILED: Self = Self {
        violation: f64::INFINITY,
        cost: f64::INFINITY,
    };

    /// The scenario as it is.
    const AS_IT_IS: Self = Self {
        violation: 0.0,
        cost: 1.0,
    };

    fn key(self) -> [u64; 2] {
        // Bits of floats that are not negative are in the order of the floats.
        [self.violation, self.cost].map(|of| of.max(0.0).to_bits())
    }
}

/// Comparison of candidates in a search.
pub(crate) trait Compare {
    /// Compares candidates with the scenario as it is, over the first `seeds` seeds.
    fn compare(&mut self, candidates: &[Candidate], seeds: usize) -> Result<(), Failure>;

    /// By the seeds that the candidate has.
    fn score(&self, candidate: &Candidate, seeds: usize) -> Score;
}

/// Candidates that were tried, with their numbers of seeds.
pub(crate) type Pool = BTreeMap<Candidate, usize>;

/// Searches with at most `seeds` seeds for a candidate.
pub(crate) fn search(
    space: &[Dimension],
    seeds: usize,
    compare: &mut dyn Compare,
) -> Result<Pool, Failure> {
    let mut search = Search {
        space,
        seeds,
        compare,
        pool: Pool::new(),
    };
    search.refine()?;
    search.race()?;
    search.polish()?;
    Ok(search.pool)
}

struct Search<'a> {
    space: &'a [Dimension],
    seeds: usize,
    compare: &'a mut dyn Compare,
    pool: Pool,
}

impl Search<'_> {
    /// Seeds of candidates close to the best ones.
    fn close(&self) -> usize {
        (self.seeds / 4).max(FIRST)
    }

    fn refine(&mut self) -> Result<(), Failure> {
        let (lattice, mut strides) = coarse(self.space);
        self.raise(&lattice, FIRST)?;
        let mut choices = self.choices();
        let mut round = 0;
        while strides.iter().any(|&stride| stride > 1) {
            for stride in &mut strides {
                *stride = stride.div_ceil(2);
            }
            choices = choices.div_ceil(2);
            let seeds = if round < 2 { FIRST } else { self.close() };
            self.raise(&self.leaders(choices, round == 0), seeds)?;
            let new = self.neighbours(&self.leaders(choices, round == 0), &strides);
            self.raise(&new, seeds)?;
            round += 1;
        }
        Ok(())
    }

    /// Tries what lies next to the winner, and races again.
    fn polish(&mut self) -> Result<(), Failure> {
        for _ in 0..POLISHES {
            let full = self.ranked().into_iter();
            let mut full = full.filter(|candidate| self.pool[candidate] >= self.seeds);
            let Some(winner) = full.next() else {
                return Ok(());
            };
            let mut new =
                self.neighbours(std::slice::from_ref(&winner), &vec![1; self.space.len()]);
            new.extend(self.neighbours(&[winner], &vec![2; self.space.len()]));
            new.retain(|candidate| !self.pool.contains_key(candidate));
            if new.is_empty() {
                return Ok(());
            }
            self.raise(&new, self.close())?;
            self.race()?;
        }
        Ok(())
    }

    fn race(&mut self) -> Result<(), Failure> {
        let (mut racers, mut seeds) = (RACERS, FIRST);
        while seeds < self.seeds {
            seeds = (2 * seeds).min(self.seeds);
            racers = (racers / 2).max(FINALISTS);
            let best = self.ranked().into_iter().take(racers).collect::<Vec<_>>();
            self.raise(&best, seeds)?;
        }
        while let Some(best) = self.challenger() {
            let seeds = 2 * self.pool[&best];
            self.raise(&[best], seeds)?;
        }
        Ok(())
    }

    /// The best candidate that is short of seeds, as long as none with all of them is better than
    /// the scenario as it is.
    fn challenger(&self) -> Option<Candidate> {
        let is_better = |candidate: &Candidate| {
            let score = self.compare.score(candidate, self.pool[candidate]);
            score.key() < Score::AS_IT_IS.key()
        };
        let better: Vec<Candidate> = self.ranked().into_iter().filter(is_better).collect();
        let is_full = |candidate: &Candidate| self.pool[candidate] >= self.seeds;
        if better.iter().any(is_full) {
            return None;
        }
        better.into_iter().next()
    }

    /// Compares candidates over at least this number of seeds.
    fn raise(&mut self, candidates: &[Candidate], seeds: usize) -> Result<(), Failure> {
        let seeds = seeds.min(self.seeds);
        let has = |candidate: &Candidate| self.pool.get(candidate).copied().unwrap_or(0);
        let short: Vec<Candidate> = candidates
            .iter()
            .filter(|candidate| has(candidate) < seeds)
            .cloned()
            .collect();
        if short.is_empty() {
            return Ok(());
        }
        self.compare.compare(&short, seeds)?;
        self.pool
            .extend(short.into_iter().map(|candidate| (candidate, seeds)));
        Ok(())
    }

    /// All candidates, the best first.
    fn ranked(&self) -> Vec<Candidate> {
        let mut ranked: Vec<(&Candidate, usize)> = self
            .pool
            .iter()
            .map(|(candidate, &seeds)| (candidate, seeds))
            .collect();
        ranked.sort_by_cached_key(|(candidate, seeds)| self.compare.score(candidate, *seeds).key());
        ranked.into_iter().map(|(one, _)| one.clone()).collect()
    }

    /// Number of combinations of the unordered knobs.
    fn choices(&self) -> usize {
        let unordered = self.space.iter().filter(|knob| !knob.is_ordered);
        unordered.map(|knob| knob.points).product()
    }

    /// The best candidate of each of the best choices, and after the first round the second of all.
    fn leaders(&self, choices: usize, with_second: bool) -> Vec<Candidate> {
        let choice = |candidate: &Candidate| -> Vec<usize> {
            let unordered = candidate.iter().zip(self.space);
            let unordered = unordered.filter(|(_, knob)| !knob.is_ordered);
            unordered.map(|(&point, _)| point).collect()
        };
        let ranked = self.ranked();
        let mut leaders: Vec<Candidate> = Vec::new();
        for candidate in &ranked {
            let is_new = leaders.iter().all(|of| choice(of) != choice(candidate));
            if is_new && leaders.len() < choices {
                leaders.push(candidate.clone());
            }
        }
        let second = ranked.get(1).filter(|_| with_second);
        leaders.extend(second.filter(|of| !leaders.contains(of)).cloned());
        leaders
    }

    /// Candidates one stride away along one ordered knob, each once.
    fn neighbours(&self, of: &[Candidate], strides: &[usize]) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        for candidate in of {
            for (index, knob) in self.space.iter().enumerate() {
                let (at, stride) = (candidate[index], strides[index]);
                let places = [at.checked_sub(stride), Some(at + stride)];
                for place in places.into_iter().flatten() {
                    let mut neighbour = candidate.clone();
                    neighbour[index] = place;
                    if knob.is_ordered && place < knob.points && !found.contains(&neighbour) {
                        found.push(neighbour);
                    }
                }
            }
        }
        found
    }
}

/// The first candidates, and the distance between them along each knob.
fn coarse(space: &[Dimension]) -> (Vec<Candidate>, Vec<usize>) {
    let ordered = space.iter().filter(|knob| knob.is_ordered).count();
    let count = match ordered {
        0 | 1 => 5,
        2 => 4,
        3 => 3,
        _ => 2,
    };
    let mut lattice: Vec<Candidate> = vec![Vec::new()];
    let mut strides = Vec::new();
    for knob in space {
        let (points, stride) = if knob.is_ordered {
            spread(knob.points, count)
        } else {
            ((0..knob.points).collect(), 0)
        };
        strides.push(stride);
        lattice = lattice
            .iter()
            .flat_map(|start| {
                points.iter().map(|&point| {
                    let mut candidate = start.clone();
                    candidate.push(point);
                    candidate
                })
            })
            .collect();
    }
    (lattice, strides)
}

/// About `count` of some points from end to end, or two at the quarters.
fn spread(points: usize, count: usize) -> (Vec<usize>, usize) {
    let last = points - 1;
    if points <= count {
        return ((0..points).collect(), 1);
    }
    if count == 2 {
        return (vec![last / 4, last - last / 4], last.div_ceil(2));
    }
    let at = |index: usize| (index * last + (count - 1) / 2) / (count - 1);
    ((0..count).map(at).collect(), last.div_ceil(count - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valley with a deterministic noise that falls with the seeds.
    struct Valley {
        runs: usize,
        has: BTreeMap<Candidate, usize>,
        cost: fn(&Candidate) -> Score,
    }

    fn valley(cost: fn(&Candidate) -> Score) -> Valley {
        Valley {
            runs: 0,
            has: BTreeMap::new(),
            cost,
        }
    }

    impl Compare for Valley {
        fn compare(&mut self, candidates: &[Candidate], seeds: usize) -> Result<(), Failure> {
            for candidate in candidates {
                let has = self.has.insert(candidate.clone(), seeds).unwrap_or(0);
                self.runs += seeds - has;
            }
            Ok(())
        }

        fn score(&self, candidate: &Candidate, seeds: usize) -> Score {
            assert_eq!(self.has[candidate], seeds);
            let mixed = candidate
                .iter()
                .fold(seeds, |mixed, point| mixed * 31 + point * 17);
            let noise = (mixed % 13) as f64 / 13.0 * 0.02 / seeds as f64;
            let score = (self.cost)(candidate);
            Score {
                cost: score.cost + noise,
                ..score
            }
        }
    }

    fn ordered(points: usize) -> Dimension {
        Dimension {
            points,
            is_ordered: true,
        }
    }

    fn best(space: &[Dimension], seeds: usize, mut of: Valley) -> (Candidate, usize) {
        let pool = search(space, seeds, &mut of).unwrap();
        let full = pool.into_iter().filter(|(_, has)| *has == seeds);
        let best = full.min_by_key(|(candidate, has)| of.score(candidate, *has).key());
        (best.unwrap().0, of.runs)
    }

    fn bowl(at: usize, around: f64) -> f64 {
        0.5 + 0.002 * (at as f64 - around).powi(2)
    }

    #[test]
    fn a_valley_is_found_with_few_runs() {
        let of = valley(|of| Score {
            violation: 0.0,
            cost: bowl(of[0], 23.0),
        });
        let (best, runs) = best(&[ordered(65)], 12, of);
        assert!((21..=25).contains(&best[0]), "{best:?}");
        assert!(runs < 65 * 12 / 10, "{runs}");
    }

    #[test]
    fn two_ranges_and_a_choice_have_one_valley_each() {
        let of = valley(|of| Score {
            violation: 0.0,
            cost: bowl(of[0], 4.0) + bowl(of[2], 11.0) + if of[1] == 2 { 0.0 } else { 0.2 },
        });
        let choice = Dimension {
            points: 3,
            is_ordered: false,
        };
        let (best, runs) = best(&[ordered(17), choice, ordered(17)], 8, of);
        assert_eq!(best[1], 2);
        assert!(best[0].abs_diff(4) <= 2 && best[2].abs_diff(11) <= 2);
        assert!(runs < 17 * 17 * 3 * 8 / 10, "{runs}");
    }

    #[test]
    fn the_winner_keeps_the_constraint() {
        // Less is better, but below 20 the constraint breaks.
        let of = valley(|of| Score {
            violation: (20.0 - of[0] as f64).max(0.0) / 20.0,
            cost: 0.5 + of[0] as f64 / 100.0,
        });
        let (best, _) = best(&[ordered(65)], 8, of);
        assert!((20..=22).contains(&best[0]), "{best:?}");
    }

    #[test]
    fn a_lattice_has_both_ends() {
        assert_eq!(spread(33, 5), (vec![0, 8, 16, 24, 32], 8));
        assert_eq!(spread(3, 5), (vec![0, 1, 2], 1));
        assert_eq!(spread(9, 2), (vec![2, 6], 4));
        let choice = Dimension {
            points: 2,
            is_ordered: false,
        };
        let (lattice, strides) = coarse(&[choice, ordered(9)]);
        assert_eq!((lattice.len(), strides), (10, vec![0, 2]));
    }

    #[test]
    fn one_seed_is_enough_for_a_search() {
        let of = valley(|of| Score {
            violation: 0.0,
            cost: bowl(of[0], 3.0),
        });
        let (best, runs) = best(&[ordered(9)], 1, of);
        assert!((2..=4).contains(&best[0]), "{best:?} {runs}");
    }
}
