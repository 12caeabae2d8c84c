//! Mean and width of the two neural models, frozen: the network's weights and what Λ has become.

use std::ops::Range;

use super::RewardModel;
use super::exact::Exact;
use super::lambda::{Diagonal, Lambda};
use crate::archive::Archive;
use crate::data::{Contexts, Eligible, Encoding, Layout, row_groups};
use crate::error::Error;
use crate::linalg::vectors::ROWS;
use crate::net::{Net, Number, Params, Score, Spread, Work};

/// A frozen neural model. Its mean is the network's output, or the ridge regression on its gradient.
pub(crate) struct Scorer<T> {
    net: Net,
    layout: Layout,
    weights: Params<T>,
    width: Width<T>,
}

/// What mean and width are computed from.
enum Width<T> {
    /// c²/Λ, and c·θ for the ridge mean.
    Diagonal { inverse: Diagonal<T>, theta: Option<Diagonal<T>> },
    /// The full matrix.
    Exact(Exact<T>),
}

impl<T: Number> Scorer<T> {
    /// Freezes weights and Λ. `target` is Σφr in the shape of a diagonal Λ; `ridge` is for the ridge mean.
    pub(crate) fn new(
        net: Net,
        layout: Layout,
        weights: Params<T>,
        lambda: &mut Lambda<T>,
        target: Option<&Diagonal<T>>,
        ridge: bool,
    ) -> Result<Self, Error> {
        let width = match lambda {
            Lambda::Diagonal(d) => {
                let (c, c_squared) = (T::of(d.scale_squared.sqrt()), T::of(d.scale_squared));
                Width::Diagonal {
                    inverse: d.zip(d, |lambda, _| c_squared / lambda),
                    theta: target.map(|target| target.zip(d, |s, lambda| c * s / lambda)),
                }
            }
            Lambda::Primal(p) => Width::Exact(Exact::Primal(p.freeze(ridge)?)),
            Lambda::Dual(d) => Width::Exact(Exact::Dual(d.freeze(&net, ridge)?)),
        };
        Ok(Scorer { net, layout, weights, width })
    }

    /// The model that a policy's arrays hold ([`archive`]); Λ and target come at their start.
    pub(crate) fn restore(
        net: Net,
        layout: Layout,
        weights_name: &str,
        mut lambda: Lambda<T>,
        mut target: Option<Diagonal<T>>,
        ridge: bool,
        from: &mut Archive,
    ) -> Result<Self, Error> {
        let mut weights = net.zeros();
        archive(&net, (weights_name, &mut weights), &mut lambda, target.as_mut(), from)?;
        Scorer::new(net, layout, weights, &mut lambda, target.as_ref(), ridge)
    }

    /// Whether pairs of different actions meet different parameters.
    fn by_action(&self) -> bool {
        let by_action = matches!(&self.width, Width::Diagonal { inverse, .. } if inverse.by_action);
        self.layout.encoding == Encoding::Disjoint || by_action
    }
}

/// Goes through all that mean and width need: the weights with their name, Λ, Σφr.
pub(super) fn archive<T: Number>(
    net: &Net,
    (name, weights): (&str, &mut Params<T>),
    lambda: &mut Lambda<T>,
    target: Option<&mut Diagonal<T>>,
    archive: &mut Archive,
) -> Result<(), Error> {
    net.archive(name, weights, archive)?;
    lambda.archive(net, archive)?;
    target.map_or(Ok(()), |target| net.archive_parts("target", &mut target.first, &mut target.rest, archive))
}

impl<T: Number> RewardModel for Scorer<T> {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let (net, weights) = (&self.net, &self.weights);
        let (inverse, theta) = match &self.width {
            Width::Diagonal { inverse, theta } => (inverse, theta),
            Width::Exact(exact) => {
                let groups = row_groups(contexts, rounds, self.by_action());
                return exact.score(net, weights, &groups, mean, width);
            }
        };
        // on a shared trunk one pass of sixteen contexts serves all actions
        let shared = net.outputs_share_a_pass() && !inverse.by_action;
        let at_once = if shared { ROWS } else { rounds.len().max(1) };
        let (mut work, first_pair) = (Work::new(net), contexts.first_pair(rounds.start));
        for start in rounds.clone().step_by(at_once) {
            let rounds = start..(start + at_once).min(rounds.end);
            let from = contexts.first_pair(start) - first_pair;
            for (number, group) in row_groups(contexts, rounds, self.by_action()).iter().enumerate() {
                let place = net.place(group.action);
                let (block, action) = (place.0, group.action);
                let spread = Spread {
                    inverse: inverse.parts(net, block, action),
                    theta: theta.as_ref().map(|theta| theta.parts(net, block, action)),
                };
                let again = shared && number > 0 && matches!(contexts.eligible(), Eligible::All);
                let (rows, work) = (group.rows(), &mut work);
                let (mean, width) = (&mut mean[from..], &mut width[from..]);
                T::score(Score { net, weights, place, spread, rows, again, work, mean, width });
            }
        }
    }
}
