//! Off-policy evaluation: what a policy would have earned, from a log that another policy made.
//!
//! Every round of the log becomes a [`Sample`]: the importance weight w = π(a|x)/μ(a|x), the reward r and, where a
//! reward model is at hand ([`Folds`]), its values q̂ of the logged action and v̂ of the target policy. An
//! [`Evaluation`] reads samples in blocks and writes a [`Report`]: the value by each [`Estimator`], with every
//! [`Interval`] that makes sense for it, compared with the policy that made the log, a verdict in words, and warnings
//! that name their cure.
//!
//! ```
//! use neuralcb::ope::{Answer, Estimator, Interval, OpeConfig, Sample, evaluate};
//!
//! // Two actions, logged with equal probability; action 1 earns 1 twice as often. The target always plays action 1.
//! let log = (0..6000u32).map(|t| {
//!     let action = t % 2;
//!     let reward = f64::from(u8::from(t / 2 % 3 < 1 + action));
//!     Sample::new(f64::from(action) / 0.5, reward)
//! });
//! let report = evaluate(&OpeConfig::default(), log)?;
//! let ips = report.estimate(Estimator::Ips).unwrap();
//! assert!((ips.bounded.value.unwrap() - 2.0 / 3.0).abs() < 1e-12);
//! let [low, high] = ips.bounded.intervals[&Interval::Normal];
//! assert!(low > 0.6 && high < 0.75);
//! assert_eq!(report.verdict().answer, Answer::Better); // than 1/2
//! # Ok::<(), neuralcb::Error>(())
//! ```
//!
//! Intervals of a report rest on many rounds, or on ranges that the log itself shows. Where a decision hangs on it,
//! [`bound`] bounds a value, or the difference of two policies on the same rounds, from below for every n; a
//! [`Certificate`] is three such bounds of one policy, and a [`BoundSequence`] may be looked at after every round.
//!
//! State is mergeable to the bit: sums are exact, the bootstrap and the confidence sequence are integer arithmetic. A
//! log in ten parts gives the numbers of the log in one.

mod bootstrap;
mod bounds;
mod config;
mod cross_fit;
mod doubts;
mod estimators;
mod evaluation;
mod histogram;
mod intervals;
mod likelihood;
mod moments;
mod quantiles;
mod report;
mod sample;
mod seen;
mod sequence;
mod shape;
mod sums;
mod tail;
mod tape;
mod weights;
mod wide;

pub use bounds::{
    Assumptions, Bound, BoundConfig, BoundMethod, BoundSequence, Certificate, Claim, Paired, Statement, bound,
};
pub use config::{Estimator, Interval, OpeConfig};
pub use cross_fit::{CrossFit, Folds, samples};
pub use evaluation::{Evaluation, evaluate};
pub use histogram::WeightBin;
pub use report::{Answer, Bounded, Code, Difference, Estimate, Report, Verdict, Warning};
pub use sample::Sample;
pub use shape::{WeightShape, WeightSums};
pub use tail::Tail;
pub(crate) use weights::normal_quantile;
pub use weights::{WeightedMean, importance_weights, ips, snips};
