//! Products of ordinary matrices in f32, row-major slices, on the calling thread.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// A row-major matrix, or the transpose of one.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a>(MatRef<'a, f32>);

impl<'a> Matrix<'a> {
    /// `rows` × `cols` numbers, row by row.
    pub(crate) fn new(values: &'a [f32], rows: usize, cols: usize) -> Self {
        Matrix(MatRef::from_row_major_slice(values, rows, cols))
    }

    /// The same numbers with rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Matrix(self.0.transpose())
    }
}

/// out = a·b, row-major.
pub(crate) fn product(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32]) {
    let out = MatMut::from_row_major_slice_mut(out, a.0.nrows(), b.0.ncols());
    matmul(out, Accum::Replace, a.0, b.0, 1.0, Par::Seq);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_matrices_and_transposes_are_those_by_hand() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, -1.0, 2.0, 0.5, 1.0]);
        let mut out = [0.0; 4];
        product(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), &mut out);
        assert_eq!(out, [0.5, 7.0, 2.0, 16.0]);
        product(Matrix::new(&a, 2, 3), Matrix::new(&b, 2, 3).transposed(), &mut out);
        assert_eq!(out, [-2.0, 6.0, -2.0, 16.5]);
        let mut out = [0.0; 9];
        product(Matrix::new(&a, 2, 3).transposed(), Matrix::new(&b, 2, 3), &mut out);
        assert_eq!(out[..3], [9.0, 2.0, 3.0]);
    }
}
