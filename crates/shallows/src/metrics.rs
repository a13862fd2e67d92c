//! `shallows metrics`.

use std::fmt::Write as _;

use shallows_study::metrics;

use crate::failure::Failure;
use crate::output;

/// Lists the metrics, one a line.
pub(crate) fn list() -> Result<(), Failure> {
    let width = metrics().iter().map(|row| row.example.len()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for row in metrics() {
        let needs = match row.needs {
            "" => String::new(),
            needs => format!("; needs {needs}"),
        };
        let (name, unit, about) = (row.example, row.unit, row.about);
        writeln!(text, "{name:<width$}  {unit:<4}  {about}{needs}").expect("a text takes any line");
    }
    text += "A class is all, small, medium, large, long-lived, or a service by its number or by its name\n\
             in report.services: service.26, service.storage. A statistic is mean, max, rms, sum or\n\
             a percentile such as p99.9. A sum of metrics has + between them.\n";
    Ok(output::print(&text)?)
}
