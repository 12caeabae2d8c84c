//! The card: one self-contained page that says what `diagnose`, `tune`, `evaluate` or `gate` found, verdict first.
//!
//! A card is a function of the command's JSON ([`html`]): what the page shows, `--json` holds. Charts are inline SVG,
//! made by small functions; the page has no script and loads nothing. What it draws is summed by [`crate::detail`] and
//! [`neuralcb::ope`] in the passes that evaluate.

mod about;
mod diagnose;
mod evaluate;
mod gate;
mod page;
mod parts;
mod rows;
mod svg;
mod text;
mod tune;

use serde::Deserialize;
use serde_json::Value;

pub use about::{About, PolicyAbout};
pub use text::number;

use page::Page;

/// What a card is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `neuralcb diagnose`.
    Diagnose,
    /// `neuralcb tune`.
    Tune,
    /// `neuralcb evaluate`.
    Evaluate,
    /// `neuralcb gate`.
    Gate,
}

/// The page of what a command found, from its JSON.
pub fn html(kind: Kind, json: &Value) -> Result<String, serde_json::Error> {
    let page: Page = match kind {
        Kind::Diagnose => diagnose::page(&Deserialize::deserialize(json)?),
        Kind::Tune => tune::page(&Deserialize::deserialize(json)?),
        Kind::Evaluate => evaluate::page(&Deserialize::deserialize(json)?),
        Kind::Gate => gate::page(&Deserialize::deserialize(json)?),
    };
    Ok(page.html())
}
