//! The products of wide inputs: z_1 = W_1 x and Σ_j c_{ji} x_j² of many rows, as matrix products over rows, from all
//! numbers of x or, where two thirds and more are zero (pixels, one-hot columns), from the others alone.
//!
//! Narrow inputs go through `wide.rs`, where the weights of a block stay in the first cache.

use super::wide::{Wide, contexts_to_inputs, rows_to_units};
use super::{Net, ROWS};
use crate::linalg::dense::{SparseRows, is_sparse, multiply, multiply_sparse};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, LANES, Rows, Tile};
use crate::linalg::tiles::multiply_tiles;

/// Rows of wide inputs, with room for their products.
#[derive(Debug, Clone)]
pub(crate) struct Tall<T> {
    /// Where the rows were copied from, to see that they are the same for the next action.
    from: Vec<usize>,
    x: Vec<T>,
    noted: SparseRows,
    form: Form,
    /// x² and products, row after row, rows × ld each: of sparse rows, or of few.
    squares: Vec<T>,
    products: [Vec<T>; 3],
    /// x, x² and products with a row per lane: of many dense rows.
    x_tiles: Vec<Tile<T>>,
    square_tiles: Vec<Tile<T>>,
    product_tiles: [Vec<Tile<T>>; 3],
}

/// How rows are multiplied. The bits of the products are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Row after row, from the numbers that are not zero.
    Sparse,
    /// Row after row.
    Few,
    /// A row per lane.
    Tiles,
}

/// Rows that are multiplied together.
pub(crate) const TALL_ROWS: usize = 256;

impl<T: Scalar> Tall<T> {
    /// No rows yet.
    pub(crate) fn new() -> Self {
        Tall {
            from: Vec::new(),
            x: Vec::new(),
            noted: SparseRows::default(),
            form: Form::Few,
            squares: Vec::new(),
            products: [const { Vec::new() }; 3],
            x_tiles: Vec::new(),
            square_tiles: Vec::new(),
            product_tiles: [const { Vec::new() }; 3],
        }
    }

    /// Takes rows of contexts; does nothing where they are those it has.
    #[inline(always)]
    pub(crate) fn set_rows<'a, A: Arch>(&mut self, net: &Net, rows: impl Iterator<Item = &'a [f32]> + Clone) {
        let from = rows.clone().map(|x| x.as_ptr().addr());
        if from.clone().eq(self.from.iter().copied()) {
            return;
        }
        self.from.clear();
        self.from.extend(from);
        let n = self.from.len();
        self.form = match is_sparse(rows.clone()) {
            true => Form::Sparse,
            false if n <= LANES => Form::Few,
            false => Form::Tiles,
        };
        if self.form == Form::Tiles {
            self.set_tiles::<A>(net, rows);
            return;
        }
        self.x.resize(n * net.n_in, T::ZERO);
        for (x, row) in self.x.chunks_exact_mut(net.n_in).zip(rows) {
            net.write_input(row, x);
        }
        if self.form == Form::Sparse {
            self.noted.note(&self.x, net.n_in);
        }
        self.squares.clear();
        self.squares.extend(self.x.iter().map(|&x| x * x));
    }

    #[inline(always)]
    fn set_tiles<'a, A: Arch>(&mut self, net: &Net, mut rows: impl Iterator<Item = &'a [f32]>) {
        let n_tiles = self.from.len().div_ceil(ROWS);
        self.x_tiles.resize(n_tiles * net.n_in, Tile::ZERO);
        self.square_tiles.resize(n_tiles * net.n_in, Tile::ZERO);
        for (x, squares) in self.x_tiles.chunks_exact_mut(net.n_in).zip(self.square_tiles.chunks_exact_mut(net.n_in)) {
            let Some(first) = rows.next() else { return };
            // lanes without a row repeat the first one
            let mut own = [first; ROWS];
            for (own, row) in own[1..].iter_mut().zip(&mut rows) {
                *own = row;
            }
            contexts_to_inputs::<T, A, A::Sixteen<T>>(net, &own, x);
            for (square, x) in squares.iter_mut().zip(&*x) {
                let x = A::Sixteen::<T>::load(x);
                x.mul(x).store(square);
            }
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
        if tall.form == Form::Tiles {
            let x = if SQUARE { &tall.square_tiles } else { &tall.x_tiles };
            let z = &mut tall.product_tiles[at];
            z.resize(x.len() / self.n_in * self.config.width, Tile::ZERO);
            return multiply_tiles::<T, A>((x, self.n_in), (c, self.ld), (z, self.config.width));
        }
        let x = if SQUARE { &tall.squares } else { &tall.x };
        let z = &mut tall.products[at];
        z.resize(x.len() / self.n_in * self.ld, T::ZERO);
        if tall.form == Form::Sparse {
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
        let sum = self.tall_to_units::<T, A, R>((tall, at), row, &mut wide.layers[0].h);
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
        self.tall_to_units::<T, A, R>((tall, at), row, &mut wide.product);
    }

    /// Product `at` of the rows from `row` on, which is the first of a tile, one tile per unit; returns the sum over the units.
    #[inline(always)]
    fn tall_to_units<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        (tall, at): (&Tall<T>, usize),
        row: usize,
        units: &mut [Tile<T>],
    ) -> R {
        if tall.form == Form::Tiles {
            let (m, mut sum) = (self.config.width, R::splat(T::ZERO));
            for (unit, z) in units.iter_mut().zip(&tall.product_tiles[at][row / ROWS * m..][..m]) {
                let z = R::load(z);
                sum = sum.add(z);
                z.store(unit);
            }
            return sum;
        }
        let product = &tall.products[at];
        rows_to_units::<T, A, R>(&product[row * self.ld..product.len().min((row + ROWS) * self.ld)], self.ld, units)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Init, NetConfig};
    use super::*;
    use crate::data::{Encoding, Layout};
    use crate::linalg::simd::{Job, Portable, Vectors, dispatch};
    use crate::seed::Seed;
    use rand::RngExt;

    /// Both products of some rows, a list for each row.
    struct Products<'a> {
        net: &'a Net,
        c: &'a [f32],
        rows: &'a [Vec<f32>],
        form: Form,
    }

    impl Products<'_> {
        #[inline(always)]
        fn read<A: Arch, R: Rows<f32, A::V<f32>>>(&self, tall: &Tall<f32>, row: usize, out: &mut [Vec<f32>]) {
            for at in 0..2 {
                let mut units = vec![Tile::ZERO; self.net.config.width];
                let sum: R = self.net.tall_to_units::<f32, A, R>((tall, at), row, &mut units);
                let mut total = Tile::ZERO;
                sum.store(&mut total);
                for (lane, out) in out.iter_mut().enumerate() {
                    out.extend(units.iter().map(|unit| unit.numbers()[lane]));
                    out.push(total.numbers()[lane]);
                }
            }
        }
    }

    impl Job for Products<'_> {
        type Out = Vec<Vec<f32>>;
        #[inline(always)]
        fn run<A: Arch>(self) -> Vec<Vec<f32>> {
            let mut tall = Tall::new();
            tall.set_rows::<A>(self.net, self.rows.iter().map(|row| &row[..]));
            assert_eq!(tall.form, self.form);
            self.net.tall_product::<f32, A, false>(self.c, &mut tall, 0);
            self.net.tall_product::<f32, A, true>(self.c, &mut tall, 1);
            let mut out = vec![Vec::new(); self.rows.len()];
            for (tile, out) in out.chunks_mut(ROWS).enumerate() {
                if out.len() > LANES {
                    self.read::<A, A::Sixteen<f32>>(&tall, tile * ROWS, out);
                } else {
                    self.read::<A, Vectors<A, f32, 1>>(&tall, tile * ROWS, out);
                }
            }
            out
        }
    }

    /// Σ_i x_i c_io and Σ_i x_i² c_io of a row for every unit o, in the order of the inputs, and their sums over the units.
    fn expected(net: &Net, c: &[f32], row: &[f32], fused: bool) -> Vec<f32> {
        let mut x = vec![0.0; net.n_in];
        net.write_input(row, &mut x);
        let mut out = Vec::new();
        for square in [false, true] {
            let mut total = 0.0f32;
            for o in 0..net.config.width {
                let mut sum = 0.0f32;
                for (i, &x) in x.iter().enumerate() {
                    let (x, c) = (if square { x * x } else { x }, c[i * net.ld + o]);
                    sum = if fused { x.mul_add(c, sum) } else { sum + x * c };
                }
                total += sum;
                out.push(sum);
            }
            out.push(total);
        }
        out
    }

    /// Whatever the form, and so however many rows are scored together, the bits are the same.
    #[test]
    fn products_of_many_few_and_sparse_rows_are_one_sum_over_the_inputs() {
        let mut rng = Seed::new(5).stream("test");
        for (dim, width, duplicate_input) in [(300, 20, false), (130, 100, false), (785, 13, false), (200, 14, true)] {
            let config = NetConfig { width, duplicate_input, init: Init::Uniform, ..NetConfig::default() };
            let net = Net::new(config, Layout { dim, n_actions: 1, encoding: Encoding::PerAction }).unwrap();
            assert!(net.is_tall());
            let c: Vec<f32> = (0..net.n_in * net.ld).map(|_| rng.random_range(-1.0..1.0)).collect();
            for (n, zeros, form) in [
                (1, 0.0, Form::Few),
                (8, 0.0, Form::Few),
                (9, 0.0, Form::Tiles),
                (23, 0.0, Form::Tiles),
                (60, 0.0, Form::Tiles),
                (20, 0.8, Form::Sparse),
            ] {
                let mut number = || if rng.random_bool(zeros) { 0.0 } else { rng.random_range(-1.0f32..1.0) };
                let rows: Vec<Vec<f32>> = (0..n).map(|_| (0..dim).map(|_| number()).collect()).collect();
                let job = || Products { net: &net, c: &c, rows: &rows, form };
                let want = |fused| rows.iter().map(|row| expected(&net, &c, row, fused)).collect::<Vec<_>>();
                assert_eq!(job().run::<Portable>(), want(false), "{dim} {width} {n}, portable");
                let (best, fused, plain) = (dispatch(job()), want(true), want(false));
                assert!(best == fused || best == plain, "{dim} {width} {n}, with the best instructions");
            }
        }
    }
}
