//! The Rust half of `python/benches/overhead.py`: the same fit and the same scoring, from the same numbers in memory,
//! through this library alone. Reads jobs from its input, a line each, and answers with the seconds that each took.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use neuralcb_logs::Training;
use neuralcb_logs::log::{
    BLOCK, Block, Categories, Feature, Format, Kind, LogError, Missing, Offered, Place, ReadBlocks, ReadLog, Roles,
    Schema, Values, sha256_of_values,
};
use neuralcb_logs::policy::{Policy, PolicyError, Recipe};
use rayon::prelude::*;

type Failure = Box<dyn std::error::Error>;

/// Rounds with a vector for each action, one after another.
struct Rounds {
    schema: Schema,
    n_actions: usize,
    dim: usize,
    x: Vec<f32>,
    outcome: Option<(Vec<u32>, Vec<f64>)>,
}

impl Rounds {
    /// Reads what `overhead.py` has written: `x`, and of a log also `actions` and `rewards`.
    fn read(folder: &Path, n_actions: usize, dim: usize) -> Result<Rounds, Failure> {
        let bytes = |name: &str| std::fs::read(folder.join(name));
        let x = bytes("x")?.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let outcome = match (bytes("actions"), bytes("rewards")) {
            (Ok(actions), Ok(rewards)) => Some((
                actions.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect(),
                rewards.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
            )),
            _ => None,
        };
        let (named, feature) =
            (|name: &str| Some(name.to_owned()), |j| Feature { name: format!("x{j}"), kind: Kind::Number });
        let roles = Roles {
            action: named("action"),
            reward: named("reward"),
            round: named("round"),
            chosen: named("chosen"),
            ..Roles::default()
        };
        let schema = Schema {
            format: Format::Csv,
            shared: Vec::new(),
            per_action: (0..dim).map(feature).collect(),
            roles,
            missing: Missing::Refuse,
            ignored: Vec::new(),
        };
        Ok(Rounds { schema, n_actions, dim, x, outcome })
    }

    fn n_rounds(&self) -> usize {
        self.x.len() / self.n_actions / self.dim
    }

    fn block(&self, first: usize) -> Block {
        let (k, d) = (self.n_actions, self.dim);
        let rounds = first..(first + BLOCK).min(self.n_rounds());
        let x = &self.x[rounds.start * k * d..rounds.end * k * d];
        // on all threads, as the binding does
        let columns: Vec<Vec<f64>> =
            (0..d).into_par_iter().map(|j| x.iter().skip(j).step_by(d).map(|&v| f64::from(v)).collect()).collect();
        let names = |codes: Vec<u32>| Categories { codes, names: self.actions() };
        let outcome = self.outcome.as_ref();
        Block {
            places: rounds.clone().map(|t| Place { file: 0, line: t as u64 + 1 }).collect(),
            shared: Vec::new(),
            offered: Offered::Listed {
                offsets: (0..=rounds.len()).map(|t| t * k).collect(),
                actions: names(rounds.clone().flat_map(|_| 0..k as u32).collect()),
                features: columns.into_iter().map(Values::Numbers).collect(),
            },
            chosen: outcome.map(|(actions, _)| names(actions[rounds.clone()].to_vec())),
            rewards: outcome.map(|(_, rewards)| rewards[rounds.clone()].to_vec()),
            propensities: None,
            counts: None,
            extra: Vec::new(),
        }
    }

    /// The action of each round.
    fn score(&self, policy: &Policy) -> Result<Vec<i64>, PolicyError> {
        let mut actions = Vec::with_capacity(self.n_rounds());
        for first in (0..self.n_rounds()).step_by(BLOCK) {
            let contexts = policy.preparation().contexts(&self.block(first))?;
            let choices = policy.decide(&contexts)?.choices.unwrap_or_default();
            actions.extend(choices.iter().enumerate().map(|(t, &place)| contexts.action(t, place as usize) as i64));
        }
        Ok(actions)
    }
}

impl ReadLog for Rounds {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self) -> ReadBlocks<'_> {
        Box::new((0..self.n_rounds()).step_by(BLOCK).map(|first| Ok(self.block(first))))
    }

    fn actions(&self) -> Vec<String> {
        (0..self.n_actions).map(|k| k.to_string()).collect()
    }

    fn bad_rows(&self) -> u64 {
        0
    }

    fn parts(&self) -> Vec<String> {
        Vec::new()
    }

    fn digest(&self) -> Result<String, LogError> {
        sha256_of_values(self.read())
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: overhead FOLDER ACTIONS DIM RECIPE");
    let (folder, k, d) = (PathBuf::from(next()?), next()?.parse()?, next()?.parse()?);
    let recipe: Recipe = serde_json::from_str(&next()?)?;
    let log = Rounds::read(&folder.join("log"), k, d)?;
    let new = Rounds::read(&folder.join("new"), k, d)?;
    for job in std::io::stdin().lock().lines() {
        let policy = folder.join("policy.safetensors");
        let seconds = match job?.as_str() {
            "fit" => {
                let start = Instant::now();
                let learned = Training::start(&log, &recipe, &mut |_| {})?.policy()?;
                let seconds = start.elapsed();
                std::fs::write(policy, learned.to_bytes())?;
                seconds
            }
            "score" => {
                let policy = Policy::load(&policy)?;
                let start = Instant::now();
                let actions = new.score(&policy)?;
                let seconds = start.elapsed();
                let bytes: Vec<u8> = actions.iter().flat_map(|action| action.to_le_bytes()).collect();
                std::fs::write(folder.join("actions"), bytes)?;
                seconds
            }
            other => return Err(format!("unknown job `{other}`").into()),
        };
        println!("{}", seconds.as_secs_f64());
        std::io::stdout().flush()?;
    }
    Ok(())
}
