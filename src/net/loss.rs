//! Losses, given by their slopes at the outputs. A network is trained with any loss that can say these.
//!
//! Every row or round has a weight; weights of a batch that sum to 1 make a mean.

use crate::linalg::scalar::Scalar;

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
    let largest = z.iter().copied().fold(z[0], |a, b| if b > a { b } else { a });
    let mut sum = T::ZERO;
    for z in z.iter_mut() {
        *z = (*z - largest).exp();
        sum += *z;
    }
    let inverse = T::ONE / sum;
    z.iter_mut().for_each(|z| *z = *z * inverse);
}
