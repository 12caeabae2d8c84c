//! Some rounds as a file tells them: columns of raw values, before any preparation.

/// Where a round begins: what an error message names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The file, by its number in the list of those read.
    pub file: u32,
    /// The line of a text, or the row of a table, counted from 1.
    pub line: u64,
}

/// Names, each held once: `names[codes[i]]` is the i-th.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Categories {
    /// The number of each value's name; [`Categories::ABSENT`] where there is no value.
    pub codes: Vec<u32>,
    /// The different names, in the order in which they came.
    pub names: Vec<String>,
}

impl Categories {
    /// The code of a value that is not there.
    pub const ABSENT: u32 = u32::MAX;

    /// The i-th name, if there is one.
    pub fn get(&self, i: usize) -> Option<&str> {
        self.names.get(self.codes[i] as usize).map(String::as_str)
    }
}

/// One feature of some rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Numbers and booleans (0 and 1); NaN where there is no value.
    Numbers(Vec<f64>),
    /// Words.
    Categories(Categories),
}

/// What the rounds of a block offer.
#[derive(Debug, Clone, PartialEq)]
pub enum Offered {
    /// Every action of the log in every round.
    All,
    /// Actions listed round by round.
    Listed {
        /// Round t offers the pairs `offsets[t]..offsets[t + 1]`.
        offsets: Vec<usize>,
        /// The action's name, of each pair. Within a round no name comes twice.
        actions: Categories,
        /// The actions' own features, in the schema's order: a value for each pair. Empty where only rounds have any.
        features: Vec<Values>,
    },
}

/// Some rounds of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Where each round stands.
    pub places: Vec<Place>,
    /// The features of the rounds, in the schema's order: a value for each round.
    pub shared: Vec<Values>,
    /// What each round offers.
    pub offered: Offered,
    /// The name of the chosen action of each round, where it was asked for; it is among those offered.
    pub chosen: Option<Categories>,
    /// The reward of each round, finite, where it was asked for.
    pub rewards: Option<Vec<f64>>,
    /// The behaviour policy's probability of the chosen action, in (0, 1], where the log has it.
    pub propensities: Option<Vec<f64>>,
    /// How many rounds each stands for: 1/(1 − pdrop) where a logger has dropped others like it.
    pub counts: Option<Vec<f64>>,
    /// Further columns of numbers that were asked for by name, in that order.
    pub extra: Vec<Vec<f64>>,
}

impl Block {
    /// Number of rounds.
    pub fn n_rounds(&self) -> usize {
        self.places.len()
    }
}
