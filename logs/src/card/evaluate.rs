//! The card of `neuralcb evaluate`.

use neuralcb::ope::{Answer, Estimate, Interval, Report};

use super::page::{Page, Section, Tone, Verdict, details, table};
use super::parts::{self, Names};
use super::rows::{Row, plain, rows, with_ends};
use super::text::{count, number, percent, signed};
use crate::evaluate::Evaluated;

const NAMES: Names = Names { own: "the policy", other: "the log's policy" };

pub(super) fn page(found: &Evaluated) -> Page {
    Page {
        title: "Evaluation: what would this policy have earned?".to_owned(),
        subtitle: subtitle(found),
        verdict: verdict(found),
        sections: sections(found),
    }
}

fn subtitle(found: &Evaluated) -> String {
    let rounds = count(found.report.n);
    let Some(about) = &found.about else { return format!("{rounds} rounds") };
    let what = about.policies.first().map_or("a policy that lives elsewhere".to_owned(), |p| p.method.clone());
    format!("{what}, judged on {rounds} rounds of {}", about.log.files.join(", "))
}

fn verdict(found: &Evaluated) -> Verdict {
    let report = &found.report;
    let (tone, headline) = match report.verdict.answer {
        Answer::Better => (Tone::Good, "Better than the policy that made the log"),
        Answer::Worse => (Tone::Bad, "Worse than the policy that made the log"),
        Answer::CannotTell => (Tone::Unsure, "This log cannot tell whether it is better"),
        Answer::NotToBeTrusted => (Tone::Bad, "These numbers are not to be trusted"),
    };
    let decided = report.verdict.estimator.and_then(|estimator| report.estimate(estimator));
    let mut facts = Vec::new();
    if let Some(value) = decided.and_then(|estimate| estimate.bounded.value) {
        facts.push(("estimated value", number(value)));
    }
    facts.extend(report.behaviour.value.map(|value| ("the log's own", number(value))));
    facts.extend(decided.and_then(|e| e.difference).map(|difference| ("difference", signed(difference.value))));
    facts.push(("rounds", count(report.n)));
    facts.extend(report.ess.map(|ess| ("effective rounds", number(ess.round()))));
    let warnings =
        report.warnings.iter().map(|warning| warning.message.clone()).chain(found.unseen_words.clone()).collect();
    Verdict { tone, headline: headline.to_owned(), words: report.verdict.words.clone(), facts, warnings }
}

/// All parts below the verdict; those of `tune` are these as well.
pub(super) fn sections(found: &Evaluated) -> Vec<Section> {
    let (report, detail) = (&found.report, &found.detail);
    let ess = report.ess.map_or("–".to_owned(), |ess| number(ess.round()));
    let mean = report.mean_weight.map_or("–".to_owned(), number);
    let facts = format!(
        "{} rounds tell as much as {ess} rounds of the policy itself. The mean weight is {mean} (1 up to chance where all is \
         well), the largest {}.",
        count(report.n),
        number(report.max_weight)
    );
    let whose = if found.own_model { "by the policy's own reward model" } else { "by a model that has not seen them" };
    vec![
        values(report, detail.confidence),
        parts::weights(&report.weights, &facts, "importance weight"),
        parts::coverage(&detail.actions, detail.unknown_actions, &NAMES),
        parts::calibration(&detail.calibration, whose),
        parts::time(&detail.time, &NAMES, true),
        parts::segments(detail, &NAMES, true),
        parts::origins(&assumptions(report), found.about.as_ref()),
    ]
}

/// The interval of an estimator that is drawn: the normal one, else its own.
fn drawn(estimate: &Estimate) -> Option<[f64; 2]> {
    let intervals = &estimate.bounded.intervals;
    let first = [Interval::Normal, Interval::CressieRead].into_iter().find_map(|name| intervals.get(&name));
    first.or_else(|| intervals.values().next()).copied()
}

fn values(report: &Report, confidence: f64) -> Section {
    let level = if confidence > 0.0 { format!("{} intervals", percent(confidence)) } else { "intervals".to_owned() };
    let line = |name: &str, class, value: Option<f64>, ends: Option<[f64; 2]>, show: fn(f64) -> String| Row {
        name: name.to_owned(),
        value,
        ends,
        text: with_ends(value, ends, show),
        class,
        ..Row::default()
    };
    let own = &report.behaviour;
    let ends = own.intervals.get(&Interval::Normal).or_else(|| own.intervals.values().next()).copied();
    let mut all = vec![line("the log's policy", "reference", own.value, ends, plain)];
    all.extend(report.estimates.iter().map(|e| line(e.estimator.name(), "", e.bounded.value, drawn(e), plain)));
    let mut body =
        rows(&format!("Value by every estimator, {level}"), ["estimator", "value", "value"], &all, own.value);
    let differences: Vec<Row> = report
        .estimates
        .iter()
        .filter_map(|estimate| {
            let difference = estimate.difference?;
            let [low, high] = difference.interval;
            let class = if low > 0.0 {
                "gain"
            } else if high < 0.0 {
                "loss"
            } else {
                ""
            };
            Some(line(estimate.estimator.name(), class, Some(difference.value), Some(difference.interval), signed))
        })
        .collect();
    let caption = format!("Difference to the log's policy on the same rounds, {level}");
    body += &rows(&caption, ["estimator", "difference", "difference"], &differences, Some(0.0));
    let all = std::iter::once(("the log's policy", own))
        .chain(report.estimates.iter().map(|e| (e.estimator.name(), &e.bounded)));
    let lines: Vec<Vec<String>> = all
        .flat_map(|(name, bounded)| {
            bounded.intervals.iter().map(move |(interval, [low, high])| {
                let lower = bounded.lower_bounds.get(interval).map_or("–".to_owned(), |v| number(*v));
                let value = bounded.value.map_or("–".to_owned(), number);
                vec![name.to_owned(), interval.name().to_owned(), value, number(*low), number(*high), lower]
            })
        })
        .collect();
    let head = ["estimator", "interval", "value", "from", "to", "lower bound"];
    body += &details("Every interval of every estimator", &table("All intervals", &head, &lines));
    Section::new("values", "Value and difference", body)
}

fn assumptions(report: &Report) -> Vec<String> {
    let estimated = report.warnings.iter().any(|w| w.code == neuralcb::ope::Code::EstimatedPropensities);
    vec![
        if estimated {
            "the log has no propensities: they were estimated from it, and every number rests on that guess".to_owned()
        } else {
            "the log's propensities are the probabilities with which its actions were drawn".to_owned()
        },
        "the policy learned from other rounds than these".to_owned(),
        "rounds are independent, but for the interval `sequence`, which allows each to depend on those before"
            .to_owned(),
        "the future is like this log: what it earned under other circumstances it does not tell".to_owned(),
        "the bias of dm, and of weights that are cut or shrunk (…-clip, switch-dr, dros, sg-…), is in no interval"
            .to_owned(),
    ]
}
