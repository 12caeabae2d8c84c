//! An evaluation as bytes: what a part of a log said, sent to where the parts are merged.
//!
//! Whoever is kept goes through its own numbers once, in order; the [`Tape`] either writes them down or puts those that
//! it reads in their place, so writing and reading are the same lines. Integers take seven bits a byte, the lowest
//! first, and doubles eight bytes. Nothing that is read is believed: every number has a range, lists grow with the
//! bytes that are there, and a part that has been read can be merged and reported like one that was computed.

use crate::error::Error;

/// Bytes that are written or read.
pub(crate) struct Tape<'a> {
    written: Vec<u8>,
    /// The bytes to read, and how many have been.
    reading: Option<(&'a [u8], usize)>,
}

impl<'a> Tape<'a> {
    /// A tape to write on.
    pub fn writer() -> Self {
        Tape { written: Vec::new(), reading: None }
    }

    /// A tape to read from.
    pub fn reader(bytes: &'a [u8]) -> Self {
        Tape { written: Vec::new(), reading: Some((bytes, 0)) }
    }

    /// What was written.
    pub fn written(self) -> Vec<u8> {
        self.written
    }

    /// Refuses what was read last.
    pub fn check(&self, ok: bool, want: &'static str) -> Result<(), Error> {
        let at = self.reading.map_or(self.written.len(), |(_, at)| at);
        if ok { Ok(()) } else { Err(Error::Saved { at, want }) }
    }

    /// Refuses bytes that are left over.
    pub fn finish(&self) -> Result<(), Error> {
        self.check(self.reading.is_none_or(|(bytes, at)| at == bytes.len()), "the end")
    }

    fn byte(&mut self, byte: &mut u8) -> Result<(), Error> {
        let Some((bytes, at)) = &mut self.reading else {
            self.written.push(*byte);
            return Ok(());
        };
        let next = bytes.get(*at).copied();
        *at += usize::from(next.is_some());
        *byte = next.unwrap_or_default();
        self.check(next.is_some(), "followed by more: the bytes were cut off")
    }

    fn bits(&mut self, number: &mut u128) -> Result<(), Error> {
        let (mut rest, mut read, mut shift) = (*number, 0u128, 0);
        loop {
            let mut byte = (rest & 0x7f) as u8 | if rest > 0x7f { 0x80 } else { 0 };
            self.byte(&mut byte)?;
            self.check(shift < 126 || byte < 4, "an integer of 128 bits")?;
            read |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                *number = read;
                return Ok(());
            }
            (rest, shift) = (rest >> 7, shift + 7);
        }
    }

    /// An integer from 0 to `most`.
    pub fn number(&mut self, number: &mut u64, most: u64) -> Result<(), Error> {
        let mut bits = u128::from(*number);
        self.bits(&mut bits)?;
        self.check(bits <= u128::from(most), "an integer in its range")?;
        *number = bits as u64;
        Ok(())
    }

    /// An integer between ±`largest`: its sign is the lowest bit.
    pub fn signed(&mut self, number: &mut i128, largest: u128) -> Result<(), Error> {
        let mut bits = (*number << 1 ^ *number >> 127) as u128;
        self.bits(&mut bits)?;
        *number = (bits >> 1) as i128 ^ -((bits & 1) as i128);
        self.check(number.unsigned_abs() <= largest, "an integer in its range")
    }

    /// A double, which is not NaN.
    pub fn double(&mut self, number: &mut f64) -> Result<(), Error> {
        let mut bytes = number.to_le_bytes();
        bytes.iter_mut().try_for_each(|byte| self.byte(byte))?;
        *number = f64::from_le_bytes(bytes);
        self.check(!number.is_nan(), "a number")
    }

    /// Yes or no.
    pub fn flag(&mut self, flag: &mut bool) -> Result<(), Error> {
        let mut number = u64::from(*flag);
        self.number(&mut number, 1)?;
        *flag = number == 1;
        Ok(())
    }

    /// A list: its length, and then each element as `element` keeps it.
    pub fn list<T: Clone + Default>(
        &mut self,
        list: &mut Vec<T>,
        mut element: impl FnMut(&mut Self, &mut T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut length = list.len() as u64;
        self.number(&mut length, u64::MAX)?;
        for i in 0..length as usize {
            if i == list.len() {
                list.push(T::default()); // each takes a byte at least
            }
            element(self, &mut list[i])?;
        }
        list.truncate(length as usize);
        Ok(())
    }

    /// Something that may be absent.
    pub fn option<T: Default>(
        &mut self,
        option: &mut Option<T>,
        keep: impl FnOnce(&mut Self, &mut T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut there = option.is_some();
        self.flag(&mut there)?;
        if !there {
            *option = None;
            return Ok(());
        }
        keep(self, option.get_or_insert_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            number in any::<u64>(), signed in any::<i128>(), list in prop::collection::vec(any::<u64>(), 0..9),
        ) {
            let keep = |tape: &mut Tape<'_>, number: &mut u64, signed: &mut i128, list: &mut Vec<u64>| {
                tape.number(number, u64::MAX)?;
                tape.signed(signed, u128::MAX)?;
                tape.list(list, |tape, x| tape.number(x, u64::MAX))?;
                tape.finish()
            };
            let mut tape = Tape::writer();
            keep(&mut tape, &mut number.clone(), &mut signed.clone(), &mut list.clone()).unwrap();
            let (bytes, mut read) = (tape.written(), (0, 0, Vec::new()));
            keep(&mut Tape::reader(&bytes), &mut read.0, &mut read.1, &mut read.2).unwrap();
            prop_assert_eq!(read, (number, signed, list));
            for cut in 0..bytes.len() {
                let mut read = (0, 0, Vec::new());
                prop_assert!(keep(&mut Tape::reader(&bytes[..cut]), &mut read.0, &mut read.1, &mut read.2).is_err());
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let refused = |bytes: &[u8]| Tape::reader(bytes).number(&mut 0, 200).unwrap_err().to_string();
        assert_eq!(refused(&[0xc9, 0x01]), "saved evaluation, byte 2: must be an integer in its range; save it anew");
        assert!(refused(&[0xff; 30]).contains("128 bits"));
        assert!(refused(&[]).contains("cut off"));
        assert!(Tape::reader(&f64::NAN.to_le_bytes()).double(&mut 0.0).is_err());
    }
}
