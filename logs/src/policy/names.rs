//! The names of the contract, as they stand on the command line and in files, and what a preset and a mode mean.

use neuralcb::model::{self, Covariance, UpdateOrder};
use neuralcb::net::{Init, NetConfig, OutputScale};

/// Makes an enum whose variants have one spelling everywhere.
#[doc(hidden)]
#[macro_export]
macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
        )]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All of them, in their order.
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

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names! {
    /// What can be trained.
    Algorithm {
        /// A learner chosen from the log alone.
        Auto => "auto",
        /// The choice likelihood on a shared trunk.
        Choice => "choice",
        /// Squared loss on a shared trunk.
        Regression => "regression",
        /// The least of networks fitted to perturbed rewards.
        Viper => "viper",
        /// A classifier of the logged actions.
        Clone => "clone",
        /// A classifier of the actions that earned more than the mean.
        CloneRewarded => "clone-rewarded",
        /// The likelihood of the logged actions, weighted by their rewards.
        RewardWeighted => "reward-weighted",
        /// The same, weighted by the exponential of their advantage.
        AdvantageWeighted => "advantage-weighted",
        /// The same, weighted by reward and inverse propensity.
        InversePropensity => "inverse-propensity",
        /// The doubly robust value of a soft-max policy.
        DoublyRobust => "doubly-robust",
        /// The logarithmically smoothed value of a soft-max policy.
        LogSmoothing => "log-smoothing",
        /// NeuraLCB.
        Neuralcb => "neuralcb",
        /// The same at β = 0.
        NeuralGreedy => "neural-greedy",
        /// Ridge regression on the gradient at initialisation.
        NeuralLinLcb => "neural-lin-lcb",
        /// The same at β = 0.
        NeuralLinGreedy => "neural-lin-greedy",
        /// Ridge regression on the context.
        LinLcb => "lin-lcb",
        /// Kernel ridge regression.
        KernLcb => "kern-lcb",
        /// `lin-lcb` at β = 0.
        LinGreedy => "lin-greedy",
        /// A table with pessimism.
        TabLcb => "tab-lcb",
        /// The same at β = 0.
        TabGreedy => "tab-greedy",
        /// A network fitted to the whole log by repeated passes, greedy.
        ReluGreedy => "relu-greedy",
        /// NeuraLCB retrained from scratch at every round.
        NeuralRetrain => "neural-retrain",
        /// The best single action.
        Constant => "constant",
        /// Every action with the same probability.
        Uniform => "uniform",
    }
}

names! {
    /// Whose settings a recipe starts from.
    Preset {
        /// What measured best over the seven data sets.
        Practical => "practical",
        /// The paper's text.
        Paper => "paper",
        /// The code released with the paper.
        ReleasedCode => "released-code",
    }
}

names! {
    /// How the neural model trains.
    Mode {
        /// One step per round, on the newest sample: memory does not grow with the log.
        S => "S",
        /// 100 steps per round on batches of 50 from all samples so far.
        B => "B",
    }
}

impl Mode {
    /// The same as a setting of the model.
    pub fn of_model(self) -> model::Mode {
        match self {
            Mode::S => model::Mode::Single,
            Mode::B => model::Mode::Batch { steps: 100, batch: 50 },
        }
    }
}

/// What a preset says of the models.
#[derive(Debug, Clone, PartialEq)]
pub struct SetUp {
    /// The network.
    pub net: NetConfig,
    /// The form of Λ.
    pub covariance: Covariance,
    /// When Λ learns of a round.
    pub order: UpdateOrder,
    /// Whether gradient features are scaled by m^{−1/2}.
    pub scale_features: bool,
    /// λ of the kernel regression, where it has its own.
    pub kernel_lambda: Option<f64>,
}

impl Preset {
    /// What it says of the models.
    pub fn set_up(self) -> SetUp {
        let plain = NetConfig { depth: 3, output_scale: OutputScale::One, init: Init::Uniform, ..NetConfig::default() };
        let paper = SetUp {
            net: NetConfig::default(),
            covariance: Covariance::Diagonal,
            order: UpdateOrder::BeforeStep,
            scale_features: false,
            kernel_lambda: None,
        };
        match self {
            Preset::Practical => SetUp { net: NetConfig { width: 128, ..plain }, ..paper },
            Preset::Paper => paper,
            Preset::ReleasedCode => SetUp {
                net: NetConfig { biases: true, ..plain },
                covariance: Covariance::PerAction,
                order: UpdateOrder::AfterStep,
                scale_features: true,
                kernel_lambda: Some(1e-6),
            },
        }
    }
}
