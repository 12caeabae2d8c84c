//! SHA-256 of a log's bytes, taken on the way while the log is read.

use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::hex::hex;

/// The sum of the first bytes of a log, whose files count as one. Whoever reads them in order shows what is read; what
/// is already in the sum is passed over, so that any number of readings may run.
#[derive(Debug, Default)]
pub(crate) struct Summed(Mutex<Sum>);

#[derive(Debug, Default)]
struct Sum {
    hash: Sha256,
    /// How many bytes are in it.
    n: u64,
}

impl Summed {
    /// Some bytes, which begin at a place of the log.
    pub fn show(&self, at: u64, bytes: &[u8]) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = usize::try_from(sum.n.saturating_sub(at)).unwrap_or(usize::MAX);
        if at <= sum.n && known < bytes.len() {
            sum.hash.update(&bytes[known..]);
            sum.n += (bytes.len() - known) as u64;
        }
    }

    /// How many bytes are in the sum.
    pub fn n(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).n
    }

    /// The sum so far, in hexadecimal.
    pub fn hex(&self) -> String {
        let sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hex(sum.hash.clone().finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_overlap_give_the_sum_of_the_bytes() {
        let text: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
        let whole = Summed::default();
        whole.show(0, &text);
        let parts = Summed::default();
        // a sample, the beginning anew, a stretch that is too far ahead, and the rest
        for (from, to) in [(0, 64), (0, 30), (30, 200), (500, 600), (100, 150), (150, 1000), (900, 1000)] {
            parts.show(from as u64, &text[from..to]);
        }
        assert_eq!((parts.n(), parts.hex()), (1000, whole.hex()));
    }
}
