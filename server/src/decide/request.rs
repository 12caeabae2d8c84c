//! What a request to rank says. The names are those of the Azure Personalizer API, with `beta` and `probability` added.

use neuralcb_logs::log::json::parse_object;
use neuralcb_logs::log::json_rounds::{Names, of_object};
use neuralcb_logs::log::{Json, JsonRound};

use super::DecideError;

/// The longest name of an event, in bytes.
const MAX_EVENT: usize = 256;

/// A request for one decision.
#[derive(Debug, Clone, PartialEq)]
pub struct RankRequest {
    /// The event's name, where the caller gives one.
    pub event: Option<String>,
    /// The features of the round, an object.
    pub context: Json,
    /// What is offered; empty where it is every action of the policy.
    pub actions: Vec<Action>,
    /// Whether it counts only once it is activated.
    pub deferred: bool,
    /// β, where it is not the policy's own.
    pub beta: Option<f64>,
}

/// An action that is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Its name.
    pub id: String,
    /// Its features, an object.
    pub features: Option<Json>,
    /// Its probability under the caller's own policy.
    pub probability: Option<f64>,
    /// Not to be played now.
    pub excluded: bool,
}

type Members = Vec<(String, Json)>;

fn refused<T>(place: &str, want: &str, got: &Json) -> Result<T, DecideError> {
    Err(DecideError::request(format!("`{place}` must be {want}, got {got}")))
}

impl RankRequest {
    /// Reads the body of a request.
    pub fn parse(body: &[u8]) -> Result<RankRequest, DecideError> {
        RankRequest::of(parse_object(body).map_err(DecideError::request)?, "")
    }

    /// Reads the body of a request for many decisions: `{"requests": [{…}, …]}`.
    pub fn parse_batch(body: &[u8], most: usize) -> Result<Vec<RankRequest>, DecideError> {
        let mut members = parse_object(body).map_err(DecideError::request)?;
        match (members.pop(), members.pop()) {
            (Some((name, Json::Array(requests))), None) if name == "requests" => {
                if requests.is_empty() || requests.len() > most {
                    return Err(DecideError::request(format!(
                        "`requests` must be an array of 1 to {most} requests, got {}",
                        requests.len()
                    )));
                }
                let one = |(i, request)| match request {
                    Json::Object(members) => RankRequest::of(members, &format!("requests[{i}].")),
                    other => refused(&format!("requests[{i}]"), "an object", &other),
                };
                requests.into_iter().enumerate().map(one).collect()
            }
            _ => Err(DecideError::request("the body must be {\"requests\": [{…}, …]}, each as for /v1/rank")),
        }
    }

    fn of(members: Members, at: &str) -> Result<RankRequest, DecideError> {
        let mut request = RankRequest {
            event: None,
            context: Json::Object(Vec::new()),
            actions: Vec::new(),
            deferred: false,
            beta: None,
        };
        let mut excluded = Vec::new();
        for (name, value) in members {
            let place = format!("{at}{name}");
            match (name.as_str(), value) {
                (_, Json::Null) => {}
                ("eventId", value) => request.event = Some(event_id(&place, value)?),
                ("contextFeatures", value) => request.context = Json::Object(merged(&place, value)?),
                ("actions", Json::Array(list)) => request.actions = actions(&place, list)?,
                ("actions", other) => return refused(&place, "an array of actions", &other),
                ("excludedActions", Json::Array(list)) => excluded = list,
                ("excludedActions", other) => return refused(&place, "an array of names of actions", &other),
                ("deferActivation", Json::Boolean(value)) => request.deferred = value,
                ("deferActivation", other) => return refused(&place, "true or false", &other),
                ("beta", value) => {
                    request.beta = Some(number(&place, &value).and_then(|beta| match beta >= 0.0 {
                        true => Ok(beta),
                        false => refused(&place, "a number of at least 0", &value),
                    })?)
                }
                _ => {
                    return Err(DecideError::request(format!(
                        "`{place}` is not known: use eventId, contextFeatures, actions, excludedActions, \
                         deferActivation, beta"
                    )));
                }
            }
        }
        for value in excluded {
            let Json::Text(id) = &value else {
                return refused(&format!("{at}excludedActions"), "names of actions", &value);
            };
            if let Some(action) = request.actions.iter_mut().find(|action| action.id == *id) {
                action.excluded = true;
            } else {
                // Where every action of the policy is meant, it is found when they are known.
                let (id, none) = (id.clone(), None);
                request.actions.push(Action { id, features: None, probability: none, excluded: true });
            }
        }
        Ok(request)
    }

    /// Puts in all actions of the policy where none is named, or where some are only excluded.
    pub fn fill(&mut self, names: &[String]) {
        if self.actions.iter().any(|action| !action.excluded) {
            return;
        }
        let excluded = std::mem::take(&mut self.actions);
        self.actions.extend(names.iter().map(|id| Action {
            excluded: excluded.iter().any(|action| action.id == *id),
            id: id.clone(),
            features: None,
            probability: None,
        }));
    }

    /// The round as a line of a log would tell it, of the actions at `places`: what a log of these decisions will hold.
    pub fn round(&self, places: &[usize]) -> Result<JsonRound, DecideError> {
        let offered = places.iter().map(|&place| &self.actions[place]);
        round_of(self.context.clone(), offered.map(|action| (action.id.clone(), action.features.clone())))
    }
}

/// A round as a line of a log tells it, from its features and the names and features of its actions.
pub(crate) fn round_of(
    context: Json,
    actions: impl Iterator<Item = (String, Option<Json>)>,
) -> Result<JsonRound, DecideError> {
    let action = |(id, features): (String, Option<Json>)| {
        let mut members = vec![("id".to_owned(), Json::Text(id))];
        members.extend(features.map(|features| ("features".to_owned(), features)));
        Json::Object(members)
    };
    let actions = Json::Array(actions.map(action).collect());
    let line = vec![("context".to_owned(), context), ("actions".to_owned(), actions)];
    of_object(line, &Names::default()).map_err(DecideError::request)
}

/// The name of an event: what a path can hold.
pub(crate) fn event_id(place: &str, value: Json) -> Result<String, DecideError> {
    match value {
        Json::Text(id) if !id.is_empty() && id.len() <= MAX_EVENT && !id.chars().any(char::is_control) => Ok(id),
        other => refused(place, "a text of 1 to 256 bytes without control characters", &other),
    }
}

fn number(place: &str, value: &Json) -> Result<f64, DecideError> {
    match value {
        Json::Integer(v) => Ok(*v as f64),
        Json::Number(v) if v.is_finite() => Ok(*v),
        other => refused(place, "a finite number", other),
    }
}

fn actions(place: &str, list: Vec<Json>) -> Result<Vec<Action>, DecideError> {
    if list.is_empty() {
        return refused(
            place,
            "an array of at least one action, or left out for all of the policy's",
            &Json::Array(list),
        );
    }
    let mut actions: Vec<Action> = Vec::with_capacity(list.len());
    let mut names = std::collections::HashSet::with_capacity(list.len());
    for (i, json) in list.into_iter().enumerate() {
        let at = format!("{place}[{i}]");
        let members = match json {
            Json::Object(members) => members,
            name => vec![("id".to_owned(), name)],
        };
        let (mut id, mut features, mut probability) = (None, None, None);
        for (name, value) in members {
            let at = format!("{at}.{name}");
            match (name.as_str(), value) {
                (_, Json::Null) => {}
                ("id", Json::Text(value)) if (1..=MAX_EVENT).contains(&value.len()) => id = Some(value),
                ("id", Json::Integer(value)) => id = Some(value.to_string()),
                ("id", other) => return refused(&at, "a name of 1 to 256 bytes", &other),
                ("features", value) => features = Some(Json::Object(merged(&at, value)?)),
                ("probability", value) => match number(&at, &value)? {
                    p if (0.0..=1.0).contains(&p) => probability = Some(p),
                    _ => return refused(&at, "a probability in [0, 1]", &value),
                },
                _ => {
                    return Err(DecideError::request(format!("`{at}` is not known: use id, features, probability")));
                }
            }
        }
        let Some(id) = id else { return Err(DecideError::request(format!("`{at}.id` is missing: name the action"))) };
        if !names.insert(id.clone()) {
            return Err(DecideError::request(format!("action `{id}` is offered twice: name each once")));
        }
        actions.push(Action { id, features, probability, excluded: false });
    }
    Ok(actions)
}

/// One object of features, or several that add up to one.
fn merged(place: &str, value: Json) -> Result<Members, DecideError> {
    let list = match value {
        Json::Object(members) => return Ok(members),
        Json::Array(list) => list,
        other => return refused(place, "an object of features, or an array of such", &other),
    };
    let mut all = Members::new();
    for (i, one) in list.into_iter().enumerate() {
        match one {
            Json::Object(members) => merge(&mut all, members).map_err(|name| {
                DecideError::request(format!(
                    "`{place}[{i}]`: feature `{name}` comes twice: a name must stand for one value"
                ))
            })?,
            Json::Null => {}
            other => return refused(&format!("{place}[{i}]"), "an object of features", &other),
        }
    }
    Ok(all)
}

/// Adds members; two objects of one name become one. The error is a name that stands for two values.
fn merge(to: &mut Members, from: Members) -> Result<(), String> {
    for (name, value) in from {
        match (to.iter_mut().find(|(known, _)| *known == name).map(|(_, known)| known), value) {
            (None, value) => to.push((name, value)),
            (Some(Json::Object(known)), Json::Object(more)) => {
                merge(known, more).map_err(|inner| format!("{name}.{inner}"))?;
            }
            _ => return Err(name),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_with(body: &str) -> String {
        RankRequest::parse(body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_request_of_the_retired_service_reads_as_it_is() {
        let request = RankRequest::parse(
            br#"{"contextFeatures":[{"timeOfDay":"Morning"},{"device":{"mobile":true}},{"device":{"os":"x"}}],
            "actions":[{"id":"News","features":[{"type":"News"},{"length":3}]},{"id":"Sports","features":[]}],
            "excludedActions":["Sports"],"eventId":"75269AD0-BFEE-4598-8196-C57383D38E10","deferActivation":false}"#,
        )
        .unwrap();
        assert_eq!(request.event.as_deref(), Some("75269AD0-BFEE-4598-8196-C57383D38E10"));
        assert!(request.actions[1].excluded && !request.actions[0].excluded && !request.deferred);
        let round = request.round(&[0]).unwrap();
        let names: Vec<&str> = round.shared.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["timeOfDay", "device.mobile", "device.os"]);
        let names: Vec<&str> = round.actions[0].features.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["type", "length"]);
    }

    #[test]
    fn actions_that_are_left_out_are_the_policys() {
        let mut request = RankRequest::parse(br#"{"contextFeatures":{"x":1},"excludedActions":["b"]}"#).unwrap();
        request.fill(&["a".to_owned(), "b".to_owned()]);
        let played: Vec<_> = request.actions.iter().map(|a| (a.id.as_str(), a.excluded)).collect();
        assert_eq!(played, [("a", false), ("b", true)]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        assert_eq!(
            refused_with(r#"{"actions":[]}"#),
            "`actions` must be an array of at least one action, or left out for all of the policy's, got an array of 0"
        );
        assert_eq!(
            refused_with(r#"{"actions":[{"id":"a"},{"id":"a"}]}"#),
            "action `a` is offered twice: name each once"
        );
        assert_eq!(refused_with(r#"{"actions":[{"features":[]}]}"#), "`actions[0].id` is missing: name the action");
        assert_eq!(
            refused_with(r#"{"eventId":""}"#),
            "`eventId` must be a text of 1 to 256 bytes without control characters, got `\"\"`"
        );
        assert_eq!(
            refused_with(r#"{"contextFeatures":[{"x":1},{"x":2}]}"#),
            "`contextFeatures[1]`: feature `x` comes twice: a name must stand for one value"
        );
        assert!(refused_with(r#"{"event":"a"}"#).starts_with("`event` is not known: use eventId"));
        assert!(refused_with(r#"{"beta":-1}"#).contains("at least 0"));
        assert!(refused_with(&format!("{}1{}", "{\"a\":[".repeat(40), "]}".repeat(40))).contains("levels of nesting"));
    }
}
