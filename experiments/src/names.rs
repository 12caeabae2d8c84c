//! The names of the contract: data sets, algorithms, modes and presets, as they stand on the command line and in files.

use std::cmp::Ordering;

use neuralcb_logs::datasets::RealData;
use neuralcb_logs::names;
pub use neuralcb_logs::policy::Mode as TrainingMode;
use neuralcb_logs::policy::{Preset as Recipes, SetUp};

names! {
    /// A contextual bandit.
    Dataset {
        /// h_1(u) = 10(uᵀa)².
        Quadratic => "quadratic",
        /// h_2(u) = uᵀAᵀAu.
        Quadratic2 => "quadratic2",
        /// h_3(u) = cos(3uᵀa).
        Cosine => "cosine",
        /// Mushrooms to eat or not.
        Mushroom => "mushroom",
        /// States of a space shuttle's radiators.
        Statlog => "statlog",
        /// Occupations in a census.
        Adult => "adult",
        /// Handwritten digits.
        Mnist => "mnist",
    }
}

names! {
    /// A figure of the paper.
    Figure {
        /// Synthetic bandits.
        Fig1 => "fig1",
        /// Real data.
        Fig2 => "fig2",
        /// Dependent data: a behaviour policy that learns while it logs.
        Fig3 => "fig3",
        /// S-mode against B-mode.
        Fig4 => "fig4",
    }
}

names! {
    /// An algorithm, or a policy to compare with.
    Algorithm {
        /// NeuraLCB, Algorithms 1 and 7.
        Neuralcb => "neuralcb",
        /// NeuralGreedy, Algorithm 6.
        NeuralGreedy => "neural-greedy",
        /// NeuralLinLCB, Algorithm 4.
        NeuralLinLcb => "neural-lin-lcb",
        /// NeuralLinGreedy, Algorithm 5.
        NeuralLinGreedy => "neural-lin-greedy",
        /// LinLCB, Algorithm 2.
        LinLcb => "lin-lcb",
        /// KernLCB, Algorithm 3.
        KernLcb => "kern-lcb",
        /// LinLCB's greedy twin (Table 1: Duan & Wang).
        LinGreedy => "lin-greedy",
        /// A table with pessimism (Table 1: Rashidinejad et al.).
        TabLcb => "tab-lcb",
        /// A table, greedy (Table 1: Yin & Wang).
        TabGreedy => "tab-greedy",
        /// A network fitted to the whole log by repeated passes, greedy (Table 1: Nguyen-Tang et al.).
        ReluGreedy => "relu-greedy",
        /// NeuraLCB retrained from scratch at every round, O(n²) (Section 5: NeuralUCB).
        NeuralRetrain => "neural-retrain",
        /// Every action with the same probability.
        Uniform => "uniform",
        /// The one action that is best for all contexts together.
        Constant => "constant",
        /// The policy that made the log.
        Behaviour => "behaviour",
        /// A classifier of the logged actions.
        Clone => "clone",
        /// A classifier of the actions that earned more than the mean.
        CloneRewarded => "clone-rewarded",
        /// The choice likelihood on a shared trunk.
        Choice => "choice",
        /// Squared loss on a shared trunk.
        Regression => "regression",
        /// The least of networks fitted to perturbed rewards (Nguyen-Tang & Arora 2023).
        Viper => "viper",
        /// A learner chosen from the log alone.
        Auto => "auto",
    }
}

names! {
    /// Whose set-up.
    Preset {
        /// The paper's text.
        Paper => "paper",
        /// The code released with it.
        ReleasedCode => "released-code",
    }
}

names! {
    /// How the rows of a real data set are divided between the log and the test.
    Split {
        /// No row is in both.
        Disjoint => "disjoint",
        /// The test rows are training rows too, as in the released code (MNIST: separate there as well).
        ReleasedCode => "released-code",
    }
}

names! {
    /// Which policy a run returns after n rounds.
    Returned {
        /// The one learned last, π̂_n: the paper's experiments.
        Latest => "latest",
        /// The vote of the policies at every thirtieth of the log so far: the average that Algorithm 1 draws from.
        Vote => "vote",
    }
}

names! {
    /// How the hyper-parameters of a curve were chosen among those that were tried.
    Selection {
        /// By the smallest mean sub-optimality on the test contexts at the last n: what the paper's text implies. It
        /// looks at the truth, so the curve is optimistic.
        Oracle => "oracle",
        /// By the smallest mean sub-optimality at any n, as the released script did: it looks at the truth more often.
        OracleOverTime => "oracle-over-time",
        /// From the log alone, in each repetition on its own: the largest lower bound of an off-policy estimate on the
        /// last fifth of the log, for the policy learned from the first four fifths.
        LogOnly => "log-only",
    }
}

impl Preset {
    /// What it says of the models.
    pub(crate) fn set_up(self) -> SetUp {
        match self {
            Preset::Paper => Recipes::Paper,
            Preset::ReleasedCode => Recipes::ReleasedCode,
        }
        .set_up()
    }
}

impl Algorithm {
    /// What the paper's figures show, with the references: the other systems of Table 1 and the learners on a trunk run
    /// when they are asked for.
    pub fn of_the_figures() -> Vec<Algorithm> {
        use Algorithm::{
            Auto, Choice, CloneRewarded, LinGreedy, NeuralRetrain, Regression, ReluGreedy, TabGreedy, TabLcb, Viper,
        };
        let others =
            [LinGreedy, TabLcb, TabGreedy, ReluGreedy, NeuralRetrain, CloneRewarded, Choice, Regression, Viper, Auto];
        Algorithm::ALL.iter().copied().filter(|a| !others.contains(a)).collect()
    }
}

impl Figure {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Fig1 => "Figure 1: synthetic bandits",
            Figure::Fig2 => "Figure 2: real data",
            Figure::Fig3 => "Figure 3: dependent data",
            Figure::Fig4 => "Figure 4: S-mode against B-mode",
        }
    }

    /// Its panels.
    pub fn datasets(self) -> &'static [Dataset] {
        use Dataset::{Adult, Cosine, Mnist, Mushroom, Quadratic, Quadratic2, Statlog};
        match self {
            Figure::Fig1 => &[Quadratic, Quadratic2, Cosine],
            Figure::Fig2 => &[Mushroom, Statlog, Adult, Mnist],
            Figure::Fig3 => &[Statlog, Mnist],
            Figure::Fig4 => &[Cosine, Statlog, Adult, Mnist],
        }
    }
}

impl Dataset {
    /// The data set behind it, if it is a real one.
    pub fn real(self) -> Option<RealData> {
        RealData::parse(self.name())
    }

    /// The heading of its panel.
    pub fn title(self) -> &'static str {
        match self {
            Dataset::Mushroom => "Mushroom",
            Dataset::Statlog => "Statlog",
            Dataset::Adult => "Adult",
            Dataset::Mnist => "MNIST",
            Dataset::Quadratic => "h₁(u) = 10(uᵀa)²",
            Dataset::Quadratic2 => "h₂(u) = uᵀAᵀAu",
            Dataset::Cosine => "h₃(u) = cos(3uᵀa)",
        }
    }
}

/// The spelling of an algorithm in print; a name that is not known here stays as it is.
pub fn paper_name(algorithm: &str) -> &str {
    match Algorithm::parse(algorithm) {
        Some(Algorithm::Neuralcb) => "NeuraLCB",
        Some(Algorithm::NeuralGreedy) => "NeuralGreedy",
        Some(Algorithm::NeuralLinLcb) => "NeuralLinLCB",
        Some(Algorithm::NeuralLinGreedy) => "NeuralLinGreedy",
        Some(Algorithm::LinLcb) => "LinLCB",
        Some(Algorithm::KernLcb) => "KernLCB",
        Some(Algorithm::LinGreedy) => "LinGreedy",
        Some(Algorithm::TabLcb) => "TabLCB",
        Some(Algorithm::TabGreedy) => "TabGreedy",
        Some(Algorithm::ReluGreedy) => "ReLU greedy, many passes",
        Some(Algorithm::NeuralRetrain) => "retrained every round",
        Some(Algorithm::Uniform) => "uniform policy",
        Some(Algorithm::Constant) => "best constant action",
        Some(Algorithm::Behaviour) => "behaviour policy",
        Some(Algorithm::Clone) => "clone of the log",
        Some(Algorithm::CloneRewarded) => "clone of rewarded rounds",
        Some(Algorithm::Choice) => "choice",
        Some(Algorithm::Regression) => "regression",
        Some(Algorithm::Viper) => "VIPeR",
        Some(Algorithm::Auto) => "auto",
        None => algorithm,
    }
}

/// The paper's data sets in its order, then others by name.
pub(crate) fn compare_datasets(a: &str, b: &str) -> Ordering {
    let rank = |name: &str| Dataset::parse(name).map_or(Dataset::ALL.len(), |d| d as usize);
    rank(a).cmp(&rank(b)).then_with(|| a.cmp(b))
}

/// The algorithms in their order, then others by name.
pub(crate) fn compare_algorithms(a: &str, b: &str) -> Ordering {
    let rank = |name: &str| Algorithm::parse(name).map_or(Algorithm::ALL.len(), |a| a as usize);
    rank(a).cmp(&rank(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for &a in Algorithm::ALL {
            assert_eq!(Algorithm::parse(a.name()), Some(a));
        }
        assert_eq!(TrainingMode::parse("b"), Some(TrainingMode::B));
        assert_eq!(Dataset::parse("cubic"), None);
    }

    #[test]
    fn what_can_be_trained_has_the_name_that_train_knows() {
        for a in Algorithm::ALL.iter().filter(|&&a| a != Algorithm::Behaviour) {
            assert!(neuralcb_logs::policy::Algorithm::parse(a.name()).is_some(), "{a}");
        }
    }
}
