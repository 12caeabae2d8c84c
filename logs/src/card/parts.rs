//! The parts that several cards share: weights, coverage by action, calibration, drift over time, segments, and
//! origins.

use std::fmt::Write;

use neuralcb::ope::WeightShape;

use super::about::About;
use super::page::{Section, details, list, paragraph, table};
use super::rows::{Bars, Row, bars, plain, rows, with_ends};
use super::svg::{Scale, axis, framed};
use super::text::{count, escape, number, percent, signed};
use crate::detail::{Calibrated, Coverage, Detail, Mean, Segmented, Span};

/// Actions that are drawn; the table below has more.
const DRAWN: usize = 15;
const LISTED: usize = 100;

/// What the two policies of a card are called.
pub(super) struct Names {
    /// The one that is judged.
    pub own: &'static str,
    /// The one that it is compared with.
    pub other: &'static str,
}

/// How the weights are spread.
pub(super) fn weights(shape: &WeightShape, facts: &str, what: &str) -> Section {
    if shape.bins.is_empty() {
        return Section::new("weights", "Weights", String::new());
    }
    let mut body = paragraph(facts);
    body += &paragraph(&tail_words(shape));
    // at most 24 bars
    let step = shape.bins.len().div_ceil(24).max(1);
    let groups: Vec<(f64, f64, u64)> = shape
        .bins
        .chunks(step)
        .map(|bins| (bins[0].low, bins[bins.len() - 1].high, bins.iter().map(|bin| bin.rounds).sum()))
        .collect();
    let zero = shape.zero > 0;
    let slots = groups.len() + usize::from(zero);
    let most = groups.iter().map(|(_, _, n)| *n).chain([shape.zero]).max().unwrap_or(1);
    let (up, height) = (Scale { low: 0.0, high: 1.05 * most as f64 }, 170.0);
    let (mut drawn, mut below) = (String::new(), String::new());
    let width = 100.0 / slots as f64;
    let mut bar = |slot: usize, n: u64, class: &str, title: String| {
        let tall = (height * up.share(n as f64)).max(if n > 0 { 2.0 } else { 0.0 });
        let _ = write!(
            drawn,
            "<rect class=\"bar{class}\" x=\"{:.2}%\" y=\"{:.1}\" width=\"{:.2}%\" height=\"{tall:.1}\"><title>{}</title></rect>",
            (slot as f64 + 0.08) * width,
            height - tall,
            0.84 * width,
            escape(&title)
        );
    };
    if zero {
        bar(0, shape.zero, " other", format!("weight 0: {} rounds", count(shape.zero)));
        let _ = write!(below, "<text x=\"{:.2}%\" y=\"14\" text-anchor=\"middle\">0</text>", 0.5 * width);
    }
    let every = groups.len().div_ceil(6).max(1);
    for (i, (low, high, n)) in groups.iter().enumerate() {
        let slot = i + usize::from(zero);
        bar(slot, *n, "", format!("{} to {}: {} rounds", number(*low), number(*high), count(*n)));
        if i % every == 0 && (i + every / 2 < groups.len() || i == 0) {
            let x = slot as f64 * width;
            // at the left edge of its bar, so that it is clear of the label of 0
            let _ = write!(below, "<text x=\"{x:.2}%\" y=\"14\">{}</text>", escape(&number(*low)));
        }
    }
    let label = format!(
        "Histogram of {what}: {} rounds with weight 0, the others from {} to {}",
        count(shape.zero),
        number(groups[0].0),
        number(groups[groups.len() - 1].1)
    );
    body += &framed(&label, &up, &super::svg::wide(20.0, &below), height, &drawn);
    body += &format!("<p class=\"across\">{} (each bar is a range; rounds upward)</p>\n", escape(what));
    let lines = groups.iter().map(|(low, high, n)| vec![format!("{} to {}", number(*low), number(*high)), count(*n)]);
    let lines: Vec<Vec<String>> = std::iter::once(vec!["0".to_owned(), count(shape.zero)]).chain(lines).collect();
    body += &details("The numbers of this chart", &table("Rounds by weight", &["weight", "rounds"], &lines));
    Section::new("weights", "Weights", body)
}

/// Pareto k̂ for people.
fn tail_words(shape: &WeightShape) -> String {
    let Some(tail) = &shape.tail else { return String::new() };
    let Some(k) = tail.k else {
        return format!(
            "The largest weights are equal or few ({}): the weights are bounded, so there is no tail to fear.",
            number(tail.above)
        );
    };
    let verdict = match k {
        k if k <= 0.5 => "light: means of weighted rewards settle as usual",
        k if k <= 0.7 => "moderate: means settle, but slower than normal intervals say",
        k if k <= 1.0 => "heavy: a rare round may still change every number, and normal intervals are too narrow",
        _ => "so heavy that no weighted mean exists: trust none that uses these weights uncut",
    };
    format!(
        "The tail is {verdict} (Pareto k̂ {} of the {} largest weights).",
        number((k * 100.0).round() / 100.0),
        count(tail.rounds)
    )
}

/// Which actions the log covers.
pub(super) fn coverage(actions: &[Coverage], unknown: f64, names: &Names) -> Section {
    let mut body = String::new();
    let known = actions.iter().any(|action| action.wanted.is_some());
    if known {
        let missed: Vec<&Coverage> =
            actions.iter().filter(|action| action.agreeing == 0 && action.wanted.unwrap_or(0.0) > 0.0).collect();
        let share: f64 = missed.iter().filter_map(|action| action.wanted).sum::<f64>() + unknown;
        body += &paragraph(&if share > 0.0 {
            format!(
                "{} of what {} does was never seen in the log: nothing here tells what that earns.",
                percent(share),
                names.own
            )
        } else {
            format!("Every action that {} plays was tried in rounds in which it plays it.", names.own)
        });
    }
    if actions.is_empty() {
        return Section::new("actions", "Coverage by action", body);
    }
    let _ = writeln!(
        body,
        "<ul class=\"key\"><li><span class=\"other\"></span>the log</li>{}</ul>",
        if known { format!("<li><span></span>{}</li>", escape(names.own)) } else { String::new() }
    );
    let line = |action: &Coverage| Bars {
        name: action.name.clone(),
        note: if known { format!("{} rounds agree", count(action.agreeing)) } else { String::new() },
        shares: [Some(action.share), action.wanted],
        text: action
            .wanted
            .map_or(percent(action.share), |w| format!("{}, wanted {}", percent(action.share), percent(w))),
    };
    let drawn: Vec<Bars> = actions.iter().take(DRAWN).map(line).collect();
    let caption = match actions.len() {
        n if n > DRAWN => format!("Share of the rounds: the first {DRAWN} of {n} actions"),
        _ => "Share of the rounds".to_owned(),
    };
    body += &bars(&caption, ["action", "share", "in the log"], &drawn);
    let lines: Vec<Vec<String>> = actions
        .iter()
        .take(LISTED)
        .map(|action| {
            let mean = action.mean_reward.map_or("–".to_owned(), number);
            let wanted = action.wanted.map_or("–".to_owned(), percent);
            let (rounds, agreeing) = (count(action.rounds), count(action.agreeing));
            vec![action.name.clone(), rounds, percent(action.share), wanted, agreeing, number(action.ess.round()), mean]
        })
        .collect();
    let head = ["action", "rounds", "share", "wanted", "agreeing", "effective", "mean reward"];
    let caption = match actions.len() {
        n if n > LISTED => format!("The first {LISTED} of {n} actions; --json has all"),
        _ => "All actions".to_owned(),
    };
    body += &details("All numbers by action", &table(&caption, &head, &lines));
    Section::new("actions", "Coverage by action", body)
}

/// Predicted against real rewards.
pub(super) fn calibration(bins: &[Calibrated], whose: &str) -> Section {
    if bins.len() < 2 {
        return Section::new("calibration", "Calibration of the reward model", String::new());
    }
    let total: u64 = bins.iter().map(|bin| bin.rounds).sum();
    let off: f64 =
        bins.iter().map(|bin| (bin.predicted - bin.reward.value).abs() * bin.rounds as f64).sum::<f64>() / total as f64;
    let mut body = paragraph(&format!(
        "The logged actions in {} groups by predicted reward, {whose}. A good model lies on the dashed line. On average the \
         groups are {} away from it.",
        bins.len(),
        number(off)
    ));
    let ends =
        bins.iter().flat_map(|bin| [bin.predicted, bin.reward.value, bin.reward.interval[0], bin.reward.interval[1]]);
    let both = Scale::of(ends);
    let across = Scale::of(bins.iter().map(|bin| bin.predicted));
    let height = 240.0;
    let y = |v: f64| height * (1.0 - both.share(v));
    let mut drawn =
        format!("<line class=\"rule\" x1=\"0\" y1=\"{:.1}\" x2=\"100%\" y2=\"{:.1}\"/>", y(across.low), y(across.high));
    for bin in bins {
        let (x, [low, high]) = (across.x(bin.predicted), bin.reward.interval.map(y));
        let _ = write!(
            drawn,
            "<line class=\"ends\" x1=\"{x}\" x2=\"{x}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/><circle class=\"dot\" cx=\"{x}\" \
             cy=\"{:.1}\" r=\"4.5\"><title>predicted {}, earned {}, {} rounds</title></circle>",
            y(bin.reward.value),
            number(bin.predicted),
            number(bin.reward.value),
            count(bin.rounds)
        );
    }
    body += &framed(
        "Mean reward of groups of rounds against the reward that was predicted",
        &both,
        &axis(&across, 5),
        height,
        &drawn,
    );
    body += "<p class=\"across\">predicted reward (real reward upward)</p>\n";
    let line = |bin: &Calibrated| vec![number(bin.predicted), mean_text(Some(&bin.reward), number), count(bin.rounds)];
    let lines: Vec<Vec<String>> = bins.iter().map(line).collect();
    body += &details("The numbers of this chart", &table("By prediction", &["predicted", "real", "rounds"], &lines));
    Section::new("calibration", "Calibration of the reward model", body)
}

fn mean_text(mean: Option<&Mean>, show: fn(f64) -> String) -> String {
    with_ends(mean.map(|mean| mean.value), mean.map(|mean| mean.interval), show)
}

/// Values from the first round to the last.
pub(super) fn time(spans: &[Span], names: &Names, judged: bool) -> Section {
    if spans.len() < 2 {
        return Section::new("time", "Over time", String::new());
    }
    let own = |span: &Span| span.group.value.filter(|_| judged);
    let rounds = spans.iter().map(|span| span.first + span.group.rounds).max().unwrap_or(1) as f64;
    // a span with hardly a round that agrees does not decide what the others look like
    let usual = |mean: &Mean, all: &[Mean]| {
        let mut widths: Vec<f64> = all.iter().map(|mean| mean.interval[1] - mean.interval[0]).collect();
        widths.sort_by(f64::total_cmp);
        mean.interval[1] - mean.interval[0] <= 4.0 * widths[widths.len() / 2]
    };
    let all = |of: &dyn Fn(&Span) -> Option<Mean>| spans.iter().filter_map(of).collect::<Vec<Mean>>();
    let (owns, others) = (all(&own), all(&|span: &Span| span.group.reference));
    let ends = |means: &[Mean]| -> Vec<f64> {
        means.iter().filter(|mean| usual(mean, means)).flat_map(|mean| mean.interval).collect()
    };
    let up = Scale::of(ends(&owns).into_iter().chain(ends(&others)));
    let (across, height) = (Scale { low: 0.0, high: rounds }, 220.0);
    let y = |v: f64| height * (1.0 - up.share(v));
    let mut drawn = String::new();
    for (series, class) in [(0, " other"), (1, "")] {
        for span in spans {
            let mean = if series == 0 { span.group.reference } else { own(span) };
            let Some(Mean { value, interval: [low, high] }) = mean else { continue };
            let (left, right) =
                (across.share(span.first as f64), across.share((span.first + span.group.rounds) as f64));
            let _ = write!(
                drawn,
                "<rect class=\"band{class}\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"{:.1}\" height=\"{:.1}\"/>\
                 <line class=\"step{class}\" x1=\"{:.2}%\" x2=\"{:.2}%\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                100.0 * left,
                100.0 * (right - left),
                y(high),
                (y(low) - y(high)).max(0.5),
                100.0 * left,
                100.0 * right,
                y(value),
                y(value)
            );
        }
    }
    let mut body = paragraph(&format!(
        "Means of {} spans of rounds that follow each other, with their intervals. Where a line climbs or falls, the past is a \
         poor guide.",
        spans.len()
    ));
    let _ = writeln!(
        body,
        "<ul class=\"key\"><li><span class=\"other\"></span>{}</li>{}</ul>",
        escape(names.other),
        if judged { format!("<li><span></span>{}</li>", escape(names.own)) } else { String::new() }
    );
    body += &framed("Value over the rounds of the log", &up, &axis(&across, 4), height, &drawn);
    body += "<p class=\"across\">round of the log</p>\n";
    let line = |span: &Span| {
        let rounds = format!("{} to {}", count(span.first + 1), count(span.first + span.group.rounds));
        let mut line = vec![rounds, mean_text(span.group.reference.as_ref(), number)];
        if judged {
            line.push(mean_text(span.group.value.as_ref(), number));
            line.push(mean_text(span.group.difference.as_ref(), signed));
        }
        line
    };
    let lines: Vec<Vec<String>> = spans.iter().map(line).collect();
    let head = ["rounds", names.other, names.own, "difference"];
    let head = if judged { &head[..] } else { &head[..2] };
    body += &details("The numbers of this chart", &table("By span of rounds", head, &lines));
    Section::new("time", "Over time", body)
}

/// Who gains and who loses; without a policy that is judged, what the log earned.
pub(super) fn segments(detail: &Detail, names: &Names, judged: bool) -> Section {
    let title = if judged { "Who gains and who loses" } else { "Mean reward by segment" };
    if detail.segments.is_empty() {
        let body = "<p>Name columns of the log with <code>--segment COLUMN</code>, once for each, to see its segments here.</p>\n";
        return Section::new("segments", title, body.to_owned());
    }
    let note = "Each interval stands for itself. A segment is said to gain or to lose only if that is clear with regard to how many \
                segments its column has.";
    let mut body = if judged { paragraph(note) } else { String::new() };
    detail.segments.iter().for_each(|segmented| body += &segmented_rows(segmented, names, judged));
    Section::new("segments", title, body)
}

fn segmented_rows(segmented: &Segmented, names: &Names, judged: bool) -> String {
    let row = |segment: &crate::detail::Segment| {
        let mean = if judged { segment.group.difference } else { segment.group.reference };
        let (value, ends) = (mean.map(|mean| mean.value), mean.map(|mean| mean.interval));
        let (word, class) = match segment.gains.filter(|_| judged) {
            Some(true) => ("gains", "gain"),
            Some(false) => ("loses", "loss"),
            None => ("", ""),
        };
        Row {
            name: segment.name.clone(),
            note: format!("{} rounds", count(segment.group.rounds)),
            value,
            ends,
            text: with_ends(value, ends, if judged { signed } else { plain }),
            word: word.to_owned(),
            class,
        }
    };
    let all: Vec<Row> = segmented.segments.iter().map(row).collect();
    let (caption, heads) = if judged {
        (format!("{}: {} less {}", segmented.column, names.own, names.other), ["segment", "difference", "difference"])
    } else {
        (format!("{}: mean reward", segmented.column), ["segment", "mean reward", "mean reward"])
    };
    rows(&caption, heads, &all, judged.then_some(0.0))
}

/// What was taken for granted, and what was read.
pub(super) fn origins(assumptions: &[String], about: Option<&About>) -> Section {
    let mut body = list(assumptions);
    if let Some(about) = about {
        let mut facts = vec![
            ("log".to_owned(), about.log.files.join(", ")),
            ("SHA-256 of the log".to_owned(), about.log.sha256.clone()),
        ];
        for policy in &about.policies {
            let beta = policy.beta.map_or(String::new(), |beta| format!(", β {}", number(beta)));
            let from = format!(
                "{}{beta}, learned from {} rounds of {}, seed {}, by version {}",
                policy.method,
                count(policy.rounds),
                policy.log.files.join(", "),
                policy.seed,
                policy.program
            );
            facts.push((policy.role.clone(), from));
            facts.push((format!("SHA-256 of the log of the {}", policy.role), policy.log.sha256.clone()));
        }
        facts.push(("program".to_owned(), format!("neuralcb {}", about.program)));
        let items: String =
            facts.iter().map(|(what, fact)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(what), escape(fact))).collect();
        body += &format!("<dl class=\"about\">\n{items}</dl>\n");
        if !about.settings.is_null() {
            let settings = serde_json::to_string_pretty(&about.settings).unwrap_or_default();
            body += &details("All settings", &format!("<pre tabindex=\"0\">{}</pre>\n", escape(&settings)));
        }
    }
    Section::new("origins", "Assumptions and origins", body)
}
