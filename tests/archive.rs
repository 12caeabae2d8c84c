//! What a learner has learned goes into arrays and comes back: the same bits, for every model, at any moment.

use neuralcb::archive::{Archive, Keep};
use neuralcb::bandit::{Bandit, Classification, Labelled, RewardRule, Synthetic, SyntheticConfig, TestSet, collect};
use neuralcb::model::{
    Covariance, ExactForm, KernelConfig, Learner, LinearConfig, Mode, NeuralConfig, NeuralLinearConfig, RefitConfig,
    TabularConfig, When,
};
use neuralcb::net::{NetConfig, Optimiser, Schedule, Towards};
use neuralcb::policy::{Behaviour, BehaviourConfig, Imitation, ImitationConfig};
use neuralcb::{Contexts, Estimates, Layout, LoggedData, ModelConfig, Seed};
use std::sync::Arc;

const ROUNDS: usize = 90;

fn data(per_action: bool) -> (LoggedData, Contexts) {
    let seed = Seed::new(3);
    let bandit: Box<dyn Bandit> = if per_action {
        let config = SyntheticConfig { dim: 5, n_actions: 4, ..SyntheticConfig::default() };
        Box::new(Synthetic::new(config, &mut seed.stream("bandit")).unwrap())
    } else {
        let x = (0..3000).map(|i| ((i * 37 + i / 3 * 11) % 17) as f32 / 17.0).collect();
        let labels = (0..1000).map(|i| (i * 7 / 3 % 4) as u32).collect();
        let data = Labelled { dim: 3, n_classes: 4, x, labels };
        Box::new(Classification::new(Arc::new(data), (0..1000).collect(), RewardRule::Classes).unwrap())
    };
    let mut behaviour = Behaviour::new(&BehaviourConfig::Uniform, bandit.layout()).unwrap();
    let log = collect(bandit.as_ref(), &mut behaviour, ROUNDS, seed.child("log")).unwrap().log;
    let test = TestSet::draw(bandit.as_ref(), 33, &mut seed.stream("test")).unwrap().contexts().clone();
    (log, test)
}

fn read(learner: &mut dyn Learner, log: &LoggedData, rounds: std::ops::Range<usize>) {
    rounds.map(|t| log.round(t)).for_each(|round| learner.observe(round.chosen, round.reward));
}

fn estimates(learner: &mut dyn Learner, test: &Contexts) -> Estimates {
    learner.model().unwrap().estimate(test).unwrap()
}

fn configs() -> Vec<ModelConfig> {
    let net = |depth| NetConfig { depth, width: 6, ..NetConfig::default() };
    let neural = NeuralConfig { net: net(2), ..NeuralConfig::default() };
    let exact = |form| Covariance::Exact(form);
    let sgd = Optimiser::Sgd { schedule: Schedule::InverseRoot(0.01) };
    let back = Optimiser::Adam { lr: 0.01, l2: 0.1, towards: Towards::Initial };
    let mut configs: Vec<ModelConfig> = [
        neural.clone(),
        NeuralConfig { net: NetConfig { biases: true, ..net(3) }, ..neural.clone() },
        NeuralConfig { mode: Mode::Batch { steps: 3, batch: 5 }, optimiser: back, ..neural.clone() },
        NeuralConfig { covariance: Covariance::PerAction, optimiser: sgd, ..neural.clone() },
        NeuralConfig { covariance: exact(ExactForm::Primal), ..neural.clone() },
        NeuralConfig { covariance: exact(ExactForm::Dual), ..neural },
    ]
    .map(ModelConfig::Neural)
    .to_vec();
    for covariance in [Covariance::Diagonal, Covariance::PerAction, exact(ExactForm::Primal), exact(ExactForm::Dual)] {
        configs.push(ModelConfig::NeuralLinear(NeuralLinearConfig { net: net(2), covariance, ..Default::default() }));
    }
    for when in [When::OnDemand, When::EveryRound] {
        configs.push(ModelConfig::Refit(RefitConfig { net: net(2), when, passes: 2, ..RefitConfig::default() }));
    }
    configs.push(ModelConfig::Tabular(TabularConfig { cell: 0.5, ..TabularConfig::default() }));
    configs.push(ModelConfig::Linear(LinearConfig::default()));
    configs.push(ModelConfig::Kernel(KernelConfig { max_samples: 70, ..KernelConfig::default() }));
    configs
}

fn restored(config: &ModelConfig, layout: Layout, from: &mut dyn Learner) -> Box<dyn Learner> {
    let mut archive = Archive::writer(Keep::Training);
    from.archive(&mut archive).unwrap();
    let mut to = config.learner(layout, Seed::new(5)).unwrap();
    let mut archive = Archive::reader(archive.into_arrays(), Keep::Training);
    to.archive(&mut archive).unwrap();
    archive.finish().unwrap();
    to
}

#[test]
fn every_model_goes_on_from_its_archive_as_if_it_had_never_stopped() {
    for per_action in [true, false] {
        let (log, test) = data(per_action);
        for config in configs() {
            let layout = test.layout();
            let mut undisturbed = config.learner(layout, Seed::new(5)).unwrap();
            read(undisturbed.as_mut(), &log, 0..ROUNDS);
            for stop in [0, 41] {
                let mut first = config.learner(layout, Seed::new(5)).unwrap();
                read(first.as_mut(), &log, 0..stop);
                let mut second = restored(&config, layout, first.as_mut());
                read(second.as_mut(), &log, stop..ROUNDS);
                assert_eq!(
                    estimates(second.as_mut(), &test),
                    estimates(undisturbed.as_mut(), &test),
                    "{config:?} stopped at {stop}"
                );
            }
        }
    }
}

#[test]
fn a_policy_scores_as_the_learner_did() {
    for per_action in [true, false] {
        let (log, test) = data(per_action);
        for config in configs() {
            let mut learner = config.learner(test.layout(), Seed::new(5)).unwrap();
            read(learner.as_mut(), &log, 0..ROUNDS);
            let mut archive = Archive::writer(Keep::Policy);
            learner.archive(&mut archive).unwrap();
            let mut archive = Archive::reader(archive.into_arrays(), Keep::Policy);
            let policy = config.restore(test.layout(), &mut archive).unwrap();
            archive.finish().unwrap();
            assert_eq!(policy.estimate(&test).unwrap(), estimates(learner.as_mut(), &test), "{config:?}");
        }
    }
}

#[test]
fn a_clone_comes_back_as_it_was() {
    for per_action in [true, false] {
        let (log, test) = data(per_action);
        let config = ImitationConfig { width: 7, epochs: 2, ..ImitationConfig::default() };
        let mut fitted = Imitation::fit(&config, &log, 0..ROUNDS, Seed::new(1)).unwrap();
        let mut archive = Archive::writer(Keep::Policy);
        fitted.archive(&mut archive).unwrap();
        let mut again = Imitation::blank(&config, test.layout());
        again.archive(&mut Archive::reader(archive.into_arrays(), Keep::Policy)).unwrap();
        assert_eq!(again.probabilities(&test).unwrap(), fitted.probabilities(&test).unwrap());
    }
}

#[test]
fn a_diagonal_that_is_not_positive_and_a_block_that_does_not_exist_are_refused() {
    let (log, test) = data(false);
    for (config, array, value, message) in [
        (configs()[0].clone(), "lambda.out", -1.0, "array `lambda`: must be above 0, got -1"),
        (configs()[5].clone(), "lambda.block", 9.0, "array `lambda.block`: must be below 4, got 9"),
    ] {
        let mut learner = config.learner(test.layout(), Seed::new(5)).unwrap();
        read(learner.as_mut(), &log, 0..10);
        let mut archive = Archive::writer(Keep::Policy);
        learner.archive(&mut archive).unwrap();
        let mut arrays = archive.into_arrays();
        match &mut arrays.get_mut(array).unwrap().numbers {
            neuralcb::archive::Numbers::F32(v) => v[0] = value as f32,
            neuralcb::archive::Numbers::U64(v) => v[0] = value as u64,
            other => panic!("{other:?}"),
        }
        let error = learner.archive(&mut Archive::reader(arrays, Keep::Policy)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
