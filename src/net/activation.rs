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
    /// y / (1 + e⁻ʸ), smooth everywhere (Elfwing et al., 2018; also called swish).
    Silu,
}

/// Chooses the formula once, outside the loops.
macro_rules! with_activation {
    ($activation:expr, $formula:ident => $body:expr) => {
        match $activation {
            $crate::net::Activation::Relu => {
                type $formula = $crate::net::activation::Relu;
                $body
            }
            $crate::net::Activation::Silu => {
                type $formula = $crate::net::activation::Silu;
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

pub(super) struct Silu;

impl Formula for Silu {
    #[inline(always)]
    fn of<T: Scalar>(y: T) -> (T, T) {
        let s = T::ONE / (T::ONE + (-y).exp());
        (y * s, s * (T::ONE + y * (T::ONE - s)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// σ and σ′ against the formula of the standard library and its central differences.
    fn check<F: Formula>(want: impl Fn(f64) -> f64) {
        assert_eq!(F::of(0.0f32).0, 0.0, "padding must stay zero");
        for i in -60..=60 {
            let y = f64::from(i) * 0.37 + 0.01;
            let ((got, slope), step) = (F::of(y), 1e-6);
            let difference = (want(y + step) - want(y - step)) / (2.0 * step);
            assert!((got - want(y)).abs() <= 1e-14 * y.abs(), "σ({y}) = {}, got {got}", want(y));
            assert!((slope - difference).abs() < 1e-8, "σ′({y}) = {difference}, got {slope}");
            let (short, short_slope) = F::of(y as f32);
            let off = [(f64::from(short) - got).abs(), (f64::from(short_slope) - slope).abs()];
            assert!(off.iter().all(|off| *off < 1e-6 * (1.0 + y.abs())), "{y} in f32: {off:?}");
        }
    }

    #[test]
    fn every_activation_and_its_slope_are_those_of_its_formula() {
        check::<Relu>(|y| y.max(0.0));
        check::<Silu>(|y| y / (1.0 + (-y).exp()));
    }
}
