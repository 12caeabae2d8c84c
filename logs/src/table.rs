//! A fixed behaviour policy as a text file: one probability per line, for action 0, 1, 2, …

use std::fs;
use std::path::Path;

use crate::error::FileError;

/// Reads the probabilities; empty lines and lines that begin with `#` are skipped. That they are as many as there are
/// actions and sum to one is checked where the policy is made.
pub fn read_policy_table(path: &Path) -> Result<Vec<f64>, FileError> {
    let text = fs::read_to_string(path).map_err(|source| FileError::Read { path: path.to_path_buf(), source })?;
    let mut table = Vec::new();
    for (i, line) in text.lines().map(str::trim).enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
        match line.parse::<f64>() {
            Ok(p) if (0.0..=1.0).contains(&p) => table.push(p),
            _ => {
                let (path, got) = (path.to_path_buf(), line.to_owned());
                return Err(FileError::Line { path, line: i + 1, want: "a probability in [0, 1]", got });
            }
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<f64>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.txt");
        fs::write(&path, text).unwrap();
        read_policy_table(&path).map_err(|e| e.to_string().replace(&folder.path().display().to_string(), ""))
    }

    #[test]
    fn a_table_is_one_probability_per_line() {
        assert_eq!(read("# mostly the first\n0.9\n\n0.1\n").unwrap(), [0.9, 0.1]);
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(
            read("0.5\nNaN\n").unwrap_err(),
            "`/policy.txt`, line 2: must be a probability in [0, 1], got `NaN`"
        );
        assert_eq!(read("1.5").unwrap_err(), "`/policy.txt`, line 1: must be a probability in [0, 1], got `1.5`");
    }
}
