//! What the report page shows, as plain data: every curve of the grid, what each way of choosing makes of them, and
//! what ran.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::summary::Setting;

use crate::chart::Style;
use crate::names::compare_algorithms;

/// Everything on the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportData {
    /// The page's heading.
    pub title: String,
    /// The figures in their order.
    pub figures: Vec<ReportFigure>,
    /// The problems that the figures' panels point to.
    pub problems: Vec<ReportProblem>,
    /// Our values beside those of the paper and of the released code.
    pub comparison: Vec<Comparison>,
    /// The settings of the run, as pretty JSON.
    pub settings: String,
    /// What ran, where and for how long.
    pub run: RunInfo,
}

/// One figure: panels under a heading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportFigure {
    /// The name in files and links, such as `fig2`.
    pub id: String,
    /// The heading, such as `Figure 2: real data`.
    pub title: String,
    /// What the figure shows, in a sentence or two.
    pub caption: String,
    /// Its panels, as indices into [`ReportData::problems`].
    pub panels: Vec<usize>,
    /// The neural algorithms are drawn once per mode, S against B (Figure 4).
    pub by_mode: bool,
}

/// One bandit with one behaviour policy: a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportProblem {
    /// Data set, such as `quadratic`.
    pub dataset: String,
    /// The panel's heading.
    pub title: String,
    /// The policy that made the log, such as `epsilon-greedy(0.1)`.
    pub behaviour: String,
    /// How training and test rows were told apart; `None` where contexts are drawn anew.
    pub split: Option<String>,
    /// Every setting that was run.
    pub curves: Vec<ReportCurve>,
    /// What the ways of choosing among them give.
    pub choices: Vec<ReportChoice>,
}

/// One algorithm with one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportCurve {
    /// Algorithm, such as `neuralcb`.
    pub algorithm: String,
    /// How the network is trained: `S` or `B`.
    pub mode: Option<String>,
    /// Learning rate of the network.
    pub learning_rate: Option<f64>,
    /// Bandwidth of the kernel.
    pub sigma: Option<f64>,
    /// Pessimism of the policy.
    pub beta: Option<f64>,
    /// Repetitions behind each point.
    pub reps: usize,
    /// `[n, mean, low, high]` in increasing n; low and high end the 95 % interval.
    pub points: Vec<[f64; 4]>,
}

/// What a way of choosing the hyper-parameters gives for one algorithm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportChoice {
    /// The way: `oracle`, `oracle-over-time` or `log-only`.
    pub selection: String,
    /// Algorithm, such as `neuralcb`.
    pub algorithm: String,
    /// The mode that the choice was confined to; `None` where it was free.
    pub mode: Option<String>,
    /// What was chosen, for people: `B, lr 0.001, β 5`, or counts where repetitions differ.
    pub setting: String,
    /// Repetitions behind each point.
    pub reps: usize,
    /// `[n, mean, low, high]` as in [`ReportCurve::points`].
    pub points: Vec<[f64; 4]>,
}

/// One line of the table paper · released code · ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared.
    pub what: String,
    /// In the paper.
    pub paper: String,
    /// By the code released with it.
    pub released: String,
    /// Here.
    pub ours: String,
}

/// What ran, where and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of the program.
    pub version: String,
    /// Processor and system.
    pub machine: String,
    /// Threads that worked.
    pub threads: usize,
    /// When the run ended, UTC.
    pub finished: String,
    /// Seconds from start to end.
    pub wall_seconds: f64,
    /// Seconds of all threads' work together.
    pub compute_seconds: f64,
}

/// The ways of choosing hyper-parameters in the order in which they are shown, with the word for people and what each
/// looks at. The first that a report has is its headline.
pub(super) const SELECTIONS: [(&str, &str, &str); 3] = [
    (
        "log-only",
        "log only",
        "Hyper-parameters are chosen from the log alone, separately in each repetition, as a practitioner would have to.",
    ),
    (
        "oracle",
        "oracle",
        "Hyper-parameters are chosen by the true sub-optimality on the test contexts at the last n. The oracle looks at \
         the truth, so its curves are optimistic.",
    ),
    (
        "oracle-over-time",
        "oracle over time",
        "Hyper-parameters are chosen by the smallest true sub-optimality at any n. This looks at the truth at the best \
         moment of the run, so its curves are the most optimistic.",
    ),
];

/// The order of legends and tables: algorithms, then references.
pub(super) fn compare_shown(a: &str, b: &str) -> Ordering {
    let reference = |name: &str| Style::of(name).reference;
    reference(a).cmp(&reference(b)).then_with(|| compare_algorithms(a, b))
}

impl ReportProblem {
    /// The algorithms of this problem, each once, in the order of legends and tables.
    pub(super) fn algorithms(&self) -> Vec<&str> {
        let names = self.curves.iter().map(|c| &c.algorithm).chain(self.choices.iter().map(|c| &c.algorithm));
        let mut names: Vec<&str> = names.map(String::as_str).collect();
        names.sort_by(|a, b| compare_shown(a, b));
        names.dedup();
        names
    }

    /// The modes in which an algorithm's choices were confined, each once.
    pub(super) fn modes(&self, algorithm: &str) -> Vec<&str> {
        let mut modes: Vec<&str> =
            self.choices.iter().filter(|c| c.algorithm == algorithm).filter_map(|c| c.mode.as_deref()).collect();
        modes.sort_unstable_by(|a, b| b.cmp(a)); // S, the paper's first, before B
        modes.dedup();
        modes
    }

    /// The line of an algorithm under a way of choosing. Where there was nothing to choose, because the algorithm has
    /// one curve only, that curve is the line under every way.
    pub(super) fn chosen(&self, selection: &str, algorithm: &str, mode: Option<&str>) -> Option<Chosen<'_>> {
        let choice = self
            .choices
            .iter()
            .find(|c| c.selection == selection && c.algorithm == algorithm && c.mode.as_deref() == mode)
            .map(|c| Chosen { setting: c.setting.clone(), reps: c.reps, points: &c.points });
        choice.or_else(|| {
            let mut own = self.curves.iter().filter(|c| c.algorithm == algorithm);
            match (own.next(), own.next(), mode) {
                (Some(c), None, None) => Some(Chosen { setting: c.setting(), reps: c.reps, points: &c.points }),
                _ => None,
            }
        })
    }
}

impl ReportCurve {
    /// The setting for people, such as `B, lr 0.001, β 5`.
    pub(super) fn setting(&self) -> String {
        let &ReportCurve { learning_rate, sigma, beta, .. } = self;
        Setting { mode: self.mode.clone(), learning_rate, sigma, beta }.to_string()
    }
}

/// A line that is drawn or listed.
#[derive(Debug, PartialEq)]
pub(super) struct Chosen<'a> {
    pub setting: String,
    pub reps: usize,
    pub points: &'a [[f64; 4]],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> ReportProblem {
        let curve = |algorithm: &str, beta| ReportCurve {
            algorithm: algorithm.into(),
            mode: None,
            learning_rate: None,
            sigma: None,
            beta,
            reps: 3,
            points: vec![[10.0, 0.5, 0.4, 0.6]],
        };
        let choice = |selection: &str, mode: Option<&str>| ReportChoice {
            selection: selection.into(),
            algorithm: "neuralcb".into(),
            mode: mode.map(str::to_string),
            setting: "β 1".into(),
            reps: 3,
            points: vec![],
        };
        ReportProblem {
            dataset: "cosine".into(),
            title: "cosine".into(),
            behaviour: "uniform".into(),
            split: None,
            curves: vec![curve("neuralcb", Some(1.0)), curve("neuralcb", Some(5.0)), curve("clone", None)],
            choices: vec![choice("oracle", None), choice("oracle", Some("B")), choice("oracle", Some("S"))],
        }
    }

    #[test]
    fn what_has_one_curve_needs_no_choice_and_what_has_more_does() {
        let problem = problem();
        assert_eq!(problem.chosen("log-only", "clone", None).unwrap().points, &[[10.0, 0.5, 0.4, 0.6]]);
        assert_eq!(problem.chosen("log-only", "clone", Some("S")), None);
        assert_eq!(problem.chosen("log-only", "neuralcb", None), None);
        assert_eq!(problem.chosen("oracle", "neuralcb", None).unwrap().setting, "β 1");
    }

    #[test]
    fn algorithms_and_modes_are_listed_once() {
        assert_eq!(problem().algorithms(), ["neuralcb", "clone"]);
        assert_eq!(problem().modes("neuralcb"), ["S", "B"]);
        assert!(problem().modes("clone").is_empty());
    }
}
