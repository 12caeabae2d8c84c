//! The policy file: one safetensors file, its arrays by name and one metadata entry, `neuralcb`, that holds all else as
//! JSON: `{"format": "policy", "version": 2, "sha256": "…", "description": {…}}`. The sum is that of all bytes of the
//! file, its own 64 digits taken as zeros. Version 1 had none; such files are still read.
//!
//! Reading trusts nothing: the header's length, every shape and every size that the settings claim are held against the
//! bytes that are there before memory is taken.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use neuralcb::archive::{Array, Numbers};
use safetensors::tensor::{Dtype, SafeTensors, View};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Description, Policy, PolicyError};
use crate::atomic;
use crate::error::FileError;
use crate::hex::hex;

/// The newest version of the format.
pub const VERSION: u64 = 2;

/// The metadata entry.
const KEY: &str = "neuralcb";

/// What stands in the metadata entry.
#[derive(Serialize, Deserialize)]
struct Header<D> {
    format: String,
    version: u64,
    #[serde(default)]
    sha256: String,
    description: D,
}

/// The digits of a sum that is not yet known.
const NO_SUM: &str = "0000000000000000000000000000000000000000000000000000000000000000";

impl Policy {
    /// Reads a policy.
    pub fn load(path: &Path) -> Result<Policy, PolicyError> {
        let bytes = fs::read(path).map_err(|source| FileError::Read { path: path.to_path_buf(), source })?;
        Policy::from_bytes(&bytes, path)
    }

    /// As [`Policy::load`], from bytes; `path` is for messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Policy, PolicyError> {
        let (description, arrays) = read::<Description>(bytes, path, "policy")?;
        Policy::new(description, arrays).map_err(|e| PolicyError::Damaged {
            path: path.to_path_buf(),
            kind: "policy",
            reason: e.to_string(),
        })
    }

    /// Writes the policy, replacing what was there in one step.
    pub fn save(&self, path: &Path) -> Result<(), PolicyError> {
        check(&self.description)?;
        Ok(atomic::write(path, &self.to_bytes())?)
    }

    /// The bytes of the file: the same for the same policy.
    pub fn to_bytes(&self) -> Vec<u8> {
        write(&self.description, &self.arrays, "policy")
    }
}

/// The longest header that is read.
const LONGEST_HEADER: usize = 100_000_000;

/// Refuses what could be written and not be read again.
pub(crate) fn check(description: &Description) -> Result<(), PolicyError> {
    let text = serde_json::to_string(description).expect("plain data");
    // As a text within a text it is longer by the marks that are escaped.
    let got = text.len() + text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    if got > LONGEST_HEADER / 10 * 9 {
        let cure = "merge rare actions, or ignore columns of many words (--ignore)";
        return Err(PolicyError::TooLarge { got, most: LONGEST_HEADER / 10 * 9, cure });
    }
    match serde_json::from_str::<Description>(&text) {
        Ok(again) if again == *description => Ok(()),
        again => {
            let reason = again.err().map_or("it is read as another".to_owned(), |e| e.to_string());
            Err(PolicyError::Unwritable { reason })
        }
    }
}

/// The bytes of a file of that kind.
pub(crate) fn write<D: Serialize>(description: &D, arrays: &BTreeMap<String, Array>, format: &str) -> Vec<u8> {
    let header = Header { format: format.to_owned(), version: VERSION, sha256: NO_SUM.to_owned(), description };
    let header = serde_json::to_string(&header).expect("plain data");
    let views: Vec<(&String, Stored<'_>)> = arrays.iter().map(|(name, array)| (name, Stored(array))).collect();
    let metadata = HashMap::from([(KEY.to_owned(), header)]);
    let mut bytes = safetensors::serialize(views, Some(metadata)).expect("shapes agree with numbers");
    let at = find(&bytes, NO_SUM).expect("the header has just been written");
    let sum = hex(Sha256::digest(&bytes));
    bytes[at..at + sum.len()].copy_from_slice(sum.as_bytes());
    bytes
}

/// Where a sum stands in a file. The first place is its own: what a user named comes after it.
fn find(bytes: &[u8], sum: &str) -> Option<usize> {
    bytes.windows(sum.len()).position(|window| window == sum.as_bytes())
}

/// Whether the file's bytes are those that were summed.
fn is_whole(bytes: &[u8], sum: &str) -> bool {
    if sum.len() != NO_SUM.len() {
        return false;
    }
    let Some(at) = find(bytes, sum) else { return false };
    let mut digest = Sha256::new();
    digest.update(&bytes[..at]);
    digest.update(NO_SUM);
    digest.update(&bytes[at + sum.len()..]);
    hex(digest.finalize()) == sum
}

/// What the bytes of a file of that kind hold.
pub(crate) fn read<D: DeserializeOwned>(
    bytes: &[u8],
    path: &Path,
    format: &'static str,
) -> Result<(D, BTreeMap<String, Array>), PolicyError> {
    let damaged = |reason: String| PolicyError::Damaged { path: path.to_path_buf(), kind: format, reason };
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(e.to_string()))?;
    let header = metadata.metadata().as_ref().and_then(|m| m.get(KEY));
    let header = header.ok_or_else(|| damaged(format!("its metadata has no entry `{KEY}`")))?;
    // the version first: what a later version describes need not be understood
    let version: Header<serde::de::IgnoredAny> = serde_json::from_str(header).map_err(|e| damaged(e.to_string()))?;
    if version.version > VERSION {
        return Err(PolicyError::Future { path: path.to_path_buf(), found: version.version, known: VERSION });
    }
    if version.version == 0 || version.version > 1 && !is_whole(bytes, &version.sha256) {
        return Err(damaged("its bytes are not those that were written (SHA-256): copy or make it anew".to_owned()));
    }
    if version.format != format {
        return Err(damaged(format!("it is a `{}`, and a `{format}` was asked for", version.format)));
    }
    let header: Header<D> = serde_json::from_str(header).map_err(|e| damaged(e.to_string()))?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| damaged(e.to_string()))?;
    let mut arrays = BTreeMap::new();
    for (name, view) in tensors.iter() {
        let data = view.data();
        let numbers = match view.dtype() {
            Dtype::F32 => Numbers::F32(numbers(data, f32::from_le_bytes)),
            Dtype::F64 => Numbers::F64(numbers(data, f64::from_le_bytes)),
            Dtype::U32 => Numbers::U32(numbers(data, u32::from_le_bytes)),
            Dtype::U64 => Numbers::U64(numbers(data, u64::from_le_bytes)),
            other => return Err(damaged(format!("array `{name}` is of type {other:?}"))),
        };
        arrays.insert(name.to_owned(), Array { shape: view.shape().to_vec(), numbers });
    }
    Ok((header.description, arrays))
}

fn numbers<T, const N: usize>(data: &[u8], number: fn([u8; N]) -> T) -> Vec<T> {
    data.as_chunks::<N>().0.iter().map(|&bytes| number(bytes)).collect()
}

/// An array as safetensors sees it.
struct Stored<'a>(&'a Array);

impl View for Stored<'_> {
    fn dtype(&self) -> Dtype {
        match self.0.numbers {
            Numbers::F32(_) => Dtype::F32,
            Numbers::F64(_) => Dtype::F64,
            Numbers::U32(_) => Dtype::U32,
            Numbers::U64(_) => Dtype::U64,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match &self.0.numbers {
            Numbers::F32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Numbers::F64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Numbers::U32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Numbers::U64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        })
    }

    fn data_len(&self) -> usize {
        self.0.numbers.len() * self.dtype().bitsize() / 8
    }
}
