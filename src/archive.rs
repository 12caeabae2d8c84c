//! Numbers by name: how what has been learned goes into a file and comes back, bit for bit.
//!
//! Whoever is kept goes through its own arrays once, by name; the [`Archive`] either takes copies of them or puts
//! stored numbers in their place. So writing and reading are the same few lines and cannot disagree.

use std::collections::BTreeMap;

use crate::error::Error;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// What mean and width need: a policy.
    Policy,
    /// Also what further training needs: the optimiser's memory, the rounds that batches are drawn from.
    Training,
}

/// The numbers of an array.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl Numbers {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Numbers::F32(v) => v.len(),
            Numbers::F64(v) => v.len(),
            Numbers::U32(v) => v.len(),
            Numbers::U64(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An array with its sizes, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The sizes, whose product is the count of the numbers.
    pub shape: Vec<usize>,
    /// The numbers.
    pub numbers: Numbers,
}

/// A number type that can be kept.
pub trait Element: Copy + sealed::Sealed {
    #[doc(hidden)]
    const NAME: &'static str;
    #[doc(hidden)]
    fn wrap(values: Vec<Self>) -> Numbers;
    #[doc(hidden)]
    fn unwrap(numbers: &Numbers) -> Option<&[Self]>;
    #[doc(hidden)]
    fn usable(self) -> bool;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($t:ty, $variant:ident, $name:literal, $usable:expr) => {
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const NAME: &'static str = $name;
            fn wrap(values: Vec<Self>) -> Numbers {
                Numbers::$variant(values)
            }
            fn unwrap(numbers: &Numbers) -> Option<&[Self]> {
                if let Numbers::$variant(values) = numbers { Some(values) } else { None }
            }
            fn usable(self) -> bool {
                $usable(self)
            }
        }
    };
}
element!(f32, F32, "f32", f32::is_finite);
element!(f64, F64, "f64", f64::is_finite);
element!(u32, U32, "u32", |_| true);
element!(u64, U64, "u64", |_| true);

/// Arrays by name, being written or being read.
#[derive(Debug)]
pub struct Archive {
    arrays: BTreeMap<String, Array>,
    writing: bool,
    keep: Keep,
}

impl Archive {
    /// An archive that takes copies.
    pub fn writer(keep: Keep) -> Archive {
        Archive { arrays: BTreeMap::new(), writing: true, keep }
    }

    /// An archive that puts these arrays in their places.
    pub fn reader(arrays: BTreeMap<String, Array>, keep: Keep) -> Archive {
        Archive { arrays, writing: false, keep }
    }

    /// How much is kept.
    pub fn keep(&self) -> Keep {
        self.keep
    }

    /// Whether stored numbers are put in their places.
    pub fn is_reading(&self) -> bool {
        !self.writing
    }

    /// How many numbers are stored, or have been taken: what is claimed can be held against it before memory is taken.
    pub fn n_numbers(&self) -> u128 {
        self.arrays.values().map(|array| array.numbers.len() as u128).sum()
    }

    /// Goes through an array of known sizes.
    pub fn array<T: Element>(&mut self, name: &str, shape: &[usize], values: &mut [T]) -> Result<(), Error> {
        if self.writing {
            return self.put(name, shape.to_vec(), values.to_vec());
        }
        values.copy_from_slice(&self.take::<T>(name, shape, None)?);
        Ok(())
    }

    /// Goes through rows of `row` numbers each; how many there are is known to the archive.
    pub fn list<T: Element>(&mut self, name: &str, row: usize, values: &mut Vec<T>) -> Result<(), Error> {
        if self.writing {
            return self.put(name, vec![values.len() / row.max(1), row], values.clone());
        }
        *values = self.take::<T>(name, &[row], Some(()))?;
        Ok(())
    }

    /// What was written; of a reader, what nobody asked for.
    pub fn into_arrays(self) -> BTreeMap<String, Array> {
        self.arrays
    }

    /// After reading: refuses arrays that nobody asked for.
    pub fn finish(self) -> Result<(), Error> {
        match self.arrays.into_keys().next() {
            Some(name) => Err(Error::Array { name, want: "no such array for this model".into(), got: "one".into() }),
            None => Ok(()),
        }
    }

    fn put<T: Element>(&mut self, name: &str, shape: Vec<usize>, values: Vec<T>) -> Result<(), Error> {
        check(name, &values)?;
        self.arrays.insert(name.to_owned(), Array { shape, numbers: T::wrap(values) });
        Ok(())
    }

    /// The array of that name, whose sizes are `shape`, after a free first one if `rows`.
    fn take<T: Element>(&mut self, name: &str, shape: &[usize], rows: Option<()>) -> Result<Vec<T>, Error> {
        let refuse = |want: String, got: String| Err(Error::Array { name: name.to_owned(), want, got });
        let want =
            || if rows.is_some() { format!("{} rows × {shape:?}", T::NAME) } else { format!("{} {shape:?}", T::NAME) };
        let Some(found) = self.arrays.remove(name) else { return refuse(want(), "nothing".into()) };
        let (sizes, Some(values)) = (&found.shape, T::unwrap(&found.numbers)) else {
            return refuse(want(), "numbers of another type".into());
        };
        let fits = match (rows, sizes.split_first()) {
            (None, _) => sizes == shape && values.len() == shape.iter().product::<usize>(),
            (Some(()), Some((&n, rest))) => {
                rest == shape && n.checked_mul(shape.iter().product()).is_some_and(|n| n == values.len())
            }
            (Some(()), None) => false,
        };
        if !fits {
            return refuse(want(), format!("{sizes:?}"));
        }
        check(name, values)?;
        Ok(values.to_vec())
    }
}

/// Refuses NaN and infinities.
fn check<T: Element>(name: &str, values: &[T]) -> Result<(), Error> {
    match values.iter().position(|v| !v.usable()) {
        None => Ok(()),
        Some(at) => Err(Error::Array {
            name: name.to_owned(),
            want: "finite numbers".into(),
            got: format!("none at place {at} (training diverges where the learning rate is too high)"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> BTreeMap<String, Array> {
        let mut archive = Archive::writer(Keep::Policy);
        archive.array("a", &[2, 2], &mut [1.0f32, -0.0, f32::MIN_POSITIVE, 4.0]).unwrap();
        archive.list("b", 3, &mut vec![1u64, 2, u64::MAX]).unwrap();
        archive.into_arrays()
    }

    #[test]
    fn numbers_come_back_bit_for_bit() {
        let mut archive = Archive::reader(written(), Keep::Policy);
        let (mut a, mut b) = ([0.0f32; 4], Vec::<u64>::new());
        archive.array("a", &[2, 2], &mut a).unwrap();
        archive.list("b", 3, &mut b).unwrap();
        assert_eq!(a.map(f32::to_bits), [1.0f32, -0.0, f32::MIN_POSITIVE, 4.0].map(f32::to_bits));
        assert_eq!(b, [1, 2, u64::MAX]);
        archive.finish().unwrap();
    }

    #[test]
    fn each_refusal_names_the_array() {
        let read = |f: &dyn Fn(&mut Archive) -> Result<(), Error>| {
            f(&mut Archive::reader(written(), Keep::Policy)).unwrap_err().to_string()
        };
        assert_eq!(read(&|a| a.array("a", &[4], &mut [0.0f32; 4])), "array `a`: must be f32 [4], got [2, 2]");
        assert_eq!(
            read(&|a| a.array("a", &[2, 2], &mut [0.0f64; 4])),
            "array `a`: must be f64 [2, 2], got numbers of another type"
        );
        assert_eq!(read(&|a| a.list("b", 2, &mut Vec::<u64>::new())), "array `b`: must be u64 rows × [2], got [1, 3]");
        assert_eq!(read(&|a| a.array("c", &[1], &mut [0.0f32])), "array `c`: must be f32 [1], got nothing");
        let unused = Archive::reader(written(), Keep::Policy).finish().unwrap_err().to_string();
        assert_eq!(unused, "array `a`: must be no such array for this model, got one");
        let nan = Archive::writer(Keep::Policy).array("w", &[2], &mut [0.0, f64::NAN]).unwrap_err().to_string();
        assert!(nan.starts_with("array `w`: must be finite numbers, got none at place 1"), "{nan}");
    }
}
