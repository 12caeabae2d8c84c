//! Where numbers lie: lists on the borders of cache lines, others in large pages, and memory that is asked for ahead of its use.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};

use super::{LANES, Tile};
use crate::linalg::scalar::Scalar;

/// Numbers from the border of a cache line on: a vector of eight that lies across one would be two accesses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbers<T> {
    /// What follows the last number is zero.
    tiles: Vec<Tile<T>>,
    len: usize,
}

impl<T: Scalar> Numbers<T> {
    /// So many zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        Numbers { tiles: vec![Tile::ZERO; len.div_ceil(2 * LANES)], len }
    }

    /// So many of one number.
    pub(crate) fn filled(v: T, len: usize) -> Self {
        let mut numbers = Numbers::zeros(len);
        numbers.fill(v);
        numbers
    }

    /// Becomes so long, with whatever numbers.
    pub(crate) fn set_len(&mut self, len: usize) {
        if len != self.len {
            *self = Numbers::zeros(len);
        }
    }
}

impl<T: Scalar> Deref for Numbers<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &Tile::vectors(&self.tiles).as_flattened()[..self.len]
    }
}

impl<T: Scalar> DerefMut for Numbers<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut Tile::vectors_mut(&mut self.tiles).as_flattened_mut()[..self.len]
    }
}

impl<T: Scalar> From<&[T]> for Numbers<T> {
    fn from(numbers: &[T]) -> Self {
        let mut own = Numbers::zeros(numbers.len());
        own.copy_from_slice(numbers);
        own
    }
}

/// A growing list of f32 in lines of eight. A line lies on a border of 32 bytes, so that it is within one cache line;
/// from some megabytes on the list asks for large pages, because reads from all over it would miss the processor's
/// table of small ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines(Vec<Line>);

#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(32))]
struct Line([f32; LANES]);

impl Lines {
    /// Lines.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The numbers of some lines.
    #[inline(always)]
    pub(crate) fn get(&self, lines: Range<usize>) -> &[f32] {
        let lines = &self.0[lines];
        // SAFETY: a line is eight f32 without padding, so that many lie there, initialised, for as long as `lines` does.
        unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * LANES) }
    }

    /// Adds `n` lines of zeros, to be filled.
    pub(crate) fn add(&mut self, n: usize) -> &mut [f32] {
        let start = self.0.len();
        if start + n > self.0.capacity() {
            let mut larger = Vec::with_capacity((start + n).max(2 * start));
            ask_for_large_pages(larger.spare_capacity_mut());
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.resize(start + n, Line::default());
        // what comes next will be written far from all that was read meanwhile
        let next = self.0.spare_capacity_mut();
        prefetch(&next[..n.min(next.len())]);
        let lines = &mut self.0[start..];
        // SAFETY: as in `get`; `lines` is the only borrow, and any f32 may stand in a line.
        unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * LANES) }
    }
}

/// Asks that memory which nothing was written to yet be given in pages of 2 MB; does nothing where there are none.
fn ask_for_large_pages<T>(memory: &mut [MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    {
        const LARGE: usize = 1 << 21;
        let (from, bytes) = (memory.as_mut_ptr().cast::<u8>(), size_of_val(memory));
        let (start, end) = (from.addr().next_multiple_of(LARGE), (from.addr() + bytes) / LARGE * LARGE);
        if start < end {
            // SAFETY: start..end is whole pages within `memory`, and the advice changes nothing that stands in them. A
            // kernel that refuses leaves them as they are.
            unsafe { libc::madvise(from.wrapping_add(start - from.addr()).cast(), end - start, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Rows of a list of numbers that will be read soon, to be asked for a few at a time.
#[derive(Debug, Clone)]
pub(crate) struct Ahead<'a> {
    numbers: &'a [f32],
    /// Numbers of a row.
    len: usize,
    /// Those that are still to be asked for, and how many at a time; there may be some that the list does not hold yet.
    rows: &'a [u32],
    portion: usize,
}

impl<'a> Ahead<'a> {
    /// Rows of `len` numbers side by side, to be asked for at so many places: at the first half of them, as on a Zen 5 twice as many at a
    /// time take less time than as many at twice the places.
    pub(crate) fn new(numbers: &'a [f32], len: usize, rows: &'a [u32], places: usize) -> Self {
        Ahead { numbers, len, rows, portion: 2 * rows.len().div_ceil(places) }
    }

    /// Nothing to ask for.
    pub(crate) fn nothing() -> Self {
        Ahead::new(&[], 0, &[], 1)
    }

    /// Asks for the next portion.
    #[inline(always)]
    pub(crate) fn ask(&mut self) {
        let (now, later) = self.rows.split_at(self.portion.min(self.rows.len()));
        for &row in now {
            let start = row as usize * self.len;
            if let Some(row) = self.numbers.get(start..start + self.len) {
                prefetch(row);
            }
        }
        self.rows = later;
    }
}

/// Asks for a slice's first and last cache lines ahead of their use, into the second cache: the first has no room for what
/// is not needed at once. Changes no result.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T]) {
    if let (Some(first), Some(last)) = (slice.first(), slice.last()) {
        prefetch_line::<T, false>(first);
        prefetch_line::<T, false>(last);
    }
}

/// As [`prefetch`], for all cache lines of 64 bytes, and into the first cache.
#[inline(always)]
pub(crate) fn prefetch_all(slice: &[f32]) {
    let (lines, rest) = slice.as_chunks::<16>();
    lines.iter().for_each(|line| prefetch_line::<f32, true>(&line[0]));
    rest.first().into_iter().chain(slice.last()).for_each(prefetch_line::<f32, true>);
}

/// Asks for the cache line in which something begins, into the first cache.
#[inline(always)]
pub(crate) fn prefetch_first<T>(at: &T) {
    prefetch_line::<T, true>(at);
}

#[inline(always)]
fn prefetch_line<T, const FIRST: bool>(at: &T) {
    // SAFETY: a prefetch reads nothing that the program sees; SSE is part of the target.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let at = std::ptr::from_ref(at).cast();
        if FIRST { _mm_prefetch::<_MM_HINT_T0>(at) } else { _mm_prefetch::<_MM_HINT_T1>(at) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_from_the_border_of_a_cache_line_on() {
        for len in [0, 1, 15, 16, 17, 100] {
            let from: Vec<f64> = (0..len).map(|i| i as f64 + 1.0).collect();
            let mut numbers = Numbers::from(&from[..]);
            assert_eq!(numbers.as_ptr().addr() % 64, 0);
            assert_eq!(numbers[..], from[..]);
            assert_eq!(numbers == Numbers::filled(1.0, len), len < 2);
            numbers.set_len(40);
            assert_eq!(numbers.len(), 40);
        }
    }
}
