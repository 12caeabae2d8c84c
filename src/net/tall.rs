//! The products of wide inputs: z_1 = W_1 x and Σ_j c_{ji} x_j² of many rows, as matrix products over rows, from all
//! numbers of x or, where two thirds and more are zero (pixels, one-hot columns), from the others alone.
//!
//! Narrow inputs go through `wide.rs`, where the weights of a block stay in the first cache.

use super::wide::{Wide, rows_to_units};
use super::{Net, ROWS};
use crate::linalg::dense::{SparseRows, multiply, multiply_sparse};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Rows};

/// Rows of wide inputs, with room for their products.
#[derive(Debug, Clone)]
pub(crate) struct Tall<T> {
    /// Where the rows were copied from, to see that they are the same for the next action.
    from: Vec<usize>,
    x: Vec<T>,
    squares: Vec<T>,
    noted: SparseRows,
    sparse: bool,
    /// Products, rows × ld each.
    products: [Vec<T>; 3],
}

/// Rows that are multiplied together.
pub(crate) const TALL_ROWS: usize = 256;

impl<T: Scalar> Tall<T> {
    /// No rows yet.
    pub(crate) fn new() -> Self {
        Tall {
            from: Vec::new(),
            x: Vec::new(),
            squares: Vec::new(),
            noted: SparseRows::default(),
            sparse: false,
            products: [const { Vec::new() }; 3],
        }
    }

    /// Takes rows of contexts; does nothing where they are those it has.
    pub(crate) fn set_rows<'a>(&mut self, net: &Net, rows: impl Iterator<Item = &'a [f32]> + Clone) {
        let from = rows.clone().map(|x| x.as_ptr().addr());
        if from.clone().eq(self.from.iter().copied()) {
            return;
        }
        self.from.clear();
        self.from.extend(from);
        self.x.resize(self.from.len() * net.n_in, T::ZERO);
        for (x, row) in self.x.chunks_exact_mut(net.n_in).zip(rows) {
            net.write_input(row, x);
        }
        self.squares.clear();
        self.squares.extend(self.x.iter().map(|&x| x * x));
        self.sparse = self.noted.note(&self.x, net.n_in);
        for product in &mut self.products {
            product.resize(self.from.len() * net.ld, T::ZERO);
        }
    }
}

impl Net {
    /// Whether a block of W_1 is too large for the first cache, so that rows should be multiplied together.
    pub(crate) fn is_tall(&self) -> bool {
        self.n_in * self.ld > 4096
    }

    /// Product number `at` of all rows: x·c (x²·c if `SQUARE`), where c has the shape of a block of W_1.
    #[inline(always)]
    pub(crate) fn tall_product<T: Scalar, A: Arch, const SQUARE: bool>(&self, c: &[T], tall: &mut Tall<T>, at: usize) {
        let x = if SQUARE { &tall.squares } else { &tall.x };
        let z = &mut tall.products[at];
        if tall.sparse {
            multiply_sparse::<T, A>(&tall.noted, x, self.n_in, c, self.ld, z);
        } else {
            multiply::<T, A>(x, self.n_in, self.n_in, c, self.ld, z);
        }
    }

    /// Takes product `at` of the rows from `row` on, as many as R holds at most, as z_1.
    #[inline(always)]
    pub(crate) fn tall_to_z<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        (tall, at): (&Tall<T>, usize),
        row: usize,
        wide: &mut Wide<T>,
    ) {
        let sum = rows_to_units::<T, A, R>(self.tile_of(tall, at, row), self.ld, &mut wide.layers[0].h);
        R::store(sum, &mut wide.layers[0].sum);
    }

    /// Takes product `at` of the rows from `row` on, as many as R holds at most, as the part of W_1 in [`Net::wide_contract`].
    #[inline(always)]
    pub(crate) fn tall_to_product<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        (tall, at): (&Tall<T>, usize),
        row: usize,
        wide: &mut Wide<T>,
    ) {
        rows_to_units::<T, A, R>(self.tile_of(tall, at, row), self.ld, &mut wide.product);
    }

    fn tile_of<'a, T>(&self, tall: &'a Tall<T>, at: usize, row: usize) -> &'a [T] {
        let product = &tall.products[at];
        &product[row * self.ld..product.len().min((row + ROWS) * self.ld)]
    }
}
