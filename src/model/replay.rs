//! The chosen pairs of all rounds so far, which networks that learn from batches go back to, and the step on a batch of
//! them: the loss is the mean of ½(f(x_r) − y_r)².

use crate::archive::Archive;
use crate::data::{Layout, Pair};
use crate::error::Error;
use crate::net::{Batch, Net, Number, Params, Stepper, loss};

/// The rounds.
#[derive(Debug, Clone)]
pub(super) struct Replay {
    layout: Layout,
    x: Vec<f32>,
    actions: Vec<u32>,
    rewards: Vec<f64>,
}

/// Memory that every step uses again.
#[derive(Debug, Clone)]
pub(super) struct Work<T> {
    batch: Batch<T>,
    rows: Vec<u32>,
    y: Vec<T>,
    weights: Vec<T>,
}

impl<T: Number> Work<T> {
    pub(super) fn new(net: &Net) -> Self {
        Work { batch: Batch::new(net), rows: Vec::new(), y: Vec::new(), weights: Vec::new() }
    }
}

/// A network in training.
pub(super) struct Training<'a, T> {
    pub(super) net: &'a Net,
    pub(super) weights: &'a mut Params<T>,
    pub(super) stepper: &'a mut Stepper<T>,
    pub(super) work: &'a mut Work<T>,
}

impl Replay {
    /// No rounds yet.
    pub(super) fn new(layout: Layout) -> Self {
        Replay { layout, x: Vec::new(), actions: Vec::new(), rewards: Vec::new() }
    }

    /// Rounds.
    pub(super) fn len(&self) -> usize {
        self.rewards.len()
    }

    /// Adds a round.
    pub(super) fn push(&mut self, chosen: Pair<'_>, reward: f64) {
        self.x.extend_from_slice(chosen.x);
        self.actions.push(chosen.action as u32);
        self.rewards.push(reward);
    }

    /// The context of a round.
    pub(super) fn context(&self, round: usize) -> &[f32] {
        &self.x[round * self.layout.dim..(round + 1) * self.layout.dim]
    }

    /// The action of a round.
    pub(super) fn action(&self, round: usize) -> usize {
        self.actions[round] as usize
    }

    /// The reward of a round.
    pub(super) fn reward(&self, round: usize) -> f64 {
        self.rewards[round]
    }

    /// One step, number `t` (from 1), on some rounds.
    pub(super) fn step<T: Number>(&self, rounds: &[u32], t: usize, training: Training<'_, T>) {
        let Training { net, weights, stepper, work: Work { batch, rows, y, weights: shares } } = training;
        rows.clear();
        rows.extend_from_slice(rounds);
        if net.n_blocks() > 1 {
            rows.sort_by_key(|&i| self.actions[i as usize]);
        }
        let n = rows.len();
        batch.begin(net, n, rows.iter().map(|&i| net.place(self.action(i as usize)).0));
        for (row, &i) in rows.iter().enumerate() {
            net.write_input(self.context(i as usize), batch.input_mut(row));
        }
        batch.forth(net, weights);
        let (f, slopes) = batch.outputs_and_slopes();
        y.clear();
        shares.clear();
        let k = net.n_outputs();
        if k == 1 {
            y.extend(rows.iter().map(|&i| T::of(self.rewards[i as usize])));
            shares.resize(n, T::of(1.0 / n as f64));
        } else {
            // only the output of the action that was taken counts
            y.resize(n * k, T::ZERO);
            shares.resize(n * k, T::ZERO);
            for (row, &i) in rows.iter().enumerate() {
                let own = row * k + net.place(self.action(i as usize)).1;
                (y[own], shares[own]) = (T::of(self.rewards[i as usize]), T::of(1.0 / n as f64));
            }
        }
        loss::squared(f, y, shares, slopes);
        batch.back(net, weights, stepper, t, 1.0);
    }

    /// Into an archive as columns, or back; `name` is what the column of actions is called.
    pub(super) fn archive(&mut self, name: &str, archive: &mut Archive) -> Result<(), Error> {
        archive.list("replay.context", self.layout.dim, &mut self.x)?;
        archive.list(&format!("replay.{name}"), 1, &mut self.actions)?;
        archive.list("replay.reward", 1, &mut self.rewards)?;
        let n = self.layout.n_actions;
        if let Some(bad) = self.actions.iter().find(|&&a| a as usize >= n) {
            let (name, want) = (format!("replay.{name}"), format!("below {n}"));
            return Err(Error::Array { name, want, got: bad.to_string() });
        }
        for got in [self.x.len() / self.layout.dim, self.actions.len()] {
            if got != self.rewards.len() {
                let what = "rounds that batches are drawn from";
                return Err(Error::Shape { what, expected: self.rewards.len(), got });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Keep;
    use crate::data::Encoding;

    #[test]
    fn rounds_come_back_to_the_bit_through_an_archive() {
        let layout = Layout { dim: 5, n_actions: 7, encoding: Encoding::Disjoint };
        let mut replay = Replay::new(layout);
        for t in 0..9 {
            let x: Vec<f32> = (0..5).map(|j| (t * 5 + j) as f32 - 3.5).collect();
            replay.push(Pair { x: &x, action: t % 7 }, (t as f64 - 4.0) / 3.0);
        }
        let mut archive = Archive::writer(Keep::Training);
        replay.archive("block", &mut archive).unwrap();
        let mut read = Replay::new(layout);
        read.archive("block", &mut Archive::reader(archive.into_arrays(), Keep::Training)).unwrap();
        assert_eq!(read.len(), 9);
        for t in 0..9 {
            assert_eq!(read.context(t), replay.context(t));
            assert_eq!((read.action(t), read.reward(t).to_bits()), (t % 7, replay.reward(t).to_bits()));
        }
    }
}
