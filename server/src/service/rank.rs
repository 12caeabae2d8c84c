//! Rank: one request, one decision, on the disk before it is answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use neuralcb_logs::score::Explained;
use serde::Serialize;

use super::stats::Watched;
use super::{Mode, OnLogFailure, Refused, Service};
use crate::clock::now;
use crate::decide::{DecideError, Judged, Model, RankRequest, draw};
use crate::journal::{Decision, Offered, Record};

/// The answer to a request to rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankAnswer {
    /// Every action, the one to play first, then by the policy's bounds or else by probability.
    pub ranking: Vec<Ranked>,
    /// The event's name, for its reward.
    pub event_id: String,
    /// The action to play.
    pub reward_action_id: String,
    /// The model that decided.
    pub model: String,
    /// False where the log failed and the decision is given all the same.
    #[serde(skip_serializing_if = "is_true")]
    pub logged: bool,
}

/// An action of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// Its name.
    pub id: String,
    /// The probability with which it was played; 0 of one that is excluded, or unknown to the policy.
    pub probability: f64,
    /// Mean, width and bound, where they were asked for and there is a reward model.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Bounds>,
}

/// What a reward model says of an action.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// The estimated mean of the reward.
    pub mean: f64,
    /// The width of its confidence interval.
    pub width: f64,
    /// Mean − β·width.
    pub bound: f64,
}

impl From<Explained> for Bounds {
    fn from(explained: Explained) -> Bounds {
        Bounds { mean: explained.mean, width: explained.width, bound: explained.bound }
    }
}

fn is_true(value: &bool) -> bool {
    *value
}

/// A decision that is made and not yet logged.
struct Made {
    answer: RankAnswer,
    record: Vec<u8>,
    watched: Watched,
}

impl Service {
    /// Decides, logs, answers.
    pub async fn rank(&self, request: RankRequest, explain: bool) -> Result<RankAnswer, Refused> {
        let made = self.decide(request, explain, &self.models.all())?;
        Ok(self.log(vec![made]).await?.swap_remove(0))
    }

    /// Many decisions, logged together: all or none.
    pub async fn rank_all(&self, requests: Vec<RankRequest>, explain: bool) -> Result<Vec<RankAnswer>, Refused> {
        let models = self.models.all();
        let decide = |(i, request)| {
            self.decide(request, explain, &models)
                .map_err(|error| DecideError::request(format!("requests[{i}]: {error}")))
        };
        // Much work at once must not keep others waiting.
        let made =
            tokio::task::block_in_place(|| requests.into_iter().enumerate().map(decide).collect::<Result<_, _>>())?;
        self.log(made).await
    }

    async fn log(&self, made: Vec<Made>) -> Result<Vec<RankAnswer>, Refused> {
        let (mut answers, mut records, mut watched) = (Vec::new(), Vec::new(), Vec::new());
        for one in made {
            answers.push(one.answer);
            records.push(one.record);
            watched.push(one.watched);
        }
        if let Err(error) = self.journal.append(&records).await {
            self.metrics.unlogged(records.len() as u64);
            if self.config.on_log_failure == OnLogFailure::Refuse {
                return Err(error.into());
            }
            answers.iter_mut().for_each(|answer| answer.logged = false);
        }
        for (one, record) in watched.into_iter().zip(records) {
            self.metrics.decision(&one);
            self.stats.decision(one, record);
        }
        Ok(answers)
    }

    fn decide(&self, mut request: RankRequest, explain: bool, models: &[Arc<Model>]) -> Result<Made, DecideError> {
        let (champion, challengers) = models.split_first().expect("a service has a model");
        request.fill(champion.actions());
        if request.actions.len() > self.config.max_actions {
            let (got, most) = (request.actions.len(), self.config.max_actions);
            return Err(DecideError::request(format!("`actions` must hold at most {most} (--max-actions), got {got}")));
        }
        let open: Vec<usize> = (0..request.actions.len()).filter(|&i| !request.actions[i].excluded).collect();
        if open.is_empty() {
            return Err(DecideError::request("all actions are excluded: leave at least one"));
        }
        let round = request.round(&open)?;
        let shadowed = !challengers.is_empty();
        let again = shadowed.then(|| round.clone());
        let judged = champion.judge(round, request.beta)?;

        // The policy plays what it knows; a caller's own policy plays whatever it offers.
        let online = self.config.mode == Mode::Online;
        let eligible: Vec<usize> = (0..open.len()).filter(|&i| !online || judged.known[i]).collect();
        let place = |i: usize| eligible.iter().position(|&e| e == i);
        let choice = judged.choice.and_then(place);
        let probabilities = self.probabilities(&request, &open, &eligible, &judged, choice)?;
        let event = request.event.take().unwrap_or_else(|| self.ids.event());
        let chosen = draw(&probabilities, self.seed, &event);

        let mut shadow = BTreeMap::new();
        if !online && let Some(choice) = choice {
            shadow.insert(champion.name().to_owned(), choice);
        }
        for challenger in challengers {
            let Some(round) = again.clone() else { break };
            match challenger.judge(round, None) {
                Ok(judged) => shadow.extend(judged.choice.and_then(place).map(|i| (challenger.name().to_owned(), i))),
                Err(_) => self.metrics.shadow_failed(challenger.name()),
            }
        }

        let (at, explored) = (now(), online && choice.is_some_and(|choice| choice != chosen));
        let names: Vec<&str> = eligible.iter().map(|&i| request.actions[open[i]].id.as_str()).collect();
        // Without a choice of its own a policy plays as it is played.
        let same = |name: &str| match name == champion.name() {
            true => choice.is_none_or(|choice| choice == chosen),
            false => shadow.get(name) == Some(&chosen),
        };
        let watched = Watched {
            event: event.clone(),
            at,
            model: champion.name().to_owned(),
            action: names[chosen].to_owned(),
            probability: probabilities[chosen],
            explored,
            agreed: (!online).then(|| choice == Some(chosen)),
            deferred: request.deferred,
            same: models.iter().map(|model| (model.name().to_owned(), same(model.name()))).collect(),
        };
        let answer =
            answer(&request, &open, &eligible, &judged, &probabilities, chosen, explain, &event, champion.name());
        let actions = eligible.iter().map(|&i| {
            let action = &mut request.actions[open[i]];
            Offered { id: std::mem::take(&mut action.id), features: action.features.take() }
        });
        let record = Decision {
            actions: actions.collect(),
            context: request.context,
            event,
            at,
            chosen,
            probabilities,
            model: champion.name().to_owned(),
            policy: champion.digest().to_owned(),
            beta: request.beta,
            deferred: request.deferred,
            shadow,
        };
        let record = serde_json::to_vec(&Record::Decision(Box::new(record))).expect("plain data");
        Ok(Made { answer, record, watched })
    }

    /// The probability of each eligible action.
    fn probabilities(
        &self,
        request: &RankRequest,
        open: &[usize],
        eligible: &[usize],
        judged: &Judged,
        choice: Option<usize>,
    ) -> Result<Vec<f64>, DecideError> {
        match self.config.mode {
            Mode::Online => {
                let bound = |i: usize| judged.explained[eligible[i]].map(|e: Explained| e.bound);
                Ok(self.config.exploration.probabilities(eligible.len(), choice, bound))
            }
            Mode::Apprentice => Ok((0..eligible.len()).map(|i| f64::from(u8::from(i == 0))).collect()),
            Mode::Logging => {
                let given: Option<Vec<f64>> = eligible.iter().map(|&i| request.actions[open[i]].probability).collect();
                let sum = given.as_ref().map_or(0.0, |given| given.iter().sum::<f64>());
                given.filter(|_| (sum - 1.0).abs() <= 1e-6).ok_or_else(|| {
                    DecideError::request(
                        "in logging mode every action that is not excluded needs a `probability`, and they must \
                         sum to 1",
                    )
                })
            }
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn answer(
    request: &RankRequest,
    open: &[usize],
    eligible: &[usize],
    judged: &Judged,
    probabilities: &[f64],
    chosen: usize,
    explain: bool,
    event: &str,
    model: &str,
) -> RankAnswer {
    let mut ranking: Vec<(bool, f64, Ranked)> = Vec::with_capacity(request.actions.len());
    let mut of = vec![(0.0, None, false); request.actions.len()];
    for (i, &place) in open.iter().enumerate() {
        of[place].1 = judged.explained[i];
    }
    for (i, &e) in eligible.iter().enumerate() {
        of[open[e]].0 = probabilities[i];
        of[open[e]].2 = i == chosen;
    }
    for (action, (probability, explained, first)) in request.actions.iter().zip(of) {
        let by = explained.map_or(probability, |e: Explained| e.bound);
        let explained = explained.filter(|_| explain).map(Bounds::from);
        ranking.push((
            first,
            if action.excluded { f64::NEG_INFINITY } else { by },
            Ranked { id: action.id.clone(), probability, explained },
        ));
    }
    ranking.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    RankAnswer {
        reward_action_id: ranking[0].2.id.clone(),
        ranking: ranking.into_iter().map(|(_, _, ranked)| ranked).collect(),
        event_id: event.to_owned(),
        model: model.to_owned(),
        logged: true,
    }
}
