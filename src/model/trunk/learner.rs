//! A learner on a trunk in training: it keeps the rounds it reads, and fits to all of them when a model is asked for.

use std::ops::Range;
use std::sync::Arc;

use super::{TrunkConfig, TrunkModel};
use crate::archive::{Archive, Keep};
use crate::data::{Contexts, Eligible, Encoding, Layout, LoggedData, Pair};
use crate::error::Error;
use crate::model::{Learner, RewardModel};
use crate::seed::Seed;
use crate::watch::Watch;

/// The rounds so far, and what they teach.
pub struct TrunkLearner {
    config: TrunkConfig,
    layout: Layout,
    seed: Seed,
    /// The rounds in the order in which they came.
    x: Vec<f32>,
    /// Where the eligible actions of each round begin, and the last end.
    offsets: Vec<u64>,
    eligible: Vec<u32>,
    actions: Vec<u32>,
    rewards: Vec<f64>,
    /// Empty as soon as a round has none.
    propensities: Vec<f64>,
    fitted: Option<Arc<TrunkModel>>,
    watch: Arc<Watch>,
}

impl TrunkLearner {
    /// Checks the settings. The seed decides initial weights, order and held-out rounds.
    pub fn new(config: TrunkConfig, layout: Layout, seed: Seed) -> Result<Self, Error> {
        config.check()?;
        Ok(TrunkLearner {
            config,
            layout,
            seed,
            x: Vec::new(),
            offsets: vec![0],
            eligible: Vec::new(),
            actions: Vec::new(),
            rewards: Vec::new(),
            propensities: Vec::new(),
            fitted: None,
            watch: Arc::default(),
        })
    }

    /// What the rounds so far teach.
    pub fn fit(&mut self) -> Result<Arc<TrunkModel>, Error> {
        if self.fitted.is_none() {
            self.fitted = Some(Arc::new(TrunkModel::fit(&self.config, &self.log()?, self.seed, &self.watch)?));
        }
        Ok(Arc::clone(self.fitted.as_ref().expect("just fitted")))
    }

    /// The rounds so far as a log.
    fn log(&self) -> Result<LoggedData, Error> {
        let all = self.eligible.len() == self.actions.len() * self.layout.n_actions;
        let eligible = if all {
            Eligible::All
        } else {
            let offsets = self.offsets.iter().map(|&offset| offset as usize).collect();
            Eligible::Some { offsets, actions: self.eligible.clone() }
        };
        let contexts = Contexts::new(self.layout, self.x.clone(), eligible)?;
        let known = self.propensities.len() == self.actions.len();
        let propensities = known.then(|| self.propensities.clone());
        LoggedData::new(contexts, self.actions.clone(), self.rewards.clone(), propensities)
    }

    fn push(&mut self, eligible: impl Iterator<Item = u32>, action: u32, reward: f64, propensity: Option<f64>) {
        if let (Some(p), true) = (propensity, self.propensities.len() == self.actions.len()) {
            self.propensities.push(p);
        }
        self.eligible.extend(eligible);
        self.offsets.push(self.eligible.len() as u64);
        self.actions.push(action);
        self.rewards.push(reward);
        self.fitted = None;
    }
}

impl Learner for TrunkLearner {
    /// A round of which nothing but the chosen pair is known: with one context per round all actions count as eligible,
    /// with a vector per action that one alone.
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        self.x.extend_from_slice(chosen.x);
        let action = chosen.action as u32;
        let eligible = match self.layout.encoding {
            Encoding::Disjoint => 0..self.layout.n_actions as u32,
            Encoding::PerAction => action..action + 1,
        };
        self.push(eligible, action, reward, None);
    }

    fn read(&mut self, log: &LoggedData, rounds: Range<usize>) {
        let contexts = log.contexts();
        self.x.extend_from_slice(contexts.rows(rounds.clone()));
        for t in rounds {
            let eligible = (0..contexts.pairs(t).len()).map(|place| contexts.action(t, place) as u32);
            self.push(eligible, log.actions()[t], log.rewards()[t], log.propensities().map(|p| p[t]));
        }
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        if archive.keep() == Keep::Policy {
            if archive.is_reading() {
                self.fitted = Some(Arc::new(TrunkModel::restore(&self.config, self.layout, archive)?));
                return Ok(());
            }
            let mut model = TrunkModel::clone(&*self.fit()?);
            model.config().capacity.expect("known in a fitted model").archived(archive)?;
            return model.archive(archive);
        }
        archive.list("log.context", self.layout.dim, &mut self.x)?;
        archive.list("log.offset", 1, &mut self.offsets)?;
        archive.list("log.eligible", 1, &mut self.eligible)?;
        archive.list("log.action", 1, &mut self.actions)?;
        archive.list("log.reward", 1, &mut self.rewards)?;
        archive.list("log.propensity", 1, &mut self.propensities)?;
        if archive.is_reading() && !self.actions.is_empty() {
            self.log()?; // the door that checks
        }
        self.fitted = None;
        Ok(())
    }

    fn watch(&mut self, watch: &Arc<Watch>) {
        self.watch = Arc::clone(watch);
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        Ok(self.fit()?)
    }
}
