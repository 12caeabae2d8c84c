//! Learn from a log of decisions (context, action, reward) a policy that does better and does not fool itself.
//!
//! All algorithms here are the same two things:
//!
//! * a **reward model** ([`model`]) that reads a log once, in order, and can tell for any context and action a **mean**
//!   and a **width** (its uncertainty), and
//! * a **pessimism** number β: the policy plays argmax_a mean(x, a) − β·width(x, a) ([`policy`]).
//!
//! β is no part of training: one pass over the log serves every β and the greedy twin (β = 0). With a neural reward
//! model this is NeuraLCB (Nguyen-Tang et al., ICLR 2022), with ridge, kernel and gradient-feature regression the
//! paper's baselines.
//!
//! ```
//! use neuralcb::model::{Learner, Neural, NeuralConfig};
//! use neuralcb::policy::{LearnedPolicy, Returned, learn};
//! use neuralcb::{Contexts, Eligible, Encoding, Layout, LoggedData, Seed};
//!
//! // One context of two features per round, three actions; round 0 played action 2 and earned 1.0, …
//! let layout = Layout { dim: 2, n_actions: 3, encoding: Encoding::Disjoint };
//! let contexts = Contexts::new(layout, vec![0.6, 0.8, 1.0, 0.0, 0.8, -0.6], Eligible::All)?;
//! let log = LoggedData::new(contexts, vec![2, 0, 2], vec![1.0, 0.2, 0.9], None)?;
//!
//! let mut model = Neural::<f32>::new(NeuralConfig::default(), layout, Seed::new(7))?;
//! let careful: LearnedPolicy = learn(&mut model, &log, 1.0, Returned::Latest, Seed::new(7))?;
//! let greedy = careful.with_beta(0.0)?; // the same model: no training
//! assert_eq!(careful.choose(log.contexts())?.len(), 3);
//! # let _ = greedy;
//! # Ok::<(), neuralcb::Error>(())
//! ```
//!
//! Everything is deterministic: one [`Seed`], named streams, the same bits with any number of threads. The library
//! computes; it opens no files and prints nothing.

#![forbid(unsafe_code)]

pub mod archive;
pub mod bandit;
mod data;
mod error;
mod linalg;
pub mod model;
pub mod net;
pub mod ope;
pub mod policy;
mod seed;
pub mod select;
pub mod theory;
mod watch;

pub use data::{Contexts, Eligible, Encoding, Layout, LoggedData, Pair, Round};
pub use data::{Standardiser, unit_norm};
pub use error::{Column, Error};
pub use linalg::machine;
pub use model::{Estimates, Learner, ModelConfig, RewardModel};
pub use seed::{Seed, Stream};
pub use watch::Watch;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
