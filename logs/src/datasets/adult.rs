//! Adult: fifteen fields between commas; the occupation is the class, rows with an unknown value (`?`) are left out.

use std::path::Path;

use super::cache::Cache;
use super::files::{ADULT_DATA, ADULT_TEST};
use super::text::{Between, lines};
use super::{Classified, DataError, Preparation, Variant, one_hot};

const N_FIELDS: usize = 15;
/// Age, weight, years of education, capital gain and loss, hours per week.
const NUMBERS: [usize; 6] = [0, 2, 4, 10, 11, 12];
const OCCUPATION: usize = 6;
const CATEGORIES: [usize; 8] = [1, 3, 5, 7, 8, 9, 13, INCOME];
const INCOME: usize = 14;

const OCCUPATIONS: [&str; 14] = [
    "Adm-clerical",
    "Armed-Forces",
    "Craft-repair",
    "Exec-managerial",
    "Farming-fishing",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Other-service",
    "Priv-house-serv",
    "Prof-specialty",
    "Protective-serv",
    "Sales",
    "Tech-support",
    "Transport-moving",
];

pub(super) fn load(cache: &Cache, preparation: &Preparation) -> Result<Classified, DataError> {
    let mut files = vec![cache.text(&ADULT_DATA)?];
    if preparation.variant == Variant::Paper {
        files.push(cache.text(&ADULT_TEST)?);
    }
    let files: Vec<(&Path, &str)> = files.iter().map(|(path, text)| (path.as_path(), text.as_str())).collect();
    parse(&files, preparation.strip_income_dot)
}

fn parse(files: &[(&Path, &str)], strip_income_dot: bool) -> Result<Classified, DataError> {
    let (mut numbers, mut categories, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for (path, text) in files {
        for line in lines(path, text, Between::Comma, N_FIELDS)? {
            let line = line?;
            let fields = line.fields();
            if let Some(empty) = fields.iter().position(|value| value.is_empty()) {
                return Err(line.refuse(empty, "a value, or ? for an unknown one"));
            }
            if fields.contains(&"?") {
                continue;
            }
            for i in NUMBERS {
                numbers.push(line.number(i)?);
            }
            let Ok(label) = OCCUPATIONS.binary_search(&fields[OCCUPATION]) else {
                return Err(line.refuse(OCCUPATION, "one of the 14 occupations"));
            };
            labels.push(label as u32);
            categories.extend(CATEGORIES.map(|i| match fields[i].strip_suffix('.') {
                Some(stripped) if i == INCOME && strip_income_dot => stripped,
                _ => fields[i],
            }));
        }
    }
    let (x, dim) = one_hot::encode(&numbers, NUMBERS.len(), &categories, CATEGORIES.len());
    let class_names = OCCUPATIONS.map(String::from).to_vec();
    Ok(Classified { dim, n_classes: OCCUPATIONS.len(), x, labels, class_names, test_from: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(age: &str, occupation: &str, income: &str) -> String {
        format!("{age}, Private, 5, HS-grad, 9, Divorced, {occupation}, Wife, White, Male, 1, 2, 40, Cuba, {income}\n")
    }

    fn read(first: &str, second: &str, strip: bool) -> Result<Classified, String> {
        parse(&[(Path::new("f"), first), (Path::new("g"), second)], strip).map_err(|e| e.to_string())
    }

    #[test]
    fn the_occupation_is_the_class_and_the_dot_makes_a_column() {
        let (first, second) = (row("39", "Sales", ">50K"), row("20", "Adm-clerical", ">50K."));
        let data = read(&first, &format!("|note\n{second}\n"), false).unwrap();
        assert_eq!((data.dim, data.labels.as_slice()), (6 + 7 + 2, &[11, 0][..]));
        assert_eq!(data.row(0)[..6], [39.0, 5.0, 9.0, 1.0, 2.0, 40.0]);
        assert_eq!((data.row(0)[13..].to_vec(), data.row(1)[13..].to_vec()), (vec![1.0, 0.0], vec![0.0, 1.0]));
        assert_eq!(read(&first, &second, true).unwrap().dim, 6 + 8);
    }

    #[test]
    fn rows_with_an_unknown_value_are_left_out() {
        let rows = row("39", "?", ">50K") + &row("?", "Sales", ">50K") + &row("41", "Sales", ">50K");
        let data = read(&rows, &rows, false).unwrap();
        assert_eq!((data.n_rows(), data.row(0)[0]), (2, 41.0));
    }

    #[test]
    fn wrong_rows_are_refused_in_the_right_file() {
        let good = row("39", "Sales", ">50K");
        for (bad, want) in [
            (row("39", "Pilot", ">50K"), "`g`, line 2, field 7: must be one of the 14 occupations, got `Pilot`"),
            (row("x", "Sales", ">50K"), "`g`, line 2, field 1: must be a finite number, got `x`"),
            (row("39", "Sales", ""), "`g`, line 2, field 15: must be a value, or ? for an unknown one, got ``"),
            ("39, Private\n".into(), "`g`, line 2: must have 15 fields, got 2"),
        ] {
            assert_eq!(read(&good, &(good.clone() + &bad), false).unwrap_err(), want);
        }
        assert_eq!(read(&good, "|note\n", false).unwrap_err(), "`g` holds no rows");
    }
}
