//! A table whose middle column is a picture: one line for each value, with its interval.

use std::fmt::Write;

use super::svg::{Scale, axis, interval, rule, wide};
use super::text::{escape, number};

const HEIGHT: f64 = 26.0;

/// One line.
#[derive(Default)]
pub(super) struct Row {
    pub name: String,
    /// Small text below the name.
    pub note: String,
    pub value: Option<f64>,
    /// Two ends; a lower bound alone ends at the value.
    pub ends: Option<[f64; 2]>,
    /// The numbers as text.
    pub text: String,
    /// A word after them, such as `gains`.
    pub word: String,
    /// The colour: empty, `reference`, `gain` or `loss`.
    pub class: &'static str,
}

/// The numbers of a row: `0.51 [0.4 to 0.6]`.
pub(super) fn with_ends(value: Option<f64>, ends: Option<[f64; 2]>, show: fn(f64) -> String) -> String {
    let value = value.map_or("–".to_owned(), show);
    ends.map_or(value.clone(), |[low, high]| format!("{value} [{} to {}]", show(low), show(high)))
}

/// All rows on one scale. `mark` is drawn through them as a dashed line.
pub(super) fn rows(caption: &str, heads: [&str; 3], rows: &[Row], mark: Option<f64>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let scale = scale(rows, mark);
    let [what, picture, numbers] = heads.map(escape);
    let mut html = format!(
        "<table class=\"rows\">\n<caption>{}</caption>\n<thead><tr><th scope=\"col\">{what}</th><th scope=\"col\">{picture}</th>\
         <th scope=\"col\">{numbers}</th></tr></thead>\n<tbody>\n",
        escape(caption)
    );
    for row in rows {
        let line =
            mark.map_or(String::new(), |v| rule(&scale, v, HEIGHT)) + &interval(&scale, row.value, row.ends, 13.0);
        let note = if row.note.is_empty() { String::new() } else { format!("<small>{}</small>", escape(&row.note)) };
        let word = if row.word.is_empty() { String::new() } else { format!(" <b>{}</b>", escape(&row.word)) };
        let _ = writeln!(
            html,
            "<tr class=\"{}\"><th scope=\"row\">{}{note}</th><td class=\"track\">{}</td><td>{}{word}</td></tr>",
            row.class,
            escape(&row.name),
            wide(HEIGHT, &line),
            numbers_of(&row.text)
        );
    }
    let _ = writeln!(
        html,
        "<tr class=\"foot\" aria-hidden=\"true\"><th></th><td class=\"track\">{}</td><td></td></tr>\n</tbody>\n</table>",
        axis(&scale, 5)
    );
    html
}

/// The value, and its interval smaller.
fn numbers_of(text: &str) -> String {
    match text.split_once(" [") {
        Some((value, ends)) => format!("{} <small>[{}</small>", escape(value), escape(ends)),
        None => escape(text),
    }
}

/// The range that shows most rows well: one wild interval does not flatten all others.
fn scale(rows: &[Row], mark: Option<f64>) -> Scale {
    let widths = || rows.iter().filter_map(|row| row.ends).map(|[low, high]| high - low).filter(|w| w.is_finite());
    let mut sorted: Vec<f64> = widths().collect();
    sorted.sort_by(f64::total_cmp);
    let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY);
    let usual = if usual > 0.0 { usual } else { sorted.last().copied().unwrap_or(f64::INFINITY) };
    let tame = |row: &&Row| row.ends.is_none_or(|[low, high]| high - low <= 4.0 * usual);
    let numbers = rows.iter().filter(tame).flat_map(|row| row.ends.into_iter().flatten().chain(row.value));
    Scale::of(numbers.chain(mark))
}

/// Two shares of each line as bars, one above the other.
pub(super) struct Bars {
    pub name: String,
    pub note: String,
    pub shares: [Option<f64>; 2],
    pub text: String,
}

/// Bars from 0 on one scale.
pub(super) fn bars(caption: &str, heads: [&str; 3], lines: &[Bars]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let largest = lines.iter().flat_map(|line| line.shares).flatten().fold(0.0, f64::max);
    let scale = Scale { low: 0.0, high: if largest > 0.0 { 1.04 * largest } else { 1.0 } };
    let [what, picture, numbers] = heads.map(escape);
    let mut html = format!(
        "<table class=\"rows\">\n<caption>{}</caption>\n<thead><tr><th scope=\"col\">{what}</th><th scope=\"col\">{picture}</th>\
         <th scope=\"col\">{numbers}</th></tr></thead>\n<tbody>\n",
        escape(caption)
    );
    for line in lines {
        let mut drawn = String::new();
        for (share, class, y) in [(line.shares[0], "bar other", 4.0), (line.shares[1], "bar", 15.0)] {
            if let Some(share) = share {
                let _ = write!(
                    drawn,
                    "<rect class=\"{class}\" x=\"0\" y=\"{y}\" width=\"{}\" height=\"9\"/>",
                    scale.x(share)
                );
            }
        }
        let note = if line.note.is_empty() { String::new() } else { format!("<small>{}</small>", escape(&line.note)) };
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"track\">{}</td><td>{}{note}</td></tr>",
            escape(&line.name),
            wide(28.0, &drawn),
            escape(&line.text)
        );
    }
    let percent = Scale { low: 0.0, high: 100.0 * scale.high };
    let _ = writeln!(
        html,
        "<tr class=\"foot\" aria-hidden=\"true\"><th></th><td class=\"track\">{}</td><td><small>% of rounds</small></td></tr>\n\
         </tbody>\n</table>",
        axis(&percent, 5)
    );
    html
}

/// The usual text of a number.
pub(super) fn plain(v: f64) -> String {
    number(v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(low: f64, high: f64) -> Row {
        Row { name: "<b>".into(), value: Some(0.5 * (low + high)), ends: Some([low, high]), ..Row::default() }
    }

    #[test]
    fn one_wild_row_does_not_flatten_the_others() {
        let found = scale(&[row(0.0, 1.0), row(0.2, 1.1), row(-1e6, 1e6)], None);
        assert!(found.low > -1.0 && found.high < 2.0, "{found:?}");
        let html = rows("c", ["a", "b", "c"], &[row(0.0, 1.0), row(0.2, 1.1), row(-1e6, 1e6)], Some(0.4));
        assert!(html.contains("›") && html.contains("class=\"rule\"") && !html.contains("<b>"));
    }
}
