//! Columns and rows brought to one scale before a model sees them.
//!
//! * [`Standardiser`]: x_j ← (x_j − μ_j) / s_j with the mean μ_j and population standard deviation s_j of column j. It
//!   is fitted once, on the data a policy learns from, and kept, so that later contexts pass through the same numbers.
//! * [`unit_norm`]: x ← x / ‖x‖, the scale of the paper's analysis (‖x‖ = 1).
//!
//! Contexts are row-major `f32`; sums are kept in `f64`, over fixed blocks of rows in a fixed order, so that the bits
//! do not depend on the number of threads. Cost O(n·d).

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Column, Error, at_least, not_negative};

/// Rows whose sums are taken together; fixed, because it decides the order of summation.
const BLOCK: usize = 1024;

/// Mean and standard deviation of every column.
///
/// A column that is constant in the data it was fitted on says nothing there: its scale is 0, and it becomes 0 wherever
/// the standardiser is applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Standardiser {
    mean: Vec<f64>,
    scale: Vec<f64>,
}

/// A standardiser as it stands in a file, not yet checked.
#[derive(Deserialize)]
struct Stored {
    mean: Vec<f64>,
    scale: Vec<f64>,
}

impl TryFrom<Stored> for Standardiser {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self, Error> {
        Standardiser::new(stored.mean, stored.scale)
    }
}

impl Standardiser {
    /// A standardiser with known numbers: one finite mean and one finite scale ≥ 0 per column.
    pub fn new(mean: Vec<f64>, scale: Vec<f64>) -> Result<Self, Error> {
        at_least("dim", 1, "at least 1", mean.len())?;
        if scale.len() != mean.len() {
            return Err(Error::Shape { what: "scales of the columns", expected: mean.len(), got: scale.len() });
        }
        if let Some(&got) = mean.iter().find(|m| !m.is_finite()) {
            return Err(Error::Param { name: "mean", range: "a finite number", got });
        }
        scale.iter().try_for_each(|&s| not_negative("scale", s))?;
        Ok(Standardiser { mean, scale })
    }

    /// The mean and population standard deviation of the columns of `x`, whose rows have `dim` numbers each.
    pub fn fit(x: &[f32], dim: usize) -> Result<Self, Error> {
        let n = rows(x, dim)?;
        at_least("rows to fit a standardiser on", 1, "at least 1", n)?;
        let sums = column_sums(x, dim, |_, v| v);
        if sums.iter().any(|s| !s.is_finite()) {
            return Err(first_bad_value(x, dim));
        }
        let mean: Vec<f64> = sums.iter().map(|s| s / n as f64).collect();
        let squares = column_sums(x, dim, |j, v| (v - mean[j]).powi(2));
        let mut scale: Vec<f64> = squares.iter().map(|s| (s / n as f64).sqrt()).collect();
        // A rounded mean leaves a constant column a deviation of its own, so equality is asked for, not a small number.
        let constant = constant_columns(x, dim);
        scale.iter_mut().zip(constant).filter(|(_, constant)| *constant).for_each(|(s, _)| *s = 0.0);
        Ok(Standardiser { mean, scale })
    }

    /// Standardises rows of the same columns in place.
    pub fn apply(&self, x: &mut [f32]) -> Result<(), Error> {
        let dim = self.mean.len();
        rows(x, dim)?;
        x.par_chunks_mut(BLOCK * dim).flat_map_iter(|block| block.chunks_exact_mut(dim)).for_each(|row| {
            for ((v, mean), scale) in row.iter_mut().zip(&self.mean).zip(&self.scale) {
                *v = if *scale == 0.0 { 0.0 } else { ((f64::from(*v) - mean) / scale) as f32 };
            }
        });
        Ok(())
    }

    /// Mean of every column.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Standard deviation of every column; 0 where the column is constant.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }
}

/// Scales every row of `dim` numbers to Euclidean length 1; a row of zeros stays.
pub fn unit_norm(x: &mut [f32], dim: usize) -> Result<(), Error> {
    rows(x, dim)?;
    x.par_chunks_mut(BLOCK * dim).flat_map_iter(|block| block.chunks_exact_mut(dim)).for_each(|row| {
        let norm = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        if norm > 0.0 {
            row.iter_mut().for_each(|v| *v = (f64::from(*v) / norm) as f32);
        }
    });
    Ok(())
}

/// Number of rows, if `x` has whole ones.
fn rows(x: &[f32], dim: usize) -> Result<usize, Error> {
    at_least("dim", 1, "at least 1", dim)?;
    let n = x.len() / dim;
    match x.len() == n * dim {
        true => Ok(n),
        false => Err(Error::Shape { what: "numbers in whole rows", expected: n * dim, got: x.len() }),
    }
}

/// Σ over rows of f(column, value), for every column.
fn column_sums(x: &[f32], dim: usize, f: impl Fn(usize, f64) -> f64 + Sync) -> Vec<f64> {
    let block_sums = |block: &[f32]| {
        let mut sums = vec![0.0; dim];
        for row in block.chunks_exact(dim) {
            for (j, (sum, v)) in sums.iter_mut().zip(row).enumerate() {
                *sum += f(j, f64::from(*v));
            }
        }
        sums
    };
    let blocks: Vec<Vec<f64>> = x.par_chunks(BLOCK * dim).map(block_sums).collect();
    blocks.iter().fold(vec![0.0; dim], |mut total, block| {
        total.iter_mut().zip(block).for_each(|(t, s)| *t += s);
        total
    })
}

/// Which columns hold one value only.
fn constant_columns(x: &[f32], dim: usize) -> Vec<bool> {
    let first = &x[..dim];
    let block_constant = |block: &[f32]| {
        let mut constant = vec![true; dim];
        for row in block.chunks_exact(dim) {
            constant.iter_mut().zip(row).zip(first).for_each(|((c, v), f)| *c &= v == f);
        }
        constant
    };
    x.par_chunks(BLOCK * dim).map(block_constant).reduce(
        || vec![true; dim],
        |mut a, b| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a &= b);
            a
        },
    )
}

/// The first value that is no finite number, as an error.
fn first_bad_value(x: &[f32], dim: usize) -> Error {
    let place = x.iter().position(|v| !v.is_finite()).unwrap_or_default();
    let column = Column::Feature { action: None, index: place % dim };
    Error::Value { round: place / dim, column, range: "a finite number", got: f64::from(x[place]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::RngExt;

    /// Rows enough for several blocks, with offsets that would hurt a one-pass variance.
    fn sample(n: usize, dim: usize) -> Vec<f32> {
        let mut rng = Seed::new(3).stream("sample");
        (0..n * dim).map(|i| (i % dim) as f32 * 1e4 + rng.random::<f32>()).collect()
    }

    #[test]
    fn standardised_columns_have_mean_zero_and_variance_one() {
        let (n, dim) = (3000, 4);
        let mut x = sample(n, dim);
        Standardiser::fit(&x, dim).unwrap().apply(&mut x).unwrap();
        for j in 0..dim {
            let column: Vec<f64> = x.iter().skip(j).step_by(dim).map(|v| f64::from(*v)).collect();
            let mean = column.iter().sum::<f64>() / n as f64;
            let variance = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
            // Each value is off by at most half an f32 step of a number below 4.
            assert!(mean.abs() < 4.0 * f64::from(f32::EPSILON), "column {j}: mean {mean}");
            assert!((variance - 1.0).abs() < 16.0 * f64::from(f32::EPSILON), "column {j}: variance {variance}");
        }
    }

    #[test]
    fn the_fit_is_the_naive_two_pass_fit() {
        let (n, dim) = (2500, 3);
        let x = sample(n, dim);
        let fit = Standardiser::fit(&x, dim).unwrap();
        for j in 0..dim {
            let column: Vec<f64> = x.iter().skip(j).step_by(dim).map(|v| f64::from(*v)).collect();
            let mean = column.iter().sum::<f64>() / n as f64;
            let std = (column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
            assert!((fit.mean()[j] - mean).abs() <= n as f64 * f64::EPSILON * mean.abs().max(1.0));
            assert!((fit.scale()[j] - std).abs() <= n as f64 * f64::EPSILON);
        }
    }

    #[test]
    fn a_constant_column_becomes_zero_also_in_later_rows() {
        // 0.1 is no f64 sum of its copies: its mean is rounded, its deviation must still be exactly zero.
        let mut x: Vec<f32> = (0..1500).flat_map(|i| [0.1, i as f32]).collect();
        let fit = Standardiser::fit(&x, 2).unwrap();
        assert_eq!(fit.scale()[0], 0.0);
        fit.apply(&mut x).unwrap();
        assert!(x.iter().step_by(2).all(|v| *v == 0.0));
        let mut later = [7.0, fit.mean()[1] as f32];
        fit.apply(&mut later).unwrap();
        assert_eq!(later, [0.0, 0.0]);
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let x = sample(5000, 7);
        let fit = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Standardiser::fit(&x, 7).unwrap())
        };
        assert_eq!(fit(1), fit(3));
    }

    #[test]
    fn rows_get_length_one_and_zeros_stay() {
        let mut x = vec![3.0, 4.0, 0.0, 0.0, -1e30, 1e30];
        unit_norm(&mut x, 2).unwrap();
        let half = 0.5f64.sqrt() as f32;
        assert_eq!(x, [0.6, 0.8, 0.0, 0.0, -half, half]);
    }

    #[test]
    fn a_standardiser_survives_its_file_and_a_broken_one_is_refused() {
        let fit = Standardiser::fit(&[1.0, 5.0, 3.0, 5.0], 2).unwrap();
        assert_eq!(fit, Standardiser::new(vec![2.0, 5.0], vec![1.0, 0.0]).unwrap());
        let text = serde_json::to_string(&fit).unwrap();
        assert_eq!(serde_json::from_str::<Standardiser>(&text).unwrap(), fit);
        for broken in [r#"{"mean":[1,2],"scale":[1]}"#, r#"{"mean":[1],"scale":[-1]}"#, r#"{"mean":[],"scale":[]}"#] {
            assert!(serde_json::from_str::<Standardiser>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn wrong_shapes_and_values_are_refused_by_place() {
        assert!(matches!(Standardiser::fit(&[1.0; 5], 2), Err(Error::Shape { expected: 4, got: 5, .. })));
        assert!(matches!(Standardiser::fit(&[], 2), Err(Error::Param { .. })));
        assert!(matches!(unit_norm(&mut [1.0], 0), Err(Error::Param { name: "dim", .. })));
        let error = Standardiser::fit(&[1.0, 2.0, 3.0, f32::NAN], 2).unwrap_err();
        assert_eq!(error.to_string(), "round 1, feature 1: must be a finite number, got NaN");
    }
}
