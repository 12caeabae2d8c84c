//! The Thrift structures of a Parquet file, walked before the decoder sees them.
//!
//! The decoder takes what the bytes say: a list of truths that it does not know costs no byte and a step for each that
//! is claimed, a field is read as the type that it should have, and a schema is built as deep as it claims to be. So
//! every field that the format names must have its type, no list may claim more than the bytes left can hold, nothing
//! may be nested deeper than any real file is, and what no Parquet file has is refused. One walk, O(bytes).

/// Levels of structures and lists.
const DEEPEST: usize = 32;

/// Why a walk ended early.
#[derive(Debug, PartialEq)]
pub(super) enum Flaw {
    /// It claims more than there are bytes.
    Short,
    /// It is no structure of this kind.
    Bad(&'static str),
}

/// What a value must be.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Truth,
    Byte,
    Int,
    Double,
    Bytes,
    List(&'static Kind),
    Struct(&'static [(i16, Kind)]),
}

use Kind::{Byte, Bytes, Double, Int, List, Struct, Truth};

impl Kind {
    /// Whether a value of this type on the wire is one.
    fn fits(self, wire: u8) -> bool {
        match self {
            Truth => matches!(wire, 1 | 2),
            Byte => wire == 3,
            Int => matches!(wire, 4..=6),
            Double => wire == 7,
            Bytes => wire == 8,
            List(_) => wire == 9,
            Struct(_) => wire == 12,
        }
    }
}

/// The table of contents at the end of a file.
pub(super) const FILE: Kind = Struct(&[
    (1, Int),
    (2, List(&Struct(SCHEMA))),
    (3, Int),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&KEY_VALUE)),
    (6, Bytes),
    (7, List(&Struct(&[(1, Struct(&[])), (2, Struct(&[]))]))),
    (8, Struct(&[])),
    (9, Bytes),
]);

/// What stands before each page.
pub(super) const PAGE: Kind = Struct(&[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Int),
    (5, Struct(&[(1, Int), (2, Int), (3, Int), (4, Int), (5, Struct(STATISTICS))])),
    (6, Struct(&[])),
    (7, Struct(&[(1, Int), (2, Int), (3, Truth)])),
    (8, Struct(&[(1, Int), (2, Int), (3, Int), (4, Int), (5, Int), (6, Int), (7, Truth), (8, Struct(STATISTICS))])),
]);

const KEY_VALUE: Kind = Struct(&[(1, Bytes), (2, Bytes)]);

const SCHEMA: &[(i16, Kind)] = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Bytes),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Struct(LOGICAL)),
];

const LOGICAL: &[(i16, Kind)] = &[
    (5, Struct(&[(1, Int), (2, Int)])),
    (7, Struct(TIME)),
    (8, Struct(TIME)),
    (10, Struct(&[(1, Byte), (2, Truth)])),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Bytes)])),
    (18, Struct(&[(1, Bytes), (2, Int)])),
];

const TIME: &[(i16, Kind)] = &[(1, Truth), (2, Struct(&[(1, Struct(&[])), (2, Struct(&[])), (3, Struct(&[]))]))];

const ROW_GROUP: &[(i16, Kind)] = &[
    (1, List(&Struct(CHUNK))),
    (2, Int),
    (3, Int),
    (4, List(&Struct(&[(1, Int), (2, Truth), (3, Truth)]))),
    (5, Int),
    (6, Int),
    (7, Int),
];

const CHUNK: &[(i16, Kind)] =
    &[(1, Bytes), (2, Int), (3, Struct(COLUMN)), (4, Int), (5, Int), (6, Int), (7, Int), (8, Struct(&[])), (9, Bytes)];

const COLUMN: &[(i16, Kind)] = &[
    (1, Int),
    (2, List(&Int)),
    (3, List(&Bytes)),
    (4, Int),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, List(&KEY_VALUE)),
    (9, Int),
    (10, Int),
    (11, Int),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, Int), (2, Int), (3, Int)]))),
    (14, Int),
    (15, Int),
    (16, Struct(&[(1, Int), (2, List(&Int)), (3, List(&Int))])),
    (17, Struct(&[(1, Struct(BOX)), (2, List(&Int))])),
];

const STATISTICS: &[(i16, Kind)] =
    &[(1, Bytes), (2, Bytes), (3, Int), (4, Int), (5, Bytes), (6, Bytes), (7, Truth), (8, Truth), (9, Int)];

const BOX: &[(i16, Kind)] =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];

/// Walks the structure that begins the bytes; returns its length. `seen` is told of every integer, by the numbers of
/// the fields that lead to it, and of the end of every structure.
pub(super) fn walk(bytes: &[u8], kind: Kind, seen: &mut dyn FnMut(&[i16], Option<i64>)) -> Result<usize, Flaw> {
    let mut walk = Walk { bytes, at: 0, path: Vec::new(), depth: 0, seen };
    walk.value(12, Some(kind))?;
    Ok(walk.at)
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    path: Vec<i16>,
    depth: usize,
    seen: &'a mut dyn FnMut(&[i16], Option<i64>),
}

impl Walk<'_> {
    fn byte(&mut self) -> Result<u8, Flaw> {
        let byte = *self.bytes.get(self.at).ok_or(Flaw::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, n: u64) -> Result<(), Flaw> {
        if n > (self.bytes.len() - self.at) as u64 {
            return Err(Flaw::Short);
        }
        self.at += n as usize;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Flaw> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Flaw::Bad("it has a number of more than 64 bits"))
    }

    fn int(&mut self) -> Result<i64, Flaw> {
        let v = self.varint()?;
        Ok((v >> 1) as i64 ^ -((v & 1) as i64))
    }

    /// A value of a type on the wire, which must be of `kind` where the format names one.
    fn value(&mut self, wire: u8, kind: Option<Kind>) -> Result<(), Flaw> {
        if kind.is_some_and(|kind| !kind.fits(wire)) {
            return Err(Flaw::Bad("a field is of another type than the format says"));
        }
        match wire {
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => {
                let v = self.int()?;
                (self.seen)(&self.path, Some(v));
                Ok(())
            }
            7 => self.skip(8),
            8 => {
                let n = self.varint()?;
                self.skip(n)
            }
            9 | 10 | 12 => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(Flaw::Bad("it is nested deeper than any Parquet file"));
                }
                match (wire, kind) {
                    (12, Some(Struct(fields))) => self.structure(fields)?,
                    (12, _) => self.structure(&[])?,
                    (_, Some(List(item))) => self.list(Some(*item))?,
                    _ => self.list(None)?,
                }
                self.depth -= 1;
                Ok(())
            }
            _ => Err(Flaw::Bad("it has a map, which no Parquet file has, or a type that does not exist")),
        }
    }

    fn structure(&mut self, fields: &'static [(i16, Kind)]) -> Result<(), Flaw> {
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head & 15 == 0 {
                break;
            }
            id = match head >> 4 {
                0 => self.int()? as i16,
                delta => id.checked_add(i16::from(delta)).ok_or(Flaw::Bad("a field has no number"))?,
            };
            let kind = fields.iter().find(|(known, _)| *known == id).map(|(_, kind)| *kind);
            self.path.push(id);
            self.value(head & 15, kind)?;
            self.path.pop();
        }
        (self.seen)(&self.path, None);
        Ok(())
    }

    fn list(&mut self, item: Option<Kind>) -> Result<(), Flaw> {
        let head = self.byte()?;
        let n = match head >> 4 {
            15 => self.varint()?,
            n => u64::from(n),
        };
        // Some writers give an empty list no type.
        if head == 0 {
            return Ok(());
        }
        // Each takes a byte at least. The decoder passes over truths without taking any.
        if n > (self.bytes.len() - self.at) as u64 {
            return Err(Flaw::Short);
        }
        if matches!(head & 15, 1 | 2) {
            return Err(Flaw::Bad("it has a list of truths, which no Parquet file has there"));
        }
        for _ in 0..n {
            self.value(head & 15, item)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(bytes: &[u8]) -> Result<usize, Flaw> {
        walk(bytes, FILE, &mut |_, _| {})
    }

    #[test]
    fn a_structure_tells_its_numbers_and_its_length() {
        // {1: 2, 2: [{4: "ab", 5: 1}]} and a byte that belongs to something else
        let bytes = [0x15, 4, 0x19, 0x1c, 0x48, 2, b'a', b'b', 0x15, 2, 0, 0, 99];
        let mut seen = Vec::new();
        let n = walk(&bytes, FILE, &mut |path, v| seen.push((path.to_vec(), v)));
        assert_eq!(n, Ok(12));
        let want = [(vec![1], Some(2)), (vec![2, 5], Some(1)), (vec![2], None), (vec![], None)];
        assert_eq!(seen, want);
    }

    #[test]
    fn what_makes_the_decoder_work_for_nothing_is_refused() {
        let says = |bytes: &[u8]| match length(bytes) {
            Err(Flaw::Bad(why)) => why,
            other => panic!("{other:?}"),
        };
        // 2³¹ − 1 truths in a field 10 that nobody knows
        assert_eq!(length(&[0xa9, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]), Err(Flaw::Short));
        assert!(says(&[0xa9, 0x31, 1, 1, 1, 0]).contains("list of truths"));
        assert!(says(&[0xab, 0]).contains("map"));
        // the schema as a text, in which the decoder would find a list
        assert!(says(&[0x28, 1, 0, 0]).contains("another type"));
        assert!(says(&[[0xac].as_slice(), &[0x1c; 100]].concat()).contains("deeper"));
        assert_eq!(length(&[0xa8, 50, 0]), Err(Flaw::Short));
        assert!(says(&[0x15, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).contains("64 bits"));
    }
}
