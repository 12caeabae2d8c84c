//! Losses, given by their slopes at the outputs. A network is trained with any loss that can say these.
//!
//! Every row or round has a weight; weights of a batch that sum to 1 make a mean.

use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{Job, largest, sum};

/// ½(f − y)²: the slope is f − y.
#[inline(always)]
pub(crate) fn squared<T: Scalar>(f: &[T], y: &[T], weights: &[T], slopes: &mut [T]) {
    for (((slope, f), y), weight) in slopes.iter_mut().zip(f).zip(y).zip(weights) {
        *slope = (*f - *y) * *weight;
    }
}

/// z becomes its soft-max q_a = exp z_a / Σ_k exp z_k.
#[inline(always)]
pub(crate) fn soft_max<T: Scalar>(z: &mut [T]) {
    let top = largest(z, z[0]);
    exp_shares(z, top, T::ZERO);
}

/// As [`soft_max`] beside an option that has z = 0: q_a = exp z_a / (1 + Σ_k exp z_k).
#[inline(always)]
pub(crate) fn soft_max_beside_zero<T: Scalar>(z: &mut [T]) {
    let top = largest(z, T::ZERO);
    exp_shares(z, top, (-top).exp());
}

/// exp(z_a − top) / (more + Σ_k exp(z_k − top)). The sum comes after the powers, so that these are made in whole
/// vectors.
#[inline(always)]
fn exp_shares<T: Scalar>(z: &mut [T], top: T, more: T) {
    z.iter_mut().for_each(|z| *z = (*z - top).exp());
    let inverse = T::ONE / (more + sum(z));
    z.iter_mut().for_each(|z| *z = *z * inverse);
}

/// [`soft_max`] of stretches of z, of these sizes.
pub(crate) struct SoftMax<'a, T, I> {
    pub(crate) z: &'a mut [T],
    pub(crate) sizes: I,
}

impl<T: Scalar, I: Iterator<Item = usize>> Job for SoftMax<'_, T, I> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let mut from = 0;
        for n in self.sizes {
            soft_max(&mut self.z[from..from + n]);
            from += n;
        }
    }
}
