//! Charts as PNG, drawn with an embedded font, so that the bytes are the same on every machine.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, Options, Tree, fontdb};

/// Pixels per unit of the SVG.
const SCALE: f32 = 2.0;
/// The largest side of a picture, in pixels: 256 MB at most.
const LARGEST: u32 = 8192;

/// Why a chart has no PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The text is no SVG.
    #[error("the chart cannot be read as SVG: {0}; give the text that `chart::panel` or `chart::figure` made")]
    Svg(#[from] usvg::Error),
    /// The picture would be too large.
    #[error("a picture of {width} × {height} pixels is too large: at most {LARGEST} each way; draw fewer panels")]
    Size {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
}

/// DejaVu Sans, which has the letters of the formulas (h₁, uᵀ, β), in place of every family that a chart names.
static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// The SVG at twice its size on a white ground, as the bytes of a PNG file.
pub fn render(svg: &str) -> Result<Vec<u8>, PngError> {
    let options = Options { fontdb: FONTS.clone(), font_family: "DejaVu Sans".to_string(), ..Options::default() };
    let tree = Tree::from_str(svg, &options)?;
    let [width, height] = [tree.size().width(), tree.size().height()].map(|side| (side * SCALE).ceil() as u32);
    let size = PngError::Size { width, height };
    if width.max(height) > LARGEST {
        return Err(size);
    }
    let mut picture = Pixmap::new(width, height).ok_or(size)?;
    picture.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    Ok(picture.encode_png().expect("writing a picture to memory does not fail"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart;

    fn svg(text: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\" font-family=\"system-ui, sans-serif\">\
             <text x=\"5\" y=\"15\">{text}</text></svg>"
        )
    }

    /// Width and height stand big-endian behind the signature and the head of the first chunk.
    fn size(png: &[u8]) -> [u32; 2] {
        [16, 20].map(|at| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()))
    }

    #[test]
    fn a_chart_becomes_the_same_picture_of_twice_its_size_every_time() {
        let chart = chart::panel("h₁(u) = 10(uᵀa)²", &[]);
        let png = render(&chart).unwrap();
        assert_eq!(png[..8], [0x89, b'P', b'N', b'G', 13, 10, 26, 10]);
        assert_eq!(size(&png), [1400, 880]);
        assert_eq!(png, render(&chart).unwrap());
    }

    #[test]
    fn the_letters_of_the_formulas_have_glyphs_in_both_weights() {
        // Private-use code points have no glyph; what is drawn for them is what a missing letter looks like.
        let missing = render(&svg("\u{e0ff}")).unwrap();
        assert_eq!(render(&svg("漢")).unwrap(), missing, "a letter that the font has not");
        for letter in "₁₂₃ᵀσβελθΛ²⁻⁵·×±≤…ğ".chars() {
            for tag in [letter.to_string(), format!("<tspan font-weight=\"600\">{letter}</tspan>")] {
                assert_ne!(render(&svg(&tag)).unwrap(), missing, "{tag}");
            }
        }
    }

    #[test]
    fn what_is_no_svg_and_what_is_too_large_is_said() {
        assert!(render("a chart").unwrap_err().to_string().starts_with("the chart cannot be read as SVG: "));
        let large = svg("a").replace("width=\"60\"", "width=\"5000\"");
        assert_eq!(
            render(&large).unwrap_err().to_string(),
            "a picture of 10000 × 40 pixels is too large: at most 8192 each way; draw fewer panels"
        );
    }
}
