//! How a gradient meets the weights: one walker for a round, a batch and the growth of Λ.
//!
//! The gradient of a matrix of parameters is Σ_r v_r u_rᵀ over the rows of a step. It is made some inputs at a time, in
//! a stretch that stays in the first cache, and moves the weights at once.

use super::optim::{Part, Stepper};
use super::single::Tangents;
use super::{Net, Params};
use crate::linalg::product::gradient;
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{Job, add_scaled};

/// Numbers of a gradient that are made at a time.
const STRETCH: usize = 2048;

/// Factors of the gradient of a matrix of parameters: rows v (`stride` numbers each, of which `n_in` count) and u (`ld`
/// each).
pub(super) struct Outer<'a, T> {
    pub(super) v: &'a [T],
    pub(super) stride: usize,
    pub(super) n_in: usize,
    pub(super) u: &'a [T],
    pub(super) ld: usize,
}

/// What grows by s·g², where g is the gradient of f of a single row: the diagonal of Λ.
pub(crate) struct Growth<'a, T> {
    /// The part of W_1 that the row's block has.
    pub(crate) first: &'a mut [T],
    pub(crate) rest: &'a mut [T],
    pub(crate) s: T,
}

/// Moves the parameters of `part` along e·g; `growth` grows by s·g².
#[inline(always)]
pub(super) fn walk<T: Scalar>(
    mut part: Part<'_, T>,
    outer: Outer<'_, T>,
    e: T,
    mut growth: Option<(&mut [T], T)>,
    scratch: &mut Vec<T>,
) {
    let Outer { v, stride, n_in, u, ld } = outer;
    let at_once = (STRETCH / ld).max(1);
    scratch.resize(scratch.len().max(at_once.min(n_in) * ld), T::ZERO);
    for first in (0..n_in).step_by(at_once) {
        let inputs = at_once.min(n_in - first);
        let (places, g) = (first * ld..(first + inputs) * ld, &mut scratch[..inputs * ld]);
        gradient(v, stride, first, u, ld, g);
        if let Some((lambda, s)) = &mut growth {
            for (lambda, g) in lambda[places.clone()].iter_mut().zip(g.iter_mut()) {
                *lambda = (*g * *s).mul_add(*g, *lambda);
                *g = *g * e;
            }
        } else if e != T::ONE {
            g.iter_mut().for_each(|g| *g = *g * e);
        }
        part.part(places).along(g);
    }
}

/// The step of S-mode: all weights move along e·∇f of a row whose input lies in `block`, with e the slope of the loss.
pub(crate) struct Observe<'a, T> {
    pub(crate) net: &'a Net,
    pub(crate) tangents: &'a Tangents<T>,
    pub(crate) block: usize,
    pub(crate) e: T,
    pub(crate) weights: &'a mut Params<T>,
    pub(crate) stepper: &'a mut Stepper<T>,
    /// The round, from 1.
    pub(crate) t: usize,
    pub(crate) growth: Option<Growth<'a, T>>,
    pub(crate) scratch: &'a mut Vec<T>,
}

impl<T: Scalar> Job for Observe<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Observe { net, tangents, block, e, weights, stepper, t, mut growth, scratch } = self;
        let mut step = stepper.begin(t, 1.0, weights);
        step.first(net.blocks(0..block)).along_zero();
        step.first(net.blocks(block + 1..net.n_blocks)).along_zero();
        for group in &net.groups {
            let (u, v) = (tangents.u(group), tangents.v(group));
            let at = group.at..group.at + v.len() * u.len();
            let (part, growth) = if group.first {
                let part = step.first(net.blocks(block..block + 1));
                (part, growth.as_mut().map(|g| (&mut *g.first, g.s)))
            } else {
                (step.rest(at.clone()), growth.as_mut().map(|g| (&mut g.rest[at], g.s)))
            };
            walk(part, Outer { v, stride: v.len(), n_in: v.len(), u, ld: u.len() }, e, growth, scratch);
        }
    }
}

impl Net {
    /// first, rest += e·∇f (or e·(∇f)² if `square`) of a row; `first` is the part of W_1 that its block has.
    #[inline(always)]
    pub(super) fn add_gradient<T: Scalar>(
        &self,
        tangents: &Tangents<T>,
        square: bool,
        e: T,
        first: &mut [T],
        rest: &mut [T],
    ) {
        for group in &self.groups {
            let into = if group.first { &mut *first } else { &mut rest[group.at..] };
            let u = tangents.u(group);
            for (row, v) in into.chunks_exact_mut(u.len()).zip(tangents.v(group)) {
                if square {
                    let scale = e * *v * *v;
                    row.iter_mut().zip(u).for_each(|(to, u)| *to = (scale * *u).mul_add(*u, *to));
                } else {
                    add_scaled(e * *v, u, row);
                }
            }
        }
    }
}
