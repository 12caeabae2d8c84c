//! The four real data sets of the paper, from the publishers' own files to rows of numbers with a label each.
//!
//! | name | rows | columns | classes | files |
//! |---|---:|---:|---:|---|
//! | `mushroom` | 8,124 | 117 | 2 | `mushroom/agaricus-lepiota.data` |
//! | `statlog` | 43,500 | 9 | 7 | `shuttle/shuttle.trn` |
//! | `adult` | 45,222 | 94 | 14 | `adult/adult.data`, `adult/adult.test` |
//! | `mnist` | 70,000 | 784 | 10 | `mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz` |
//!
//! These are the paper's counts; [`Preparation`] says whose reading of the files is followed. Files live in a cache
//! folder ([`cache_dir`]) in the layout above and get there by [`fetch()`], which checks every one against its SHA-256.
//!
//! ```no_run
//! use neuralcb_logs::datasets::{Preparation, RealData, cache_dir};
//!
//! let mnist = RealData::Mnist.load(&Preparation::default(), &cache_dir())?;
//! assert_eq!((mnist.n_rows(), mnist.dim, mnist.n_classes), (70_000, 784, 10));
//! # Ok::<(), neuralcb_logs::datasets::DataError>(())
//! ```

mod adult;
mod cache;
mod classified;
mod download;
mod error;
mod fetch;
mod files;
mod lzw;
mod mnist;
mod mushroom;
mod one_hot;
mod preparation;
mod presence;
mod statlog;
mod text;

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use cache::cache_dir;
pub use classified::{Classified, Counts};
pub use error::DataError;
pub use fetch::{Arrival, Source, fetch};
pub use files::{DataFile, Packing};
pub use preparation::{Parts, Preparation, Scale, Variant};
pub use presence::Presence;

use cache::Cache;

/// A data set of the paper that was not simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RealData {
    /// Mushrooms by 22 attributes, edible or poisonous (UCI).
    Mushroom,
    /// States of a space shuttle's radiators (UCI, Statlog project).
    Statlog,
    /// Occupations in the census of 1994 (UCI).
    Adult,
    /// Handwritten digits.
    Mnist,
}

impl RealData {
    /// All of them, in the order of the paper.
    pub const ALL: &'static [RealData] = &[RealData::Mushroom, RealData::Statlog, RealData::Adult, RealData::Mnist];

    /// The spelling on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            RealData::Mushroom => "mushroom",
            RealData::Statlog => "statlog",
            RealData::Adult => "adult",
            RealData::Mnist => "mnist",
        }
    }

    /// The one with that spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|v| v.name().eq_ignore_ascii_case(text))
    }

    /// The licence it may be used under, as its publisher (for MNIST: the Keras project) states it.
    pub fn licence(self) -> &'static str {
        match self {
            RealData::Mushroom | RealData::Statlog | RealData::Adult => "CC BY 4.0",
            RealData::Mnist => "CC BY-SA 3.0",
        }
    }

    /// The size it has after that preparation.
    pub fn counts(self, preparation: &Preparation) -> Counts {
        let paper = preparation.variant == Variant::Paper;
        let (n_rows, dim, n_classes) = match self {
            RealData::Mushroom => (8_124, 117, 2),
            RealData::Statlog => (43_500, if paper { 9 } else { 10 }, 7),
            RealData::Adult if !paper => (30_162, 92, 14),
            RealData::Adult => (45_222, if preparation.strip_income_dot { 92 } else { 94 }, 14),
            RealData::Mnist => (70_000, 784, 10),
        };
        Counts { n_rows, dim, n_classes }
    }

    /// Reads the files in the cache and prepares them.
    ///
    /// A file that parses and yet does not give the published counts is refused too: results on other rows would carry
    /// the data set's name.
    pub fn load(self, preparation: &Preparation, cache: &Path) -> Result<Classified, DataError> {
        let cache = Cache { data: self, folder: cache };
        let mut data = match self {
            RealData::Mushroom => mushroom::load(&cache)?,
            RealData::Statlog => statlog::load(&cache, preparation.variant)?,
            RealData::Adult => adult::load(&cache, preparation)?,
            RealData::Mnist => mnist::load(&cache)?,
        };
        data.check(self, self.counts(preparation), cache.folder)?;
        preparation.scale(&mut data)?;
        Ok(data)
    }
}

impl fmt::Display for RealData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
