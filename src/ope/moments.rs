//! First and second moments of what the estimators are made of.
//!
//! A round becomes a row of [`TERMS`] numbers: w, w r, r, v̂, w e (e = r − q̂) and the terms of the six estimators with
//! changed weights. Every estimate is a function of their means, every normal interval of their covariances. Rounds of
//! a log that drops some count ρ = 1 / (1 − drop) times: each term is multiplied by ρ, and n is Σ ρ.

use super::config::OpeConfig;
use super::estimators::terms_of;
use super::sample::Sample;
use super::sums::Sum;
use super::tape::Tape;
use crate::error::Error;
use crate::linalg::vectors::{Job, dispatch};

/// Numbers of a row.
pub(crate) const TERMS: usize = 11;

/// w.
pub(crate) const W: usize = 0;
/// w r.
pub(crate) const WR: usize = 1;
/// r.
pub(crate) const R: usize = 2;
/// v̂.
pub(crate) const V: usize = 3;
/// w (r − q̂).
pub(crate) const WE: usize = 4;
/// The term of `ips-clip`.
pub(crate) const IPS_CLIP: usize = 5;
/// The term of `sg-ips`.
pub(crate) const SG_IPS: usize = 6;
/// The term of `dr-clip`.
pub(crate) const DR_CLIP: usize = 7;
/// The term of `switch-dr`.
pub(crate) const SWITCH_DR: usize = 8;
/// The term of `dros`.
pub(crate) const DROS: usize = 9;
/// The term of `sg-dr`.
pub(crate) const SG_DR: usize = 10;

/// Terms of which all products are kept; of the others only those with themselves and with r.
const JOINT: usize = 5;

/// A row of terms.
pub(crate) type Terms = [f64; TERMS];

/// What clipping, switching and shrinking leave of a weight.
pub(crate) fn shrunk(config: &OpeConfig, w: f64) -> [f64; 4] {
    let clip = w.min(config.clip);
    let switch = if w <= config.switch { w } else { 0.0 };
    let dros = match config.dros {
        f64::INFINITY => w,
        _ if w == 0.0 => 0.0,
        lambda => lambda * w / (w * w + lambda),
    };
    let sg = if w == 0.0 { 0.0 } else { w / (1.0 - config.sg + config.sg * w) };
    [clip, switch, dros, sg]
}

/// The terms that the settings ask for; weights, rewards and the model's values always.
pub(crate) fn wanted(config: &OpeConfig) -> [bool; TERMS] {
    let mut wanted = std::array::from_fn(|term| term < JOINT);
    config.estimators.iter().flat_map(|&e| terms_of(e)).for_each(|&term| wanted[term] = true);
    wanted
}

/// The terms of a round, times ρ. Those that are not wanted, and without a model those that need one, are 0.
pub(crate) fn terms(config: &OpeConfig, wanted: &[bool; TERMS], sample: &Sample) -> Terms {
    let Sample { weight: w, reward: r, .. } = *sample;
    let [clip, switch, dros, sg] = shrunk(config, w);
    let mut terms = [0.0; TERMS];
    (terms[W], terms[WR], terms[R]) = (w, w * r, r);
    (terms[IPS_CLIP], terms[SG_IPS]) = (clip * r, sg * r);
    terms[V] = sample.v.unwrap_or(0.0);
    if let (Some(q), Some(v)) = (sample.q, sample.v) {
        let e = r - q;
        terms[WE] = w * e;
        (terms[DR_CLIP], terms[SWITCH_DR]) = (v + clip * e, v + switch * e);
        (terms[DROS], terms[SG_DR]) = (v + dros * e, v + sg * e);
    }
    for term in JOINT..TERMS {
        if !wanted[term] {
            terms[term] = 0.0; // which costs its sums nothing
        }
    }
    let count = sample.count();
    if count != 1.0 {
        terms.iter_mut().for_each(|t| *t *= count);
    }
    terms
}

/// Sums of terms and of their products, exact.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moments {
    count: Sum,
    first: [Sum; TERMS],
    /// The products of the first [`JOINT`] terms, the lower triangle row by row; then z z and z r of the others.
    second: [Sum; JOINT * (JOINT + 1) / 2 + 2 * (TERMS - JOINT)],
}

/// The place of a product.
fn place(i: usize, j: usize) -> usize {
    let (i, j) = (i.max(j), i.min(j));
    if i < JOINT {
        return i * (i + 1) / 2 + j;
    }
    assert!(j == i || j == R, "the product of terms {i} and {j} is not kept");
    JOINT * (JOINT + 1) / 2 + 2 * (i - JOINT) + usize::from(j == R)
}

impl Moments {
    /// Adds rounds with the times that each counts.
    pub fn extend(&mut self, rows: &[(Terms, f64)]) {
        dispatch(Extend { moments: self, rows });
    }

    #[inline(always)]
    fn add(&mut self, terms: &Terms, count: f64) {
        self.count.add(count);
        for (sum, &term) in self.first.iter_mut().zip(terms) {
            sum.add(term);
        }
        let (joint, others) = self.second.split_at_mut(JOINT * (JOINT + 1) / 2);
        let mut joint = joint.iter_mut();
        for i in 0..JOINT {
            for (j, sum) in (0..=i).zip(joint.by_ref()) {
                sum.add_product(terms[i], terms[j]);
            }
        }
        for (sums, i) in others.chunks_exact_mut(2).zip(JOINT..TERMS) {
            sums[0].add_product(terms[i], terms[i]);
            sums[1].add_product(terms[i], terms[R]);
        }
    }

    /// Adds the rounds of another part.
    pub fn merge(&mut self, other: &Moments) {
        self.count.merge(&other.count);
        self.first.iter_mut().zip(&other.first).for_each(|(a, b)| a.merge(b));
        self.second.iter_mut().zip(&other.second).for_each(|(a, b)| a.merge(b));
    }

    /// Keeps the sums of so many rounds.
    pub fn keep(&mut self, tape: &mut Tape<'_>, rounds: u64) -> Result<(), Error> {
        self.count.keep(tape)?;
        let (n, rounds) = (self.n(), rounds as f64);
        tape.check(n >= rounds && n <= rounds * 2f64.powi(53), "a count of at least the rounds")?;
        self.first.iter_mut().chain(&mut self.second).try_for_each(|sum| sum.keep(tape))
    }

    /// n = Σ ρ.
    pub fn n(&self) -> f64 {
        self.count.value()
    }

    /// Σ term.
    pub fn sum(&self, i: usize) -> f64 {
        self.first[i].value()
    }

    /// Σ term·term.
    pub fn product(&self, i: usize, j: usize) -> f64 {
        self.second[place(i, j)].value()
    }

    /// The means of all terms.
    pub fn means(&self) -> Terms {
        let n = self.n();
        std::array::from_fn(|i| self.sum(i) / n)
    }

    /// Σ a_i a_j C_ij with the centred products C_ij = Σ x_i x_j − Σ x_i Σ x_j / n: the spread of Σ_i a_i x_i around
    /// its mean.
    pub fn spread(&self, a: &Terms) -> f64 {
        let mut spread = 0.0;
        for i in 0..TERMS {
            for j in 0..=i {
                let weight = if i == j { a[i] * a[i] } else { 2.0 * a[i] * a[j] };
                if weight != 0.0 {
                    spread += weight * self.centred(i, j);
                }
            }
        }
        spread.max(0.0)
    }

    /// C_ij in twice the precision, so that a large mean does not swallow a small spread.
    fn centred(&self, i: usize, j: usize) -> f64 {
        let n = self.n();
        let ((x, x_low), (y, y_low)) = (self.first[i].pair(), self.first[j].pair());
        let (s, s_low) = self.second[place(i, j)].pair();
        let product = x * y;
        let product_low = x.mul_add(y, -product) + (x * y_low + x_low * y);
        let quotient = product / n;
        let quotient_low = ((-quotient).mul_add(n, product) + product_low) / n;
        (s - quotient) + (s_low - quotient_low)
    }
}

/// Adding rounds where products keep their rounding error in one instruction, if the processor has it: the sums are
/// exact either way.
struct Extend<'a> {
    moments: &'a mut Moments,
    rows: &'a [(Terms, f64)],
}

impl Job for Extend<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (terms, count) in self.rows {
            self.moments.add(terms, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_spread_around_a_large_mean_is_exact() {
        let mut moments = Moments::default();
        let config = OpeConfig::default();
        for i in 0..1000 {
            let sample = Sample::new(1.0, 1e9 + f64::from(i % 2));
            moments.extend(&[(terms(&config, &wanted(&config), &sample), 1.0)]);
        }
        let mut a = [0.0; TERMS];
        a[WR] = 1.0;
        assert_eq!(moments.spread(&a), 250.0);
        a[W] = -1e9;
        assert_eq!(moments.spread(&a), 250.0);
    }

    #[test]
    fn shrinking_at_its_ends_gives_nothing_or_the_weight() {
        let at = |x: f64| OpeConfig { clip: f64::INFINITY, switch: x, dros: x, sg: 0.0, ..OpeConfig::default() };
        for w in [0.0, 0.3, 1.0, 1e9] {
            assert_eq!(shrunk(&at(0.0), w), [w, 0.0, 0.0, w]);
            assert_eq!(shrunk(&at(f64::INFINITY), w), [w; 4]);
        }
        assert_eq!(shrunk(&OpeConfig { sg: 1.0, ..OpeConfig::default() }, 0.0)[3], 0.0);
        assert_eq!(shrunk(&OpeConfig { sg: 1.0, ..OpeConfig::default() }, 5.0)[3], 1.0);
    }
}
