//! Flow-size distributions, given by points of their cumulative distribution function.

use thiserror::Error;

use super::random::Stream;
use crate::topology::nearest;

/// A distribution that is linear between its knots.
///
/// ```
/// use shallows_model::workload::{Cdf, SizeUnit};
///
/// let cdf = Cdf::parse("0 0\n1000 0.5\n3000 1", SizeUnit::Bytes)?;
/// assert_eq!(cdf.quantile(0.75), 2000.0);
/// assert_eq!(cdf.mean(), 0.5 * 500.0 + 0.5 * 2000.0);
/// # Ok::<(), shallows_model::workload::CdfError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    unit: SizeUnit,
    knots: Vec<Knot>,
}

/// Unit of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SizeUnit {
    /// Bytes.
    Bytes,
    /// Full packets.
    Packets,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Knot {
    size: f64,
    probability: f64,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../data/cdf/", $name, ".csv")))),*]
    };
}

static SHIPPED: [(&str, &str); 12] = shipped![
    "web-search",
    "data-mining",
    "cache",
    "hadoop",
    "web-search-bytes",
    "data-mining-bytes",
    "vl2",
    "web-server",
    "cache-follower",
    "facebook-hadoop",
    "ali-storage",
    "google-rpc",
];

impl Cdf {
    /// A distribution that is shipped: `web-search`, `data-mining`, `cache` and `hadoop` as
    /// simulated by MQ-ECN, and those that [`Cdf::names`] lists beyond them.
    pub fn named(name: &str) -> Result<Self, CdfError> {
        let found = SHIPPED.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| CdfError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, Self::names()),
        })?;
        Self::parse(text, SizeUnit::Bytes)
    }

    /// The names of the distributions that are shipped.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Reads a distribution: on each line a size and its cumulative probability, with commas or
    /// spaces between them.
    ///
    /// Probabilities end at 1 or at 100. A column in between, as in ns-2's files, is ignored, as are
    /// blank lines and those that start with `#`. A first line `bytes,probability` or
    /// `packets,probability` says what sizes are counted in, else `unit` does.
    pub fn parse(text: &str, unit: SizeUnit) -> Result<Self, CdfError> {
        let mut cdf = Self {
            unit,
            knots: Vec::new(),
        };
        let lines = (1..).zip(text.lines().map(str::trim));
        let mut last_line = 0;
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let header = match line {
                "bytes,probability" => Some(SizeUnit::Bytes),
                "packets,probability" => Some(SizeUnit::Packets),
                _ => None,
            };
            match header {
                Some(unit) if cdf.knots.is_empty() => cdf.unit = unit,
                _ => {
                    let knot = Knot::parse(line, cdf.knots.last());
                    let at_line = |problem| CdfError::Line {
                        number,
                        line: line.to_owned(),
                        problem,
                    };
                    cdf.knots.push(knot.map_err(at_line)?);
                    last_line = number;
                }
            }
        }
        let last = cdf.knots.last().ok_or(CdfError::Empty)?.probability;
        if last == 100.0 {
            for knot in &mut cdf.knots {
                knot.probability /= 100.0;
            }
        } else if last != 1.0 {
            return Err(CdfError::End {
                number: last_line,
                last: last.to_string(),
            });
        }
        Ok(cdf)
    }

    /// Unit of sizes.
    pub fn unit(&self) -> SizeUnit {
        self.unit
    }

    /// The mean of the distribution as drawn, without rounding up.
    pub fn mean(&self) -> f64 {
        self.integrate(|size| size * size / 2.0, |size| size)
    }

    /// The mean number of whole `step`s that a size needs: with a step of 1 the mean of sizes that
    /// are rounded up.
    pub fn mean_steps(&self, step: f64) -> f64 {
        // The integral of ceil(x): 1 + 2 + ... + n, and n + 1 for what is beyond n.
        let integral = |size: f64| {
            let x = size / step;
            let n = x.floor();
            step * (n * (n + 1.0) / 2.0 + (x - n) * (n + 1.0))
        };
        self.integrate(integral, |size| (size / step).ceil())
    }

    /// The mean of a function of the size whose antiderivative is `integral`.
    fn integrate(&self, integral: impl Fn(f64) -> f64, value: impl Fn(f64) -> f64) -> f64 {
        let first = self.knots[0];
        let between = self.knots.windows(2).map(|pair| {
            let (from, to) = (pair[0], pair[1]);
            let weight = to.probability - from.probability;
            if from.size == to.size {
                weight * value(to.size)
            } else {
                weight * (integral(to.size) - integral(from.size)) / (to.size - from.size)
            }
        });
        between.fold(first.probability * value(first.size), |sum, part| {
            sum + part
        })
    }

    /// The size that a share `p` of flows does not exceed.
    pub fn quantile(&self, p: f64) -> f64 {
        let above = self.knots.partition_point(|knot| knot.probability < p);
        match (
            above.checked_sub(1).map(|i| self.knots[i]),
            self.knots.get(above),
        ) {
            (None, _) => self.knots[0].size,
            (Some(below), None) => below.size,
            (Some(below), Some(above)) => {
                let share = (p - below.probability) / (above.probability - below.probability);
                below.size + share * (above.size - below.size)
            }
        }
    }

    /// A size, rounded up to a whole number from 1.
    pub(super) fn draw(&self, stream: &mut Stream) -> u64 {
        (self.quantile(stream.unit()).ceil() as u64).max(1)
    }
}

impl Knot {
    fn parse(line: &str, before: Option<&Self>) -> Result<Self, &'static str> {
        let fields: Vec<&str> = line
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|field| !field.is_empty())
            .collect();
        let ([size, probability] | [size, _, probability]) = fields[..] else {
            return Err("write a size and its cumulative probability");
        };
        let number = |text: &str| text.parse().ok().filter(|n: &f64| n.is_finite());
        let size = number(size)
            .filter(|size| (0.0..=LARGEST).contains(size))
            .ok_or("the size must be a number from 0 to 1e15")?;
        let probability = number(probability)
            .filter(|p| (0.0..=100.0).contains(p))
            .ok_or("the probability must be a number from 0, at most 1 or 100")?;
        if size == 0.0 && probability > 0.0 {
            return Err("a flow has at least one byte: size 0 must have the probability 0");
        }
        if before.is_some_and(|before| size < before.size) {
            return Err("sizes must not fall");
        }
        if before.is_some_and(|before| probability < before.probability) {
            return Err("probabilities must not fall");
        }
        Ok(Self { size, probability })
    }
}

/// A petabyte: every whole number up to it is a double.
const LARGEST: f64 = 1e15;

/// The reason why there is no such distribution.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CdfError {
    /// A name that is not shipped.
    #[error("there is no distribution {name:?}; {}", match .nearest {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => format!("known are {}", Cdf::names().collect::<Vec<_>>().join(", ")),
    })]
    Unknown {
        /// The name.
        name: String,
        /// The most similar one, if one is close.
        nearest: Option<&'static str>,
    },
    /// No point at all.
    #[error("the distribution has no points")]
    Empty,
    /// A line that is not a point.
    #[error("line {number}: {line:?}: {problem}")]
    Line {
        /// Its number, from 1.
        number: usize,
        /// The line.
        line: String,
        /// Description of the problem.
        problem: &'static str,
    },
    /// The last probability.
    #[error("line {number}: the last probability is {last}, it must be 1 or 100")]
    End {
        /// Number of its line, from 1.
        number: usize,
        /// Last value in the file.
        last: String,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::random::Purpose;
    use super::super::tests::mutation::{fuzz_for_long, fuzzing, mutant};
    use super::*;

    #[test]
    fn means_of_the_distributions_of_mq_ecn() {
        let mean = |name| Cdf::named(name).unwrap().mean();
        assert!((mean("cache") - 623.76).abs() < 0.005);
        assert!((mean("web-search") - 1140.98).abs() < 0.005);
        assert!((mean("hadoop") - 2832.395).abs() < 0.0005);
        assert!((mean("data-mining") - 5116.60).abs() < 0.005);
    }

    #[test]
    fn means_of_the_others() {
        let mean = |name| Cdf::named(name).unwrap().mean();
        assert!((mean("web-search-bytes") - 1_711_250.0).abs() < 0.5);
        assert!((mean("data-mining-bytes") - 7_674_400.0).abs() < 0.5);
        assert!((mean("vl2") - 12_658_199.0).abs() < 0.5);
        for name in Cdf::names() {
            assert!(mean(name) > 0.0, "{name}");
        }
    }

    #[test]
    fn quantiles_of_web_search() {
        let cdf = Cdf::named("web-search").unwrap();
        assert_eq!(cdf.unit(), SizeUnit::Packets);
        assert_eq!(cdf.quantile(0.0), 6.0);
        assert_eq!(cdf.quantile(0.1), 6.0);
        assert_eq!(cdf.quantile(0.7), 667.0);
        assert_eq!(cdf.quantile(1.0), 20_000.0);
        // Halfway between (33, 0.4) and (53, 0.53).
        assert!((cdf.quantile(0.465) - 43.0).abs() < 1e-9);
    }

    #[test]
    fn three_notations_of_one_distribution() {
        let tcl = Cdf::parse("6 1 0\n6 1 0.15\n20 1 1\n", SizeUnit::Packets);
        let fraction = Cdf::parse("6 0\n6   0.15\n20 1", SizeUnit::Packets);
        let percent = Cdf::parse("# size, %\n6 0\n6 15\n20 100\n\n", SizeUnit::Packets);
        let headed = Cdf::parse("packets,probability\n6,0\n6,0.15\n20,1", SizeUnit::Bytes);
        assert_eq!(tcl, fraction);
        assert_eq!(tcl, percent);
        assert_eq!(tcl, headed);
    }

    #[test]
    fn rounding_up_adds_half_a_step_to_a_long_ramp() {
        let cdf = Cdf::parse("0 0\n1000 1", SizeUnit::Bytes).unwrap();
        assert_eq!(cdf.mean(), 500.0);
        assert_eq!(cdf.mean_steps(1.0), 500.5);
        // Packets of 400: two fifths need one, two fifths two, one fifth three.
        assert!((cdf.mean_steps(400.0) - 1.8).abs() < 1e-12);
        let constant = Cdf::parse("1000 1", SizeUnit::Bytes).unwrap();
        assert_eq!(constant.mean_steps(400.0), 3.0);
    }

    #[test]
    fn draws_have_the_mean_that_is_computed() {
        let cdf = Cdf::named("cache").unwrap();
        let mut stream = Stream::new(9, Purpose::Flow, 0);
        let draws: Vec<f64> = (0..400_000).map(|_| cdf.draw(&mut stream) as f64).collect();
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let error = 3.0 * (variance / count).sqrt();
        assert!((mean - cdf.mean_steps(1.0)).abs() < error, "{mean}");
        assert!(draws.iter().all(|&size| (1.0..=33_333.0).contains(&size)));
    }

    #[test]
    fn draws_are_rounded_up() {
        let cdf = Cdf::parse("1 0\n2 1", SizeUnit::Packets).unwrap();
        let mut stream = Stream::new(9, Purpose::Flow, 0);
        assert!((0..100).all(|_| cdf.draw(&mut stream) == 2));
        let tiny = Cdf::parse("0 0\n0.5 1", SizeUnit::Bytes).unwrap();
        assert_eq!(tiny.draw(&mut stream), 1);
    }

    #[test]
    fn errors_say_what_to_write() {
        let message = |text| Cdf::parse(text, SizeUnit::Bytes).unwrap_err().to_string();
        assert_eq!(message("# nothing"), "the distribution has no points");
        assert_eq!(
            message("1 0\n2 0.9"),
            "line 2: the last probability is 0.9, it must be 1 or 100"
        );
        assert_eq!(message("5 0\n4 1"), "line 2: \"4 1\": sizes must not fall");
        assert_eq!(
            message("0 0.1\n4 1"),
            "line 1: \"0 0.1\": a flow has at least one byte: size 0 must have the probability 0"
        );
        assert_eq!(
            message("5 0.5\n6 0.4"),
            "line 2: \"6 0.4\": probabilities must not fall"
        );
        assert_eq!(
            message("5\n6 1"),
            "line 1: \"5\": write a size and its cumulative probability"
        );
        assert_eq!(
            message("-5 0\n6 1"),
            "line 1: \"-5 0\": the size must be a number from 0 to 1e15"
        );
        assert_eq!(
            Cdf::named("websearch").unwrap_err().to_string(),
            "there is no distribution \"websearch\"; did you mean \"web-search\"?"
        );
    }

    /// A distribution can be drawn from, or the error says where.
    fn check(text: &str, p: f64) -> Result<(), TestCaseError> {
        match Cdf::parse(text, SizeUnit::Bytes) {
            Ok(cdf) => {
                let size = cdf.quantile(p);
                prop_assert!((0.0..=LARGEST).contains(&size));
                prop_assert!((0.0..=LARGEST).contains(&cdf.mean()));
                prop_assert!(cdf.mean_steps(1460.0).is_finite());
            }
            Err(CdfError::Line { number, .. } | CdfError::End { number, .. }) => {
                prop_assert!((1..=text.lines().count()).contains(&number));
            }
            Err(error) => prop_assert_eq!(error, CdfError::Empty),
        }
        Ok(())
    }

    const TABLE: &str = "bytes,probability\n# small ones\n6,0\n6,0.15\n1e3,0.5\n20000 1 1\n";

    #[test]
    #[ignore = "takes as long as it is told to"]
    fn fuzz_for_long_distributions() {
        fuzz_for_long("distributions", TABLE, |text| check(text, 0.5));
    }

    proptest! {
        #![proptest_config(fuzzing())]

        #[test]
        fn parser_survives_any_bytes(bytes: Vec<u8>) {
            check(&String::from_utf8_lossy(&bytes), 0.5)?;
        }

        #[test]
        fn parser_survives_anything_like_a_distribution(
            text in "[0-9 .,eE+#\nabinf-]{0,60}",
            p in 0.0..1.0,
        ) {
            check(&text, p)?;
        }

        #[test]
        fn parser_survives_mistakes(
            mutant in mutant(TABLE),
            p in 0.0..1.0,
        ) {
            check(&mutant, p)?;
        }

        #[test]
        fn quantiles_rise(a in 0.0..=1.0, b in 0.0..=1.0) {
            let cdf = Cdf::named("hadoop").unwrap();
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(cdf.quantile(low) <= cdf.quantile(high));
        }
    }
}
