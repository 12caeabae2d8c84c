//! Mushroom: `class,attribute_1,…,attribute_22`, every field one letter; `?` (unknown) is a value like any other.

use std::path::Path;

use super::cache::Cache;
use super::files::MUSHROOM;
use super::text::{Between, lines};
use super::{Classified, DataError, one_hot};

const N_ATTRIBUTES: usize = 22;

pub(super) fn load(cache: &Cache) -> Result<Classified, DataError> {
    let (path, text) = cache.text(&MUSHROOM)?;
    parse(&path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Classified, DataError> {
    let (mut labels, mut attributes) = (Vec::new(), Vec::new());
    for line in lines(path, text, Between::Comma, 1 + N_ATTRIBUTES)? {
        let line = line?;
        labels.push(match line.fields()[0] {
            "e" => 0,
            "p" => 1,
            _ => return Err(line.refuse(0, "e (edible) or p (poisonous)")),
        });
        let known = |value: &str| matches!(value.as_bytes(), [b'a'..=b'z' | b'?']);
        if let Some(bad) = line.fields()[1..].iter().position(|value| !known(value)) {
            return Err(line.refuse(1 + bad, "one lower-case letter or ?"));
        }
        attributes.extend_from_slice(&line.fields()[1..]);
    }
    let (x, dim) = one_hot::encode(&[], 0, &attributes, N_ATTRIBUTES);
    let class_names = ["edible", "poisonous"].map(String::from).to_vec();
    Ok(Classified { dim, n_classes: 2, x, labels, class_names, test_from: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(class: &str, first: &str) -> String {
        format!("{class},{first}{}\n", ",n".repeat(N_ATTRIBUTES - 1))
    }

    #[test]
    fn an_unknown_attribute_has_a_column_of_its_own() {
        let text = row("p", "?") + &row("e", "b") + &row("e", "?");
        let data = parse(Path::new("f"), &text).unwrap();
        assert_eq!((data.dim, data.labels.as_slice()), (23, &[1, 0, 0][..]));
        assert_eq!((data.row(0)[..3].to_vec(), data.row(1)[..3].to_vec()), (vec![1.0, 0.0, 1.0], vec![0.0, 1.0, 1.0]));
    }

    #[test]
    fn wrong_classes_and_attributes_are_refused() {
        for (text, want) in [
            (row("e", "b") + &row("x", "b"), "`f`, line 2, field 1: must be e (edible) or p (poisonous), got `x`"),
            (row("e", "bb"), "`f`, line 1, field 2: must be one lower-case letter or ?, got `bb`"),
            (row("e", ""), "`f`, line 1, field 2: must be one lower-case letter or ?, got ``"),
            ("e,b\n".into(), "`f`, line 1: must have 23 fields, got 2"),
        ] {
            assert_eq!(parse(Path::new("f"), &text).unwrap_err().to_string(), want);
        }
    }
}
