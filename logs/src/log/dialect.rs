//! How a table of text is written: what separates fields, what separates a number's fraction, what ends a line.

use std::borrow::Cow;

use super::fields::Rows;
use super::options::{Format, LogOptions};
use super::pieces::Piece;

/// What can separate fields.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// How one file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub delimiter: u8,
    /// Whether 1,5 is one and a half.
    pub decimal_comma: bool,
    /// Whether lines end with a carriage return alone.
    pub returns: bool,
}

impl Dialect {
    /// Commas between fields, and points in numbers.
    pub const PLAIN: Dialect = Dialect { delimiter: b',', decimal_comma: false, returns: false };

    /// What the options say, and otherwise what the beginning of the text shows.
    pub fn of(start: &[u8], format: Format, options: &LogOptions) -> Dialect {
        let named = options.delimiter.and_then(|c| u8::try_from(c).ok());
        let seen = if format == Format::Tsv { b'\t' } else { most_in_header(start) };
        let delimiter = named.unwrap_or(seen);
        let decimal_comma = match options.decimal {
            Some(decimal) => decimal == ',',
            None => delimiter != b',' && has_decimal_commas(start, delimiter),
        };
        Dialect { delimiter, decimal_comma, returns: start.contains(&b'\r') && !start.contains(&b'\n') }
    }

    /// What ends a row. A carriage return before a newline belongs to the last field, which is trimmed.
    pub fn end(&self) -> u8 {
        if self.returns { b'\r' } else { b'\n' }
    }

    /// The rows of a piece of the text.
    pub fn rows<'a>(&self, piece: &'a Piece) -> Rows<'a> {
        Rows::new(&piece.bytes, piece.line, self.delimiter, self.end())
    }

    /// A number as it is written elsewhere.
    pub fn number<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match self.decimal_comma && text.contains(&b',') {
            true => text.iter().map(|&b| if b == b',' { b'.' } else { b }).collect(),
            false => Cow::Borrowed(text),
        }
    }
}

/// The delimiter that the header has most of, outside of quotation marks; of equally many the first of the list.
fn most_in_header(start: &[u8]) -> u8 {
    let mut counts = [0usize; DELIMITERS.len()];
    let mut quoted = false;
    for &byte in start.iter().take_while(|b| !matches!(b, b'\n' | b'\r')) {
        quoted ^= byte == b'"';
        if let Some(i) = DELIMITERS.iter().position(|d| *d == byte && !quoted) {
            counts[i] += 1;
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|n| *n == most).map_or(b',', |i| DELIMITERS[i])
}

/// Whether numbers have a comma where others have a point.
fn has_decimal_commas(start: &[u8], delimiter: u8) -> bool {
    let fields = || start.split(|b| *b == delimiter || matches!(b, b'\n' | b'\r' | b'"')).map(<[u8]>::trim_ascii);
    let parted = |field: &[u8], by: u8| {
        let field = field.strip_prefix(b"-").unwrap_or(field);
        let mut parts = field.split(|b| *b == by);
        let digits = |part: Option<&[u8]>| part.is_some_and(|p| !p.is_empty() && p.iter().all(u8::is_ascii_digit));
        digits(parts.next()) && digits(parts.next()) && parts.next().is_none()
    };
    fields().any(|field| parted(field, b',')) && !fields().any(|field| parted(field, b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_is_seen_from_the_beginning() {
        let of = |start: &str| Dialect::of(start.as_bytes(), Format::Csv, &LogOptions::default());
        let plain = Dialect::PLAIN;
        assert_eq!(of("action,reward,x\na,1,2.5\n"), plain);
        assert_eq!(of("\"a;b;c\",reward,x\n"), plain);
        assert_eq!(of(""), plain);
        assert_eq!(of("action;reward;x\na;1;2.5\n"), Dialect { delimiter: b';', ..plain });
        assert_eq!(of("action;reward;x\na;1;2,5\n"), Dialect { delimiter: b';', decimal_comma: true, ..plain });
        assert_eq!(of("action\treward\n"), Dialect { delimiter: b'\t', ..plain });
        assert_eq!(of("action,reward\ra,1\r"), Dialect { returns: true, ..plain });
        assert_eq!(of("action,eligible,reward\na,a|b|c,1\n"), plain);
    }

    #[test]
    fn what_is_said_goes_before_what_is_seen() {
        let options = LogOptions { delimiter: Some('|'), decimal: Some(','), ..LogOptions::default() };
        let dialect = Dialect::of(b"a,b|c\n1|1.5\n", Format::Csv, &options);
        assert_eq!((dialect.delimiter, dialect.decimal_comma), (b'|', true));
        assert_eq!(dialect.number(b"-1,5").as_ref(), b"-1.5");
    }
}
