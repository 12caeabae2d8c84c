//! Categories as columns of zeros and ones.
//!
//! A column with the values v_1 < … < v_k becomes k columns. The values are sorted, so that the columns are the same
//! whatever the order of the rows.

use std::collections::{BTreeMap, BTreeSet};

/// Appends to each row of `rows` the dummies of each of its categories.
///
/// `numbers` are the columns that stay as they are, row-major with `n_numbers` each (there may be none); `categories`
/// has `n_categories` values per row. Returns the rows and their new width.
pub(super) fn encode(numbers: &[f32], n_numbers: usize, categories: &[&str], n_categories: usize) -> (Vec<f32>, usize) {
    let mut dim = n_numbers;
    let mut columns: Vec<BTreeMap<&str, usize>> = Vec::with_capacity(n_categories);
    for c in 0..n_categories {
        let values: BTreeSet<&str> = categories.iter().skip(c).step_by(n_categories).copied().collect();
        columns.push(values.into_iter().zip(dim..).collect());
        dim += columns[c].len();
    }
    let n_rows = categories.len() / n_categories;
    let mut x = vec![0.0; n_rows * dim];
    for (i, (row, values)) in x.chunks_exact_mut(dim).zip(categories.chunks_exact(n_categories)).enumerate() {
        row[..n_numbers].copy_from_slice(&numbers[i * n_numbers..(i + 1) * n_numbers]);
        values.iter().zip(&columns).for_each(|(value, column)| row[column[value]] = 1.0);
    }
    (x, dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dummies_follow_the_numbers_in_the_order_of_the_values() {
        let (x, dim) = encode(&[7.0, 8.0], 1, &["b", "?", "a", "x"], 2);
        assert_eq!(dim, 5); // number, a, b, ?, x
        assert_eq!(x, [7.0, 0.0, 1.0, 1.0, 0.0, 8.0, 1.0, 0.0, 0.0, 1.0]);
    }
}
