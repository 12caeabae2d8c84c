//! {x^(i)} = {x_{t,a}}: the contexts over which the theory's matrices are made.

use std::collections::HashSet;

use crate::data::{Contexts, LoggedData, Pair};
use crate::error::Error;

/// Directions, lengths and places of many contexts. With disjoint encoding two contexts of different actions are
/// orthogonal; the zeros are never built.
#[derive(Debug, Clone)]
pub struct Points {
    dim: usize,
    /// Unit vectors, one after another.
    direction: Vec<f64>,
    norm: Vec<f64>,
    block: Vec<u32>,
    /// Round and action of each.
    origin: Vec<(u32, u32)>,
}

impl Points {
    /// Every pair of the contexts, in their order: the nK points of Definition 4.1.
    pub fn all(contexts: &Contexts) -> Result<Self, Error> {
        let mut points = Points::none(contexts.layout().dim);
        for round in 0..contexts.n_rounds() {
            for place in 0..contexts.pairs(round).len() {
                let pair = contexts.pair(round, place);
                points.push(contexts.layout().block(pair.action), round, pair)?;
            }
        }
        Ok(points)
    }

    /// The chosen pairs x_{t,a_t} of a log.
    pub fn chosen(log: &LoggedData) -> Result<Self, Error> {
        let mut points = Points::none(log.contexts().layout().dim);
        for round in 0..log.n_rounds() {
            let pair = log.round(round).chosen;
            points.push(log.contexts().layout().block(pair.action), round, pair)?;
        }
        Ok(points)
    }

    fn none(dim: usize) -> Self {
        Points { dim, direction: Vec::new(), norm: Vec::new(), block: Vec::new(), origin: Vec::new() }
    }

    fn push(&mut self, block: usize, round: usize, pair: Pair<'_>) -> Result<(), Error> {
        let norm = pair.x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        if norm == 0.0 {
            return Err(Error::ZeroContext { round, action: pair.action });
        }
        self.direction.extend(pair.x.iter().map(|&x| f64::from(x) / norm));
        self.norm.push(norm);
        self.block.push(block as u32);
        self.origin.push((round as u32, pair.action as u32));
        Ok(())
    }

    /// The same directions with length 1 (Assumption 4.1).
    pub fn normalised(mut self) -> Self {
        self.norm.fill(1.0);
        self
    }

    /// The first of all points that have the same direction (and block): data sets repeat rows, which makes H singular.
    pub fn distinct(&self) -> Self {
        let mut seen = HashSet::new();
        let mut out = Points::none(self.dim);
        for i in 0..self.len() {
            // rounded, so that rows of different length but one direction meet
            let key: Vec<i64> = self.direction(i).iter().map(|v| (v * 1e9).round() as i64).collect();
            if seen.insert((self.block[i], key)) {
                out.direction.extend_from_slice(self.direction(i));
                out.norm.push(self.norm[i]);
                out.block.push(self.block[i]);
                out.origin.push(self.origin[i]);
            }
        }
        out
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.norm.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.norm.is_empty()
    }

    /// Round and action of point i.
    pub fn origin(&self, i: usize) -> (usize, usize) {
        (self.origin[i].0 as usize, self.origin[i].1 as usize)
    }

    /// Length of a vector.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// x^(i)/‖x^(i)‖.
    pub(super) fn direction(&self, i: usize) -> &[f64] {
        &self.direction[i * self.dim..(i + 1) * self.dim]
    }

    /// Several of them, one after another.
    pub(super) fn directions(&self, range: std::ops::Range<usize>) -> &[f64] {
        &self.direction[range.start * self.dim..range.end * self.dim]
    }

    /// ‖x^(i)‖.
    pub(super) fn norm(&self, i: usize) -> f64 {
        self.norm[i]
    }

    /// The block of the disjoint encoding.
    pub(super) fn block(&self, i: usize) -> usize {
        self.block[i] as usize
    }
}
