//! What `tune` says beside the truth, on simulated logs whose truth is known: the second half of
//! `docs/CERTIFICATES.md`.
//!
//! `cargo run --release -p neuralcb-logs --example tuning -- DIR DATA REPS [ALGORITHM,…]` makes REPS logs of every
//! setting, tunes on each and prints the tables. DATA is the cache of the real data sets (`neuralcb data fetch`); those
//! that are not there are left out. Every log leaves a line in `DIR/tuning.jsonl`; a run that was killed goes on after
//! the last of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use neuralcb::{Seed, Stream};
use neuralcb_logs::datasets::{Preparation, RealData};
use neuralcb_logs::log::{Log, LogOptions, ReadLog, Want};
use neuralcb_logs::policy::{Algorithm, Policy};
use neuralcb_logs::tune::{IfNotBetter, Tried, TuneOptions, Tuning};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

/// Rows of which rounds are drawn: the truth is a mean over them.
const POOL: usize = 2000;

const SIZES: [usize; 2] = [500, 2_000];

const LOGGED: [&str; 4] = ["uniform", "greedy", "biased", "adaptive"];

const REWARDS: [&str; 3] = ["clean", "noisy", "skewed"];

/// Contexts with the action that is right in each.
struct World {
    x: Vec<Vec<f32>>,
    label: Vec<usize>,
    n_actions: usize,
    /// What the log's policy takes for right.
    guess: Vec<usize>,
}

impl World {
    fn new(name: &str, data: &Path, stream: &mut Stream) -> Result<World, Box<dyn Error>> {
        let (x, label, n_actions): (Vec<Vec<f32>>, Vec<usize>, usize) = match RealData::parse(name) {
            Some(real) => {
                let all = real.load(&Preparation::paper(real), data)?;
                let rows: Vec<usize> = (0..POOL).map(|_| stream.random_range(0..all.n_rows())).collect();
                let label = rows.iter().map(|&i| all.labels[i] as usize).collect();
                (
                    rows.iter().map(|&i| all.row(i).to_vec()).collect(),
                    label,
                    real.counts(&Preparation::paper(real)).n_classes,
                )
            }
            None => {
                // the greatest of five linear functions, or of their squares
                let mut number = || 2.0 * stream.random::<f32>() - 1.0;
                let w: Vec<Vec<f32>> = (0..5).map(|_| (0..5).map(|_| number()).collect()).collect();
                let x: Vec<Vec<f32>> = (0..POOL).map(|_| (0..5).map(|_| number()).collect()).collect();
                let score = |x: &[f32], w: &[f32]| {
                    let dot: f32 = x.iter().zip(w).map(|(x, w)| x * w).sum();
                    if name == "linear" { dot } else { dot * dot }
                };
                let best = |x: &Vec<f32>| (0..5).fold(0, |b, a| if score(x, &w[a]) > score(x, &w[b]) { a } else { b });
                let label = x.iter().map(best).collect();
                (x, label, 5)
            }
        };
        let guess = label.iter().map(|&l| if stream.random_bool(0.7) { l } else { stream.random_range(0..n_actions) });
        Ok(World { guess: guess.collect(), x, label, n_actions })
    }

    /// The mean reward of an action.
    fn mean(&self, rewards: &str, row: usize, action: usize) -> f64 {
        match (rewards, action == self.label[row]) {
            ("clean", right) => f64::from(u8::from(right)),
            ("noisy", right) => {
                if right {
                    0.6
                } else {
                    0.3
                }
            }
            (_, right) => {
                if right {
                    0.2
                } else {
                    0.05
                }
            }
        }
    }

    fn reward(&self, rewards: &str, mean: f64, stream: &mut Stream) -> f64 {
        match rewards {
            // the cube of a uniform number has the mean 1/4
            "skewed" => f64::from(u8::from(stream.random_bool(4.0 * mean))) * stream.random::<f64>().powi(3),
            _ => f64::from(u8::from(stream.random_bool(mean))),
        }
    }

    fn value(&self, rewards: &str, plays: &[usize]) -> f64 {
        (0..POOL).map(|row| self.mean(rewards, row, plays[row])).sum::<f64>() / POOL as f64
    }

    /// Writes a log; what its policy was worth in each round.
    fn log(
        &self,
        path: &Path,
        n: usize,
        logged: &str,
        rewards: &str,
        stream: &mut Stream,
    ) -> Result<Vec<f64>, Box<dyn Error>> {
        let k = self.n_actions;
        let mut file = std::io::BufWriter::new(fs::File::create(path)?);
        header(&mut file, self.x[0].len())?;
        // mean rewards by what is guessed, which is all that the log's policy looks at
        let mut by_guess = vec![vec![0.0; k]; k];
        for row in 0..POOL {
            (0..k).for_each(|a| by_guess[self.guess[row]][a] += self.mean(rewards, row, a) / POOL as f64);
        }
        let (mut seen, mut worth) = (vec![vec![(0.0, 0.0); k]; k], Vec::new());
        for t in 0..n {
            let row = stream.random_range(0..POOL);
            let greedy = |g: usize| match logged {
                "adaptive" => (0..k).fold(0, |best, a| {
                    let mean = |a: usize| {
                        let (n, sum): (f64, f64) = seen[g][a];
                        (sum + 0.5) / (n + 1.0)
                    };
                    if mean(a) > mean(best) { a } else { best }
                }),
                "biased" => 0,
                _ => g,
            };
            let epsilon = match logged {
                "uniform" => 1.0,
                "greedy" => 0.2,
                "biased" => 0.4,
                _ => (1.0 / (1.0 + t as f64).cbrt()).max(0.1),
            };
            let p = |g: usize, a: usize| epsilon / k as f64 + if a == greedy(g) { 1.0 - epsilon } else { 0.0 };
            worth.push((0..k).map(|g| (0..k).map(|a| p(g, a) * by_guess[g][a]).sum::<f64>()).sum());
            let guess = self.guess[row];
            let (u, mut action, mut below) = (stream.random::<f64>(), 0, p(guess, 0));
            while u > below && action + 1 < k {
                action += 1;
                below += p(guess, action);
            }
            let (reward, propensity) =
                (self.reward(rewards, self.mean(rewards, row, action), stream), p(guess, action));
            seen[guess][action].0 += 1.0;
            seen[guess][action].1 += reward;
            line(&mut file, action, reward, propensity, &self.x[row])?;
        }
        file.flush()?;
        Ok(worth)
    }
}

fn header(file: &mut impl Write, d: usize) -> std::io::Result<()> {
    writeln!(file, "action,reward,propensity,{}", (0..d).map(|i| format!("x{i}")).collect::<Vec<_>>().join(","))
}

fn line(file: &mut impl Write, action: usize, reward: f64, propensity: f64, x: &[f32]) -> std::io::Result<()> {
    writeln!(file, "{action},{reward},{propensity},{}", x.iter().map(f32::to_string).collect::<Vec<_>>().join(","))
}

/// What `tune` said of one log, and the truth.
#[derive(Serialize, Deserialize)]
struct Line {
    world: String,
    logged: String,
    rewards: String,
    n: usize,
    rep: usize,
    /// Value, difference to the log's policy and to the clone, of the file that was written.
    truth: [f64; 3],
    lower: [f64; 3],
    /// The normal lower bound of the winner's value on the rounds that it was chosen by: what `tune` once said.
    score: f64,
    written: String,
    shown: bool,
    /// True values: of the winner, of the best candidate, of the log's policy, of the file with `keep`.
    winner: f64,
    best: f64,
    log: f64,
}

fn plays(policy: &Policy, pool: &Log) -> Result<Vec<usize>, Box<dyn Error>> {
    let mut plays = Vec::new();
    for block in pool.read() {
        let contexts = policy.preparation().contexts(&block?)?;
        let choices = policy.decide(&contexts)?.choices.expect("candidates choose");
        for (t, place) in choices.into_iter().enumerate() {
            plays.push(policy.preparation().actions()[contexts.action(t, place as usize)].parse()?);
        }
    }
    Ok(plays)
}

fn open(path: &Path) -> Result<Log, Box<dyn Error>> {
    Ok(Log::open(&[path.to_path_buf()], &LogOptions::default(), Want::OUTCOMES)?)
}

fn run(
    key: (&str, &str, &str, usize, usize),
    data: &Path,
    algorithms: &Option<Vec<Algorithm>>,
) -> Result<Line, Box<dyn Error>> {
    let (name, logged, rewards, n, rep) = key;
    let mut stream = Seed::new(rep as u64).stream(&format!("{name} {logged} {rewards} {n}"));
    let world = World::new(name, data, &mut stream)?;
    let folder = tempfile::tempdir()?;
    let (path, pool) = (folder.path().join("log.csv"), folder.path().join("pool.csv"));
    let worth = world.log(&path, n, logged, rewards, &mut stream)?;
    let mut file = std::io::BufWriter::new(fs::File::create(&pool)?);
    header(&mut file, world.x[0].len())?;
    world.x.iter().try_for_each(|x| line(&mut file, 0, 0.0, 1.0, x))?;
    file.flush()?;
    drop(file);
    let (log, pool) = (open(&path)?, open(&pool)?);
    let options = TuneOptions {
        reward_range: Some([0.0, 1.0]),
        adaptive: logged == "adaptive",
        algorithms: algorithms.clone(),
        if_not_better: IfNotBetter::Clone,
        ..TuneOptions::default()
    };
    let tuning = Tuning::new(&log, &options, None, &mut |_| {})?;
    let mut tried = Vec::new();
    for group in tuning.groups() {
        tried.extend(tuning.try_group(&group, &mut |_| {})?);
    }
    let found = tuning.finish(tried.clone(), &mut |_| {})?;
    let value = |policy: &Policy| -> Result<f64, Box<dyn Error>> { Ok(world.value(rewards, &plays(policy, &pool)?)) };
    // each candidate learns once, and is read off at every β
    let mut values: Vec<(Tried, f64)> = Vec::new();
    let mut learned: BTreeMap<usize, Policy> = BTreeMap::new();
    for one in tried {
        if let Entry::Vacant(place) = learned.entry(one.candidate) {
            place.insert(tuning.policy(&one, &mut |_| {})?);
        }
        let policy = learned[&one.candidate].clone();
        let policy = match one.beta.filter(|_| policy.beta().is_some()) {
            Some(beta) => policy.with_beta(beta)?,
            None => policy,
        };
        let its = value(&policy)?;
        values.push((one, its));
    }
    let of = |wanted: &dyn Fn(&Tried) -> bool| values.iter().find(|(t, _)| wanted(t)).map(|(_, v)| *v);
    let clone = of(&|t| t.algorithm == Algorithm::Clone).ok_or("the clone is compared in every run")?;
    let written = found.policy.as_ref().expect("the clone at least");
    let (its, certificate) = (value(written)?, found.certificate());
    let from = worth.len() - certificate.rounds as usize;
    let log_value = worth[from..].iter().sum::<f64>() / certificate.rounds as f64;
    Ok(Line {
        world: name.to_owned(),
        logged: logged.to_owned(),
        rewards: rewards.to_owned(),
        n,
        rep,
        truth: [its, its - log_value, its - clone],
        lower: [certificate.value.lower, certificate.over_log.lower, certificate.over_clone.lower],
        score: found.tried[0].lower,
        written: written.description().method.name().to_owned(),
        shown: found.beats_the_log(),
        winner: of(&|t| *t == found.tried[0]).expect("among them"),
        best: values.iter().fold(f64::NEG_INFINITY, |best, (_, v)| best.max(*v)),
        log: log_value,
    })
}

/// A share with Clopper and Pearson's 95 % interval, in %.
fn share(bad: usize, all: usize) -> String {
    let (b, n) = (bad as f64, all as f64);
    let low = if bad == 0 { 0.0 } else { Beta::new(b, n - b + 1.0).expect("counts").inverse_cdf(0.025) };
    let high = if bad == all { 1.0 } else { Beta::new(b + 1.0, n - b).expect("counts").inverse_cdf(0.975) };
    format!("{bad} of {all}: {:.1} % [{:.1}, {:.1}]", 100.0 * b / n, 100.0 * low, 100.0 * high)
}

fn table(title: &str, lines: &[Line], by: impl Fn(&Line) -> String) {
    let mut groups: BTreeMap<String, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        groups.entry(by(line)).or_default().push(line);
        groups.entry("all".to_owned()).or_default().push(line);
    }
    println!(
        "\n| {title} | false certificates | shown better | choice ÷ best, mean | file worse than the log | score was false |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, lines) in groups {
        let count = |f: &dyn Fn(&Line) -> bool| lines.iter().filter(|l| f(l)).count();
        let bad = count(&|l| (0..3).any(|i| l.lower[i] > l.truth[i] + 1e-9));
        let ratio = lines.iter().map(|l| l.winner / l.best).sum::<f64>() / lines.len() as f64;
        println!(
            "| {name} | {} | {:.0} % | {ratio:.3} | {} | {} |",
            share(bad, lines.len()),
            100.0 * count(&|l| l.shown) as f64 / lines.len() as f64,
            share(count(&|l| l.truth[1] < -1e-9), lines.len()),
            share(count(&|l| l.score > l.winner + 1e-9), lines.len()),
        );
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, data, reps, rest @ ..] = &args[..] else {
        return Err("usage: tuning DIR DATA REPS [ALGORITHM,…]".into());
    };
    let named = |list: &String| list.split(',').map(|name| Algorithm::parse(name).expect("an algorithm")).collect();
    let (algorithms, reps): (Option<Vec<Algorithm>>, usize) = (rest.first().map(named), reps.parse()?);
    fs::create_dir_all(folder)?;
    let path = Path::new(folder).join("tuning.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut lines: Vec<Line> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut journal = OpenOptions::new().create(true).append(true).open(&path)?;
    let there = |name: &&str| {
        RealData::parse(name).is_none_or(|real| {
            real.load(&Preparation::paper(real), Path::new(data)).inspect_err(|e| eprintln!("left out: {e}")).is_ok()
        })
    };
    let worlds: Vec<&str> = ["linear", "squares", "mushroom", "statlog", "adult"].into_iter().filter(there).collect();
    for rep in 0..reps {
        for n in SIZES {
            for name in &worlds {
                for logged in LOGGED {
                    for rewards in REWARDS {
                        let there = |l: &Line| {
                            (&*l.world, &*l.logged, &*l.rewards, l.n, l.rep) == (*name, logged, rewards, n, rep)
                        };
                        if !lines.iter().any(there) {
                            let line = run((name, logged, rewards, n, rep), Path::new(data), &algorithms)?;
                            writeln!(journal, "\n{}", serde_json::to_string(&line)?)?;
                            lines.push(line);
                        }
                    }
                }
            }
        }
    }
    table("data", &lines, |l| l.world.clone());
    table("logged by", &lines, |l| l.logged.clone());
    table("rewards", &lines, |l| l.rewards.clone());
    table("n", &lines, |l| format!("{:>5}", l.n));
    Ok(())
}
