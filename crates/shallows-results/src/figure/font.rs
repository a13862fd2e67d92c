//! The fonts of figures, so that they look the same on every machine.

use std::sync::OnceLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::shapes::Step;

/// DejaVu Sans, regular and bold, with the characters that figures use.
pub(super) const FILES: [&[u8]; 2] = [
    include_bytes!("font/DejaVuSans.ttf"),
    include_bytes!("font/DejaVuSans-Bold.ttf"),
];

/// A font.
#[derive(Debug)]
pub(super) struct Font {
    face: Face<'static>,
}

/// The regular or the bold font.
pub(super) fn font(bold: bool) -> &'static Font {
    static FONTS: OnceLock<[Font; 2]> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        FILES.map(|file| Font {
            face: Face::parse(file, 0).expect("a font of ours is valid"),
        })
    });
    &fonts[usize::from(bold)]
}

impl Font {
    /// Units in the height of a line.
    pub(super) fn units(&self) -> f32 {
        f32::from(self.face.units_per_em())
    }

    /// The glyph of a character; that of a missing one if the font has none.
    pub(super) fn glyph(&self, c: char) -> u16 {
        self.face.glyph_index(c).map_or(0, |glyph| glyph.0)
    }

    /// Width of a glyph in units.
    pub(super) fn advance(&self, glyph: u16) -> f32 {
        f32::from(
            self.face
                .glyph_hor_advance(GlyphId(glyph))
                .unwrap_or_default(),
        )
    }

    /// Width of a text in a size.
    pub(super) fn width(&self, text: &str, size: f32) -> f32 {
        let units: f32 = text.chars().map(|c| self.advance(self.glyph(c))).sum();
        units * size / self.units()
    }

    /// Number of glyphs.
    pub(super) fn glyphs(&self) -> u16 {
        self.face.number_of_glyphs()
    }

    /// The outline of a text that begins at a point of its baseline.
    pub(super) fn outline(
        &self,
        text: &str,
        size: f32,
        at: (f32, f32),
        upwards: bool,
    ) -> Vec<Step> {
        let mut outline = Outline {
            steps: Vec::new(),
            at: (0.0, 0.0),
            scale: size / self.units(),
            origin: at,
            upwards,
            current: (0.0, 0.0),
        };
        for c in text.chars() {
            let glyph = self.glyph(c);
            let _ = self.face.outline_glyph(GlyphId(glyph), &mut outline);
            outline.at.0 += self.advance(glyph);
        }
        outline.steps
    }
}

struct Outline {
    steps: Vec<Step>,
    at: (f32, f32),
    scale: f32,
    origin: (f32, f32),
    upwards: bool,
    current: (f32, f32),
}

impl Outline {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let (x, y) = ((self.at.0 + x) * self.scale, y * self.scale);
        if self.upwards {
            (self.origin.0 - y, self.origin.1 - x)
        } else {
            (self.origin.0 + x, self.origin.1 - y)
        }
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.current = (x, y);
        let (x, y) = self.place(x, y);
        self.steps.push(Step::Move(x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.current = (x, y);
        let (x, y) = self.place(x, y);
        self.steps.push(Step::Line(x, y));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (x0, y0) = self.current;
        let third = |from: f32, to: f32| from + 2.0 / 3.0 * (to - from);
        self.curve_to(
            third(x0, x1),
            third(y0, y1),
            third(x, x1),
            third(y, y1),
            x,
            y,
        );
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.current = (x, y);
        let (x1, y1) = self.place(x1, y1);
        let (x2, y2) = self.place(x2, y2);
        let (x, y) = self.place(x, y);
        self.steps.push(Step::Curve([x1, y1, x2, y2, x, y]));
    }

    fn close(&mut self) {
        self.steps.push(Step::Close);
    }
}
