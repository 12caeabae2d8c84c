//! Which recipe is practical? One-pass neural models, one difference at a time, on the seven data sets.
//!
//! ```sh
//! cargo run --release -p neuralcb-experiments --example recipes -- [ROUNDS] [REPETITIONS]
//! ```
//!
//! Every recipe learns in S-mode from logs of an ε-greedy policy with ε = 0.1 and with ε = 0.5. A number is the
//! sub-optimality on separate test contexts, divided by that of the uniform policy: 0 is the best policy, 1 no better
//! than chance. Rows: recipe and β; the last columns are the mean over data sets and the worst of them.

use std::collections::BTreeMap;

use neuralcb::bandit::TestSet;
use neuralcb::model::{Covariance, Learner, LinearConfig, NeuralConfig};
use neuralcb::net::{Init, NetConfig, Optimiser, OutputScale, Towards};
use neuralcb::policy::{BehaviourConfig, Rounding, pessimistic};
use neuralcb::{Contexts, Eligible, Layout, LoggedData, ModelConfig, Seed};
use neuralcb_experiments::{Dataset, Figure, Library, Preset, Problem, Settings};
use neuralcb_logs::datasets::cache_dir;
use rayon::prelude::*;

const BETAS: [f64; 5] = [0.0, 0.1, 0.3, 1.0, 3.0];

#[derive(Clone)]
struct Recipe {
    name: &'static str,
    config: ModelConfig,
    /// Rewards standardised with the log's mean and deviation.
    standardise: bool,
    /// A constant feature before the scaling to unit norm.
    intercept: bool,
}

fn neural(name: &'static str, change: impl FnOnce(&mut NeuralConfig)) -> Recipe {
    let net =
        NetConfig { width: 128, depth: 3, output_scale: OutputScale::One, init: Init::Uniform, ..NetConfig::default() };
    let mut config = NeuralConfig { net, ..NeuralConfig::default() };
    change(&mut config);
    Recipe { name, config: ModelConfig::Neural(config), standardise: true, intercept: true }
}

fn recipes() -> Vec<Recipe> {
    let lr = |config: &mut NeuralConfig, lr| {
        config.optimiser = Optimiser::Adam { lr, l2: 1e-4, towards: Towards::Zero };
    };
    let base = neural("practical: L 3, m 128, scale 1, uniform, lr 1e-3", |_| {});
    vec![
        base.clone(),
        neural("lr 3e-4", |c| lr(c, 3e-4)),
        neural("lr 1e-4", |c| lr(c, 1e-4)),
        neural("lr 3e-3", |c| lr(c, 3e-3)),
        neural("m 20", |c| c.net.width = 20),
        neural("m 64", |c| c.net.width = 64),
        neural("L 2", |c| c.net.depth = 2),
        neural("output scale √m", |c| c.net.output_scale = OutputScale::SqrtWidth),
        neural("block initialisation", |c| c.net.init = Init::Block),
        neural("no layer norm", |c| c.net.layer_norm = false),
        neural("biases", |c| c.net.biases = true),
        neural("Λ per action", |c| c.covariance = Covariance::PerAction),
        neural("λ 1", |c| c.lambda = 1.0),
        Recipe { name: "rewards as they are", standardise: false, ..base.clone() },
        Recipe { name: "no intercept", intercept: false, ..base },
        Recipe {
            standardise: false,
            intercept: false,
            ..neural("paper: L 2, m 20, √m, block", |c| {
                c.net = NetConfig::default();
            })
        },
        Recipe { config: ModelConfig::Linear(LinearConfig::default()), ..neural("LinLCB", |_| {}) },
    ]
}

/// The contexts with a constant feature, at unit norm again.
fn with_intercept(contexts: &Contexts) -> Contexts {
    let layout = contexts.layout();
    let x = contexts.rows(0..contexts.n_rounds()).chunks_exact(layout.dim).flat_map(|row| {
        // as the preparation of a log makes it: 1 beside d numbers of mean square 1
        let (whole, one) =
            ((layout.dim as f32 / (layout.dim + 1) as f32).sqrt(), ((layout.dim + 1) as f32).sqrt().recip());
        row.iter().map(move |v| v * whole).chain([one])
    });
    Contexts::new(Layout { dim: layout.dim + 1, ..layout }, x.collect(), Eligible::All).expect("finite")
}

fn judge(recipe: &Recipe, log: &LoggedData, test: &TestSet, seed: Seed) -> [f64; BETAS.len()] {
    let (log, test) = if recipe.intercept {
        let rounds = LoggedData::new(
            with_intercept(log.contexts()),
            log.actions().to_vec(),
            log.rewards().to_vec(),
            log.propensities().map(<[f64]>::to_vec),
        );
        (rounds.expect("a checked log"), TestSet::new(with_intercept(test.contexts()), test.expected().to_vec()))
    } else {
        (log.clone(), TestSet::new(test.contexts().clone(), test.expected().to_vec()))
    };
    let n = log.n_rounds() as f64;
    let mean = log.rewards().iter().sum::<f64>() / n;
    let deviation = (log.rewards().iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n).sqrt();
    let mut learner: Box<dyn Learner> = recipe.config.learner(log.contexts().layout(), seed).expect("checked settings");
    for t in 0..log.n_rounds() {
        let round = log.round(t);
        let reward = if recipe.standardise { (round.reward - mean) / deviation } else { round.reward };
        learner.observe(round.chosen, reward);
    }
    let Ok(model) = learner.model() else { return [f64::NAN; BETAS.len()] };
    let estimates = model.estimate(test.contexts()).expect("one layout");
    let uniform: f64 = {
        let k = test.contexts().layout().n_actions;
        let gaps = test
            .expected()
            .chunks_exact(k)
            .map(|e| e.iter().copied().fold(f64::NEG_INFINITY, f64::max) - e.iter().sum::<f64>() / k as f64);
        gaps.sum::<f64>() / test.contexts().n_rounds() as f64
    };
    BETAS.map(|beta| {
        let choices = pessimistic(test.contexts(), &estimates, beta, Rounding::None).expect("β ≥ 0");
        test.judge(&choices).suboptimality / uniform
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("a number"));
    let (rounds, reps) = (arguments.next().unwrap_or(5000), arguments.next().unwrap_or(3));
    let recipes = recipes();
    // sums over repetitions and behaviours: (recipe, β, data set)
    let mut sums: BTreeMap<(usize, usize, usize), f64> = BTreeMap::new();
    let library = Library::new(cache_dir());
    let epsilons = [0.1, 0.5];
    for (d, &dataset) in Dataset::ALL.iter().enumerate() {
        for epsilon in epsilons {
            let settings = Settings {
                datasets: vec![dataset],
                behaviour: BehaviourConfig::EpsilonGreedy { epsilon },
                synthetic_rounds: rounds,
                real_rounds: rounds,
                test_contexts: 2000,
                ..Settings::of(&[Figure::Fig1, Figure::Fig2], Preset::Paper)
            };
            let problem = settings.problems().remove(0);
            library.load(std::slice::from_ref(&problem)).expect("the data is in the cache");
            for rep in 0..reps {
                let drawn = Problem::draw(&problem, &library, rep, 1).expect("a problem");
                let seed = Seed::new(1).nth(rep as u64);
                let results: Vec<[f64; BETAS.len()]> =
                    recipes.par_iter().map(|recipe| judge(recipe, &drawn.log, &drawn.test, seed)).collect();
                for (r, values) in results.iter().enumerate() {
                    for (b, value) in values.iter().enumerate() {
                        *sums.entry((r, b, d)).or_default() += value / (reps * epsilons.len()) as f64;
                    }
                }
            }
            eprintln!("{dataset}, ε = {epsilon}: done");
        }
    }
    let names: Vec<&str> = Dataset::ALL.iter().map(|d| d.name()).collect();
    println!("| recipe | β | {} | mean | worst |", names.join(" | "));
    println!("|---|---|{}---|---|", "---|".repeat(names.len()));
    for (r, recipe) in recipes.iter().enumerate() {
        for (b, beta) in BETAS.iter().enumerate() {
            let values: Vec<f64> = (0..names.len()).map(|d| sums[&(r, b, d)]).collect();
            let cells: Vec<String> = values.iter().map(|v| format!("{v:.3}")).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let worst = values.iter().copied().fold(0.0, f64::max);
            println!("| {} | {beta} | {} | {mean:.3} | {worst:.3} |", recipe.name, cells.join(" | "));
        }
    }
}
