//! How much of what the policy does was tried in the log.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::group::Round;
use crate::log::Categories;

/// The most actions that are told apart; the rest is counted as one.
const KEPT: usize = 1000;

/// What actions beyond [`KEPT`] are called together.
const OTHERS: &str = "(other actions)";

/// An action in the log, and in the policy's choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Its name.
    pub name: String,
    /// Rounds of the log that chose it.
    pub rounds: u64,
    /// Their share.
    pub share: f64,
    /// The share of rounds in which the policy would choose it; none where that is not known.
    pub wanted: Option<f64>,
    /// Rounds that chose it and in which the policy may choose it as well.
    pub agreeing: u64,
    /// The effective sample size of these.
    pub ess: f64,
    /// The mean reward of the rounds that chose it.
    pub mean_reward: Option<f64>,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    rounds: u64,
    n: f64,
    rewards: f64,
    wanted: f64,
    agreeing: u64,
    weights: f64,
    squares: f64,
}

/// All actions so far.
#[derive(Debug, Default)]
pub(super) struct Actions {
    places: HashMap<String, usize>,
    names: Vec<String>,
    sums: Vec<Sums>,
    wanted: f64,
    unknown: f64,
}

impl Actions {
    fn place(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let name = if self.names.len() + 1 >= KEPT { OTHERS } else { name };
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        self.places.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        self.sums.push(Sums::default());
        self.names.len() - 1
    }

    pub fn add(&mut self, chosen: &Categories, rounds: &[Round]) {
        let places: Vec<usize> = chosen.names.iter().map(|name| self.place(name)).collect();
        for (&code, round) in chosen.codes.iter().zip(rounds) {
            let Some(&place) = places.get(code as usize) else { continue };
            let sums = &mut self.sums[place];
            sums.rounds += 1;
            sums.n += round.times;
            sums.rewards += round.reward * round.times;
            let weight = round.weight * round.times;
            sums.agreeing += u64::from(weight > 0.0);
            sums.weights += weight;
            sums.squares += weight * weight;
        }
    }

    pub fn wants(&mut self, action: Option<&str>, probability: f64) {
        self.wanted += probability;
        match action {
            Some(name) => {
                let place = self.place(name);
                self.sums[place].wanted += probability;
            }
            None => self.unknown += probability,
        }
    }

    /// The share of what the policy wants that has no name here.
    pub fn unknown_share(&self) -> f64 {
        if self.wanted > 0.0 { self.unknown / self.wanted } else { 0.0 }
    }

    pub fn reports(&self) -> Vec<Coverage> {
        let n: f64 = self.sums.iter().map(|sums| sums.n).sum();
        let report = |(sums, name): (&Sums, &String)| Coverage {
            name: name.clone(),
            rounds: sums.rounds,
            share: if n > 0.0 { sums.n / n } else { 0.0 },
            wanted: (self.wanted > 0.0).then(|| sums.wanted / self.wanted),
            agreeing: sums.agreeing,
            ess: if sums.squares > 0.0 { sums.weights * (sums.weights / sums.squares) } else { 0.0 },
            mean_reward: (sums.n > 0.0).then(|| sums.rewards / sums.n),
        };
        let mut all: Vec<Coverage> = self.sums.iter().zip(&self.names).map(report).collect();
        let wanted = |a: &Coverage| a.wanted.unwrap_or(0.0);
        all.sort_by(|a, b| wanted(b).total_cmp(&wanted(a)).then(b.rounds.cmp(&a.rounds)).then(a.name.cmp(&b.name)));
        all
    }
}
