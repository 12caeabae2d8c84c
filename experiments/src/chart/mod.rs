//! Curves as SVG: sub-optimality against n, both on log axes, with a 95 % band.
//!
//! The pictures need nothing from outside (no fonts, no script) and are the same to the byte for the same curves. An
//! algorithm looks the same in every panel; where a panel has several curves of one algorithm (S against B), each is
//! named with its mode and drawn in that mode's style.

pub(crate) mod axis;
mod legend;
mod style;

use std::fmt::Write;

use crate::names::{compare_algorithms, paper_name};
use crate::summary::Curve;
use axis::{Axis, label, num};
pub(crate) use style::Style;

pub(crate) const FONT: &str = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\"";
const X_LABEL: &str = "number of logged rounds n";
const Y_LABEL: &str = "sub-optimality (lower is better)";
/// Least distance of two markers of one line.
const MARKER_GAP: f64 = 14.0;

/// One panel, 700 wide and as high as its legend needs, at least 440; the legend names the chosen settings.
pub fn panel(title: &str, curves: &[&Curve]) -> String {
    let series = series(curves);
    let (top, bottom) = (38.0, 52.0);
    let height = (top + bottom + legend::STEP * series.len() as f64).max(440.0);
    let frame = Frame { width: 700.0, height, left: 66.0, right: legend::ROOM + 55.0, top, bottom };
    let mut svg = open(frame.width, frame.height, title, &describe(&series));
    svg += &plot(&frame, title, &series, true);
    svg += &legend::side(&frame, &series);
    svg + "</svg>\n"
}

/// Several panels side by side (four as two by two, more in rows of three) above one legend of the algorithms.
pub fn figure(panels: &[(String, Vec<&Curve>)]) -> String {
    let frame = Frame { width: 330.0, height: 300.0, left: 64.0, right: 14.0, top: 32.0, bottom: 46.0 };
    let columns = if panels.len() == 4 { 2 } else { panels.len().clamp(1, 3) };
    let width = frame.width * columns as f64;
    let plots_height = frame.height * panels.len().div_ceil(columns) as f64;
    let titles: Vec<&str> = panels.iter().map(|(title, _)| title.as_str()).collect();
    let panels: Vec<Vec<Series>> = panels.iter().map(|(_, curves)| series(curves)).collect();
    let (legend, legend_height) = legend::strip(width, plots_height, &panels);

    let text = titles.iter().zip(&panels).map(|(title, series)| format!("{title}. {}", describe(series)));
    let text = text.collect::<Vec<String>>().join(" ");
    let mut svg = open(width, plots_height + legend_height, &titles.join(", "), &text);
    for (i, (title, series)) in titles.iter().zip(&panels).enumerate() {
        let (x, y) = ((i % columns) as f64 * frame.width, (i / columns) as f64 * frame.height);
        let plot = plot(&frame, title, series, i % columns == 0);
        let _ = writeln!(svg, "<g transform=\"translate({} {})\">\n{plot}</g>", num(x), num(y));
    }
    svg + &legend + "</svg>\n"
}

/// A curve with its name and look in this panel.
struct Series<'a> {
    curve: &'a Curve,
    name: String,
    style: Style,
}

fn series<'a>(curves: &[&'a Curve]) -> Vec<Series<'a>> {
    let look = |curve: &&'a Curve| {
        let (name, style) = (paper_name(&curve.algorithm), Style::of(&curve.algorithm));
        let alone = curves.iter().filter(|other| other.algorithm == curve.algorithm).count() == 1;
        match &curve.only_mode {
            Some(mode) if !alone => Series { curve, name: format!("{name} {mode}"), style: style.in_mode(mode) },
            _ => Series { curve, name: name.to_string(), style },
        }
    };
    curves.iter().map(look).collect()
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
fn describe(series: &[Series]) -> String {
    let mut text = String::from("Sub-optimality against the number of logged rounds, both on log axes.");
    for series in from_worst_to_best(series) {
        if let Some(last) = series.curve.points.last() {
            let _ = write!(
                text,
                " {} at n = {}: {:.4}, 95 % interval {:.4} to {:.4}.",
                series.name, last.n, last.mean, last.low, last.high
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

fn axes(frame: &Frame, series: &[Series]) -> (Axis, Axis) {
    let points = || series.iter().flat_map(|series| &series.curve.points).filter(|point| point.mean.is_finite());
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

fn plot(frame: &Frame, title: &str, series: &[Series], y_label: bool) -> String {
    let (x, y) = axes(frame, series);
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
    let mut back_to_front: Vec<&Series> = series.iter().collect();
    back_to_front.sort_by(|a, b| compare_algorithms(&b.curve.algorithm, &a.curve.algorithm));
    back_to_front.iter().for_each(|series| svg += &band(series, &x, &y));
    let _ = writeln!(
        svg,
        "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#444\"/>",
        num(left),
        num(top),
        num(bottom),
        num(right)
    );
    back_to_front.iter().for_each(|series| svg += &line(series, &x, &y));
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
    if series.is_empty() {
        svg += &tick_text(&num(middle), &num(centre), "middle", "no results");
    }
    svg
}

fn tick_text(x: &str, y: &str, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"11\" fill=\"#444\">{text}</text>\n")
}

fn band(Series { curve, style, .. }: &Series, x: &Axis, y: &Axis) -> String {
    if style.marker.is_empty() || curve.points.iter().all(|point| point.reps < 2) {
        return String::new();
    }
    let corner = |n: usize, value: f64| format!("{},{}", num(x.at(n as f64)), num(y.at(value)));
    let lower = curve.points.iter().map(|point| corner(point.n, point.low));
    let upper = curve.points.iter().rev().map(|point| corner(point.n, point.high));
    let corners: Vec<String> = lower.chain(upper).collect();
    format!("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.13\"/>\n", corners.join(" "), style.colour)
}

fn line(Series { curve, style, .. }: &Series, x: &Axis, y: &Axis) -> String {
    let mut at: Vec<(f64, f64)> = curve.points.iter().map(|point| (x.at(point.n as f64), y.at(point.mean))).collect();
    // A reference that was measured once holds for every n.
    if let (true, &[(_, level)]) = (style.marker.is_empty(), at.as_slice()) {
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
            free = x - MARKER_GAP;
        }
    }
    svg
}

fn from_worst_to_best<'a, 'b>(series: &'b [Series<'a>]) -> Vec<&'b Series<'a>> {
    let mut sorted: Vec<&Series> = series.iter().collect();
    let last = |series: &Series| series.curve.points.last().map_or(f64::INFINITY, |point| point.mean);
    sorted.sort_by(|a, b| last(b).total_cmp(&last(a)));
    sorted
}

/// Text that is safe between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Selection;
    use crate::summary::{Chosen, Point, Setting};

    fn curve(algorithm: &str, means: &[f64]) -> Curve {
        let point = |(i, mean): (usize, &f64)| {
            let n = 10usize.pow(i as u32 + 1);
            Point { n, mean: *mean, low: mean * 0.9, high: mean * 1.1, reps: 10 }
        };
        Curve {
            dataset: "cosine".into(),
            algorithm: algorithm.into(),
            selection: Selection::Oracle,
            only_mode: None,
            chosen: Chosen(vec![(Setting { beta: Some(0.05), ..Setting::default() }, 10)]),
            points: means.iter().enumerate().map(point).collect(),
        }
    }

    #[test]
    fn the_floor_comes_from_the_smallest_positive_mean_but_not_below_a_ten_thousandth_of_the_top() {
        let frame = Frame { width: 640.0, height: 440.0, left: 60.0, right: 60.0, top: 30.0, bottom: 30.0 };
        let floor = |means: &[f64]| axes(&frame, &series(&[&curve("neuralcb", means)])).1.low;
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
    fn curves_of_one_algorithm_are_told_apart_by_their_mode() {
        let mut curves = [curve("neuralcb", &[0.9, 0.1]), curve("neuralcb", &[0.8, 0.3]), curve("uniform", &[1.0])];
        curves[0].only_mode = Some("S".into());
        curves[1].only_mode = Some("B".into());
        let curves: Vec<&Curve> = curves.iter().collect();
        let both = panel("Cosine", &curves);
        assert!(both.contains(">NeuraLCB S</text>") && both.contains(">NeuraLCB B</text>"), "{both}");
        assert!(both.contains(">uniform policy</text>"));
        assert!(panel("Cosine", &curves[1..]).contains(">NeuraLCB</text>"));
        let strip = figure(&[("a".to_string(), curves.clone()), ("b".to_string(), curves)]);
        assert_eq!((strip.matches(">NeuraLCB S</text>").count(), strip.matches(">NeuraLCB B</text>").count()), (1, 1));
    }

    #[test]
    fn a_panel_grows_with_its_legend() {
        let curves: Vec<Curve> = (0..20).map(|i| curve(&format!("algorithm {i}"), &[0.5, 0.4])).collect();
        let svg = panel("many", &curves.iter().collect::<Vec<_>>());
        assert!(svg.contains("width=\"700\" height=\"690\""), "{}", &svg[..200]);
        assert!(panel("few", &[]).contains("width=\"700\" height=\"440\""));
    }
}
