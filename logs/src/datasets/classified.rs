//! Rows of numbers with a label each.

use std::path::Path;

use super::{DataError, RealData};

/// A classification data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    /// Numbers per row.
    pub dim: usize,
    /// Number of classes; labels are below it.
    pub n_classes: usize,
    /// The rows, one after the other.
    pub x: Vec<f32>,
    /// The class of each row, from 0.
    pub labels: Vec<u32>,
    /// The classes by name.
    pub class_names: Vec<String>,
    /// First row of the official test part, where the publisher made one that the paper uses separately (MNIST:
    /// 60,000).
    pub test_from: Option<usize>,
}

/// The size of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Rows.
    pub n_rows: usize,
    /// Numbers per row.
    pub dim: usize,
    /// Classes; as a bandit, actions.
    pub n_classes: usize,
}

impl Classified {
    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.labels.len()
    }

    /// The numbers of row `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.x[i * self.dim..(i + 1) * self.dim]
    }

    /// How many rows each class has.
    pub fn histogram(&self) -> Vec<usize> {
        let mut counts = vec![0; self.n_classes];
        self.labels.iter().for_each(|&label| counts[label as usize] += 1);
        counts
    }

    /// Refuses a data set of another size than the published one.
    pub(super) fn check(&self, data: RealData, want: Counts, cache: &Path) -> Result<(), DataError> {
        for (what, want, got) in [("rows", want.n_rows, self.n_rows()), ("columns", want.dim, self.dim)] {
            if got != want {
                return Err(DataError::Counts { data, what, want, got, cache: cache.to_path_buf() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Classified {
        let class_names = vec!["a".into(), "b".into()];
        Classified {
            dim: 2,
            n_classes: 2,
            x: vec![1.0, 2.0, 3.0, 4.0],
            labels: vec![1, 1],
            class_names,
            test_from: None,
        }
    }

    #[test]
    fn rows_and_classes_are_counted() {
        let data = small();
        assert_eq!((data.n_rows(), data.row(1), data.histogram()), (2, &[3.0, 4.0][..], vec![0, 2]));
    }

    #[test]
    fn another_size_than_the_published_one_is_refused_with_both_numbers() {
        let (data, cache) = (small(), Path::new("cache"));
        let counts = Counts { n_rows: 2, dim: 2, n_classes: 2 };
        data.check(RealData::Adult, counts, cache).unwrap();
        let error = data.check(RealData::Adult, Counts { n_rows: 3, ..counts }, cache).unwrap_err().to_string();
        assert!(error.contains("`adult`") && error.contains("3 rows, got 2") && error.contains("`cache`"), "{error}");
        let error = data.check(RealData::Adult, Counts { dim: 9, ..counts }, cache).unwrap_err().to_string();
        assert!(error.contains("9 columns, got 2"), "{error}");
    }
}
