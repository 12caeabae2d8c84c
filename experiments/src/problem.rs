//! A bandit, its log and its test contexts: what one repetition of a panel is about.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use neuralcb::bandit::{
    Bandit, Classification, Labelled, RewardRule, Synthetic, SyntheticConfig, TestSet, Verdict, collect,
};
use neuralcb::policy::{Behaviour, BehaviourConfig};
use neuralcb::{LoggedData, Seed};
use neuralcb_logs::datasets::{Classified, Preparation, RealData};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::error::ExperimentError;
use crate::names::{Dataset, Split};

/// Everything a problem depends on, apart from the repetition and the seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProblemConfig {
    /// Its name.
    pub dataset: Dataset,
    /// Where contexts and rewards come from.
    pub source: Source,
    /// The policy that makes the log.
    pub behaviour: BehaviourConfig,
    /// T, rounds in the log.
    pub rounds: usize,
    /// n_te, test contexts asked for.
    pub test_contexts: usize,
}

/// Where contexts and rewards come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Drawn from a formula.
    Synthetic(SyntheticConfig),
    /// Rows of a data set.
    Real {
        /// Which.
        data: RealData,
        /// How its files become numbers.
        preparation: Preparation,
        /// How its rows are divided between log and test.
        split: Split,
    },
}

impl ProblemConfig {
    /// The numbers of rounds at which policies are judged: 1, 1.5, 2, 3, 5, 7 times powers of ten, the beginning of the
    /// last fifth, and the last.
    pub fn checkpoints(&self) -> Vec<usize> {
        let mut n: Vec<usize> = (1..=9)
            .flat_map(|decade| [10, 15, 20, 30, 50, 70].map(|step: usize| step * 10usize.pow(decade) / 10))
            .filter(|&n| n < self.rounds && n != 15)
            .chain([self.held_out_from(), self.rounds])
            .collect();
        n.sort_unstable();
        n.dedup();
        n
    }

    /// The first round of the last fifth of the log, on which a policy learned from the rounds before is validated.
    pub fn held_out_from(&self) -> usize {
        (self.rounds * 4 / 5).max(1)
    }

    /// The heading of its panel.
    pub fn title(&self) -> String {
        match &self.behaviour {
            BehaviourConfig::LinUcbMixture { epsilon, .. } => format!("{}, ε = {epsilon}", self.dataset.title()),
            _ => self.dataset.title().to_owned(),
        }
    }

    /// The split's name, for real data.
    pub fn split(&self) -> Option<Split> {
        match self.source {
            Source::Synthetic(_) => None,
            Source::Real { split, .. } => Some(split),
        }
    }
}

/// The real data sets in memory, each read once.
#[derive(Debug, Default)]
pub struct Library {
    cache: PathBuf,
    loaded: Mutex<HashMap<(RealData, Preparation), Arc<Rows>>>,
}

/// Rows of a data set and where the publisher's test part begins.
#[derive(Debug)]
struct Rows {
    data: Arc<Labelled>,
    test_from: Option<usize>,
}

impl Library {
    /// Data sets in that folder; none is read yet.
    pub fn new(cache: PathBuf) -> Self {
        Library { cache, loaded: Mutex::default() }
    }

    /// Reads what the problems need, so that a missing file is told before the work starts.
    pub fn load(&self, problems: &[ProblemConfig]) -> Result<(), ExperimentError> {
        for problem in problems {
            if let Source::Real { data, preparation, .. } = problem.source {
                self.rows(data, preparation)?;
            }
        }
        Ok(())
    }

    fn rows(&self, data: RealData, preparation: Preparation) -> Result<Arc<Rows>, ExperimentError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(rows) = loaded.get(&(data, preparation)) {
            return Ok(rows.clone());
        }
        let Classified { dim, n_classes, x, labels, test_from, .. } = data.load(&preparation, &self.cache)?;
        let rows = Arc::new(Rows { data: Arc::new(Labelled { dim, n_classes, x, labels }), test_from });
        loaded.insert((data, preparation), rows.clone());
        Ok(rows)
    }
}

/// The log and the test set of one repetition.
pub struct Problem {
    /// The log to learn from.
    pub log: LoggedData,
    /// The last fifth of the log, for a choice of hyper-parameters that never sees the truth.
    pub held_out: LoggedData,
    /// The contexts to be judged on, with the truth.
    pub test: TestSet,
    /// The policy that made the log, over the rounds it played.
    pub behaviour: Verdict,
    /// The seed of models.
    pub(crate) seed: Seed,
}

impl Problem {
    /// Draws bandit, log and test contexts, from streams of their own.
    pub fn draw(config: &ProblemConfig, library: &Library, rep: usize, seed: u64) -> Result<Self, ExperimentError> {
        let seed = Seed::new(seed).child(config.dataset.name()).nth(rep as u64);
        let (log, test) = bandits(config, library, seed)?;
        let mut behaviour = Behaviour::new(&config.behaviour, log.layout())?;
        let collected = collect(log.as_ref(), &mut behaviour, config.rounds, seed.child("log"))?;
        let n_test = test.n_contexts().map_or(config.test_contexts, |n| n.min(config.test_contexts));
        let test = TestSet::draw(test.as_ref(), n_test, &mut seed.stream("test"))?;
        let held_out = collected.log.slice(config.held_out_from()..config.rounds);
        Ok(Problem { held_out, log: collected.log, test, behaviour: collected.behaviour, seed })
    }
}

impl ProblemConfig {
    /// The bandit of the first repetition with that seed: the one whose log [`Problem::draw`] makes.
    pub fn bandit(&self, library: &Library, seed: u64) -> Result<Box<dyn Bandit>, ExperimentError> {
        Ok(bandits(self, library, Seed::new(seed).child(self.dataset.name()).nth(0))?.0)
    }
}

/// The bandit that is logged and the one that is tested on.
type LogAndTest = (Box<dyn Bandit>, Box<dyn Bandit>);

/// The bandits that log and test draw from.
pub(crate) fn bandits(config: &ProblemConfig, library: &Library, seed: Seed) -> Result<LogAndTest, ExperimentError> {
    match &config.source {
        Source::Synthetic(synthetic) => {
            let bandit = Synthetic::new(synthetic.clone(), &mut seed.stream("bandit"))?;
            Ok((Box::new(bandit.clone()), Box::new(bandit)))
        }
        Source::Real { data, preparation, split } => {
            let rows = library.rows(*data, *preparation)?;
            let rule = if *data == RealData::Mushroom { RewardRule::Mushroom } else { RewardRule::Classes };
            let (log, test) = pools(&rows, *split, config, seed);
            let bandit = |pool| Classification::new(rows.data.clone(), pool, rule);
            Ok((Box::new(bandit(log)?), Box::new(bandit(test)?)))
        }
    }
}

/// The numbers of the rows that the log and the test may draw (stream `split`).
///
/// Disjoint: the publisher's test part, or else `test_contexts` rows, at most a third of all, are set aside. As
/// released: the test rows are training rows, except where the publisher's parts are separate files.
fn pools(rows: &Rows, split: Split, config: &ProblemConfig, seed: Seed) -> (Vec<u32>, Vec<u32>) {
    let n = rows.data.labels.len();
    let mut order: Vec<u32> = (0..n as u32).collect();
    if let Some(from) = rows.test_from {
        let test = order.split_off(from);
        return (order, test);
    }
    order.shuffle(&mut seed.stream("split"));
    match split {
        Split::Disjoint => {
            let test = order.split_off(n - config.test_contexts.min(n / 3));
            (order, test)
        }
        Split::ReleasedCode => {
            let test = order[..config.test_contexts.min(n)].to_vec();
            order.truncate(config.rounds.max(test.len()));
            (order, test)
        }
    }
}

/// The spelling of a behaviour policy on the command line and in files.
pub fn behaviour_name(behaviour: &BehaviourConfig) -> String {
    match behaviour {
        BehaviourConfig::Uniform => "uniform".to_owned(),
        BehaviourConfig::EpsilonGreedy { epsilon } => format!("epsilon-greedy:{epsilon}"),
        BehaviourConfig::LinUcbMixture { epsilon, .. } => format!("linucb:{epsilon}"),
        BehaviourConfig::Table(_) => "table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Figure, Preset};
    use crate::settings::Settings;

    fn config(rounds: usize) -> ProblemConfig {
        let settings = Settings { real_rounds: rounds, ..Settings::of(&[Figure::Fig2], Preset::Paper) };
        settings.problems().remove(1)
    }

    #[test]
    fn checkpoints_rise_to_the_last_round_and_pass_the_held_out_fifth() {
        assert_eq!(config(1).checkpoints(), [1]);
        assert_eq!(config(100).checkpoints(), [10, 20, 30, 50, 70, 80, 100]);
        let full = config(15_000).checkpoints();
        assert!(full.is_sorted_by(|a, b| a < b));
        for n in [1000, 2000, 5000, 10_000, 12_000, 15_000] {
            assert!(full.contains(&n));
        }
    }

    #[test]
    fn rows_are_divided_as_the_split_says() {
        let labels = vec![0; 90];
        let data = Arc::new(Labelled { dim: 1, n_classes: 1, x: vec![0.0; 90], labels });
        let rows = |test_from| Rows { data: data.clone(), test_from };
        let draw = |split, test_from| {
            let (mut log, mut test) =
                pools(&rows(test_from), split, &ProblemConfig { test_contexts: 50, ..config(70) }, Seed::new(1));
            log.sort_unstable();
            test.sort_unstable();
            (log, test)
        };
        let (log, test) = draw(Split::Disjoint, None);
        assert_eq!((log.len(), test.len()), (60, 30));
        assert!(test.iter().all(|row| !log.contains(row)));
        let (log, test) = draw(Split::ReleasedCode, None);
        assert_eq!((log.len(), test.len()), (70, 50));
        assert!(test.iter().all(|row| log.contains(row)));
        for split in [Split::Disjoint, Split::ReleasedCode] {
            let (log, test) = draw(split, Some(80));
            assert_eq!((log.last(), test.first(), test.len()), (Some(&79), Some(&80), 10));
        }
    }
}
