//! Rows of separated text, split into fields.
//!
//! A field that begins with a quotation mark goes to the next one, which a doubled one is not; delimiters and line ends
//! inside belong to it. Anywhere else a quotation mark is a character as any other. Blank lines are no rows.

use std::ops::Range;

/// Where the text of a field stands.
#[derive(Debug, Clone)]
enum Field {
    /// In the text itself.
    Plain(Range<usize>),
    /// Among what was freed of its quotation marks.
    Unquoted(Range<usize>),
}

/// Goes through a text from row to row.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    bytes: &'a [u8],
    delimiter: u8,
    end: u8,
    /// Where the next row begins, and its line.
    at: usize,
    next_line: u64,
    line: u64,
    fields: Vec<Field>,
    unquoted: Vec<u8>,
}

impl<'a> Rows<'a> {
    /// The rows of `bytes`, which begin on a line of this number; `end` ends a row.
    pub fn new(bytes: &'a [u8], line: u64, delimiter: u8, end: u8) -> Rows<'a> {
        Rows { bytes, delimiter, end, at: 0, next_line: line, line, fields: Vec::new(), unquoted: Vec::new() }
    }

    /// Goes to the next row; false at the end.
    pub fn next(&mut self) -> bool {
        while self.at < self.bytes.len() {
            self.split();
            let blank = match &self.fields[..] {
                [Field::Plain(only)] => self.bytes[only.clone()].trim_ascii().is_empty(),
                _ => false,
            };
            if !blank {
                return true;
            }
        }
        false
    }

    fn split(&mut self) {
        let begin = self.at;
        self.fields.clear();
        self.unquoted.clear();
        loop {
            if self.bytes.get(self.at) == Some(&b'"') {
                self.unquote();
            } else {
                let field = self.up_to_separator();
                self.fields.push(Field::Plain(field));
            }
            let separator = self.bytes.get(self.at).copied();
            self.at += usize::from(separator.is_some());
            if separator != Some(self.delimiter) {
                break;
            }
        }
        self.line = self.next_line;
        self.next_line += match self.unquoted.is_empty() {
            true => 1,
            false => count(&self.bytes[begin..self.at], self.end),
        };
    }

    /// Takes all up to the next delimiter or end of a row.
    fn up_to_separator(&mut self) -> Range<usize> {
        let (from, rest) = (self.at, &self.bytes[self.at..]);
        self.at += rest.iter().position(|b| *b == self.delimiter || *b == self.end).unwrap_or(rest.len());
        from..self.at
    }

    fn unquote(&mut self) {
        let from = self.unquoted.len();
        loop {
            let rest = &self.bytes[self.at + 1..];
            let n = rest.iter().position(|b| *b == b'"').unwrap_or(rest.len());
            self.unquoted.extend_from_slice(&rest[..n]);
            self.at = (self.at + 1 + n + 1).min(self.bytes.len());
            if self.bytes.get(self.at) != Some(&b'"') {
                break;
            }
            self.unquoted.push(b'"');
        }
        let after = self.up_to_separator();
        self.unquoted.extend_from_slice(&self.bytes[after]);
        self.fields.push(Field::Unquoted(from..self.unquoted.len()));
    }

    /// The line on which the row begins.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// How many fields the row has.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    pub fn field(&self, i: usize) -> &[u8] {
        match &self.fields[i] {
            Field::Plain(at) => &self.bytes[at.clone()],
            Field::Unquoted(at) => &self.unquoted[at.clone()],
        }
    }

    pub fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.field(i))
    }

    /// Where the next row begins, and on which line.
    pub fn next_at(&self) -> (usize, u64) {
        (self.at, self.next_line)
    }

    /// Where the last row begins that may go on after the text; none if there is no row before it.
    pub fn last_end(mut self) -> Option<usize> {
        let mut last = None;
        while self.at < self.bytes.len() {
            self.split();
            if self.at < self.bytes.len() {
                last = Some(self.at);
            }
        }
        last
    }
}

/// How often a byte is there.
pub(crate) fn count(bytes: &[u8], byte: u8) -> u64 {
    bytes.iter().filter(|b| **b == byte).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<(u64, Vec<String>)> {
        let mut rows = Rows::new(text.as_bytes(), 1, b',', b'\n');
        let mut all = Vec::new();
        while rows.next() {
            all.push((rows.line(), rows.fields().map(|f| String::from_utf8_lossy(f).into_owned()).collect()));
        }
        all
    }

    #[test]
    fn rows_have_fields_and_the_line_on_which_they_begin() {
        let row = |line, fields: &[&str]| (line, fields.iter().map(|f| f.to_string()).collect::<Vec<_>>());
        assert_eq!(split("a,b\n1,\n"), [row(1, &["a", "b"]), row(2, &["1", ""])]);
        assert_eq!(split("\n\r\n a,5\" pipe,\n,"), [row(3, &[" a", "5\" pipe", ""]), row(4, &["", ""])]);
        let quoted = "\"a,\n\"\"b\"\"\"x,\"\"\n\"open, \n";
        assert_eq!(split(quoted), [row(1, &["a,\n\"b\"x", ""]), row(3, &["open, \n"])]);
        assert_eq!(split(""), []);
    }

    #[test]
    fn a_text_is_cut_before_the_row_that_may_go_on() {
        let end = |text: &str| Rows::new(text.as_bytes(), 1, b',', b'\n').last_end();
        assert_eq!(end("a,b\n1,2\n3,"), Some(8));
        assert_eq!(end("a,b\n\"1,\n2"), Some(4));
        assert_eq!(end("a,\"b\n1,2\n3"), None);
        assert_eq!(end("a,b"), None);
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_csv_crate(text in "[a,\" \n]{0,40}") {
            let mut reader = csv::ReaderBuilder::new();
            reader.terminator(csv::Terminator::Any(b'\n')).has_headers(false).flexible(true);
            let theirs: Vec<Vec<String>> = reader.from_reader(text.as_bytes()).records()
                .map(|row| row.unwrap().iter().map(str::to_string).collect())
                // They take lines of blanks for rows.
                .filter(|row: &Vec<String>| row.len() > 1 || !row[0].trim().is_empty())
                .collect();
            let ours: Vec<_> = split(&text).into_iter().map(|(_, row)| row)
                .filter(|row| row.len() > 1 || !row[0].trim().is_empty())
                .collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
