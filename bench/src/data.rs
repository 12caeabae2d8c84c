//! The data of the jobs: always the same, drawn from one seed.
//!
//! * **synthetic**: h₁ of the paper's experiments, d = 20, 30 actions with a vector each, ε-greedy 0.1;
//! * **MNIST shape**: d = 784, 10 actions, disjoint encoding, vectors of unit norm with Gaussian entries, or with 19 %
//!   non-zero entries, the share in MNIST.

use neuralcb::bandit::{Bandit, Synthetic, SyntheticConfig, collect};
use neuralcb::policy::{Behaviour, BehaviourConfig};
use neuralcb::{Contexts, Eligible, Encoding, Error, Layout, Pair, Seed, Stream};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

/// The layout of the synthetic jobs.
pub(crate) const SYNTHETIC: Layout = Layout { dim: 20, n_actions: 30, encoding: Encoding::PerAction };
/// The same sizes with one vector per round.
pub(crate) const SHARED: Layout = Layout { dim: 20, n_actions: 30, encoding: Encoding::Disjoint };
/// The layout of the jobs in the shape of MNIST.
pub(crate) const MNIST: Layout = Layout { dim: 784, n_actions: 10, encoding: Encoding::Disjoint };
/// The share of non-zero pixels in MNIST.
pub(crate) const MNIST_DENSITY: f64 = 0.19;

/// The root of all draws.
pub(crate) fn seed() -> Seed {
    Seed::new(1).child("bench")
}

/// Chosen pairs and rewards, ready to be observed one after another.
#[derive(Debug, Clone)]
pub struct Rounds {
    /// The sizes of the problem.
    pub layout: Layout,
    /// The chosen vectors.
    pub x: Vec<f32>,
    /// The chosen actions.
    pub actions: Vec<u32>,
    /// The rewards.
    pub rewards: Vec<f64>,
}

impl Rounds {
    /// Number of rounds.
    pub fn n(&self) -> usize {
        self.rewards.len()
    }

    /// What was chosen in round t and what came of it.
    #[inline]
    pub fn round(&self, t: usize) -> (Pair<'_>, f64) {
        let d = self.layout.dim;
        (Pair { x: &self.x[t * d..(t + 1) * d], action: self.actions[t] as usize }, self.rewards[t])
    }

    /// The block of W_1 that each round meets.
    pub(crate) fn blocks(&self) -> Vec<u32> {
        self.actions.iter().map(|&a| self.layout.block(a as usize) as u32).collect()
    }
}

fn bandit() -> Result<Synthetic, Error> {
    Synthetic::new(SyntheticConfig::default(), &mut seed().stream("bandit"))
}

/// The first `n` rounds of the synthetic log.
pub(crate) fn synthetic_rounds(n: usize) -> Result<Rounds, Error> {
    let mut behaviour = Behaviour::new(&BehaviourConfig::EpsilonGreedy { epsilon: 0.1 }, SYNTHETIC)?;
    let log = collect(&bandit()?, &mut behaviour, n, seed().child("log"))?.log;
    let mut x = Vec::with_capacity(n * SYNTHETIC.dim);
    (0..n).for_each(|t| x.extend_from_slice(log.round(t).chosen.x));
    Ok(Rounds { layout: SYNTHETIC, x, actions: log.actions().to_vec(), rewards: log.rewards().to_vec() })
}

/// The first `n` synthetic test contexts, 30 vectors each.
pub(crate) fn synthetic_contexts(n: usize) -> Result<Contexts, Error> {
    Ok(bandit()?.draw(n, &mut seed().stream("test contexts"))?.0)
}

/// `n` rounds of vectors of that layout, one per round, with actions and rewards drawn at random; for 30 blocks in
/// turn, so that each has the same number of samples.
pub(crate) fn random_rounds(layout: Layout, n: usize) -> Rounds {
    let seed = seed().child("random rounds");
    let mut rng = seed.stream("rest");
    let actions = (0..n).map(|t| if layout == SHARED { t } else { rng.random_range(0..layout.n_actions) });
    let actions = actions.map(|a| (a % layout.n_actions) as u32).collect();
    let rewards = (0..n).map(|_| rng.random::<f64>()).collect();
    Rounds { layout, x: vectors(layout.dim, n, 1.0, &mut seed.stream("x")), actions, rewards }
}

/// `n` test contexts with one vector each, of that share of non-zero entries.
pub(crate) fn shared_contexts(layout: Layout, n: usize, density: f64) -> Result<Contexts, Error> {
    Contexts::new(layout, vectors(layout.dim, n, density, &mut seed().stream("test vectors")), Eligible::All)
}

/// `n` vectors of unit norm with Gaussian entries, of which that share is kept.
fn vectors(dim: usize, n: usize, density: f64, rng: &mut Stream) -> Vec<f32> {
    let mut x: Vec<f32> = Vec::with_capacity(n * dim);
    let below = (density * 2f64.powi(32)) as u64;
    for row in 0..n {
        for _ in 0..dim {
            let v: f32 = StandardNormal.sample(rng);
            x.push(if density >= 1.0 || rng.next_u64() >> 32 < below { v } else { 0.0 });
        }
        let row = &mut x[row * dim..];
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        row.iter_mut().for_each(|v| *v /= norm);
    }
    x
}
