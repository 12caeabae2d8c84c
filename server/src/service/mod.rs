//! What the server does, without HTTP: rank, reward, activate, models, statistics.

mod ids;
mod models;
mod rank;
mod recent;
mod stats;

pub use models::{ModelInfo, Models};
pub use rank::{Bounds, RankAnswer, Ranked};
pub use recent::RecentDecision;
pub use stats::{Stats, Watched};

use std::str::FromStr;
use std::time::Duration;

use neuralcb::Seed;
use thiserror::Error;

use crate::clock::now;
use crate::decide::{DecideError, Exploration};
use crate::journal::{Activation, Journal, Record, Reward, Unlogged};
use crate::metrics::Metrics;

/// Who decides what is played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// The policy, with exploration.
    #[default]
    Online,
    /// The caller: its first action is played, and what the policy would have chosen is logged.
    Apprentice,
    /// The caller's own distribution; what the policy would have chosen is logged.
    Logging,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        match text {
            "online" => Ok(Mode::Online),
            "apprentice" => Ok(Mode::Apprentice),
            "logging" => Ok(Mode::Logging),
            _ => Err("must be online, apprentice or logging".to_owned()),
        }
    }
}

/// What happens to a decision that cannot be logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLogFailure {
    /// It is refused.
    #[default]
    Refuse,
    /// It is given all the same, and counted.
    Serve,
}

impl FromStr for OnLogFailure {
    type Err = String;

    fn from_str(text: &str) -> Result<OnLogFailure, String> {
        match text {
            "refuse" => Ok(OnLogFailure::Refuse),
            "serve" => Ok(OnLogFailure::Serve),
            _ => Err("must be refuse or serve".to_owned()),
        }
    }
}

/// How decisions are made.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// Who decides.
    pub mode: Mode,
    /// How the policy's choice is left.
    pub exploration: Exploration,
    /// The seed of all draws.
    pub seed: u64,
    /// What happens to a decision that cannot be logged.
    pub on_log_failure: OnLogFailure,
    /// The most actions of a request.
    pub max_actions: usize,
    /// The most decisions of one request.
    pub max_batch: usize,
    /// How long the statistics wait for a reward.
    pub wait: Duration,
    /// What the statistics take where none has come by then.
    pub default_reward: f64,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        ServiceConfig {
            mode: Mode::Online,
            exploration: Exploration::default(),
            seed: 1,
            on_log_failure: OnLogFailure::Refuse,
            max_actions: 1000,
            max_batch: 1000,
            wait: Duration::from_secs(600),
            default_reward: 0.0,
        }
    }
}

/// Why a request is not served.
#[derive(Debug, Error)]
pub enum Refused {
    /// It cannot be used as it is.
    #[error(transparent)]
    Request(#[from] DecideError),
    /// It could not be logged.
    #[error(transparent)]
    Unlogged(#[from] Unlogged),
    /// There is no model of that name.
    #[error("there is no model `{name}`: the server has {known}; start it with --policy {name}=FILE to add one")]
    NoModel {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
}

/// The service behind every connection.
pub struct Service {
    pub(crate) config: ServiceConfig,
    pub(crate) models: Models,
    pub(crate) journal: Journal,
    pub(crate) metrics: Metrics,
    pub(crate) stats: Stats,
    seed: Seed,
    ids: ids::Ids,
}

impl Service {
    /// A service that writes to the journal that `journal` opens for a server of that name.
    pub fn new<E>(
        config: ServiceConfig,
        models: Models,
        journal: impl FnOnce(String) -> Result<Journal, E>,
    ) -> Result<Service, E> {
        let stats = Stats::new(config.wait, config.default_reward);
        let (seed, ids, metrics) = (Seed::new(config.seed), ids::Ids::new(), Metrics::default());
        let journal = journal(ids.server())?;
        Ok(Service { config, models, journal, metrics, stats, seed, ids })
    }

    /// A reward of an event, perhaps of another server's.
    pub async fn reward(&self, event: String, value: f64, id: Option<String>) -> Result<(), Refused> {
        let reward = Reward { event, at: now(), value, id };
        let text = serde_json::to_vec(&Record::Reward(reward.clone())).expect("plain data");
        self.journal.append(&[text]).await?;
        if let Some(lag) = self.stats.reward(&reward.event, reward.at, value) {
            self.metrics.reward_lag(Duration::from_millis(lag));
        }
        Ok(())
    }

    /// A deferred event was shown to its user.
    pub async fn activate(&self, event: String) -> Result<(), Refused> {
        let text = serde_json::to_vec(&Record::Activation(Activation { event: event.clone(), at: now() }));
        self.journal.append(&[text.expect("plain data")]).await?;
        self.stats.activate(&event);
        Ok(())
    }

    /// Writes what waits and closes the log.
    pub fn stop(&self) {
        self.journal.stop();
    }
}
