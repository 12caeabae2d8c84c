//! The development table: learners on the paper's seven data sets, five logging policies, three kinds of rewards.
//!
//! Every setting of a default is chosen on this table and on no other data. A line of the journal is one learner on one
//! log: its sub-optimality on contexts it has not seen, the seconds it took, and for `auto` what was tried with its β,
//! by how much it is ahead of the first candidate, and its lead beyond chance, the best first. The learner `all` writes
//! the sub-optimality of every candidate of `auto` in place of its own. Lines that are there already are not made
//! again.
//!
//! ```text
//! cargo run --release -p neuralcb-experiments --example learners -- --data DIR --out table.csv \
//!     --datasets quadratic,mnist --behaviours epsilon-0.1,uniform --rewards classes,noisy --rounds 500,2000 \
//!     --seeds 1,2,3 --learners clone,choice,auto
//! ```

use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use neuralcb::bandit::{
    Bandit, Classification, Labelled, RewardFunction, RewardRule, Synthetic, SyntheticConfig, TestSet, collect,
};
use neuralcb::model::{Capacity, LinearConfig, Objective, Perturbation, TrunkConfig, Width};
use neuralcb::policy::{Behaviour, BehaviourConfig, LinUcbConfig, Rounding, pessimistic};
use neuralcb::select::{AutoConfig, Candidate, choose};
use neuralcb::{LoggedData, ModelConfig, Seed};
use neuralcb_logs::datasets::{Preparation, RealData, Scale};

type Anyhow<T> = Result<T, Box<dyn std::error::Error>>;

const DATASETS: &[&str] = &["quadratic", "quadratic2", "cosine", "mushroom", "statlog", "adult", "mnist"];
const BEHAVIOURS: &[&str] = &["epsilon-0.1", "epsilon-0.5", "linucb", "uniform", "biased"];

/// `--name a,b,c` of the command line.
struct Args(HashMap<String, String>);

impl Args {
    fn read() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        Args(words.chunks(2).map(|w| (w[0].clone(), w.get(1).cloned().unwrap_or_default())).collect())
    }

    fn list(&self, name: &str, usual: &str) -> Vec<String> {
        let text = self.0.get(name).map_or(usual, String::as_str);
        text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    fn numbers(&self, name: &str, usual: &str) -> Vec<usize> {
        self.list(name, usual).iter().map(|word| word.parse().expect("a whole number")).collect()
    }
}

/// The bandits that log and test draw from.
fn bandits(
    dataset: &str,
    rewards: &str,
    scale: Scale,
    data: &std::path::Path,
    seed: Seed,
) -> Anyhow<(Box<dyn Bandit>, Box<dyn Bandit>)> {
    if let Some(real) = RealData::parse(dataset) {
        let loaded = real.load(&Preparation { scale, ..Preparation::default() }, data)?;
        let (n, test_from) = (loaded.labels.len(), loaded.test_from);
        let labelled =
            Arc::new(Labelled { dim: loaded.dim, n_classes: loaded.n_classes, x: loaded.x, labels: loaded.labels });
        let mut order: Vec<u32> = (0..n as u32).collect();
        let test = match test_from {
            Some(from) => order.split_off(from),
            None => {
                use rand::seq::SliceRandom;
                order.shuffle(&mut seed.stream("split"));
                order.split_off(n - 10_000.min(n / 3))
            }
        };
        let rule = match rewards {
            "noisy" => RewardRule::Noisy,
            "clicks" => RewardRule::Clicks,
            _ if real == RealData::Mushroom => RewardRule::Mushroom,
            _ => RewardRule::Classes,
        };
        let bandit = |pool| Classification::new(labelled.clone(), pool, rule);
        return Ok((Box::new(bandit(order)?), Box::new(bandit(test)?)));
    }
    let reward = match dataset {
        "quadratic" => RewardFunction::Quadratic,
        "quadratic2" => RewardFunction::Quadratic2,
        _ => RewardFunction::Cosine,
    };
    let bandit = Synthetic::new(SyntheticConfig { reward, ..SyntheticConfig::default() }, &mut seed.stream("bandit"))?;
    Ok((Box::new(bandit.clone()), Box::new(bandit)))
}

fn behaviour(name: &str, n_actions: usize) -> BehaviourConfig {
    match name {
        "epsilon-0.1" => BehaviourConfig::EpsilonGreedy { epsilon: 0.1 },
        "epsilon-0.5" => BehaviourConfig::EpsilonGreedy { epsilon: 0.5 },
        "linucb" => BehaviourConfig::LinUcbMixture { epsilon: 0.9, linucb: LinUcbConfig::default() },
        "uniform" => BehaviourConfig::Uniform,
        _ => {
            let rest = 0.2 / n_actions as f64;
            BehaviourConfig::Table((0..n_actions).map(|a| if a == 0 { 0.8 + rest } else { rest }).collect())
        }
    }
}

/// A learner by name: an objective, with `+log`, `+last` for its width, `*30~0.01~2~256` for so many passes and, if
/// wanted, penalty, layers and units, `^0.3` for β.
fn learner(name: &str) -> Candidate {
    let (name, beta) = name.split_once('^').map_or((name, 0.0), |(name, beta)| (name, beta.parse().expect("a number")));
    let (objective, capacity) = name.split_once('*').map_or((name, None), |(a, b)| (a, Some(capacity(b))));
    let (objective, width) = objective.split_once('+').unwrap_or((objective, ""));
    let config = match objective {
        "lin-lcb" => ModelConfig::Linear(LinearConfig { lambda: 1.0, ..LinearConfig::default() }),
        "viper" => ModelConfig::Trunk(TrunkConfig::viper()),
        _ => {
            let (objective, bootstrap) =
                objective.split_once("-boot").map_or((objective, false), |(name, _)| (name, true));
            let (objective, members) =
                objective.split_once(':').map_or((objective, 3), |(a, b)| (a, b.parse().expect("members")));
            ModelConfig::Trunk(TrunkConfig {
                objective: serde_json::from_value::<Objective>(objective.into()).expect("an objective"),
                width: match width {
                    "log" => Width::Log,
                    "last" => Width::LastLayer,
                    _ => Width::Spread,
                },
                members,
                perturbation: if bootstrap { Perturbation::Bootstrap } else { Perturbation::None },
                capacity,
                ..TrunkConfig::default()
            })
        }
    };
    let beta = if objective == "viper" { 1.0 } else { beta };
    Candidate { name: name.to_owned(), config, standardise: objective == "lin-lcb", betas: vec![beta] }
}

/// Passes, penalty, layers and units, as far as they are given.
fn capacity(text: &str) -> Capacity {
    let usual = Capacity::default();
    let mut words = text.split('~');
    let mut next = |usual: f64| words.next().map_or(usual, |word| word.parse().expect("a number"));
    let (passes, l2) = (next(usual.passes as f64), next(usual.l2));
    let (layers, width) = (next(usual.layers as f64), next(usual.width as f64));
    Capacity { passes: passes as usize, l2, layers: layers as usize, width: width as usize }
}

/// All candidates of `auto` on the test set, each fitted once.
fn judge_all(log: &LoggedData, test: &TestSet, seed: Seed) -> Anyhow<String> {
    let mut words = Vec::new();
    for candidate in AutoConfig::default().candidates {
        let estimates = candidate.fit(log, seed, &Arc::default())?.estimate(test.contexts())?;
        for beta in candidate.betas {
            let choices = pessimistic(test.contexts(), &estimates, beta, Rounding::None)?;
            words.push(format!("{} {beta} {:.4}", candidate.name, test.judge(&choices).suboptimality));
        }
    }
    Ok(words.join("; "))
}

/// A policy by learner's name, judged on the test set; in words what it became.
fn judge(name: &str, log: &LoggedData, test: &TestSet, seed: Seed) -> Anyhow<(f64, String)> {
    if name == "all" {
        return Ok((f64::NAN, judge_all(log, test, seed)?));
    }
    let (candidate, words) = if name == "auto" {
        let chosen = choose(&AutoConfig::default(), log, seed, &Arc::default())?;
        let tried = chosen.tried.iter().map(|t| format!("{} {} {:.4} {:.4}", t.name, t.beta, t.ahead, t.lead));
        let words = tried.collect::<Vec<_>>().join("; ");
        (chosen.winner, words)
    } else {
        (learner(name), String::new())
    };
    let estimates = candidate.fit(log, seed, &Arc::default())?.estimate(test.contexts())?;
    let choices = pessimistic(test.contexts(), &estimates, candidate.betas[0], Rounding::None)?;
    Ok((test.judge(&choices).suboptimality, words))
}

fn main() -> Anyhow<()> {
    let args = Args::read();
    let data = PathBuf::from(args.list("--data", "data").remove(0));
    let scale: Scale = serde_json::from_value(args.list("--scale", "standardised").remove(0).into())?;
    let out = PathBuf::from(args.list("--out", "learners.csv").remove(0));
    let known: HashSet<String> = match std::fs::read_to_string(&out) {
        Ok(text) => text.lines().filter_map(|line| Some(line.rsplitn(4, ',').nth(3)?.to_owned())).collect(),
        Err(_) => HashSet::new(),
    };
    let mut journal = OpenOptions::new().create(true).append(true).open(&out)?;
    if known.is_empty() {
        writeln!(journal, "dataset,behaviour,rewards,n,seed,learner,suboptimality,seconds,became")?;
    }
    for dataset in args.list("--datasets", &DATASETS.join(",")) {
        let real = RealData::parse(&dataset).is_some_and(|real| real != RealData::Mushroom);
        for rewards in args.list("--rewards", "classes,noisy,clicks").iter().filter(|r| real || *r == "classes") {
            for seed in args.numbers("--seeds", "1,2,3") {
                let of_seed = Seed::new(seed as u64).child(&dataset);
                let (train, test) = bandits(&dataset, rewards, scale, &data, of_seed)?;
                let n_test = test.n_contexts().map_or(10_000, |n| n.min(10_000));
                let test = TestSet::draw(test.as_ref(), n_test, &mut of_seed.stream("test"))?;
                for name in args.list("--behaviours", &BEHAVIOURS.join(",")) {
                    for &n in &args.numbers("--rounds", "500,2000,15000") {
                        let mut log = None;
                        for learner in args.list("--learners", "clone,clone-rewarded,regression,choice,auto") {
                            let key = format!("{dataset},{name},{rewards},{n},{seed},{learner}");
                            if known.contains(&key) {
                                continue;
                            }
                            let log = match &log {
                                Some(log) => log,
                                None => {
                                    let config = behaviour(&name, train.layout().n_actions);
                                    let mut policy = Behaviour::new(&config, train.layout())?;
                                    log.insert(collect(train.as_ref(), &mut policy, n, of_seed.child("log"))?.log)
                                }
                            };
                            let start = Instant::now();
                            let (suboptimality, became) = judge(&learner, log, &test, of_seed.child("learner"))?;
                            let seconds = start.elapsed().as_secs_f64();
                            writeln!(journal, "{key},{suboptimality},{seconds:.2},{became}")?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}
