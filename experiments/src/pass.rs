//! Training passes: β and the greedy twin are read off one and the same pass, so few passes serve the whole grid.

use neuralcb::ModelConfig;
use neuralcb::model::{
    KernelConfig, LinearConfig, Mode, NeuralConfig, NeuralLinearConfig, Objective, RefitConfig, TabularConfig,
    TrunkConfig, When,
};
use neuralcb::net::{NetConfig, Optimiser, Towards};
use neuralcb::policy::Rounding;
use neuralcb::select::AutoConfig;
use neuralcb_logs::policy::SetUp;
use serde::{Deserialize, Serialize};

use crate::names::{Algorithm, Dataset, Preset, Returned, TrainingMode};
use crate::problem::{ProblemConfig, Source};
use crate::settings::Settings;

/// One pass over a log and everything that is read off it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// What is learned.
    pub job: Job,
    /// Training mode, where the model has one.
    pub mode: Option<TrainingMode>,
    /// Learning rate, where the model has one.
    pub learning_rate: Option<f64>,
    /// σ, where the model has one.
    pub sigma: Option<f64>,
    /// The algorithms, with their β; `None` is the greedy twin.
    pub outputs: Vec<(Algorithm, Option<f64>)>,
    /// The precision in which bounds are compared.
    pub rounding: Rounding,
    /// Which policy is judged after n rounds.
    pub returned: Returned,
}

/// What is learned from a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// A reward model.
    Model(ModelConfig),
    /// A learner chosen from the log alone.
    Auto(AutoConfig),
    /// Nothing: the policies that do not learn.
    References,
}

impl Settings {
    /// The passes that serve every algorithm and every point of the grid on a problem.
    pub fn passes(&self, problem: &ProblemConfig) -> Vec<Pass> {
        let algorithms = self.algorithms_on(problem);
        let has = |a: &Algorithm| algorithms.contains(a);
        let released = self.preset == Preset::ReleasedCode;
        let SetUp { covariance, order, scale_features, kernel_lambda, .. } = self.preset.set_up();
        // m = 20 on the synthetic bandits, 100 on real data
        let width = if matches!(problem.source, Source::Real { .. }) { 100 } else { 20 };
        let net = self.net(width).expect("the settings were checked");
        let (mut passes, returned) = (Vec::new(), self.returned);
        let mut add = |model, mode, learning_rate, sigma, lcb, betas: &[f64], greedy: Option<Algorithm>| {
            let mut outputs = Vec::new();
            if has(&lcb) {
                outputs.extend(betas.iter().map(|&beta| (lcb, Some(beta))));
            }
            outputs.extend(greedy.filter(has).map(|g| (g, None)));
            let rounding = if released && lcb == Algorithm::KernLcb { Rounding::F32 } else { Rounding::None };
            if !outputs.is_empty() {
                passes.push(Pass { job: Job::Model(model), mode, learning_rate, sigma, outputs, rounding, returned });
            }
        };
        let adam = |lr| Optimiser::Adam { lr, l2: self.l2, towards: Towards::Zero };
        for &mode in &self.modes {
            for &lr in &self.learning_rates {
                let config = NeuralConfig {
                    net: net.clone(),
                    optimiser: adam(lr),
                    mode: mode.of_model(),
                    lambda: self.lambda,
                    covariance,
                    order,
                };
                let greedy = Some(Algorithm::NeuralGreedy);
                let model = ModelConfig::Neural(config);
                add(model, Some(mode), Some(lr), None, Algorithm::Neuralcb, &self.betas, greedy);
            }
        }
        // the narrow network that is fitted on demand is greedy; the one retrained every round has pessimism
        let retrained = [(When::OnDemand, Algorithm::ReluGreedy), (When::EveryRound, Algorithm::NeuralRetrain)];
        for (&lr, (when, algorithm)) in self.learning_rates.iter().flat_map(|lr| retrained.map(|of| (lr, of))) {
            let refit = RefitConfig {
                net: net.clone(),
                optimiser: adam(lr),
                when,
                lambda: self.lambda,
                covariance,
                ..Default::default()
            };
            let (betas, greedy) = match when {
                When::OnDemand => (&[][..], Some(algorithm)),
                When::EveryRound => (&self.betas[..], None),
            };
            add(ModelConfig::Refit(refit), None, Some(lr), None, algorithm, betas, greedy);
        }
        let config = NeuralLinearConfig { net, lambda: self.lambda, covariance, scale_features };
        let (model, greedy) = (ModelConfig::NeuralLinear(config), Some(Algorithm::NeuralLinGreedy));
        add(model, None, None, None, Algorithm::NeuralLinLcb, &self.baseline_betas, greedy);
        let model = ModelConfig::Linear(LinearConfig { lambda: self.lambda, ..LinearConfig::default() });
        add(model, None, None, None, Algorithm::LinLcb, &self.baseline_betas, Some(Algorithm::LinGreedy));
        let model = ModelConfig::Tabular(TabularConfig { cell: self.cell, ..TabularConfig::default() });
        add(model, None, None, None, Algorithm::TabLcb, &self.baseline_betas, Some(Algorithm::TabGreedy));
        for &sigma in &self.sigmas {
            let lambda = kernel_lambda.unwrap_or(self.lambda);
            let model =
                ModelConfig::Kernel(KernelConfig { sigma, lambda, max_samples: 1000, ..KernelConfig::default() });
            add(model, None, None, Some(sigma), Algorithm::KernLcb, &self.baseline_betas, None);
        }
        let plain = |job, outputs| Pass {
            job,
            mode: None,
            learning_rate: None,
            sigma: None,
            outputs,
            rounding: Rounding::None,
            returned: Returned::Latest,
        };
        let references = [Algorithm::Uniform, Algorithm::Constant, Algorithm::Behaviour];
        let references: Vec<_> = references.into_iter().filter(has).map(|a| (a, None)).collect();
        if !references.is_empty() {
            passes.push(plain(Job::References, references));
        }
        let trunk = |objective| TrunkConfig { objective, ..TrunkConfig::default() };
        for (algorithm, beta, config) in [
            (Algorithm::Clone, None, trunk(Objective::Clone)),
            (Algorithm::CloneRewarded, None, trunk(Objective::CloneRewarded)),
            (Algorithm::Choice, None, trunk(Objective::Choice)),
            (Algorithm::Regression, None, trunk(Objective::Regression)),
            (Algorithm::Viper, Some(1.0), TrunkConfig::viper()),
        ] {
            if has(&algorithm) {
                passes.push(plain(Job::Model(ModelConfig::Trunk(config)), vec![(algorithm, beta)]));
            }
        }
        if has(&Algorithm::Auto) {
            passes.push(plain(Job::Auto(AutoConfig::default()), vec![(Algorithm::Auto, None)]));
        }
        passes
    }

    /// Repetitions of a pass.
    pub(crate) fn reps_of(&self, problem: &ProblemConfig, pass: &Pass) -> usize {
        let long = problem.dataset == Dataset::Mnist && pass.mode == Some(TrainingMode::B);
        if long { self.mnist_b_reps.min(self.reps) } else { self.reps }
    }
}

/// The sizes that decide how long a pass takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Numbers per context vector.
    pub dim: usize,
    /// Actions.
    pub n_actions: usize,
    /// Blocks of the first layer.
    pub n_blocks: usize,
}

impl Pass {
    /// The numbers of rounds after which the pass stops to score: the checkpoints, and for a vote every thirtieth.
    pub(crate) fn stops(&self, problem: &ProblemConfig) -> Vec<usize> {
        let mut stops = problem.checkpoints();
        if self.returned == Returned::Vote && matches!(self.job, Job::Model(_)) {
            stops.extend((1..30).map(|i| problem.rounds * i / 30).filter(|&n| n > 0));
            stops.sort_unstable();
            stops.dedup();
        }
        stops
    }

    /// Microseconds that reading rounds `from..to` takes, roughly, on a machine of 2020; for the time left and the
    /// order of work.
    pub(crate) fn train_work(&self, size: Size, from: usize, to: usize) -> f64 {
        let (d, rounds) = (size.dim as f64, (to - from) as f64);
        match &self.job {
            Job::Model(ModelConfig::Neural(config)) => {
                let (own, all) = weights(&config.net, size);
                match config.mode {
                    Mode::Single => rounds * (0.4 + 4e-4 * all),
                    Mode::Batch { steps, batch } => {
                        rounds * steps as f64 * (1.5 + 5e-5 * batch as f64 * own + 5.5e-4 * all)
                    }
                }
            }
            Job::Model(ModelConfig::NeuralLinear(config)) => rounds * (0.4 + 1e-3 * weights(&config.net, size).0),
            Job::Model(ModelConfig::Linear(_)) => rounds * (0.05 + 1e-3 * d * d / 2.0),
            Job::Model(ModelConfig::Kernel(_) | ModelConfig::Tabular(_)) | Job::References => 0.1,
            Job::Model(ModelConfig::Refit(config)) => {
                let samples = match config.when {
                    When::OnDemand => to as f64,
                    When::EveryRound => rounds * (from + to) as f64 / 2.0,
                };
                samples * config.passes as f64 * (0.1 + 1e-4 * weights(&config.net, size).0)
            }
            // capacity, members and passes together read the log some 200 times, and every candidate does
            Job::Model(ModelConfig::Trunk(_)) => 200.0 * self.trunk_work(size, to),
            Job::Auto(config) => 200.0 * config.candidates.len() as f64 * self.trunk_work(size, to),
        }
    }

    /// Microseconds that scoring `contexts` test contexts takes after n rounds, roughly.
    pub(crate) fn score_work(&self, size: Size, n: usize, contexts: usize) -> f64 {
        let (d, pairs) = (size.dim as f64, (contexts * size.n_actions) as f64);
        match &self.job {
            Job::Model(ModelConfig::Neural(NeuralConfig { net, .. }))
            | Job::Model(ModelConfig::Refit(RefitConfig { net, .. }))
            | Job::Model(ModelConfig::NeuralLinear(NeuralLinearConfig { net, .. })) => {
                pairs * (0.03 + 6e-5 * weights(net, size).0)
            }
            Job::Model(ModelConfig::Linear(_)) => {
                pairs * (0.02 + 3e-5 * d * d) + size.n_blocks as f64 * 1e-4 * d.powi(3)
            }
            // a kernel model's cost grows with the square of its samples, and it is not scored again when they are full
            Job::Model(ModelConfig::Kernel(k)) if n <= k.max_samples => {
                let own = n as f64 / size.n_blocks as f64;
                pairs * own * (2e-3 + 2e-5 * d + 1.3e-5 * own)
            }
            Job::Model(ModelConfig::Kernel(_) | ModelConfig::Tabular(_)) | Job::References => 0.1,
            Job::Model(ModelConfig::Trunk(_)) | Job::Auto(_) => pairs * 0.2,
        }
    }

    /// Microseconds of a pass over n rounds with a hidden layer of 100 units.
    fn trunk_work(&self, size: Size, n: usize) -> f64 {
        let rows = n as f64 * (size.n_actions / size.n_blocks.max(1)).max(1) as f64;
        rows * (0.2 + 1e-2 * size.dim as f64)
    }
}

/// Weights that one sample touches, and all.
fn weights(net: &NetConfig, size: Size) -> (f64, f64) {
    let (m, d) = (net.width as f64, size.dim as f64);
    let rest = m * (1.0 + m * (net.depth - 2) as f64);
    (m * d + rest, m * d * size.n_blocks as f64 + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Figure;

    #[test]
    fn one_pass_serves_every_beta_and_the_greedy_twin() {
        let settings = Settings::of(&[Figure::Fig1], Preset::Paper);
        let problem = &settings.problems()[0];
        let passes = settings.passes(problem);
        assert_eq!(passes.len(), 2 * 2 + 1 + 1 + 3 + 2);
        assert_eq!(passes[0].outputs.len(), 7);
        assert_eq!(passes[0].outputs[6], (Algorithm::NeuralGreedy, None));
        let only = Settings { algorithms: vec![Algorithm::NeuralGreedy], ..settings.clone() }.passes(problem);
        assert_eq!(only.len(), 4);
        assert_eq!(only[0].outputs, [(Algorithm::NeuralGreedy, None)]);
    }

    #[test]
    fn the_other_systems_of_table_1_run_when_they_are_asked_for() {
        use Algorithm::{LinGreedy, NeuralRetrain, ReluGreedy, TabGreedy, TabLcb};
        let settings = Settings::of(&[Figure::Fig1], Preset::Paper);
        let others = [LinGreedy, TabLcb, TabGreedy, ReluGreedy, NeuralRetrain];
        assert!(others.iter().all(|a| !settings.algorithms.contains(a)));
        let asked = Settings { algorithms: others.to_vec(), betas: vec![1.0], baseline_betas: vec![1.0], ..settings };
        let outputs: Vec<_> = asked.passes(&asked.problems()[0]).into_iter().map(|p| p.outputs).collect();
        let network = [vec![(ReluGreedy, None)], vec![(NeuralRetrain, Some(1.0))]];
        let want = [&network[..], &network, &[vec![(LinGreedy, None)], vec![(TabLcb, Some(1.0)), (TabGreedy, None)]]];
        assert_eq!(outputs, want.concat());
    }

    #[test]
    fn the_long_runs_are_repeated_less_often() {
        let settings = Settings::of(&[Figure::Fig2], Preset::Paper);
        let mnist = settings.problems().pop().unwrap();
        let reps: Vec<usize> = settings.passes(&mnist).iter().map(|p| settings.reps_of(&mnist, p)).collect();
        assert_eq!(reps, [10, 10, 3, 3, 10, 10, 10, 10, 10, 10, 10]);
    }
}
