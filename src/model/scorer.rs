//! Mean and width of the two neural models, frozen: the network's weights and what Λ has become.

use std::ops::Range;

use super::RewardModel;
use super::exact::Exact;
use super::lambda::{Diagonal, Lambda};
use super::rows::{RowGroup, Rows, row_groups};
use crate::data::{Contexts, Encoding, Layout};
use crate::error::Error;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{self, Arch, Job, LANES, Vectors, dispatch};
use crate::net::{Net, Params, ROWS, TALL_ROWS, Tall, Wide};

/// A frozen neural model. Its mean is the network's output, or the ridge regression on its gradient.
pub struct Scorer<T> {
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
        T::score(self, contexts, rounds, mean, width);
    }
}

impl<T: Scalar> Scorer<T> {
    /// As [`RewardModel::estimate_rounds`].
    pub(crate) fn score(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let groups = row_groups(contexts, rounds, self.by_action());
        match &self.spread {
            Spread::Diagonal { inverse, theta } => {
                let (mut wide, mut tall) = (Wide::new(&self.net), Tall::new());
                for group in &groups {
                    let (theta, wide, tall) = (theta.as_ref(), &mut wide, &mut tall);
                    dispatch(ScoreDiagonal { scorer: self, inverse, theta, group, wide, tall, mean, width });
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
    tall: &'a mut Tall<T>,
    mean: &'a mut [f64],
    width: &'a mut [f64],
}

impl<T: Scalar> Job for ScoreDiagonal<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(mut self) {
        let (net, weights) = (&self.scorer.net, &self.scorer.weights);
        net.wide_begin(&weights.rest, self.wide);
        if self.is_shallow() {
            let action = self.group.action;
            let (_, rest) = self.inverse.parts(net, self.scorer.layout.block(action), action);
            net.shallow_begin_score(&weights.rest, rest, self.wide);
        }
        let (all, mut done) = (self.group.rows(), 0);
        for rows in all.chunks(TALL_ROWS) {
            if net.is_tall() {
                let block = self.scorer.layout.block(self.group.action);
                self.tall.set_rows::<A>(net, rows.vectors());
                net.tall_product::<T, A, false>(net.block(&weights.first, block), self.tall, 0);
                net.tall_product::<T, A, true>(self.inverse.parts(net, block, self.group.action).0, self.tall, 1);
                if let Some(theta) = self.theta {
                    net.tall_product::<T, A, false>(theta.parts(net, block, self.group.action).0, self.tall, 2);
                }
            }
            let mut at = 0;
            while at < rows.len() {
                let tile = rows.part(at, ROWS);
                // wide rows were read when they were multiplied
                let next = all.part((done + at + tile.len()).min(all.len()), if net.is_tall() { 0 } else { ROWS });
                if tile.len() > LANES {
                    self.tile::<A, A::Sixteen<T>>(tile, at, next);
                } else {
                    self.tile::<A, Vectors<A, T, 1>>(tile, at, next);
                }
                at += tile.len();
            }
            done += rows.len();
        }
    }
}

/// A third of a tile's rows: those of the next tile are asked for in three portions, as more than a dozen requests at once would
/// have to wait for each other.
const THIRD: usize = ROWS.div_ceil(3);

impl<T: Scalar> ScoreDiagonal<'_, T> {
    /// Whether the passes are those of networks with one hidden layer.
    fn is_shallow(&self) -> bool {
        self.scorer.net.is_shallow() && self.theta.is_none()
    }

    /// Scores as many rows as R holds at most; `at` is the first of them among those of `tall`. The rows `next` are asked for
    /// meanwhile.
    #[inline(always)]
    fn tile<A: Arch, R: simd::Rows<T, A::V<T>>>(&mut self, rows: Rows<'_>, at: usize, next: Rows<'_>) {
        let Scorer { net, layout, weights, .. } = self.scorer;
        let (action, block) = (self.group.action, layout.block(self.group.action));
        let shallow = self.is_shallow();
        let (tall, wide) = (&*self.tall, &mut *self.wide);
        if net.is_tall() {
            net.tall_to_z::<T, A, R>((tall, 0), at, wide);
        } else {
            let set = match rows.side_by_side(LANES * R::VECTORS) {
                Some(all) => wide.set_all_rows::<A, R>(net, all, layout.dim),
                None => false,
            };
            if !set {
                wide.set_rows::<A, R>(net, &rows.first_vectors());
            }
        }
        next.part(0, THIRD).prefetch();
        let own = net.block(&weights.first, block);
        match (shallow, net.is_tall()) {
            // centred before the part of W_1 is multiplied: root and division are on their way meanwhile
            (true, true) => net.wide_normalise::<T, A, R>(wide),
            (true, false) => net.wide_centre::<T, A, R>(own, wide),
            (false, true) => {}
            (false, false) => net.wide_project::<T, A, R>(own, wide),
        }
        next.part(THIRD.min(next.len()), THIRD).prefetch();
        let (first, rest) = self.inverse.parts(net, block, action);
        if net.is_tall() {
            net.tall_to_product::<T, A, R>((tall, 1), at, wide);
        } else {
            net.wide_product::<T, A, R, true>(first, wide);
        }
        next.part((2 * THIRD).min(next.len()), THIRD).prefetch();
        let widths = if shallow {
            net.shallow_score::<T, A, R>(wide)
        } else {
            net.wide_pass::<T, A, R>(&weights.rest, wide);
            net.wide_contract::<T, A, R, true>(rest, wide)
        };
        let means = if let Some(theta) = self.theta {
            let (first, rest) = theta.parts(net, block, action);
            if net.is_tall() {
                net.tall_to_product::<T, A, R>((tall, 2), at, wide);
            } else {
                net.wide_product::<T, A, R, false>(first, wide);
            }
            net.wide_contract::<T, A, R, false>(rest, wide)
        } else {
            wide.f()
        };
        rows.put(&means, self.mean);
        rows.put(&widths, self.width);
    }
}
