//! Parameters by name, unpadded and in the paper's orientation (W_l is m × n_in): the form for files and for other
//! programs.

use serde::{Deserialize, Serialize};

use super::{Net, Params};
use crate::error::Error;
use crate::linalg::scalar::Scalar;

/// All parameters of a network, or anything of their shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tensors {
    /// W_1, …, W_{L−1}, each as m rows; with disjoint encoding W_1 has the blocks side by side (m × d·K).
    pub weights: Vec<Vec<Vec<f64>>>,
    /// b_1, …, b_{L−1}.
    pub biases: Option<Vec<Vec<f64>>>,
    /// Gains of the layer norms.
    pub gains: Option<Vec<Vec<f64>>>,
    /// Offsets of the layer norms.
    pub offsets: Option<Vec<Vec<f64>>>,
    /// W_L; of several outputs one row after the other.
    pub output: Vec<f64>,
    /// b_L, where there is one output.
    pub output_bias: Option<f64>,
    /// b_L, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_biases: Option<Vec<f64>>,
}

impl Net {
    /// Takes parameters by name; every size is checked.
    pub fn pack<T: Scalar>(&self, tensors: &Tensors) -> Result<Params<T>, Error> {
        let m = self.config.width;
        let hidden = self.layers.len();
        let check = |what, expected: usize, got: usize| {
            if expected == got { Ok(()) } else { Err(Error::Shape { what, expected, got }) }
        };
        let mut params = self.zeros();
        check("hidden layers", hidden, tensors.weights.len())?;
        for (l, matrix) in tensors.weights.iter().enumerate() {
            let n_in = if l == 0 { self.n_in * self.n_blocks } else { m };
            check("rows of a weight matrix", m, matrix.len())?;
            let into = if l == 0 { &mut params.first[..] } else { &mut params.rest[self.layers[l].weight..] };
            for (i, row) in matrix.iter().enumerate() {
                check("columns of a weight matrix", n_in, row.len())?;
                for (j, &w) in row.iter().enumerate() {
                    into[j * self.ld + i] = T::of(w);
                }
            }
        }
        let mut vectors = |what, places: Vec<Option<usize>>, given: &Option<Vec<Vec<f64>>>| {
            let places: Vec<usize> = places.into_iter().flatten().collect();
            let given = given.as_deref().unwrap_or_default();
            check(what, places.len(), given.len())?;
            for (at, vector) in places.into_iter().zip(given) {
                check(what, m, vector.len())?;
                params.rest[at..at + m].iter_mut().zip(vector).for_each(|(p, &v)| *p = T::of(v));
            }
            Ok(())
        };
        vectors("biases", self.layers.iter().map(|l| l.bias).collect(), &tensors.biases)?;
        vectors("gains", self.layers.iter().map(|l| l.gain).collect(), &tensors.gains)?;
        vectors("offsets", self.layers.iter().map(|l| l.offset).collect(), &tensors.offsets)?;
        let (n, ld) = (self.last_in(), self.last_ld());
        check("output weights", self.n_outputs * n, tensors.output.len())?;
        for (k, row) in tensors.output.chunks_exact(n).enumerate() {
            let into = &mut params.rest[self.output + k * ld..];
            into.iter_mut().zip(row).for_each(|(p, &v)| *p = T::of(v));
        }
        let biases: Vec<f64> =
            tensors.output_bias.into_iter().chain(tensors.output_biases.iter().flatten().copied()).collect();
        check("output biases", self.output_bias.map_or(0, |_| self.n_outputs), biases.len())?;
        if let Some(at) = self.output_bias {
            params.rest[at..].iter_mut().zip(&biases).for_each(|(p, &v)| *p = T::of(v));
        }
        Ok(params)
    }

    /// Gives parameters by name.
    pub fn unpack<T: Scalar>(&self, params: &Params<T>) -> Tensors {
        let m = self.config.width;
        let vector = |at: usize| params.rest[at..at + m].iter().map(|v| v.to_f64()).collect::<Vec<_>>();
        let vectors = |places: Vec<Option<usize>>| places.into_iter().map(|at| at.map(vector)).collect();
        let matrix = |l: usize| {
            let n_in = if l == 0 { self.n_in * self.n_blocks } else { m };
            let from = if l == 0 { &params.first[..] } else { &params.rest[self.layers[l].weight..] };
            (0..m).map(|i| (0..n_in).map(|j| from[j * self.ld + i].to_f64()).collect()).collect()
        };
        let n = self.last_in();
        let output = self.output_weights(&params.rest).chunks_exact(self.last_ld()).map(|row| &row[..n]);
        let biases = self.output_bias.map(|at| params.rest[at..at + self.n_outputs].iter().map(|v| v.to_f64()));
        let biases: Option<Vec<f64>> = biases.map(Iterator::collect);
        Tensors {
            weights: (0..self.layers.len()).map(matrix).collect(),
            biases: vectors(self.layers.iter().map(|l| l.bias).collect()),
            gains: vectors(self.layers.iter().map(|l| l.gain).collect()),
            offsets: vectors(self.layers.iter().map(|l| l.offset).collect()),
            output: output.flatten().map(|v| v.to_f64()).collect(),
            output_bias: biases.as_ref().filter(|b| b.len() == 1).map(|b| b[0]),
            output_biases: biases.filter(|b| b.len() > 1),
        }
    }
}
