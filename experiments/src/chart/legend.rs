//! The legends: at the side of one panel with the chosen settings, or below several panels with the names alone.

use super::axis::num;
use super::{Frame, Series, escape, from_worst_to_best};
use crate::names::compare_algorithms;

/// Width of the text of a legend entry.
pub(super) const ROOM: f64 = 178.0;
/// Room of an entry before its text.
const SWATCH: f64 = 35.0;
/// Least distance of two entries that each have a name and a setting.
pub(super) const STEP: f64 = 30.0;

fn entry(x: f64, y: f64, series: &Series) -> String {
    let path = format!("<path d=\"M{} {}h28\" {}/>\n", num(x), num(y), series.style.stroke());
    path + &series.style.mark(x + 14.0, y) + &text(x + SWATCH, y + 4.0, &series.name, 12.0, "#111")
}

/// Text in the room a legend has: what is a little too long is squeezed, what is much too long is cut.
fn text(x: f64, y: f64, text: &str, size: f64, colour: &str) -> String {
    let fitting = ROOM / (0.58 * size);
    let length = text.chars().count() as f64;
    let squeeze =
        if length <= fitting { "" } else { &format!(" textLength=\"{ROOM}\" lengthAdjust=\"spacingAndGlyphs\"") };
    let most = (1.2 * fitting) as usize;
    let shown = if length as usize <= most {
        escape(text)
    } else {
        let start: String = text.chars().take(most - 1).collect();
        format!("{}…", escape(start.trim_end()))
    };
    let (x, y, size) = (num(x), num(y), num(size));
    format!("<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{colour}\"{squeeze}>{shown}</text>\n")
}

/// The legend at the right of a panel, in the order in which the lines end.
pub(super) fn side(frame: &Frame, series: &[Series]) -> String {
    let step = ((frame.height - frame.top - frame.bottom) / series.len().max(1) as f64).min(38.0);
    let x = frame.width - frame.right + 12.0;
    let mut svg = String::new();
    for (i, series) in from_worst_to_best(series).into_iter().enumerate() {
        let y = frame.top + 10.0 + i as f64 * step;
        svg += &entry(x, y, series);
        let setting = series.curve.chosen.to_string();
        if !setting.is_empty() {
            svg += &text(x + SWATCH, y + 17.0, &setting, 10.0, "#6b6b6b");
        }
    }
    svg
}

/// One legend for several panels, in as few even lines as it needs, and its height.
pub(super) fn strip(width: f64, top: f64, panels: &[Vec<Series>]) -> (String, f64) {
    let mut all: Vec<&Series> = panels.iter().flatten().collect();
    all.sort_by(|a, b| {
        compare_algorithms(&a.curve.algorithm, &b.curve.algorithm).then_with(|| b.name.cmp(&a.name)) // S before B
    });
    all.dedup_by(|a, b| a.name == b.name);
    let room = SWATCH + ROOM + 6.0;
    let lines = all.len().div_ceil(((width / room) as usize).max(1)).max(1);
    let columns = all.len().div_ceil(lines);
    let left = (width - columns as f64 * room) / 2.0 + 10.0;
    let place = |(i, series): (usize, &&Series)| {
        let (column, line) = ((i % columns) as f64, (i / columns) as f64);
        entry(left + column * room, top + 18.0 + 22.0 * line, series)
    };
    (all.iter().enumerate().map(place).collect(), 16.0 + 22.0 * lines as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_squeezed_and_very_long_text_is_cut() {
        let of = |length: usize| text(0.0, 0.0, &"a".repeat(length), 10.0, "#111");
        assert!(!of(30).contains("textLength") && !of(30).contains('…'));
        assert!(of(34).contains("textLength") && !of(34).contains('…'));
        assert!(of(60).contains("textLength") && of(60).contains("a…</text>"));
    }
}
