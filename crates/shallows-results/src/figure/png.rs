//! Figures in pixels.

use tiny_skia::{
    Color, FillRule, LineCap, Paint, Path, PathBuilder, Pixmap, Stroke as Pen, StrokeDash,
    Transform,
};

use super::font::font;
use super::shapes::{Colour, Drawing, Shape, Step};

/// Pixels for each unit of the drawing.
const SCALE: f32 = 2.0;

/// The drawing as a PNG file.
///
/// # Panics
/// If the drawing is empty or has more pixels than memory.
pub(super) fn render(drawing: &Drawing) -> Vec<u8> {
    let pixels = |length: f32| (length * SCALE).ceil().max(1.0) as u32;
    let (width, height) = (pixels(drawing.width), pixels(drawing.height));
    let mut image = Pixmap::new(width, height).expect("a figure has a size");
    image.fill(Color::WHITE);
    let transform = Transform::from_scale(SCALE, SCALE);
    for shape in &drawing.shapes {
        match shape {
            Shape::Path {
                steps,
                fill,
                stroke,
            } => {
                let Some(path) = path(steps) else { continue };
                if let Some(fill) = fill {
                    let paint = paint(*fill, 1.0);
                    image.fill_path(&path, &paint, FillRule::Winding, transform, None);
                }
                if let Some(stroke) = stroke {
                    let mut pen = Pen {
                        width: stroke.width,
                        dash: StrokeDash::new(stroke.dashes.clone(), 0.0),
                        ..Pen::default()
                    };
                    if stroke.is_round {
                        pen.line_cap = LineCap::Round;
                    }
                    let paint = paint(stroke.colour, stroke.opacity);
                    image.stroke_path(&path, &paint, &pen, transform, None);
                }
            }
            Shape::Text(text) => {
                let font = font(text.bold);
                let outline = font.outline(&text.text, text.size, text.start(), text.upwards);
                if let Some(path) = path(&outline) {
                    let paint = paint(text.colour, 1.0);
                    image.fill_path(&path, &paint, FillRule::Winding, transform, None);
                }
            }
        }
    }
    image
        .encode_png()
        .expect("an image in memory can be encoded")
}

fn paint([red, green, blue]: Colour, opacity: f32) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (255.0 * opacity) as u8);
    paint
}

fn path(steps: &[Step]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for step in steps {
        match *step {
            Step::Move(x, y) => path.move_to(x, y),
            Step::Line(x, y) => path.line_to(x, y),
            Step::Curve([x1, y1, x2, y2, x, y]) => path.cubic_to(x1, y1, x2, y2, x, y),
            Step::Close => path.close(),
        }
    }
    path.finish()
}
