//! The theory's numbers for a log: nK, λ_0, S, d̃, κ, and what Theorem 4.1 makes of them.

use neuralcb::model::{NeuralConfig, NeuralLinearConfig};
use neuralcb::policy::{Returned, learn};
use neuralcb::theory::{Gammas, LanczosConfig, LogCoverage, Ntk, NtkConfig, Points, Theorem};
use neuralcb::{Error, ModelConfig};

use super::settings::Settings;
use super::study::Study;
use crate::error::ExperimentError;

/// Contexts up to which λ_0, S and d̃ are exact; beyond, d̃ is approximate and λ_0 that of the first contexts.
pub(super) const MAX_EXACT: usize = 4_000;

/// H over the first n rounds.
#[derive(Debug, Clone)]
pub(super) struct Spectrum {
    pub n: usize,
    /// Different contexts in them.
    pub n_contexts: usize,
    pub effective_dimension: f64,
    /// Half of a 95 % interval of d̃; `None` where it is exact.
    pub half_width: Option<f64>,
    /// λ_0, where H is small enough to be factored and not singular.
    pub lambda_0: Result<f64, Error>,
}

/// H over the halves of the log, as far as the settings allow.
pub(super) fn spectra(settings: &Settings, study: &Study) -> Result<Vec<Spectrum>, Error> {
    let allowed = |n: &usize| study.pairs(*n) <= settings.max_contexts;
    let rounds: Vec<usize> = settings.halves().into_iter().filter(allowed).collect();
    let Some(&most) = rounds.last() else {
        return Err(Error::TooManyContexts { got: study.pairs(settings.halves()[0]), limit: settings.max_contexts });
    };
    let points = Points::all(&study.log.contexts().slice(0..most))?.normalised().distinct();
    let config = NtkConfig { depth: settings.depth, max_exact: MAX_EXACT, ..NtkConfig::default() };
    let h = Ntk::new(&points, &config)?;
    let lambda = settings.lambda();
    rounds
        .into_iter()
        .map(|n| {
            let n_contexts = (0..points.len()).take_while(|&i| points.origin(i).0 < n).count();
            let part = h.leading(n_contexts);
            let (effective_dimension, half_width) = if n_contexts <= MAX_EXACT {
                (part.effective_dimension(lambda)?, None)
            } else {
                let near = part.approximate(
                    lambda,
                    &LanczosConfig { probes: 10, seed: settings.seed, ..LanczosConfig::default() },
                )?;
                (near.value / part.scale(lambda), Some(near.half_width() / part.scale(lambda)))
            };
            Ok(Spectrum { n, n_contexts, effective_dimension, half_width, lambda_0: part.lambda_0() })
        })
        .collect()
}

/// λ_0 at n: the one of the most contexts for which it could be computed. H grows with n, so that this is an upper
/// bound.
pub(super) fn lambda_0(spectra: &[Spectrum], n: usize) -> Result<f64, Error> {
    let upto = spectra.iter().rev().filter(|s| s.n <= n);
    let found = upto.clone().find_map(|s| s.lambda_0.as_ref().ok().copied());
    match (found, spectra[0].lambda_0.clone()) {
        (Some(lambda_0), _) => Ok(lambda_0),
        (None, first) => first,
    }
}

/// What the theory says about a log.
#[derive(Debug, Clone)]
pub struct Quantities {
    /// n, the rounds that H covers.
    pub n: usize,
    /// Contexts in them, and how many of them differ in direction.
    pub n_contexts: (usize, usize),
    /// λ_0 of Assumption 4.1, with the rounds that it covers.
    pub lambda_0: Result<(f64, usize), Error>,
    /// S = ‖h‖_{H⁻¹} over the same rounds, where the expected rewards are known.
    pub s: Option<f64>,
    /// d̃ and, where it is approximate, half of its 95 % interval.
    pub effective_dimension: (f64, Option<f64>),
    /// κ, and how it is known.
    pub kappa: Option<(f64, String)>,
    /// Theorem 4.1 with its schedules.
    pub theorem: Option<Theorem>,
}

impl Quantities {
    /// Measures; `spectra` are those of the study.
    pub(super) fn of(settings: &Settings, study: &Study, spectra: &[Spectrum]) -> Result<Self, ExperimentError> {
        let last = &spectra[spectra.len() - 1];
        let exact = spectra.iter().rev().find_map(|s| s.lambda_0.clone().ok().map(|value| (value, s.n)));
        let lambda_0 = exact.ok_or_else(|| match &last.lambda_0 {
            Err(error) => error.clone(),
            Ok(_) => unreachable!("it would have been found"),
        });
        let theorem =
            lambda_0.as_ref().ok().map(|&(value, _)| settings.theorem(last.n, last.n_contexts.max(last.n), value));
        Ok(Quantities {
            n: last.n,
            n_contexts: (study.pairs(last.n), last.n_contexts),
            s: lambda_0.as_ref().ok().and_then(|&(_, n)| complexity(settings, study, n).transpose()).transpose()?,
            lambda_0,
            effective_dimension: (last.effective_dimension, last.half_width),
            kappa: kappa(study)?,
            theorem,
        })
    }

    /// Γ_1, …, Γ_5 and the bounds: clean, and for this width.
    pub fn bounds(&self) -> Option<(Gammas, f64, f64)> {
        let (theorem, (kappa, _)) = (self.theorem.as_ref()?, self.kappa.as_ref()?);
        let d = self.effective_dimension.0;
        Some((theorem.gammas(), theorem.bound(d, *kappa), theorem.finite_width(d, *kappa)))
    }
}

/// S over the first n rounds.
fn complexity(settings: &Settings, study: &Study, n: usize) -> Result<Option<f64>, Error> {
    let Some(truth) = &study.truth else { return Ok(None) };
    let contexts = study.log.contexts();
    let points = Points::all(&contexts.slice(0..n))?.normalised().distinct();
    let expected = |i: usize| {
        let (round, action) = points.origin(i);
        truth.expected[contexts.first_pair(round) + contexts.place(round, action).expect("the pair was offered")]
    };
    let h: Vec<f64> = (0..points.len()).map(expected).collect();
    let config = NtkConfig { depth: settings.depth, max_exact: MAX_EXACT, ..NtkConfig::default() };
    Ntk::new(&points, &config)?.complexity(&h).map(Some)
}

/// κ of the truth, or what the log says about it for the policy that NeuralLinLCB learns from it.
fn kappa(study: &Study) -> Result<Option<(f64, String)>, Error> {
    if let Some(truth) = &study.truth {
        return Ok(Some((
            truth.coverage.kappa,
            "the behaviour policy's probabilities and the true best action".into(),
        )));
    }
    if study.log.propensities().is_none() {
        return Ok(None);
    }
    let config =
        ModelConfig::NeuralLinear(NeuralLinearConfig { net: NeuralConfig::default().net, ..Default::default() });
    let mut learner = config.learner(study.log.contexts().layout(), study.seed)?;
    let policy = learn(learner.as_mut(), &study.log, 1.0, Returned::Latest, study.seed)?;
    let found = LogCoverage::of(&study.log, &policy.choose(study.log.contexts())?)?;
    let how = format!(
        "at least, from {} rounds in which the log agrees with the policy NeuralLinLCB learns from it; mean weight {:.3} ± {:.3}",
        found.agreeing,
        found.mean_weight,
        1.96 * found.standard_error
    );
    Ok(Some((found.kappa_at_least, how)))
}
