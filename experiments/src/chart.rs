//! Curves as SVG: sub-optimality against n, both on log axes, with a 95 % band.
//!
//! The pictures need nothing from outside (no fonts, no script) and are the same to the byte for the same curves. Each
//! algorithm has one colour (Okabe–Ito, safe for colour-blind readers), dash and marker in every panel; greedy twins
//! are the dashed, lighter relatives of their pessimistic partners, reference policies are thin grey lines.

use std::fmt::Write;

use crate::names::{compare_algorithms, paper_name};
use crate::summary::Curve;

const FONT: &str = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\"";
const X_LABEL: &str = "number of logged rounds n";
const Y_LABEL: &str = "sub-optimality (lower is better)";
/// Width of the text of a legend entry.
const LEGEND_ROOM: f64 = 122.0;

/// One panel, 640 × 440, with a legend that names the chosen settings.
pub fn panel(title: &str, curves: &[&Curve]) -> String {
    let frame = Frame { width: 640.0, height: 440.0, left: 66.0, right: 174.0, top: 38.0, bottom: 52.0 };
    let mut svg = open(frame.width, frame.height, title, &describe(curves));
    svg += &plot(&frame, title, curves, true);
    svg += &side_legend(&frame, curves);
    svg + "</svg>\n"
}

/// Several panels side by side (four as two by two, more in rows of three) above one legend of the algorithms.
pub fn figure(panels: &[(String, Vec<&Curve>)]) -> String {
    let frame = Frame { width: 330.0, height: 300.0, left: 64.0, right: 14.0, top: 32.0, bottom: 46.0 };
    let columns = if panels.len() == 4 { 2 } else { panels.len().clamp(1, 3) };
    let width = frame.width * columns as f64;
    let plots_height = frame.height * panels.len().div_ceil(columns) as f64;
    let (legend, legend_height) = strip_legend(width, plots_height, panels);

    let titles: Vec<&str> = panels.iter().map(|(title, _)| title.as_str()).collect();
    let text: Vec<String> = panels.iter().map(|(title, curves)| format!("{title}. {}", describe(curves))).collect();
    let mut svg = open(width, plots_height + legend_height, &titles.join(", "), &text.join(" "));
    for (i, (title, curves)) in panels.iter().enumerate() {
        let (x, y) = ((i % columns) as f64 * frame.width, (i / columns) as f64 * frame.height);
        let plot = plot(&frame, title, curves, i % columns == 0);
        let _ = writeln!(svg, "<g transform=\"translate({} {})\">\n{plot}</g>", num(x), num(y));
    }
    svg + &legend + "</svg>\n"
}

fn open(width: f64, height: f64, title: &str, description: &str) -> String {
    let (w, h) = (num(width), num(height));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         {FONT} font-size=\"12\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
        escape(title),
        escape(description)
    )
}

/// What the picture shows, for readers who cannot see it.
fn describe(curves: &[&Curve]) -> String {
    let mut text = String::from("Sub-optimality against the number of logged rounds, both on log axes.");
    for curve in from_worst_to_best(curves) {
        if let Some(last) = curve.points.last() {
            let _ = write!(
                text,
                " {} at n = {}: {:.4}, 95 % interval {:.4} to {:.4}.",
                paper_name(&curve.algorithm),
                last.n,
                last.mean,
                last.low,
                last.high
            );
        }
    }
    text
}

/// The size of a panel and the room around its plot.
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// A log axis between two pixel positions.
struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// The position of a value; what lies outside is put on the edge.
    fn at(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).ln() - self.low.ln()) / (self.high.ln() - self.low.ln());
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Ticks and whether they carry a label: of 1-2-5 only the decades, if there are `enough` of those; all of them, if
    /// not; and round steps where the range is too narrow for either.
    fn ticks(&self, enough: usize) -> Vec<(f64, bool)> {
        let (low, high) = (self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9));
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let ticks: Vec<(f64, bool)> = decades
            .flat_map(|decade| [1.0, 2.0, 5.0].map(|lead| (lead * 10f64.powi(decade), lead == 1.0)))
            .filter(|(value, _)| (low..=high).contains(value))
            .collect();
        if ticks.len() < 3 {
            let step = round_step((high - low) / 3.0);
            let values = (1..).map(|i| ((low / step).ceil() - 1.0 + f64::from(i)) * step);
            return values.take_while(|value| *value <= high).map(|value| (value, true)).collect();
        }
        let all = ticks.iter().filter(|(_, decade)| *decade).count() < enough;
        ticks.into_iter().map(|(value, decade)| (value, decade || all)).collect()
    }
}

/// The largest of 1, 2, 5 times a power of ten that is not above `most`.
fn round_step(most: f64) -> f64 {
    let decade = 10f64.powf(most.log10().floor());
    [5.0, 2.0, 1.0].map(|lead| lead * decade).into_iter().find(|step| *step <= most).unwrap_or(decade)
}

/// A tick's text: 0.05, 20, 1k, 1e-5.
fn label(value: f64) -> String {
    match value {
        v if v >= 999_999.5 => format!("{}M", round(v / 1e6)),
        v if v >= 999.5 => format!("{}k", round(v / 1e3)),
        v if v < 0.99e-4 => format!("{:e}", round(v)),
        v => round(v).to_string(),
    }
}

/// Four significant digits: removes the noise of a multiplied step.
fn round(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn axes(frame: &Frame, curves: &[&Curve]) -> (Axis, Axis) {
    let points = || curves.iter().flat_map(|curve| &curve.points).filter(|point| point.mean.is_finite());
    let ns = || points().map(|point| point.n.max(1) as f64);
    let (first, last) = (ns().fold(f64::INFINITY, f64::min), ns().fold(0.0, f64::max));
    let (first, last) = match (first, last) {
        (first, last) if first < last => (first, last),
        (first, last) if first == last => (first / 2.0, last * 2.0),
        _ => (1.0, 100.0),
    };
    let best = points().map(|point| point.mean).filter(|mean| *mean > 0.0).fold(f64::INFINITY, f64::min);
    let worst = points().map(|point| point.mean).fold(0.0, f64::max);
    let (best, worst) = if best <= worst { (best, worst) } else { (0.01, 1.0) };
    // A wide interval of a single point may not squeeze all the lines into the floor.
    let top = points().map(|point| point.high.min(1.5 * worst)).fold(worst, f64::max);
    let bottom = best.max(1e-4 * top);
    let room = (top / bottom).powf(0.05).max(1.05);
    let x = Axis { low: first, high: last, start: frame.left + 8.0, end: frame.width - frame.right - 8.0 };
    let y = Axis { low: bottom / room, high: top * room, start: frame.height - frame.bottom, end: frame.top };
    (x, y)
}

fn plot(frame: &Frame, title: &str, curves: &[&Curve], y_label: bool) -> String {
    let (x, y) = axes(frame, curves);
    let (left, right, top, bottom) = (frame.left, frame.width - frame.right, frame.top, frame.height - frame.bottom);
    let (middle, centre) = ((left + right) / 2.0, (top + bottom) / 2.0);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"14\" font-weight=\"600\" fill=\"#111\">{}</text>",
        num(middle),
        num(top - 13.0),
        escape(title)
    );
    for (value, labelled) in x.ticks(2) {
        let at = num(x.at(value));
        let (colour, length) = if labelled { ("#dcdcdc", 6.0) } else { ("#f0f0f0", 3.0) };
        let _ = writeln!(svg, "<path d=\"M{at} {}V{}\" stroke=\"{colour}\"/>", num(top), num(bottom));
        let _ = writeln!(svg, "<path d=\"M{at} {}v{}\" stroke=\"#444\"/>", num(bottom), num(length));
        if labelled {
            svg += &tick_text(&at, &num(bottom + 19.0), "middle", &label(value));
        }
    }
    for (value, labelled) in y.ticks(4) {
        let at = num(y.at(value));
        let (colour, length) = if labelled { ("#dcdcdc", 6.0) } else { ("#f0f0f0", 3.0) };
        let _ = writeln!(svg, "<path d=\"M{} {at}H{}\" stroke=\"{colour}\"/>", num(left), num(right));
        let _ = writeln!(svg, "<path d=\"M{} {at}h{}\" stroke=\"#444\"/>", num(left), num(-length));
        if labelled {
            svg += &tick_text(&num(left - 9.0), &num(y.at(value) + 4.0), "end", &label(value));
        }
    }
    let mut back_to_front: Vec<&Curve> = curves.to_vec();
    back_to_front.sort_by(|a, b| compare_algorithms(&b.algorithm, &a.algorithm));
    back_to_front.iter().for_each(|curve| svg += &band(curve, &x, &y));
    let _ = writeln!(
        svg,
        "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#444\"/>",
        num(left),
        num(top),
        num(bottom),
        num(right)
    );
    back_to_front.iter().for_each(|curve| svg += &line(curve, &x, &y));
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#222\">{X_LABEL}</text>",
        num(middle),
        num(frame.height - 9.0)
    );
    if y_label {
        let _ = writeln!(
            svg,
            "<text transform=\"translate(12 {}) rotate(-90)\" text-anchor=\"middle\" fill=\"#222\">{Y_LABEL}</text>",
            num(centre)
        );
    }
    if curves.is_empty() {
        svg += &tick_text(&num(middle), &num(centre), "middle", "no results");
    }
    svg
}

fn tick_text(x: &str, y: &str, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"11\" fill=\"#444\">{text}</text>\n")
}

#[derive(Clone, Copy)]
enum Marker {
    None,
    Circle,
    Square,
    Up,
    Down,
    Diamond,
    Cross,
}

#[derive(Clone, Copy)]
struct Style {
    colour: &'static str,
    width: f64,
    dash: &'static str,
    marker: Marker,
}

fn style(algorithm: &str) -> Style {
    let (colour, width, dash, marker) = match algorithm {
        "neuralcb" => ("#D55E00", 2.4, "", Marker::Circle),
        "neural-greedy" => ("#E69F00", 1.8, "7 3", Marker::Square),
        "neural-lin-lcb" => ("#0072B2", 1.8, "", Marker::Up),
        "neural-lin-greedy" => ("#56B4E9", 1.8, "7 3", Marker::Down),
        "lin-lcb" => ("#009E73", 1.8, "", Marker::Diamond),
        "kern-lcb" => ("#CC79A7", 1.8, "", Marker::Cross),
        "uniform" => ("#777777", 1.2, "6 4", Marker::None),
        "behaviour" => ("#777777", 1.4, "1.5 3", Marker::None),
        _ => ("#000000", 1.8, "3 2", Marker::Circle),
    };
    Style { colour, width, dash, marker }
}

impl Style {
    fn stroke(&self) -> String {
        let dash = if self.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dash) };
        format!("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash}", self.colour, num(self.width))
    }

    fn mark(&self, x: f64, y: f64) -> String {
        let shape = match self.marker {
            Marker::None => return String::new(),
            Marker::Circle => "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0z",
            Marker::Square => "m-2.9 -2.9h5.8v5.8h-5.8z",
            Marker::Up => "m0 -3.8l3.6 6.4h-7.2z",
            Marker::Down => "m0 3.8l3.6 -6.4h-7.2z",
            Marker::Diamond => "m0 -4.1l3.6 4.1l-3.6 4.1l-3.6 -4.1z",
            Marker::Cross => "m-3.8 -1.2h2.6v-2.6h2.4v2.6h2.6v2.4h-2.6v2.6h-2.4v-2.6h-2.6z",
        };
        let (x, y) = (num(x), num(y));
        format!("<path d=\"M{x} {y}{shape}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.6\"/>\n", self.colour)
    }
}

fn band(curve: &Curve, x: &Axis, y: &Axis) -> String {
    let style = style(&curve.algorithm);
    if matches!(style.marker, Marker::None) || curve.points.iter().all(|point| point.reps < 2) {
        return String::new();
    }
    let corner = |n: usize, value: f64| format!("{},{}", num(x.at(n as f64)), num(y.at(value)));
    let lower = curve.points.iter().map(|point| corner(point.n, point.low));
    let upper = curve.points.iter().rev().map(|point| corner(point.n, point.high));
    let corners: Vec<String> = lower.chain(upper).collect();
    format!("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.13\"/>\n", corners.join(" "), style.colour)
}

fn line(curve: &Curve, x: &Axis, y: &Axis) -> String {
    let style = style(&curve.algorithm);
    let mut at: Vec<(f64, f64)> = curve.points.iter().map(|point| (x.at(point.n as f64), y.at(point.mean))).collect();
    // A reference that was measured once holds for every n.
    if let (Marker::None, &[(_, level)]) = (style.marker, at.as_slice()) {
        at = vec![(x.start, level), (x.end, level)];
    }
    let corners: Vec<String> = at.iter().map(|(x, y)| format!("{},{}", num(*x), num(*y))).collect();
    let mut svg =
        format!("<polyline points=\"{}\" {} stroke-linejoin=\"round\"/>\n", corners.join(" "), style.stroke());
    // From the right, so that the last point always has its marker; where points are dense, not every one does.
    let mut free = f64::INFINITY;
    for (x, y) in at.into_iter().rev() {
        if x <= free {
            svg += &style.mark(x, y);
            free = x - 10.0;
        }
    }
    svg
}

fn from_worst_to_best<'a>(curves: &[&'a Curve]) -> Vec<&'a Curve> {
    let mut sorted = curves.to_vec();
    let last = |curve: &Curve| curve.points.last().map_or(f64::INFINITY, |point| point.mean);
    sorted.sort_by(|a, b| last(b).total_cmp(&last(a)));
    sorted
}

fn legend_entry(x: f64, y: f64, algorithm: &str) -> String {
    let style = style(algorithm);
    let path = format!("<path d=\"M{} {}h28\" {}/>\n", num(x), num(y), style.stroke());
    path + &style.mark(x + 14.0, y) + &legend_text(x + 35.0, y + 4.0, paper_name(algorithm), 12.0, "#111")
}

/// Text in the room a legend has; longer text is squeezed rather than cut.
fn legend_text(x: f64, y: f64, text: &str, size: f64, colour: &str) -> String {
    let fits = text.chars().count() as f64 * size <= LEGEND_ROOM / 0.56;
    let squeeze = if fits { "" } else { &format!(" textLength=\"{LEGEND_ROOM}\" lengthAdjust=\"spacingAndGlyphs\"") };
    let (x, y, size, text) = (num(x), num(y), num(size), escape(text));
    format!("<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{colour}\"{squeeze}>{text}</text>\n")
}

fn side_legend(frame: &Frame, curves: &[&Curve]) -> String {
    let step = ((frame.height - frame.top - frame.bottom) / curves.len().max(1) as f64).min(38.0);
    let x = frame.width - frame.right + 12.0;
    let mut svg = String::new();
    for (i, curve) in from_worst_to_best(curves).into_iter().enumerate() {
        let y = frame.top + 10.0 + i as f64 * step;
        svg += &legend_entry(x, y, &curve.algorithm);
        let setting = curve.setting.to_string();
        if !setting.is_empty() {
            svg += &legend_text(x + 35.0, y + 17.0, &setting, 10.0, "#6b6b6b");
        }
    }
    svg
}

/// One legend for several panels, in as few even lines as it needs, and its height.
fn strip_legend(width: f64, top: f64, panels: &[(String, Vec<&Curve>)]) -> (String, f64) {
    let mut names: Vec<&str> = panels.iter().flat_map(|(_, curves)| curves).map(|c| c.algorithm.as_str()).collect();
    names.sort_by(|a, b| compare_algorithms(a, b));
    names.dedup();
    let room = 35.0 + LEGEND_ROOM;
    let lines = names.len().div_ceil((width / room) as usize).max(1);
    let columns = names.len().div_ceil(lines);
    let left = (width - columns as f64 * room) / 2.0 + 10.0;
    let entry = |(i, name): (usize, &&str)| {
        let (column, line) = ((i % columns) as f64, (i / columns) as f64);
        legend_entry(left + column * room, top + 18.0 + 22.0 * line, name)
    };
    (names.iter().enumerate().map(entry).collect(), 16.0 + 22.0 * lines as f64)
}

/// Text that is safe between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A coordinate with at most two decimals.
fn num(value: f64) -> String {
    let value = (value * 100.0).round() / 100.0;
    if value == 0.0 { "0".to_string() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Point, Selection, Setting};

    fn curve(algorithm: &str, means: &[f64]) -> Curve {
        let point = |(i, mean): (usize, &f64)| {
            let n = 10usize.pow(i as u32 + 1);
            Point { n, mean: *mean, low: mean * 0.9, high: mean * 1.1, reps: 10 }
        };
        Curve {
            dataset: "cosine".into(),
            algorithm: algorithm.into(),
            selection: Selection::OracleLast,
            setting: Setting { beta: Some(0.05), ..Setting::default() },
            points: means.iter().enumerate().map(point).collect(),
        }
    }

    fn labels(low: f64, high: f64, enough: usize) -> Vec<String> {
        let axis = Axis { low, high, start: 0.0, end: 1.0 };
        axis.ticks(enough).into_iter().filter(|(_, labelled)| *labelled).map(|(value, _)| label(value)).collect()
    }

    #[test]
    fn ticks_are_round_whatever_the_range() {
        assert_eq!(labels(10.0, 10_000.0, 2), ["10", "100", "1k", "10k"]);
        assert_eq!(labels(15.0, 150.0, 2), ["20", "50", "100"]);
        assert_eq!(labels(0.008, 0.3, 4), ["0.01", "0.02", "0.05", "0.1", "0.2"]);
        assert_eq!(labels(0.48, 0.74, 4), ["0.5", "0.55", "0.6", "0.65", "0.7"]);
        assert_eq!(labels(1e-6, 1e-3, 4), ["1e-6", "1e-5", "0.0001", "0.001"]);
        assert_eq!(labels(5e5, 2e6, 4), ["500k", "1M", "2M"]);
    }

    #[test]
    fn values_outside_the_axis_are_put_on_its_edge() {
        let axis = Axis { low: 0.01, high: 1.0, start: 300.0, end: 100.0 };
        assert_eq!([0.0, -1.0, 0.01, 1.0, 7.0].map(|value| axis.at(value)), [300.0, 300.0, 300.0, 100.0, 100.0]);
        assert!((axis.at(0.1) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn the_floor_comes_from_the_smallest_positive_mean_but_not_below_a_ten_thousandth_of_the_top() {
        let frame = Frame { width: 640.0, height: 440.0, left: 60.0, right: 60.0, top: 30.0, bottom: 30.0 };
        let floor = |means: &[f64]| axes(&frame, &[&curve("neuralcb", means)]).1.low;
        assert!((0.05..0.1).contains(&floor(&[1.0, 0.1, 0.0])));
        assert!((0.5e-4..1.2e-4).contains(&floor(&[1.0, 1e-9])));
        assert!(floor(&[0.0, -1.0]) > 0.0);
    }

    #[test]
    fn the_legend_runs_from_the_worst_to_the_best_last_value() {
        let curves = [curve("neuralcb", &[0.9, 0.1]), curve("uniform", &[0.5, 0.5]), curve("lin-lcb", &[0.8, 0.3])];
        let svg = panel("Cosine", &curves.iter().collect::<Vec<_>>());
        let place = |name: &str| svg.find(&format!(">{name}</text>")).unwrap();
        assert!(place("uniform policy") < place("LinLCB") && place("LinLCB") < place("NeuraLCB"));
        assert!(svg.contains(">β 0.05</text>"));
    }

    #[test]
    fn bands_lie_below_all_lines_and_references_have_none() {
        let curves = [curve("neuralcb", &[0.9, 0.1]), curve("kern-lcb", &[0.8, 0.3]), curve("uniform", &[0.5, 0.5])];
        let svg = panel("Cosine", &curves.iter().collect::<Vec<_>>());
        assert_eq!(svg.matches("<polygon").count(), 2);
        assert_eq!(svg.matches("<polyline").count(), 3);
        assert!(svg.rfind("<polygon").unwrap() < svg.find("<polyline").unwrap());
    }

    #[test]
    fn names_are_escaped_and_empty_or_odd_curves_draw_without_bad_numbers() {
        let odd = [curve("a<b>&\"c\"", &[0.0]), curve("uniform", &[0.3]), curve("neuralcb", &[])];
        let panels = [("x & <y>".to_string(), odd.iter().collect()), ("none".to_string(), Vec::new())];
        for svg in [figure(&panels), figure(&[]), panel("x & <y>", &panels[0].1), panel("x", &[])] {
            assert!(
                !svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<y>") && !svg.contains("<b>"),
                "{svg}"
            );
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn coordinates_have_at_most_two_decimals() {
        assert_eq!([1.0 / 3.0, 2.0, -0.001, 1e3 + 0.125].map(num), ["0.33", "2", "0", "1000.13"]);
    }
}
