//! Each estimate as a function of the means of a round's terms, and the linear form that moves with it.
//!
//! A mean is its own linear form. A ratio V̂ = ⟨x⟩/⟨w⟩ moves like ⟨(x − V̂ w)/⟨w⟩⟩ to first order (the delta method),
//! so the spread of that form over the rounds gives its standard error.

use super::config::Estimator;
use super::moments::{DR_CLIP, DROS, IPS_CLIP, R, SG_DR, SG_IPS, SWITCH_DR, TERMS, Terms, V, W, WE, WR};

/// The coefficients of the linear form of an estimator at the given means; `None` where it has no value or no such
/// form.
pub(crate) fn linear_form(estimator: Estimator, means: &Terms) -> Option<Terms> {
    let mut a = [0.0; TERMS];
    let ratio = |a: &mut Terms, top: usize| {
        let w = means[W];
        (a[top], a[W]) = (1.0 / w, -means[top] / w / w);
        w > 0.0
    };
    let known = match estimator {
        Estimator::Snips => ratio(&mut a, WR),
        Estimator::Sndr => {
            a[V] = 1.0;
            ratio(&mut a, WE)
        }
        Estimator::CressieRead => false,
        mean => {
            mean_terms(mean).iter().for_each(|&term| a[term] = 1.0);
            true
        }
    };
    known.then_some(a)
}

/// V̂ from the means; `None` where no weight is above 0 (ratios), or where it is no function of them (`cressie-read`).
pub(crate) fn value(estimator: Estimator, means: &Terms) -> Option<f64> {
    let ratio = |top: usize| (means[W] > 0.0).then(|| means[top] / means[W]);
    match estimator {
        Estimator::Snips => ratio(WR),
        Estimator::Sndr => ratio(WE).map(|ratio| means[V] + ratio),
        Estimator::CressieRead => None,
        mean => Some(mean_terms(mean).iter().map(|&term| means[term]).sum()),
    }
}

/// Whether it is a plain mean over the rounds, for which the inequalities hold.
pub(crate) fn is_mean(estimator: Estimator) -> bool {
    !matches!(estimator, Estimator::Snips | Estimator::Sndr | Estimator::CressieRead)
}

/// The terms whose sum a mean-type estimator averages.
fn mean_terms(estimator: Estimator) -> &'static [usize] {
    match estimator {
        Estimator::Dm => &[V],
        Estimator::Ips => &[WR],
        Estimator::IpsClip => &[IPS_CLIP],
        Estimator::Dr => &[V, WE],
        Estimator::DrClip => &[DR_CLIP],
        Estimator::SwitchDr => &[SWITCH_DR],
        Estimator::Dros => &[DROS],
        Estimator::SgIps => &[SG_IPS],
        Estimator::SgDr => &[SG_DR],
        Estimator::Snips | Estimator::Sndr | Estimator::CressieRead => &[],
    }
}

/// All terms that an estimator reads.
pub(crate) fn terms_of(estimator: Estimator) -> &'static [usize] {
    match estimator {
        Estimator::Snips => &[WR, W],
        Estimator::Sndr => &[V, WE, W],
        mean => mean_terms(mean),
    }
}

/// The linear form of the behaviour policy's value, ⟨r⟩.
pub(crate) fn behaviour_form() -> Terms {
    std::array::from_fn(|i| f64::from(u8::from(i == R)))
}
