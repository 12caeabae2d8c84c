//! Records in bytes: length, checksum, text; and reading them back from a file that may end anywhere.

use std::io::{self, Read};

use crc32fast::Hasher;
use sha2::{Digest, Sha256};

use super::record::{Closed, Record};

/// The first bytes of a segment.
pub const MAGIC: &[u8; 8] = b"NCBLOG1\n";

/// The longest text of a record, in bytes.
pub const MAX_TEXT: usize = 32 << 20;

/// Appends a record.
///
/// # Panics
/// Where the text is longer than [`MAX_TEXT`]: requests are refused long before.
pub fn frame(text: &[u8], to: &mut Vec<u8>) {
    assert!(!text.is_empty() && text.len() <= MAX_TEXT, "a record of {} bytes", text.len());
    let length = (text.len() as u32).to_le_bytes();
    to.extend_from_slice(&length);
    to.extend_from_slice(&checksum(length, text).to_le_bytes());
    to.extend_from_slice(text);
}

fn checksum(length: [u8; 4], text: &[u8]) -> u32 {
    let mut crc = Hasher::new();
    crc.update(&length);
    crc.update(text);
    crc.finalize()
}

/// How a segment ends.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// With its closing record, and the digest is right.
    Closed,
    /// After a whole record: it is still growing, or its server was killed.
    Open,
    /// Within a record, or with bytes that are none, `torn` bytes after the last whole record.
    Torn(u64),
    /// Closed, and not as it was written.
    Damaged(String),
}

/// The records of a segment, one after another.
pub struct Frames<R> {
    from: R,
    text: Vec<u8>,
    sha256: Sha256,
    /// Whole records so far.
    records: u64,
    /// Bytes of the magic and of whole records so far.
    good: u64,
    closed: Option<Closed>,
    end: Option<End>,
}

impl<R: Read> Frames<R> {
    /// Reads the magic; false where there is none.
    pub fn new(mut from: R) -> io::Result<Option<Frames<R>>> {
        let mut magic = [0; MAGIC.len()];
        if read_up_to(&mut from, &mut magic)? < MAGIC.len() || magic != *MAGIC {
            return Ok(None);
        }
        let sha256 = Sha256::new_with_prefix(MAGIC);
        let good = MAGIC.len() as u64;
        Ok(Some(Frames { from, text: Vec::new(), sha256, records: 0, good, closed: None, end: None }))
    }

    /// The text of the next record, without that of the closing one.
    pub fn next_text(&mut self) -> io::Result<Option<&[u8]>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let mut head = [0; 8];
        let got = read_up_to(&mut self.from, &mut head)?;
        if got < head.len() {
            return self.stop(got as u64).map(|()| None);
        }
        let length: [u8; 4] = head[..4].try_into().expect("four bytes");
        let crc = u32::from_le_bytes(head[4..].try_into().expect("four bytes"));
        let n = u32::from_le_bytes(length) as usize;
        if n == 0 || n > MAX_TEXT {
            return self.stop(head.len() as u64).map(|()| None);
        }
        // Memory is taken as bytes come: a wrong length costs none.
        self.text.clear();
        let got = self.from.by_ref().take(n as u64).read_to_end(&mut self.text)?;
        if got < n || checksum(length, &self.text) != crc {
            return self.stop((head.len() + got) as u64).map(|()| None);
        }
        if self.text.starts_with(b"{\"closed\"")
            && let Ok(Record::Closed(closed)) = serde_json::from_slice(&self.text)
        {
            self.good += (head.len() + n) as u64;
            self.closed = Some(closed);
            return self.stop(0).map(|()| None);
        }
        self.sha256.update(head);
        self.sha256.update(&self.text);
        self.good += (head.len() + n) as u64;
        self.records += 1;
        Ok(Some(&self.text))
    }

    /// Finds out how the segment ends, `read` bytes after the last whole record.
    fn stop(&mut self, read: u64) -> io::Result<()> {
        let rest = io::copy(&mut self.from, &mut io::sink())? + read;
        self.end = Some(match &self.closed {
            None if rest == 0 => End::Open,
            None => End::Torn(rest),
            Some(_) if rest > 0 => End::Damaged(format!("{rest} bytes follow its closing record")),
            Some(closed) => {
                let found = hex(&self.sha256.clone().finalize());
                match closed.records == self.records && closed.sha256 == found {
                    true => End::Closed,
                    false => End::Damaged("its digest is another than when it was closed".to_owned()),
                }
            }
        });
        Ok(())
    }

    /// How the segment ends, once all records were read.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Bytes up to the end of the last whole record.
    pub fn good(&self) -> u64 {
        self.good
    }

    /// Whole records so far, without the closing one.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The digest of what was read.
    pub fn sha256(self) -> Sha256 {
        self.sha256
    }
}

/// Reads until the buffer is full or the file ends.
fn read_up_to(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < to.len() {
        match from.read(&mut to[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(texts: &[&str]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        texts.iter().for_each(|text| frame(text.as_bytes(), &mut bytes));
        bytes
    }

    fn closed(texts: &[&str]) -> Vec<u8> {
        let mut bytes = segment(texts);
        let end = Closed { records: texts.len() as u64, sha256: hex(&Sha256::digest(&bytes)), at: 7 };
        frame(&serde_json::to_vec(&Record::Closed(end)).unwrap(), &mut bytes);
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<String>, End, u64) {
        let mut frames = Frames::new(bytes).unwrap().unwrap();
        let mut texts = Vec::new();
        while let Some(text) = frames.next_text().unwrap() {
            texts.push(String::from_utf8(text.to_vec()).unwrap());
        }
        (texts, frames.end().unwrap().clone(), frames.good())
    }

    #[test]
    fn records_come_back_and_a_closed_segment_proves_itself() {
        let bytes = closed(&["one", "zwei", "3"]);
        let (texts, end, good) = read(&bytes);
        assert_eq!((texts.len(), texts[1].as_str(), end, good), (3, "zwei", End::Closed, bytes.len() as u64));
    }

    #[test]
    fn a_segment_cut_anywhere_gives_its_whole_records_and_no_others() {
        let texts = ["one", "zwei", "3"];
        let whole = segment(&texts);
        let ends: Vec<usize> = (0..=3).map(|n| segment(&texts[..n]).len()).collect();
        for cut in MAGIC.len()..=whole.len() {
            let n = ends.iter().filter(|&&end| end <= cut).count() - 1;
            let (found, end, good) = read(&whole[..cut]);
            assert_eq!(found, texts[..n], "cut at {cut}");
            assert_eq!(good as usize, ends[n]);
            let torn = (cut - ends[n]) as u64;
            assert_eq!(end, if torn == 0 { End::Open } else { End::Torn(torn) });
        }
    }

    #[test]
    fn no_flipped_bit_goes_unseen() {
        let bytes = closed(&["one", "zwei", "3"]);
        for bit in MAGIC.len() * 8..bytes.len() * 8 {
            let mut hurt = bytes.clone();
            hurt[bit / 8] ^= 1 << (bit % 8);
            let (texts, end, _) = read(&hurt);
            assert!(end != End::Closed, "bit {bit}: {texts:?}");
        }
    }

    #[test]
    fn zeros_that_a_crash_leaves_are_a_torn_tail() {
        let mut bytes = segment(&["one"]);
        let good = bytes.len() as u64;
        bytes.extend([0; 4096]);
        assert_eq!(read(&bytes), (vec!["one".to_owned()], End::Torn(4096), good));
    }

    #[test]
    fn bytes_after_the_end_are_damage() {
        let mut bytes = closed(&["one"]);
        frame(b"late", &mut bytes);
        assert!(matches!(read(&bytes).1, End::Damaged(_)));
        assert!(Frames::new(&b"PAR1...."[..]).unwrap().is_none());
        assert!(Frames::new(&b"NCB"[..]).unwrap().is_none());
    }
}
