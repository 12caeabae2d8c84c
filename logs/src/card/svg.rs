//! Charts as inline SVG. Across, places are percentages, so that a chart is as wide as its page; letters keep their
//! size.

use std::fmt::Write;

use super::text::{escape, number};

/// A range of numbers that is drawn from left to right, or from the bottom up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub low: f64,
    pub high: f64,
}

impl Scale {
    /// The least range that holds all numbers that are finite, with some room.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Scale {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let finite = values.into_iter().filter(|v| v.is_finite());
        let (low, high) = finite.fold(ends, |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            return Scale { low: 0.0, high: 1.0 };
        }
        let span = high - low;
        let room = if span > 0.0 && span.is_finite() { 0.04 * span } else { (0.1 * low.abs()).max(1e-9) };
        Scale { low: low - room, high: high + room }
    }

    /// Where a number lies, from 0 to 1; beyond the ends it stays there.
    pub fn share(&self, v: f64) -> f64 {
        let half = 0.5 * self.high - 0.5 * self.low;
        ((0.5 * v - 0.5 * self.low) / half).clamp(0.0, 1.0)
    }

    /// Where it lies across a chart.
    pub fn x(&self, v: f64) -> String {
        format!("{:.2}%", 100.0 * self.share(v))
    }

    /// At most so many round numbers.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / most as f64;
        if !(rough > 0.0 && rough.is_finite()) {
            return Vec::new();
        }
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough).unwrap_or(10.0 * power);
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last.min(first.saturating_add(20))).map(|i| i as f64 * step).collect()
    }
}

/// An element of a chart that is as wide as its page.
pub(super) fn wide(height: f64, content: &str) -> String {
    format!("<svg width=\"100%\" height=\"{height}\" aria-hidden=\"true\" focusable=\"false\">{content}</svg>")
}

/// An axis below a chart, with numbers that do not leave it.
pub(super) fn axis(scale: &Scale, most: usize) -> String {
    let mut out = "<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"1\" y2=\"1\"/>".to_owned();
    for tick in scale.ticks(most) {
        let share = scale.share(tick);
        let anchor = if share < 0.08 {
            "start"
        } else if share > 0.92 {
            "end"
        } else {
            "middle"
        };
        let (x, text) = (scale.x(tick), escape(&tidy(tick)));
        let _ = write!(
            out,
            "<line class=\"axis\" x1=\"{x}\" x2=\"{x}\" y1=\"1\" y2=\"5\"/><text x=\"{x}\" y=\"17\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }
    wide(22.0, &out)
}

/// A tick's number: 0.30000000000000004 is 0.3.
fn tidy(v: f64) -> String {
    if v.abs() < 1e-12 { "0".to_owned() } else { number(v) }
}

/// A dashed line from top to bottom.
pub(super) fn rule(scale: &Scale, v: f64, height: f64) -> String {
    let x = scale.x(v);
    format!("<line class=\"rule\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{height}\"/>")
}

/// A value with its interval, on one line. Ends beyond the scale are arrows.
pub(super) fn interval(scale: &Scale, value: Option<f64>, ends: Option<[f64; 2]>, y: f64) -> String {
    let mut out = String::new();
    if let Some([low, high]) = ends {
        let (left, right) = (scale.x(low), scale.x(high));
        let _ = write!(out, "<line class=\"ends\" x1=\"{left}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\"/>");
        for (end, x, beyond) in [(low, left, low < scale.low), (high, right, high > scale.high)] {
            let arrow = if end == low { "‹" } else { "›" };
            let anchor = if end == low { "start" } else { "end" };
            if beyond {
                let _ = write!(
                    out,
                    "<text class=\"arrow\" x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{arrow}</text>",
                    y + 5.0
                );
            } else {
                let (top, bottom) = (y - 4.0, y + 4.0);
                let _ = write!(out, "<line class=\"ends\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{bottom}\"/>");
            }
        }
    }
    if let Some(value) = value.filter(|v| *v >= scale.low && *v <= scale.high) {
        let _ = write!(out, "<circle class=\"dot\" cx=\"{}\" cy=\"{y}\" r=\"4.5\"/>", scale.x(value));
    }
    out
}

/// A chart with numbers beside it from the bottom up: the content is drawn on `height` pixels.
pub(super) fn framed(label: &str, up: &Scale, across: &str, height: f64, content: &str) -> String {
    let y = |v: f64| height * (1.0 - up.share(v));
    let (mut beside, mut lines) = (String::new(), String::new());
    for tick in up.ticks(5) {
        let at = y(tick);
        let _ = write!(
            beside,
            "<text x=\"52\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            (at + 4.0).clamp(10.0, height),
            escape(&tidy(tick))
        );
        let _ = write!(lines, "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>");
    }
    format!(
        "<div class=\"plot\" role=\"img\" aria-label=\"{}\"><svg width=\"58\" height=\"{height}\" aria-hidden=\"true\">{beside}</svg>\
         <div>{}{across}</div></div>",
        escape(label),
        wide(height, &(lines + content))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(Scale { low: 0.0, high: 1.0 }.ticks(5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(Scale { low: -30.0, high: 1e3 }.ticks(5), [0.0, 500.0, 1000.0]);
        assert!(Scale::of([f64::NAN]).ticks(5).len() > 2);
        assert!(Scale::of([1e300, -1e300]).ticks(5).len() < 8 && (Scale::of([7.0]).share(7.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_leaves_the_scale_is_an_arrow() {
        let scale = Scale { low: 0.0, high: 1.0 };
        let inside = interval(&scale, Some(0.5), Some([0.25, 0.75]), 10.0);
        assert!(inside.contains("x1=\"25.00%\"") && inside.contains("cx=\"50.00%\"") && !inside.contains("arrow"));
        let beyond = interval(&scale, Some(3.0), Some([0.5, 9.0]), 10.0);
        assert!(beyond.contains("›") && !beyond.contains("circle"));
    }
}
