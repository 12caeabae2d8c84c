//! The published files: where they come from, where they go, and how to know that they are the right ones.

use super::RealData;

/// A file of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataFile {
    /// Its place in the cache.
    pub path: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// Its public home, as it is served there.
    pub home: &'static str,
    /// How it is served.
    pub packing: Packing,
}

/// How a file is served by its home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// As it is kept.
    Plain,
    /// Compressed by Unix `compress`; size and hash are those of the content.
    UnixCompress,
}

/// One file, as it is served.
const fn plain(path: &'static str, bytes: u64, sha256: &'static str, home: &'static str) -> DataFile {
    DataFile { path, bytes, sha256, home, packing: Packing::Plain }
}

pub(super) const MUSHROOM: DataFile = plain(
    "mushroom/agaricus-lepiota.data",
    373_704,
    "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/mushroom/agaricus-lepiota.data",
);

pub(super) const SHUTTLE: DataFile = DataFile {
    path: "shuttle/shuttle.trn",
    bytes: 1_153_518,
    sha256: "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a",
    home: "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/shuttle/shuttle.trn.Z",
    packing: Packing::UnixCompress,
};

pub(super) const ADULT_DATA: DataFile = plain(
    "adult/adult.data",
    3_974_305,
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
);

pub(super) const ADULT_TEST: DataFile = plain(
    "adult/adult.test",
    2_003_153,
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test",
);

pub(super) const TRAIN_IMAGES: DataFile = plain(
    "mnist/train-images-idx3-ubyte.gz",
    9_912_422,
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
);

pub(super) const TRAIN_LABELS: DataFile = plain(
    "mnist/train-labels-idx1-ubyte.gz",
    28_881,
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
);

pub(super) const TEST_IMAGES: DataFile = plain(
    "mnist/t10k-images-idx3-ubyte.gz",
    1_648_877,
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz",
);

pub(super) const TEST_LABELS: DataFile = plain(
    "mnist/t10k-labels-idx1-ubyte.gz",
    4_542,
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz",
);

impl RealData {
    /// The files it is made of.
    pub fn files(self) -> &'static [DataFile] {
        match self {
            RealData::Mushroom => &[MUSHROOM],
            RealData::Statlog => &[SHUTTLE],
            RealData::Adult => &[ADULT_DATA, ADULT_TEST],
            RealData::Mnist => &[TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS],
        }
    }
}
