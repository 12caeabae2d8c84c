//! Whose reading of the raw files, and on which scale.

use neuralcb::{Standardiser, unit_norm};
use serde::{Deserialize, Serialize};

use super::{Classified, DataError, RealData};

/// How raw files become rows of numbers. The default is the paper's text.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `variant` | `paper` | which rows and columns are used | `paper`, `released-code` |
/// | `scale` | `unit-norm` | what happens to the numbers | `raw`, `raw-unit-norm`, `standardised`, `unit-norm` |
/// | `parts` | `together` | over which rows a column's mean and deviation are taken | `together`, `separate` |
/// | `strip_income_dot` | `false` | Adult: read the test file's `>50K.` as `>50K` | `true` (92 columns), `false` (94) |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preparation {
    /// Which rows and columns are used.
    pub variant: Variant,
    /// What happens to the numbers.
    pub scale: Scale,
    /// Over which rows a column's mean and standard deviation are taken.
    pub parts: Parts,
    /// Adult: the test file writes incomes with a final dot, so that income has four dummies instead of two. The
    /// paper's 94 columns come from that dot; without it there are 92.
    pub strip_income_dot: bool,
}

/// Which rows and columns are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The paper's table of data sets.
    #[default]
    Paper,
    /// The code released with it: Statlog's rows reversed against their labels, with the label as tenth column; Adult
    /// without its test file. Mushroom and MNIST have the same rows and columns in both.
    ReleasedCode,
}

/// What happens to the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// As in the files; dummies are 0 and 1.
    Raw,
    /// Every column with mean 0 and population variance 1; constant columns 0.
    Standardised,
    /// As in the files, then every row scaled to ‖x‖ = 1.
    RawUnitNorm,
    /// Standardised, then every row scaled to ‖x‖ = 1, the paper's assumption on contexts.
    #[default]
    UnitNorm,
}

/// Over which rows a column's mean and standard deviation are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parts {
    /// All rows.
    #[default]
    Together,
    /// The publisher's training and test part each on its own, where the data set has them (MNIST).
    Separate,
}

impl Preparation {
    /// The paper's text: contexts of unit length, made of all published rows the paper counts. The same for every data
    /// set.
    pub fn paper(_data: RealData) -> Self {
        Preparation::default()
    }

    /// The released code: no unit norm; Mushroom's dummies untouched; MNIST's two parts standardised separately.
    pub fn released_code(data: RealData) -> Self {
        let scale = if data == RealData::Mushroom { Scale::Raw } else { Scale::Standardised };
        let parts = if data == RealData::Mnist { Parts::Separate } else { Parts::Together };
        Preparation { variant: Variant::ReleasedCode, scale, parts, strip_income_dot: false }
    }

    /// Brings the rows to the scale asked for.
    pub(super) fn scale(&self, data: &mut Classified) -> Result<(), DataError> {
        match self.scale {
            Scale::Raw => return Ok(()),
            Scale::RawUnitNorm => return Ok(unit_norm(&mut data.x, data.dim)?),
            Scale::Standardised | Scale::UnitNorm => {}
        }
        let split = match (self.parts, data.test_from) {
            (Parts::Separate, Some(row)) => row * data.dim,
            _ => data.x.len(),
        };
        let (first, second) = data.x.split_at_mut(split);
        for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
            Standardiser::fit(part, data.dim)?.apply(part)?;
        }
        if self.scale == Scale::UnitNorm {
            unit_norm(&mut data.x, data.dim)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(preparation: Preparation) -> Vec<f32> {
        let (x, labels) = (vec![0.0, 5.0, 2.0, 5.0, 10.0, 5.0, 14.0, 7.0], vec![0; 4]);
        let mut data =
            Classified { dim: 2, n_classes: 1, x, labels, class_names: vec!["a".into()], test_from: Some(2) };
        preparation.scale(&mut data).unwrap();
        data.x
    }

    #[test]
    fn the_parts_are_standardised_together_or_each_on_its_own() {
        let base = Preparation { scale: Scale::Standardised, ..Preparation::default() };
        let separate = scaled(Preparation { parts: Parts::Separate, ..base });
        assert_eq!(separate, [-1.0, 0.0, 1.0, 0.0, -1.0, -1.0, 1.0, 1.0]);
        let together = scaled(base);
        assert!(together[0] < together[2] && together[2] < 0.0 && together[4] > 0.0, "{together:?}");
        assert!((together.iter().sum::<f32>()).abs() < 1e-6);
    }

    #[test]
    fn raw_numbers_stay_and_unit_rows_have_length_one() {
        assert_eq!(scaled(Preparation { scale: Scale::Raw, ..Preparation::default() })[6..], [14.0, 7.0]);
        let unit = scaled(Preparation::default());
        for row in unit.chunks(2) {
            assert!((row[0].hypot(row[1]) - 1.0).abs() < 2.0 * f32::EPSILON, "{row:?}");
        }
    }

    #[test]
    fn the_default_is_the_paper_for_every_data_set() {
        for &data in RealData::ALL {
            assert_eq!(Preparation::paper(data), Preparation::default());
            assert_eq!(Preparation::released_code(data).variant, Variant::ReleasedCode);
        }
        assert_eq!(Preparation::released_code(RealData::Mushroom).scale, Scale::Raw);
        assert_eq!(Preparation::released_code(RealData::Mnist).parts, Parts::Separate);
        assert_eq!(Preparation::released_code(RealData::Statlog).scale, Scale::Standardised);
    }
}
