//! The page.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use super::{
    ClaimOutcome, Deviation, FigureOutcome, LiveValue, Paper, ReportError, Reproduction, Size,
    Verdict,
};
use crate::figure::{Curve, Plot, page_style};

/// Data of a figure for the template, besides its outcome.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    outcome: &'a FigureOutcome,
    /// In the contents.
    short: String,
    panels: Vec<String>,
    legend: String,
    command: String,
    claims: Vec<ShownClaim<'a>>,
    live_note: Option<String>,
    data: Vec<Table>,
}

#[derive(Serialize)]
struct ShownClaim<'a> {
    #[serde(flatten)]
    claim: &'a ClaimOutcome,
    figure: &'a str,
    verdict_text: String,
    symbol: &'static str,
    live_text: Option<String>,
    live_symbol: Option<&'static str>,
}

/// The values behind a panel.
#[derive(Serialize)]
struct Table {
    title: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Data for the template.
#[derive(Serialize)]
struct Page<'a> {
    papers: Vec<ShownPaper<'a>>,
    style: String,
    version: &'static str,
}

#[derive(Serialize)]
struct ShownPaper<'a> {
    paper: &'a Paper,
    figures: Vec<Shown<'a>>,
    tally: Vec<Tally>,
    quick: bool,
    live: bool,
    deviations: &'a [Deviation],
}

#[derive(Serialize)]
struct Tally {
    verdict: Verdict,
    text: String,
    count: usize,
}

pub(super) fn render(reproductions: &[Reproduction]) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("page", include_str!("page.html"))?;
    let page = Page {
        papers: reproductions.iter().map(shown_paper).collect(),
        style: format!("{}{}", include_str!("page.css"), page_style()),
        version: env!("CARGO_PKG_VERSION"),
    };
    let template = environment.get_template("page")?;
    Ok(template.render(Value::from(Serde(page)))?)
}

fn shown_paper(reproduction: &Reproduction) -> ShownPaper<'_> {
    let Reproduction {
        paper,
        figures,
        deviations,
    } = reproduction;
    let tally = reproduction.tally().into_iter();
    let tally = tally.filter(|(_, count)| *count > 0);
    let tally = tally.map(|(verdict, count)| Tally {
        verdict,
        text: verdict.to_string(),
        count,
    });
    ShownPaper {
        paper,
        figures: figures
            .iter()
            .map(|figure| shown(&paper.id, figure))
            .collect(),
        tally: tally.collect(),
        quick: figures.iter().any(|figure| figure.size == Size::Quick),
        live: figures.iter().any(|figure| figure.live.is_some()),
        deviations,
    }
}

fn shown<'a>(paper: &str, outcome: &'a FigureOutcome) -> Shown<'a> {
    let (panels, legend) = outcome.figure.to_inline_svg();
    let option = match outcome.size {
        Size::Quick => " --quick",
        Size::Live => " --live",
        Size::Full => "",
    };
    let claims = outcome.claims.iter().map(|claim| ShownClaim {
        claim,
        figure: &outcome.id,
        verdict_text: claim.verdict_text(),
        symbol: symbol(claim.verdict),
        live_text: claim.live.as_ref().map(LiveValue::verdict_text),
        live_symbol: claim.live.as_ref().map(|live| symbol(live.verdict)),
    });
    let figure = outcome.id.strip_suffix("-live").unwrap_or(&outcome.id);
    let number = figure.strip_prefix("fig");
    let mut short = number.map_or_else(
        || outcome.title.clone(),
        |number| format!("Figure {number}"),
    );
    if outcome.live.is_some() {
        short += ", live";
    }
    Shown {
        short,
        panels,
        legend,
        command: format!("shallows repro {paper}/{figure}{option}{}", outcome.options),
        claims: claims.collect(),
        live_note: outcome.live.as_ref().map(ToString::to_string),
        data: tables(outcome),
        outcome,
    }
}

fn symbol(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "\u{2713}",
        Verdict::SameDirection => "\u{2197}",
        Verdict::NotReproduced => "\u{2717}",
        Verdict::Undecided => "?",
        Verdict::NotMeasured => "\u{2013}",
    }
}

/// Panels whose values a person can read: curves with few points, and rows.
fn tables(outcome: &FigureOutcome) -> Vec<Table> {
    let value = |y: f64, low: f64, high: f64| {
        if low < high {
            format!("{y:.3} ({low:.3} to {high:.3})")
        } else {
            format!("{y:.3}")
        }
    };
    let mut tables = Vec::new();
    for panel in &outcome.figure.panels {
        let (heads, rows) = match &panel.plot {
            Plot::Lines(_) | Plot::Scatter(_) => continue,
            Plot::Rows(rows) => {
                let heads = vec![String::new(), panel.x.label.clone()];
                let cells = rows
                    .iter()
                    .map(|row| vec![row.label.clone(), value(row.value, row.low, row.high)]);
                (heads, cells.collect())
            }
            Plot::Boxes(rows) => {
                let heads = [&panel.x.label, "p1", "p25", "p50", "p75", "p99"].map(str::to_owned);
                let cells = rows.iter().map(|row| {
                    let values = [row.p1, row.p25, row.p50, row.p75, row.p99];
                    let cells = values.iter().map(|value| format!("{value:.3}"));
                    std::iter::once(row.label.clone()).chain(cells).collect()
                });
                (heads.to_vec(), cells.collect())
            }
            Plot::Heat(heat) => {
                let heads = std::iter::once(panel.x.label.clone()).chain(heat.columns.clone());
                let cells = heat.rows.iter().map(|row| {
                    let values = row.values.iter().map(|value| format!("{value:.3}"));
                    std::iter::once(row.label.clone()).chain(values).collect()
                });
                (heads.collect(), cells.collect())
            }
            Plot::Points(curves) => {
                let labels = curves.iter().map(|curve| curve.label.clone());
                let heads = std::iter::once(panel.x.label.clone()).chain(labels);
                let mut xs: Vec<f64> = curves
                    .iter()
                    .flat_map(|curve| &curve.points)
                    .map(|point| point.x)
                    .collect();
                xs.sort_unstable_by(f64::total_cmp);
                xs.dedup();
                let cell = |x: f64, curve: &Curve| {
                    let point = curve.points.iter().find(|point| point.x == x);
                    point.map_or_else(String::new, |p| value(p.y, p.low, p.high))
                };
                let rows = xs.iter().map(|&x| {
                    let cells = curves.iter().map(|curve| cell(x, curve));
                    std::iter::once(x.to_string()).chain(cells).collect()
                });
                (heads.collect(), rows.collect())
            }
        };
        tables.push(Table {
            title: panel.title.clone(),
            heads,
            rows,
        });
    }
    tables
}
