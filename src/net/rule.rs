//! How weights move, given their gradient: a [`Rule`] is an optimiser with its numbers for one step and the weights and memory of
//! one stretch of parameters. What it is, is chosen once, outside the loops, by [`with_rule`].

use super::optim::{BETA1, BETA2};
use super::sums::Four;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Lanes, lanes_mut};

/// Chooses the rule once, outside the loops.
macro_rules! with_rule {
    ($part:expr, $arch:ident, |$rule:ident| $body:expr) => {{
        let part = $part;
        match (part.scalars, part.initial, part.moments) {
            ($crate::net::optim::Scalars::Adam { step, eps, l2 }, None, Some(moments)) => {
                let $rule = &mut $crate::net::rule::Adam::<T, $arch>::new(part.w, moments, step, eps, l2);
                $body
            }
            ($crate::net::optim::Scalars::Adam { step, eps, l2 }, Some(initial), Some(moments)) => {
                let adam = $crate::net::rule::Adam::<T, $arch>::new(part.w, moments, step, eps, l2);
                let $rule = &mut $crate::net::rule::AdamTowards { adam, initial: $crate::linalg::simd::lanes(initial) };
                $body
            }
            ($crate::net::optim::Scalars::Sgd { eta, pull }, Some(initial), _) => {
                let (eta, pull) = ($arch::splat(eta), $arch::splat(pull));
                let $rule = &mut $crate::net::rule::Sgd::<T, $arch> {
                    w: $crate::linalg::simd::lanes_mut(part.w),
                    initial: $crate::linalg::simd::lanes(initial),
                    eta,
                    pull,
                };
                $body
            }
            _ => unreachable!("Adam keeps its moments and SGD the initial weights"),
        }
    }};
}
pub(super) use with_rule;

/// Vectors of four inputs' weights, of three each.
const OF_FOUR: usize = 12;

/// What moves the weights: given the gradients of the vectors of weights from a place on.
pub(super) trait Rule<T: Scalar, A: Arch> {
    fn steps<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]);

    /// As [`Rule::steps`], from two places on.
    #[inline(always)]
    fn two_steps<const C: usize>(&mut self, at: [usize; 2], grad: [[A::V<T>; C]; 2]) {
        self.steps(at[0], grad[0]);
        self.steps(at[1], grad[1]);
    }

    /// Moves the lower halves of two vectors, the lower place first; their gradients lie side by side.
    fn two_halves(&mut self, at: [usize; 2], grad: A::V<T>);

    /// Moves the weights of four inputs, three vectors each, of which the last is half padding.
    fn four_inputs(&mut self, at: usize, four: &Four<T>);
}

/// The two vectors of sixteen outputs of two inputs each: the first of the inputs, and the vector.
const PAIRS: [(usize, usize); 4] = [(0, 0), (0, 1), (2, 0), (2, 1)];

/// Two vectors of four inputs'.
#[inline(always)]
fn two_of<T: Scalar, A: Arch>(list: &[Lanes<T>; OF_FOUR], at: [usize; 2]) -> [A::V<T>; 2] {
    [A::load(&list[at[0]]), A::load(&list[at[1]])]
}

/// The lower halves of four inputs' last vectors.
#[inline(always)]
fn others_of<T: Scalar, A: Arch>(list: &[Lanes<T>; OF_FOUR]) -> [A::V<T>; 2] {
    [halves_of::<T, A>(list, [2, 5]), halves_of::<T, A>(list, [8, 11])]
}

/// The lower halves of two vectors of a list.
#[inline(always)]
pub(super) fn halves_of<T: Scalar, A: Arch>(list: &[Lanes<T>], at: [usize; 2]) -> A::V<T> {
    A::join_halves(A::load(&list[at[0]]), A::load(&list[at[1]]))
}

/// Writes over the lower halves of two vectors of a list, the lower place first.
#[inline(always)]
pub(super) fn store_halves<T: Scalar, A: Arch>(v: A::V<T>, list: &mut [Lanes<T>], at: [usize; 2]) {
    let (low, high) = list.split_at_mut(at[1]);
    A::store_halves(v, &mut low[at[0]], &mut high[0]);
}

pub(super) struct Sgd<'a, T: Scalar, A: Arch> {
    pub(super) w: &'a mut [Lanes<T>],
    pub(super) initial: &'a [Lanes<T>],
    pub(super) eta: A::V<T>,
    pub(super) pull: A::V<T>,
}

impl<T: Scalar, A: Arch> Rule<T, A> for Sgd<'_, T, A> {
    #[inline(always)]
    fn steps<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]) {
        let (w, initial) = (&mut self.w[at..at + C], &self.initial[at..at + C]);
        for c in 0..C {
            let weight = A::load(&w[c]);
            let g = A::madd(self.pull, A::sub(weight, A::load(&initial[c])), grad[c]);
            A::store(A::sub(weight, A::mul(self.eta, g)), &mut w[c]);
        }
    }

    #[inline(always)]
    fn two_halves(&mut self, at: [usize; 2], grad: A::V<T>) {
        let weight = halves_of::<T, A>(self.w, at);
        let g = A::madd(self.pull, A::sub(weight, halves_of::<T, A>(self.initial, at)), grad);
        store_halves::<T, A>(A::sub(weight, A::mul(self.eta, g)), self.w, at);
    }

    #[inline(always)]
    fn four_inputs(&mut self, at: usize, four: &Four<T>) {
        for (k, own) in four.sixteen.iter().enumerate() {
            self.steps(at + 3 * k, [A::load(&own[0]), A::load(&own[1])]);
        }
        self.two_halves([at + 2, at + 5], A::load(&four.others[0]));
        self.two_halves([at + 8, at + 11], A::load(&four.others[1]));
    }
}

/// Adam with the penalty towards 0.
pub(super) struct Adam<'a, T: Scalar, A: Arch> {
    w: &'a mut [Lanes<T>],
    first: &'a mut [Lanes<T>],
    second: &'a mut [Lanes<T>],
    step: A::V<T>,
    eps: A::V<T>,
    l2: A::V<T>,
}

impl<'a, T: Scalar, A: Arch> Adam<'a, T, A> {
    #[inline(always)]
    pub(super) fn new(w: &'a mut [T], moments: (&'a mut [T], &'a mut [T]), step: T, eps: T, l2: T) -> Self {
        let w = lanes_mut(w);
        let n = w.len();
        let (first, second) = (&mut lanes_mut(moments.0)[..n], &mut lanes_mut(moments.1)[..n]);
        Adam { w, first, second, step: A::splat(step), eps: A::splat(eps), l2: A::splat(l2) }
    }

    /// Moves the moments from a place on by the whole gradient: `grad`, and the penalty's l2·(W − C). Returns Σg and
    /// √Σg² + eps.
    #[inline(always)]
    fn moments<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C], towards: [A::V<T>; C]) -> [[A::V<T>; C]; 2] {
        let w = &self.w[at..at + C];
        let (first, second) = (&mut self.first[at..at + C], &mut self.second[at..at + C]);
        let (mut mu, mut root) = (grad, grad);
        for c in 0..C {
            let before = [A::load(&w[c]), A::load(&first[c]), A::load(&second[c])];
            let after = moments::<T, A>([self.eps, self.l2], before, grad[c], towards[c]);
            (mu[c], root[c]) = (after[0], after[2]);
            A::store(mu[c], &mut first[c]);
            A::store(after[1], &mut second[c]);
        }
        [mu, root]
    }

    /// As `moments` and `move_one`, for the lower halves of two vectors.
    #[inline(always)]
    fn move_halves(&mut self, at: [usize; 2], grad: A::V<T>, towards: A::V<T>) {
        let weight = halves_of::<T, A>(self.w, at);
        let before = [weight, halves_of::<T, A>(self.first, at), halves_of::<T, A>(self.second, at)];
        let [mu, nu, root] = moments::<T, A>([self.eps, self.l2], before, grad, towards);
        let moved = A::sub(weight, A::div(A::mul(self.step, mu), root));
        store_halves::<T, A>(mu, self.first, at);
        store_halves::<T, A>(nu, self.second, at);
        store_halves::<T, A>(moved, self.w, at);
    }

    /// As [`Rule::four_inputs`], where the penalty pulls towards `initial`, or 0: five times two vectors, which share a division.
    #[inline(always)]
    fn move_four(&mut self, at: usize, four: &Four<T>, initial: Option<&[Lanes<T>; OF_FOUR]>) {
        // bounds are checked here alone
        let at = at..at + OF_FOUR;
        let w: &mut [Lanes<T>; OF_FOUR] = (&mut self.w[at.clone()]).try_into().expect("twelve vectors");
        let first: &mut [Lanes<T>; OF_FOUR] = (&mut self.first[at.clone()]).try_into().expect("twelve vectors");
        let second: &mut [Lanes<T>; OF_FOUR] = (&mut self.second[at]).try_into().expect("twelve vectors");
        let (numbers, none) = ([self.step, self.eps, self.l2], [A::zero(); 2]);
        for (k, c) in PAIRS {
            let own = [3 * k + c, 3 * k + 3 + c];
            let before = [two_of::<T, A>(w, own), two_of::<T, A>(first, own), two_of::<T, A>(second, own)];
            let grad = [A::load(&four.sixteen[k][c]), A::load(&four.sixteen[k + 1][c])];
            let towards = if let Some(initial) = initial { two_of::<T, A>(initial, own) } else { none };
            let after = adam::<T, A>(numbers, before, grad, towards);
            for i in 0..2 {
                A::store(after[0][i], &mut w[own[i]]);
                A::store(after[1][i], &mut first[own[i]]);
                A::store(after[2][i], &mut second[own[i]]);
            }
        }
        let before = [others_of::<T, A>(w), others_of::<T, A>(first), others_of::<T, A>(second)];
        let grad = [A::load(&four.others[0]), A::load(&four.others[1])];
        let towards = if let Some(initial) = initial { others_of::<T, A>(initial) } else { none };
        let after = adam::<T, A>(numbers, before, grad, towards);
        for (list, [a, b]) in [w, first, second].into_iter().zip(after) {
            store_halves::<T, A>(a, list, [2, 5]);
            store_halves::<T, A>(b, list, [8, 11]);
        }
    }

    /// Moves the weights from a place on.
    #[inline(always)]
    fn move_one<const C: usize>(&mut self, at: usize, [mu, root]: [[A::V<T>; C]; 2]) {
        let w = &mut self.w[at..at + C];
        let mut c = 0;
        while c + 1 < C {
            let own = [A::load(&w[c]), A::load(&w[c + 1])];
            let moved = share_division::<T, A>(self.step, own, [mu[c], mu[c + 1]], [root[c], root[c + 1]]);
            A::store(moved[0], &mut w[c]);
            A::store(moved[1], &mut w[c + 1]);
            c += 2;
        }
        if c < C {
            A::store(A::sub(A::load(&w[c]), A::div(A::mul(self.step, mu[c]), root[c])), &mut w[c]);
        }
    }

    /// Moves the weights from two places on, the lower one first.
    #[inline(always)]
    fn move_two<const C: usize>(&mut self, at: [usize; 2], a: [[A::V<T>; C]; 2], b: [[A::V<T>; C]; 2]) {
        let (low, high) = self.w.split_at_mut(at[1]);
        let (low, high) = (&mut low[at[0]..at[0] + C], &mut high[..C]);
        for c in 0..C {
            let own = [A::load(&low[c]), A::load(&high[c])];
            let moved = share_division::<T, A>(self.step, own, [a[0][c], b[0][c]], [a[1][c], b[1][c]]);
            A::store(moved[0], &mut low[c]);
            A::store(moved[1], &mut high[c]);
        }
    }
}

/// Σg, Σg² and √Σg² + eps after a step: given the weights, Σg and Σg² before it, and the gradient without the penalty.
#[inline(always)]
fn moments<T: Scalar, A: Arch>(
    [eps, l2]: [A::V<T>; 2],
    [w, mu, nu]: [A::V<T>; 3],
    grad: A::V<T>,
    towards: A::V<T>,
) -> [A::V<T>; 3] {
    let g = A::madd(l2, A::sub(w, towards), grad);
    let mu = A::madd(A::splat(T::of(BETA1)), mu, g);
    let nu = A::madd(g, g, A::mul(A::splat(T::of(BETA2)), nu));
    [mu, nu, A::add(A::sqrt(nu), eps)]
}

/// Two vectors of weights, Σg and Σg² after a step: given these before it, and their gradients without the penalty.
#[inline(always)]
fn adam<T: Scalar, A: Arch>(
    [step, eps, l2]: [A::V<T>; 3],
    [w, mut mu, mut nu]: [[A::V<T>; 2]; 3],
    grad: [A::V<T>; 2],
    towards: [A::V<T>; 2],
) -> [[A::V<T>; 2]; 3] {
    let mut root = grad;
    for i in 0..2 {
        [mu[i], nu[i], root[i]] = moments::<T, A>([eps, l2], [w[i], mu[i], nu[i]], grad[i], towards[i]);
    }
    [share_division::<T, A>(step, w, mu, root), mu, nu]
}

/// Two weights less step·μ/a and step·μ′/b, which are step·μ·b/(a·b) and step·μ′·a/(a·b): a division takes longer than all
/// that replaces it. a and b lie between 1e-8 and the root of the largest number, so that a·b is in range.
#[inline(always)]
fn share_division<T: Scalar, A: Arch>(
    step: A::V<T>,
    w: [A::V<T>; 2],
    mu: [A::V<T>; 2],
    root: [A::V<T>; 2],
) -> [A::V<T>; 2] {
    let both = A::div(step, A::mul(root[0], root[1]));
    [A::nmadd(mu[0], A::mul(both, root[1]), w[0]), A::nmadd(mu[1], A::mul(both, root[0]), w[1])]
}

impl<T: Scalar, A: Arch> Rule<T, A> for Adam<'_, T, A> {
    #[inline(always)]
    fn steps<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]) {
        let moments = self.moments(at, grad, [A::zero(); C]);
        self.move_one(at, moments);
    }

    #[inline(always)]
    fn two_steps<const C: usize>(&mut self, at: [usize; 2], grad: [[A::V<T>; C]; 2]) {
        let a = self.moments(at[0], grad[0], [A::zero(); C]);
        let b = self.moments(at[1], grad[1], [A::zero(); C]);
        self.move_two(at, a, b);
    }

    #[inline(always)]
    fn two_halves(&mut self, at: [usize; 2], grad: A::V<T>) {
        self.move_halves(at, grad, A::zero());
    }

    #[inline(always)]
    fn four_inputs(&mut self, at: usize, four: &Four<T>) {
        self.move_four(at, four, None);
    }
}

/// Adam with the penalty towards W⁽⁰⁾.
pub(super) struct AdamTowards<'a, T: Scalar, A: Arch> {
    pub(super) adam: Adam<'a, T, A>,
    pub(super) initial: &'a [Lanes<T>],
}

impl<T: Scalar, A: Arch> AdamTowards<'_, T, A> {
    #[inline(always)]
    fn moments<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]) -> [[A::V<T>; C]; 2] {
        let initial = &self.initial[at..at + C];
        let mut towards = [A::zero(); C];
        for c in 0..C {
            towards[c] = A::load(&initial[c]);
        }
        self.adam.moments(at, grad, towards)
    }
}

impl<T: Scalar, A: Arch> Rule<T, A> for AdamTowards<'_, T, A> {
    #[inline(always)]
    fn steps<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]) {
        let moments = self.moments(at, grad);
        self.adam.move_one(at, moments);
    }

    #[inline(always)]
    fn two_steps<const C: usize>(&mut self, at: [usize; 2], grad: [[A::V<T>; C]; 2]) {
        let (a, b) = (self.moments(at[0], grad[0]), self.moments(at[1], grad[1]));
        self.adam.move_two(at, a, b);
    }

    #[inline(always)]
    fn two_halves(&mut self, at: [usize; 2], grad: A::V<T>) {
        let towards = halves_of::<T, A>(self.initial, at);
        self.adam.move_halves(at, grad, towards);
    }

    #[inline(always)]
    fn four_inputs(&mut self, at: usize, four: &Four<T>) {
        let initial = (&self.initial[at..at + OF_FOUR]).try_into().expect("twelve vectors");
        self.adam.move_four(at, four, Some(initial));
    }
}
