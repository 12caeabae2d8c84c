//! NeuralLinLCB (Algorithm 4) and, at β = 0, NeuralLinGreedy (Algorithm 5): ridge regression on the gradient of an
//! untrained network.
//!
//! φ(u) = vec(∇f_{W⁽⁰⁾}(u)),  Λ = λI + Σ φφᵀ,  θ = Λ⁻¹ Σ φ r,  mean(u) = ⟨θ, φ(u)⟩,  width(u) = ‖φ(u)‖_{Λ⁻¹}
//!
//! With a diagonal Λ the feature vector is never built: ⟨θ, φ⟩ = Σ uᵀ Θ_l v over the layers' factors.
//! The released code scales φ by m^{−1/2}; here that is `scale_features`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lambda::{Covariance, Diagonal, Lambda};
use super::scorer::{self, Scorer};
use super::{Learner, RewardModel};
use crate::archive::Archive;
use crate::data::{Layout, Pair};
use crate::error::{Error, regularisation};
use crate::net::{Net, NetConfig, Number, Params, Tangents};
use crate::seed::Seed;

/// Settings of NeuralLinLCB.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `net` | L = 2, m = 20, layer norm | the network at initialisation | see [`NetConfig`] |
/// | `lambda` | 0.1 | λ of the ridge regression | > 0 |
/// | `covariance` | diagonal | the form of Λ | |
/// | `scale_features` | false | φ = m^{−1/2} ∇f, as in the released code | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NeuralLinearConfig {
    /// The network.
    pub net: NetConfig,
    /// λ.
    pub lambda: f64,
    /// The form of Λ.
    pub covariance: Covariance,
    /// Whether features are scaled by m^{−1/2}.
    pub scale_features: bool,
}

impl Default for NeuralLinearConfig {
    fn default() -> Self {
        NeuralLinearConfig {
            net: NetConfig::default(),
            lambda: 0.1,
            covariance: Covariance::Diagonal,
            scale_features: false,
        }
    }
}

impl NeuralLinearConfig {
    /// Λ and Σφr at their start; the exact forms of Λ keep their own Σφr.
    fn start<T: Number>(&self, net: &Net, layout: Layout) -> (Lambda<T>, Option<Diagonal<T>>) {
        let scale = if self.scale_features { 1.0 / (net.width() as f64).sqrt() } else { 1.0 };
        let by_action = self.covariance == Covariance::PerAction;
        let diagonal = !matches!(self.covariance, Covariance::Exact(_));
        let target = diagonal.then(|| Diagonal::new(net, layout, T::ZERO, scale, by_action));
        (Lambda::new(self.covariance, net, layout, self.lambda, scale), target)
    }

    /// The frozen model that a policy's arrays hold.
    pub(super) fn restore<T: Number>(&self, layout: Layout, archive: &mut Archive) -> Result<Scorer<T>, Error> {
        regularisation(self.lambda)?;
        let net = Net::new(self.net.clone(), layout)?;
        let (lambda, target) = self.start(&net, layout);
        Scorer::restore(net, layout, "initial", lambda, target, true, archive)
    }
}

/// The ridge regression on gradient features in training.
#[derive(Debug, Clone)]
pub struct NeuralLinear<T> {
    net: Net,
    layout: Layout,
    weights: Params<T>,
    lambda: Lambda<T>,
    /// Σφr in the shape of a diagonal Λ; the exact forms keep their own.
    target: Option<Diagonal<T>>,
    one: Tangents<T>,
}

impl<T: Number> NeuralLinear<T> {
    /// Checks the settings and draws W⁽⁰⁾ (stream `init`, the same as [`super::Neural`] from the same seed).
    pub fn new(config: NeuralLinearConfig, layout: Layout, seed: Seed) -> Result<Self, Error> {
        let net = Net::new(config.net.clone(), layout)?;
        let weights = net.init(&mut seed.stream("init"));
        Self::with_weights(config, layout, weights)
    }

    /// As [`NeuralLinear::new`], from given weights.
    pub fn with_weights(config: NeuralLinearConfig, layout: Layout, weights: Params<T>) -> Result<Self, Error> {
        regularisation(config.lambda)?;
        let net = Net::new(config.net.clone(), layout)?;
        let (lambda, target) = config.start(&net, layout);
        Ok(NeuralLinear { lambda, target, one: Tangents::new(&net), net, layout, weights })
    }
}

impl<T: Number> Learner for NeuralLinear<T> {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        let NeuralLinear { net, weights, lambda, target, one, .. } = self;
        let (action, place) = (chosen.action, net.place(chosen.action));
        net.tangents_of(weights, place, chosen.x, one);
        lambda.add(net, one, place.0, action, reward);
        if let Some(target) = target {
            let e = T::of(reward * target.scale_squared.sqrt());
            target.accumulate(net, one, place.0, action, e, false);
        }
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        let NeuralLinear { net, weights, lambda, target, .. } = self;
        scorer::archive(net, ("initial", weights), lambda, target.as_mut(), archive)
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        let (net, weights, target) = (self.net.clone(), self.weights.clone(), self.target.as_ref());
        Ok(Arc::new(Scorer::new(net, self.layout, weights, &mut self.lambda, target, true)?))
    }
}
