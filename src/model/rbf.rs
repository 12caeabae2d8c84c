//! The RBF kernel between rows and samples: k(u, v) = exp(−‖u − v‖²/2σ²), less e_u·e_v where blocks are linked.

use crate::linalg::cholesky::gram;
use crate::linalg::exp::exp_in_place;
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{LANES, madd, map, scale_add};
use crate::linalg::whiten::{HEIGHT, Panels};

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
    pub(super) e: [f64; LANES],
    /// αᵀc.
    pub(super) alpha: [f64; LANES],
    /// gᵀc; zero where blocks are not linked.
    pub(super) g: [f64; LANES],
    /// ‖c‖².
    pub(super) squares: [f64; LANES],
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

    /// Samples in whole panels.
    pub(super) fn padded(&self) -> usize {
        self.of_sample.len()
    }

    /// c(u, x_j) of eight rows u (a tile) and all samples: the sums, and c itself, a vector per sample.
    #[inline(always)]
    pub(super) fn meet<T: Scalar, const LINKED: bool>(
        &self,
        rbf: Rbf,
        u: &[[f64; LANES]],
        out: &mut [[T; LANES]],
    ) -> RowSums {
        let zero = [0.0; LANES];
        let mut own = zero;
        for u in u {
            own = madd(*u, *u, own);
        }
        let e = if LINKED { map(own, |norm| Scalar::exp(-rbf.gamma * norm)) } else { zero };
        let mut sums = RowSums { e, alpha: zero, g: zero, squares: zero };
        let panels = self.of_sample.as_chunks::<HEIGHT>().0.iter().zip(out.as_chunks_mut::<HEIGHT>().0);
        for (p, (samples, out)) in panels.enumerate() {
            let products = self.x.product(p, u);
            for i in 0..HEIGHT {
                let sample = samples[i];
                let mut c = products[i];
                for l in 0..LANES {
                    let distance = own[l] + sample.norm_squared - 2.0 * c[l];
                    c[l] = Scalar::exp(-rbf.gamma * if distance > 0.0 { distance } else { 0.0 });
                }
                if LINKED {
                    c = scale_add(-sample.e, &e, c);
                    sums.g = scale_add(sample.g, &c, sums.g);
                }
                sums.alpha = scale_add(sample.alpha, &c, sums.alpha);
                sums.squares = madd(c, c, sums.squares);
                for l in 0..LANES {
                    out[i][l] = T::of(c[l]);
                }
            }
        }
        sums
    }
}
