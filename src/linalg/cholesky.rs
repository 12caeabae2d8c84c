//! A = L·Lᵀ for positive definite A in f64: factor, update by rank one, extend by rows, solve, whiten.
//!
//! Factor O(n³/3), update O(n²), extend by b rows O(b·n²), solve O(n²) per right-hand side. Everything runs on the
//! calling thread: parallelism is over runs and over blocks of rows.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::{triangular_inverse, triangular_solve};
use faer::reborrow::ReborrowMut;
use faer::{Accum, ColMut, Mat, MatMut, MatRef, Par};

use super::scalar::Scalar;
use super::whiten::Whitener;
use crate::error::Error;

/// The lower factor L of a positive definite matrix.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    l: Mat<f64>,
}

impl Cholesky {
    /// The factor of c·I.
    pub(crate) fn of_identity(n: usize, c: f64) -> Self {
        Cholesky { l: Mat::from_fn(n, n, |i, j| if i == j { c.sqrt() } else { 0.0 }) }
    }

    /// Factors the matrix of which `a` holds at least the lower triangle (row-major, n × n).
    pub(crate) fn factor(a: &[f64], n: usize) -> Result<Self, Error> {
        let mut l = MatRef::from_row_major_slice(a, n, n).to_owned();
        factor_in_place(l.as_mut(), 0)?;
        Ok(Cholesky { l })
    }

    /// The order n of the matrix.
    pub(crate) fn dim(&self) -> usize {
        self.l.nrows()
    }

    /// A ← A + x·xᵀ. `x` is used as scratch.
    /// For what must know A⁻¹ after every row; who asks now and then is better served by [`add_gram`] and a new factor.
    ///
    /// Column by column: with r = √(l_kk² + x_k²), c = r / l_kk, s = x_k / l_kk,
    /// l_ik ← (l_ik + s·x_i) / c and x_i ← c·x_i − s·l_ik.
    pub(crate) fn update(&mut self, x: &mut [f64]) {
        for k in 0..self.dim() {
            if x[k] == 0.0 {
                continue;
            }
            let column: ColMut<'_, f64> = self.l.as_mut().col_mut(k);
            let column = column.try_as_col_major_mut().expect("columns are contiguous").as_slice_mut();
            let r = column[k].hypot(x[k]);
            let (c, s) = (r / column[k], x[k] / column[k]);
            let inv_c = 1.0 / c;
            column[k] = r;
            for (l, x) in column[k + 1..].iter_mut().zip(&mut x[k + 1..]) {
                *l = (*l + s * *x) * inv_c;
                *x = c * *x - s * *l;
            }
        }
    }

    /// Grows A to [A Bᵀ; B C]: `b` holds B (rows × n) and `c` the lower triangle of C (rows × rows), both row-major.
    pub(crate) fn extend(&mut self, b: &[f64], c: &[f64], rows: usize) -> Result<(), Error> {
        let n = self.dim();
        let mut l = Mat::<f64>::zeros(n + rows, n + rows);
        l.as_mut().submatrix_mut(0, 0, n, n).copy_from(&self.l);
        if n > 0 {
            // L21 = B·L⁻ᵀ, that is L·L21ᵀ = Bᵀ
            let mut l21t = MatRef::from_row_major_slice(b, rows, n).transpose().to_owned();
            triangular_solve::solve_lower_triangular_in_place(self.l.as_ref(), l21t.as_mut(), Par::Seq);
            l.as_mut().submatrix_mut(n, 0, rows, n).copy_from(l21t.transpose());
        }
        let mut l22 = MatRef::from_row_major_slice(c, rows, rows).to_owned();
        let l21 = l.as_ref().submatrix(n, 0, rows, n).to_owned();
        matmul(l22.as_mut(), Accum::Add, l21.as_ref(), l21.transpose(), -1.0, Par::Seq);
        factor_in_place(l22.as_mut(), n)?;
        l.as_mut().submatrix_mut(n, n, rows, rows).copy_from(&l22);
        self.l = l;
        Ok(())
    }

    /// b ← L⁻¹·b.
    pub(crate) fn solve_lower(&self, b: &mut [f64]) {
        let rhs = MatMut::from_column_major_slice_mut(b, self.dim(), 1);
        triangular_solve::solve_lower_triangular_in_place(self.l.as_ref(), rhs, Par::Seq);
    }

    /// b ← L⁻ᵀ·b.
    pub(crate) fn solve_upper(&self, b: &mut [f64]) {
        let rhs = MatMut::from_column_major_slice_mut(b, self.dim(), 1);
        triangular_solve::solve_upper_triangular_in_place(self.l.transpose(), rhs, Par::Seq);
    }

    /// b ← A⁻¹·b.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        self.solve_lower(b);
        self.solve_upper(b);
    }

    /// log det A = 2 Σ log l_kk.
    pub(crate) fn log_det(&self) -> f64 {
        (0..self.dim()).map(|k| 2.0 * self.l[(k, k)].ln()).sum()
    }

    /// L⁻¹.
    pub(crate) fn inverse(&self) -> Inverse {
        let mut inverse = Mat::zeros(self.dim(), self.dim());
        triangular_inverse::invert_lower_triangular(inverse.as_mut(), self.l.as_ref(), Par::Seq);
        Inverse { condition: self.l.norm_l2() * inverse.norm_l2(), inverse }
    }
}

/// L⁻¹ of a factor.
pub(crate) struct Inverse {
    inverse: Mat<f64>,
    /// ‖L‖_F·‖L⁻¹‖_F.
    pub(crate) condition: f64,
}

impl Inverse {
    /// Packed to whiten many rows at once, in f64 or rounded to f32.
    pub(crate) fn whitener<T: Scalar>(&self) -> Whitener<T> {
        Whitener::new(self.inverse.nrows(), |i, j| self.inverse[(i, j)])
    }
}

/// Factors the lower triangle in place and clears the upper one.
pub(crate) fn factor_in_place(mut a: MatMut<'_, f64>, first_pivot: usize) -> Result<(), Error> {
    let n = a.nrows();
    let mut buffer = MemBuffer::new(cholesky_in_place_scratch::<f64>(n, Par::Seq, Default::default()));
    cholesky_in_place(a.rb_mut(), Default::default(), Par::Seq, MemStack::new(&mut buffer), Default::default())
        .map_err(|LltError::NonPositivePivot { index }| Error::NotPositiveDefinite { pivot: first_pivot + index })?;
    for j in 0..n {
        for i in 0..j {
            a[(i, j)] = 0.0;
        }
    }
    Ok(())
}

/// out (rows × cols) = a (rows × k) · bᵀ (k × cols), all row-major.
pub(crate) fn gram(a: &[f64], b: &[f64], k: usize, out: &mut [f64]) {
    let (rows, cols) = (a.len() / k, b.len() / k);
    matmul(
        MatMut::from_row_major_slice_mut(out, rows, cols),
        Accum::Replace,
        MatRef::from_row_major_slice(a, rows, k),
        MatRef::from_row_major_slice(b, cols, k).transpose(),
        1.0,
        Par::Seq,
    );
}

/// a += gᵀ·g for the rows of g (rows × n), in the lower triangle of a (n × n); both row-major.
pub(crate) fn add_gram(g: &[f64], n: usize, a: &mut [f64]) {
    let g = MatRef::from_row_major_slice(g, g.len() / n, n);
    triangular::matmul(
        MatMut::from_row_major_slice_mut(a, n, n),
        BlockStructure::TriangularLower,
        Accum::Add,
        g.transpose(),
        BlockStructure::Rectangular,
        g,
        BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand_distr::{Distribution, StandardNormal};

    fn normals(n: usize, name: &str) -> Vec<f64> {
        let mut rng = Seed::new(5).stream(name);
        (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
    }

    /// A = I + Σ x xᵀ over the rows of x, naively.
    fn naive(x: &[f64], n: usize) -> Vec<f64> {
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            a[i * n + i] = 1.0;
        }
        for row in x.chunks(n) {
            for i in 0..n {
                for j in 0..n {
                    a[i * n + j] += row[i] * row[j];
                }
            }
        }
        a
    }

    /// max |A·A⁻¹ − I|, column by column.
    fn residual(factor: &Cholesky, a: &[f64], n: usize) -> f64 {
        let mut worst = 0.0f64;
        for j in 0..n {
            let mut e = vec![0.0; n];
            e[j] = 1.0;
            factor.solve(&mut e);
            for i in 0..n {
                let v: f64 = (0..n).map(|k| a[i * n + k] * e[k]).sum();
                worst = worst.max((v - f64::from(u8::from(i == j))).abs());
            }
        }
        worst
    }

    #[test]
    fn fifty_updates_equal_a_fresh_factor() {
        let n = 13;
        let x = normals(50 * n, "updates");
        let mut updated = Cholesky::of_identity(n, 1.0);
        for row in x.chunks(n) {
            updated.update(&mut row.to_vec());
        }
        let a = naive(&x, n);
        let fresh = Cholesky::factor(&a, n).unwrap();
        // cond(A) is about 200 here; the residual of a backward stable solve is cond · eps · n
        assert!(residual(&updated, &a, n) < 1e-11, "{}", residual(&updated, &a, n));
        assert!(residual(&fresh, &a, n) < 1e-11);
        assert!((updated.log_det() - fresh.log_det()).abs() < 1e-11);
    }

    #[test]
    fn a_gram_matrix_is_added_to_the_lower_triangle() {
        let n = 13;
        let x = normals(50 * n, "gram");
        let mut a = vec![0.0; n * n];
        a.iter_mut().step_by(n + 1).for_each(|v| *v = 1.0);
        x.chunks(20 * n).for_each(|some| add_gram(some, n, &mut a));
        for (i, (got, want)) in a.iter().zip(&naive(&x, n)).enumerate() {
            // sums of 50 products of order one
            let lower = i % n <= i / n;
            assert!(if lower { (got - want).abs() < 1e-13 * 50.0 } else { *got == 0.0 });
        }
    }

    #[test]
    fn extending_equals_factoring_the_whole() {
        let n = 12;
        let a = naive(&normals(5 * n, "extend"), n);
        let whole = Cholesky::factor(&a, n).unwrap();
        let mut grown = Cholesky::of_identity(0, 1.0);
        for (from, to) in [(0, 3), (3, 4), (4, 12)] {
            let b: Vec<f64> = (from..to).flat_map(|i| a[i * n..i * n + from].to_vec()).collect();
            let c: Vec<f64> = (from..to).flat_map(|i| a[i * n + from..i * n + to].to_vec()).collect();
            grown.extend(&b, &c, to - from).unwrap();
        }
        assert!((&whole.l - &grown.l).norm_max() < 1e-13);
    }

    #[test]
    fn an_indefinite_matrix_is_refused_with_its_pivot() {
        let a = [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 2.0, 1.0];
        assert_eq!(Cholesky::factor(&a, 3).unwrap_err(), Error::NotPositiveDefinite { pivot: 2 });
    }
}
