//! What the server says of itself: a line of JSON on standard error for each event.

use std::io::Write;

use serde_json::{Map, Value};

use crate::clock::now;

/// Says that something happened, with what belongs to it.
pub fn say(event: &str, about: &[(&str, Value)]) {
    let mut line = Map::new();
    line.insert("at".to_owned(), now().into());
    line.insert("event".to_owned(), event.into());
    line.extend(about.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    // Nobody may listen any more; the server goes on.
    let _ = writeln!(std::io::stderr(), "{}", Value::from(line));
}
