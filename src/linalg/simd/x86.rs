//! The registers of x86-64 processors: vectors of eight with AVX2 and with AVX-512.

use std::arch::x86_64::*;

use super::{Avx2, Avx512, HALF, LANES, Lanes, Rows, Tile, Vectors};

/// The operations of [`super::Arch`] on one number type, in the registers of instruction set `A`.
pub trait Registers<A>: Sized {
    type V: Copy;
    /// Sixteen numbers.
    type Sixteen: Rows<Self, Self::V>;
    /// As many numbers as one register holds, but not fewer than eight.
    type Widest: Rows<Self, Self::V>;
    fn splat(v: Self) -> Self::V;
    fn load(from: &Lanes<Self>) -> Self::V;
    fn store(v: Self::V, to: &mut Lanes<Self>);
    fn add(a: Self::V, b: Self::V) -> Self::V;
    fn sub(a: Self::V, b: Self::V) -> Self::V;
    fn mul(a: Self::V, b: Self::V) -> Self::V;
    fn div(a: Self::V, b: Self::V) -> Self::V;
    fn sqrt(a: Self::V) -> Self::V;
    fn madd(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn nmadd(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn positive(a: Self::V) -> Self::V;
    fn where_positive(condition: Self::V, a: Self::V) -> Self::V;
    fn load_f32(from: &Lanes<f32>) -> Self::V;
    fn join_halves(a: Self::V, b: Self::V) -> Self::V;
    fn join_uppers(a: Self::V, b: Self::V) -> Self::V;
    fn either_half(a: Self::V, b: Self::V) -> Self::V;
    fn sum_fours(v: [Self::V; HALF]) -> Self::V;
    fn store_halves(v: Self::V, a: &mut Lanes<Self>, b: &mut Lanes<Self>);
    fn total(a: Self::V) -> Self;
    fn transpose(rows: [Self::V; LANES]) -> [Self::V; LANES];
    fn turn(rows: [&[Self; 4]; LANES]) -> [Self::V; 4];
    fn turn_back(columns: [Self::V; 4], rows: &mut [Self], stride: usize);
}

/// Where four numbers of each of `n` rows can be written, `stride` apart; checked once for all of them.
#[inline(always)]
fn fours<T>(rows: &mut [T], stride: usize, n: usize) -> *mut T {
    assert!((n - 1) * stride + 4 <= rows.len());
    rows.as_mut_ptr()
}

// SAFETY, for every block of this file: these functions are reached only from code that `dispatch` runs after it has
// found their instructions on the processor; loads and stores are unaligned ones within an array of eight, or aligned ones
// of a whole `Tile`, which lies on a border of 64 bytes; or unaligned ones of four numbers of an array of four, or at a place
// that `fours` has checked.

/// Eight f32 in one register of 256 bits, in both instruction sets: AVX-512 adds registers, masks and broadcasts from
/// memory, which the compiler uses; vectors of sixteen would leave half of a padded row of units empty.
macro_rules! single {
    ($arch:ty, $sixteen:ty, $widest:ty) => {
        impl Registers<$arch> for f32 {
            type V = __m256;
            type Sixteen = $sixteen;
            type Widest = $widest;
            #[inline(always)]
            fn splat(v: f32) -> __m256 {
                unsafe { _mm256_set1_ps(v) }
            }
            #[inline(always)]
            fn load(from: &Lanes<f32>) -> __m256 {
                unsafe { _mm256_loadu_ps(from.as_ptr()) }
            }
            #[inline(always)]
            fn store(v: __m256, to: &mut Lanes<f32>) {
                unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
            }
            #[inline(always)]
            fn add(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_add_ps(a, b) }
            }
            #[inline(always)]
            fn sub(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_sub_ps(a, b) }
            }
            #[inline(always)]
            fn mul(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_mul_ps(a, b) }
            }
            #[inline(always)]
            fn div(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_div_ps(a, b) }
            }
            #[inline(always)]
            fn sqrt(a: __m256) -> __m256 {
                unsafe { _mm256_sqrt_ps(a) }
            }
            #[inline(always)]
            fn madd(a: __m256, b: __m256, c: __m256) -> __m256 {
                unsafe { _mm256_fmadd_ps(a, b, c) }
            }
            #[inline(always)]
            fn nmadd(a: __m256, b: __m256, c: __m256) -> __m256 {
                unsafe { _mm256_fnmadd_ps(a, b, c) }
            }
            #[inline(always)]
            fn positive(a: __m256) -> __m256 {
                unsafe { _mm256_max_ps(a, _mm256_setzero_ps()) }
            }
            #[inline(always)]
            fn where_positive(condition: __m256, a: __m256) -> __m256 {
                unsafe { _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(condition, _mm256_setzero_ps()), a) }
            }
            #[inline(always)]
            fn load_f32(from: &Lanes<f32>) -> __m256 {
                <f32 as Registers<$arch>>::load(from)
            }
            #[inline(always)]
            fn join_halves(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_insertf128_ps::<1>(a, _mm256_castps256_ps128(b)) }
            }
            #[inline(always)]
            fn join_uppers(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_permute2f128_ps::<0x31>(a, b) }
            }
            #[inline(always)]
            fn sum_fours([a, b, c, d]: [__m256; HALF]) -> __m256 {
                unsafe {
                    // of a and b, then of c and d: the first number and the third, the second and the fourth
                    let ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                    let cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                    _mm256_add_ps(_mm256_shuffle_ps::<0x44>(ab, cd), _mm256_shuffle_ps::<0xEE>(ab, cd))
                }
            }
            #[inline(always)]
            fn either_half(a: __m256, b: __m256) -> __m256 {
                unsafe { _mm256_blend_ps::<0xF0>(a, b) }
            }
            #[inline(always)]
            fn store_halves(v: __m256, a: &mut Lanes<f32>, b: &mut Lanes<f32>) {
                unsafe {
                    _mm_storeu_ps(a.as_mut_ptr(), _mm256_castps256_ps128(v));
                    _mm_storeu_ps(b.as_mut_ptr(), _mm256_extractf128_ps::<1>(v));
                }
            }
            #[inline(always)]
            fn total(a: __m256) -> f32 {
                unsafe {
                    let four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
                    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
                }
            }
            #[inline(always)]
            fn transpose(r: [__m256; LANES]) -> [__m256; LANES] {
                unsafe {
                    // pairs of rows, then quadruples within halves of a register, then the halves
                    let (a0, a1) = (_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
                    let (a2, a3) = (_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
                    let (a4, a5) = (_mm256_unpacklo_ps(r[4], r[5]), _mm256_unpackhi_ps(r[4], r[5]));
                    let (a6, a7) = (_mm256_unpacklo_ps(r[6], r[7]), _mm256_unpackhi_ps(r[6], r[7]));
                    let (b0, b1) = (_mm256_shuffle_ps::<0x44>(a0, a2), _mm256_shuffle_ps::<0xEE>(a0, a2));
                    let (b2, b3) = (_mm256_shuffle_ps::<0x44>(a1, a3), _mm256_shuffle_ps::<0xEE>(a1, a3));
                    let (b4, b5) = (_mm256_shuffle_ps::<0x44>(a4, a6), _mm256_shuffle_ps::<0xEE>(a4, a6));
                    let (b6, b7) = (_mm256_shuffle_ps::<0x44>(a5, a7), _mm256_shuffle_ps::<0xEE>(a5, a7));
                    [
                        _mm256_permute2f128_ps::<0x20>(b0, b4),
                        _mm256_permute2f128_ps::<0x20>(b1, b5),
                        _mm256_permute2f128_ps::<0x20>(b2, b6),
                        _mm256_permute2f128_ps::<0x20>(b3, b7),
                        _mm256_permute2f128_ps::<0x31>(b0, b4),
                        _mm256_permute2f128_ps::<0x31>(b1, b5),
                        _mm256_permute2f128_ps::<0x31>(b2, b6),
                        _mm256_permute2f128_ps::<0x31>(b3, b7),
                    ]
                }
            }

            #[inline(always)]
            fn turn(rows: [&[f32; 4]; LANES]) -> [__m256; 4] {
                let mut pairs = [unsafe { _mm256_setzero_ps() }; 4];
                for k in 0..4 {
                    // rows k and k + 4
                    pairs[k] = unsafe {
                        let low = _mm256_castps128_ps256(_mm_loadu_ps(rows[k].as_ptr()));
                        _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(rows[k + 4].as_ptr()))
                    };
                }
                turn_quarters(pairs)
            }
            #[inline(always)]
            fn turn_back(columns: [__m256; 4], rows: &mut [f32], stride: usize) {
                let (pairs, to) = (turn_quarters(columns), fours(rows, stride, LANES));
                for k in 0..4 {
                    unsafe {
                        _mm_storeu_ps(to.add(k * stride), _mm256_castps256_ps128(pairs[k]));
                        _mm_storeu_ps(to.add((k + 4) * stride), _mm256_extractf128_ps::<1>(pairs[k]));
                    }
                }
            }
        }
    };
}
single!(Avx2, Vectors<Avx2, f32, 2>, Vectors<Avx2, f32, 1>);
single!(Avx512, Sixteen, Sixteen);

/// Of four registers, in each quarter of 128 bits: rows become columns.
#[inline(always)]
fn turn_quarters(r: [__m256; 4]) -> [__m256; 4] {
    unsafe {
        let (a0, a1) = (_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
        let (a2, a3) = (_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
        [
            _mm256_shuffle_ps::<0x44>(a0, a2),
            _mm256_shuffle_ps::<0xEE>(a0, a2),
            _mm256_shuffle_ps::<0x44>(a1, a3),
            _mm256_shuffle_ps::<0xEE>(a1, a3),
        ]
    }
}

/// Sixteen f32 in one register of AVX-512.
#[derive(Clone, Copy)]
pub struct Sixteen(__m512);

impl Rows<f32, __m256> for Sixteen {
    const VECTORS: usize = 2;
    #[inline(always)]
    fn splat(v: f32) -> Self {
        Sixteen(unsafe { _mm512_set1_ps(v) })
    }
    #[inline(always)]
    fn load(from: &Tile<f32>) -> Self {
        Sixteen(unsafe { _mm512_load_ps(from.0.as_flattened().as_ptr()) })
    }
    #[inline(always)]
    fn store(self, to: &mut Tile<f32>) {
        unsafe { _mm512_store_ps(to.0.as_flattened_mut().as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Sixteen(unsafe { _mm512_add_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Sixteen(unsafe { _mm512_sub_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Sixteen(unsafe { _mm512_mul_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        Sixteen(unsafe { _mm512_div_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Sixteen(unsafe { _mm512_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn madd(self, b: Self, c: Self) -> Self {
        Sixteen(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn nmadd(self, b: Self, c: Self) -> Self {
        Sixteen(unsafe { _mm512_fnmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn positive(self) -> Self {
        Sixteen(unsafe { _mm512_max_ps(self.0, _mm512_setzero_ps()) })
    }
    #[inline(always)]
    fn where_positive(self, a: Self) -> Self {
        unsafe {
            let positive = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, _mm512_setzero_ps());
            Sixteen(_mm512_maskz_mov_ps(positive, a.0))
        }
    }
    #[inline(always)]
    fn folded(self) -> __m256 {
        unsafe { _mm256_add_ps(_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0)) }
    }
    #[inline(always)]
    fn of(vectors: &[__m256]) -> Self {
        Sixteen(unsafe { _mm512_insertf32x8::<1>(_mm512_castps256_ps512(vectors[0]), vectors[1]) })
    }
    #[inline(always)]
    fn load_from(list: &[Lanes<f32>]) -> Self {
        Sixteen(unsafe { _mm512_loadu_ps(list[..2].as_flattened().as_ptr()) })
    }
    #[inline(always)]
    fn store_to(self, list: &mut [Lanes<f32>]) {
        unsafe { _mm512_storeu_ps(list[..2].as_flattened_mut().as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn four_times(four: &[f32; 4]) -> Self {
        Sixteen(unsafe { _mm512_broadcast_f32x4(_mm_loadu_ps(four.as_ptr())) })
    }
    #[inline(always)]
    fn each_four_times(four: &[f32; 4]) -> Self {
        let Sixteen(all) = Self::four_times(four);
        let places = unsafe { _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3) };
        Sixteen(unsafe { _mm512_permutevar_ps(all, places) })
    }
    #[inline(always)]
    fn turn(rows: [&[f32; 4]; 2 * LANES]) -> [Self; 4] {
        let mut out = [Self::splat(0.0); 4];
        for k in 0..4 {
            // rows k, k + 4, k + 8 and k + 12
            out[k] = Sixteen(unsafe {
                let v = _mm512_castps128_ps512(_mm_loadu_ps(rows[k].as_ptr()));
                let v = _mm512_insertf32x4::<1>(v, _mm_loadu_ps(rows[k + 4].as_ptr()));
                let v = _mm512_insertf32x4::<2>(v, _mm_loadu_ps(rows[k + 8].as_ptr()));
                _mm512_insertf32x4::<3>(v, _mm_loadu_ps(rows[k + 12].as_ptr()))
            });
        }
        Self::turn_quarters(out)
    }
    #[inline(always)]
    fn turn_back(columns: [Self; 4], rows: &mut [f32], stride: usize) {
        let (quarters, to) = (Self::turn_quarters(columns), fours(rows, stride, 2 * LANES));
        for k in 0..4 {
            let v = quarters[k].0;
            unsafe {
                _mm_storeu_ps(to.add(k * stride), _mm512_castps512_ps128(v));
                _mm_storeu_ps(to.add((k + 4) * stride), _mm512_extractf32x4_ps::<1>(v));
                _mm_storeu_ps(to.add((k + 8) * stride), _mm512_extractf32x4_ps::<2>(v));
                _mm_storeu_ps(to.add((k + 12) * stride), _mm512_extractf32x4_ps::<3>(v));
            }
        }
    }
}

impl Sixteen {
    /// As the function of that name.
    #[inline(always)]
    fn turn_quarters(r: [Self; 4]) -> [Self; 4] {
        unsafe {
            let (a0, a1) = (_mm512_unpacklo_ps(r[0].0, r[1].0), _mm512_unpackhi_ps(r[0].0, r[1].0));
            let (a2, a3) = (_mm512_unpacklo_ps(r[2].0, r[3].0), _mm512_unpackhi_ps(r[2].0, r[3].0));
            [
                Sixteen(_mm512_shuffle_ps::<0x44>(a0, a2)),
                Sixteen(_mm512_shuffle_ps::<0xEE>(a0, a2)),
                Sixteen(_mm512_shuffle_ps::<0x44>(a1, a3)),
                Sixteen(_mm512_shuffle_ps::<0xEE>(a1, a3)),
            ]
        }
    }
}

/// Two registers of four.
type Pair = (__m256d, __m256d);

#[inline(always)]
fn transpose4(r: [__m256d; 4]) -> [__m256d; 4] {
    unsafe {
        let (a0, a1) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
        let (a2, a3) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
        [
            _mm256_permute2f128_pd::<0x20>(a0, a2),
            _mm256_permute2f128_pd::<0x20>(a1, a3),
            _mm256_permute2f128_pd::<0x31>(a0, a2),
            _mm256_permute2f128_pd::<0x31>(a1, a3),
        ]
    }
}

/// Four numbers of each of eight rows as columns, of the first four rows and of the last four.
#[inline(always)]
fn turn8(rows: [&[f64; 4]; LANES]) -> ([__m256d; 4], [__m256d; 4]) {
    let mut halves = [[unsafe { _mm256_setzero_pd() }; 4]; 2];
    for r in 0..LANES {
        halves[r / 4][r % 4] = unsafe { _mm256_loadu_pd(rows[r].as_ptr()) };
    }
    (transpose4(halves[0]), transpose4(halves[1]))
}

/// The sum of four numbers, as a tree.
#[inline(always)]
fn total4(four: __m256d) -> f64 {
    unsafe {
        let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
        _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
    }
}

impl Registers<Avx2> for f64 {
    type V = Pair;
    type Sixteen = Vectors<Avx2, f64, 2>;
    type Widest = Vectors<Avx2, f64, 1>;
    #[inline(always)]
    fn splat(v: f64) -> Pair {
        let v = unsafe { _mm256_set1_pd(v) };
        (v, v)
    }
    #[inline(always)]
    fn load(from: &Lanes<f64>) -> Pair {
        unsafe { (_mm256_loadu_pd(from.as_ptr()), _mm256_loadu_pd(from[4..].as_ptr())) }
    }
    #[inline(always)]
    fn store(v: Pair, to: &mut Lanes<f64>) {
        unsafe {
            _mm256_storeu_pd(to.as_mut_ptr(), v.0);
            _mm256_storeu_pd(to[4..].as_mut_ptr(), v.1);
        }
    }
    #[inline(always)]
    fn add(a: Pair, b: Pair) -> Pair {
        unsafe { (_mm256_add_pd(a.0, b.0), _mm256_add_pd(a.1, b.1)) }
    }
    #[inline(always)]
    fn sub(a: Pair, b: Pair) -> Pair {
        unsafe { (_mm256_sub_pd(a.0, b.0), _mm256_sub_pd(a.1, b.1)) }
    }
    #[inline(always)]
    fn mul(a: Pair, b: Pair) -> Pair {
        unsafe { (_mm256_mul_pd(a.0, b.0), _mm256_mul_pd(a.1, b.1)) }
    }
    #[inline(always)]
    fn div(a: Pair, b: Pair) -> Pair {
        unsafe { (_mm256_div_pd(a.0, b.0), _mm256_div_pd(a.1, b.1)) }
    }
    #[inline(always)]
    fn sqrt(a: Pair) -> Pair {
        unsafe { (_mm256_sqrt_pd(a.0), _mm256_sqrt_pd(a.1)) }
    }
    #[inline(always)]
    fn madd(a: Pair, b: Pair, c: Pair) -> Pair {
        unsafe { (_mm256_fmadd_pd(a.0, b.0, c.0), _mm256_fmadd_pd(a.1, b.1, c.1)) }
    }
    #[inline(always)]
    fn nmadd(a: Pair, b: Pair, c: Pair) -> Pair {
        unsafe { (_mm256_fnmadd_pd(a.0, b.0, c.0), _mm256_fnmadd_pd(a.1, b.1, c.1)) }
    }
    #[inline(always)]
    fn positive(a: Pair) -> Pair {
        unsafe { (_mm256_max_pd(a.0, _mm256_setzero_pd()), _mm256_max_pd(a.1, _mm256_setzero_pd())) }
    }
    #[inline(always)]
    fn load_f32(from: &Lanes<f32>) -> Pair {
        unsafe { (_mm256_cvtps_pd(_mm_loadu_ps(from.as_ptr())), _mm256_cvtps_pd(_mm_loadu_ps(from[4..].as_ptr()))) }
    }
    #[inline(always)]
    fn join_halves(a: Pair, b: Pair) -> Pair {
        (a.0, b.0)
    }
    #[inline(always)]
    fn join_uppers(a: Pair, b: Pair) -> Pair {
        (a.1, b.1)
    }
    #[inline(always)]
    fn sum_fours(v: [Pair; HALF]) -> Pair {
        let (low, high) = (transpose4([v[0].0, v[1].0, v[2].0, v[3].0]), transpose4([v[0].1, v[1].1, v[2].1, v[3].1]));
        unsafe {
            (
                _mm256_add_pd(_mm256_add_pd(low[0], low[2]), _mm256_add_pd(low[1], low[3])),
                _mm256_add_pd(_mm256_add_pd(high[0], high[2]), _mm256_add_pd(high[1], high[3])),
            )
        }
    }
    #[inline(always)]
    fn either_half(a: Pair, b: Pair) -> Pair {
        (a.0, b.1)
    }
    #[inline(always)]
    fn store_halves(v: Pair, a: &mut Lanes<f64>, b: &mut Lanes<f64>) {
        unsafe {
            _mm256_storeu_pd(a.as_mut_ptr(), v.0);
            _mm256_storeu_pd(b.as_mut_ptr(), v.1);
        }
    }
    #[inline(always)]
    fn total(a: Pair) -> f64 {
        total4(unsafe { _mm256_add_pd(a.0, a.1) })
    }
    #[inline(always)]
    fn transpose(r: [Pair; LANES]) -> [Pair; LANES] {
        let low = transpose4([r[0].0, r[1].0, r[2].0, r[3].0]);
        let low_right = transpose4([r[4].0, r[5].0, r[6].0, r[7].0]);
        let high = transpose4([r[0].1, r[1].1, r[2].1, r[3].1]);
        let high_right = transpose4([r[4].1, r[5].1, r[6].1, r[7].1]);
        [
            (low[0], low_right[0]),
            (low[1], low_right[1]),
            (low[2], low_right[2]),
            (low[3], low_right[3]),
            (high[0], high_right[0]),
            (high[1], high_right[1]),
            (high[2], high_right[2]),
            (high[3], high_right[3]),
        ]
    }
    #[inline(always)]
    fn turn(rows: [&[f64; 4]; LANES]) -> [Pair; 4] {
        let (low, high) = turn8(rows);
        [(low[0], high[0]), (low[1], high[1]), (low[2], high[2]), (low[3], high[3])]
    }
    #[inline(always)]
    fn turn_back(c: [Pair; 4], rows: &mut [f64], stride: usize) {
        let halves = [transpose4([c[0].0, c[1].0, c[2].0, c[3].0]), transpose4([c[0].1, c[1].1, c[2].1, c[3].1])];
        let to = fours(rows, stride, LANES);
        for r in 0..LANES {
            unsafe { _mm256_storeu_pd(to.add(r * stride), halves[r / 4][r % 4]) };
        }
    }
    #[inline(always)]
    fn where_positive(condition: Pair, a: Pair) -> Pair {
        unsafe {
            let zero = _mm256_setzero_pd();
            (
                _mm256_and_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(condition.0, zero), a.0),
                _mm256_and_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(condition.1, zero), a.1),
            )
        }
    }
}

/// A register of eight as two of four.
#[inline(always)]
fn halves(v: __m512d) -> Pair {
    unsafe { (_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd::<1>(v)) }
}

impl Registers<Avx512> for f64 {
    type V = __m512d;
    type Sixteen = Vectors<Avx512, f64, 2>;
    type Widest = Vectors<Avx512, f64, 1>;
    #[inline(always)]
    fn splat(v: f64) -> __m512d {
        unsafe { _mm512_set1_pd(v) }
    }
    #[inline(always)]
    fn load(from: &Lanes<f64>) -> __m512d {
        unsafe { _mm512_loadu_pd(from.as_ptr()) }
    }
    #[inline(always)]
    fn store(v: __m512d, to: &mut Lanes<f64>) {
        unsafe { _mm512_storeu_pd(to.as_mut_ptr(), v) }
    }
    #[inline(always)]
    fn add(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_add_pd(a, b) }
    }
    #[inline(always)]
    fn sub(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_sub_pd(a, b) }
    }
    #[inline(always)]
    fn mul(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_mul_pd(a, b) }
    }
    #[inline(always)]
    fn div(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_div_pd(a, b) }
    }
    #[inline(always)]
    fn sqrt(a: __m512d) -> __m512d {
        unsafe { _mm512_sqrt_pd(a) }
    }
    #[inline(always)]
    fn madd(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn nmadd(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        unsafe { _mm512_fnmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn positive(a: __m512d) -> __m512d {
        unsafe { _mm512_max_pd(a, _mm512_setzero_pd()) }
    }
    #[inline(always)]
    fn where_positive(condition: __m512d, a: __m512d) -> __m512d {
        unsafe { _mm512_maskz_mov_pd(_mm512_cmp_pd_mask::<_CMP_GT_OQ>(condition, _mm512_setzero_pd()), a) }
    }
    #[inline(always)]
    fn load_f32(from: &Lanes<f32>) -> __m512d {
        unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(from.as_ptr())) }
    }
    #[inline(always)]
    fn join_halves(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_insertf64x4::<1>(a, _mm512_castpd512_pd256(b)) }
    }
    #[inline(always)]
    fn join_uppers(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_shuffle_f64x2::<0xEE>(a, b) }
    }
    #[inline(always)]
    fn sum_fours([a, b, c, d]: [__m512d; HALF]) -> __m512d {
        let (low, high) = <f64 as Registers<Avx2>>::sum_fours([halves(a), halves(b), halves(c), halves(d)]);
        unsafe { _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high) }
    }
    #[inline(always)]
    fn either_half(a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_mask_blend_pd(0xF0, a, b) }
    }
    #[inline(always)]
    fn store_halves(v: __m512d, a: &mut Lanes<f64>, b: &mut Lanes<f64>) {
        unsafe {
            _mm256_storeu_pd(a.as_mut_ptr(), _mm512_castpd512_pd256(v));
            _mm256_storeu_pd(b.as_mut_ptr(), _mm512_extractf64x4_pd::<1>(v));
        }
    }
    #[inline(always)]
    fn total(a: __m512d) -> f64 {
        let (low, high) = halves(a);
        total4(unsafe { _mm256_add_pd(low, high) })
    }
    #[inline(always)]
    fn transpose(rows: [__m512d; LANES]) -> [__m512d; LANES] {
        let mut out = [[0.0; LANES]; LANES];
        for (i, row) in rows.into_iter().enumerate() {
            let mut lanes = [0.0; LANES];
            <f64 as Registers<Avx512>>::store(row, &mut lanes);
            for (j, v) in lanes.into_iter().enumerate() {
                out[j][i] = v;
            }
        }
        let mut columns = rows;
        for (column, out) in columns.iter_mut().zip(&out) {
            *column = <f64 as Registers<Avx512>>::load(out);
        }
        columns
    }
    #[inline(always)]
    fn turn(rows: [&[f64; 4]; LANES]) -> [__m512d; 4] {
        let (low, high) = turn8(rows);
        let mut out = [unsafe { _mm512_setzero_pd() }; 4];
        for k in 0..4 {
            out[k] = unsafe { _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low[k]), high[k]) };
        }
        out
    }
    #[inline(always)]
    fn turn_back(columns: [__m512d; 4], rows: &mut [f64], stride: usize) {
        let [a, b, c, d] = columns;
        <f64 as Registers<Avx2>>::turn_back([halves(a), halves(b), halves(c), halves(d)], rows, stride);
    }
}
