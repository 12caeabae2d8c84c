//! Mean and width of many rows with a diagonal Λ, or the mean alone: a pass in tiles, and a contraction of what it
//! leaves.
//!
//! The width is √(Σ g²/Λ) over all parameters. In each layer g = δ_i h_j, so that Σ g²/Λ = (δ²)ᵀ(1/Λ)(h²): a product on
//! squared inputs, and no gradient is built.

use super::plan::ScoreEntrance;
use super::tile::Tiles;
use super::{Net, Params};
use crate::data::Rows;
use crate::linalg::product::{NonZero, from_tiles, sparse_rows, to_tiles};
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{Job, ROWS};

/// Rows that enter together: weights of a sparse product stay in the first cache for all of them.
const TOGETHER: usize = 4 * ROWS;

/// Coefficients of the parameters that belong to a block and an output.
#[derive(Clone, Copy)]
pub(crate) struct Coefficients<'a, T> {
    pub(crate) first: &'a [T],
    pub(crate) rest: &'a [T],
}

/// What is wanted beside f.
#[derive(Clone, Copy)]
pub(crate) struct Spread<'a, T> {
    /// 1/Λ, scaled: the width is √(Σ c·g²).
    pub(crate) inverse: Coefficients<'a, T>,
    /// θ, scaled: the mean is Σ c·g in place of f.
    pub(crate) theta: Option<Coefficients<'a, T>>,
}

/// Memory of a scoring.
#[derive(Debug, Clone)]
pub(crate) struct Work<T> {
    tiles: Tiles<T>,
    /// How the rows in place have entered.
    entrance: ScoreEntrance,
    inputs: Vec<T>,
    squares: Vec<T>,
    noted: NonZero,
    /// z_1, and what the squared inputs (and the inputs) are multiplied to, row after row.
    products: [Vec<T>; 3],
}

impl<T: Scalar> Work<T> {
    pub(crate) fn new(net: &Net) -> Self {
        Work {
            tiles: Tiles::new(net),
            entrance: ScoreEntrance::Tiles,
            inputs: vec![T::ZERO; TOGETHER * net.n_in],
            squares: Vec::new(),
            noted: NonZero::default(),
            products: [const { Vec::new() }; 3],
        }
    }
}

/// Scores rows that meet the same parameters.
pub(crate) struct Score<'a, T> {
    pub(crate) net: &'a Net,
    pub(crate) weights: &'a Params<T>,
    /// Block and output.
    pub(crate) place: (usize, usize),
    pub(crate) spread: Spread<'a, T>,
    pub(crate) rows: Rows<'a>,
    /// Whether they are the rows of the score before, for another output: at most [`ROWS`], which have entered already.
    pub(crate) again: bool,
    pub(crate) work: &'a mut Work<T>,
    pub(crate) mean: &'a mut [f64],
    pub(crate) width: &'a mut [f64],
}

impl<T: Scalar> Job for Score<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let entrance = if self.again { self.work.entrance } else { self.net.score_entrance(self.rows.vectors()) };
        self.work.entrance = entrance;
        self.by(entrance);
    }
}

impl<T: Scalar> Score<'_, T> {
    #[inline(always)]
    pub(super) fn by(self, entrance: ScoreEntrance) {
        let Score { net, weights, place: (block, output), spread, rows, again, work, mean, width } = self;
        let (first, n_in) = (net.block(&weights.first, block), net.n_in);
        for together in rows.chunks(TOGETHER) {
            if !again {
                for (x, input) in together.vectors().zip(work.inputs.chunks_exact_mut(n_in)) {
                    net.write_input(x, input);
                }
            }
            if entrance == ScoreEntrance::SparseRows && !again {
                work.enter_sparse(net, first, spread, together.len());
            }
            for (number, own) in together.chunks(ROWS).enumerate() {
                let from = number * ROWS;
                match entrance {
                    _ if again => {}
                    ScoreEntrance::SparseRows => work.take_rows(net, 0, from, own.len()),
                    ScoreEntrance::Tiles => {
                        let inputs = &work.inputs[from * n_in..(from + own.len()) * n_in];
                        to_tiles(inputs, n_in, &mut work.tiles.input);
                        work.tiles.project(net, first);
                    }
                }
                if !again {
                    work.tiles.forth(net, &weights.rest);
                }
                work.tiles.back_from(net, &weights.rest, output);
                match entrance {
                    // squares of the inputs, and what they are multiplied to, have not changed
                    _ if again && net.keeps_product(spread.theta.is_some()) => {}
                    ScoreEntrance::SparseRows => work.take_rows(net, 1, from, own.len()),
                    ScoreEntrance::Tiles => work.tiles.multiply::<true>(net, 0, spread.inverse.first),
                }
                let mut widths = work.tiles.contract::<true>(net, spread.inverse.rest, output);
                widths.iter_mut().for_each(|v| *v = v.root());
                own.put(&widths, width);
                if let Some(theta) = spread.theta {
                    match entrance {
                        ScoreEntrance::SparseRows => work.take_rows(net, 2, from, own.len()),
                        ScoreEntrance::Tiles => work.tiles.multiply::<false>(net, 0, theta.first),
                    }
                    own.put(&work.tiles.contract::<false>(net, theta.rest, output), mean);
                } else {
                    own.put(&work.tiles.f[output], mean);
                }
            }
        }
    }
}

impl<T: Scalar> Work<T> {
    /// The products of some rows with W_1 and with the coefficients of W_1.
    #[inline(always)]
    fn enter_sparse(&mut self, net: &Net, first: &[T], spread: Spread<'_, T>, n: usize) {
        let (n_in, ld) = (net.n_in, net.ld);
        let x = &self.inputs[..n * n_in];
        self.noted.note(x, n_in);
        self.squares.clear();
        self.squares.extend(x.iter().map(|x| *x * *x));
        let [z, squared, plain] = &mut self.products;
        z.resize(n * ld, T::ZERO);
        sparse_rows(&self.noted, x, n_in, first, ld, z);
        squared.resize(n * ld, T::ZERO);
        sparse_rows(&self.noted, &self.squares, n_in, spread.inverse.first, ld, squared);
        if let Some(theta) = spread.theta {
            plain.resize(n * ld, T::ZERO);
            sparse_rows(&self.noted, x, n_in, theta.first, ld, plain);
        }
    }

    /// Takes a product of some rows over: number 0 as z_1, 1 and 2 as what is contracted.
    #[inline(always)]
    fn take_rows(&mut self, net: &Net, which: usize, from: usize, n: usize) {
        let rows = &self.products[which][from * net.ld..(from + n) * net.ld];
        let into = if which == 0 { &mut self.tiles.layers[0].h } else { &mut self.tiles.product };
        to_tiles(rows, net.ld, into);
    }
}

/// The outputs of rows of inputs, all of them, row after row.
pub(crate) struct Outputs<'a, T> {
    pub(crate) net: &'a Net,
    pub(crate) weights: &'a Params<T>,
    /// Rows of `n_in` numbers, of one block.
    pub(crate) inputs: &'a [T],
    pub(crate) work: &'a mut Work<T>,
    pub(crate) out: &'a mut [T],
    /// Where the last hidden layer of each row goes, or empty.
    pub(crate) hidden: &'a mut [T],
}

impl<T: Scalar> Job for Outputs<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Outputs { net, weights, inputs, work, out, hidden } = self;
        let (k, m, tiles) = (net.n_outputs, net.last_in(), &mut work.tiles);
        let mut hidden = hidden.chunks_mut(ROWS * m);
        for (inputs, out) in inputs.chunks(ROWS * net.n_in).zip(out.chunks_mut(ROWS * k)) {
            to_tiles(inputs, net.n_in, &mut tiles.input);
            tiles.project(net, &weights.first);
            tiles.forth(net, &weights.rest);
            from_tiles(&tiles.f, out, k);
            if let Some(hidden) = hidden.next() {
                from_tiles(tiles.last(), hidden, m);
            }
        }
    }
}
