//! Values that a paper gives for points of a panel, as its claims have them.

use super::claim::{At, ClaimConfig, Measure, PaperValue};
use crate::metric::Metric;

/// A point of a panel.
pub(super) struct Place<'a> {
    pub(super) metric: &'a Metric,
    /// The point of the axis of curves, by id and label.
    pub(super) names: [&'a str; 2],
    /// The number on the x axis, if the study has one.
    pub(super) x: Option<f64>,
    /// The point that the panel divides by.
    pub(super) normalise: Option<&'a str>,
}

/// The paper's value at a point: that of the first claim about it alone which gives a number for
/// what the panel shows.
pub(super) fn value(claims: &[ClaimConfig], place: &Place<'_>) -> Option<f64> {
    claims.iter().find_map(|claim| of_claim(claim, place))
}

fn of_claim(claim: &ClaimConfig, place: &Place<'_>) -> Option<f64> {
    let PaperValue::About(value) = claim.paper else {
        return None;
    };
    let [of] = claim.of.names() else {
        return None;
    };
    let is_here = match (claim.at, place.x) {
        (At::X(x), Some(here)) => x == here,
        (At::Only, None) => true,
        _ => false,
    };
    let is_same = claim.metric.metric == *place.metric && claim.to_metric.is_none();
    let is_plain = !claim.rise && claim.between.is_none() && claim.r#where.is_empty();
    if !(is_here && is_same && is_plain && place.names.contains(&&**of)) {
        return None;
    }
    match (claim.measure, place.normalise) {
        (Measure::Value, None) => Some(value),
        (Measure::Ratio, to) if to == claim.to.as_deref() && to.is_some() => Some(value),
        (Measure::Reduction, to) if to == claim.to.as_deref() && to.is_some() => {
            Some(1.0 - value / 100.0)
        }
        (Measure::Increase, to) if to == claim.to.as_deref() && to.is_some() => {
            Some(1.0 + value / 100.0)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::claim;
    use super::*;

    fn at(claim: ClaimConfig, x: Option<f64>, normalise: Option<&str>) -> Option<f64> {
        let metric = claim.metric.metric.clone();
        let place = Place {
            metric: &metric,
            names: ["a", "Scheme A"],
            x,
            normalise,
        };
        value(&[claim], &place)
    }

    #[test]
    fn a_claim_gives_the_value_that_its_panel_shows() {
        let ratio = "to = \"b\"\nat = 0.5\nmeasure = ";
        let of = |measure: &str| claim("about = 40", &format!("{ratio}\"{measure}\""));
        assert_eq!(at(of("reduction"), Some(0.5), Some("b")), Some(0.6));
        assert_eq!(at(of("increase"), Some(0.5), Some("b")), Some(1.4));
        assert_eq!(at(of("ratio"), Some(0.5), Some("b")), Some(40.0));
        // Another x, another base, or values that are not divided.
        assert_eq!(at(of("ratio"), Some(0.6), Some("b")), None);
        assert_eq!(at(of("ratio"), Some(0.5), Some("c")), None);
        assert_eq!(at(of("ratio"), Some(0.5), None), None);
        let plain = claim("about = 40", "measure = \"value\"");
        assert_eq!(at(plain, None, None), Some(40.0));
        let largest = claim("about = 40", "measure = \"value\"\nat = \"largest\"");
        assert_eq!(at(largest, Some(0.5), None), None);
        let bound = claim("at-most = 40", "measure = \"value\"");
        assert_eq!(at(bound, None, None), None);
    }
}
