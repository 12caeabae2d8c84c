//! How often lower bounds are false, and how tight they are, on simulated logs whose truth is known: the numbers of
//! `docs/CERTIFICATES.md`.
//!
//! `cargo run --release --example certificates -- DIR [SCALE]` makes the logs (SCALE times as many, 1 by default) and
//! prints the tables. Every log leaves a line in `DIR/certificates.jsonl`; a run that was killed goes on after the last
//! of them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use neuralcb::ope::{
    BoundConfig, BoundMethod, Estimator, Interval, OpeConfig, Paired, Sample, Statement, bound, evaluate, snips,
};
use neuralcb::{Seed, Stream};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

/// Values of the context; each is as likely as another.
const CONTEXTS: usize = 20;

/// How a log comes about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Setting {
    /// Uniform actions, rewards 0 and 1.
    Noisy,
    /// ε-greedy with ε = 0.1: weights of 1 and of a hundred.
    Greedy,
    /// Softmax of normal scores: propensities without a floor that is worth anything.
    Heavy,
    /// One reward in a hundred.
    Rare,
    /// Rewards of which most are small and a few large.
    Skewed,
    /// A value near the greatest reward, and few rounds that agree.
    Top,
    /// ε-greedy on what was seen so far, with ε falling to 0.05.
    Adaptive,
}

const SETTINGS: [(Setting, &str); 7] = [
    (Setting::Noisy, "noisy"),
    (Setting::Greedy, "greedy"),
    (Setting::Heavy, "heavy"),
    (Setting::Rare, "rare"),
    (Setting::Skewed, "skewed"),
    (Setting::Top, "top"),
    (Setting::Adaptive, "adaptive"),
];

/// Rounds, and logs of each setting.
const SIZES: [(usize, usize); 4] = [(500, 60), (2_000, 60), (5_000, 30), (20_000, 20)];

const STATEMENTS: [(Statement, &str); 3] =
    [(Statement::Value, "value"), (Statement::OverLog, "over-log"), (Statement::OverOther, "over-clone")];

const CONFIDENCE: f64 = 0.95;

struct World {
    setting: Setting,
    n_actions: usize,
    /// Mean reward by context and action.
    q: Vec<Vec<f64>>,
    /// The log's policy where it does not learn.
    mu: Vec<Vec<f64>>,
    target: Vec<usize>,
    clone: Vec<usize>,
}

fn best(of: &[f64]) -> usize {
    (0..of.len()).fold(0, |best, a| if of[a] > of[best] { a } else { best })
}

fn normal(stream: &mut Stream) -> f64 {
    let (u, v): (f64, f64) = (stream.random(), stream.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

impl World {
    fn new(setting: Setting, stream: &mut Stream) -> World {
        let n_actions = match setting {
            Setting::Top => 25,
            Setting::Rare => 5,
            _ => 10,
        };
        let mean = |stream: &mut Stream| match setting {
            Setting::Rare => 0.03 * stream.random::<f64>().powi(2),
            Setting::Skewed => 0.2 * stream.random::<f64>(),
            Setting::Top => 0.9 * stream.random::<f64>(),
            _ => stream.random(),
        };
        let mut q: Vec<Vec<f64>> = (0..CONTEXTS).map(|_| (0..n_actions).map(|_| mean(stream)).collect()).collect();
        if setting == Setting::Top {
            q.iter_mut().for_each(|q| {
                let best = best(q);
                q[best] = 0.94;
            });
        }
        let scores: Vec<Vec<f64>> =
            (0..CONTEXTS).map(|_| (0..n_actions).map(|_| 1.7 * normal(stream)).collect()).collect();
        let any = |stream: &mut Stream| stream.random_range(0..n_actions);
        // the clone plays what the log plays most; the target is right in most contexts and like the clone in some
        let clone: Vec<usize> = match setting {
            Setting::Heavy => scores.iter().map(|z| best(z)).collect(),
            _ => (0..CONTEXTS).map(|_| any(stream)).collect(),
        };
        let target = (0..CONTEXTS).map(|x| if stream.random_bool(0.7) { best(&q[x]) } else { clone[x] }).collect();
        let mu = (0..CONTEXTS).map(|x| {
            let mut p: Vec<f64> = match setting {
                Setting::Heavy => scores[x].iter().map(|z| z.exp()).collect(),
                Setting::Greedy => (0..n_actions).map(|a| 0.01 + 0.9 * f64::from(u8::from(a == clone[x]))).collect(),
                _ => vec![1.0; n_actions],
            };
            let sum: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= sum);
            p
        });
        World { setting, n_actions, mu: mu.collect(), q, target, clone }
    }

    fn reward(&self, mean: f64, stream: &mut Stream) -> f64 {
        match self.setting {
            // the cube of a uniform number has the mean 1/4; one in a few rounds earns it, so that the mean is right
            Setting::Skewed => f64::from(u8::from(stream.random_bool(4.0 * mean))) * stream.random::<f64>().powi(3),
            _ => f64::from(u8::from(stream.random_bool(mean))),
        }
    }

    /// The propensity floor that whoever made the log would know.
    fn least_propensity(&self) -> Option<f64> {
        match self.setting {
            Setting::Heavy => None,
            Setting::Greedy => Some(0.01),
            Setting::Adaptive => Some(0.05 / self.n_actions as f64),
            _ => Some(1.0 / self.n_actions as f64),
        }
    }

    /// A log, and the truth of the three statements.
    fn log(&self, n: usize, stream: &mut Stream) -> (Vec<Paired>, [f64; 3]) {
        let (mut counts, mut sums) =
            (vec![vec![0.0; self.n_actions]; CONTEXTS], vec![vec![0.0; self.n_actions]; CONTEXTS]);
        let (mut rounds, mut log_value) = (Vec::with_capacity(n), 0.0);
        let mut greedy = [0; CONTEXTS];
        let fixed = self.value(|x, a| self.mu[x][a]);
        for t in 0..n {
            let x = stream.random_range(0..CONTEXTS);
            let epsilon = (1.0 / (1.0 + t as f64).cbrt()).max(0.05);
            let learned = |x: usize, a: usize| {
                epsilon / self.n_actions as f64 + f64::from(u8::from(a == greedy[x])) * (1.0 - epsilon)
            };
            let adaptive = self.setting == Setting::Adaptive;
            let mu: Vec<f64> =
                if adaptive { (0..self.n_actions).map(|a| learned(x, a)).collect() } else { self.mu[x].clone() };
            log_value += if adaptive { self.value(learned) } else { fixed };
            let (u, mut a, mut below) = (stream.random::<f64>(), 0, mu[0]);
            while u > below && a + 1 < self.n_actions {
                a += 1;
                below += mu[a];
            }
            let reward = self.reward(self.q[x][a], stream);
            counts[x][a] += 1.0;
            sums[x][a] += reward;
            let seen: Vec<f64> = counts[x].iter().zip(&sums[x]).map(|(c, s): (&f64, &f64)| s / c.max(1.0)).collect();
            greedy[x] = best(&seen);
            let weight = |policy: &[usize]| if policy[x] == a { 1.0 / mu[a] } else { 0.0 };
            let apart = f64::from(u8::from(self.target[x] != self.clone[x]));
            rounds.push(Paired { reward, weight: weight(&self.target), other: weight(&self.clone), apart });
        }
        let plays = |policy: &[usize]| self.value(|x, a| f64::from(u8::from(policy[x] == a)));
        let value = plays(&self.target);
        (rounds, [value, value - log_value / n as f64, value - plays(&self.clone)])
    }

    fn value(&self, p: impl Fn(usize, usize) -> f64) -> f64 {
        let of = |x: usize| (0..self.n_actions).map(|a| p(x, a) * self.q[x][a]).sum::<f64>();
        (0..CONTEXTS).map(of).sum::<f64>() / CONTEXTS as f64
    }
}

/// What one log showed.
#[derive(Serialize, Deserialize)]
struct Line {
    setting: String,
    n: usize,
    rep: usize,
    truth: [f64; 3],
    /// Lower bounds of the three statements by method; none where a method has none.
    lower: BTreeMap<String, [Option<f64>; 3]>,
}

/// The usual lower bounds, for comparison: normal ones of SNIPS, and Hoeffding's and Bernstein's of IPS.
fn usual(rounds: &[Paired], lower: &mut BTreeMap<String, [Option<f64>; 3]>) {
    let n = rounds.len() as f64;
    let rewards: Vec<f64> = rounds.iter().map(|r| r.reward).collect();
    let [target, clone] = [|r: &Paired| r.weight, |r: &Paired| r.other].map(|weight| {
        let weights: Vec<f64> = rounds.iter().map(weight).collect();
        (snips(&weights, &rewards), weights.iter().sum::<f64>() / n)
    });
    let mean = rewards.iter().sum::<f64>() / n;
    // the delta method: what each round adds to the ratio
    let part = |weight: f64, reward: f64, (of, total): &(neuralcb::ope::WeightedMean, f64)| {
        if *total > 0.0 { weight * (reward - of.value) / total } else { 0.0 }
    };
    let difference = |value: f64, of: &dyn Fn(&Paired) -> f64| {
        let error = rounds.iter().map(|r| of(r).powi(2)).sum::<f64>().sqrt() / n;
        (value - 1.6448536 * error).is_finite().then_some(value - 1.6448536 * error)
    };
    let own = |r: &Paired| part(r.weight, r.reward, &target);
    let value = difference(target.0.value, &own);
    let over_log = difference(target.0.value - mean, &|r| own(r) - (r.reward - mean));
    let over_clone = difference(target.0.value - clone.0.value, &|r| own(r) - part(r.other, r.reward, &clone));
    lower.insert("normal (SNIPS)".to_owned(), [value, over_log, over_clone]);
    let config = OpeConfig {
        estimators: vec![Estimator::Ips],
        intervals: vec![Interval::Hoeffding, Interval::Bernstein, Interval::Sequence],
        reward_range: Some([0.0, 1.0]),
        ..OpeConfig::default()
    };
    let report = evaluate(&config, rounds.iter().map(|r| Sample::new(r.weight, r.reward))).expect("valid rounds");
    let bounds = &report.estimate(Estimator::Ips).expect("asked for").bounded.lower_bounds;
    for (interval, name) in [
        (Interval::Hoeffding, "hoeffding (IPS)"),
        (Interval::Bernstein, "bernstein (IPS)"),
        (Interval::Sequence, "sequence (evaluate)"),
    ] {
        lower.insert(name.to_owned(), [bounds.get(&interval).copied(), None, None]);
    }
}

fn simulate(setting: Setting, name: &str, n: usize, rep: usize) -> Line {
    let mut stream = Seed::new(rep as u64).stream(&format!("{name} {n}"));
    let world = World::new(setting, &mut stream);
    let (rounds, truth) = world.log(n, &mut stream);
    let mut lower = BTreeMap::new();
    usual(&rounds, &mut lower);
    let adaptive = setting == Setting::Adaptive;
    let usual = BoundConfig { confidence: CONFIDENCE, reward_range: Some([0.0, 1.0]), adaptive, ..Default::default() };
    for method in BoundMethod::ALL {
        if adaptive && method == BoundMethod::ClippedBernstein {
            continue;
        }
        let forms: &[Option<f64>] = match method {
            BoundMethod::Betting | BoundMethod::Mixture => &[None, world.least_propensity()],
            _ => &[None],
        };
        for (i, &least_propensity) in forms.iter().enumerate().filter(|&(i, form)| i == 0 || form.is_some()) {
            let config = BoundConfig { method, least_propensity, ..usual.clone() };
            let of = |(statement, _)| Some(bound(&config, statement, &rounds).expect("valid rounds").lower);
            let name = format!("{method}{}", if i > 0 { ", floor given" } else { "" });
            lower.insert(name, STATEMENTS.map(of));
        }
    }
    Line { setting: name.to_owned(), n, rep, truth, lower }
}

/// A share with Clopper and Pearson's 95 % interval, in %.
fn share(bad: u64, all: u64) -> String {
    let (b, n) = (bad as f64, all as f64);
    let low = if bad == 0 { 0.0 } else { Beta::new(b, n - b + 1.0).expect("counts").inverse_cdf(0.025) };
    let high = if bad == all { 1.0 } else { Beta::new(b + 1.0, n - b).expect("counts").inverse_cdf(0.975) };
    format!("{bad} of {all}: {:.1} % [{:.1}, {:.1}]", 100.0 * b / n, 100.0 * low, 100.0 * high)
}

/// False bounds among all, and the mean distance to the truth.
#[derive(Default, Clone)]
struct Cell {
    all: u64,
    bad: u64,
    radius: f64,
}

fn tally<'a>(lines: impl Iterator<Item = &'a Line>, statement: usize) -> BTreeMap<&'a str, Cell> {
    let mut cells: BTreeMap<&str, Cell> = BTreeMap::new();
    for line in lines {
        // the value is the unit of all distances
        let (truth, unit) = (line.truth[statement], line.truth[0]);
        for (method, lower) in &line.lower {
            if let Some(lower) = lower[statement] {
                let cell = cells.entry(method).or_default();
                cell.all += 1;
                cell.bad += u64::from(lower > truth + 1e-12);
                cell.radius += (truth - lower) / unit;
            }
        }
    }
    cells
}

fn tables(lines: &[Line]) {
    println!("## False bounds at 95 %\n\n{} logs.\n", lines.len());
    println!("| method | value | over the log | over the clone |\n|---|---|---|---|");
    let tallies: Vec<_> = (0..3).map(|i| tally(lines.iter(), i)).collect();
    for method in tallies[0].keys() {
        let cell = |i: usize| tallies[i].get(method).map_or("-".to_owned(), |cell| share(cell.bad, cell.all));
        println!("| {method} | {} | {} | {} |", cell(0), cell(1), cell(2));
    }
    println!("\n### By setting: false bounds of the value, of both differences, in % of the logs\n");
    println!("| method | {} |", SETTINGS.map(|(_, name)| name).join(" | "));
    println!("|---|{}", "---|".repeat(SETTINGS.len()));
    for method in tallies[0].keys() {
        let of = |(_, name): (Setting, &str)| {
            let share = |i: usize| {
                let cells = tally(lines.iter().filter(|l| l.setting == name), i);
                cells.get(method).map_or("-".to_owned(), |c| format!("{:.1}", 100.0 * c.bad as f64 / c.all as f64))
            };
            format!("{} {} {}", share(0), share(1), share(2))
        };
        println!("| {method} | {} |", SETTINGS.map(of).join(" | "));
    }
    for (i, (_, what)) in STATEMENTS.iter().enumerate() {
        println!("\n## Mean distance to the truth, in units of the value: {what}\n");
        println!("| method | n | {} |", SETTINGS.map(|(_, name)| name).join(" | "));
        println!("|---|---|{}", "---|".repeat(SETTINGS.len()));
        for method in tallies[i].keys() {
            for (n, _) in SIZES {
                let of = |(_, name): (Setting, &str)| {
                    let cells = tally(lines.iter().filter(|l| l.setting == name && l.n == n), i);
                    cells.get(method).map_or("-".to_owned(), |c| format!("{:.3}", c.radius / c.all as f64))
                };
                println!("| {method} | {n} | {} |", SETTINGS.map(of).join(" | "));
            }
        }
    }
}

/// The lines that are there; one that was cut off is dropped.
fn journal(path: &Path) -> std::io::Result<(Vec<Line>, File)> {
    let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..whole].lines().map(serde_json::from_str).collect::<Result<Vec<Line>, _>>()?;
    let file = OpenOptions::new().create(true).write(true).truncate(false).open(path)?;
    file.set_len(whole as u64)?;
    drop(file);
    Ok((lines, OpenOptions::new().append(true).open(path)?))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().ok_or("usage: certificates DIR [SCALE]")?;
    let scale: f64 = args.next().map_or(Ok(1.0), |text| text.parse())?;
    std::fs::create_dir_all(&folder)?;
    let (mut lines, mut file) = journal(&Path::new(&folder).join("certificates.jsonl"))?;
    for (n, reps) in SIZES {
        for (setting, name) in SETTINGS {
            for rep in 0..((reps as f64 * scale).ceil() as usize) {
                if lines.iter().any(|line| line.setting == name && line.n == n && line.rep == rep) {
                    continue;
                }
                let line = simulate(setting, name, n, rep);
                writeln!(file, "{}", serde_json::to_string(&line)?)?;
                lines.push(line);
            }
            eprintln!("{name}, n = {n}: done");
        }
    }
    tables(&lines);
    Ok(())
}
