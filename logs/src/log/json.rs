//! A line of JSON from strangers, as a tree: no name twice in an object, and bounded in depth, size and number of
//! values, so that a hostile line costs no more memory than a large honest one.
//!
//! `serde_json::Value` would keep the last of two values of one name, and any number of them.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{RowProblem, Value};

/// The longest line of JSON that is read, in bytes.
pub const MAX_LINE: usize = 16 << 20;
/// The most values (numbers, words, objects, arrays) of a line.
const MAX_VALUES: usize = 1 << 18;
/// How deep objects and arrays may stand in each other.
const MAX_DEPTH: usize = 32;
/// The longest name of a feature, in bytes: long names times many values would be a bomb.
const MAX_NAME: usize = 256;
/// The most actions of a round times its own features: a table repeats these for every action.
const MAX_CELLS: usize = 1 << 22;

/// A parsed value. Written by serde it reads back as the same, to the bit.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// Kept apart from other numbers, because it may be a name.
    Integer(i64),
    /// A finite number.
    Number(f64),
    /// Words.
    Text(String),
    /// Values in order.
    Array(Vec<Json>),
    /// Named values in order; no name comes twice.
    Object(Vec<(String, Json)>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => to.serialize_unit(),
            Json::Boolean(v) => to.serialize_bool(*v),
            Json::Integer(v) => to.serialize_i64(*v),
            Json::Number(v) => to.serialize_f64(*v),
            Json::Text(v) => to.serialize_str(v),
            Json::Array(v) => to.collect_seq(v),
            Json::Object(members) => {
                let mut map = to.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
        Tree(&mut State::default()).deserialize(from)
    }
}

/// The members of the object in a line.
pub fn parse_object(line: &[u8]) -> Result<Vec<(String, Json)>, RowProblem> {
    if line.len() > MAX_LINE {
        return Err(RowProblem::TooLarge { what: "bytes in a line", limit: MAX_LINE });
    }
    let mut state = State::default();
    let mut from = serde_json::Deserializer::from_slice(line);
    let parsed = Tree(&mut state).deserialize(&mut from).and_then(|tree| from.end().map(|()| tree));
    match parsed {
        Ok(Json::Object(members)) => Ok(members),
        Ok(other) => {
            Err(RowProblem::Value { place: "line".to_owned(), want: "one JSON object", got: other.to_string() })
        }
        Err(error) => Err(state.problem.unwrap_or_else(|| {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
            RowProblem::Syntax { byte: error.column(), reason }
        })),
    }
}

/// What is counted while a line is read, and the typed reason why it was refused.
#[derive(Default)]
struct State {
    values: usize,
    depth: usize,
    problem: Option<RowProblem>,
}

impl State {
    fn refuse<E: Error>(&mut self, problem: RowProblem) -> E {
        let error = E::custom(&problem);
        self.problem = Some(problem);
        error
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.refuse(RowProblem::TooLarge { what: "levels of nesting", limit: MAX_DEPTH }));
        }
        Ok(())
    }
}

struct Tree<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        self.0.values += 1;
        if self.0.values > MAX_VALUES {
            return Err(self.0.refuse(RowProblem::TooLarge { what: "values", limit: MAX_VALUES }));
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Json, E> {
        Ok(Json::Boolean(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Json, E> {
        Ok(Json::Integer(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Json, E> {
        Ok(i64::try_from(v).map_or(Json::Number(v as f64), Json::Integer))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Json, E> {
        Ok(Json::Number(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Json, E> {
        Ok(Json::Text(v.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        self.0.enter()?;
        let mut values = Vec::new();
        while let Some(value) = from.next_element_seed(Tree(self.0))? {
            values.push(value);
        }
        self.0.depth -= 1;
        Ok(Json::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        self.0.enter()?;
        let mut members: Vec<(String, Json)> = Vec::new();
        while let Some(name) = from.next_key::<String>()? {
            let value = from.next_value_seed(Tree(self.0))?;
            members.push((name, value));
        }
        if let Some(name) = first_twice(&members) {
            return Err(self.0.refuse(RowProblem::Twice { name: shortened(name) }));
        }
        self.0.depth -= 1;
        Ok(Json::Object(members))
    }
}

/// The alphabetically first name that comes more than once.
pub(super) fn first_twice<T>(members: &[(String, T)]) -> Option<&str> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// As in a message: scalars as they are, shortened; of the rest only what it is.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Boolean(v) => write!(f, "`{v}`"),
            Json::Integer(v) => write!(f, "`{v}`"),
            Json::Number(v) => write!(f, "`{v}`"),
            Json::Text(v) => write!(f, "`\"{}\"`", shortened(v)),
            Json::Array(v) => write!(f, "an array of {}", v.len()),
            Json::Object(v) => write!(f, "an object of {}", v.len()),
        }
    }
}

impl Json {
    /// The error of a value that is not what its place wants.
    pub(super) fn refused(&self, place: &str, want: &'static str) -> RowProblem {
        RowProblem::Value { place: shortened(place), want, got: self.to_string() }
    }

    /// A number.
    pub(super) fn number(&self, place: &str, want: &'static str) -> Result<f64, RowProblem> {
        match self {
            Json::Integer(v) => Ok(*v as f64),
            Json::Number(v) => Ok(*v),
            _ => Err(self.refused(place, want)),
        }
    }

    /// A name: words or an integer.
    pub(super) fn name(&self, place: &str) -> Result<String, RowProblem> {
        match self {
            Json::Integer(v) => Ok(v.to_string()),
            Json::Text(v) if v.is_empty() || v.len() > MAX_NAME => Err(self.refused(place, "of 1 to 256 bytes")),
            Json::Text(v) => Ok(v.clone()),
            _ => Err(self.refused(place, "a name (words or an integer)")),
        }
    }
}

/// How the elements of an array that are objects are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elements {
    /// By their place, as other elements: `name[0].x`.
    Numbered,
    /// All by the array's name, as in Vowpal Wabbit: `name.x`.
    Merged,
}

/// Adds the features of a value: objects give dotted names, arrays numbered ones, null none.
pub(super) fn flatten(
    name: &str,
    value: Json,
    elements: Elements,
    to: &mut Vec<(String, Value)>,
) -> Result<(), RowProblem> {
    if name.len() > MAX_NAME {
        return Err(RowProblem::TooLarge { what: "bytes in a feature's name", limit: MAX_NAME });
    }
    let value = match value {
        Json::Null => return Ok(()),
        Json::Object(members) => {
            return members
                .into_iter()
                .filter(|(member, _)| elements == Elements::Numbered || !member.starts_with('_'))
                .try_for_each(|(member, value)| flatten(&joined(name, &member), value, elements, to));
        }
        Json::Array(values) => {
            return values.into_iter().enumerate().try_for_each(|(i, value)| match (elements, &value) {
                (Elements::Merged, Json::Object(_)) => flatten(name, value, elements, to),
                _ => flatten(&format!("{name}[{i}]"), value, elements, to),
            });
        }
        Json::Boolean(v) => Value::Boolean(v),
        Json::Integer(v) => Value::Number(v as f64),
        Json::Number(v) => Value::Number(v),
        Json::Text(v) => Value::Text(v),
    };
    to.push((name.to_owned(), value));
    Ok(())
}

/// Refuses a round that would be much larger as a table than as a line.
pub(super) fn check_size(n_actions: usize, n_shared: usize) -> Result<(), RowProblem> {
    match n_actions * n_shared {
        cells if cells > MAX_CELLS => {
            Err(RowProblem::TooLarge { what: "actions times features of the round", limit: MAX_CELLS })
        }
        _ => Ok(()),
    }
}

/// The name of a member of an object.
fn joined(name: &str, member: &str) -> String {
    if name.is_empty() { member.to_owned() } else { format!("{name}.{member}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        parse_object(line.as_bytes()).unwrap_err().to_string()
    }

    fn flat(line: &str, elements: Elements) -> Vec<(String, Value)> {
        let mut features = Vec::new();
        flatten("", Json::Object(parse_object(line.as_bytes()).unwrap()), elements, &mut features).unwrap();
        features
    }

    #[test]
    fn nested_values_get_dotted_and_numbered_names() {
        let number = |name: &str, v: f64| (name.to_owned(), Value::Number(v));
        assert_eq!(
            flat(r#"{"a":{"b":{"c":1}},"v":[1,2.5,null,-3],"w":null,"t":[{"x":1},{"y":true}]}"#, Elements::Numbered),
            vec![
                number("a.b.c", 1.0),
                number("v[0]", 1.0),
                number("v[1]", 2.5),
                number("v[3]", -3.0),
                number("t[0].x", 1.0),
                ("t[1].y".to_owned(), Value::Boolean(true)),
            ]
        );
        assert_eq!(
            flat(r#"{"t":[{"x":1},{"y":"w","_tag":"q"}]}"#, Elements::Merged),
            vec![number("t.x", 1.0), ("t.y".to_owned(), Value::Text("w".to_owned()))]
        );
    }

    #[test]
    fn what_is_written_reads_back_as_the_same() {
        let line = r#"{"a":[1,-2.5,1e300,0.1,true,null,{"é\n":"\"x\""}],"big":9223372036854775807,"two":2.0}"#;
        let tree = Json::Object(parse_object(line.as_bytes()).unwrap());
        let text = serde_json::to_string(&tree).unwrap();
        assert_eq!(Json::Object(parse_object(text.as_bytes()).unwrap()), tree);
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), tree);
        assert!(serde_json::from_str::<Json>(r#"{"a":1,"a":2}"#).is_err());
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        assert_eq!(refused(r#"{"a":NaN}"#), "byte 6: not JSON: expected value");
        assert_eq!(refused(r#"{"a":1e999}"#), "byte 10: not JSON: number out of range");
        assert_eq!(refused(r#"{"a":1} x"#), "byte 9: not JSON: trailing characters");
        assert_eq!(refused(""), "byte 0: not JSON: EOF while parsing a value");
        assert_eq!(refused("[1,2]"), "`line` must be one JSON object, got an array of 2");
        assert!(parse_object(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_name_that_comes_twice_is_refused_at_any_depth() {
        assert_eq!(refused(r#"{"a":1,"a":2}"#), "`a` comes twice: a name must stand for one value");
        assert_eq!(refused(r#"{"x":[{"b":1,"c":0,"b":1}]}"#), "`b` comes twice: a name must stand for one value");
    }

    #[test]
    fn bombs_are_refused() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(refused(&deep), "too large for one round: at most 32 levels of nesting");
        let wide = format!("{{\"a\":[{}1]}}", "1,".repeat(MAX_VALUES));
        assert_eq!(refused(&wide), "too large for one round: at most 262144 values");
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_LINE));
        assert_eq!(refused(&long), "too large for one round: at most 16777216 bytes in a line");
        let named = format!("{{\"{}\":[1,2,3]}}", "n".repeat(MAX_NAME + 1));
        let tree = Json::Object(parse_object(named.as_bytes()).unwrap());
        let problem = flatten("", tree, Elements::Numbered, &mut Vec::new()).unwrap_err();
        assert_eq!(problem.to_string(), "too large for one round: at most 256 bytes in a feature's name");
    }

    #[test]
    fn messages_show_the_beginning_of_long_values() {
        let long = Json::Text("é".repeat(1000));
        assert_eq!(long.refused("x", "short").to_string(), format!("`x` must be short, got `\"{}…\"`", "é".repeat(60)));
    }
}
