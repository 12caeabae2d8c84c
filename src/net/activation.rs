//! The activations σ of the hidden layers: σ(y), and the slope σ′(y), which the way back multiplies by.
//!
//! To add one: a variant, a unit struct with its formula, a line in [`with_activation`].

use serde::{Deserialize, Serialize};

use crate::linalg::scalar::Scalar;

/// σ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(y, 0), the paper's.
    #[default]
    Relu,
}

/// Chooses the formula once, outside the loops.
macro_rules! with_activation {
    ($activation:expr, $formula:ident => $body:expr) => {
        match $activation {
            $crate::net::Activation::Relu => {
                type $formula = $crate::net::activation::Relu;
                $body
            }
        }
    };
}
pub(super) use with_activation;

/// σ(0) is 0, so that padding stays zero.
pub(super) trait Formula {
    /// σ(y) and σ′(y), without a branch.
    fn of<T: Scalar>(y: T) -> (T, T);
}

pub(super) struct Relu;

impl Formula for Relu {
    #[inline(always)]
    fn of<T: Scalar>(y: T) -> (T, T) {
        let above = y > T::ZERO;
        (if above { y } else { T::ZERO }, if above { T::ONE } else { T::ZERO })
    }
}
