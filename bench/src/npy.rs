//! Arrays in NumPy's `.npy` format, version 1.0: little-endian, C order.
//!
//! `\x93NUMPY`, the version, the length of the header, a Python dictionary padded with spaces so that the numbers begin
//! at a multiple of 64 bytes, then the numbers.

/// A number type of an array.
pub trait Element: Copy {
    /// NumPy's name of the type.
    const DESCR: &'static str;
    /// Appends the number.
    fn put(self, to: &mut Vec<u8>);
}

macro_rules! element {
    ($t:ty, $descr:literal) => {
        impl Element for $t {
            const DESCR: &'static str = $descr;
            fn put(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
        }
    };
}
element!(f32, "<f4");
element!(f64, "<f8");
element!(u32, "<u4");

/// The bytes of a file that holds `data` as an array of that shape.
///
/// # Panics
///
/// If the shape does not hold as many numbers as there are.
pub fn encode<T: Element>(shape: &[usize], data: &[T]) -> Vec<u8> {
    assert_eq!(shape.iter().product::<usize>(), data.len(), "the shape must fit the data");
    // a tuple of one number has a comma behind it
    let sizes: String = shape.iter().map(|n| format!("{n},")).collect();
    let sizes = if shape.len() > 1 { sizes.trim_end_matches(',') } else { &sizes };
    let header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({sizes}), }}", T::DESCR);
    // magic, version and length are 10 bytes, the line break is one
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = Vec::with_capacity(10 + padded + size_of_val(data));
    bytes.extend_from_slice(b"\x93NUMPY\x01\x00");
    bytes.extend_from_slice(&(padded as u16).to_le_bytes());
    bytes.extend_from_slice(format!("{header:<width$}\n", width = padded - 1).as_bytes());
    data.iter().for_each(|v| v.put(&mut bytes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the header as NumPy does, and gives it with the bytes behind it.
    fn parse(bytes: &[u8]) -> (String, &[u8]) {
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert_eq!(end % 64, 0);
        assert_eq!(bytes[end - 1], b'\n');
        (String::from_utf8(bytes[10..end].to_vec()).unwrap().trim_end().to_owned(), &bytes[end..])
    }

    #[test]
    fn what_is_written_can_be_read() {
        let data = [1.5f32, -0.0, f32::MIN_POSITIVE, 3e38, 7.0, -1.0];
        for (shape, text) in [(&[6][..], "(6,)"), (&[2, 3], "(2,3)"), (&[1, 2, 3], "(1,2,3)")] {
            let bytes = encode(shape, &data);
            let (header, numbers) = parse(&bytes);
            assert_eq!(header, format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}, }}"));
            let back: Vec<f32> = numbers.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            assert_eq!(back.map_bits(), data.to_vec().map_bits());
        }
        assert!(parse(&encode(&[1], &[2.5f64])).0.contains("'<f8'"));
        assert_eq!(parse(&encode(&[1], &[2.5f64])).1, 2.5f64.to_le_bytes());
        assert!(parse(&encode(&[0], &[0u32; 0])).0.contains("'<u4'"));
    }

    trait Bits {
        fn map_bits(&self) -> Vec<u32>;
    }
    impl Bits for Vec<f32> {
        fn map_bits(&self) -> Vec<u32> {
            self.iter().map(|v| v.to_bits()).collect()
        }
    }

    #[test]
    #[should_panic(expected = "the shape must fit the data")]
    fn a_shape_of_another_size_is_refused() {
        encode(&[2, 2], &[1.0f32; 3]);
    }
}
