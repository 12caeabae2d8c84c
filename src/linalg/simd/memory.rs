//! Where numbers lie: lists on borders of 32 bytes in large pages, and memory that is asked for ahead of its use.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::LANES;

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
