//! The card of `neuralcb tune`.

use neuralcb::ope::{Certificate, Claim};
use serde::Deserialize;

use super::evaluate;
use super::page::{Page, Section, Tone, Verdict, details, paragraph, table};
use super::parts;
use super::rows::{Row, rows};
use super::text::{count, number, percent, signed};
use crate::evaluate::Evaluated;
use crate::tune::{Certifies, Tried};

/// Candidates that are drawn.
const DRAWN: usize = 12;

/// What the JSON of a tuning tells its card.
#[derive(Deserialize)]
pub(super) struct Found {
    written: Option<String>,
    certificate: Certificate,
    certifies: Option<Certifies>,
    beats_the_log: bool,
    parts: Parts,
    behaviour: f64,
    estimated_propensities: bool,
    words: String,
    candidates: Vec<Tried>,
    #[serde(default)]
    evaluation: Option<Evaluated>,
}

#[derive(Deserialize)]
struct Parts {
    learn: u64,
    choose: u64,
    certify: u64,
}

pub(super) fn page(found: &Found) -> Page {
    let (written, parts) = (found.written.as_deref(), &found.parts);
    let total = parts.learn + parts.choose + parts.certify;
    let (tone, headline) = match (found.beats_the_log, written) {
        (true, Some(name)) => (Tone::Good, format!("{name} earns more than the policy that made the log")),
        (false, Some(name)) => (Tone::Unsure, format!("Nothing is shown to beat the log's policy; {name} was written")),
        (_, None) => (Tone::Bad, "Nothing is shown to beat the log's policy; no file was written".to_owned()),
    };
    let certificate = &found.certificate;
    let facts = vec![
        ("value at least", number(certificate.value.lower)),
        ("over the log's policy at least", signed(certificate.over_log.lower)),
        ("confidence", percent(certificate.confidence)),
        ("rounds of the certificate", count(certificate.rounds)),
        ("of which agree", count(certificate.agreeing)),
    ];
    let mut warnings = Vec::new();
    if found.estimated_propensities {
        warnings.push(
            "the log has no propensities; they were estimated from it, and every number rests on that".to_owned(),
        );
    }
    if certificate.assumptions.reward_range_from_log {
        warnings.push(
            "the range of rewards was taken from the log, so the certificate is not exact: give --reward-range"
                .to_owned(),
        );
    }
    if matches!(found.certifies, Some(Certifies::Procedure)) {
        warnings.push(
            "the certificate is of the procedure: the file was learned anew from all rounds, so the parts below, which judge the \
             file on rounds that it has seen, are too good"
                .to_owned(),
        );
    }
    let about = found.evaluation.as_ref().and_then(|evaluated| evaluated.about.as_ref());
    let log = about.map_or(String::new(), |about| format!(" of {}", about.log.files.join(", ")));
    let mut sections = vec![certified(found), candidates(&found.candidates, parts)];
    match &found.evaluation {
        Some(evaluated) => {
            let mut judged = evaluate::sections(evaluated);
            judged[0].title = "All estimators, on the rounds of the certificate".to_owned();
            let origins = parts::origins(&certificate.assumptions.words(), about);
            judged.pop();
            sections.extend(judged);
            sections.push(origins);
        }
        None => sections.push(parts::origins(&certificate.assumptions.words(), None)),
    }
    let verdict = Verdict { tone, headline, words: found.words.clone(), facts, warnings };
    let subtitle = format!("{} candidates, {} rounds{log}", found.candidates.len(), count(total));
    Page { title: "Tuning: a policy and its certificate".to_owned(), subtitle, verdict, sections }
}

fn certified(found: &Found) -> Section {
    let certificate = &found.certificate;
    let claim = |name: &str, claim: &Claim, difference: bool| Row {
        name: name.to_owned(),
        value: claim.estimate,
        ends: claim.lower.is_finite().then(|| [claim.lower, claim.estimate.unwrap_or(claim.lower).max(claim.lower)]),
        text: {
            let show = if difference { signed } else { number };
            let estimate = claim.estimate.map_or(String::new(), |e| format!(" [estimated {}]", show(e)));
            format!("at least {}{estimate}", show(claim.lower))
        },
        class: if difference && claim.lower > 0.0 { "gain" } else { "" },
        ..Row::default()
    };
    let percent = percent(certificate.confidence);
    let mut body = paragraph(&format!(
        "With {percent} confidence all three hold together. Each line runs from the bound to the estimate; they rest on {} rounds \
         that had no part in learning or choosing, {} of which agree with the policy. The log's own policy earned {} on them. \
         Method: {}.",
        count(certificate.rounds),
        count(certificate.agreeing),
        number(found.behaviour),
        certificate.method
    ));
    let heads = ["claim", "from the bound to the estimate", "bound"];
    body += &rows("Value", heads, &[claim("value of the policy", &certificate.value, false)], Some(found.behaviour));
    let over = [
        claim("over the log's policy", &certificate.over_log, true),
        claim("over a clone of it", &certificate.over_clone, true),
    ];
    body += &rows("Difference", heads, &over, Some(0.0));
    Section::new("certificate", "The certificate", body)
}

fn candidates(tried: &[Tried], parts: &Parts) -> Section {
    let name = |t: &Tried| {
        let mut name = t.algorithm.name().to_owned();
        let more = [("lr", t.lr), ("σ", t.sigma), ("β", t.beta)];
        t.mode.iter().for_each(|mode| name += &format!(" {}", mode.name()));
        more.iter().for_each(|(what, v)| name += &v.map_or(String::new(), |v| format!(", {what} {}", number(v))));
        name
    };
    let row = |t: &Tried| Row {
        name: name(t),
        note: format!("{} rounds agree", count(t.agreeing)),
        value: t.value,
        ends: Some([t.lower, t.value.unwrap_or(t.lower).max(t.lower)]),
        text: format!("{} [estimated {}]", number(t.lower), t.value.map_or("–".to_owned(), number)),
        ..Row::default()
    };
    let mut body = paragraph(&format!(
        "Each candidate learned from the first {} rounds and was compared on the next {}. The score is a lower bound of its value, \
         so that one of which the log says little cannot win by luck; the largest score wins. The scores promise nothing: the \
         certificate does, on {} other rounds.",
        count(parts.learn),
        count(parts.choose),
        count(parts.certify)
    ));
    let drawn: Vec<Row> = tried.iter().take(DRAWN).map(row).collect();
    let caption =
        if tried.len() > DRAWN { format!("The best {DRAWN} of {}", tried.len()) } else { "All candidates".to_owned() };
    body += &rows(&caption, ["candidate", "from the score to the estimate", "score"], &drawn, None);
    let lines: Vec<Vec<String>> = tried
        .iter()
        .map(|t| {
            vec![
                name(t),
                number(t.lower),
                t.value.map_or("–".to_owned(), number),
                number(t.coverage),
                count(t.agreeing),
            ]
        })
        .collect();
    let head = ["candidate", "score", "value", "mean weight", "agreeing rounds"];
    body += &details("All candidates", &table("All candidates, the best first", &head, &lines));
    Section::new("candidates", "The candidates, and how they were chosen", body)
}
