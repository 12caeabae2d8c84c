//! The RBF kernel between rows and samples: k(u, v) = exp(−‖u − v‖²/2σ²), less e_u·e_v where blocks are linked.

use crate::linalg::cholesky::gram;
use crate::linalg::exp::{exp_in_place, exp_vectors};
use crate::linalg::panels::{HEIGHT, Panels, product};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, LANES, Lanes, Vectors};

/// The kernel, split into the rank-one part between blocks and the correction within a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rbf {
    /// 1/2σ².
    pub(super) gamma: f64,
    /// Whether blocks are linked by e_u·e_v; false where there is one block.
    pub(super) linked: bool,
}

impl Rbf {
    /// e_u of a vector with that squared norm.
    pub(super) fn link(&self, norm_squared: f64) -> f64 {
        if self.linked { (-self.gamma * norm_squared).exp() } else { 0.0 }
    }

    /// c(x_i, x_j) = k(x_i, x_j) − e_i·e_j between all samples x (n × d), row-major.
    pub(super) fn corrections(&self, x: &[f64], norms: &[f64], e: &[f64], d: usize) -> Vec<f64> {
        let n = norms.len();
        let mut out = vec![0.0; n * n];
        if n == 0 {
            return out;
        }
        gram(x, x, d, &mut out);
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            for (v, norm) in row.iter_mut().zip(norms) {
                *v = -self.gamma * (norms[i] + norm - 2.0 * *v).max(0.0);
            }
            exp_in_place(row);
            if self.linked {
                row.iter_mut().zip(e).for_each(|(v, e_j)| *v -= e[i] * e_j);
            }
        }
        out
    }
}

/// The samples of a block, packed to meet tiles of eight rows, and what is summed over them.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    x: Panels<f64>,
    /// One entry per sample, padded to whole panels.
    of_sample: Vec<OfSample>,
}

/// ‖x‖² of what fills the last panel: so far from every row that c vanishes.
const FAR: f64 = 1e300;

/// What belongs to one sample.
#[derive(Debug, Clone, Copy, Default)]
struct OfSample {
    norm_squared: f64,
    e: f64,
    alpha: f64,
    g: f64,
}

/// Sums over the samples of a block, for each of eight rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSums {
    /// e_u.
    pub(super) e: Lanes<f64>,
    /// αᵀc.
    pub(super) alpha: Lanes<f64>,
    /// gᵀc; zero where blocks are not linked.
    pub(super) g: Lanes<f64>,
    /// ‖c‖².
    pub(super) squares: Lanes<f64>,
}

impl Samples {
    /// Packs the samples x (n × d) with their squared norms, e, α and g.
    pub(super) fn new(x: &[f64], d: usize, norms: &[f64], e: &[f64], alpha: &[f64], g: &[f64]) -> Self {
        let n = norms.len();
        let of = |j: usize| OfSample { norm_squared: norms[j], e: e[j], alpha: alpha[j], g: g[j] };
        let mut of_sample: Vec<_> = (0..n).map(of).collect();
        of_sample.resize(n.next_multiple_of(HEIGHT), OfSample { norm_squared: FAR, ..OfSample::default() });
        Samples { x: Panels::dense(n, d, |i, j| x[i * d + j]), of_sample }
    }

    /// c(u, x_j) of eight rows u (a tile of d vectors) and all samples: the sums, and c itself, vector j at
    /// `out[j·stride..]`.
    #[inline(always)]
    pub(super) fn meet<T: Scalar, A: Arch, const LINKED: bool>(
        &self,
        rbf: Rbf,
        u: &[Lanes<f64>],
        out: &mut [T],
        stride: usize,
    ) -> RowSums {
        let mut own = A::zero::<f64>();
        for u in u {
            let u = A::load(u);
            own = A::madd(u, u, own);
        }
        let (minus_gamma, minus_two) = (A::splat(-rbf.gamma), A::splat(-2.0));
        let mut e = [[0.0; LANES]];
        if LINKED {
            A::store(A::mul(minus_gamma, own), &mut e[0]);
            exp_vectors::<A, 1>(&mut e);
        }
        let e = A::load(&e[0]);
        let (mut alpha, mut g, mut squares) = (A::zero(), A::zero(), A::zero());
        for p in 0..self.x.len() {
            let products = product::<f64, A, Vectors<A, f64, 1>, 1, 1>(self.x.panel(p), [u.as_chunks().0]);
            let samples = &self.of_sample[p * HEIGHT..(p + 1) * HEIGHT];
            let out = &mut out[p * HEIGHT * stride..][..(HEIGHT - 1) * stride + LANES];
            let mut c = [[0.0; LANES]; HEIGHT];
            for i in 0..HEIGHT {
                let norms = A::add(own, A::splat(samples[i].norm_squared));
                let distance = A::madd(minus_two, products[i][0].0[0], norms);
                A::store(A::mul(minus_gamma, A::where_positive(distance, distance)), &mut c[i]);
            }
            exp_vectors::<A, HEIGHT>(&mut c);
            for i in 0..HEIGHT {
                let mut own = A::load(&c[i]);
                if LINKED {
                    own = A::madd(e, A::splat(-samples[i].e), own);
                    g = A::madd(A::splat(samples[i].g), own, g);
                    A::store(own, &mut c[i]);
                }
                alpha = A::madd(A::splat(samples[i].alpha), own, alpha);
                squares = A::madd(own, own, squares);
                let out = &mut out[i * stride..i * stride + LANES];
                for l in 0..LANES {
                    out[l] = T::of(c[i][l]);
                }
            }
        }
        let zero = [0.0; LANES];
        let mut sums = RowSums { e: zero, alpha: zero, g: zero, squares: zero };
        A::store(e, &mut sums.e);
        A::store(alpha, &mut sums.alpha);
        A::store(g, &mut sums.g);
        A::store(squares, &mut sums.squares);
        sums
    }
}
