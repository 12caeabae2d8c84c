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

/// −log q_chosen over the eligible outputs z of a round: the slopes are q, less 1 at the chosen one. z becomes them.
#[inline(always)]
pub(crate) fn likelihood<T: Scalar>(z: &mut [T], chosen: usize, weight: T) {
    soft_max(z);
    z[chosen] = z[chosen] - T::ONE;
    z.iter_mut().for_each(|z| *z = *z * weight);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slopes against central differences of the loss.
    #[test]
    fn the_slopes_of_the_likelihood_are_those_of_central_differences() {
        let (z, chosen, step) = ([0.3, -1.2, 2.0, 0.1], 1, 1e-6);
        let loss = |z: &[f64; 4]| {
            let mut q = *z;
            soft_max(&mut q);
            -1.5 * q[chosen].ln()
        };
        let mut slopes = z;
        likelihood(&mut slopes, chosen, 1.5);
        for i in 0..4 {
            let (mut up, mut down) = (z, z);
            up[i] += step;
            down[i] -= step;
            let want = (loss(&up) - loss(&down)) / (2.0 * step);
            assert!((slopes[i] - want).abs() < 1e-8, "{i}: {} {want}", slopes[i]);
        }
    }

    #[test]
    fn a_soft_max_of_large_numbers_stays_in_range() {
        let mut z = [1e4f32, 1e4, -1e4];
        soft_max(&mut z);
        assert_eq!(z[0], 0.5);
        assert!(z[2] >= 0.0 && z[2] < 1e-30);
    }
}
