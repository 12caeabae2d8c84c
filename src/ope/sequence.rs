//! A confidence sequence for the target's value: valid at all rounds at once, also for logs collected adaptively.
//!
//! With rewards in [a, b], X_t = w_t (r_t − a) / (b − a) ≥ 0 has the mean μ = (V − a) / (b − a) given the past. For
//! every predictable X̂_t, betting against a smaller μ multiplies a wealth that stays below 1/α for ever with
//! probability 1 − α; mixed over all bets with a gamma prior (Howard et al. 2021, Waudby-Smith et al. 2022) its
//! logarithm is
//!
//! L(s, v) = s + v + ρ ln ρ − (v + ρ) ln(s + v + ρ) + ln γ(v + ρ, s + v + ρ) − ln γ(ρ, ρ),  s = Σ X − tμ,
//! v = Σ (X − X̂)²
//!
//! with γ the lower incomplete gamma function, ρ = 1 and X̂_t = (½ + Σ_{i<t} X_i) / t. The lower bound is the μ at
//! which L = ln 1/α; the upper bound is the lower bound of 1 − μ from w (b − r) / (b − a).
//!
//! **Merging.** v depends on the order of rounds through X̂, and on a and b, which may be known at the end only. Both
//! are polynomials: with the prefix sums P_t = Σ_{i<t} w_i r_i, Q_t = Σ_{i<t} w_i, v is a combination of eleven sums
//! such as Σ w_t r_t P_t / t and Σ P_t² / t², and a part whose prefix sums start at 0 is moved to its place by adding
//! multiples of its own sums. Everything is integer arithmetic (w and w r in units of 2⁻⁷², 1/t and 1/t² of 2⁻⁹⁶ and
//! 2⁻¹²⁶): parts merge in any order to the same bits.

use statrs::function::erf::erfc;

use super::moments::{Moments, W, WR};
use super::quantiles::{halve, stirling_rest};
use super::tape::Tape;
use super::wide::Wide;
use crate::error::Error;

/// Units: 2⁻⁷² of w and w r, 2⁻⁹⁶ of 1/t, 2⁻¹²⁶ of 1/t².
const UNIT: i32 = -72;
const INVERSE: i32 = -96;
const INVERSE_SQUARE: i32 = -126;

/// Sums of w and of |w r| must stay below it to fit their 127 bits.
const LARGEST: u64 = 1 << 54;

/// No round has a larger number: 1/t² keeps 20 bits.
pub(crate) const LATEST: u64 = 1 << 53;

/// Consecutive rounds: sums with prefix sums that start at 0 with its first round.
#[derive(Debug, Clone, Default, PartialEq)]
struct Segment {
    first: u64,
    end: u64,
    /// Σ w r and Σ w.
    p: i128,
    q: i128,
    /// Σ ⌈max(w, |w r|)⌉, which bounds all prefix sums.
    size: u64,
    /// Σ y/t, Σ w/t; Σ y P/t, Σ (y Q + w P)/t, Σ w Q/t  (y = w r).
    y: Wide,
    w: Wide,
    yp: Wide,
    cross: Wide,
    wq: Wide,
    /// Σ 1/t², Σ P/t², Σ Q/t², Σ P²/t², Σ P Q/t², Σ Q²/t².
    one: Wide,
    sp: Wide,
    sq: Wide,
    spp: Wide,
    spq: Wide,
    sqq: Wide,
}

impl Segment {
    fn new(first: u64) -> Self {
        Segment { first, end: first, ..Segment::default() }
    }

    fn add(&mut self, weight: f64, weighted_reward: f64) {
        let t = u128::from(self.end) + 1;
        self.end += 1;
        let square = Wide::from(((1u128 << -INVERSE_SQUARE) / (t * t)) as i128);
        self.one.add(square);
        if self.p != 0 {
            let sp = square.times(self.p);
            self.sp.add(sp);
            self.spp.add(sp.times(self.p));
            self.spq.add(sp.times(self.q));
        }
        if self.q != 0 {
            let sq = square.times(self.q);
            self.sq.add(sq);
            self.sqq.add(sq.times(self.q));
        }
        if weight == 0.0 {
            return;
        }
        self.size = self.size.saturating_add(weight.max(weighted_reward.abs()).ceil() as u64);
        if self.size >= LARGEST {
            return; // the sums are no longer used
        }
        let fixed = |x: f64| (x * 2f64.powi(-UNIT)) as i128;
        let (y, w) = (fixed(weighted_reward), fixed(weight));
        let inverse = Wide::from(((1u128 << -INVERSE) / t) as i128);
        let ct = inverse.times(w);
        self.w.add(ct);
        self.wq.add(ct.times(self.q));
        self.cross.add(ct.times(self.p));
        if y != 0 {
            let cy = inverse.times(y);
            self.y.add(cy);
            self.yp.add(cy.times(self.p));
            self.cross.add(cy.times(self.q));
        }
        self.p += y;
        self.q += w;
    }

    fn keep(&mut self, tape: &mut Tape<'_>) -> Result<(), Error> {
        tape.number(&mut self.first, LATEST)?;
        tape.number(&mut self.end, LATEST)?;
        tape.check(self.first < self.end, "a round after the first")?;
        tape.number(&mut self.size, u64::MAX)?;
        // each of the summed numbers is at most the size in units of 2⁻⁷²
        let largest = u128::from(self.size.min(LARGEST)) << -UNIT;
        tape.signed(&mut self.p, largest)?;
        tape.signed(&mut self.q, largest)?;
        let first = [&mut self.y, &mut self.w, &mut self.yp, &mut self.cross, &mut self.wq, &mut self.one];
        let second = [&mut self.sp, &mut self.sq, &mut self.spp, &mut self.spq, &mut self.sqq];
        first.into_iter().chain(second).try_for_each(|sum| sum.keep(tape))
    }

    /// Appends the rounds that follow: their prefix sums P and Q start at this segment's sums p and q.
    fn append(&mut self, next: &Segment) {
        debug_assert_eq!(self.end, next.first);
        self.end = next.end;
        self.size = self.size.saturating_add(next.size);
        if self.size >= LARGEST {
            return;
        }
        let (p, q) = (self.p, self.q);
        let add = |sum: &mut Wide, parts: &[Wide]| parts.iter().for_each(|&part| sum.add(part));
        add(&mut self.y, &[next.y]);
        add(&mut self.w, &[next.w]);
        add(&mut self.yp, &[next.yp, next.y.times(p)]);
        add(&mut self.cross, &[next.cross, next.y.times(q), next.w.times(p)]);
        add(&mut self.wq, &[next.wq, next.w.times(q)]);
        add(&mut self.one, &[next.one]);
        add(&mut self.sp, &[next.sp, next.one.times(p)]);
        add(&mut self.sq, &[next.sq, next.one.times(q)]);
        let twice = |x: Wide| x.times(2);
        add(&mut self.spp, &[next.spp, twice(next.sp.times(p)), next.one.times(p).times(p)]);
        add(&mut self.spq, &[next.spq, next.sp.times(q), next.sq.times(p), next.one.times(p).times(q)]);
        add(&mut self.sqq, &[next.sqq, twice(next.sq.times(q)), next.one.times(q).times(q)]);
        self.p += next.p;
        self.q += next.q;
    }
}

/// The state of the confidence sequence: its segments, in the order of rounds. A whole log is one segment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sequence {
    segments: Vec<Segment>,
    /// The number of the next round.
    next: u64,
}

/// Why a confidence sequence cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Rounds from here on have not been merged.
    Missing(u64),
    /// Weights or rewards too large for its numbers.
    TooLarge,
}

impl Sequence {
    /// Rounds that will start with the given number.
    pub fn starting_at(next: u64) -> Self {
        Sequence { segments: Vec::new(), next }
    }

    /// The next round.
    pub fn add(&mut self, weight: f64, weighted_reward: f64) {
        self.open().add(weight, weighted_reward);
        self.next += 1;
    }

    /// The next round, of which only the number is kept: no interval will be asked for.
    pub fn skip(&mut self) {
        self.open().end += 1;
        self.next += 1;
    }

    /// The segment that the next round belongs to.
    fn open(&mut self) -> &mut Segment {
        let place = self.segments.iter().position(|s| s.end == self.next).unwrap_or_else(|| {
            self.segments.push(Segment::new(self.next));
            self.segments.len() - 1
        });
        &mut self.segments[place]
    }

    /// Takes the rounds of another part, which may lie anywhere but not overlap.
    pub fn merge(&mut self, other: &Sequence) {
        self.segments.extend(other.segments.iter().cloned());
        self.join();
    }

    /// Puts segments in order and makes one of those that touch.
    pub fn join(&mut self) {
        self.segments.sort_by_key(|s| s.first);
        let mut joined: Vec<Segment> = Vec::new();
        for segment in self.segments.drain(..) {
            match joined.last_mut() {
                Some(last) if last.end == segment.first => last.append(&segment),
                _ => joined.push(segment),
            }
        }
        self.segments = joined;
    }

    /// Keeps the segments; returns how many rounds they hold.
    pub fn keep(&mut self, tape: &mut Tape<'_>) -> Result<u64, Error> {
        tape.number(&mut self.next, LATEST)?;
        tape.list(&mut self.segments, |tape, segment| segment.keep(tape))?;
        let apart = self.segments.is_sorted_by(|a, b| a.end < b.first);
        tape.check(apart, "a segment that follows those before it")?;
        Ok(self.segments.iter().map(|s| s.end - s.first).sum())
    }

    /// The rounds that both parts hold, if any.
    pub fn overlap(&self, other: &Sequence) -> Option<(u64, u64)> {
        let both = |a: &Segment, b: &Segment| (a.first.max(b.first), a.end.min(b.end));
        let pairs = self.segments.iter().flat_map(|a| other.segments.iter().map(move |b| both(a, b)));
        pairs.filter(|(start, end)| start < end).min()
    }

    /// Those of the next `n` rounds that are already here, if any.
    pub fn held(&self, n: u64) -> Option<(u64, u64)> {
        let end = self.next + n;
        let both = self.segments.iter().map(|s| (s.first.max(self.next), s.end.min(end)));
        both.filter(|(start, end)| start < end).min()
    }

    /// The number of the next round.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Goes on after `n` rounds that were merged.
    pub fn advance(&mut self, n: u64) {
        self.next += n;
    }

    /// The interval at the last round, each end with error probability `tail`, for rewards in `range`.
    pub fn interval(&self, moments: &Moments, tail: f64, range: [f64; 2]) -> Result<[f64; 2], Gap> {
        let [segment] = &self.segments[..] else {
            return Err(Gap::Missing(self.segments.first().map_or(0, |s| if s.first > 0 { 0 } else { s.end })));
        };
        if segment.first > 0 {
            return Err(Gap::Missing(0));
        }
        if segment.size >= LARGEST {
            return Err(Gap::TooLarge);
        }
        let span = range[1] - range[0];
        let low = segment.side(moments, range[0], span, tail);
        let high = segment.side(moments, range[1], -span, tail);
        Ok([range[0] + low * span, range[1] - high * span])
    }
}

impl Segment {
    /// The lower bound of the mean of X = w (r − from) / span, with error probability `tail`.
    fn side(&self, moments: &Moments, from: f64, span: f64, tail: f64) -> f64 {
        let t = self.end as f64;
        let sum = |x: i128| Wide::from(x).value(UNIT);
        let total = (sum(self.p) - from * sum(self.q)) / span;
        // Σ X²
        let square =
            moments.product(WR, WR) - 2.0 * from * moments.product(W, WR) + from * from * moments.product(W, W);
        // Σ X X̂ and Σ X̂², with X̂_t = (P_t − from·Q_t + span/2) / (span·t)
        let two = |x: Wide| x.value(2 * UNIT + INVERSE);
        let one = |x: Wide| x.value(UNIT + INVERSE);
        let product = two(self.yp) - from * two(self.cross)
            + from * from * two(self.wq)
            + 0.5 * span * (one(self.y) - from * one(self.w));
        let two = |x: Wide| x.value(2 * UNIT + INVERSE_SQUARE);
        let one = |x: Wide| x.value(UNIT + INVERSE_SQUARE);
        let guess = two(self.spp) - 2.0 * from * two(self.spq)
            + from * from * two(self.sqq)
            + span * (one(self.sp) - from * one(self.sq))
            + 0.25 * span * span * self.one.value(INVERSE_SQUARE);
        let spread = ((square - 2.0 * product + guess) / (span * span)).max(0.0);
        lower_mean(t, total, spread, -tail.ln())
    }
}

/// The least mean μ ∈ [0, min(1, Σ X / t)] that the wealth does not rule out.
fn lower_mean(t: f64, total: f64, spread: f64, threshold: f64) -> f64 {
    let rules_out = |mean: f64| log_wealth((total - t * mean).max(0.0), spread) > threshold;
    let most = (total / t).min(1.0);
    if !rules_out(0.0) {
        0.0
    } else if rules_out(most) {
        most
    } else {
        halve(0.0, most, rules_out)
    }
}

/// L(s, v) for s ≥ 0 and ρ = 1. With x = s + v + 1, a = v + 1 and λ = x/a, Stirling's formula turns the difference of
/// large terms into a (λ − 1 − ln λ).
fn log_wealth(s: f64, v: f64) -> f64 {
    let (a, x) = (v + 1.0, s + v + 1.0);
    let excess = s / a;
    let bend = a * (excess - excess.ln_1p());
    // −ρ + ρ ln ρ − ln γ(1, 1), γ(1, 1) = 1 − 1/e
    let constant = -1.0 - (-(-1f64).exp()).ln_1p();
    bend - 0.5 * (a / std::f64::consts::TAU).ln() + stirling_rest(a) + ln_lower_gamma(a, x, bend) + constant
}

/// ln P(a, x), the regularised lower incomplete gamma function, for x ≥ a; `bend` = a (λ − 1 − ln λ), λ = x/a.
fn ln_lower_gamma(a: f64, x: f64, bend: f64) -> f64 {
    if bend > 40.0 {
        0.0 // the upper tail is below e⁻⁴⁰
    } else if a > 1e6 {
        (-upper_gamma_of_large(a, x, bend)).ln_1p()
    } else {
        ln_lower_gamma_series(a, x, bend)
    }
}

/// x^a e^−x / Γ(a + 1) · Σ_k x^k / ((a + 1) … (a + k)); O(√a) terms.
fn ln_lower_gamma_series(a: f64, x: f64, bend: f64) -> f64 {
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    while term > 1e-17 * sum {
        k += 1.0;
        term *= x / (a + k);
        sum += term;
    }
    f64::ln(sum) - bend - 0.5 * (std::f64::consts::TAU * a).ln() - stirling_rest(a)
}

/// 1 − P(a, x) by the first term of Temme's expansion; the next is below 1e-12 for a above a million.
fn upper_gamma_of_large(a: f64, x: f64, bend: f64) -> f64 {
    let (excess, eta) = (x / a - 1.0, (2.0 * bend / a).sqrt());
    let first = if eta < 1e-4 { -1.0 / 3.0 + eta / 12.0 } else { 1.0 / excess - 1.0 / eta };
    0.5 * erfc(bend.sqrt()) + first * (-bend).exp() / (std::f64::consts::TAU * a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_incomplete_gamma_function_meet() {
        for a in [1e6, 1e7] {
            for deviations in [0.0, 0.01, 0.5, 1.0, 3.0, 6.0] {
                let x = a + deviations * f64::sqrt(a);
                let excess = x / a - 1.0;
                let bend = a * (excess - excess.ln_1p());
                let (series, large) = (ln_lower_gamma_series(a, x, bend), -upper_gamma_of_large(a, x, bend));
                // a million rounded terms
                assert!((series - large.ln_1p()).abs() < 1e-10, "{a} {x}: {series}, {}", large.ln_1p());
            }
        }
    }

    #[test]
    fn the_wealth_is_that_of_its_definition() {
        // SciPy 1.17.1: s + v − (v + 1) ln(s + v + 1) + ln gammainc(v + 1, s + v + 1) + gammaln(v + 1) − ln gammainc(1,
        // 1)
        assert!((log_wealth(3.0, 5.0) - -0.06012876391341443).abs() < 1e-9);
        assert!((log_wealth(0.0, 2.0) - -0.6942570368345229).abs() < 1e-9);
        assert!((log_wealth(40.0, 100.0) - 4.373131615313304).abs() < 1e-9);
        assert!((log_wealth(500.0, 20000.0) - 1.5730697817752515).abs() < 1e-9);
        assert!((log_wealth(12.5, 0.0) - 10.355984088982671).abs() < 1e-9);
    }

    #[test]
    fn rounds_in_parts_have_the_numbers_of_rounds_in_one() {
        let round = |t: u64| (f64::from((t % 5) as u32) / 3.0, f64::from((t % 7) as u32) / 9.0 - 0.3);
        let part = |rounds: std::ops::Range<u64>| {
            let mut part = Sequence::starting_at(rounds.start);
            rounds.for_each(|t| part.add(round(t).0, round(t).1));
            part
        };
        let mut merged = part(70..100);
        merged.merge(&part(0..30));
        merged.merge(&part(30..70));
        assert_eq!(merged.segments, part(0..100).segments);
    }
}
