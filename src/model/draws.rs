//! Which rounds a step of B-mode learns from: a batch is drawn from all rounds so far, uniformly and with replacement.
//!
//! Batch k belongs to round ⌊k / steps⌋ + 1, so what it is drawn from is known before that round is here: it is drawn a step
//! ahead, so that its memory can be on its way.

use rand::Rng;

use crate::seed::Stream;

/// The batch of this step and of the next.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    stream: Stream,
    /// Steps per round.
    steps: usize,
    now: Vec<u32>,
    next: Vec<u32>,
    /// The number of the next batch.
    number: usize,
}

impl Draws {
    /// Before the step with this number, counted from 0, of batches of that size.
    pub(super) fn new(mut stream: Stream, (steps, size): (usize, usize), number: usize) -> Self {
        (0..number * size).for_each(|_| _ = stream.next_u64());
        let mut draws = Draws { stream, steps, now: vec![0; size], next: vec![0; size], number };
        draws.draw();
        draws
    }

    /// This step's batch.
    #[inline(always)]
    pub(super) fn now(&self) -> &[u32] {
        &self.now
    }

    /// The next step's batch; it may have rounds that are not here yet.
    #[inline(always)]
    pub(super) fn next(&self) -> &[u32] {
        &self.next
    }

    /// On to the next step.
    pub(super) fn turn(&mut self) {
        std::mem::swap(&mut self.now, &mut self.next);
        self.number += 1;
        self.draw();
    }

    fn draw(&mut self) {
        let n = (self.number / self.steps + 1) as u128;
        for i in &mut self.next {
            // ⌊u·n/2⁶⁴⌋: off from uniform by at most n/2⁶⁴
            *i = ((u128::from(self.stream.next_u64()) * n) >> 64) as u32;
        }
    }

    /// A batch of one's own in place of this step's.
    #[cfg(test)]
    pub(super) fn set_now(&mut self, batch: Vec<u32>) {
        self.now = batch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn stream() -> Stream {
        Seed::new(3).stream("batches")
    }

    /// Batches are those drawn one after another, also from any step on, and are known a step ahead.
    #[test]
    fn batches_are_drawn_one_after_another_from_the_rounds_so_far() {
        let (steps, size) = (3, 5);
        let mut plain = stream();
        let all: Vec<Vec<u32>> = (0..20)
            .map(|k| {
                let n = (k / steps + 1) as u128;
                (0..size).map(|_| ((u128::from(plain.next_u64()) * n) >> 64) as u32).collect()
            })
            .collect();
        for first in [0, 1, 2, 3, 7] {
            let mut draws = Draws::new(stream(), (steps, size), first);
            for (k, want) in all.iter().enumerate().skip(first).take(12) {
                draws.turn();
                assert_eq!((draws.now(), draws.next()), (&want[..], &all[k + 1][..]));
            }
        }
        assert!(all.iter().flatten().any(|&i| i > 3), "later batches know later rounds");
    }
}
