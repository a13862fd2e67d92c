//! What figures and claims can ask of a run.

use serde::Deserialize;
use shallows_results::statistics::{Percentile, PercentileRule, Statistics};
use shallows_results::summary::ClassSummary;

use super::measured::Measured;

/// A number of a run, by the name that figures have for it.
///
/// | name | what |
/// |---|---|
/// | `all.mean`, `small.p99`, ... | flow completion time of a size class, in ms |
/// | `rtt.mean`, `rtt.p99` | RTT of pings, in us |
/// | `goodput`, `goodput.1` | of all queues or of one, from 1, in Mbps |
/// | `timeouts` | TCP timeouts |
/// | `mice` | percent of small flows that fit 16 packets |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Metric {
    Fct(Class, Statistic),
    Rtt(Statistic),
    Goodput(Option<usize>),
    Timeouts,
    Mice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    All,
    Small,
    Medium,
    Large,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statistic {
    Mean,
    P50,
    P99,
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let unknown = || {
            format!(
                "{name:?} is no metric; write one such as all.mean, small.p99, rtt.mean, \
                 goodput.1, timeouts"
            )
        };
        let (what, part) = name.split_once('.').unwrap_or((&name, ""));
        let statistic = || match part {
            "mean" => Ok(Statistic::Mean),
            "p50" => Ok(Statistic::P50),
            "p99" => Ok(Statistic::P99),
            _ => Err(unknown()),
        };
        let fct = |class| Ok(Self::Fct(class, statistic()?));
        match (what, part) {
            ("all", _) => fct(Class::All),
            ("small", _) => fct(Class::Small),
            ("medium", _) => fct(Class::Medium),
            ("large", _) => fct(Class::Large),
            ("rtt", _) => Ok(Self::Rtt(statistic()?)),
            ("goodput", "") => Ok(Self::Goodput(None)),
            ("goodput", number) => match number.parse::<usize>() {
                Ok(number) if number > 0 => Ok(Self::Goodput(Some(number - 1))),
                _ => Err(unknown()),
            },
            ("timeouts", "") => Ok(Self::Timeouts),
            ("mice", "") => Ok(Self::Mice),
            _ => Err(unknown()),
        }
    }
}

impl Metric {
    /// Its value in a run, if the run has one.
    pub(super) fn of(self, run: &Measured) -> Option<f64> {
        match self {
            Self::Fct(class, statistic) => {
                let classes = &run.summary.classes;
                let class: &ClassSummary = match class {
                    Class::All => &classes.all,
                    Class::Small => &classes.small,
                    Class::Medium => &classes.medium,
                    Class::Large => &classes.large,
                };
                let fct = class.fct?.map(|time| time.as_secs_f64() * 1e3);
                Some(statistic.of(&fct))
            }
            Self::Rtt(statistic) => statistic.of_values(&run.rtt_us),
            Self::Goodput(queue) => run.mean_goodput(queue),
            Self::Timeouts => Some(run.summary.timeouts.total() as f64),
            Self::Mice => run.mice_percent,
        }
    }
}

impl Statistic {
    fn of(self, statistics: &Statistics<f64>) -> f64 {
        match self {
            Self::Mean => statistics.mean,
            Self::P50 => statistics.p50,
            Self::P99 => statistics.p99,
        }
    }

    /// Of values that are sorted.
    fn of_values(self, sorted: &[f64]) -> Option<f64> {
        let rule = PercentileRule::NearestRank;
        match self {
            Self::Mean if sorted.is_empty() => None,
            Self::Mean => Some(sorted.iter().sum::<f64>() / sorted.len() as f64),
            Self::P50 => rule.select(sorted, Percentile::P50),
            Self::P99 => rule.select(sorted, Percentile::P99),
        }
    }
}
