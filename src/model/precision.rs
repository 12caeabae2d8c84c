//! Single or double precision, where most of the work of a width is one product with many rows.

use serde::{Deserialize, Serialize};

/// Precision of the product ‖L⁻¹c‖² that a width of LinLCB or KernLCB is made of, nearly all of the work. Everything
/// that is summed over a log, L itself and every mean are f64 in any case. With u = 2⁻²⁴:
///
/// **KernLCB**, width² = 1 − ‖L⁻¹c‖². Rounding c to f32 moves the width² by at most 2·‖A⁻¹c‖·u‖c‖ ≤ u·√(n/λ), where
/// A = K + λI: the kernel matrix of the samples and the context together is positive semi-definite, so c cᵀ ≤ K, hence
/// ‖A⁻¹c‖ ≤ 1/(2√λ), and ‖c‖ ≤ √n. Rounding L⁻¹ and the sums adds as much again; measured, all of it together stays
/// below u·√(n/λ)/2. `Auto` keeps u·√(n/λ) below 1e-5: single for the paper's λ = 0.1 and 1,000 samples, double for
/// λ = 1e-6.
///
/// **LinLCB**, width = ‖L⁻¹x‖, where x is f32 as it came. Rounding L⁻¹ and its sums of d terms moves the width by at
/// most (d + 2)·u·‖L⁻¹‖_F·‖x‖, and ‖x‖ ≤ ‖L‖_F·‖L⁻¹x‖: in proportion to itself by (d + 2)·u·‖L‖_F·‖L⁻¹‖_F. The sum of d
/// squares and its root add (d/2 + 1)·u, at most 2u times that product of norms, as this is at least d. `Auto` keeps
/// (d + 4)·u·‖L‖_F·‖L⁻¹‖_F below 1e-4: single for twenty numbers that the log knows about equally well, double for
/// hundreds, or where it says nothing about some of them. Measured on random contexts of 1 to 47 numbers the error is
/// 4e-8 to 1.2e-7, whatever the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Single where the error is known to be small, double otherwise.
    #[default]
    Auto,
    /// f32, twice as fast.
    Single,
    /// f64.
    Double,
}

impl Precision {
    /// Whether to use f32, given whether that is safe.
    pub(super) fn is_single(self, safe: bool) -> bool {
        match self {
            Precision::Auto => safe,
            Precision::Single => true,
            Precision::Double => false,
        }
    }
}
