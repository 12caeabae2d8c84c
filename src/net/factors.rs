//! Inner products of gradients from their factors, for the exact Λ over many parameters:
//! ⟨∇f(x), ∇f(y)⟩ = Σ (u·u′)(v·v′).

use std::ops::Range;

use super::{Net, Tangents};
use crate::linalg::cholesky;
use crate::linalg::scalar::Scalar;

impl Net {
    /// ⟨∇f(x_i), ∇f(y_j)⟩ for all i, j: Σ over the groups of (u_i·u_j)(v_i·v_j), where the inputs of W_1 meet only
    /// within the same block. Factors are given group by group, rows × length, with the block of each row.
    pub(crate) fn gram(&self, a: &FactorRows, b: &FactorRows, out: &mut [f64]) {
        let (rows, cols) = (a.blocks.len(), b.blocks.len());
        out.fill(0.0);
        let mut u = vec![0.0; rows * cols];
        let mut v = vec![0.0; rows * cols];
        for (g, group) in self.groups.iter().enumerate() {
            cholesky::gram(&a.u[g], &b.u[g], group.n_out, &mut u);
            if let Some(n_in) = group.n_in {
                cholesky::gram(&a.v[g], &b.v[g], n_in, &mut v);
                if group.first {
                    for i in 0..rows {
                        for j in 0..cols {
                            if a.blocks[i] != b.blocks[j] {
                                v[i * cols + j] = 0.0;
                            }
                        }
                    }
                }
                u.iter_mut().zip(&v).for_each(|(u, v)| *u *= v);
            }
            out.iter_mut().zip(&u).for_each(|(out, u)| *out += u);
        }
    }
}

/// The factors of many gradients, group by group; grows by rows.
#[derive(Debug, Clone)]
pub(crate) struct FactorRows {
    pub(super) u: Vec<Vec<f64>>,
    pub(super) v: Vec<Vec<f64>>,
    pub(super) blocks: Vec<usize>,
}

impl FactorRows {
    /// No rows yet.
    pub(crate) fn new(net: &Net) -> Self {
        let empty = vec![Vec::new(); net.groups.len()];
        FactorRows { u: empty.clone(), v: empty, blocks: Vec::new() }
    }

    /// Appends the factors of a gradient, whose input lies in `block`.
    pub(crate) fn push<T: Scalar>(&mut self, net: &Net, tangents: &Tangents<T>, block: usize) {
        for (g, group) in net.groups.iter().enumerate() {
            self.u[g].extend(tangents.u(group)[..group.n_out].iter().map(|v| v.to_f64()));
            if group.n_in.is_some() {
                self.v[g].extend(tangents.v(group).iter().map(|v| v.to_f64()));
            }
        }
        self.blocks.push(block);
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// A copy of some rows.
    pub(crate) fn slice(&self, rows: Range<usize>) -> FactorRows {
        let n = self.len().max(1);
        let cut = |arrays: &[Vec<f64>]| {
            arrays.iter().map(|a| a[a.len() / n * rows.start..a.len() / n * rows.end].to_vec()).collect()
        };
        FactorRows { u: cut(&self.u), v: cut(&self.v), blocks: self.blocks[rows.clone()].to_vec() }
    }
}
