//! The inputs of a batch: rows that lie anywhere in a list of numbers.

use std::ops::Range;

use super::Net;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, LANES, lanes, lanes_mut};

/// Rows within a list of numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a, T> {
    numbers: &'a [T],
    /// How long a row is: the inputs, then anything up to whole vectors.
    len: usize,
    starts: &'a [usize],
}

impl<'a, T> Inputs<'a, T> {
    /// Rows of that length from those places on.
    #[inline(always)]
    pub(super) fn new(numbers: &'a [T], len: usize, starts: &'a [usize]) -> Self {
        Inputs { numbers, len, starts }
    }

    /// How long a row is.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// One row.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &'a [T] {
        self.at(self.starts[row])
    }

    #[inline(always)]
    fn at(&self, start: usize) -> &'a [T] {
        &self.numbers[start..start + self.len]
    }

    /// Some of the rows.
    #[inline(always)]
    pub(super) fn rows(&self, rows: Range<usize>) -> Self {
        Inputs { starts: &self.starts[rows], ..*self }
    }

    /// The rows, one after another.
    #[inline(always)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &'a [T]> {
        self.starts.iter().map(|&start| self.at(start))
    }

    /// The numbers of rows that were copied, which lie side by side.
    #[inline(always)]
    pub(super) fn side_by_side(&self) -> &'a [T] {
        let first = self.starts.first().map_or(0, |&first| first);
        &self.numbers[first..first + self.starts.len() * self.len]
    }
}

/// Where the rows of a batch are found, and copied to if they cannot be read where they lie.
#[derive(Debug, Clone)]
pub(crate) struct Gathered<T> {
    copies: Vec<T>,
    starts: Vec<usize>,
}

impl<T: Scalar> Gathered<T> {
    /// Room for `rows` rows.
    pub(crate) fn new(net: &Net, rows: usize) -> Self {
        let len = net.n_in.next_multiple_of(LANES);
        Gathered { copies: vec![T::ZERO; rows * len], starts: (0..rows).map(|r| r * len).collect() }
    }

    /// The inputs of the contexts at these places of a list, in which each takes `len` numbers, of which the first are its own.
    /// They are read where they lie if they are numbers of type T in whole vectors, to be turned into lanes.
    #[inline(always)]
    pub(crate) fn gather<'a, A: Arch>(
        &'a mut self,
        net: &Net,
        list: &'a [f32],
        len: usize,
        places: impl Iterator<Item = usize>,
    ) -> Inputs<'a, T> {
        let Gathered { copies, starts } = self;
        let (own, twice) = (net.n_in.next_multiple_of(LANES), net.config.duplicate_input);
        let whole = len >= own && !twice;
        if let Some(numbers) = T::same(list)
            && whole
            && net.is_in_lanes()
        {
            for (start, place) in starts.iter_mut().zip(places) {
                *start = place * len;
            }
            return Inputs { numbers, len, starts };
        }
        let dim = if twice { net.n_in / 2 } else { net.n_in };
        for (to, place) in copies.chunks_exact_mut(own).zip(places) {
            let x = &list[place * len..(place + 1) * len];
            if whole {
                // whole vectors, whatever stands in the padding
                for (to, from) in lanes_mut(to).iter_mut().zip(lanes(x)) {
                    A::store(A::load_f32(from), to);
                }
            } else {
                net.write_input_in::<T, A>(&x[..dim], &mut to[..net.n_in]);
            }
        }
        Inputs { numbers: copies, len: own, starts }
    }
}
