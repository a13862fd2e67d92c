//! Colours, markers and dashes.

use std::fmt::Write as _;

/// On white: Okabe and Ito's colours, the yellow left out and the purple darker.
pub(super) const ON_LIGHT: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#aa3377", "#b87d00", "#3a9ad9", "#4d4d4d", "#7a5230",
];

/// On near-black: the same hues, lighter.
const ON_DARK: [&str; 8] = [
    "#5ab4f0", "#ff9a56", "#3fd6a5", "#f08fc4", "#f0c04a", "#a8d8ff", "#c8c8c8", "#d3a77c",
];

/// Dashes of curves without markers.
const DASHES: [&str; 5] = ["", "7 3", "2 2.5", "9 3 2 3", "4 4"];

/// Dashes of live curves, which have the colours of the simulated ones.
pub(super) const LIVE_DASH: &str = "5 3";

/// Dashes of a curve without markers.
pub(super) fn dash(style: usize) -> &'static str {
    DASHES[style % DASHES.len()]
}

/// The lengths of the dashes that a drawing names.
pub(super) fn dash_lengths(dashes: &str) -> Vec<f32> {
    let lengths = dashes.split(' ');
    lengths.filter_map(|length| length.parse().ok()).collect()
}

/// The class of a curve.
pub(super) fn class(style: usize) -> String {
    format!("c{}", style % ON_LIGHT.len())
}

/// The marker of a style around a position, as a path.
pub(super) fn marker(style: usize, x: f64, y: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let mut path = String::new();
        for (index, (dx, dy)) in corners.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.2} {:.2}", x + dx, y + dy);
        }
        path + "Z"
    };
    match style % 6 {
        0 => format!(
            "M{:.2} {y:.2}a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0Z",
            x - 3.4
        ),
        1 => polygon(&[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)]),
        2 => polygon(&[(0.0, -4.0), (3.8, 2.8), (-3.8, 2.8)]),
        3 => polygon(&[(0.0, -4.2), (4.2, 0.0), (0.0, 4.2), (-4.2, 0.0)]),
        4 => polygon(&[(0.0, 4.0), (3.8, -2.8), (-3.8, -2.8)]),
        _ => polygon(&[(-3.4, -1.3), (3.4, -1.3), (3.4, 1.3), (-3.4, 1.3)]),
    }
}

/// Everything but the colours.
const SHAPES: &str = "\
.fig text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;font-size:11px}\
.fig .heading{font-size:14px;font-weight:bold}\
.fig .title{font-size:12px;font-weight:bold}\
.fig .curve{fill:none;stroke-width:1.8;stroke-linejoin:round}\
.fig .mark{stroke-width:1}\
.fig .hollow{stroke-width:1.4}\
.fig .bar{stroke-width:1.1;fill:none}\
.fig .dots{fill:none;stroke-width:2.2;stroke-linecap:round;stroke-opacity:.45}\
.fig .axis{fill:none;stroke-width:1}\
.fig .grid{stroke-width:.7}\
.fig .reference{stroke-width:1;stroke-dasharray:4 3}";

/// The style sheet of a file of its own, on white.
pub(super) fn file_style() -> String {
    let mut style = SHAPES.to_owned();
    style += ".fig text{fill:#1a1a1a}.fig .tick{fill:#404040}.fig .axis{stroke:#404040}\
              .fig .grid{stroke:#e2e2e2}.fig .reference{stroke:#808080}.fig .mark{stroke:#ffffff}\
              .fig .hollow{fill:#ffffff}";
    for (index, colour) in ON_LIGHT.iter().enumerate() {
        let _ = write!(
            style,
            ".fig .c{index}{{stroke:{colour}}}.fig .m{index}{{fill:{colour}}}"
        );
    }
    style
}

/// The style sheet of figures in a page: their colours follow the page's light or dark. The page
/// defines `--ink`, `--soft`, `--line` and `--paper`.
pub fn page_style() -> String {
    let mut style = SHAPES.to_owned();
    style += ".fig text{fill:var(--ink)}.fig .tick{fill:var(--soft)}.fig .axis{stroke:var(--soft)}\
              .fig .grid{stroke:var(--line)}.fig .reference{stroke:var(--soft)}\
              .fig .mark{stroke:var(--paper)}.fig .hollow{fill:var(--paper)}";
    for index in 0..ON_LIGHT.len() {
        let _ = write!(
            style,
            ".fig .c{index}{{stroke:var(--c{index})}}.fig .m{index}{{fill:var(--c{index})}}"
        );
    }
    let variables = |colours: &[&str]| {
        let mut variables = String::new();
        for (index, colour) in colours.iter().enumerate() {
            let _ = write!(variables, "--c{index}:{colour};");
        }
        variables
    };
    let (light, dark) = (variables(&ON_LIGHT), variables(&ON_DARK));
    let _ = write!(
        style,
        ":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    );
    style
}
