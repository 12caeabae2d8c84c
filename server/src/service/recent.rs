//! Recent decisions, judged again: what the champion thinks of them now.

use serde::Serialize;

use super::Service;
use super::rank::Bounds;
use crate::decide::round_of;
use crate::journal::Record;

/// A recent decision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecentDecision {
    event_id: String,
    at: u64,
    action: String,
    probability: f64,
    reward: Option<f64>,
    /// What the champion would choose.
    choice: Option<String>,
    actions: Vec<RecentAction>,
}

#[derive(Debug, Serialize)]
struct RecentAction {
    id: String,
    #[serde(flatten)]
    bounds: Option<Bounds>,
}

impl Service {
    /// The newest decisions with mean, width and bound of every action.
    pub fn recent(&self) -> Vec<RecentDecision> {
        let champion = &self.models.all()[0];
        let mut judged = Vec::new();
        for recent in self.stats.recent() {
            let Ok(Record::Decision(decision)) = serde_json::from_slice(&recent.record) else { continue };
            let offered = decision.actions.iter().map(|action| (action.id.clone(), action.features.clone()));
            // A champion that was replaced meanwhile may not know these features.
            let opinion = round_of(decision.context, offered).and_then(|round| champion.judge(round, None)).ok();
            let bounds = |i: usize| opinion.as_ref().and_then(|judged| judged.explained[i]).map(Bounds::from);
            let choice = opinion.as_ref().and_then(|judged| judged.choice);
            judged.push(RecentDecision {
                event_id: recent.watched.event,
                at: recent.watched.at,
                action: recent.watched.action,
                probability: recent.watched.probability,
                reward: recent.reward,
                choice: choice.map(|i| decision.actions[i].id.clone()),
                actions: (0..decision.actions.len())
                    .map(|i| RecentAction { id: decision.actions[i].id.clone(), bounds: bounds(i) })
                    .collect(),
            });
        }
        judged
    }
}
