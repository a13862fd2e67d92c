//! The shapes of a figure, for formats other than SVG.
//!
//! Figures are drawn as SVG once (`svg.rs`). This reads that drawing back: it knows the elements,
//! path commands and classes that we write, and nothing else of SVG.

use super::font::font;
use super::style::{ON_LIGHT, dash_lengths};

/// A drawing in its own units, y downwards.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) shapes: Vec<Shape>,
}

/// A shape with absolute coordinates.
#[derive(Debug)]
pub(super) enum Shape {
    Path {
        steps: Vec<Step>,
        fill: Option<Colour>,
        stroke: Option<Stroke>,
    },
    Text(Text),
}

/// A line of text.
#[derive(Debug)]
pub(super) struct Text {
    /// Position of the anchor on the baseline.
    at: (f32, f32),
    /// Share of the text's width to the left of the anchor.
    anchor: f32,
    /// True if it runs upwards.
    pub(super) upwards: bool,
    pub(super) size: f32,
    pub(super) bold: bool,
    pub(super) colour: Colour,
    pub(super) text: String,
}

impl Text {
    /// The position at which the text begins.
    pub(super) fn start(&self) -> (f32, f32) {
        let before = self.anchor * font(self.bold).width(&self.text, self.size);
        let (x, y) = self.at;
        if self.upwards {
            (x, y + before)
        } else {
            (x - before, y)
        }
    }
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Move(f32, f32),
    Line(f32, f32),
    Curve([f32; 6]),
    Close,
}

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

/// A line.
#[derive(Clone, Debug)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pub(super) width: f32,
    pub(super) dashes: Vec<f32>,
    pub(super) is_round: bool,
    pub(super) opacity: f32,
}

/// Reads the shapes of a drawing.
pub(super) fn read(svg: &str) -> Drawing {
    let mut drawing = Drawing::default();
    let mut offsets = vec![(0.0, 0.0)];
    let mut rest = svg;
    while let Some(open) = rest.find('<') {
        let Some(end) = rest[open..].find('>') else {
            break;
        };
        let tag = &rest[open + 1..open + end];
        rest = &rest[open + end + 1..];
        let offset = offsets.last().copied().unwrap_or_default();
        match tag.split([' ', '/']).next().unwrap_or_default() {
            "svg" => {
                let size = attribute(tag, "viewBox").map(numbers).unwrap_or_default();
                if let [_, _, width, height] = size[..] {
                    (drawing.width, drawing.height) = (width, height);
                }
            }
            // Their content is not drawn.
            "style" | "title" => rest = &rest[rest.find('<').unwrap_or(0)..],
            "g" => {
                let (dx, dy) = translation(tag);
                offsets.push((offset.0 + dx, offset.1 + dy));
            }
            "" if tag == "/g" => {
                offsets.pop();
            }
            "rect" => drawing.shapes.extend(rectangle(tag, offset)),
            "path" => drawing.shapes.extend(path(tag, offset)),
            "text" => {
                let end = rest.find('<').unwrap_or(rest.len());
                drawing.shapes.push(text(tag, &rest[..end], offset));
            }
            _ => {}
        }
    }
    drawing
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    let end = tag[start..].find('"')?;
    Some(&tag[start..start + end])
}

fn number(tag: &str, name: &str) -> f32 {
    attribute(tag, name)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

fn numbers(text: &str) -> Vec<f32> {
    let parts = text.split([' ', ',', '(', ')']);
    parts.filter_map(|part| part.parse().ok()).collect()
}

fn translation(tag: &str) -> (f32, f32) {
    let transform = attribute(tag, "transform").unwrap_or_default();
    match numbers(transform.split(") ").next().unwrap_or_default())[..] {
        [x, y] => (x, y),
        _ => (0.0, 0.0),
    }
}

fn colour(text: &str) -> Option<Colour> {
    let hex = text.strip_prefix('#')?;
    let part = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    Some([part(0)?, part(2)?, part(4)?])
}

/// The colour of a class such as `c3` or `m3`.
fn class_colour(class: &str, kind: char) -> Option<Colour> {
    let number: usize = class.strip_prefix(kind)?.parse().ok()?;
    colour(ON_LIGHT.get(number)?)
}

fn rectangle(tag: &str, (dx, dy): (f32, f32)) -> Option<Shape> {
    let (x, y) = (dx + number(tag, "x"), dy + number(tag, "y"));
    let (right, bottom) = (x + number(tag, "width"), y + number(tag, "height"));
    Some(Shape::Path {
        steps: vec![
            Step::Move(x, y),
            Step::Line(right, y),
            Step::Line(right, bottom),
            Step::Line(x, bottom),
            Step::Close,
        ],
        fill: Some(colour(attribute(tag, "fill")?)?),
        stroke: None,
    })
}

fn path(tag: &str, offset: (f32, f32)) -> Option<Shape> {
    let classes = attribute(tag, "class").unwrap_or_default();
    let of_kind = |kind| {
        classes
            .split(' ')
            .find_map(|class| class_colour(class, kind))
    };
    let (width, line, mut dashes) = match classes.split(' ').next().unwrap_or_default() {
        "curve" => (1.8, of_kind('c'), Vec::new()),
        "bar" => (1.1, of_kind('c'), Vec::new()),
        "dots" => (2.2, of_kind('c'), Vec::new()),
        "hollow" => (1.4, of_kind('c'), Vec::new()),
        "mark" => (1.0, Some([255, 255, 255]), Vec::new()),
        "axis" => (1.0, Some([0x40, 0x40, 0x40]), Vec::new()),
        "grid" => (0.7, Some([0xe2, 0xe2, 0xe2]), Vec::new()),
        "reference" => (1.0, Some([0x80, 0x80, 0x80]), vec![4.0, 3.0]),
        _ => return None,
    };
    if let Some(written) = attribute(tag, "stroke-dasharray") {
        dashes = dash_lengths(written);
    }
    let is_dots = classes.starts_with("dots");
    Some(Shape::Path {
        steps: steps(attribute(tag, "d")?, offset),
        fill: if classes.starts_with("hollow") {
            Some([255, 255, 255])
        } else {
            of_kind('m')
        },
        stroke: line.map(|colour| Stroke {
            colour,
            width,
            dashes,
            is_round: is_dots,
            opacity: if is_dots { 0.45 } else { 1.0 },
        }),
    })
}

fn text(tag: &str, content: &str, (dx, dy): (f32, f32)) -> Shape {
    let (size, bold, shade) = match attribute(tag, "class").unwrap_or_default() {
        "heading" => (14.0, true, [0x1a; 3]),
        "title" => (12.0, true, [0x1a; 3]),
        "tick" => (11.0, false, [0x40; 3]),
        _ => (11.0, false, [0x1a; 3]),
    };
    let written = attribute(tag, "style").and_then(|style| style.strip_prefix("fill:"));
    let shade = written.and_then(colour).unwrap_or(shade);
    let (tx, ty) = translation(tag);
    let at = (dx + tx + number(tag, "x"), dy + ty + number(tag, "y"));
    let content = content.replace("&lt;", "<").replace("&gt;", ">");
    Shape::Text(Text {
        at,
        upwards: tag.contains("rotate(-90)"),
        size,
        bold,
        colour: shade,
        anchor: match attribute(tag, "text-anchor") {
            Some("middle") => 0.5,
            Some("end") => 1.0,
            _ => 0.0,
        },
        text: content.replace("&quot;", "\"").replace("&amp;", "&"),
    })
}

/// The steps of a path with the commands M, L, H, V, h, v, a (half a circle) and Z.
fn steps(path: &str, (dx, dy): (f32, f32)) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut x, mut y, mut start) = (0.0, 0.0, (0.0, 0.0));
    let mut rest = path.trim();
    while let Some(command) = rest.chars().next() {
        rest = &rest[1..];
        let end = rest
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let values = numbers(&rest[..end]);
        rest = &rest[end..];
        match (command, &values[..]) {
            ('M', &[to_x, to_y]) => {
                (x, y, start) = (to_x, to_y, (to_x, to_y));
                steps.push(Step::Move(x + dx, y + dy));
                continue;
            }
            ('L', &[to_x, to_y]) => (x, y) = (to_x, to_y),
            ('H', &[to]) => x = to,
            ('V', &[to]) => y = to,
            ('h', &[by]) => x += by,
            ('v', &[by]) => y += by,
            ('a', &[.., by, _]) => {
                half_circle(&mut steps, (x + dx, y + dy), by);
                x += by;
                continue;
            }
            ('Z', _) => {
                (x, y) = start;
                steps.push(Step::Close);
                continue;
            }
            _ => continue,
        }
        steps.push(Step::Line(x + dx, y + dy));
    }
    steps
}

/// Half a circle from a point to another beside it: two quarters, as cubic curves.
fn half_circle(steps: &mut Vec<Step>, (x, y): (f32, f32), by: f32) {
    /// Length of the handles of a quarter of a circle, over its radius.
    const HANDLE: f32 = 0.552_285;
    let radius = by / 2.0;
    let handle = HANDLE * radius;
    let (middle, end) = (x + radius, x + by);
    let low = y + radius;
    steps.push(Step::Curve([
        x,
        y + handle,
        middle - handle,
        low,
        middle,
        low,
    ]));
    steps.push(Step::Curve([middle + handle, low, end, y + handle, end, y]));
}
