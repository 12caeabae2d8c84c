//! The Open Bandit Dataset: a folder for each policy and campaign, with the log (`men.csv`) beside the items' own table
//! (`item_context.csv`).
//!
//! | column | meaning |
//! |---|---|
//! | unnamed, the first | an index of rows: ignored |
//! | `timestamp` | ignored: a policy must not know the date |
//! | `item_id` | the action |
//! | `position` | 1, 2 or 3, left to right: a feature (category), or only one of them is read |
//! | `click` | the reward |
//! | `propensity_score` (`action_prob`) | the behaviour policy's probability of the item at that position |
//! | `user_feature_0`, … | hashed: categories |
//! | `user-item_affinity_0`, … | past clicks of that user on each item: numbers |
//!
//! A campaign has its own items, numbered from 0: campaigns are never read together. The items' table is not used.
//! (Saito, Aihara, Matsutani and Narita 2020, arXiv:2008.07146; columns as in the published files.)

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::error::FileError;

/// The items' table, which marks a campaign's folder.
pub const ITEMS: &str = "item_context.csv";

/// What a column of a campaign's log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObdColumn {
    /// A number of the row.
    Index,
    /// When it was.
    Time,
    /// The item shown.
    Action,
    /// Where it was shown: a category.
    Position,
    /// Whether it was clicked.
    Reward,
    /// With which probability it was shown.
    Propensity,
    /// A hashed feature of the user: a category.
    User,
    /// Past clicks of the user on an item: a number.
    Affinity,
}

/// What a column is, by its name.
pub fn column(name: &str) -> Option<ObdColumn> {
    let numbered = |prefix: &str| name.strip_prefix(prefix).is_some_and(|i| i.parse::<u32>().is_ok());
    Some(match name {
        "" => ObdColumn::Index,
        "timestamp" => ObdColumn::Time,
        "item_id" => ObdColumn::Action,
        "position" => ObdColumn::Position,
        "click" => ObdColumn::Reward,
        "propensity_score" | "action_prob" => ObdColumn::Propensity,
        _ if numbered("user_feature_") => ObdColumn::User,
        _ if numbered("user-item_affinity_") => ObdColumn::Affinity,
        _ => return None,
    })
}

/// Why a folder of the data set cannot be read as one log.
#[derive(Debug, Error)]
pub enum ObdError {
    /// The folder or one in it could not be listed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A folder above the campaigns.
    #[error(
        "`{folder}` holds several campaigns ({campaigns}), each with actions of its own: give one, such as `{example}`"
    )]
    Campaigns {
        /// The folder in question.
        folder: PathBuf,
        /// The campaigns' names.
        campaigns: String,
        /// The first of them.
        example: PathBuf,
    },
    /// The items are there, and not exactly one log.
    #[error("`{folder}` must hold one log beside `item_context.csv`, such as `men.csv`; it holds {found}")]
    Log {
        /// The folder in question.
        folder: PathBuf,
        /// How many there are.
        found: usize,
    },
}

/// The log of a campaign's folder; `None` for a folder that is not of this data set.
pub fn campaign(folder: &Path) -> Result<Option<PathBuf>, ObdError> {
    let entries = listed(folder)?;
    if entries.iter().any(|path| path.ends_with(ITEMS)) {
        let is_log = |path: &&PathBuf| !path.ends_with(ITEMS) && path.extension().is_some_and(|e| e == "csv");
        let logs: Vec<&PathBuf> = entries.iter().filter(is_log).collect();
        return match logs[..] {
            [log] => Ok(Some(log.clone())),
            _ => Err(ObdError::Log { folder: folder.to_path_buf(), found: logs.len() }),
        };
    }
    let campaigns: Vec<&PathBuf> = entries.iter().filter(|path| path.join(ITEMS).is_file()).collect();
    let Some(first) = campaigns.first() else { return Ok(None) };
    let names: Vec<_> =
        campaigns.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy()).collect();
    Err(ObdError::Campaigns { folder: folder.to_path_buf(), campaigns: names.join(", "), example: first.to_path_buf() })
}

/// What is in a folder, by name.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.map_err(|source| FileError::Read { path: folder.to_path_buf(), source })?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_known_by_their_names() {
        assert_eq!(column(""), Some(ObdColumn::Index));
        assert_eq!(column("action_prob"), Some(ObdColumn::Propensity));
        assert_eq!(column("user_feature_3"), Some(ObdColumn::User));
        assert_eq!(column("user-item_affinity_79"), Some(ObdColumn::Affinity));
        assert_eq!(column("user_feature_"), None);
        assert_eq!(column("reward"), None);
    }

    #[test]
    fn a_campaign_is_found_and_a_policys_folder_is_refused() {
        let policy = tempfile::tempdir().unwrap();
        assert!(campaign(policy.path()).unwrap().is_none());
        for name in ["men", "all"] {
            let folder = policy.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(ITEMS), "").unwrap();
            fs::write(folder.join(format!("{name}.csv")), "").unwrap();
        }
        let men = policy.path().join("men");
        assert_eq!(campaign(&men).unwrap(), Some(men.join("men.csv")));
        let text = campaign(policy.path()).unwrap_err().to_string();
        assert!(text.contains("holds several campaigns (all, men), each with actions of its own"), "{text}");
        fs::write(men.join("women.csv"), "").unwrap();
        assert!(campaign(&men).unwrap_err().to_string().ends_with("it holds 2"));
    }
}
