//! Mean and width of the two neural models, frozen: the network's weights and what Λ has become.

use std::ops::Range;

use super::lambda::{Diagonal, FrozenDual, Lambda};
use super::{RewardModel, RowGroup, row_groups};
use crate::data::{Contexts, Encoding, Layout};
use crate::error::Error;
use crate::linalg::cholesky::Whitener;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, dispatch};
use crate::net::{FactorRows, Net, Params, Tangents};

/// Rows that pass through the network together: few enough to stay in the first cache.
const ROWS: usize = 32;

/// A frozen neural model. Its mean is the network's output, or the ridge regression on its gradient.
pub(crate) struct Scorer<T> {
    net: Net,
    layout: Layout,
    weights: Params<T>,
    spread: Spread<T>,
}

/// What mean and width are computed from.
enum Spread<T> {
    /// c²/Λ, and c·θ for the ridge mean.
    Diagonal { inverse: Diagonal<T>, theta: Option<Diagonal<T>> },
    /// L⁻¹, and θ for the ridge mean.
    Primal { whitener: Whitener, theta: Option<Vec<f64>>, scale: f64 },
    /// The Gram matrix of the samples.
    Dual { dual: FrozenDual, ridge: bool },
}

impl<T: Scalar> Scorer<T> {
    /// Freezes weights and Λ. `target` is Σφr in the shape of a diagonal Λ; `ridge` asks for the ridge mean.
    pub(crate) fn new(
        net: &Net,
        layout: Layout,
        weights: &Params<T>,
        lambda: &mut Lambda<T>,
        target: Option<&Diagonal<T>>,
        ridge: bool,
    ) -> Result<Self, Error> {
        let spread = match lambda {
            Lambda::Diagonal(d) => {
                let (c, c_squared) = (T::of(d.scale_squared.sqrt()), T::of(d.scale_squared));
                Spread::Diagonal {
                    inverse: d.zip(d, |lambda, _| c_squared / lambda),
                    theta: target.map(|target| target.zip(d, |s, lambda| c * s / lambda)),
                }
            }
            Lambda::Primal(p) => {
                Spread::Primal { whitener: p.whitener(), theta: ridge.then(|| p.theta()), scale: p.scale() }
            }
            Lambda::Dual(d) => Spread::Dual { dual: d.freeze(net)?, ridge },
        };
        Ok(Scorer { net: net.clone(), layout, weights: weights.clone(), spread })
    }

    /// Whether pairs of different actions meet different parameters.
    fn by_action(&self) -> bool {
        let by_action = matches!(&self.spread, Spread::Diagonal { inverse, .. } if inverse.by_action);
        self.layout.encoding == Encoding::Disjoint || by_action
    }
}

impl<T: Scalar> RewardModel for Scorer<T> {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let mut tangents = Tangents::new(&self.net, ROWS);
        for group in row_groups(contexts, rounds, self.by_action()) {
            dispatch(ScoreGroup { scorer: self, group: &group, tangents: &mut tangents, mean, width });
        }
    }
}

struct ScoreGroup<'a, T> {
    scorer: &'a Scorer<T>,
    group: &'a RowGroup<'a>,
    tangents: &'a mut Tangents<T>,
    mean: &'a mut [f64],
    width: &'a mut [f64],
}

impl<T: Scalar> Job for ScoreGroup<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Scorer { net, layout, weights, spread } = self.scorer;
        let (action, block) = (self.group.action, layout.block(self.group.action));
        let n_in = net.n_in();
        let (mut means, mut widths) = ([T::ZERO; ROWS], [T::ZERO; ROWS]);
        let (mut wide_means, mut wide_widths) = ([0.0; ROWS], [0.0; ROWS]);
        for rows in self.group.rows.chunks(ROWS) {
            let n = rows.len();
            let input = net.input_mut(self.tangents, n);
            for (input, (x, _)) in input.chunks_exact_mut(n_in).zip(rows) {
                net.write_input(x, input);
            }
            net.project::<T, A>(net.block(&weights.first, block), 0..n, self.tangents);
            net.pass::<T, A>(&weights.rest, self.tangents);
            let mut ridge_mean = false;
            match spread {
                Spread::Diagonal { inverse, theta } => {
                    let (first, rest) = inverse.parts(net, block, action);
                    net.contract::<T, A, true>(first, rest, self.tangents, &mut widths);
                    for i in 0..n {
                        wide_widths[i] = widths[i].wide().sqrt();
                    }
                    if let Some(theta) = theta {
                        let (first, rest) = theta.parts(net, block, action);
                        net.contract::<T, A, false>(first, rest, self.tangents, &mut means);
                        ridge_mean = true;
                        for i in 0..n {
                            wide_means[i] = means[i].wide();
                        }
                    }
                }
                Spread::Primal { whitener, theta, scale } => {
                    let p = net.n_params();
                    let mut phi = vec![0.0; n * p];
                    for (row, phi) in phi.chunks_exact_mut(p).enumerate() {
                        self.tangents.expand(net, block, row, phi);
                        phi.iter_mut().for_each(|v| *v *= scale);
                        if let Some(theta) = theta {
                            wide_means[row] = theta.iter().zip(phi).map(|(t, v)| t * *v).sum();
                        }
                    }
                    wide_widths[..n].fill(0.0);
                    whitener.add_norms(&phi, &mut wide_widths[..n]);
                    wide_widths[..n].iter_mut().for_each(|w| *w = w.sqrt());
                    ridge_mean = theta.is_some();
                }
                Spread::Dual { dual, ridge } => {
                    let mut factors = FactorRows::default();
                    let mut norms = [0.0; ROWS];
                    for row in 0..n {
                        factors.push(net, self.tangents, block, row);
                        norms[row] = self.tangents.norm_squared(net, row);
                    }
                    dual.estimate(net, &factors, &norms, &mut wide_means[..n], &mut wide_widths[..n]);
                    ridge_mean = *ridge;
                }
            }
            for (i, (_, place)) in rows.iter().enumerate() {
                self.mean[*place] = if ridge_mean { wide_means[i] } else { self.tangents.f()[i].wide() };
                self.width[*place] = wide_widths[i];
            }
        }
    }
}
