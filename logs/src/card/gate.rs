//! The card of `neuralcb gate`.

use super::page::{Page, Section, Tone, Verdict, paragraph};
use super::parts::{self, Names};
use super::rows::{Row, rows};
use super::text::{count, number, percent, signed};
use crate::gate::Gated;

const NAMES: Names = Names { own: "the new policy", other: "the old policy" };

pub(super) fn page(found: &Gated) -> Page {
    let bound = &found.over_old;
    let (tone, headline) = if found.promote {
        (Tone::Good, "Yes: the new policy may replace the old one")
    } else {
        (Tone::Unsure, "No: the new policy is not shown to be better")
    };
    let mut facts = vec![("more than the old one, at least", signed(bound.lower))];
    facts.extend(bound.estimate.map(|estimate| ("estimated", signed(estimate))));
    facts.push(("confidence", percent(bound.confidence)));
    facts.push(("rounds", count(found.rounds)));
    facts.push(("rounds in which they differ", number(found.apart.round())));
    let log = found.about.as_ref().map_or(String::new(), |about| format!(" of {}", about.log.files.join(", ")));
    let verdict = Verdict {
        tone,
        headline: headline.to_owned(),
        words: found.words.clone(),
        facts,
        warnings: found.warnings.clone(),
    };
    let weights = "Weights of the new policy: how many rounds of the log one of its own stands for.";
    let detail = &found.detail;
    let sections = vec![
        difference(found),
        parts::weights(&found.weights, weights, "importance weight of the new policy"),
        parts::coverage(&detail.actions, detail.unknown_actions, &NAMES),
        parts::time(&detail.time, &NAMES, true),
        parts::segments(detail, &NAMES, true),
        parts::origins(&bound.assumptions.words(), found.about.as_ref()),
    ];
    let subtitle = format!("{} rounds{log}", count(found.rounds));
    Page { title: "Gate: may the new policy replace the old one?".to_owned(), subtitle, verdict, sections }
}

fn difference(found: &Gated) -> Section {
    let bound = &found.over_old;
    let row = Row {
        name: "new less old".to_owned(),
        value: bound.estimate,
        ends: Some([bound.lower, bound.estimate.unwrap_or(bound.lower).max(bound.lower)]),
        text: format!("at least {} [estimated {}]", signed(bound.lower), bound.estimate.map_or("–".to_owned(), signed)),
        class: if found.promote { "gain" } else { "" },
        ..Row::default()
    };
    let mut body = paragraph(&format!(
        "The line runs from the bound to the estimate. The bound holds after every round at once: however often this is asked, a \
         policy that is no better is promoted with a probability of at most {}. The p-value of the new policy being no better is \
         {}.",
        percent(1.0 - bound.confidence),
        number(found.p_value)
    ));
    body += &rows("Difference of the values", ["", "from the bound to the estimate", "bound"], &[row], Some(0.0));
    Section::new("difference", "How much more the new policy earns", body)
}
