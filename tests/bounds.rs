//! Lower bounds on simulated logs whose truth is known: no bound is false more often than it says.

use neuralcb::ope::{BoundConfig, BoundMethod, BoundSequence, Certificate, Paired, Statement, bound};
use neuralcb::{Seed, Stream};
use rand::RngExt;
use statrs::distribution::{Binomial, DiscreteCDF};

const LOGS: u64 = 300;

/// Five contexts, four actions. The target plays action 0, the clone action 1 where the context is below 3 and 0
/// elsewhere.
struct World {
    /// Probability of a reward of 3; otherwise it is 1.
    q: [f64; 4],
    /// Whether the log's policy follows what it has seen.
    adaptive: bool,
}

impl World {
    fn value(&self, p: impl Fn(usize) -> f64) -> f64 {
        (0..4).map(|a| p(a) * (1.0 + 2.0 * self.q[a])).sum()
    }

    /// A log with the truth of the three statements.
    fn log(&self, n: usize, rng: &mut Stream) -> (Vec<Paired>, [f64; 3]) {
        let (mut seen, mut log_value) = ([(0.5, 1.0); 4], 0.0);
        let mut rounds = Vec::new();
        for _ in 0..n {
            let mean = |a: usize| seen[a].0 / seen[a].1;
            let liked = if self.adaptive { (0..4).fold(0, |b, a| if mean(a) > mean(b) { a } else { b }) } else { 1 };
            let p = |a: usize| 0.02 + 0.92 * f64::from(u8::from(a == liked));
            log_value += self.value(p);
            let (x, u) = (rng.random_range(0..5), rng.random::<f64>());
            let a = if u < 0.92 { liked } else { ((u - 0.92) / 0.02) as usize % 4 };
            let rewarded = rng.random_bool(self.q[a]);
            seen[a] = (seen[a].0 + f64::from(u8::from(rewarded)), seen[a].1 + 1.0);
            let clone = usize::from(x < 3);
            let weight = |plays: usize| if plays == a { 1.0 / p(a) } else { 0.0 };
            let reward = if rewarded { 3.0 } else { 1.0 };
            rounds.push(Paired { reward, weight: weight(0), other: weight(clone), apart: clone as f64 });
        }
        let target = self.value(|a| f64::from(u8::from(a == 0)));
        let clone = self.value(|a| [0.4, 0.6, 0.0, 0.0][a]);
        (rounds, [target, target - log_value / n as f64, target - clone])
    }
}

/// The most false bounds among so many that chance allows once in a thousand, if each is false with probability
/// `delta`.
fn most(delta: f64, n: u64) -> u64 {
    Binomial::new(delta, n).unwrap().inverse_cdf(0.999)
}

const STATEMENTS: [Statement; 3] = [Statement::Value, Statement::OverLog, Statement::OverOther];

#[test]
fn no_bound_is_false_more_often_than_it_says() {
    let worlds = [([0.9, 0.3, 0.5, 0.5], false), ([0.3, 0.35, 0.3, 0.2], false), ([0.6, 0.5, 0.4, 0.1], true)];
    for (world, (q, adaptive)) in worlds.into_iter().enumerate() {
        let world_seed = Seed::new(25).nth(world as u64);
        for method in BoundMethod::ALL.into_iter().filter(|&m| !(adaptive && m == BoundMethod::ClippedBernstein)) {
            for least_propensity in [None, Some(0.02)] {
                let config = BoundConfig {
                    method,
                    confidence: 0.9,
                    reward_range: Some([1.0, 3.0]),
                    least_propensity,
                    adaptive,
                    ..BoundConfig::default()
                };
                let mut bad = [0; 3];
                for log in 0..LOGS {
                    let (rounds, truth) = World { q, adaptive }.log(250, &mut world_seed.nth(log).stream("log"));
                    for (i, statement) in STATEMENTS.into_iter().enumerate() {
                        bad[i] += u64::from(bound(&config, statement, &rounds).unwrap().lower > truth[i]);
                    }
                }
                let most = most(0.1, LOGS);
                assert!(bad.iter().all(|&bad| bad <= most), "{method}, world {world}: {bad:?} of {LOGS}, most {most}");
            }
        }
    }
}

#[test]
fn all_three_claims_of_a_certificate_hold_together() {
    let mut bad = 0;
    for log in 0..LOGS {
        let world = World { q: [0.5, 0.45, 0.4, 0.3], adaptive: false };
        let (rounds, truth) = world.log(400, &mut Seed::new(26).nth(log).stream("log"));
        let config = BoundConfig { confidence: 0.9, reward_range: Some([1.0, 3.0]), ..BoundConfig::default() };
        let certificate = Certificate::new(&config, &rounds).unwrap();
        let claims = [certificate.value, certificate.over_log, certificate.over_clone];
        bad += u64::from(claims.iter().zip(truth).any(|(claim, truth)| claim.lower > truth));
    }
    assert!(bad <= most(0.1, LOGS), "{bad} of {LOGS}");
}

#[test]
fn a_sequence_that_is_looked_at_after_every_round_promotes_no_equal_policy_too_often() {
    // action 0 earns what action 1 earns: to be shown better is false, at any time
    let world = World { q: [0.5, 0.5, 0.5, 0.5], adaptive: true };
    let config = BoundConfig { confidence: 0.8, reward_range: Some([1.0, 3.0]), ..BoundConfig::default() };
    let (mut at_any_time, mut at_the_end) = (0, 0);
    for log in 0..LOGS {
        let (rounds, _) = world.log(1500, &mut Seed::new(27).nth(log).stream("log"));
        let mut sequence = BoundSequence::new(&config, Statement::OverOther).unwrap();
        let mut ever = false;
        for round in &rounds {
            sequence.add(round).unwrap();
            ever |= sequence.p_value() < 0.2;
        }
        at_any_time += u64::from(ever);
        at_the_end += u64::from(sequence.p_value() < 0.2);
    }
    assert!(at_any_time <= most(0.2, LOGS), "{at_any_time} of {LOGS}");
    // looking more often finds more: what a bound for one n would not have allowed for
    assert!(at_any_time > at_the_end, "{at_any_time}, {at_the_end}");
}

#[test]
fn a_policy_that_is_better_is_found_out() {
    let world = World { q: [0.9, 0.3, 0.5, 0.5], adaptive: false };
    let (rounds, truth) = world.log(20_000, &mut Seed::new(28).stream("log"));
    for method in BoundMethod::ALL {
        let config = BoundConfig { method, reward_range: Some([1.0, 3.0]), ..BoundConfig::default() };
        for (i, statement) in STATEMENTS.into_iter().enumerate() {
            let bound = bound(&config, statement, &rounds).unwrap();
            assert!(bound.lower > truth[i] - 0.6 && bound.lower < truth[i], "{method} {statement:?}: {bound:?}");
        }
    }
}
