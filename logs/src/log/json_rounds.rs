//! JSON lines with the actions of each round: one object a line.
//!
//! ```json
//! {"context": {"age": 31, "country": "NZ"},
//!  "actions": [{"id": "red", "price": 3.5}, {"id": "blue", "price": 2.0}],
//!  "chosen": "blue", "reward": 1, "propensity": 0.4}
//! ```
//!
//! | key | meaning |
//! |---|---|
//! | `actions` | what was offered: objects with an optional name (`id`, `name` or `action`), the action's features (there, or in an object `features` or `context`), and optionally its probability; or only names |
//! | `chosen`, `action`, `decision`, `decisions` | the chosen action: its name, or its place in `actions` from 0. Where a name is itself an integer, integers are names |
//! | `reward`, `rewards` | its reward, a number or true/false |
//! | `propensity`, `probability`, `action_prob`, `propensity_score`, `pscore` | its probability in the log, in (0, 1]; where it is absent, the chosen action's own is taken |
//! | `context`, `features` | an object of features of the round |
//! | any other key | a feature of the round |
//!
//! Keys of this table are read in any case. Nested objects give dotted names, arrays numbered ones (`v[0]`), null is
//! no value. Names other than these are given by [`Names`].

use super::json::{Elements, Json, check_size, first_twice, flatten, parse_object};
use super::{JsonAction, JsonRound, RowProblem, Value};

/// Names of keys that differ from the accepted ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    /// The key of the chosen action.
    pub chosen: Option<String>,
    /// The key of the reward.
    pub reward: Option<String>,
    /// The key of the propensity, of the round and of an action.
    pub propensity: Option<String>,
}

const CHOSEN: &[&str] = &["chosen", "action", "decision", "decisions"];
const REWARD: &[&str] = &["reward", "rewards"];
const PROPENSITY: &[&str] = &["propensity", "probability", "action_prob", "propensity_score", "pscore"];
const ACTION_NAME: &[&str] = &["id", "name", "action"];
const GROUPS: &[&str] = &["context", "features"];

/// How far two statements of one probability may lie apart: loggers that write single precision.
const SAME: f64 = 1e-6;

/// The round of a line, by the accepted names.
pub fn parse(line: &[u8]) -> Result<JsonRound, RowProblem> {
    parse_with(line, &Names::default())
}

/// The round of a line, by given names where they are given.
pub fn parse_with(line: &[u8], names: &Names) -> Result<JsonRound, RowProblem> {
    of_object(parse_object(line)?, names)
}

/// The round that an object tells of.
pub fn of_object(mut members: Vec<(String, Json)>, names: &Names) -> Result<JsonRound, RowProblem> {
    let (place, actions) = take(&mut members, None, &["actions"])?
        .ok_or(RowProblem::Missing { place: "actions".to_owned(), want: "an array of the actions offered" })?;
    let chosen = take(&mut members, names.chosen.as_deref(), CHOSEN)?;
    let reward = take(&mut members, names.reward.as_deref(), REWARD)?;
    let propensity = take(&mut members, names.propensity.as_deref(), PROPENSITY)?;

    let Json::Array(list) = actions else { return Err(actions.refused(&place, "an array of actions")) };
    if list.is_empty() {
        return Err(Json::Array(list).refused(&place, "an array of at least one action"));
    }
    let actions: Vec<JsonAction> =
        list.into_iter().enumerate().map(|(i, json)| action(json, i, names)).collect::<Result<_, _>>()?;
    check_names(&actions)?;
    let chosen = match chosen {
        Some((place, json)) => Some(choice(&json, &place, &actions)?),
        None => None,
    };
    let reward = match reward {
        Some((_, Json::Boolean(v))) => Some(f64::from(u8::from(v))),
        Some((place, json)) => Some(json.number(&place, "a finite number")?),
        None => None,
    };
    let stated = match propensity {
        Some((place, json)) => Some((probability(&json, &place, false)?, place)),
        None => None,
    };
    let propensity = agreed(stated, chosen, &actions)?;
    let shared = features(members)?;
    check_size(actions.len(), shared.len())?;
    Ok(JsonRound { shared, actions, chosen, reward, propensity, count: 1.0 })
}

/// Takes the one member of some names out of an object; null is as good as absent.
fn take(
    members: &mut Vec<(String, Json)>,
    given: Option<&str>,
    accepted: &[&str],
) -> Result<Option<(String, Json)>, RowProblem> {
    let is_it = |name: &str| match given {
        Some(given) => name == given,
        None => accepted.iter().any(|a| a.eq_ignore_ascii_case(name)),
    };
    let Some(i) = members.iter().position(|(name, _)| is_it(name)) else { return Ok(None) };
    let found = members.remove(i);
    if let Some((other, second)) = members.iter().find(|(name, _)| is_it(name)) {
        let (place, got) = (found.0, found.1.to_string());
        return Err(RowProblem::Disagree { place, got, other: other.clone(), want: second.to_string() });
    }
    Ok(Some(found).filter(|(_, json)| *json != Json::Null))
}

/// A probability; that of an action that was not chosen may be zero.
fn probability(json: &Json, place: &str, or_zero: bool) -> Result<f64, RowProblem> {
    let want = if or_zero { "a probability in [0, 1]" } else { "a probability in (0, 1]" };
    match json.number(place, want)? {
        p if p > 0.0 && p <= 1.0 => Ok(p),
        0.0 if or_zero => Ok(0.0),
        _ => Err(json.refused(place, want)),
    }
}

fn action(json: Json, i: usize, names: &Names) -> Result<JsonAction, RowProblem> {
    let place = |key: &str| format!("actions[{i}].{key}");
    let mut members = match json {
        Json::Object(members) => members,
        name => {
            let name = Some(name.name(&format!("actions[{i}]"))?);
            return Ok(JsonAction { name, features: Vec::new(), probability: None });
        }
    };
    for accepted in [&CHOSEN[..1], REWARD] {
        if let Some((key, json)) = take(&mut members, None, accepted)? {
            return Err(json.refused(&place(&key), "beside `actions`, where the whole round's keys stand"));
        }
    }
    let name = match take(&mut members, None, ACTION_NAME)? {
        Some((key, json)) => Some(json.name(&place(&key))?),
        None => None,
    };
    let probability = match take(&mut members, names.propensity.as_deref(), PROPENSITY)? {
        Some((key, json)) => Some(probability(&json, &place(&key), true)?),
        None => None,
    };
    Ok(JsonAction { name, features: features(members)?, probability })
}

/// All named, each differently, or none.
fn check_names(actions: &[JsonAction]) -> Result<(), RowProblem> {
    let named: Vec<(String, ())> = actions.iter().filter_map(|a| a.name.clone()).map(|name| (name, ())).collect();
    if !named.is_empty() && named.len() < actions.len() {
        let i = actions.iter().position(|a| a.name.is_none()).unwrap_or_default();
        return Err(RowProblem::Missing { place: format!("actions[{i}].id"), want: "a name, as other actions have" });
    }
    match first_twice(&named) {
        Some(name) => Err(RowProblem::Twice { name: name.to_owned() }),
        None => Ok(()),
    }
}

/// The chosen action's place in the list.
fn choice(json: &Json, place: &str, actions: &[JsonAction]) -> Result<usize, RowProblem> {
    let wanted = json.name(place)?;
    if let Some(i) = actions.iter().position(|a| a.name.as_ref() == Some(&wanted)) {
        return Ok(i);
    }
    let names_are_numbers = actions.iter().any(|a| a.name.as_ref().is_some_and(|name| name.parse::<i64>().is_ok()));
    match json {
        Json::Integer(i) if !names_are_numbers => usize::try_from(*i)
            .ok()
            .filter(|i| *i < actions.len())
            .ok_or_else(|| json.refused(place, "the place of an action in `actions`, from 0")),
        _ => Err(json.refused(place, "the name of one of `actions`")),
    }
}

/// The propensity as stated for the round, or of the chosen action; both must say the same.
fn agreed(
    stated: Option<(f64, String)>,
    chosen: Option<usize>,
    actions: &[JsonAction],
) -> Result<Option<f64>, RowProblem> {
    let own = chosen.and_then(|i| actions[i].probability.map(|p| (p, format!("actions[{i}].probability"))));
    match (stated, own) {
        (Some((p, place)), Some((q, other))) if (p - q).abs() > SAME => {
            Err(RowProblem::Disagree { place, got: p.to_string(), other, want: q.to_string() })
        }
        (Some((p, _)), _) => Ok(Some(p)),
        (None, Some((q, place))) if q == 0.0 => {
            Err(RowProblem::Value { place, want: "above 0: the action was chosen", got: q.to_string() })
        }
        (None, own) => Ok(own.map(|(q, _)| q)),
    }
}

/// What is left of an object, flat; the members of `context` and `features` without that prefix.
fn features(members: Vec<(String, Json)>) -> Result<Vec<(String, Value)>, RowProblem> {
    let mut flat = Vec::new();
    for (name, json) in members {
        let group = GROUPS.iter().any(|g| g.eq_ignore_ascii_case(&name)) && matches!(json, Json::Object(_));
        flatten(if group { "" } else { &name }, json, Elements::Numbered, &mut flat)?;
    }
    match first_twice(&flat) {
        Some(name) => Err(RowProblem::Twice { name: name.to_owned() }),
        None => Ok(flat),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(line: &str) -> JsonRound {
        parse(line.as_bytes()).unwrap()
    }

    fn refused(line: &str) -> String {
        parse(line.as_bytes()).unwrap_err().to_string()
    }

    fn number(name: &str, v: f64) -> (String, Value) {
        (name.to_owned(), Value::Number(v))
    }

    #[test]
    fn a_round_with_named_actions() {
        let round = round(
            r#"{"context":{"age":31,"country":"NZ"},"hour":9,"actions":[{"id":"red","price":3.5},{"id":"blue",
            "features":{"price":2.0,"size":{"w":1,"h":[2,3]}}}],"chosen":"blue","reward":1,"propensity":0.4}"#,
        );
        assert_eq!(
            round.shared,
            vec![number("age", 31.0), ("country".to_owned(), Value::Text("NZ".to_owned())), number("hour", 9.0)]
        );
        assert_eq!((round.chosen, round.reward, round.propensity, round.count), (Some(1), Some(1.0), Some(0.4), 1.0));
        assert_eq!(round.actions[0].name.as_deref(), Some("red"));
        assert_eq!(
            round.actions[1].features,
            vec![number("price", 2.0), number("size.w", 1.0), number("size.h[0]", 2.0), number("size.h[1]", 3.0)]
        );
    }

    #[test]
    fn a_choice_may_be_a_place_unless_names_are_integers() {
        assert_eq!(round(r#"{"actions":[{"x":1},{"x":2}],"action":1,"Reward":true}"#).chosen, Some(1));
        assert_eq!(round(r#"{"actions":["a","b"],"chosen":1}"#).chosen, Some(1));
        assert_eq!(round(r#"{"actions":[{"id":1},{"id":0}],"chosen":1}"#).chosen, Some(0));
        assert_eq!(
            refused(r#"{"actions":[{"id":1},{"id":2}],"chosen":0}"#),
            "`chosen` must be the name of one of `actions`, got `0`"
        );
        assert_eq!(
            refused(r#"{"actions":["a","b"],"chosen":2}"#),
            "`chosen` must be the place of an action in `actions`, from 0, got `2`"
        );
        assert!(refused(r#"{"actions":["a","b"],"chosen":-1}"#).contains("got `-1`"));
        assert!(refused(r#"{"actions":["a","b"],"chosen":0.5}"#).contains("got `0.5`"));
        assert!(refused(r#"{"actions":["a","b"],"chosen":"c"}"#).contains("got `\"c\"`"));
    }

    #[test]
    fn the_propensity_may_stand_at_the_actions() {
        let line = r#"{"actions":[{"id":"a","probability":0.25},{"id":"b","probability":0.75}],"chosen":"b"}"#;
        assert_eq!(round(line).propensity, Some(0.75));
        assert_eq!(round(line).actions[0].probability, Some(0.25));
        assert_eq!(
            refused(r#"{"actions":[{"id":"a","probability":0.25}],"chosen":"a","propensity":0.5}"#),
            "`propensity` is 0.5, but `actions[0].probability` says 0.25"
        );
        assert_eq!(
            refused(r#"{"actions":[{"id":"a","probability":0}],"chosen":"a"}"#),
            "`actions[0].probability` must be above 0: the action was chosen, got 0"
        );
    }

    #[test]
    fn impossible_propensities_and_rewards_are_refused_with_their_value() {
        for p in ["0", "-0.1", "1.5", "\"high\"", "[1]"] {
            let text = refused(&format!(r#"{{"actions":["a"],"chosen":0,"pscore":{p}}}"#));
            assert!(text.starts_with("`pscore` must be a probability in (0, 1], got "), "{text}");
        }
        assert_eq!(refused(r#"{"actions":["a"],"reward":"much"}"#), "`reward` must be a finite number, got `\"much\"`");
    }

    #[test]
    fn what_is_said_twice_is_refused() {
        assert_eq!(refused(r#"{"actions":["a","a"]}"#), "`a` comes twice: a name must stand for one value");
        assert_eq!(
            refused(r#"{"age":1,"context":{"age":2},"actions":["a"]}"#),
            "`age` comes twice: a name must stand for one value"
        );
        assert_eq!(refused(r#"{"reward":1,"rewards":0,"actions":["a"]}"#), "`reward` is `1`, but `rewards` says `0`");
    }

    #[test]
    fn malformed_lists_of_actions_are_refused() {
        assert_eq!(refused(r#"{"x":1}"#), "`actions` is missing: it must be an array of the actions offered");
        assert_eq!(
            refused(r#"{"actions":[]}"#),
            "`actions` must be an array of at least one action, got an array of 0"
        );
        assert_eq!(refused(r#"{"actions":{"a":1}}"#), "`actions` must be an array of actions, got an object of 1");
        assert_eq!(
            refused(r#"{"actions":[{"id":"a"},{"x":1}]}"#),
            "`actions[1].id` is missing: it must be a name, as other actions have"
        );
        assert_eq!(
            refused(r#"{"actions":["a",[1]]}"#),
            "`actions[1]` must be a name (words or an integer), got an array of 1"
        );
        assert_eq!(
            refused(r#"{"actions":[{"reward":1}]}"#),
            "`actions[0].reward` must be beside `actions`, where the whole round's keys stand, got `1`"
        );
    }

    #[test]
    fn a_line_that_would_be_a_huge_table_is_refused() {
        let (actions, shared) = (vec!["{}"; 50_000].join(","), vec!["1"; 100].join(","));
        assert_eq!(
            refused(&format!(r#"{{"actions":[{actions}],"x":[{shared}]}}"#)),
            "too large for one round: at most 4194304 actions times features of the round"
        );
    }

    #[test]
    fn keys_may_be_named_otherwise() {
        let names =
            Names { chosen: Some("shown".into()), reward: Some("click".into()), propensity: Some("prob".into()) };
        let line = br#"{"actions":["a","b"],"shown":"b","click":1,"prob":0.5,"reward":7}"#;
        let round = parse_with(line, &names).unwrap();
        assert_eq!((round.chosen, round.reward, round.propensity), (Some(1), Some(1.0), Some(0.5)));
        assert_eq!(round.shared, vec![number("reward", 7.0)]);
    }
}
