//! Figures as PDF, with their fonts embedded, for papers.

use std::fmt::Write as _;

use super::font::{FILES, font};
use super::shapes::{Drawing, Shape, Step};

/// The drawing as a PDF file of a page that is as large as it, `scale` points for each unit.
pub(super) fn render(drawing: &Drawing, scale: f32) -> Vec<u8> {
    let content = content(drawing, scale);
    let (width, height) = (drawing.width * scale, drawing.height * scale);
    let mut file = File::default();
    file.object("<< /Type /Catalog /Pages 2 0 R >>");
    file.object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
    file.object(&format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:.2} {height:.2}] /Contents 4 0 R \
         /Resources << /Font << /F0 5 0 R /F1 10 0 R >> \
         /ExtGState << /G0 << /CA 1 >> /G1 << /CA 0.45 >> >> >> >>"
    ));
    file.stream("", content.as_bytes());
    for (index, bold) in [(5, false), (10, true)] {
        embed(&mut file, index, bold);
    }
    file.finish()
}

/// Adds the five objects of a font, the first of which has the number `first`.
fn embed(file: &mut File, first: usize, bold: bool) {
    let font = font(bold);
    let name = if bold {
        "DejaVuSans-Bold"
    } else {
        "DejaVuSans"
    };
    let [cid, descriptor, data, unicode] = [1, 2, 3, 4].map(|after| first + after);
    file.object(&format!(
        "<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /Identity-H \
         /DescendantFonts [{cid} 0 R] /ToUnicode {unicode} 0 R >>"
    ));
    let widths = (0..font.glyphs()).map(|glyph| {
        let width = 1000.0 * font.advance(glyph) / font.units();
        format!("{width:.0}")
    });
    let widths = widths.collect::<Vec<_>>().join(" ");
    file.object(&format!(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{name} /CIDToGIDMap /Identity \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> \
         /FontDescriptor {descriptor} 0 R /W [0 [{widths}]] >>"
    ));
    file.object(&format!(
        "<< /Type /FontDescriptor /FontName /{name} /Flags 32 /FontBBox [-1000 -400 1600 1100] \
         /ItalicAngle 0 /Ascent 928 /Descent -236 /CapHeight 729 /StemV {} /FontFile2 {data} 0 R >>",
        if bold { 140 } else { 80 }
    ));
    let bytes = FILES[usize::from(bold)];
    file.stream(&format!("/Length1 {}", bytes.len()), bytes);
    file.stream("", to_unicode(bold).as_bytes());
}

/// The characters of glyphs, so that text can be searched and copied.
fn to_unicode(bold: bool) -> String {
    let font = font(bold);
    let characters = ('\u{20}'..='\u{7e}')
        .chain('\u{a0}'..='\u{ff}')
        .chain('\u{2010}'..='\u{2265}');
    let mut lines = Vec::new();
    for c in characters {
        let glyph = font.glyph(c);
        if glyph != 0 {
            lines.push(format!("<{glyph:04x}> <{:04x}>", u32::from(c)));
        }
    }
    let mut map = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap \
                   /CMapType 2 def /CMapName /Figure def 1 begincodespacerange <0000> <ffff> \
                   endcodespacerange\n"
        .to_owned();
    // No more than 100 entries in a block.
    for block in lines.chunks(100) {
        let _ = writeln!(
            map,
            "{} beginbfchar\n{}\nendbfchar",
            block.len(),
            block.join("\n")
        );
    }
    map + "endcmap end end"
}

fn content(drawing: &Drawing, scale: f32) -> String {
    // PDF's y goes upwards.
    let height = drawing.height * scale;
    let mut out = format!("{scale} 0 0 {} 0 {height:.3} cm\n", -scale);
    for shape in &drawing.shapes {
        match shape {
            Shape::Path {
                steps,
                fill,
                stroke,
            } => {
                if let Some(fill) = fill {
                    let _ = writeln!(out, "{} rg", shade(*fill));
                }
                if let Some(stroke) = stroke {
                    let dashes: Vec<String> = stroke.dashes.iter().map(f32::to_string).collect();
                    let _ = writeln!(
                        out,
                        "{} RG {} w [{}] 0 d {} J {} gs",
                        shade(stroke.colour),
                        stroke.width,
                        dashes.join(" "),
                        u8::from(stroke.is_round),
                        if stroke.opacity < 1.0 { "/G1" } else { "/G0" }
                    );
                }
                draw(steps, &mut out);
                out += match (fill, stroke) {
                    (Some(_), Some(_)) => "B\n",
                    (Some(_), None) => "f\n",
                    _ => "S\n",
                };
            }
            Shape::Text(text) => {
                let font = font(text.bold);
                let mut glyphs = String::new();
                for character in text.text.chars() {
                    let _ = write!(glyphs, "{:04x}", font.glyph(character));
                }
                let (x, y) = text.start();
                let turn = if text.upwards {
                    "0 -1 -1 0"
                } else {
                    "1 0 0 -1"
                };
                let (name, size) = (u8::from(text.bold), text.size);
                let shade = shade(text.colour);
                let matrix = format!("{turn} {x:.2} {y:.2}");
                let _ = writeln!(
                    out,
                    "BT {shade} rg /F{name} {size} Tf {matrix} Tm <{glyphs}> Tj ET"
                );
            }
        }
    }
    out
}

fn shade(colour: [u8; 3]) -> String {
    let [red, green, blue] = colour.map(|part| f32::from(part) / 255.0);
    format!("{red:.3} {green:.3} {blue:.3}")
}

fn draw(steps: &[Step], out: &mut String) {
    for step in steps {
        let _ = match *step {
            Step::Move(x, y) => write!(out, "{x:.2} {y:.2} m "),
            Step::Line(x, y) => write!(out, "{x:.2} {y:.2} l "),
            Step::Curve([x1, y1, x2, y2, x, y]) => {
                write!(out, "{x1:.2} {y1:.2} {x2:.2} {y2:.2} {x:.2} {y:.2} c ")
            }
            Step::Close => write!(out, "h "),
        };
    }
}

/// A PDF file in the making.
#[derive(Default)]
struct File {
    bytes: Vec<u8>,
    /// Position of each object.
    objects: Vec<usize>,
}

impl File {
    fn begin(&mut self) {
        if self.bytes.is_empty() {
            self.bytes.extend(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n");
        }
        self.objects.push(self.bytes.len());
        let number = self.objects.len();
        self.bytes.extend(format!("{number} 0 obj\n").bytes());
    }

    fn object(&mut self, text: &str) {
        self.begin();
        self.bytes.extend(text.bytes());
        self.bytes.extend(b"\nendobj\n");
    }

    fn stream(&mut self, entries: &str, content: &[u8]) {
        self.begin();
        let length = content.len();
        let head = format!("<< /Length {length} {entries} >>\nstream\n");
        self.bytes.extend(head.bytes());
        self.bytes.extend(content);
        self.bytes.extend(b"\nendstream\nendobj\n");
    }

    fn finish(mut self) -> Vec<u8> {
        let start = self.bytes.len();
        let count = self.objects.len() + 1;
        let mut end = format!("xref\n0 {count}\n0000000000 65535 f \n");
        for position in &self.objects {
            let _ = writeln!(end, "{position:010} 00000 n ");
        }
        let _ = writeln!(
            end,
            "trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF"
        );
        self.bytes.extend(end.bytes());
        self.bytes
    }
}
