//! The inputs of a batch: rows that lie anywhere in a log.

use super::Net;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::memory::Numbers;
use crate::linalg::simd::{Arch, LANES, RowList, lanes, lanes_mut};

/// Where the rows of a batch are copied to if they cannot be read where they lie.
#[derive(Debug, Clone)]
pub(crate) struct Gathered<T> {
    copies: Numbers<T>,
    starts: Vec<usize>,
}

impl<T: Scalar> Gathered<T> {
    /// For `rows` rows.
    pub(crate) fn new(net: &Net, rows: usize) -> Self {
        let len = net.n_in.next_multiple_of(LANES);
        Gathered { copies: Numbers::zeros(0), starts: (0..rows).map(|r| r * len).collect() }
    }

    /// The inputs of contexts, with which each of these rows begins. They are read where they lie if they are numbers of type T
    /// in whole vectors, to be turned into lanes.
    #[inline(always)]
    pub(crate) fn gather<'a, A: Arch>(&'a mut self, net: &Net, rows: RowList<'a, f32>) -> RowList<'a, T> {
        let (own, twice) = (net.n_in.next_multiple_of(LANES), net.config.duplicate_input);
        let whole = rows.len() >= own && !twice;
        if let Some(inputs) = rows.same()
            && whole
            && net.is_in_lanes()
        {
            return inputs;
        }
        let (copies, starts) = (&mut self.copies, &self.starts[..rows.n()]);
        copies.set_len(starts.len() * own);
        let dim = if twice { net.n_in / 2 } else { net.n_in };
        for (to, x) in copies.chunks_exact_mut(own).zip(rows.iter()) {
            if whole {
                // whole vectors, whatever stands in the padding
                for (to, from) in lanes_mut(to).iter_mut().zip(lanes(x)) {
                    A::store(A::load_f32(from), to);
                }
            } else {
                net.write_input_in::<T, A>(&x[..dim], &mut to[..net.n_in]);
            }
        }
        RowList::new(copies, own, starts)
    }
}
