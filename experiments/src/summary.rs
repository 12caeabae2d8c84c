//! From result rows to curves: for each algorithm the chosen setting, its mean over repetitions and a 95 % interval.
//!
//! The interval of R repetitions with sample deviation s is mean ∓ t·s/√R, where t is the 0.975 quantile of Student's t
//! with R − 1 degrees of freedom. One repetition says nothing about spread: its interval is the point itself.

use std::collections::BTreeMap;
use std::fmt;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::names::Selection;
use crate::rows::{Key, ResultRow, ValidationRow};

/// The hyper-parameters of a policy; those that do not apply to its algorithm are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setting {
    /// How a network is trained: `S` or `B`.
    pub mode: Option<String>,
    /// Learning rate of the network.
    pub learning_rate: Option<f64>,
    /// Bandwidth of the kernel.
    pub sigma: Option<f64>,
    /// Pessimism of the policy.
    pub beta: Option<f64>,
}

impl Setting {
    pub(crate) fn of(key: &Key) -> Setting {
        Setting { mode: key.mode.clone(), learning_rate: key.learning_rate, sigma: key.sigma, beta: key.beta }
    }

    /// Mode, learning rate, σ and β as text, empty where they do not apply.
    fn cells(&self) -> [String; 4] {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        [self.mode.clone().unwrap_or_default(), number(self.learning_rate), number(self.sigma), number(self.beta)]
    }
}

/// Writes a setting for people, such as `B, lr 0.001, β 0.05`; nothing if no hyper-parameter applies.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.mode.clone(),
            self.learning_rate.map(|value| format!("lr {value}")),
            self.sigma.map(|value| format!("σ {value}")),
            self.beta.map(|value| format!("β {value}")),
        ];
        f.pad(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// The settings of a curve with the number of repetitions that use each, the most frequent first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chosen(pub Vec<(Setting, usize)>);

impl Chosen {
    fn count(settings: Vec<Setting>) -> Chosen {
        let mut counts: Vec<(Setting, usize)> = Vec::new();
        for setting in settings {
            match counts.iter_mut().find(|(known, _)| *known == setting) {
                Some((_, count)) => *count += 1,
                None => counts.push((setting, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Chosen(counts)
    }

    /// Each hyper-parameter's values in the order of their frequency, joined by `|`.
    fn cells(&self) -> [String; 4] {
        let mut cells: [Vec<String>; 4] = Default::default();
        for (setting, _) in &self.0 {
            for (cell, value) in cells.iter_mut().zip(setting.cells()) {
                if !cell.contains(&value) {
                    cell.push(value);
                }
            }
        }
        cells.map(|values| values.join("|"))
    }
}

/// Writes the settings for people: one as it is, several with how often each was chosen.
impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.pad(""),
            [(only, _)] => only.fmt(f),
            [(first, count), others @ ..] => {
                let others_count: usize = others.iter().map(|(_, count)| count).sum();
                f.pad(&format!("{first} (×{count}), {} more (×{others_count})", others.len()))
            }
        }
    }
}

/// Sub-optimality after n rounds, over repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Rounds of the log.
    pub n: usize,
    /// Mean over repetitions.
    pub mean: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Number of repetitions R.
    pub reps: usize,
}

impl Point {
    pub(crate) fn over(n: usize, values: &[f64]) -> Point {
        let reps = values.len();
        let mean = values.iter().sum::<f64>() / reps as f64;
        let half = if reps > 1 {
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (reps - 1) as f64;
            t_quantile(reps - 1) * (variance / reps as f64).sqrt()
        } else {
            0.0
        };
        Point { n, mean, low: mean - half, high: mean + half, reps }
    }
}

fn t_quantile(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).expect("at least one degree of freedom").inverse_cdf(0.975)
}

/// One line of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Data set, such as `quadratic`.
    pub dataset: String,
    /// Algorithm, such as `neuralcb`.
    pub algorithm: String,
    /// How the setting was chosen.
    pub selection: Selection,
    /// The one mode that was allowed, where modes are compared.
    pub only_mode: Option<String>,
    /// The settings that were chosen.
    pub chosen: Chosen,
    /// One point per n, in increasing order; never empty when it comes from [`select`].
    pub points: Vec<Point>,
}

/// One curve per data set and algorithm, in canonical order, with the setting that `selection` chooses.
///
/// Only settings that reached the largest n of their data set and algorithm can be chosen; among equals the first in
/// canonical order is. The order of `rows` does not matter. Rows of several splits or behaviour policies would be
/// averaged as if they were repetitions: choose one of each first. `log-only` needs the validations of the same runs; a
/// repetition without any keeps the first setting.
pub fn select(rows: &[&ResultRow], validations: &[&ValidationRow], selection: Selection) -> Vec<Curve> {
    select_mode(rows, validations, selection, None)
}

/// As [`select`], among the settings of one training mode only; algorithms without modes have no curve.
pub fn select_mode(
    rows: &[&ResultRow],
    validations: &[&ValidationRow],
    selection: Selection,
    only_mode: Option<&str>,
) -> Vec<Curve> {
    let mut rows: Vec<&ResultRow> =
        rows.iter().copied().filter(|row| only_mode.is_none() || row.key.mode.as_deref() == only_mode).collect();
    rows.sort_by(|a, b| a.key.compare(&b.key));
    rows.chunk_by(|a, b| a.key.dataset == b.key.dataset && a.key.algorithm == b.key.algorithm)
        .map(|rows| {
            let (chosen, points) = match selection {
                Selection::LogOnly => choose_per_repetition(rows, validations),
                _ => choose_by_truth(rows, selection),
            };
            let (dataset, algorithm) = (rows[0].key.dataset.clone(), rows[0].key.algorithm.clone());
            let only_mode = only_mode.map(str::to_owned);
            Curve { dataset, algorithm, selection, only_mode, chosen, points }
        })
        .collect()
}

/// The curve of every setting of one algorithm on one problem, in canonical order.
pub fn settings(rows: &[&ResultRow]) -> Vec<(Setting, Vec<Point>)> {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| a.key.compare(&b.key));
    rows.chunk_by(|a, b| Setting::of(&a.key) == Setting::of(&b.key))
        .map(|rows| (Setting::of(&rows[0].key), points(rows)))
        .collect()
}

fn choose_by_truth(rows: &[&ResultRow], selection: Selection) -> (Chosen, Vec<Point>) {
    let last = rows.iter().map(|row| row.key.n).max().unwrap_or_default();
    let score = |points: &[Point]| match selection {
        Selection::OracleOverTime => points.iter().map(|p| p.mean).fold(f64::INFINITY, f64::min),
        _ => points.last().map_or(f64::INFINITY, |point| point.mean),
    };
    let (setting, points) = settings(rows)
        .into_iter()
        .filter(|(_, points)| points.last().is_some_and(|point| point.n == last))
        .min_by(|(_, a), (_, b)| score(a).total_cmp(&score(b)))
        .expect("the row with the largest n has a setting");
    let reps = points.last().map_or(0, |point| point.reps);
    (Chosen(vec![(setting, reps)]), points)
}

fn choose_per_repetition(rows: &[&ResultRow], validations: &[&ValidationRow]) -> (Chosen, Vec<Point>) {
    let mut by_rep: BTreeMap<usize, Vec<&ResultRow>> = BTreeMap::new();
    for row in rows {
        by_rep.entry(row.key.rep).or_default().push(row);
    }
    let (mut chosen, mut kept) = (Vec::new(), Vec::new());
    for (rep, rows) in by_rep {
        let first = &rows[0].key;
        let own = |v: &&&ValidationRow| {
            let key = &v.key;
            (key.rep, &key.dataset, &key.algorithm) == (rep, &first.dataset, &first.algorithm)
                && rows.iter().any(|row| Setting::of(&row.key) == Setting::of(key))
        };
        // the first of equal ones in canonical order
        let mut candidates: Vec<&&ValidationRow> = validations.iter().filter(own).collect();
        candidates.sort_by(|a, b| b.lower_bound.total_cmp(&a.lower_bound).then_with(|| a.key.compare(&b.key)));
        let setting = Setting::of(candidates.first().map_or(first, |best| &best.key));
        kept.extend(rows.iter().copied().filter(|row| Setting::of(&row.key) == setting));
        chosen.push(setting);
    }
    (Chosen::count(chosen), points(&kept))
}

fn points(rows: &[&ResultRow]) -> Vec<Point> {
    let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for row in rows {
        values.entry(row.key.n).or_default().push(row.suboptimality);
    }
    values.iter().map(|(n, values)| Point::over(*n, values)).collect()
}

/// The table `summary.csv`: figures with their curves.
pub fn to_csv<'a>(figures: impl IntoIterator<Item = (&'a str, &'a [Curve])>) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory does not fail";
    let header = "figure,dataset,algorithm,selection,mode,learning_rate,sigma,beta,n,mean,low,high,reps";
    table.write_record(header.split(',')).expect(written);
    for (figure, curves) in figures {
        for curve in curves {
            let [mode, learning_rate, sigma, beta] = curve.chosen.cells();
            for point in &curve.points {
                let cells = [
                    figure,
                    &curve.dataset,
                    &curve.algorithm,
                    curve.selection.name(),
                    &mode,
                    &learning_rate,
                    &sigma,
                    &beta,
                    &point.n.to_string(),
                    &point.mean.to_string(),
                    &point.low.to_string(),
                    &point.high.to_string(),
                    &point.reps.to_string(),
                ];
                table.write_record(cells).expect(written);
            }
        }
    }
    String::from_utf8(table.into_inner().expect(written)).expect("cells are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(algorithm: &str, beta: Option<f64>, rep: usize, n: usize, suboptimality: f64) -> ResultRow {
        let (dataset, algorithm) = ("cosine".into(), algorithm.into());
        let key = Key { dataset, algorithm, beta, rep, n, ..Key::default() };
        ResultRow { key, suboptimality, accuracy: None }
    }

    fn oracle(rows: &[ResultRow]) -> Vec<Curve> {
        select(&rows.iter().collect::<Vec<_>>(), &[], Selection::Oracle)
    }

    #[test]
    fn the_t_quantile_is_that_of_the_tables() {
        // Any statistical table: t_{0.975} for 1, 2, 9 and 29 degrees of freedom.
        for (freedom, t) in [(1, 12.706205), (2, 4.302653), (9, 2.262157), (29, 2.045230)] {
            assert!((t_quantile(freedom) - t).abs() < 1e-6, "{freedom}: {}", t_quantile(freedom));
        }
    }

    #[test]
    fn ten_repetitions_give_the_interval_computed_by_hand() {
        // 1..=10: mean 5.5, variance 82.5/9, so the half-width is 2.262157·√(82.5/9/10) = 2.165852.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let point = Point::over(100, &values);
        assert_eq!((point.n, point.mean, point.reps), (100, 5.5, 10));
        assert!((point.high - 7.665852).abs() < 2e-6, "{}", point.high);
        assert!((point.low - 3.334148).abs() < 2e-6, "{}", point.low);
    }

    #[test]
    fn one_repetition_has_an_interval_of_one_point() {
        assert_eq!(Point::over(10, &[0.3]), Point { n: 10, mean: 0.3, low: 0.3, high: 0.3, reps: 1 });
    }

    #[test]
    fn the_oracle_takes_the_best_mean_at_the_last_n_and_its_twin_the_best_at_any() {
        let rows = [
            row("lin-lcb", Some(0.1), 0, 100, 0.5),
            row("lin-lcb", Some(0.1), 1, 100, 0.3),
            row("lin-lcb", Some(0.1), 0, 10, 0.9),
            row("lin-lcb", Some(0.1), 1, 10, 0.9),
            row("lin-lcb", Some(1.0), 0, 100, 0.2),
            row("lin-lcb", Some(1.0), 1, 100, 0.7),
            row("lin-lcb", Some(1.0), 0, 10, 0.1),
            row("lin-lcb", Some(1.0), 1, 10, 0.1),
            // Never reached n = 100, so its fine value at n = 10 does not count.
            row("lin-lcb", Some(5.0), 0, 10, 0.0),
            row("neuralcb", Some(5.0), 0, 10, 0.6),
        ];
        let curves = oracle(&rows);
        let names: Vec<&str> = curves.iter().map(|curve| curve.algorithm.as_str()).collect();
        assert_eq!(names, ["neuralcb", "lin-lcb"]);
        assert_eq!(curves[1].chosen.to_string(), "β 0.1");
        assert_eq!(curves[1].points.iter().map(|point| point.n).collect::<Vec<_>>(), [10, 100]);
        assert_eq!(curves[1].points[1].mean, 0.4);
        let over_time = select(&rows.iter().collect::<Vec<_>>(), &[], Selection::OracleOverTime);
        assert_eq!(over_time[1].chosen.to_string(), "β 1");
    }

    #[test]
    fn the_log_chooses_in_each_repetition_on_its_own_and_never_by_the_truth() {
        let rows = [
            row("lin-lcb", Some(0.1), 0, 100, 0.5),
            row("lin-lcb", Some(0.1), 1, 100, 0.3),
            row("lin-lcb", Some(0.1), 2, 100, 0.3),
            row("lin-lcb", Some(1.0), 0, 100, 0.2),
            row("lin-lcb", Some(1.0), 1, 100, 0.7),
            row("lin-lcb", Some(1.0), 2, 100, 0.9),
        ];
        let validation = |beta, rep, lower_bound| ValidationRow {
            key: row("lin-lcb", Some(beta), rep, 80, 0.0).key,
            estimate: 0.5,
            lower_bound,
        };
        let validations = [
            validation(0.1, 0, 0.3),
            validation(1.0, 0, 0.4),
            validation(0.1, 1, 0.2),
            validation(1.0, 1, 0.1),
            // equal bounds: the first in canonical order
            validation(1.0, 2, 0.1),
            validation(0.1, 2, 0.1),
        ];
        let curve =
            &select(&rows.iter().collect::<Vec<_>>(), &validations.iter().collect::<Vec<_>>(), Selection::LogOnly)[0];
        assert!((curve.points[0].mean - (0.2 + 0.3 + 0.3) / 3.0).abs() < 1e-12);
        assert_eq!(curve.chosen.to_string(), "β 0.1 (×2), 1 more (×1)");
        assert!(to_csv([("fig1", std::slice::from_ref(curve))]).contains("fig1,cosine,lin-lcb,log-only,,,,0.1|1,100,"));
    }

    #[test]
    fn modes_are_compared_by_choosing_within_each() {
        let with_mode = |mode: &str, value| {
            let mut row = row("neuralcb", Some(1.0), 0, 10, value);
            row.key.mode = Some(mode.into());
            row
        };
        let rows = [with_mode("S", 0.2), with_mode("B", 0.1), row("lin-lcb", Some(1.0), 0, 10, 0.3)];
        let rows: Vec<&ResultRow> = rows.iter().collect();
        let curves = select_mode(&rows, &[], Selection::Oracle, Some("S"));
        assert_eq!((curves.len(), curves[0].points[0].mean, curves[0].only_mode.as_deref()), (1, 0.2, Some("S")));
    }

    #[test]
    fn equal_settings_are_decided_by_canonical_order() {
        let mut rows = vec![row("lin-lcb", Some(1.0), 0, 10, 0.5), row("lin-lcb", Some(0.1), 0, 10, 0.5)];
        assert_eq!(oracle(&rows)[0].chosen.to_string(), "β 0.1");
        rows.reverse();
        assert_eq!(oracle(&rows)[0].chosen.to_string(), "β 0.1");
        assert!(oracle(&[]).is_empty());
    }

    #[test]
    fn the_text_of_a_summary_is_as_promised() {
        let rows = [row("lin-lcb", Some(0.1), 0, 10, 0.5), row("lin-lcb", Some(0.1), 0, 20, 0.25)];
        assert_eq!(
            to_csv([("fig1", oracle(&rows).as_slice())]),
            "figure,dataset,algorithm,selection,mode,learning_rate,sigma,beta,n,mean,low,high,reps\n\
             fig1,cosine,lin-lcb,oracle,,,,0.1,10,0.5,0.5,0.5,1\n\
             fig1,cosine,lin-lcb,oracle,,,,0.1,20,0.25,0.25,0.25,1\n"
        );
    }

    #[test]
    fn a_setting_reads_as_a_short_phrase() {
        let setting = Setting { mode: Some("B".into()), learning_rate: Some(1e-3), sigma: None, beta: Some(0.05) };
        assert_eq!(setting.to_string(), "B, lr 0.001, β 0.05");
        assert_eq!(Setting { sigma: Some(10.0), ..Setting::default() }.to_string(), "σ 10");
        assert_eq!(Setting::default().to_string(), "");
    }
}
