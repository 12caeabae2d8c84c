//! The card of `neuralcb diagnose`.

use serde::Deserialize;

use super::about::About;
use super::page::{Page, Section, Tone, Verdict, details, paragraph, table};
use super::parts::{self, Names};
use super::text::{count, number, percent};
use crate::diagnose::{Diagnosis, Severity};

const NAMES: Names = Names { own: "the policy", other: "mean reward of the log" };

/// Features that are listed.
const LISTED: usize = 200;

/// What the JSON of a diagnosis tells its card.
#[derive(Deserialize)]
pub(super) struct Found {
    #[serde(flatten)]
    diagnosis: Diagnosis,
    #[serde(default)]
    about: Option<About>,
}

pub(super) fn page(found: &Found) -> Page {
    let of = &found.diagnosis;
    let worst = of.warnings.iter().map(|warning| warning.severity).min();
    let (tone, headline, words) = match worst {
        Some(Severity::Unwise) => (
            Tone::Bad,
            "Training on this log would be unwise",
            "What is listed below as unwise would make any policy that is learned from this log a guess.",
        ),
        Some(Severity::Warning) => (
            Tone::Unsure,
            "This log can be learned from, with care",
            "Nothing forbids to learn from this log; look at what is listed below first.",
        ),
        _ => (
            Tone::Good,
            "This log is fit to learn from",
            "Nothing was found that speaks against learning from this log.",
        ),
    };
    let mut facts = vec![("rounds", count(of.rows)), ("actions", count(of.actions.len() as u64))];
    facts.extend(of.rewards.as_ref().map(|rewards| ("mean reward", number(rewards.mean))));
    facts.extend(of.ess.map(|ess| ("effective rounds, uniform policy", number(ess.round()))));
    facts.extend(of.propensities.as_ref().map(|p| ("smallest propensity", number(p.smallest))));
    let warnings =
        of.warnings.iter().map(|w| format!("{}: {}. What to do: {}", w.severity.name(), w.message, w.cure)).collect();
    let log = found.about.as_ref().map_or(String::new(), |about| format!(" of {}", about.log.files.join(", ")));
    let smallest = of.propensities.as_ref().map_or(String::new(), |p| {
        format!(
            "The log's policy chose what it chose with probabilities from {} to {}. A policy that does the same in a round gives \
             it a weight of up to one over that probability.",
            number(p.smallest),
            number(p.largest)
        )
    });
    let shape = of.weights.clone().unwrap_or_default();
    Page {
        title: "Diagnosis: is this log fit to learn from?".to_owned(),
        subtitle: format!("{} rounds{log}", count(of.rows)),
        verdict: Verdict { tone, headline: headline.to_owned(), words: words.to_owned(), facts, warnings },
        sections: vec![
            rewards(of),
            parts::coverage(&of.detail.actions, 0.0, &NAMES),
            parts::weights(&shape, &smallest, "1 / propensity"),
            parts::time(&of.detail.time, &NAMES, false),
            drift(of),
            parts::segments(&of.detail, &NAMES, false),
            features(of),
            parts::origins(&[], found.about.as_ref()),
        ],
    }
}

fn rewards(of: &Diagnosis) -> Section {
    let Some(rewards) = &of.rewards else { return Section::new("rewards", "Rewards", String::new()) };
    let mut text = format!(
        "Rewards lie between {} and {}, with mean {} and standard deviation {}.",
        number(rewards.min),
        number(rewards.max),
        number(rewards.mean),
        number(rewards.deviation)
    );
    if let Some(successes) = rewards.successes {
        let share = percent(successes as f64 / of.rows.max(1) as f64);
        text += &format!(" There are two different ones; {} rounds ({share}) have the higher one.", count(successes));
    }
    if let Some(kappa) = &of.kappa {
        text += &format!(
            " The paper's κ, by which its bound on sub-optimality grows, is about {} (action {}).",
            number(kappa.estimate),
            kappa.action
        );
    }
    Section::new("rewards", "Rewards", paragraph(&text))
}

fn drift(of: &Diagnosis) -> Section {
    let [first, second] = of.halves.rounds;
    let mut body = paragraph(&format!(
        "{} comparisons of the first {} rounds with the last {}; {} of them differ by more than chance explains.",
        of.halves.tests,
        count(first),
        count(second),
        of.halves.drift.len()
    ));
    if !of.halves.drift.is_empty() {
        let value = |v: Option<f64>| v.map_or("–".to_owned(), number);
        let line = |d: &crate::diagnose::Drift| {
            vec![d.of.clone(), value(d.first), value(d.second), number(d.effect), number(d.p_value)]
        };
        let lines: Vec<Vec<String>> = of.halves.drift.iter().map(line).collect();
        body += &table("What has changed", &["what", "first half", "second half", "effect", "p-value"], &lines);
    }
    Section::new("drift", "First half against second", body)
}

fn features(of: &Diagnosis) -> Section {
    let value = |v: Option<f64>| v.map_or("–".to_owned(), number);
    let line = |f: &crate::diagnose::FeatureReport| {
        let kind = if f.category { "words" } else { "number" };
        let whose = if f.per_action { "action" } else { "round" };
        let range =
            f.min.zip(f.max).map_or("–".to_owned(), |(low, high)| format!("{} to {}", number(low), number(high)));
        let (missing, different) = (count(f.missing), count(f.different as u64));
        vec![
            f.name.clone(),
            format!("{kind} of a {whose}"),
            different,
            missing,
            range,
            value(f.mean),
            value(f.correlation),
        ]
    };
    let lines: Vec<Vec<String>> = of.features.iter().take(LISTED).map(line).collect();
    if lines.is_empty() {
        return Section::new("features", "Features", String::new());
    }
    let head = ["feature", "kind", "different", "missing", "range", "mean", "correlation with reward"];
    let caption = match of.features.len() {
        n if n > LISTED => format!("The first {LISTED} of {n} features; --json has all"),
        n => format!("{n} features"),
    };
    let all = table(&caption, &head, &lines);
    Section::new("features", "Features", if lines.len() > 30 { details("All features", &all) } else { all })
}
