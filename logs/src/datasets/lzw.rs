//! The `.Z` files of Unix `compress`: LZW with codes of growing width.
//!
//! A header of three bytes (`1f 9d`, then the greatest width in bits and, in the top bit, whether code 256 empties the
//! table), then codes with the lowest bit first. Codes begin 9 bits wide; each code but the first after a start adds
//! the string «previous string + first byte of this one» to the table, and once the table's next entry does not fit the
//! width, codes become a bit wider. Codes come in groups of eight: where the width changes, or the table is emptied,
//! the rest of the group is padding. The format has no length and no check sum, so a file cut short looks whole: its
//! hash must tell.

use std::ops::Range;

/// The first two bytes of every `.Z` file.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x9d];

const FIRST_WIDTH: u32 = 9;
/// Codes below are single bytes; this one empties the table, in block mode.
const CLEAR: usize = 256;

/// Why a file is no `.Z` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum LzwError {
    #[error("it does not begin with the header of a `.Z` file")]
    Header,
    #[error("the greatest width of its codes must be 10 to 16 bits, got {0}")]
    Width(u32),
    #[error("code in byte {byte} must be below {below}, got {code}")]
    Code { byte: usize, below: usize, code: usize },
    #[error("its content is longer than {0} bytes")]
    Long(usize),
}

/// The content of a `.Z` file, if it is not longer than `limit` bytes.
pub(super) fn decode(packed: &[u8], limit: usize) -> Result<Vec<u8>, LzwError> {
    let [m0, m1, flags, codes @ ..] = packed else { return Err(LzwError::Header) };
    let greatest = u32::from(flags & 0x1f);
    if [*m0, *m1] != MAGIC || flags & 0x60 != 0 {
        return Err(LzwError::Header);
    }
    // 9 is left out: `compress -b 9` writes files that no program reads.
    if !(10..=16).contains(&greatest) {
        return Err(LzwError::Width(greatest));
    }
    let block = flags & 0x80 != 0;
    let first_free = if block { CLEAR + 1 } else { CLEAR };
    let mut codes = Codes { bytes: codes, group: 0, bit: 0, width: FIRST_WIDTH };

    let mut out: Vec<u8> = Vec::new();
    // A string of the table is a place in the output: the previous string, with the byte that came after it.
    let mut table: Vec<Range<usize>> = Vec::new();
    let mut previous: Option<Range<usize>> = None;
    loop {
        if first_free + table.len() >= 1 << codes.width && codes.width < greatest {
            codes.skip_group();
            codes.width += 1;
        }
        let byte = 3 + codes.byte();
        let Some(code) = codes.next() else { return Ok(out) };
        if block && code == CLEAR {
            codes.skip_group();
            codes.width = FIRST_WIDTH;
            table.clear();
            previous = None;
            continue;
        }
        let start = out.len();
        let grows = first_free + table.len() < 1 << greatest;
        match (&previous, code.checked_sub(first_free).and_then(|entry| table.get(entry))) {
            _ if code < CLEAR => out.push(code as u8),
            (Some(_), Some(string)) => out.extend_from_within(string.clone()),
            // The string that this very code adds to the table: it ends with its own first byte.
            (Some(previous), None) if grows && code == first_free + table.len() => {
                out.extend_from_within(previous.clone());
                out.push(out[start]);
            }
            (Some(_), None) => {
                let below = first_free + table.len() + usize::from(grows);
                return Err(LzwError::Code { byte, below, code });
            }
            (None, _) => return Err(LzwError::Code { byte, below: CLEAR, code }),
        }
        if out.len() > limit {
            return Err(LzwError::Long(limit));
        }
        if let Some(previous) = previous.filter(|_| grows) {
            table.push(previous.start..previous.end + 1);
        }
        previous = Some(start..out.len());
    }
}

/// Codes of `width` bits, lowest bit first, in groups of eight.
struct Codes<'a> {
    bytes: &'a [u8],
    /// Where the group begins.
    group: usize,
    /// The next bit, counted from there.
    bit: usize,
    width: u32,
}

impl Codes<'_> {
    /// The byte that holds the next bit.
    fn byte(&self) -> usize {
        self.group + self.bit / 8
    }

    /// The next code, if the file has one more.
    fn next(&mut self) -> Option<usize> {
        let (byte, shift) = (self.byte(), self.bit % 8);
        let end = byte + (shift + self.width as usize).div_ceil(8);
        let bits = self.bytes.get(byte..end)?.iter().rev().fold(0, |bits, b| bits << 8 | usize::from(*b));
        self.bit += self.width as usize;
        if self.bit == 8 * self.width as usize {
            self.skip_group();
        }
        Some(bits >> shift & ((1 << self.width) - 1))
    }

    /// Leaves a group that has been begun.
    fn skip_group(&mut self) {
        if self.bit > 0 {
            self.group += self.width as usize;
            self.bit = 0;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The encoder's side, as plainly as can be: it empties the table after every `clear_after` codes.
    struct Encoder {
        packed: Vec<u8>,
        group: Vec<usize>,
        width: u32,
    }

    impl Encoder {
        fn flush(&mut self) {
            let mut bytes = vec![0u8; self.width as usize];
            for (i, code) in self.group.iter().enumerate() {
                for b in 0..self.width as usize {
                    let at = i * self.width as usize + b;
                    bytes[at / 8] |= ((code >> b & 1) as u8) << (at % 8);
                }
            }
            if !self.group.is_empty() {
                self.packed.extend(bytes);
            }
            self.group.clear();
        }

        fn put(&mut self, code: usize) {
            self.group.push(code);
            if self.group.len() == 8 {
                self.flush();
            }
        }
    }

    pub fn encode(content: &[u8], greatest: u32, clear_after: Option<usize>) -> Vec<u8> {
        let block = if clear_after.is_some() { 0x80 } else { 0 };
        let first_free = if clear_after.is_some() { 257 } else { 256 };
        let mut to = Encoder { packed: vec![0x1f, 0x9d, block | greatest as u8], group: Vec::new(), width: 9 };
        let mut table: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut at, mut since_start) = (0, 0);
        while at < content.len() {
            if clear_after.is_some_and(|limit| since_start == limit) {
                to.put(256);
                to.flush();
                (to.width, since_start) = (9, 0);
                table.clear();
            }
            let known = |len: &usize| *len == 1 || table.contains_key(&content[at..at + len]);
            let len = (1..=content.len() - at).take_while(known).last().unwrap();
            let string = &content[at..at + len];
            to.put(if len == 1 { usize::from(string[0]) } else { table[string] });
            at += len;
            since_start += 1;
            // The decoder knows of the entry only once it has seen the next code: it lags one behind.
            if first_free + since_start > 1 << to.width && to.width < greatest {
                to.flush();
                to.width += 1;
            }
            let next = first_free + table.len();
            if at < content.len() && next < 1 << greatest {
                table.insert(content[at - len..=at].to_vec(), next);
            }
        }
        let end = to.packed.len() + (to.group.len() * to.width as usize).div_ceil(8);
        to.flush();
        to.packed.truncate(end);
        to.packed
    }

    /// A run, then digits of a counter, then hexadecimal noise: once the table is full, `compress` empties it.
    fn content(n: usize) -> Vec<u8> {
        let noise = |i: u64| format!("{:x}", (i * i).wrapping_mul(2_654_435_761) % 4_294_967_291);
        let part = |i: u64| match i {
            0..1000 => "compress ".to_owned(),
            1000..2000 => format!("{} ", i % 97),
            _ => noise(i),
        };
        (0..).flat_map(|i| part(i).into_bytes()).take(n).collect()
    }

    #[test]
    fn what_a_plain_encoder_writes_is_read_back() {
        for n in [0, 1, 2, 500, 3000, 100_000] {
            for greatest in [10, 12, 16] {
                for clear_after in [None, Some(1), Some(7), Some(255), Some(256), Some(5000)] {
                    let (content, case) = (content(n), format!("{n} bytes, {greatest} bits, {clear_after:?}"));
                    let packed = encode(&content, greatest, clear_after);
                    assert!(decode(&packed, n).unwrap() == content, "{case}");
                }
            }
        }
    }

    #[test]
    fn what_compress_itself_writes_is_read_back() {
        // Made by ncompress 4.2.4.6, `compress -b 10`; it empties the table after 20,001 bytes.
        let packed = include_bytes!("../../tests/fixtures/compress-10-bits.Z");
        assert!(decode(packed, 22_000).unwrap() == content(22_000));
    }

    #[test]
    fn what_is_no_z_file_is_refused() {
        for (packed, want) in [
            (&b""[..], LzwError::Header),
            (b"\x1f\x9d", LzwError::Header),
            (b"\x1f\x8b\x90", LzwError::Header), // gzip
            (b"\x1f\x9d\xf0", LzwError::Header), // reserved bits
            (b"\x1f\x9d\x89", LzwError::Width(9)),
            (b"\x1f\x9d\x91", LzwError::Width(17)),
            (b"\x1f\x9d\x90\x01\x01", LzwError::Code { byte: 3, below: 256, code: 257 }),
            (b"\x1f\x9d\x90\x61\x04\x02", LzwError::Code { byte: 4, below: 258, code: 258 }),
        ] {
            assert_eq!(decode(packed, 100), Err(want), "{packed:x?}");
        }
        assert_eq!(decode(b"\x1f\x9d\x90", 0), Ok(vec![]));
    }

    #[test]
    fn content_beyond_the_limit_is_refused() {
        let packed = encode(&content(5000), 16, Some(1000));
        assert_eq!(decode(&packed, 4999), Err(LzwError::Long(4999)));
    }

    #[test]
    fn damaged_files_end_in_an_error_or_in_other_content() {
        let (whole, n) = (include_bytes!("../../tests/fixtures/compress-10-bits.Z"), 22_000);
        for at in (3..whole.len()).step_by(97) {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 0x55;
            assert!(decode(&damaged, n).map_or(true, |out| out != content(n)), "byte {at}");
            assert!(decode(&whole[..at], n).unwrap().len() < n);
        }
    }
}
