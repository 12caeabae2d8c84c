//! The doors to the passes, compiled in this library once for f32 and once for f64.
//!
//! A generic function is compiled anew in every program that uses it. What models do with a network goes therefore
//! through their number type's functions, which are no longer generic.

use super::batch::{Back, Forth};
use super::score::{Outputs, Score};
use super::single::Tangents;
use super::walk::Observe;
use super::{Net, Params};
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{Job, dispatch};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// f32 or f64, with the passes of a network compiled for it. Each door runs one job.
#[allow(private_interfaces)] // the doors are the library's own
pub trait Number: Scalar + sealed::Sealed {
    #[doc(hidden)]
    fn both_passes(net: &Net, params: &Params<Self>, place: (usize, usize), out: &mut Tangents<Self>);
    #[doc(hidden)]
    fn add_gradient(net: &Net, tangents: &Tangents<Self>, square: bool, e: Self, into: [&mut [Self]; 2]);
    #[doc(hidden)]
    fn observe(job: Observe<'_, Self>);
    #[doc(hidden)]
    fn batch_forth(job: Forth<'_, Self>);
    #[doc(hidden)]
    fn batch_back(job: Back<'_, Self>);
    #[doc(hidden)]
    fn score(job: Score<'_, Self>);
    #[doc(hidden)]
    fn outputs(job: Outputs<'_, Self>);
}

struct BothPasses<'a, T> {
    net: &'a Net,
    params: &'a Params<T>,
    place: (usize, usize),
    out: &'a mut Tangents<T>,
}

impl<T: Scalar> Job for BothPasses<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        self.net.single_pass(self.params, self.place, self.out);
    }
}

struct AddGradient<'a, T> {
    net: &'a Net,
    tangents: &'a Tangents<T>,
    square: bool,
    e: T,
    into: [&'a mut [T]; 2],
}

impl<T: Scalar> Job for AddGradient<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let [first, rest] = self.into;
        self.net.add_gradient(self.tangents, self.square, self.e, first, rest);
    }
}

macro_rules! doors {
    ($($t:ty)+) => {$(
        #[allow(private_interfaces)]
        impl Number for $t {
            fn both_passes(net: &Net, params: &Params<Self>, place: (usize, usize), out: &mut Tangents<Self>) {
                dispatch(BothPasses { net, params, place, out });
            }
            fn add_gradient(net: &Net, tangents: &Tangents<Self>, square: bool, e: Self, into: [&mut [Self]; 2]) {
                dispatch(AddGradient { net, tangents, square, e, into });
            }
            fn observe(job: Observe<'_, Self>) {
                dispatch(job);
            }
            fn batch_forth(job: Forth<'_, Self>) {
                dispatch(job);
            }
            fn batch_back(job: Back<'_, Self>) {
                dispatch(job);
            }
            fn score(job: Score<'_, Self>) {
                dispatch(job);
            }
            fn outputs(job: Outputs<'_, Self>) {
                dispatch(job);
            }
        }
    )+};
}
doors!(f32 f64);
