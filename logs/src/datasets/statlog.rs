//! Statlog (Shuttle): nine numbers and a class from 1 to 7, between blanks.

use std::path::Path;

use super::cache::Cache;
use super::files::SHUTTLE;
use super::text::{Between, lines};
use super::{Classified, DataError, Variant};

const N_NUMBERS: usize = 9;
/// The names in the file's documentation.
const CLASSES: [&str; 7] = ["Rad Flow", "Fpv Close", "Fpv Open", "High", "Bypass", "Bpv Close", "Bpv Open"];

pub(super) fn load(cache: &Cache, variant: Variant) -> Result<Classified, DataError> {
    let (path, text) = cache.text(&SHUTTLE)?;
    parse(&path, &text, variant)
}

fn parse(path: &Path, text: &str, variant: Variant) -> Result<Classified, DataError> {
    let dim = if variant == Variant::Paper { N_NUMBERS } else { N_NUMBERS + 1 };
    let (mut x, mut labels) = (Vec::new(), Vec::new());
    for line in lines(path, text, Between::Blank, N_NUMBERS + 1)? {
        let line = line?;
        for i in 0..N_NUMBERS {
            x.push(line.number(i)?);
        }
        let class = match line.fields()[N_NUMBERS].parse::<u32>() {
            Ok(class @ 1..=7) => class,
            _ => return Err(line.refuse(N_NUMBERS, "a class from 1 to 7")),
        };
        if variant == Variant::ReleasedCode {
            x.push(class as f32);
        }
        labels.push(class - 1);
    }
    if variant == Variant::ReleasedCode {
        // Its defect: `[: :-1]` for `[:, :-1]` turns the rows around instead of dropping the last column, so that the
        // label of row i meets the numbers of row n − 1 − i.
        x = x.chunks_exact(dim).rev().flatten().copied().collect();
    }
    let class_names = CLASSES.map(String::from).to_vec();
    Ok(Classified { dim, n_classes: CLASSES.len(), x, labels, class_names, test_from: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "1 2 3 4 5 6 7 8 9 1\n11 2 -3 4 5 6 7 8 9 7\n";

    #[test]
    fn the_paper_has_nine_columns_and_the_label_of_the_same_row() {
        let data = parse(Path::new("f"), TEXT, Variant::Paper).unwrap();
        assert_eq!((data.dim, data.labels.as_slice()), (9, &[0, 6][..]));
        assert_eq!(data.row(1), [11.0, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    }

    #[test]
    fn the_released_code_has_ten_columns_and_the_label_of_another_row() {
        let data = parse(Path::new("f"), TEXT, Variant::ReleasedCode).unwrap();
        assert_eq!((data.dim, data.labels.as_slice()), (10, &[0, 6][..]));
        assert_eq!(data.row(0), [11.0, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 7.0]);
        assert_eq!(data.row(1), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0]);
    }

    #[test]
    fn wrong_numbers_and_classes_are_refused() {
        for (text, want) in [
            ("1 2 3 4 5 6 7 8 9 8\n", "`f`, line 1, field 10: must be a class from 1 to 7, got `8`"),
            ("1 2 3 4 5 6 7 8 9 1\n1 2 y 4 5 6 7 8 9 1\n", "`f`, line 2, field 3: must be a finite number, got `y`"),
            ("1 2 3 4 5 6 7 8 9\n", "`f`, line 1: must have 10 fields, got 9"),
        ] {
            assert_eq!(parse(Path::new("f"), text, Variant::Paper).unwrap_err().to_string(), want);
        }
    }
}
