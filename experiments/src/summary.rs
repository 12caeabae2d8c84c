//! From result rows to curves: for each algorithm the chosen setting, its mean over repetitions and a 95 % interval.
//!
//! The interval of R repetitions with sample deviation s is mean ∓ t·s/√R, where t is the 0.975 quantile of Student's t
//! with R − 1 degrees of freedom. One repetition says nothing about spread: its interval is the point itself.

use std::collections::BTreeMap;
use std::fmt;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::rows::ResultRow;

/// The hyper-parameters of a curve; those that do not apply to its algorithm are `None`.
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
    fn of(row: &ResultRow) -> Setting {
        Setting {
            mode: row.key.mode.clone(),
            learning_rate: row.key.learning_rate,
            sigma: row.key.sigma,
            beta: row.key.beta,
        }
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

/// How the setting of a curve was chosen among those that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// By the smallest mean sub-optimality on the test contexts at the largest n: the choice that the paper implies. It
    /// looks at the answer, so the curve is optimistic.
    OracleLast,
}

impl Selection {
    /// The word for this choice in tables.
    pub fn name(self) -> &'static str {
        match self {
            Selection::OracleLast => "oracle",
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
    fn over(n: usize, values: &[f64]) -> Point {
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

/// One line of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Data set, such as `quadratic`.
    pub dataset: String,
    /// Algorithm, such as `neuralcb`.
    pub algorithm: String,
    /// How the setting was chosen.
    pub selection: Selection,
    /// The setting that was chosen.
    pub setting: Setting,
    /// One point per n, in increasing order; never empty when it comes from [`select`].
    pub points: Vec<Point>,
}

/// One curve per data set and algorithm, in canonical order, each with its best setting by [`Selection::OracleLast`].
///
/// Only settings that reached the largest n of their data set and algorithm can be chosen; among equals the first in
/// canonical order is. The order of `rows` does not matter. Rows of several splits or behaviour policies would be
/// averaged as if they were repetitions: choose one of each first.
pub fn select(rows: &[ResultRow]) -> Vec<Curve> {
    let mut rows: Vec<&ResultRow> = rows.iter().collect();
    rows.sort_by(|a, b| a.key.compare(&b.key));
    rows.chunk_by(|a, b| a.key.dataset == b.key.dataset && a.key.algorithm == b.key.algorithm)
        .map(best_setting)
        .collect()
}

fn best_setting(rows: &[&ResultRow]) -> Curve {
    let last = rows.iter().map(|row| row.key.n).max().unwrap_or_default();
    let (setting, points) = rows
        .chunk_by(|a, b| Setting::of(a) == Setting::of(b))
        .map(|rows| (Setting::of(rows[0]), points(rows)))
        .filter(|(_, points)| points.last().is_some_and(|point| point.n == last))
        .min_by(|(_, a), (_, b)| last_mean(a).total_cmp(&last_mean(b)))
        .expect("the row with the largest n has a setting");
    let (dataset, algorithm) = (rows[0].key.dataset.clone(), rows[0].key.algorithm.clone());
    Curve { dataset, algorithm, selection: Selection::OracleLast, setting, points }
}

fn points(rows: &[&ResultRow]) -> Vec<Point> {
    let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for row in rows {
        values.entry(row.key.n).or_default().push(row.suboptimality);
    }
    values.iter().map(|(n, values)| Point::over(*n, values)).collect()
}

fn last_mean(points: &[Point]) -> f64 {
    points.last().map_or(f64::INFINITY, |point| point.mean)
}

/// The table `summary.csv` of one figure.
pub fn to_csv(figure: &str, curves: &[Curve]) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory does not fail";
    let header = "figure,dataset,algorithm,selection,mode,learning_rate,sigma,beta,n,mean,low,high,reps";
    table.write_record(header.split(',')).expect(written);
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for curve in curves {
        let setting = &curve.setting;
        for point in &curve.points {
            let cells = [
                figure,
                &curve.dataset,
                &curve.algorithm,
                curve.selection.name(),
                setting.mode.as_deref().unwrap_or_default(),
                &number(setting.learning_rate),
                &number(setting.sigma),
                &number(setting.beta),
                &point.n.to_string(),
                &point.mean.to_string(),
                &point.low.to_string(),
                &point.high.to_string(),
                &point.reps.to_string(),
            ];
            table.write_record(cells).expect(written);
        }
    }
    String::from_utf8(table.into_inner().expect(written)).expect("cells are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Key;

    fn row(algorithm: &str, beta: Option<f64>, rep: usize, n: usize, suboptimality: f64) -> ResultRow {
        let (dataset, algorithm) = ("cosine".into(), algorithm.into());
        let key = Key { dataset, algorithm, beta, rep, n, ..Key::default() };
        ResultRow { key, suboptimality, accuracy: None }
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
    fn the_oracle_takes_the_best_mean_at_the_last_n_even_if_it_was_worse_before() {
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
        let curves = select(&rows);
        let names: Vec<&str> = curves.iter().map(|curve| curve.algorithm.as_str()).collect();
        assert_eq!(names, ["neuralcb", "lin-lcb"]);
        assert_eq!(curves[1].setting.beta, Some(0.1));
        assert_eq!(curves[1].points.iter().map(|point| point.n).collect::<Vec<_>>(), [10, 100]);
        assert_eq!(curves[1].points[1].mean, 0.4);
    }

    #[test]
    fn equal_settings_are_decided_by_canonical_order() {
        let mut rows = vec![row("lin-lcb", Some(1.0), 0, 10, 0.5), row("lin-lcb", Some(0.1), 0, 10, 0.5)];
        assert_eq!(select(&rows)[0].setting.beta, Some(0.1));
        rows.reverse();
        assert_eq!(select(&rows)[0].setting.beta, Some(0.1));
        assert!(select(&[]).is_empty());
    }

    #[test]
    fn the_text_of_a_summary_is_as_promised() {
        let rows = [row("lin-lcb", Some(0.1), 0, 10, 0.5), row("lin-lcb", Some(0.1), 0, 20, 0.25)];
        assert_eq!(
            to_csv("fig1", &select(&rows)),
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
