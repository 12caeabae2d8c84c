//! W⁽⁰⁾: the paper's block initialisation and the released code's uniform one.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::{Init, Net, Params};
use crate::linalg::scalar::Scalar;
use crate::seed::Stream;

impl Net {
    /// Draws W⁽⁰⁾.
    pub fn init<T: Scalar>(&self, rng: &mut Stream) -> Params<T> {
        let mut params = self.zeros();
        match self.config.init {
            Init::Block => self.init_block(&mut params, rng),
            Init::Uniform => self.init_uniform(&mut params, rng),
            Init::He => self.init_he(&mut params, rng),
        }
        for layer in &self.layers {
            if let Some(at) = layer.gain {
                params.rest[at..at + self.config.width].fill(T::ONE);
            }
        }
        params
    }

    /// Algorithm 1: the first half of the units reads the first half of the inputs through W̄, the second half of the
    /// units reads the second half of the inputs through the same W̄. On [x, x]/√2 both halves agree and, because the
    /// output is [w, −w], cancel. Where d is odd the first half of the inputs is one longer.
    fn init_block<T: Scalar>(&self, params: &mut Params<T>, rng: &mut Stream) {
        let m = self.config.width;
        let (hidden, output) = ((4.0 / m as f64).sqrt(), (2.0 / m as f64).sqrt());
        let mut fill = |weight: &mut [T], n_in: usize| {
            let (half_in, half_out) = (n_in.div_ceil(2), m / 2);
            for j in 0..half_in {
                for i in 0..half_out {
                    let w = T::of(hidden * normal(rng));
                    weight[j * self.ld + i] = w;
                    if j + half_in < n_in {
                        weight[(j + half_in) * self.ld + half_out + i] = w;
                    }
                }
            }
        };
        for block in 0..self.n_blocks {
            fill(self.block_mut(&mut params.first, block), self.n_in);
        }
        for layer in self.layers.iter().skip(1) {
            fill(&mut params.rest[layer.weight..][..m * self.ld], m);
        }
        let half = self.last_in() / 2;
        for row in params.rest[self.output..][..self.n_outputs * self.last_ld()].chunks_mut(self.last_ld()) {
            for i in 0..half {
                let w = T::of(output * normal(rng));
                (row[i], row[half + i]) = (w, -w);
            }
        }
    }

    /// The released code: every weight uniform in ±√(3 / fan_in), with fan_in = d·K in the first layer.
    fn init_uniform<T: Scalar>(&self, params: &mut Params<T>, rng: &mut Stream) {
        let m = self.config.width;
        let mut fill = |weight: &mut [T], fan_in: usize| {
            let bound = (3.0 / fan_in as f64).sqrt();
            for row in weight.chunks_mut(self.ld) {
                for w in &mut row[..m] {
                    *w = T::of(bound * (2.0 * rng.random::<f64>() - 1.0));
                }
            }
        };
        fill(&mut params.first, self.n_in * self.n_blocks);
        for layer in self.layers.iter().skip(1) {
            fill(&mut params.rest[layer.weight..][..m * self.ld], m);
        }
        self.fill_output(params, || (3.0 / self.last_in() as f64).sqrt() * (2.0 * rng.random::<f64>() - 1.0));
    }

    /// He et al.: N(0, 2 / fan_in). Without a hidden layer the problem is convex, and all weights stay 0.
    fn init_he<T: Scalar>(&self, params: &mut Params<T>, rng: &mut Stream) {
        if self.layers.is_empty() {
            return;
        }
        let m = self.config.width;
        let mut fill = |weight: &mut [T], fan_in: usize| {
            let std = (2.0 / fan_in as f64).sqrt();
            for row in weight.chunks_mut(self.ld) {
                row[..m].iter_mut().for_each(|w| *w = T::of(std * normal(rng)));
            }
        };
        fill(&mut params.first, self.n_in);
        for layer in self.layers.iter().skip(1) {
            fill(&mut params.rest[layer.weight..][..m * self.ld], m);
        }
        self.fill_output(params, || (2.0 / m as f64).sqrt() * normal(rng));
    }

    /// Draws the weights of every output.
    fn fill_output<T: Scalar>(&self, params: &mut Params<T>, mut draw: impl FnMut() -> f64) {
        let (ld, n) = (self.last_ld(), self.last_in());
        for row in params.rest[self.output..][..self.n_outputs * ld].chunks_mut(ld) {
            row[..n].iter_mut().for_each(|w| *w = T::of(draw()));
        }
    }
}

fn normal(rng: &mut Stream) -> f64 {
    StandardNormal.sample(rng)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Encoding, Layout};
    use crate::net::{NetConfig, Tangents};
    use crate::seed::Seed;

    #[test]
    fn the_block_initialisation_gives_zero_on_doubled_inputs() {
        for (encoding, depth, layer_norm) in [
            (Encoding::PerAction, 2, false),
            (Encoding::PerAction, 3, true),
            (Encoding::Disjoint, 2, true),
            (Encoding::Disjoint, 4, false),
        ] {
            let layout = Layout { dim: 5, n_actions: 3, encoding };
            let config = NetConfig { depth, width: 14, layer_norm, duplicate_input: true, ..NetConfig::default() };
            let net = Net::new(config, layout).unwrap();
            let params = net.init::<f64>(&mut Seed::new(3).stream("init"));
            let x = [0.3f32, -0.2, 0.9, 0.1, -0.4];
            let mut input = vec![0.0; net.n_in()];
            net.write_input(&x, &mut input);
            let mut tangents = Tangents::new(&net);
            for block in 0..layout.n_blocks() {
                net.tangents(&params, block, &input, &mut tangents);
                assert!(tangents.f()[0].abs() < 1e-14, "{:?} {}", encoding, tangents.f()[0]);
                assert!(tangents.norm_squared(&net) > 1.0, "the gradient must not vanish");
            }
        }
    }

    #[test]
    fn the_entries_have_the_paper_s_variances() {
        let layout = Layout { dim: 200, n_actions: 2, encoding: Encoding::PerAction };
        let net = Net::new(NetConfig { width: 100, depth: 3, ..NetConfig::default() }, layout).unwrap();
        let params = net.init::<f64>(&mut Seed::new(3).stream("init"));
        let variance = |v: &[f64]| {
            let v: Vec<f64> = v.iter().copied().filter(|v| *v != 0.0).collect();
            (v.len(), v.iter().map(|v| v * v).sum::<f64>() / v.len() as f64)
        };
        let (n, first) = variance(&params.first);
        assert_eq!(n, 2 * 100 * 50);
        assert!((first / (4.0 / 100.0) - 1.0).abs() < 0.06, "5000 draws: 4 standard errors are 0.08");
        let (n, output) = variance(&params.rest[net.output..net.output + 100]);
        assert_eq!(n, 100);
        assert!((output / (2.0 / 100.0) - 1.0).abs() < 0.6, "50 draws");
    }
}
