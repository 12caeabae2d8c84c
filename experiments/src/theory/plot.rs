//! Lines on log axes: panels of any quantity against any other, as SVG.

use std::fmt::Write;

use crate::chart::axis::{Axis, label, num};
use crate::chart::{FONT, escape};

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Measured: a full line with markers.
    Measured,
    /// A bound or a limit: dashes.
    Bound,
    /// A slope to compare with: thin dots.
    Guide,
}

/// A line of a panel.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// How it is drawn.
    pub look: Look,
    /// x and y, both > 0; others are not drawn.
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// A line.
    pub fn new(name: impl Into<String>, look: Look, points: Vec<(f64, f64)>) -> Self {
        Line { name: name.into(), look, points }
    }

    /// A slope through the first point of a line.
    pub fn guide(name: &str, slope: f64, through: &[(f64, f64)]) -> Self {
        let points = match (through.first(), through.last()) {
            (Some(&(x0, y0)), Some(&(x1, _))) => vec![(x0, y0), (x1, y0 * (x1 / x0).powf(slope))],
            _ => Vec::new(),
        };
        Line::new(name, Look::Guide, points)
    }
}

/// A panel.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// What lies below.
    pub x_label: String,
    /// What stands at the side.
    pub y_label: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// Okabe–Ito.
const COLOURS: [&str; 6] = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#333333"];
const WIDTH: f64 = 430.0;
const PLOT_TOP: f64 = 34.0;
const PLOT_HEIGHT: f64 = 250.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 412.0;
/// Height of an entry of the legend.
const ENTRY: f64 = 19.0;

/// The panels side by side, two in a row.
pub(super) fn svg(title: &str, panels: &[Panel]) -> String {
    let columns = panels.len().clamp(1, 2);
    let most = panels.iter().map(|panel| panel.lines.len()).max().unwrap_or(0);
    let height = PLOT_TOP + PLOT_HEIGHT + 52.0 + ENTRY * most as f64;
    let (w, h) = (num(WIDTH * columns as f64), num(height * panels.len().div_ceil(columns) as f64));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         {FONT} font-size=\"12\">\n<title>{}</title>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
        escape(title)
    );
    for (i, panel) in panels.iter().enumerate() {
        let (x, y) = ((i % columns) as f64 * WIDTH, (i / columns) as f64 * height);
        let _ = write!(out, "<g transform=\"translate({} {})\">\n{}</g>\n", num(x), num(y), plot(panel));
    }
    out + "</svg>\n"
}

fn drawn(panel: &Panel) -> impl Iterator<Item = (f64, f64)> + '_ {
    let good = |p: &(f64, f64)| p.0 > 0.0 && p.1 > 0.0 && p.0.is_finite() && p.1.is_finite();
    panel.lines.iter().flat_map(|line| line.points.iter().copied()).filter(good)
}

/// A range with a little room.
fn range(values: impl Iterator<Item = f64>, room: f64) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    match low < high {
        true => (low / (high / low).powf(room).max(1.02), high * (high / low).powf(room).max(1.02)),
        false if high > 0.0 => (low / 2.0, high * 2.0),
        false => (0.1, 1.0),
    }
}

fn plot(panel: &Panel) -> String {
    let (top, bottom) = (PLOT_TOP, PLOT_TOP + PLOT_HEIGHT);
    let (low, high) = range(drawn(panel).map(|p| p.0), 0.03);
    let x = Axis { low, high, start: LEFT, end: RIGHT };
    let (low, high) = range(drawn(panel).map(|p| p.1), 0.05);
    let y = Axis { low, high, start: bottom, end: top };
    let text = |x: f64, y: f64, anchor: &str, size: f64, words: &str| {
        let (x, y, words) = (num(x), num(y), escape(words));
        format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"#222\">{words}</text>\n"
        )
    };
    let middle = (LEFT + RIGHT) / 2.0;
    let mut out = text(middle, 20.0, "middle", 13.5, &panel.title);
    for (value, labelled) in x.ticks(2) {
        let at = x.at(value);
        let _ = writeln!(out, "<path d=\"M{} {}V{}\" stroke=\"#e4e4e4\"/>", num(at), num(top), num(bottom));
        if labelled {
            out += &text(at, bottom + 16.0, "middle", 11.0, &label(value));
        }
    }
    for (value, labelled) in y.ticks(3) {
        let at = y.at(value);
        let _ = writeln!(out, "<path d=\"M{} {}H{}\" stroke=\"#e4e4e4\"/>", num(LEFT), num(at), num(RIGHT));
        if labelled {
            out += &text(LEFT - 6.0, at + 4.0, "end", 11.0, &label(value));
        }
    }
    let _ = writeln!(
        out,
        "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#444\"/>\n<text transform=\"translate(14 {}) rotate(-90)\" \
         text-anchor=\"middle\" fill=\"#222\">{}</text>",
        num(LEFT),
        num(top),
        num(bottom),
        num(RIGHT),
        num((top + bottom) / 2.0),
        escape(&panel.y_label)
    );
    out += &text(middle, bottom + 34.0, "middle", 12.0, &panel.x_label);
    for (i, line) in panel.lines.iter().enumerate() {
        let stroke = stroke(line.look, COLOURS[i % COLOURS.len()]);
        let own =
            Panel { lines: vec![line.clone()], title: String::new(), x_label: String::new(), y_label: String::new() };
        let at: Vec<(f64, f64)> = drawn(&own).map(|p| (x.at(p.0), y.at(p.1))).collect();
        let corners: Vec<String> = at.iter().map(|(x, y)| format!("{},{}", num(*x), num(*y))).collect();
        let _ = writeln!(out, "<polyline points=\"{}\" {stroke}/>", corners.join(" "));
        if line.look == Look::Measured && at.len() <= 24 {
            for (x, y) in &at {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"{}\"/>",
                    num(*x),
                    num(*y),
                    COLOURS[i % 6]
                );
            }
        }
        let entry = bottom + 54.0 + ENTRY * i as f64;
        let _ = writeln!(out, "<path d=\"M{} {}h26\" {stroke}/>", num(LEFT), num(entry - 4.0));
        out += &text(LEFT + 34.0, entry, "start", 12.0, &line.name);
    }
    out
}

fn stroke(look: Look, colour: &str) -> String {
    let (width, dash) = match look {
        Look::Measured => (2.0, ""),
        Look::Bound => (1.8, " stroke-dasharray=\"7 4\""),
        Look::Guide => (1.4, " stroke-dasharray=\"2 3\""),
    };
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_points_draw_without_bad_numbers_and_names_are_escaped() {
        let points = vec![(1.0, 0.0), (2.0, f64::NAN), (4.0, 1e-9), (8.0, f64::INFINITY)];
        let line = Line::new("a < b", Look::Measured, points);
        let panel = |lines| Panel { title: "x & y".into(), x_label: "n".into(), y_label: "v".into(), lines };
        for lines in [vec![line.clone(), Line::guide("g", -0.5, &[])], vec![], vec![line]] {
            let svg = svg("t", &[panel(lines)]);
            assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("a < b"), "{svg}");
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn a_guide_has_its_slope() {
        let guide = Line::guide("-1/2", -0.5, &[(10.0, 2.0), (1000.0, 7.0)]);
        assert!((guide.points[1].1 - 0.2).abs() < 1e-12);
    }
}
