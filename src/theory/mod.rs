//! The paper's theory, computable: Section 4 and the appendices, with the paper's letters.
//!
//! * [`Points`], [`Ntk`]: the neural tangent kernel matrix H of Definition 4.1, its smallest eigenvalue λ_0,
//!   S = ‖h‖_{H⁻¹} and the effective dimension d̃, exact or by stochastic Lanczos quadrature with its error;
//! * [`Coverage`]: κ of Assumption 4.2, from known probabilities or from a log;
//! * [`Theorem`]: the bound of Theorem 4.1 with β_t, η_t, Γ_1 … Γ_5 and every constant by name;
//! * [`Rule`]: β_t and η_t as a setting, `theory` or a number;
//! * [`Recorder`]: both sides of the lemmas along a run of Algorithm 1.
//!
//! ```
//! use neuralcb::theory::{Ntk, NtkConfig, Points};
//! use neuralcb::{Contexts, Eligible, Encoding, Layout};
//!
//! let layout = Layout { dim: 2, n_actions: 2, encoding: Encoding::PerAction };
//! let contexts = Contexts::new(layout, vec![0.6, 0.8, 1.0, 0.0, 0.0, 1.0, -0.8, 0.6], Eligible::All)?;
//! let h = Ntk::new(&Points::all(&contexts)?, &NtkConfig::default())?;
//! assert!((h.get(1, 1) - 1.5).abs() < 1e-12); // L = 2 and a unit vector
//! assert!(h.lambda_0()? > 0.0 && h.effective_dimension(1.0)? < 4.0);
//! # Ok::<(), neuralcb::Error>(())
//! ```

mod bound;
mod coverage;
mod lanczos;
mod ntk;
mod points;
mod recorder;
mod rule;

pub use bound::{Constants, Gammas, Theorem};
pub use coverage::{Coverage, LogCoverage};
pub use lanczos::{LanczosConfig, LogDet};
pub use ntk::{Limit, Ntk, NtkConfig};
pub use points::Points;
pub use recorder::{Recorder, Sides, online_to_batch};
pub use rule::Rule;
