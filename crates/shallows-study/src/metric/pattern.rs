//! Names of metrics: patterns of words and arguments.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use shallows_core::units::{Bytes, Time};
use shallows_results::latencies::Operation;
use shallows_results::record::FlowRecord;
use shallows_results::size_class::{ClassCounts, SizeClass};
use shallows_results::statistics::{Percentile, PercentileRule};
use shallows_results::summary::Summary;

/// Arguments in the name of a metric. A part that the pattern lacks has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) class: Class,
    /// Name of the service, if the class is a service by name.
    pub(crate) service: Option<String>,
    pub(crate) statistic: Statistic,
    /// A number, from 0.
    pub(crate) number: Option<u64>,
    pub(crate) port: String,
    pub(crate) operation: Option<Operation>,
    pub(crate) size: Bytes,
}

/// Flows of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    #[default]
    All,
    Only(SizeClass),
    /// Flows without end.
    LongLived,
    /// The number that the scenario has for it.
    Service(u16),
}

impl Arguments {
    /// The same with the number of the service that it names, if the scenario has the name.
    pub(super) fn resolved(&self, services: &BTreeMap<String, u16>) -> Option<Cow<'_, Self>> {
        let Some(name) = &self.service else {
            return Some(Cow::Borrowed(self));
        };
        Some(Cow::Owned(Self {
            class: Class::Service(*services.get(name)?),
            ..self.clone()
        }))
    }
}

/// A statistic of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Statistic {
    #[default]
    Mean,
    Max,
    Rms,
    Sum,
    Percentile(Percentile),
}

/// The arguments of `name`, if it follows `pattern`: words and arguments with dots between them.
///
/// | argument | text |
/// |---|---|
/// | `CLASS` | `all`, `small`, `medium`, `large`, `long-lived`, `service.26` or `service.storage` |
/// | `STATISTIC` | `mean`, `max`, `rms`, `sum` or a percentile; the last part |
/// | `NUMBER` | a number from 0 |
/// | `ORDINAL` | a number from 1 |
/// | `PORT` | the name of a port |
/// | `OPERATION` | an application and its operation |
/// | `SIZE` | a size; the last part |
///
/// A last argument with a question mark may be left out.
pub(super) fn read(pattern: &str, name: &str) -> Option<Arguments> {
    let mut arguments = Arguments::default();
    let mut rest = Some(name);
    for part in pattern.split('.') {
        let (part, is_optional) = match part.strip_suffix('?') {
            Some(part) => (part, true),
            None => (part, false),
        };
        if is_optional && rest.is_none() {
            continue;
        }
        let text = rest?;
        let (word, after) = match text.split_once('.') {
            Some((word, after)) => (word, Some(after)),
            None => (text, None),
        };
        rest = after;
        match part {
            "CLASS" if word == "service" => {
                let (number, after) = match after?.split_once('.') {
                    Some((number, after)) => (number, Some(after)),
                    None => (after?, None),
                };
                match number.parse() {
                    Ok(number) => arguments.class = Class::Service(number),
                    Err(_) if is_name(number) => {
                        // Until the run says which one it is.
                        arguments.class = Class::Service(u16::MAX);
                        arguments.service = Some(number.to_owned());
                    }
                    Err(_) => return None,
                }
                rest = after;
            }
            "CLASS" => arguments.class = word.parse().ok()?,
            "STATISTIC" => {
                arguments.statistic = text.parse().ok()?;
                rest = None;
            }
            "NUMBER" => arguments.number = Some(word.parse().ok()?),
            "ORDINAL" => arguments.number = Some(word.parse::<u64>().ok()?.checked_sub(1)?),
            "PORT" => word.clone_into(&mut arguments.port),
            "OPERATION" => {
                let (operation, after) = match after?.split_once('.') {
                    Some((operation, after)) => (operation, Some(after)),
                    None => (after?, None),
                };
                arguments.operation = Some(Operation {
                    application: word.to_owned(),
                    name: operation.to_owned(),
                });
                rest = after;
            }
            "SIZE" => {
                arguments.size = text.parse().ok()?;
                rest = None;
            }
            literal => {
                if word != literal {
                    return None;
                }
            }
        }
    }
    rest.is_none().then_some(arguments)
}

/// Returns whether a service may have this name. Statistics are no names: `service.p99` lacks one.
fn is_name(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
    begins && text.bytes().all(is_word) && text.parse::<Statistic>().is_err()
}

impl FromStr for Class {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "all" => Ok(Self::All),
            "small" => Ok(Self::Only(SizeClass::Small)),
            "medium" => Ok(Self::Only(SizeClass::Medium)),
            "large" => Ok(Self::Only(SizeClass::Large)),
            "long-lived" => Ok(Self::LongLived),
            _ => {
                let number = name.strip_prefix("service.").ok_or(())?;
                number.parse().map(Self::Service).map_err(|_| ())
            }
        }
    }
}

impl FromStr for Statistic {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "mean" => return Ok(Self::Mean),
            "max" => return Ok(Self::Max),
            "rms" => return Ok(Self::Rms),
            "sum" => return Ok(Self::Sum),
            _ => {}
        }
        let percent: f64 = name.strip_prefix('p').ok_or(())?.parse().map_err(|_| ())?;
        // Percentiles are exact to tenths.
        let per_mille = (percent * 10.0).round();
        let is_exact = (per_mille - percent * 10.0).abs() < 1e-9;
        if !is_exact || !(0.0..=1000.0).contains(&per_mille) {
            return Err(());
        }
        Ok(Self::Percentile(Percentile::from_per_mille(
            per_mille as u16,
        )))
    }
}

impl Class {
    pub(super) fn has(self, flow: &FlowRecord, summary: &Summary) -> bool {
        match self {
            Self::All => true,
            Self::Only(class) => summary.size_classes.class_of(flow.bytes) == class,
            // A flow without end has no ideal time.
            Self::LongLived => flow.ideal_fct == Time::ZERO,
            Self::Service(service) => flow.service == service,
        }
    }

    /// Count in the summary, which has no counts by service.
    pub(super) fn count(self, counts: &ClassCounts) -> Option<f64> {
        let count = match self {
            Self::All => counts.total(),
            Self::Only(SizeClass::Small) => counts.small,
            Self::Only(SizeClass::Medium) => counts.medium,
            Self::Only(SizeClass::Large) => counts.large,
            Self::LongLived | Self::Service(_) => return None,
        };
        Some(count as f64)
    }
}

impl Statistic {
    /// Of values that are sorted.
    pub(crate) fn of(self, sorted: &[f64], rule: PercentileRule) -> Option<f64> {
        let count = sorted.len() as f64;
        match self {
            _ if sorted.is_empty() => None,
            Self::Mean => Some(sorted.iter().sum::<f64>() / count),
            Self::Rms => {
                Some((sorted.iter().map(|value| value * value).sum::<f64>() / count).sqrt())
            }
            Self::Sum => Some(sorted.iter().sum()),
            Self::Max => sorted.last().copied(),
            Self::Percentile(percentile) => rule.select(sorted, percentile),
        }
    }
}
