//! The data of a figure.

use super::{Figure, Plot};

/// One row for each point, with the least and the most over the seeds.
pub(super) fn write(figure: &Figure) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut rows = vec![["panel", "curve", "x", "y", "low", "high"].map(str::to_owned)];
    for panel in &figure.panels {
        match &panel.plot {
            Plot::Points(curves) | Plot::Lines(curves) | Plot::Scatter(curves) => {
                for curve in curves {
                    rows.extend(curve.points.iter().map(|point| {
                        let [x, y, low, high] =
                            [point.x, point.y, point.low, point.high].map(|v| v.to_string());
                        [panel.title.clone(), curve.label.clone(), x, y, low, high]
                    }));
                }
            }
            Plot::Rows(values) => rows.extend(values.iter().map(|row| {
                let [y, low, high] = [row.value, row.low, row.high].map(|v| v.to_string());
                let (panel, label) = (panel.title.clone(), row.label.clone());
                [panel, label, String::new(), y, low, high]
            })),
            Plot::Boxes(values) => rows.extend(values.iter().flat_map(|row| {
                let percentiles = [
                    ("p1", row.p1),
                    ("p25", row.p25),
                    ("p50", row.p50),
                    ("p75", row.p75),
                    ("p99", row.p99),
                ];
                percentiles.map(|(name, value)| {
                    let (label, value) = (format!("{} {name}", row.label), value.to_string());
                    let (low, high) = (value.clone(), value.clone());
                    [panel.title.clone(), label, String::new(), value, low, high]
                })
            })),
            Plot::Heat(heat) => {
                for row in &heat.rows {
                    let cells = heat.columns.iter().zip(&row.values).enumerate();
                    rows.extend(cells.map(|(number, (column, value))| {
                        let x = match column.as_str() {
                            "" => number.to_string(),
                            label => label.to_owned(),
                        };
                        let value = value.to_string();
                        let (low, high) = (value.clone(), value.clone());
                        [panel.title.clone(), row.label.clone(), x, value, low, high]
                    }));
                }
            }
        }
    }
    for row in rows {
        // Writing into memory cannot fail.
        let _ = writer.write_record(row);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}
