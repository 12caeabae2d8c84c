//! The names of the contract: data sets, algorithms, modes and presets, as they stand on the command line and in files.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Makes an enum whose variants have one spelling everywhere.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All of them, in the order of the paper.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The spelling on the command line and in files.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The one with that spelling.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.name().eq_ignore_ascii_case(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names! {
    /// A contextual bandit.
    Dataset {
        /// h_1(u) = 10(uᵀa)².
        Quadratic => "quadratic",
        /// h_2(u) = uᵀAᵀAu.
        Quadratic2 => "quadratic2",
        /// h_3(u) = cos(3uᵀa).
        Cosine => "cosine",
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
        /// Every action with the same probability.
        Uniform => "uniform",
        /// The policy that made the log.
        Behaviour => "behaviour",
    }
}

names! {
    /// How the neural model trains.
    TrainingMode {
        /// One step on the newest sample.
        S => "S",
        /// 100 steps on batches of 50 from all samples so far.
        B => "B",
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

impl Dataset {
    /// The heading of its panel.
    pub fn title(self) -> &'static str {
        match self {
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
        Some(Algorithm::Uniform) => "uniform policy",
        Some(Algorithm::Behaviour) => "behaviour policy",
        None => algorithm,
    }
}

/// The paper's data sets in its order, then others by name.
pub(crate) fn compare_datasets(a: &str, b: &str) -> Ordering {
    const PAPER: [&str; 7] = ["quadratic", "quadratic2", "cosine", "mushroom", "statlog", "adult", "mnist"];
    let rank = |name: &str| PAPER.iter().position(|known| *known == name).unwrap_or(PAPER.len());
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
}
