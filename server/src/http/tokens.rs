//! Who may do what.
//!
//! A token file has one token a line, its right before it: `rank s3cret…`, `read …`, `admin …`; `#` begins a comment. A
//! token of the right admin may do everything. Tokens come as `Authorization: Bearer TOKEN` or, as clients of the Azure
//! Personalizer API send their key, as `Ocp-Apim-Subscription-Key: TOKEN`.

use std::fs;
use std::path::{Path, PathBuf};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Decisions, rewards, activations.
    Rank,
    /// Metrics, statistics, models as they are.
    Read,
    /// Everything, and new models.
    Admin,
}

/// The tokens that are known.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Digests, so that all have one length.
    known: Vec<(Right, [u8; 32])>,
}

/// The shortest token, in bytes.
const SHORTEST: usize = 16;

/// Why a token file is refused.
#[derive(Debug, Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("cannot read the token file `{path}`: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the disk said.
        source: std::io::Error,
    },
    /// A line that is no token.
    #[error(
        "`{path}`, line {line}: must be a right (rank, read or admin) and a token of at least {SHORTEST} characters \
         without spaces"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Nothing in it.
    #[error("`{path}` holds no token: write a line `rank TOKEN`")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Tokens {
    /// Reads a token file.
    pub fn read(path: &Path) -> Result<Tokens, TokenError> {
        let text = fs::read_to_string(path).map_err(|source| TokenError::Read { path: path.to_path_buf(), source })?;
        let mut known = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let right = match words.first() {
                None => continue,
                Some(&"rank") => Right::Rank,
                Some(&"read") => Right::Read,
                Some(&"admin") => Right::Admin,
                Some(_) => return Err(TokenError::Line { path: path.to_path_buf(), line: i + 1 }),
            };
            match words[1..] {
                [token] if token.len() >= SHORTEST => known.push((right, Sha256::digest(token).into())),
                _ => return Err(TokenError::Line { path: path.to_path_buf(), line: i + 1 }),
            }
        }
        match known.is_empty() {
            true => Err(TokenError::Empty { path: path.to_path_buf() }),
            false => Ok(Tokens { known }),
        }
    }

    /// Whether there is any: without one everybody may do everything.
    pub fn are_asked_for(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whether a request may do what needs that right; the error tells whether it has a known token at all.
    pub(super) fn allow(&self, right: Right, headers: &HeaderMap) -> Result<(), bool> {
        if !self.are_asked_for() {
            return Ok(());
        }
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let key = headers.get("ocp-apim-subscription-key").map(|value| value.as_bytes());
        let Some(given) = bearer.or(key) else { return Err(false) };
        let given: [u8; 32] = Sha256::digest(given).into();
        let (mut known, mut allowed) = (false, false);
        // All are compared, each in constant time.
        for (of, digest) in &self.known {
            let same = bool::from(digest.ct_eq(&given));
            known |= same;
            allowed |= same && (*of == right || *of == Right::Admin);
        }
        if allowed { Ok(()) } else { Err(known) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(tokens: &Tokens, right: Right, name: &'static str, value: &str) -> Result<(), bool> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        tokens.allow(right, &headers)
    }

    #[test]
    fn a_token_has_its_right_and_admin_has_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(&path, "# ours\nrank aaaaaaaaaaaaaaaa # shop\nadmin bbbbbbbbbbbbbbbb\n\n").unwrap();
        let tokens = Tokens::read(&path).unwrap();
        assert_eq!(allow(&tokens, Right::Rank, "authorization", "Bearer aaaaaaaaaaaaaaaa"), Ok(()));
        assert_eq!(allow(&tokens, Right::Rank, "ocp-apim-subscription-key", "aaaaaaaaaaaaaaaa"), Ok(()));
        assert_eq!(allow(&tokens, Right::Admin, "authorization", "Bearer aaaaaaaaaaaaaaaa"), Err(true));
        assert_eq!(allow(&tokens, Right::Read, "authorization", "Bearer bbbbbbbbbbbbbbbb"), Ok(()));
        assert_eq!(allow(&tokens, Right::Rank, "authorization", "Bearer aaaaaaaaaaaaaaa"), Err(false));
        assert_eq!(tokens.allow(Right::Rank, &HeaderMap::new()), Err(false));
        assert_eq!(Tokens::default().allow(Right::Admin, &HeaderMap::new()), Ok(()));
        for bad in ["", "rank short", "write aaaaaaaaaaaaaaaa", "rank"] {
            fs::write(&path, bad).unwrap();
            assert!(Tokens::read(&path).is_err(), "{bad}");
        }
    }
}
