//! Numbers that need not be finite. JSON has no others, so what is written as `null` is read as NaN.

use serde::{Deserialize as _, Deserializer};

/// Reads a list in which `null` stands for a number that is not finite.
pub(crate) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(from)?;
    let numbers = numbers.into_iter();
    Ok(numbers.map(|number| number.unwrap_or(f64::NAN)).collect())
}
