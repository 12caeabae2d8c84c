//! One seed, named random streams.
//!
//! Every draw of the program comes from a stream that is named after its purpose, so that adding a draw in one
//! place moves no other: `seed.stream("noise")` and `seed.stream("contexts")` are independent generators.
//! There is no global generator and no entropy.
//!
//! ```
//! use neuralcb::Seed;
//! use rand::Rng;
//!
//! let seed = Seed::new(7);
//! assert_eq!(seed.stream("noise").next_u64(), seed.stream("noise").next_u64());
//! assert_ne!(seed.stream("noise").next_u64(), seed.stream("contexts").next_u64());
//! ```

use rand::SeedableRng;

/// The generator behind every stream: small, fast, and the same on every machine.
pub type Stream = rand_xoshiro::Xoshiro256PlusPlus;

/// A seed from which named seeds and streams are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The root of all draws of a run.
    pub fn new(value: u64) -> Self {
        Seed(value)
    }

    /// The number behind the seed.
    pub fn value(self) -> u64 {
        self.0
    }

    /// The seed of a part of the work, by name.
    pub fn child(self, name: &str) -> Self {
        // FNV-1a over the name, started from the mixed seed.
        let start = mix(self.0 ^ 0xcbf2_9ce4_8422_2325);
        Seed(mix(name.bytes().fold(start, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))))
    }

    /// The seed of the i-th of many equal parts, for example a repetition.
    pub fn nth(self, i: u64) -> Self {
        Seed(mix(self.0.wrapping_add(i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    /// The random stream of that name.
    pub fn stream(self, name: &str) -> Stream {
        Stream::seed_from_u64(self.child(name).0)
    }
}

/// The finaliser of SplitMix64: every bit of the input reaches every bit of the output.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn the_first_draw_is_pinned() {
        assert_eq!(Seed::new(1).stream("noise").next_u64(), 17_925_977_535_846_221_423);
    }

    #[test]
    fn names_and_numbers_give_different_streams() {
        let seed = Seed::new(1);
        let mut first: Vec<u64> = ["a", "b", "ab", "ba"].iter().map(|n| seed.stream(n).next_u64()).collect();
        first.extend((0..100).map(|i| seed.nth(i).stream("a").next_u64()));
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 104);
    }
}
