//! Mean and width of the two neural models, frozen: the network's weights and what Λ has become.

use std::ops::Range;

use super::exact::Exact;
use super::lambda::{Diagonal, Lambda};
use super::{RewardModel, RowGroup, row_groups};
use crate::data::{Contexts, Encoding, Layout};
use crate::error::Error;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, dispatch};
use crate::net::{Net, Params, ROWS, Wide};

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
    /// The full matrix.
    Exact(Exact<T>),
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
            Lambda::Primal(p) => Spread::Exact(Exact::Primal(p.freeze(ridge)?)),
            Lambda::Dual(d) => Spread::Exact(Exact::Dual(d.freeze(net, ridge)?)),
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
        let groups = row_groups(contexts, rounds, self.by_action());
        match &self.spread {
            Spread::Diagonal { inverse, theta } => {
                let mut wide = Wide::new(&self.net);
                for group in &groups {
                    let theta = theta.as_ref();
                    dispatch(ScoreDiagonal { scorer: self, inverse, theta, group, wide: &mut wide, mean, width });
                }
            }
            Spread::Exact(exact) => exact.score(&self.net, self.layout, &self.weights, &groups, mean, width),
        }
    }
}

/// Scores a group with a diagonal Λ: one pass through the network and one or two contractions per tile of rows.
struct ScoreDiagonal<'a, T> {
    scorer: &'a Scorer<T>,
    inverse: &'a Diagonal<T>,
    theta: Option<&'a Diagonal<T>>,
    group: &'a RowGroup<'a>,
    wide: &'a mut Wide<T>,
    mean: &'a mut [f64],
    width: &'a mut [f64],
}

impl<T: Scalar> Job for ScoreDiagonal<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Scorer { net, layout, weights, .. } = self.scorer;
        let (action, block) = (self.group.action, layout.block(self.group.action));
        for rows in self.group.rows.chunks(ROWS) {
            self.wide.set_rows(net, rows.iter().map(|(x, _)| *x));
            net.wide_pass::<T, A>(net.block(&weights.first, block), &weights.rest, self.wide);
            let (first, rest) = self.inverse.parts(net, block, action);
            let widths = net.wide_contract::<T, A, true>(first, rest, self.wide);
            for ((_, place), width) in rows.iter().zip(&widths) {
                self.width[*place] = width.wide().sqrt();
            }
            if let Some(theta) = self.theta {
                let (first, rest) = theta.parts(net, block, action);
                let means = net.wide_contract::<T, A, false>(first, rest, self.wide);
                for ((_, place), mean) in rows.iter().zip(&means) {
                    self.mean[*place] = mean.wide();
                }
            } else {
                for ((_, place), f) in rows.iter().zip(self.wide.f()) {
                    self.mean[*place] = f.wide();
                }
            }
        }
    }
}
