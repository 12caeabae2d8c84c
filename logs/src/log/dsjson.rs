//! Vowpal Wabbit's dsjson: one decision a line, joined with its outcome.
//!
//! | key | meaning |
//! |---|---|
//! | `c` | the context: `_multi` holds the actions, every other key that does not begin with `_` is a feature of the round |
//! | `_label_cost` | the cost of the chosen action; reward = −cost |
//! | `_label_Action`, `_labelIndex` | the chosen action, counted from 1 and from 0; without a label it is the first of `a` |
//! | `_label_probability` | the chosen action's probability in the log; without it, that of `p` |
//! | `a`, `p` | all actions, counted from 1, in the order in which they were ranked, and their probabilities in that order |
//! | `pdrop` | the probability with which the logger dropped such lines; this one stands for 1/(1 − pdrop) |
//! | `_skipLearn` | true: the line is skipped |
//! | `_original_label_cost` | the cost before the logger changed it; checked, not used: Vowpal Wabbit learns from `_label_cost`, and so do we |
//!
//! Inside `c` and its actions an object is a namespace and gives dotted names, an array of numbers numbered ones, and
//! the objects of an array belong to the array's namespace; a string is a category. Keys that begin with `_` are no
//! features; of these only an action's `_tag` is read: its name. So free text (`_text`) is not used. Lines without
//! `c` (observations whose decision is not in the log) are skipped.
//!
//! Refused, because they are not choices of one action: conditional contextual bandits and slates (`_outcomes`,
//! `_slots`, `_slot_id`), continuous actions (`_label_ca`, `pdf`); and actions kept elsewhere (`__aid`), labels of the
//! other JSON format (`_label`).
//!
//! The format is described on Vowpal Wabbit's wiki (page "DSJSON"); what the keys mean is what its JSON parser does
//! with them (`parse_example_json.cc`).

use super::json::{Elements, Json, check_size, first_twice, flatten, parse_object};
use super::{JsonAction, JsonRound, RowProblem, Value};

/// How far probabilities may lie from what they must be: the format's writers keep single precision.
const SINGLE: f64 = 1e-5;

/// Named values.
type Features = Vec<(String, Value)>;

const ONE_ACTION: &str = "only rounds that choose one action are read";

/// The decision of a line; `None` where it is to be skipped: no decision, or `_skipLearn`.
pub fn parse(line: &[u8]) -> Result<Option<JsonRound>, RowProblem> {
    let mut keys = Keys::default();
    for (name, json) in parse_object(line)? {
        keys.read(&name, json)?;
    }
    let Some(context) = keys.context.take().filter(|_| !keys.skip) else { return Ok(None) };
    let (shared, mut actions) = read_context(context)?;
    let ranked = keys.ranking(actions.len())?;
    if let Some(p) = &keys.probabilities {
        if p.len() != ranked.len() {
            return Err(RowProblem::Disagree {
                place: "p".to_owned(),
                got: format!("an array of {}", p.len()),
                other: "a".to_owned(),
                want: format!("there are {}", ranked.len()),
            });
        }
        ranked.iter().zip(p).for_each(|(&i, &p)| actions[i].probability = Some(p));
    }
    let chosen = keys.chosen(actions.len())?.or(ranked.first().copied());
    let propensity = keys.propensity(chosen.and_then(|i| actions[i].probability))?;
    let count = 1.0 / (1.0 - keys.dropped);
    Ok(Some(JsonRound { shared, actions, chosen, reward: keys.cost.map(|cost| -cost), propensity, count }))
}

/// What stands at the top of a line.
#[derive(Default)]
struct Keys {
    context: Option<Json>,
    cost: Option<f64>,
    label_action: Option<i64>,
    label_index: Option<i64>,
    label_probability: Option<f64>,
    ranked: Option<Vec<Json>>,
    probabilities: Option<Vec<f64>>,
    dropped: f64,
    skip: bool,
}

impl Keys {
    fn read(&mut self, name: &str, json: Json) -> Result<(), RowProblem> {
        let unsupported = |kind, cure| Err(RowProblem::Unsupported { place: name.to_owned(), kind, cure });
        match name {
            "_outcomes" => return unsupported("a conditional contextual bandit or slate", ONE_ACTION),
            "_label_ca" | "pdf" => return unsupported("a continuous action", ONE_ACTION),
            "_label" => return unsupported("a label of the other JSON format", "write `_label_cost` and its like"),
            _ if json == Json::Null => return Ok(()),
            "c" => self.context = Some(json),
            "a" => match json {
                Json::Array(ranked) => self.ranked = Some(ranked),
                other => return Err(other.refused(name, "an array of actions, counted from 1")),
            },
            "p" => self.probabilities = Some(probabilities(json)?),
            "pdrop" => match json.number(name, "a probability in [0, 1)")? {
                p if (0.0..1.0).contains(&p) => self.dropped = p,
                _ => return Err(json.refused(name, "a probability in [0, 1)")),
            },
            "_skipLearn" => match json {
                Json::Boolean(skip) => self.skip = skip,
                other => return Err(other.refused(name, "true or false")),
            },
            "_original_label_cost" => {
                json.number(name, "a finite number")?;
            }
            _ if name.eq_ignore_ascii_case("_labelIndex") => {
                set(&mut self.label_index, name, integer(&json, name, "the place of an action, from 0")?)?;
            }
            _ if name.starts_with("_label_") => self.label(name, &json)?,
            _ => {} // identifiers, time, model, observations
        }
        Ok(())
    }

    /// A property of the label; Vowpal Wabbit reads their names in any case.
    fn label(&mut self, name: &str, json: &Json) -> Result<(), RowProblem> {
        match name["_label_".len()..].to_ascii_lowercase().as_str() {
            "cost" => set(&mut self.cost, name, json.number(name, "a finite number")?),
            "action" => set(&mut self.label_action, name, integer(json, name, "the number of an action, from 1")?),
            "probability" => match json.number(name, "a probability in (0, 1]")? {
                p if p > 0.0 && p <= 1.0 + SINGLE => set(&mut self.label_probability, name, p.min(1.0)),
                _ => Err(json.refused(name, "a probability in (0, 1]")),
            },
            _ => Err(RowProblem::Unsupported {
                place: name.to_owned(),
                kind: "this property of a label",
                cure: "known are `_label_cost`, `_label_probability` and `_label_Action`",
            }),
        }
    }

    /// The actions of `a`, as places from 0.
    fn ranking(&self, n_actions: usize) -> Result<Vec<usize>, RowProblem> {
        let Some(ranked) = &self.ranked else {
            return match &self.probabilities {
                Some(_) => Err(RowProblem::Missing { place: "a".to_owned(), want: "the actions that `p` speaks of" }),
                None => Ok(Vec::new()),
            };
        };
        let mut seen = vec![false; n_actions];
        let mut places = Vec::with_capacity(ranked.len());
        for (i, json) in ranked.iter().enumerate() {
            let (place, want) = (format!("a[{i}]"), "the number of an action of `c._multi`, from 1");
            let number = integer(json, &place, want)?;
            let at = within(number - 1, n_actions).ok_or_else(|| json.refused(&place, want))?;
            if std::mem::replace(&mut seen[at], true) {
                return Err(RowProblem::Twice { name: format!("action {number} of a") });
            }
            places.push(at);
        }
        Ok(places)
    }

    /// The labelled action, as a place from 0.
    fn chosen(&self, n_actions: usize) -> Result<Option<usize>, RowProblem> {
        let (place, want) = match (self.label_index, self.label_action) {
            (Some(index), Some(action)) if action.checked_sub(1) != Some(index) => {
                return Err(RowProblem::Disagree {
                    place: "_label_Action".to_owned(),
                    got: format!("{action} (from 1)"),
                    other: "_labelIndex".to_owned(),
                    want: format!("{index} (from 0)"),
                });
            }
            (Some(index), _) => (("_labelIndex", index), index),
            (None, Some(action)) => (("_label_Action", action), action.saturating_sub(1)),
            (None, None) => return Ok(None),
        };
        let at = within(want, n_actions).ok_or_else(|| RowProblem::Disagree {
            place: place.0.to_owned(),
            got: place.1.to_string(),
            other: "c._multi".to_owned(),
            want: format!("there are {n_actions} actions"),
        })?;
        Ok(Some(at))
    }

    /// The label's probability, or that of `p`; both must say the same.
    fn propensity(&self, of_p: Option<f64>) -> Result<Option<f64>, RowProblem> {
        match (self.label_probability, of_p) {
            (Some(p), Some(q)) if (p - q).abs() > SINGLE => Err(RowProblem::Disagree {
                place: "_label_probability".to_owned(),
                got: p.to_string(),
                other: "p".to_owned(),
                want: q.to_string(),
            }),
            (None, Some(0.0)) => Err(RowProblem::Value {
                place: "p".to_owned(),
                want: "above 0 for the chosen action",
                got: "`0`".to_owned(),
            }),
            (p, q) => Ok(p.or(q)),
        }
    }
}

/// Sets what two spellings of one name must not both set.
fn set<T>(to: &mut Option<T>, name: &str, value: T) -> Result<(), RowProblem> {
    match to.replace(value) {
        None => Ok(()),
        Some(_) => Err(RowProblem::Twice { name: name.to_owned() }),
    }
}

fn integer(json: &Json, place: &str, want: &'static str) -> Result<i64, RowProblem> {
    match json {
        Json::Integer(v) if *v >= 0 => Ok(*v),
        _ => Err(json.refused(place, want)),
    }
}

fn within(at: i64, n: usize) -> Option<usize> {
    usize::try_from(at).ok().filter(|at| *at < n)
}

fn probabilities(json: Json) -> Result<Vec<f64>, RowProblem> {
    let want = "a probability in [0, 1]";
    let Json::Array(values) = json else { return Err(json.refused("p", "an array of probabilities")) };
    let read = |(i, json): (usize, &Json)| match json.number(&format!("p[{i}]"), want)? {
        p if (0.0..=1.0 + SINGLE).contains(&p) => Ok(p.min(1.0)),
        _ => Err(json.refused(&format!("p[{i}]"), want)),
    };
    values.iter().enumerate().map(read).collect()
}

/// The features of the round, and its actions.
fn read_context(context: Json) -> Result<(Features, Vec<JsonAction>), RowProblem> {
    let Json::Object(mut members) = context else { return Err(context.refused("c", "an object")) };
    if members.iter().any(|(name, _)| name == "_slots") {
        let (place, kind) = ("c._slots".to_owned(), "a conditional contextual bandit or slate");
        return Err(RowProblem::Unsupported { place, kind, cure: ONE_ACTION });
    }
    let missing = || RowProblem::Missing { place: "c._multi".to_owned(), want: "an array of the actions offered" };
    let at = members.iter().position(|(name, _)| name == "_multi").ok_or_else(missing)?;
    let list = match members.remove(at).1 {
        Json::Array(list) if !list.is_empty() => list,
        other => return Err(other.refused("c._multi", "an array of at least one action")),
    };
    let actions: Vec<JsonAction> =
        list.into_iter().enumerate().map(|(i, json)| action(i, json)).collect::<Result<_, _>>()?;
    let named: Vec<(String, ())> = actions.iter().filter_map(|a| a.name.clone()).map(|name| (name, ())).collect();
    if let Some(name) = first_twice(&named) {
        return Err(RowProblem::Twice { name: name.to_owned() });
    }
    if !named.is_empty() && named.len() < actions.len() {
        let i = actions.iter().position(|a| a.name.is_none()).unwrap_or_default();
        let (place, want) = (format!("c._multi[{i}]._tag"), "a name, as other actions have");
        return Err(RowProblem::Missing { place, want });
    }
    let shared = features(members)?;
    check_size(actions.len(), shared.len())?;
    Ok((shared, actions))
}

fn action(i: usize, json: Json) -> Result<JsonAction, RowProblem> {
    let Json::Object(members) = json else { return Err(json.refused(&format!("c._multi[{i}]"), "an object")) };
    let place = |name: &str| format!("c._multi[{i}].{name}");
    let mut tag = None;
    for (name, json) in &members {
        match name.as_str() {
            "_slot_id" => {
                return Err(RowProblem::Unsupported { place: place(name), kind: "a slate", cure: ONE_ACTION });
            }
            "__aid" => {
                let (kind, cure) = ("an action kept elsewhere", "write its features in the line");
                return Err(RowProblem::Unsupported { place: place(name), kind, cure });
            }
            "_tag" if *json != Json::Null => tag = Some(json.name(&place(name))?),
            _ => {}
        }
    }
    Ok(JsonAction { name: tag, features: features(members)?, probability: None })
}

fn features(members: Vec<(String, Json)>) -> Result<Features, RowProblem> {
    let mut flat = Vec::new();
    flatten("", Json::Object(members), Elements::Merged, &mut flat)?;
    match first_twice(&flat) {
        Some(name) => Err(RowProblem::Twice { name: name.to_owned() }),
        None => Ok(flat),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and values as a joiner writes them, with single-precision probabilities.
    const LINE: &str = r#"{"_label_cost":-1.5,"_label_probability":0.9000000357627869,"_label_Action":2,"_labelIndex":1,
        "o":[{"v":1.5,"EventId":"91f71c8","ActionTaken":false}],"Timestamp":"2021-04-13T15:08:46.000000Z","Version":"1",
        "EventId":"91f71c8","a":[2,1],"c":{"User":{"id":"a","major":"eng","age":20},"hour":7,"_weather":{"wet":1},
        "_multi":[{"_tag":"news","i":{"constant":1},"j":[{"topic":"sea","new":true},{"v":[1,2]}]},
        {"_tag":"sport","j":[{"topic":"ball"}]}]},"p":[0.9,0.1],"VWState":{"m":"N/A"},"_original_label_cost":-1.5}"#;

    fn refused(line: &str) -> String {
        parse(line.as_bytes()).unwrap_err().to_string()
    }

    /// The line with one part replaced.
    fn with(part: &str, by: &str) -> String {
        assert!(LINE.contains(part), "{part}");
        LINE.replace(part, by)
    }

    fn number(name: &str, v: f64) -> (String, Value) {
        (name.to_owned(), Value::Number(v))
    }

    fn text(name: &str, v: &str) -> (String, Value) {
        (name.to_owned(), Value::Text(v.to_owned()))
    }

    #[test]
    fn a_decision_with_its_label() {
        let round = parse(LINE.as_bytes()).unwrap().unwrap();
        assert_eq!(
            round.shared,
            vec![text("User.id", "a"), text("User.major", "eng"), number("User.age", 20.0), number("hour", 7.0)]
        );
        let new = ("j.new".to_owned(), Value::Boolean(true));
        let features =
            vec![number("i.constant", 1.0), text("j.topic", "sea"), new, number("j.v[0]", 1.0), number("j.v[1]", 2.0)];
        assert_eq!(
            round.actions,
            vec![
                JsonAction { name: Some("news".to_owned()), features, probability: Some(0.1) },
                JsonAction {
                    name: Some("sport".to_owned()),
                    features: vec![text("j.topic", "ball")],
                    probability: Some(0.9)
                },
            ]
        );
        assert_eq!((round.chosen, round.reward, round.count), (Some(1), Some(1.5), 1.0));
        assert_eq!(round.propensity, Some(0.9000000357627869));
    }

    #[test]
    fn the_label_may_name_its_action_from_one_or_from_zero() {
        for line in [with(r#""_labelIndex":1,"#, ""), with(r#""_label_Action":2,"#, "")] {
            assert_eq!(parse(line.as_bytes()).unwrap().unwrap().chosen, Some(1));
        }
        assert_eq!(
            refused(&with(r#""_labelIndex":1"#, r#""_labelIndex":0"#)),
            "`_label_Action` is 2 (from 1), but `_labelIndex` says 0 (from 0)"
        );
        let beyond = with(r#""_label_Action":2,"_labelIndex":1"#, r#""_label_Action":3"#);
        assert_eq!(refused(&beyond), "`_label_Action` is 3, but `c._multi` says there are 2 actions");
        let zero = with(r#""_label_Action":2,"_labelIndex":1"#, r#""_label_Action":0"#);
        assert_eq!(refused(&zero), "`_label_Action` is 0, but `c._multi` says there are 2 actions");
    }

    #[test]
    fn without_a_label_the_first_of_the_ranking_was_shown() {
        let line = r#"{"a":[2,1],"p":[0.75,0.25],"c":{"_multi":[{"x":1},{"x":2}]}}"#;
        let round = parse(line.as_bytes()).unwrap().unwrap();
        assert_eq!((round.chosen, round.reward, round.propensity), (Some(1), None, Some(0.75)));
        let line = r#"{"c":{"_multi":[{"x":1},{"x":2}]}}"#;
        let round = parse(line.as_bytes()).unwrap().unwrap();
        assert_eq!((round.chosen, round.propensity), (None, None));
    }

    #[test]
    fn a_dropped_lines_weight_is_carried_by_those_that_were_kept() {
        let line = with(r#""Version":"1""#, r#""pdrop":0.75"#);
        assert_eq!(parse(line.as_bytes()).unwrap().unwrap().count, 4.0);
        for bad in ["1", "-0.5", "\"x\""] {
            let line = with(r#""Version":"1""#, &format!(r#""pdrop":{bad}"#));
            assert!(refused(&line).starts_with("`pdrop` must be a probability in [0, 1), got "));
        }
    }

    #[test]
    fn lines_that_teach_nothing_are_skipped() {
        assert_eq!(parse(with(r#""Version":"1""#, r#""_skipLearn":true"#).as_bytes()), Ok(None));
        let dangling = br#"{"RewardValue":1.0,"EventId":"e","EnqueuedTimeUtc":"2021-04-13T15:08:46Z"}"#;
        assert_eq!(parse(dangling), Ok(None));
        assert_eq!(
            refused(&with(r#""Version":"1""#, r#""_skipLearn":1"#)),
            "`_skipLearn` must be true or false, got `1`"
        );
    }

    #[test]
    fn probabilities_must_be_possible_and_agree() {
        assert_eq!(
            refused(&with("0.9000000357627869", "0")),
            "`_label_probability` must be a probability in (0, 1], got `0`"
        );
        assert_eq!(
            refused(&with("0.9000000357627869", "\"NaN\"")),
            "`_label_probability` must be a probability in (0, 1], got `\"NaN\"`"
        );
        assert_eq!(refused(&with("0.9000000357627869", "0.5")), "`_label_probability` is 0.5, but `p` says 0.9");
        assert_eq!(refused(&with("[0.9,0.1]", "[0.9]")), "`p` is an array of 1, but `a` says there are 2");
        assert_eq!(refused(&with("[0.9,0.1]", "[0.9,-0.1]")), "`p[1]` must be a probability in [0, 1], got `-0.1`");
        assert_eq!(refused(&with("\"a\":[2,1],", "")), "`a` is missing: it must be the actions that `p` speaks of");
        assert_eq!(
            refused(&with("[2,1]", "[2,3]")),
            "`a[1]` must be the number of an action of `c._multi`, from 1, got `3`"
        );
        assert_eq!(refused(&with("[2,1]", "[2,2]")), "`action 2 of a` comes twice: a name must stand for one value");
    }

    #[test]
    fn other_kinds_of_problems_are_refused() {
        for (part, by, place) in [
            (r#""Version":"1""#, r#""_outcomes":[]"#, "_outcomes"),
            (r#""Version":"1""#, r#""_label_ca":{}"#, "_label_ca"),
            (r#""hour":7"#, r#""_slots":[]"#, "c._slots"),
            (r#""_tag":"news""#, r#""_slot_id":0"#, "c._multi[0]._slot_id"),
        ] {
            let text = refused(&with(part, by));
            assert!(text.starts_with(&format!("`{place}`: ")), "{text}");
            assert!(text.ends_with("is not supported; only rounds that choose one action are read"), "{text}");
        }
        assert!(refused(&with(r#""Version":"1""#, r#""_label_weight":2"#)).contains("this property of a label"));
        assert!(refused(&with(r#""Version":"1""#, r#""_label_COST":2"#)).contains("comes twice"));
    }

    #[test]
    fn malformed_contexts_are_refused() {
        assert_eq!(refused(r#"{"c":[1]}"#), "`c` must be an object, got an array of 1");
        assert_eq!(refused(r#"{"c":{"x":1}}"#), "`c._multi` is missing: it must be an array of the actions offered");
        assert_eq!(
            refused(r#"{"c":{"_multi":[]}}"#),
            "`c._multi` must be an array of at least one action, got an array of 0"
        );
        assert_eq!(refused(r#"{"c":{"_multi":[1]}}"#), "`c._multi[0]` must be an object, got `1`");
        assert_eq!(
            refused(r#"{"c":{"_multi":[{"j":[{"x":1},{"x":2}]}]}}"#),
            "`j.x` comes twice: a name must stand for one value"
        );
    }
}
