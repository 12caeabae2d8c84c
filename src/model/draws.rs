//! Which rounds a step of B-mode learns from: a batch is drawn from all rounds so far, uniformly and with replacement.

use rand::Rng;

use crate::seed::Stream;

/// What draws the batches of a pass.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    stream: Stream,
    batch: Vec<u32>,
}

impl Draws {
    /// Batches of that size, of which so many have been drawn.
    pub(super) fn new(mut stream: Stream, size: usize, drawn: usize) -> Self {
        (0..drawn * size).for_each(|_| _ = stream.next_u64());
        Draws { stream, batch: vec![0; size] }
    }

    /// The next batch, of `n` rounds.
    pub(super) fn draw(&mut self, n: usize) -> &[u32] {
        for i in &mut self.batch {
            // ⌊u·n/2⁶⁴⌋: off from uniform by at most n/2⁶⁴
            *i = ((u128::from(self.stream.next_u64()) * n as u128) >> 64) as u32;
        }
        &self.batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn batches_are_the_same_from_any_step_on_and_know_all_rounds_so_far() {
        let stream = || Seed::new(3).stream("batches");
        let mut whole = Draws::new(stream(), 5, 0);
        let all: Vec<Vec<u32>> = (0..20).map(|k| whole.draw(k / 3 + 1).to_vec()).collect();
        for first in [1, 2, 7] {
            let mut draws = Draws::new(stream(), 5, first);
            for (k, want) in all.iter().enumerate().skip(first) {
                assert_eq!(draws.draw(k / 3 + 1), want);
            }
        }
        assert!(all.iter().flatten().any(|&i| i > 3), "later batches know later rounds");
        assert!(all.iter().enumerate().all(|(k, batch)| batch.iter().all(|&i| i as usize <= k / 3)));
    }
}
