//! Records of folders, with keys by which they sort into events.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::{JoinError, Joined};
use crate::journal::{End, Frames, JournalError, Record, has_end, segments};

/// What a record is, in the order within an event.
pub(super) const DECISION: u8 = 0;
pub(super) const ACTIVATION: u8 = 1;
pub(super) const REWARD: u8 = 2;

/// The key of a record: length and name of its event, what it is, when.
fn key(event: &str, kind: u8, at: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(event.len() + 13);
    key.extend_from_slice(&(event.len() as u32).to_be_bytes());
    key.extend_from_slice(event.as_bytes());
    key.push(kind);
    key.extend_from_slice(&at.to_be_bytes());
    key
}

/// The name of the event in a key.
pub(super) fn event_of(key: &[u8]) -> &[u8] {
    &key[4..key.len() - 9]
}

/// What a key says it is.
pub(super) fn kind_of(key: &[u8]) -> u8 {
    key[key.len() - 9]
}

/// Gives the records of all segments of a folder.
pub(super) fn folder(
    folder: &Path,
    joined: &mut Joined,
    give: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Result<(), JoinError>,
) -> Result<(), JoinError> {
    for (_, path) in segments(folder)? {
        let failed = |source| JournalError::Disk { what: "read", path: path.clone(), source };
        let mut file = match File::open(&path) {
            // An empty segment is removed when its server stops.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            file => file.map_err(failed)?,
        };
        let length = file.metadata().map_err(failed)?.len();
        let closed = has_end(&mut file).map_err(failed)?;
        let Some(mut frames) = Frames::new(BufReader::with_capacity(1 << 18, file)).map_err(failed)? else {
            if length < crate::journal::MAGIC.len() as u64 {
                joined.growing += 1;
                continue;
            }
            let reason = "it does not begin as one".to_owned();
            return Err(JournalError::NoSegment { path, reason }.into());
        };
        let mut number = 0;
        while let Some(text) = frames.next_text().map_err(failed)? {
            number += 1;
            let record = serde_json::from_slice::<Record>(text).map_err(|e| JoinError::Record {
                path: path.clone(),
                record: number,
                reason: e.to_string(),
            })?;
            let key = match &record {
                Record::Decision(decision) => {
                    let n = decision.actions.len();
                    if decision.chosen >= n
                        || decision.probabilities.len() != n
                        || decision.shadow.values().any(|&i| i >= n)
                    {
                        let reason = format!("a decision among {n} actions names another");
                        return Err(JoinError::Record { path, record: number, reason });
                    }
                    key(&decision.event, DECISION, decision.at)
                }
                Record::Activation(activation) => key(&activation.event, ACTIVATION, activation.at),
                Record::Reward(reward) => key(&reward.event, REWARD, reward.at),
                Record::Opened(_) | Record::Closed(_) => continue,
            };
            give(key, text.to_vec())?;
        }
        match frames.end() {
            Some(End::Damaged(reason)) => {
                return Err(JournalError::Damaged { at: frames.good(), reason: reason.clone(), path }.into());
            }
            Some(End::Torn(_)) if closed => {
                let reason = "a record is not as it was written".to_owned();
                return Err(JournalError::Damaged { at: frames.good(), reason, path }.into());
            }
            Some(End::Closed) => {}
            _ => joined.growing += 1,
        }
    }
    Ok(())
}
