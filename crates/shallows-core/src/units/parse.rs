//! The one parser behind every unit: an exact decimal number followed by a suffix.

use thiserror::Error;

/// Notation of one kind of quantity.
#[derive(Debug)]
pub(super) struct Grammar {
    /// The quantity with its article, as error messages name it.
    pub(super) noun: &'static str,
    /// A correct example.
    pub(super) example: &'static str,
    /// The units to choose from.
    pub(super) units: &'static str,
    /// The step below which a number cannot be stored.
    pub(super) finest: &'static str,
    /// Value of one unit.
    pub(super) scale: fn(&str) -> UnitScale,
}

/// The meaning of a suffix.
pub(super) enum UnitScale {
    /// This many of the smallest step.
    Of(u64),
    /// A unit of something else that is easily mistaken for one of ours.
    Mistaken(&'static str),
    /// Not a unit at all.
    Unknown,
}

/// A text that is not the quantity it should be: what was written and what is wrong with it.
#[derive(Debug, Clone, Error)]
#[error("{text:?} is not {}: {}", .grammar.noun, .problem.explain(.grammar))]
pub struct UnitError {
    text: String,
    grammar: &'static Grammar,
    problem: Problem,
}

impl UnitError {
    pub(super) fn new(text: &str, grammar: &'static Grammar, problem: Problem) -> Self {
        let text = text.to_owned();
        Self {
            text,
            grammar,
            problem,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Problem {
    NotANumber,
    Negative,
    Zero,
    MissingUnit,
    UnknownUnit(String),
    MistakenUnit(&'static str),
    TooFine,
    TooLarge,
}

impl Problem {
    fn explain(&self, grammar: &Grammar) -> String {
        let Grammar {
            example,
            units,
            finest,
            ..
        } = grammar;
        match self {
            Self::NotANumber => format!("write a number and a unit such as {example:?}"),
            Self::Negative => "it is negative".to_owned(),
            Self::Zero => "it is zero".to_owned(),
            Self::MissingUnit => format!("the unit is missing, use {units}"),
            Self::UnknownUnit(unit) => format!("unknown unit {unit:?}, use {units}"),
            Self::MistakenUnit(hint) => format!("{hint}, use {units}"),
            Self::TooFine => format!("it is not a whole number of {finest}"),
            Self::TooLarge => "it is too large".to_owned(),
        }
    }
}

/// Reads `text` as a number of the smallest steps of `grammar`.
pub(super) fn parse(text: &str, grammar: &'static Grammar) -> Result<u64, UnitError> {
    count(text, grammar).map_err(|problem| UnitError::new(text, grammar, problem))
}

fn count(text: &str, grammar: &Grammar) -> Result<u64, Problem> {
    if text.starts_with('-') {
        return Err(Problem::Negative);
    }
    let (whole, rest) = split_digits(text);
    let (fraction, unit) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("0", rest),
    };
    if whole.is_empty() || fraction.is_empty() {
        return Err(Problem::NotANumber);
    }
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let scale = match (grammar.scale)(unit) {
        UnitScale::Of(scale) => scale,
        UnitScale::Mistaken(hint) => return Err(Problem::MistakenUnit(hint)),
        UnitScale::Unknown if text == "0" => 1,
        UnitScale::Unknown if unit.is_empty() => return Err(Problem::MissingUnit),
        UnitScale::Unknown => return Err(Problem::UnknownUnit(unit.to_owned())),
    };
    let fraction = scaled_fraction(fraction, scale).ok_or(Problem::TooFine)?;
    whole
        .bytes()
        .try_fold(0_u64, |n, digit| {
            n.checked_mul(10)?.checked_add(value(digit))
        })
        .and_then(|n| n.checked_mul(scale)?.checked_add(fraction))
        .ok_or(Problem::TooLarge)
}

/// `0.digits * scale`, or `None` if that is not an integer.
///
/// Schoolbook multiplication from the last digit, so that any number of digits stays exact.
fn scaled_fraction(digits: &str, scale: u64) -> Option<u64> {
    digits.bytes().rev().try_fold(0, |carry, digit| {
        let product = value(digit) * scale + carry;
        product.is_multiple_of(10).then_some(product / 10)
    })
}

fn value(digit: u8) -> u64 {
    u64::from(digit - b'0')
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}
