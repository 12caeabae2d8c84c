//! Lines of fields, with their place in the file for whoever has to refuse one.

use std::path::Path;

use super::DataError;

/// What stands between two fields.
#[derive(Debug, Clone, Copy)]
pub(super) enum Between {
    /// A comma, with blanks around it or not.
    Comma,
    /// Blanks.
    Blank,
}

/// One line, split.
#[derive(Debug)]
pub(super) struct Line<'a> {
    path: &'a Path,
    number: usize,
    fields: Vec<&'a str>,
}

/// The lines of a text, each with `n_fields` fields. Lines that begin with `|` are comments (UCI's convention); blank
/// lines may stand at the end, and nowhere else.
pub(super) fn lines<'a>(
    path: &'a Path,
    text: &'a str,
    between: Between,
    n_fields: usize,
) -> Result<impl Iterator<Item = Result<Line<'a>, DataError>>, DataError> {
    let lines = text.trim_end().lines().enumerate().filter(|(_, line)| !line.starts_with('|'));
    if lines.clone().next().is_none() {
        return Err(DataError::Empty { path: path.to_path_buf() });
    }
    Ok(lines.map(move |(i, line)| Line::split(path, i + 1, line, between, n_fields)))
}

impl<'a> Line<'a> {
    fn split(path: &'a Path, number: usize, line: &'a str, between: Between, want: usize) -> Result<Self, DataError> {
        let fields: Vec<&str> = match between {
            _ if line.trim().is_empty() => Vec::new(),
            Between::Comma => line.split(',').map(str::trim).collect(),
            Between::Blank => line.split_ascii_whitespace().collect(),
        };
        if fields.len() != want {
            let (path, got) = (path.to_path_buf(), fields.len());
            return Err(DataError::Fields { path, line: number, want, got });
        }
        Ok(Line { path, number, fields })
    }

    /// All fields as they stand.
    pub fn fields(&self) -> &[&'a str] {
        &self.fields
    }

    /// Field `i` (from 0) as a number.
    pub fn number(&self, i: usize) -> Result<f32, DataError> {
        match self.fields[i].parse::<f32>() {
            Ok(v) if v.is_finite() => Ok(v),
            _ => Err(self.refuse(i, "a finite number")),
        }
    }

    /// The error of a field (from 0) that is not what it must be.
    pub fn refuse(&self, i: usize, want: &'static str) -> DataError {
        let (path, got) = (self.path.to_path_buf(), self.fields[i].to_owned());
        DataError::Value { path, line: self.number, field: i + 1, want, got }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, between: Between) -> Result<Vec<Vec<f32>>, String> {
        let parse = || -> Result<Vec<Vec<f32>>, DataError> {
            let read = lines(Path::new("f"), text, between, 2)?;
            read.map(|line| line.and_then(|line| (0..2).map(|i| line.number(i)).collect())).collect()
        };
        parse().map_err(|e| e.to_string())
    }

    #[test]
    fn comments_and_blank_lines_at_the_end_are_no_rows() {
        let want = Ok(vec![vec![1.0, 2.0], vec![3.0, -4.5]]);
        assert_eq!(all("|note\n1, 2\r\n3,-4.5\n\n", Between::Comma), want);
        assert_eq!(all("1 2\n 3  -4.5 \n", Between::Blank), want);
    }

    #[test]
    fn a_bad_line_is_refused_by_file_line_and_field() {
        for (text, want) in [
            ("1,2\n3\n", "`f`, line 2: must have 2 fields, got 1"),
            ("1,2,3\n", "`f`, line 1: must have 2 fields, got 3"),
            ("1,2\n\n3,4\n", "`f`, line 2: must have 2 fields, got 0"),
            ("|note\n1,x\n", "`f`, line 2, field 2: must be a finite number, got `x`"),
            ("1,\n", "`f`, line 1, field 2: must be a finite number, got ``"),
            ("inf,1\n", "`f`, line 1, field 1: must be a finite number, got `inf`"),
            ("", "`f` holds no rows"),
            ("|note\n\n", "`f` holds no rows"),
        ] {
            assert_eq!(all(text, Between::Comma), Err(want.to_owned()), "{text:?}");
        }
    }
}
