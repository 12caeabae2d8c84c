//! MNIST: gzipped IDX files of big-endian numbers: a magic number, the number of items, for images rows and columns,
//! then one byte per pixel or label.

use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use rayon::prelude::*;

use super::cache::Cache;
use super::files::{TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS};
use super::{Classified, DataError};

const SIDE: u32 = 28;
const DIM: usize = (SIDE * SIDE) as usize;
const N_TRAIN: u32 = 60_000;
const N_TEST: u32 = 10_000;
const N_CLASSES: usize = 10;

/// A header: what its numbers are called, and what they must be.
type Header<'a> = &'a [(&'static str, u32)];

pub(super) fn load(cache: &Cache) -> Result<Classified, DataError> {
    let (train, test) = rayon::join(|| images(cache, N_TRAIN), || images(cache, N_TEST));
    let (train, test) = (train?, test?);
    let labels = [labels(cache, N_TRAIN)?, labels(cache, N_TEST)?].concat();
    let mut x = vec![0.0; train.len() + test.len()];
    let (first, second) = x.split_at_mut(train.len());
    for (to, from) in [(first, train), (second, test)] {
        to.par_iter_mut().zip(from).for_each(|(to, byte)| *to = f32::from(byte));
    }
    let class_names = (0..N_CLASSES).map(|digit| digit.to_string()).collect();
    let test_from = Some(N_TRAIN as usize);
    Ok(Classified { dim: DIM, n_classes: N_CLASSES, x, labels, class_names, test_from })
}

fn images(cache: &Cache, n: u32) -> Result<Vec<u8>, DataError> {
    let (path, file) = cache.open(if n == N_TRAIN { &TRAIN_IMAGES } else { &TEST_IMAGES })?;
    let header = [("magic number", 2051), ("number of images", n), ("rows", SIDE), ("columns", SIDE)];
    read_idx(&path, file, &header, n as usize * DIM)
}

fn labels(cache: &Cache, n: u32) -> Result<Vec<u32>, DataError> {
    let (path, file) = cache.open(if n == N_TRAIN { &TRAIN_LABELS } else { &TEST_LABELS })?;
    let bytes = read_idx(&path, file, &[("magic number", 2049), ("number of labels", n)], n as usize)?;
    check_labels(&path, &bytes)?;
    Ok(bytes.into_iter().map(u32::from).collect())
}

fn check_labels(path: &Path, labels: &[u8]) -> Result<(), DataError> {
    match labels.iter().position(|&label| usize::from(label) >= N_CLASSES) {
        Some(item) => {
            let path = path.to_path_buf();
            Err(DataError::Label { path, item, n_classes: N_CLASSES, got: labels[item] })
        }
        None => Ok(()),
    }
}

/// The content of a gzipped IDX file with that header and that many bytes after it.
fn read_idx(path: &Path, file: impl Read, header: Header, want: usize) -> Result<Vec<u8>, DataError> {
    let unpack = |source: io::Error| DataError::Unpack { path: path.to_path_buf(), source };
    let mut content = MultiGzDecoder::new(BufReader::new(file));
    for &(field, want) in header {
        let mut number = [0; 4];
        content.read_exact(&mut number).map_err(unpack)?;
        let got = u32::from_be_bytes(number);
        if got != want {
            return Err(DataError::Header { path: path.to_path_buf(), field, want, got });
        }
    }
    let mut bytes = Vec::with_capacity(want);
    // One byte more than there may be, so that a longer file is noticed and cannot fill the memory.
    content.take(want as u64 + 1).read_to_end(&mut bytes).map_err(unpack)?;
    match bytes.len() {
        got if got < want => Err(DataError::Short { path: path.to_path_buf(), want, got }),
        got if got > want => Err(DataError::Long { path: path.to_path_buf(), want }),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    const HEADER: Header = &[("magic number", 2049), ("number of labels", 3)];

    fn gzipped(numbers: &[u32], content: &[u8]) -> Vec<u8> {
        let mut file = GzEncoder::new(Vec::new(), Compression::default());
        numbers.iter().for_each(|n| file.write_all(&n.to_be_bytes()).unwrap());
        file.write_all(content).unwrap();
        file.finish().unwrap()
    }

    fn read(file: &[u8]) -> Result<Vec<u8>, String> {
        read_idx(Path::new("f"), file, HEADER, 3).map_err(|e| e.to_string())
    }

    #[test]
    fn the_content_follows_the_header() {
        assert_eq!(read(&gzipped(&[2049, 3], &[7, 0, 9])).unwrap(), [7, 0, 9]);
    }

    #[test]
    fn wrong_headers_and_lengths_are_refused() {
        for (file, want) in [
            (gzipped(&[2051, 3], &[7, 0, 9]), "`f`, header: magic number must be 2049, got 2051"),
            (gzipped(&[2049, 4], &[7, 0, 9, 1]), "`f`, header: number of labels must be 3, got 4"),
            (gzipped(&[2049, 3], &[7, 0]), "`f`: its header promises 3 bytes of content, got 2"),
            (gzipped(&[2049, 3], &[7, 0, 9, 1]), "`f`: must end after 3 bytes of content, but goes on"),
        ] {
            assert_eq!(read(&file).unwrap_err(), want);
        }
    }

    #[test]
    fn a_file_that_is_cut_damaged_or_no_gzip_is_refused() {
        let whole = gzipped(&[2049, 3], &[7, 0, 9]);
        for cut in 0..whole.len() {
            let error = read(&whole[..cut]).unwrap_err();
            assert!(error.starts_with("cannot decompress `f`: "), "{cut} bytes: {error}");
        }
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1; // in the length that ends a gzip file
        assert!(read(&damaged).unwrap_err().starts_with("cannot decompress `f`: "));
        assert!(read(b"3 labels").unwrap_err().starts_with("cannot decompress `f`: "));
    }

    #[test]
    fn a_label_that_is_no_digit_is_refused_by_its_place() {
        check_labels(Path::new("f"), &[0, 9]).unwrap();
        let error = check_labels(Path::new("f"), &[0, 9, 10]).unwrap_err().to_string();
        assert_eq!(error, "`f`, item 2: label must be below 10, got 10");
    }
}
