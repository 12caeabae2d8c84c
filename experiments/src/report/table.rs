//! Curves as a table for the terminal.

use std::fmt::Write;

use super::number::{decimals, thousands};
use crate::names::paper_name;
use crate::summary::{Curve, Point};

/// The table for the terminal: a block per data set and way of choosing, aligned, three significant digits.
pub fn table(curves: &[Curve]) -> String {
    let blocks: Vec<String> =
        curves.chunk_by(|a, b| a.dataset == b.dataset && a.selection == b.selection).map(text_block).collect();
    blocks.join("\n")
}

fn text_block(curves: &[Curve]) -> String {
    let columns = columns(curves);
    let mut lines = vec![vec!["algorithm".to_string(), "setting".to_string()]];
    lines[0].extend(columns.iter().map(|n| format!("n = {}", thousands(*n))));
    for curve in curves {
        let mut line = vec![name(curve), setting(curve)];
        line.extend(columns.iter().map(|n| match point(curve, *n) {
            None => "-".to_string(),
            Some(p) => half_width(p).map_or_else(|| mean(p), |half| format!("{} ± {half}", mean(p))),
        }));
        lines.push(line);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns.len() + 2).map(width).collect();
    let mut text = format!("{}, settings chosen by {}\n", curves[0].dataset, curves[0].selection);
    for line in &lines {
        for (i, (cell, width)) in line.iter().zip(&widths).enumerate() {
            // Words stand on the left of their column, numbers on the right.
            let _ = if i < 2 { write!(text, "  {cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// About four of the available n, evenly spread on a log scale, with the first and the last.
fn columns(curves: &[Curve]) -> Vec<usize> {
    let mut ns: Vec<usize> = curves.iter().flat_map(|curve| &curve.points).map(|point| point.n).collect();
    ns.sort_unstable();
    ns.dedup();
    let (Some(first), Some(last)) = (ns.first().copied(), ns.last().copied()) else { return Vec::new() };
    let log = |n: usize| (n.max(1) as f64).ln();
    let mut chosen: Vec<usize> = (0..4)
        .filter_map(|i| {
            let target = log(first) + (log(last) - log(first)) * f64::from(i) / 3.0;
            ns.iter().copied().min_by(|a, b| (log(*a) - target).abs().total_cmp(&(log(*b) - target).abs()))
        })
        .collect();
    chosen.dedup();
    chosen
}

fn point(curve: &Curve, n: usize) -> Option<&Point> {
    curve.points.iter().find(|point| point.n == n)
}

fn name(curve: &Curve) -> String {
    let name = paper_name(&curve.algorithm);
    curve.only_mode.as_ref().map_or_else(|| name.to_owned(), |mode| format!("{name} {mode}"))
}

fn setting(curve: &Curve) -> String {
    Some(curve.chosen.to_string()).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_string())
}

fn mean(point: &Point) -> String {
    format!("{:.*}", decimals(point.mean), point.mean)
}

/// The half-width with as many decimals as the mean; none for a single repetition, which has no spread.
fn half_width(point: &Point) -> Option<String> {
    (point.reps > 1).then(|| format!("{:.*}", decimals(point.mean), point.high - point.mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Selection;
    use crate::summary::{Chosen, Setting};

    fn curve(dataset: &str, algorithm: &str, beta: Option<f64>, points: &[(usize, f64, f64, usize)]) -> Curve {
        let point = |&(n, mean, half, reps): &(usize, f64, f64, usize)| Point {
            n,
            mean,
            low: mean - half,
            high: mean + half,
            reps,
        };
        Curve {
            dataset: dataset.into(),
            algorithm: algorithm.into(),
            selection: Selection::Oracle,
            only_mode: None,
            chosen: Chosen(vec![(Setting { beta, ..Setting::default() }, 10)]),
            points: points.iter().map(point).collect(),
        }
    }

    fn curves() -> Vec<Curve> {
        vec![
            curve("quadratic", "neuralcb", Some(0.05), &[(10, 0.51234, 0.02, 10), (10_000, 0.0123456, 0.00089, 10)]),
            curve("quadratic", "uniform", None, &[(10_000, 12.345, 0.0, 1)]),
            curve("cosine", "lin-lcb", Some(1.0), &[(10, 0.09996, 0.0, 1)]),
        ]
    }

    #[test]
    fn the_table_is_aligned_with_three_significant_digits() {
        let wanted = "\
quadratic, settings chosen by oracle
  algorithm       setting         n = 10       n = 10,000
  NeuraLCB        β 0.05   0.512 ± 0.020  0.0123 ± 0.0009
  uniform policy  -                    -             12.3

cosine, settings chosen by oracle
  algorithm  setting  n = 10
  LinLCB     β 1       0.100
";
        assert_eq!(table(&curves()), wanted);
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn four_columns_are_spread_on_a_log_scale_and_hold_both_ends() {
        let points: Vec<_> = [10, 16, 25, 40, 63, 100, 158, 251, 398, 631, 1000, 1585, 2512, 3981, 6310, 10_000]
            .map(|n| (n, 0.5, 0.1, 3))
            .to_vec();
        assert_eq!(columns(&[curve("cosine", "neuralcb", None, &points)]), [10, 100, 1000, 10_000]);
        assert_eq!(columns(&[curve("cosine", "neuralcb", None, &points[..2])]), [10, 16]);
        assert!(columns(&[]).is_empty());
    }
}
