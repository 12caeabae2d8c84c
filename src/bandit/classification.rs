//! Classification data as a contextual bandit (Section 6.2): a row is the context of a round, its class decides the
//! expected reward of every action.
//!
//! * **classes**: action a earns 1 if it is the row's class, else 0;
//! * **noisy**: the same with noise: 1 with probability 0.8 for the row's class, 0.2 for any other;
//! * **clicks**: graded relevance: 1 with probability 0.6 for the row's class, 0.4 for the one after it, 0.1 for any
//!   other;
//! * **mushroom** (Riquelme et al. 2018): not eating earns 0, eating an edible mushroom +5, eating a poisonous one +5
//!   or −35 with equal probability. A policy is judged by the expectation, −15.
//!
//! One vector per round, disjoint encoding. Rows come in random order, each once before any comes again.

use std::sync::Arc;

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::Bandit;
use crate::data::{Contexts, Eligible, Encoding, Layout};
use crate::error::{Error, at_least};
use crate::seed::Stream;

/// Rows of numbers with a class each.
#[derive(Debug, Clone, PartialEq)]
pub struct Labelled {
    /// Numbers per row.
    pub dim: usize,
    /// Number of classes.
    pub n_classes: usize,
    /// The rows, one after another.
    pub x: Vec<f32>,
    /// The class of each row.
    pub labels: Vec<u32>,
}

/// What the actions earn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardRule {
    /// 1 for the row's class, 0 for any other; as many actions as classes.
    Classes,
    /// 1 with probability 0.8 for the row's class, 0.2 for any other.
    Noisy,
    /// 1 with probability 0.6 for the row's class, 0.4 for the one after it, 0.1 for any other.
    Clicks,
    /// Action 0 eats, action 1 does not; class 0 is edible, class 1 poisonous.
    Mushroom,
}

/// The expected reward of eating an edible and a poisonous mushroom: 5 and ½·5 − ½·35.
const EATING: [f64; 2] = [5.0, -15.0];

/// A bandit whose contexts are some of the rows of a data set.
#[derive(Debug, Clone)]
pub struct Classification {
    data: Arc<Labelled>,
    pool: Vec<u32>,
    rule: RewardRule,
}

impl Classification {
    /// Checks the data; `pool` holds the numbers of the rows that may be drawn.
    pub fn new(data: Arc<Labelled>, pool: Vec<u32>, rule: RewardRule) -> Result<Self, Error> {
        at_least("dim", 1, "at least 1", data.dim)?;
        at_least("number of classes", 1, "at least 1", data.n_classes)?;
        at_least("rows to draw from", 1, "at least 1", pool.len())?;
        let n = data.labels.len();
        if data.x.len() != n * data.dim {
            return Err(Error::Shape { what: "numbers in the rows", expected: n * data.dim, got: data.x.len() });
        }
        if rule == RewardRule::Mushroom && data.n_classes != 2 {
            return Err(Error::Shape { what: "classes of mushrooms", expected: 2, got: data.n_classes });
        }
        if let Some(&label) = data.labels.iter().find(|&&label| label as usize >= data.n_classes) {
            let range = "below the number of classes";
            return Err(Error::Param { name: "class", range, got: f64::from(label) });
        }
        if let Some(&row) = pool.iter().find(|&&row| row as usize >= n) {
            return Err(Error::Param { name: "row", range: "below the number of rows", got: f64::from(row) });
        }
        Ok(Classification { data, pool, rule })
    }
}

impl Bandit for Classification {
    fn layout(&self) -> Layout {
        Layout { dim: self.data.dim, n_actions: self.data.n_classes, encoding: Encoding::Disjoint }
    }

    fn draw(&self, n: usize, rng: &mut Stream) -> Result<(Contexts, Vec<f64>), Error> {
        let (d, k) = (self.data.dim, self.data.n_classes);
        let mut x = Vec::with_capacity(n * d);
        let mut expected = Vec::with_capacity(n * k);
        let mut order = self.pool.clone();
        for t in 0..n {
            let place = t % order.len();
            if place == 0 {
                order.shuffle(rng);
            }
            let row = order[place] as usize;
            x.extend_from_slice(&self.data.x[row * d..][..d]);
            let class = self.data.labels[row] as usize;
            match self.rule {
                RewardRule::Classes => expected.extend((0..k).map(|a| f64::from(u8::from(a == class)))),
                RewardRule::Noisy => expected.extend((0..k).map(|a| if a == class { 0.8 } else { 0.2 })),
                RewardRule::Clicks => expected.extend((0..k).map(|a| match (a + k - class) % k {
                    0 => 0.6,
                    1 => 0.4,
                    _ => 0.1,
                })),
                RewardRule::Mushroom => expected.extend([EATING[class], 0.0]),
            }
        }
        Ok((Contexts::new(self.layout(), x, Eligible::All)?, expected))
    }

    fn n_contexts(&self) -> Option<usize> {
        Some(self.pool.len())
    }

    fn draw_reward(&self, expected: f64, rng: &mut Stream) -> f64 {
        match self.rule {
            RewardRule::Mushroom if expected == EATING[1] => {
                if rng.random() {
                    5.0
                } else {
                    -35.0
                }
            }
            RewardRule::Noisy | RewardRule::Clicks => f64::from(u8::from(rng.random::<f64>() < expected)),
            _ => expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandit::{TestSet, collect};
    use crate::policy::{Behaviour, BehaviourConfig};
    use crate::seed::Seed;

    fn rows(n: usize, n_classes: usize) -> Arc<Labelled> {
        let labels = (0..n).map(|i| (i % n_classes) as u32).collect();
        Arc::new(Labelled { dim: 1, n_classes, x: (0..n).map(|i| i as f32).collect(), labels })
    }

    #[test]
    fn every_row_of_the_pool_comes_once_before_any_comes_again() {
        let bandit = Classification::new(rows(20, 4), vec![3, 5, 6, 11], RewardRule::Classes).unwrap();
        let (contexts, expected) = bandit.draw(10, &mut Seed::new(1).stream("x")).unwrap();
        let seen: Vec<u32> = contexts.rows(0..10).iter().map(|&x| x as u32).collect();
        for cycle in seen[..8].chunks(4) {
            let mut cycle = cycle.to_vec();
            cycle.sort_unstable();
            assert_eq!(cycle, [3, 5, 6, 11]);
        }
        for (row, expected) in seen.iter().zip(expected.chunks(4)) {
            let class = *row as usize % 4;
            assert!(expected.iter().enumerate().all(|(a, &v)| v == f64::from(u8::from(a == class))));
        }
    }

    #[test]
    fn a_poisonous_mushroom_costs_fifteen_on_average_and_is_judged_by_that() {
        let bandit = Classification::new(rows(2, 2), vec![0, 1], RewardRule::Mushroom).unwrap();
        let mut rng = Seed::new(3).stream("rewards");
        let drawn: Vec<f64> = (0..20_000).map(|_| bandit.draw_reward(-15.0, &mut rng)).collect();
        assert!(drawn.iter().all(|&r| r == 5.0 || r == -35.0));
        // standard error 20/√20,000 = 0.14
        assert!((drawn.iter().sum::<f64>() / 20_000.0 + 15.0).abs() < 0.6);
        assert_eq!((bandit.draw_reward(5.0, &mut rng), bandit.draw_reward(0.0, &mut rng)), (5.0, 0.0));
        let test = TestSet::draw(&bandit, 2, &mut rng).unwrap();
        let eat_all = test.judge(&[0, 0]);
        assert_eq!((eat_all.suboptimality, eat_all.accuracy), (7.5, 0.5));
        assert_eq!(test.judge_best_constant().suboptimality, 2.5, "never eating forgoes the edible half");
    }

    #[test]
    fn the_behaviour_policy_is_judged_by_its_probabilities_in_the_log() {
        let bandit = Classification::new(rows(100, 10), (0..100).collect(), RewardRule::Classes).unwrap();
        let config = BehaviourConfig::EpsilonGreedy { epsilon: 0.1 };
        let mut behaviour = Behaviour::new(&config, bandit.layout()).unwrap();
        let collected = collect(&bandit, &mut behaviour, 50, Seed::new(1)).unwrap();
        assert!((collected.behaviour.suboptimality - 0.09).abs() < 1e-12);
    }

    #[test]
    fn data_that_do_not_fit_together_are_refused() {
        let refuse = |data: Arc<Labelled>, pool, rule| Classification::new(data, pool, rule).unwrap_err().to_string();
        assert_eq!(refuse(rows(4, 2), vec![4], RewardRule::Classes), "`row` must be below the number of rows, got 4");
        assert_eq!(refuse(rows(4, 3), vec![0], RewardRule::Mushroom), "classes of mushrooms: expected 2, got 3");
        let broken = Labelled { labels: vec![0, 7], ..rows(2, 2).as_ref().clone() };
        assert_eq!(
            refuse(Arc::new(broken), vec![0], RewardRule::Classes),
            "`class` must be below the number of classes, got 7"
        );
        assert!(refuse(rows(4, 2), vec![], RewardRule::Classes).starts_with("`rows to draw from` must be"));
    }
}
