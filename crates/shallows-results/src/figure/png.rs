//! Figures in pixels, with a font of our own so that they are the same on every machine.

use std::sync::Arc;

use resvg::{tiny_skia, usvg};
use thiserror::Error;

const FONTS: [&[u8]; 2] = [
    include_bytes!("font/DejaVuSans.ttf"),
    include_bytes!("font/DejaVuSans-Bold.ttf"),
];

/// Pixels for each unit of the drawing.
const SCALE: f32 = 2.0;

/// Why a figure could not be turned into pixels.
#[derive(Debug, Error)]
pub enum PngError {
    /// The drawing is not valid.
    #[error("the figure is not valid SVG: {0}")]
    Svg(#[from] usvg::Error),
    /// It has no size or too large a one.
    #[error("the figure has no size that can be drawn")]
    Size,
    /// It could not be written.
    #[error("the figure cannot be written as PNG: {0}")]
    Encoding(String),
}

pub(super) fn render(svg: &str) -> Result<Vec<u8>, PngError> {
    let mut options = usvg::Options::default();
    let fonts = Arc::make_mut(&mut options.fontdb);
    for font in FONTS {
        fonts.load_font_data(font.to_vec());
    }
    fonts.set_sans_serif_family("DejaVu Sans");
    "DejaVu Sans".clone_into(&mut options.font_family);
    let tree = usvg::Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size();
    let size = size.scale_by(SCALE).ok_or(PngError::Size)?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or(PngError::Size)?;
    let transform = tiny_skia::Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    let encoded = pixels.encode_png();
    encoded.map_err(|error| PngError::Encoding(error.to_string()))
}
