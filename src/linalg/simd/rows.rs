//! One number of each of eight or sixteen rows, in registers: what code with a row per lane is written against.

use std::marker::PhantomData;
use std::ops::Range;

use super::{Arch, LANES, Lanes, each, lanes};
use crate::linalg::scalar::Scalar;

/// One number of each of sixteen rows, on the borders of cache lines: a vector that lies across one is two accesses.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub struct Tile<T>(pub(crate) [Lanes<T>; 2]);

impl<T: Scalar> Tile<T> {
    /// Zero for every row.
    pub(crate) const ZERO: Self = Tile([[T::ZERO; LANES]; 2]);

    /// All vectors of some tiles, one after another.
    #[inline(always)]
    pub(crate) fn vectors(tiles: &[Self]) -> &[Lanes<T>] {
        const { assert!(size_of::<Self>() == size_of::<[Lanes<T>; 2]>()) }
        // SAFETY: a tile is two vectors and, by the line above, nothing else.
        unsafe { std::slice::from_raw_parts(tiles.as_ptr().cast(), 2 * tiles.len()) }
    }

    /// As [`Tile::vectors`], to change.
    #[inline(always)]
    pub(crate) fn vectors_mut(tiles: &mut [Self]) -> &mut [Lanes<T>] {
        const { assert!(size_of::<Self>() == size_of::<[Lanes<T>; 2]>()) }
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(tiles.as_mut_ptr().cast(), 2 * tiles.len()) }
    }

    /// The sixteen numbers.
    #[inline(always)]
    pub(crate) fn numbers(&self) -> [T; 2 * LANES] {
        self.0.as_flattened().try_into().expect("two vectors")
    }
}

/// Numbers of rows side by side, and what can be done with them. Eight rows, a vector V, use the first half of a [`Tile`];
/// V also says which instruction set these registers belong to.
pub trait Rows<T, V>: Copy {
    /// Vectors of eight rows.
    const VECTORS: usize;
    fn splat(v: T) -> Self;
    fn load(from: &Tile<T>) -> Self;
    fn store(self, to: &mut Tile<T>);
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn sqrt(self) -> Self;
    /// self·b + c, rounded once where the processor can.
    fn madd(self, b: Self, c: Self) -> Self;
    /// c − self·b, rounded once where the processor can.
    fn nmadd(self, b: Self, c: Self) -> Self;
    /// max(self, 0).
    fn positive(self) -> Self;
    /// `a` where `self` > 0, else 0.
    fn where_positive(self, a: Self) -> Self;
    /// The sum of its vectors, or the only one.
    fn folded(self) -> V;
    /// The first vectors of some, side by side.
    fn of(vectors: &[V]) -> Self;
    /// From the first vectors of a list: numbers that lie side by side, on no border.
    fn load_from(list: &[Lanes<T>]) -> Self;
    /// Over the first vectors of a list.
    fn store_to(self, list: &mut [Lanes<T>]);
    /// Four numbers, then again and again.
    fn four_times(four: &[T; 4]) -> Self;
    /// The first of four numbers four times, then the second, and so on.
    fn each_four_times(four: &[T; 4]) -> Self;
    /// Four numbers of each row, turned; of eight rows, the first half.
    fn turn(rows: [&[T; 4]; 2 * LANES]) -> [Self; 4];
    /// Writes four numbers of each row, `stride` apart.
    fn turn_back(columns: [Self; 4], rows: &mut [T], stride: usize);
}

/// Stands for a kind of register where code is written once for two of them.
pub(crate) struct Register<A: Arch, T: Scalar, W: Rows<T, A::V<T>>>(PhantomData<(A, T, W)>);

impl<A: Arch, T: Scalar, W: Rows<T, A::V<T>>> Register<A, T, W> {
    pub(crate) const NEW: Self = Register(PhantomData);

    /// Its vectors of eight numbers.
    #[inline(always)]
    pub(crate) fn vectors(&self) -> usize {
        W::VECTORS
    }

    /// As [`Rows::of`].
    #[inline(always)]
    pub(crate) fn of(&self, vectors: &[A::V<T>]) -> W {
        W::of(vectors)
    }

    /// As [`Rows::load_from`].
    #[inline(always)]
    pub(crate) fn load(&self, list: &[Lanes<T>]) -> W {
        W::load_from(list)
    }
}

/// Does something with every vector of `$n`: as many at a time as the widest register holds, whose kind is given, and what is left one
/// by one.
macro_rules! over_registers {
    ($n:expr, $arch:ident, |$at:ident, $register:ident| $body:expr) => {{
        let (n, mut $at) = ($n, 0);
        let $register = $crate::linalg::simd::Register::<$arch, T, $arch::Widest<T>>::NEW;
        while $at + $register.vectors() <= n {
            $body;
            $at += $register.vectors();
        }
        let $register = $crate::linalg::simd::Register::<$arch, T, $crate::linalg::simd::Vectors<$arch, T, 1>>::NEW;
        while $at < n {
            $body;
            $at += 1;
        }
    }};
}
pub(crate) use over_registers;

/// The first four numbers of each of `n` rows, which lie `stride` apart; then those of the first row again.
#[inline(always)]
pub(crate) fn fours<T>(rows: &[T], stride: usize, n: usize) -> [&[T; 4]; 2 * LANES] {
    assert!(n > 0 && n <= 2 * LANES && (n - 1) * stride + 4 <= rows.len());
    // SAFETY: four numbers from the start of the last row on are within `rows`, by the line above, and so are those of the
    // rows before; one check in place of one for each row.
    let first: &[T; 4] = unsafe { &*rows.as_ptr().cast() };
    let mut out = [first; 2 * LANES];
    for r in 0..n {
        // SAFETY: as above.
        out[r] = unsafe { &*rows.as_ptr().add(r * stride).cast() };
    }
    out
}

/// Rows of one length, anywhere in a list of numbers. Where they begin is checked once, and not each time that a row is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowList<'a, T> {
    numbers: &'a [T],
    len: usize,
    starts: &'a [usize],
}

impl<'a, T> RowList<'a, T> {
    /// Rows of `len` numbers from those places on.
    #[inline(always)]
    pub(crate) fn new(numbers: &'a [T], len: usize, starts: &'a [usize]) -> Self {
        let last = starts.iter().fold(0, |last, &start| last.max(start));
        assert!(last <= numbers.len() && len <= numbers.len() - last, "a row that goes beyond the numbers");
        RowList { numbers, len, starts }
    }

    /// How long a row is.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn n(&self) -> usize {
        self.starts.len()
    }

    #[inline(always)]
    fn at(&self, start: usize) -> &'a [T] {
        // SAFETY: `start` is one of `starts`, after which `new` has found `len` numbers.
        unsafe { self.numbers.get_unchecked(start..start + self.len) }
    }

    /// One row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &'a [T] {
        self.at(self.starts[row])
    }

    /// The rows, one after another.
    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [T]> {
        self.starts.iter().map(|&start| self.at(start))
    }

    /// Some of the rows.
    #[inline(always)]
    pub(crate) fn rows(&self, rows: Range<usize>) -> Self {
        RowList { starts: &self.starts[rows], ..*self }
    }

    /// The numbers of rows that lie side by side.
    #[inline(always)]
    pub(crate) fn side_by_side(&self) -> &'a [T] {
        let first = self.starts.first().map_or(0, |&first| first);
        &self.numbers[first..first + self.starts.len() * self.len]
    }
}

impl<'a> RowList<'a, f32> {
    /// The same rows, if T is their type of numbers.
    #[inline(always)]
    pub(crate) fn same<T: Scalar>(self) -> Option<RowList<'a, T>> {
        let RowList { numbers, len, starts } = self;
        T::same(numbers).map(|numbers| RowList { numbers, len, starts })
    }
}

/// N numbers of each of `n` rows that lie `stride` apart, from number `at` of a row on.
#[inline(always)]
pub(crate) fn pieces<const N: usize, T>(
    rows: &[T],
    stride: usize,
    at: usize,
    n: usize,
) -> impl Iterator<Item = &[T; N]> {
    assert!(N <= stride && at <= stride - N && n.checked_mul(stride).is_some_and(|end| end <= rows.len()));
    // SAFETY: by the line above, N numbers from number `at` of each row on are within `rows`.
    (0..n).map(move |row| unsafe { &*rows.as_ptr().add(row * stride + at).cast() })
}

/// Up to sixteen rows of a list, a row for each lane; lanes without a row repeat the first one.
pub(crate) struct Scattered<'a, T> {
    starts: [*const T; 2 * LANES],
    len: usize,
    rows: PhantomData<&'a [T]>,
}

impl<'a, T> Scattered<'a, T> {
    /// The rows of a list.
    #[inline(always)]
    pub(crate) fn new(rows: RowList<'a, T>) -> Self {
        let mut starts = [rows.row(0).as_ptr(); 2 * LANES];
        for (start, row) in starts.iter_mut().zip(rows.iter()) {
            *start = row.as_ptr();
        }
        Scattered { starts, len: rows.len(), rows: PhantomData }
    }

    /// Four numbers of each row.
    #[inline(always)]
    pub(crate) fn fours(&self, at: usize) -> [&'a [T; 4]; 2 * LANES] {
        assert!(at + 4 <= self.len);
        // SAFETY: `len` numbers lie from each start on, in rows that are borrowed for 'a.
        let mut out = [unsafe { &*self.starts[0].add(at).cast() }; 2 * LANES];
        for r in 1..2 * LANES {
            // SAFETY: as above.
            out[r] = unsafe { &*self.starts[r].add(at).cast() };
        }
        out
    }
}

/// As [`Rows::turn_back`], for the first `n` rows.
#[inline(always)]
pub(crate) fn turn_back<T: Scalar, V, R: Rows<T, V>>(columns: [R; 4], rows: &mut [T], stride: usize, n: usize) {
    if n >= R::VECTORS * LANES {
        return R::turn_back(columns, rows, stride);
    }
    let mut all = [[T::ZERO; 4]; 2 * LANES];
    R::turn_back(columns, all.as_flattened_mut(), 4);
    for (row, from) in rows.chunks_mut(stride).zip(&all[..n]) {
        row[..4].copy_from_slice(from);
    }
}

/// N vectors of eight rows.
pub struct Vectors<A: Arch, T: Scalar, const N: usize>(pub(crate) [A::V<T>; N]);

impl<A: Arch, T: Scalar, const N: usize> Clone for Vectors<A, T, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Arch, T: Scalar, const N: usize> Copy for Vectors<A, T, N> {}

/// What can be done with the vectors of these numbers: written out, as loops of one or two would take minutes to compile.
macro_rules! vectors {
    ($n:literal: $($k:literal)+) => {
        impl<A: Arch, T: Scalar> Rows<T, A::V<T>> for Vectors<A, T, $n> {
            const VECTORS: usize = $n;
            #[inline(always)]
            fn splat(v: T) -> Self {
                Vectors([A::splat(v); $n])
            }
            #[inline(always)]
            fn load(from: &Tile<T>) -> Self {
                Vectors([$(A::load(&from.0[$k])),+])
            }
            #[inline(always)]
            fn store(self, to: &mut Tile<T>) {
                $(A::store(self.0[$k], &mut to.0[$k]);)+
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                Vectors([$(A::add(self.0[$k], b.0[$k])),+])
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                Vectors([$(A::sub(self.0[$k], b.0[$k])),+])
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                Vectors([$(A::mul(self.0[$k], b.0[$k])),+])
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                Vectors([$(A::div(self.0[$k], b.0[$k])),+])
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Vectors([$(A::sqrt(self.0[$k])),+])
            }
            #[inline(always)]
            fn madd(self, b: Self, c: Self) -> Self {
                Vectors([$(A::madd(self.0[$k], b.0[$k], c.0[$k])),+])
            }
            #[inline(always)]
            fn nmadd(self, b: Self, c: Self) -> Self {
                Vectors([$(A::nmadd(self.0[$k], b.0[$k], c.0[$k])),+])
            }
            #[inline(always)]
            fn positive(self) -> Self {
                Vectors([$(A::positive(self.0[$k])),+])
            }
            #[inline(always)]
            fn where_positive(self, a: Self) -> Self {
                Vectors([$(A::where_positive(self.0[$k], a.0[$k])),+])
            }
            #[inline(always)]
            fn folded(self) -> A::V<T> {
                let (first, last) = (self.0[0], self.0[$n - 1]);
                if $n == 1 { first } else { A::add(first, last) }
            }
            #[inline(always)]
            fn of(vectors: &[A::V<T>]) -> Self {
                Vectors([$(vectors[$k]),+])
            }
            #[inline(always)]
            fn load_from(list: &[Lanes<T>]) -> Self {
                Vectors([$(A::load(&list[$k])),+])
            }
            #[inline(always)]
            fn store_to(self, list: &mut [Lanes<T>]) {
                $(A::store(self.0[$k], &mut list[$k]);)+
            }
            #[inline(always)]
            fn four_times(four: &[T; 4]) -> Self {
                Vectors([A::load(&each(|l| four[l % 4])); $n])
            }
            #[inline(always)]
            fn each_four_times(four: &[T; 4]) -> Self {
                Vectors([$(A::either_half(A::splat(four[2 * $k]), A::splat(four[2 * $k + 1]))),+])
            }
            #[inline(always)]
            fn turn(rows: [&[T; 4]; 2 * LANES]) -> [Self; 4] {
                let own = [$(A::turn(*rows[$k * LANES..].first_chunk().expect("eight rows"))),+];
                let column = |j: usize| Vectors([$(own[$k][j]),+]);
                [column(0), column(1), column(2), column(3)]
            }
            #[inline(always)]
            fn turn_back([a, b, c, d]: [Self; 4], rows: &mut [T], stride: usize) {
                $(A::turn_back([a.0[$k], b.0[$k], c.0[$k], d.0[$k]], &mut rows[$k * LANES * stride..], stride);)+
            }
        }
    };
}
vectors!(1: 0);
vectors!(2: 0 1);

/// The numbers from `at` on of eight rows, turned: eight columns.
#[inline(always)]
pub(crate) fn columns<A: Arch>(rows: &[&[f32]; LANES], at: usize) -> [Lanes<f32>; LANES] {
    let mut block = [A::zero::<f32>(); LANES];
    for r in 0..LANES {
        block[r] = A::load(&lanes(&rows[r][at..at + LANES])[0]);
    }
    let mut out = [[0.0; LANES]; LANES];
    for (column, out) in A::transpose(block).into_iter().zip(&mut out) {
        A::store(column, out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::{Job, Neon, Portable, dispatch};

    /// Turns four numbers of each of some rows, `STRIDE` apart, and turns them back into others.
    struct There<'a, T, const SIXTEEN: bool>(&'a [T], usize);

    const STRIDE: usize = 7;

    impl<T: Scalar, const SIXTEEN: bool> There<'_, T, SIXTEEN> {
        #[inline(always)]
        fn turn<A: Arch, R: Rows<T, A::V<T>>>(self) -> (Vec<[T; 2 * LANES]>, Vec<T>) {
            let columns = R::turn(fours(self.0, STRIDE, self.1));
            let mut back = vec![T::ZERO; self.0.len()];
            turn_back(columns, &mut back, STRIDE, self.1);
            let mut tiles = Vec::new();
            for k in 0..4 {
                let mut tile = Tile::ZERO;
                columns[k].store(&mut tile);
                tiles.push(tile.numbers());
            }
            (tiles, back)
        }
    }

    impl<T: Scalar, const SIXTEEN: bool> Job for There<'_, T, SIXTEEN> {
        type Out = (Vec<[T; 2 * LANES]>, Vec<T>);
        #[inline(always)]
        fn run<A: Arch>(self) -> Self::Out {
            if SIXTEEN { self.turn::<A, A::Sixteen<T>>() } else { self.turn::<A, Vectors<A, T, 1>>() }
        }
    }

    fn there_and_back<T: Scalar, const SIXTEEN: bool>() {
        for n in 1..=if SIXTEEN { 2 * LANES } else { LANES } {
            let rows: Vec<T> = (0..(n - 1) * STRIDE + 4).map(|i| T::of(i as f64 + 1.0)).collect();
            let job = || There::<T, SIXTEEN>(&rows, n);
            for (tiles, back) in [dispatch(job()), job().run::<Portable>(), job().run::<Neon>()] {
                for (r, j) in (0..n).flat_map(|r| (0..4).map(move |j| (r, j))) {
                    assert_eq!(tiles[j][r], rows[r * STRIDE + j]);
                    assert_eq!(back[r * STRIDE + j], rows[r * STRIDE + j]);
                }
                let between = back.iter().enumerate().filter(|(i, _)| i % STRIDE >= 4);
                assert!(between.into_iter().all(|(_, &v)| v == T::ZERO), "what lies between the rows is left");
            }
        }
    }

    #[test]
    fn rows_of_a_list_are_found_wherever_they_begin() {
        let numbers: Vec<u32> = (0..20).collect();
        let list = RowList::new(&numbers, 5, &[15, 0, 5, 7]);
        let rows: Vec<&[u32]> = list.iter().collect();
        assert_eq!(rows, [&numbers[15..], &numbers[..5], &numbers[5..10], &numbers[7..12]]);
        assert_eq!((list.row(3), list.len()), (rows[3], 5));
        assert_eq!(list.rows(1..3).side_by_side(), &numbers[..10]);
        assert_eq!(RowList::new(&numbers, 20, &[]).iter().count(), 0);
    }

    #[test]
    #[should_panic(expected = "beyond the numbers")]
    fn a_row_must_end_within_the_list() {
        RowList::new(&[0.0; 20], 5, &[0, 16, 3]);
    }

    #[test]
    fn rows_turn_into_columns_and_back() {
        there_and_back::<f32, true>();
        there_and_back::<f32, false>();
        there_and_back::<f64, true>();
        there_and_back::<f64, false>();
    }
}
