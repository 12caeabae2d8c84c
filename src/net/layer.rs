//! What a hidden layer does between two products, forth and back, said once for every pass.
//!
//! ```text
//! z  = W h_{l−1}                        δh = ∂f/∂h, from the layer behind
//! z̃  = z + b                            δy = δh·σ′(y), the gradient of the offset
//! x̂  = (z̃ − mean) / √(var + 1e-5)       δy·x̂, the gradient of the gain
//! y  = gain·x̂ + offset                  δz = (g − mean(g) − x̂·mean(g·x̂)) / √(var + 1e-5),  g = gain·δy
//! h  = σ(y)                             δz is the gradient of b, and δz h_{l−1}ᵀ that of W
//! ```
//!
//! Mean and var are over the m units of a row. Without layer norm y = z̃ and δz = δy.
//!
//! Numbers lie in arrays in one of two ways ([`Lay`]): an array holds one unit of sixteen rows, or eight units of one
//! row.

use super::activation::{Activation, Formula, with_activation};
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{LANES, ROWS, add, lanes, madd, mul, one_by_one, splat, sub, total};

const EPS: f64 = 1e-5;

/// How units and rows lie in arrays of N numbers.
pub(super) trait Lay<T: Scalar, const N: usize>: Copy {
    /// The sum over all units, given the sum over all arrays.
    fn total(self, sum: [T; N]) -> [T; N];
    /// The parameters of array `i`.
    fn parameters(self, p: &[T], i: usize) -> [T; N];
    /// Array `i` with zeros where there is no unit.
    fn real(self, i: usize, v: [T; N]) -> [T; N];
}

/// An array holds one unit of sixteen rows.
#[derive(Clone, Copy)]
pub(super) struct RowsInLanes;

impl<T: Scalar> Lay<T, ROWS> for RowsInLanes {
    #[inline(always)]
    fn total(self, sum: [T; ROWS]) -> [T; ROWS] {
        sum
    }
    #[inline(always)]
    fn parameters(self, p: &[T], i: usize) -> [T; ROWS] {
        splat(p[i])
    }
    #[inline(always)]
    fn real(self, _: usize, v: [T; ROWS]) -> [T; ROWS] {
        v
    }
}

/// An array holds eight units of one row, of which there are so many.
#[derive(Clone, Copy)]
pub(super) struct UnitsInLanes(pub(super) usize);

impl<T: Scalar> Lay<T, LANES> for UnitsInLanes {
    #[inline(always)]
    fn total(self, sum: [T; LANES]) -> [T; LANES] {
        splat(total(sum))
    }
    #[inline(always)]
    fn parameters(self, p: &[T], i: usize) -> [T; LANES] {
        lanes(p)[i]
    }
    #[inline(always)]
    fn real(self, i: usize, mut v: [T; LANES]) -> [T; LANES] {
        for l in 0..LANES {
            v[l] = if i * LANES + l < self.0 { v[l] } else { T::ZERO };
        }
        v
    }
}

/// A layer's parameters but for its weights.
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a, T> {
    pub(super) activation: Activation,
    pub(super) bias: Option<&'a [T]>,
    /// Gain and offset of the layer norm.
    pub(super) norm: Option<[&'a [T]; 2]>,
    /// 1/m.
    pub(super) inv_width: T,
}

/// What the way forth keeps for the way back.
pub(super) struct Kept<'a, T, const N: usize> {
    /// x̂; empty without layer norm.
    pub(super) normal: &'a mut [[T; N]],
    /// 1/√(var + ε).
    pub(super) inv_std: &'a mut [T; N],
    /// σ′(y).
    pub(super) slope: &'a mut [[T; N]],
}

/// z becomes h.
#[inline(always)]
pub(super) fn forth<T: Scalar, L: Lay<T, N>, const N: usize>(
    lay: L,
    p: Parameters<'_, T>,
    z: &mut [[T; N]],
    kept: Kept<'_, T, N>,
) {
    if let Some(bias) = p.bias {
        one_by_one!((i, z) in z.iter_mut().enumerate() => *z = add(*z, lay.parameters(bias, i)));
    }
    with_activation!(p.activation, A => match p.norm {
        Some([gain, offset]) => {
            *kept.inv_std = normalise(lay, p.inv_width, z, kept.normal);
            let kept = kept.normal.iter().zip(kept.slope);
            one_by_one!((i, (h, (normal, slope))) in z.iter_mut().zip(kept).enumerate() => {
                let y = madd(lay.parameters(gain, i), *normal, lay.parameters(offset, i));
                (*h, *slope) = activate::<A, T, N>(y);
            });
        }
        None => {
            one_by_one!((h, slope) in z.iter_mut().zip(kept.slope) => (*h, *slope) = activate::<A, T, N>(*h));
        }
    });
}

/// σ and its slope.
#[inline(always)]
fn activate<A: Formula, T: Scalar, const N: usize>(y: [T; N]) -> ([T; N], [T; N]) {
    let (mut h, mut slope) = (y, y);
    for l in 0..N {
        (h[l], slope[l]) = A::of(y[l]);
    }
    (h, slope)
}

/// x̂ of z; returns 1/√(var + ε).
#[inline(always)]
fn normalise<T: Scalar, L: Lay<T, N>, const N: usize>(
    lay: L,
    inv_width: T,
    z: &[[T; N]],
    normal: &mut [[T; N]],
) -> [T; N] {
    let mut sum = [T::ZERO; N]; // the padding of z is zero
    for z in z {
        sum = add(sum, *z);
    }
    let mean = mul(lay.total(sum), splat(inv_width));
    let mut squares = [T::ZERO; N];
    for (i, (normal, z)) in normal.iter_mut().zip(z).enumerate() {
        *normal = lay.real(i, sub(*z, mean));
        squares = madd(*normal, *normal, squares);
    }
    let mut inv_std = madd(lay.total(squares), splat(inv_width), splat(T::of(EPS)));
    for l in 0..N {
        inv_std[l] = T::ONE / inv_std[l].root();
    }
    one_by_one!(normal in normal => *normal = mul(*normal, inv_std));
    inv_std
}

/// δh becomes δy, and δz is written where there is layer norm (without, it is the same).
#[inline(always)]
pub(super) fn back<T: Scalar, L: Lay<T, N>, const N: usize>(
    lay: L,
    p: Parameters<'_, T>,
    kept: Kept<'_, T, N>,
    delta: &mut [[T; N]],
    delta_z: &mut [[T; N]],
) {
    let Some([gain, _]) = p.norm else {
        one_by_one!((delta, slope) in delta.iter_mut().zip(kept.slope) => *delta = mul(*delta, *slope));
        return;
    };
    let (mut sum, mut sum_both) = ([T::ZERO; N], [T::ZERO; N]);
    let layer = delta_z.iter_mut().zip(kept.slope).zip(kept.normal.iter());
    for (i, (delta, ((g, slope), normal))) in delta.iter_mut().zip(layer).enumerate() {
        *delta = mul(*delta, *slope);
        *g = mul(lay.parameters(gain, i), *delta);
        sum = add(sum, *g);
        sum_both = madd(*g, *normal, sum_both);
    }
    let minus = splat(-p.inv_width);
    let (mean, mean_both) = (mul(lay.total(sum), minus), mul(lay.total(sum_both), minus));
    one_by_one!((i, (g, normal)) in delta_z.iter_mut().zip(kept.normal.iter()).enumerate() => {
        let centred = madd(*normal, mean_both, add(*g, mean));
        *g = lay.real(i, mul(*kept.inv_std, centred));
    });
}
