//! The table of final values below a figure: for each algorithm what every way of choosing gives at the last n.

use std::fmt::Write;

use super::data::{Chosen, ReportProblem};
use super::number::{thousands, with_interval};
use crate::chart::{Style, escape};
use crate::names::paper_name;

/// One line of the table; `cells` in the order of the ways of choosing.
struct Row<'a> {
    name: String,
    reference: bool,
    cells: Vec<Option<Chosen<'a>>>,
}

impl Row<'_> {
    fn last(&self, column: usize) -> Option<[f64; 4]> {
        self.cells[column].as_ref()?.points.last().copied().filter(|point| point[1].is_finite())
    }
}

/// The table of one panel. `selections` are pairs of identifier and word; with `by_mode` only what has modes is listed,
/// once per mode, above the references.
pub fn table(problem: &ReportProblem, selections: &[(&str, &str)], by_mode: bool) -> String {
    let rows = rows(problem, selections, by_mode);
    let lasts = || rows.iter().flat_map(|row| (0..selections.len()).filter_map(|column| row.last(column)));
    let Some(last_n) = lasts().map(|point| point[0]).max_by(f64::total_cmp) else { return String::new() };
    let best: Vec<f64> = (0..selections.len())
        .map(|column| {
            let algorithms = rows.iter().filter(|row| !row.reference).filter_map(|row| row.last(column));
            algorithms.map(|point| point[1]).fold(f64::INFINITY, f64::min)
        })
        .collect();

    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}, values\"><table>\n<caption>{title} \
         <small>after n = {}{}</small></caption>\n<thead><tr><th scope=\"col\">algorithm</th>",
        thousands(last_n as usize),
        repetitions(&rows),
        title = escape(&problem.title),
    );
    selections.iter().for_each(|(_, word)| html += &format!("<th scope=\"col\">{}</th>", escape(word)));
    html += "</tr></thead>\n";
    for group in rows.chunk_by(|a, b| a.reference == b.reference) {
        let class = if group[0].reference { " class=\"references\"" } else { "" };
        let _ = writeln!(html, "<tbody{class}>");
        group.iter().for_each(|row| html += &line(row, &best, last_n));
        html += "</tbody>\n";
    }
    html + "</table></div>\n"
}

fn rows<'a>(problem: &'a ReportProblem, selections: &[(&str, &str)], by_mode: bool) -> Vec<Row<'a>> {
    let row = |algorithm: &str, mode: Option<&str>| {
        let name = paper_name(algorithm);
        let name = mode.map_or_else(|| name.to_string(), |mode| format!("{name} {mode}"));
        let cells = selections.iter().map(|(selection, _)| problem.chosen(selection, algorithm, mode)).collect();
        Row { name, reference: Style::of(algorithm).reference, cells }
    };
    let algorithms = problem.algorithms().into_iter();
    algorithms
        .flat_map(|algorithm| match problem.modes(algorithm) {
            modes if by_mode && !Style::of(algorithm).reference => {
                modes.into_iter().map(|mode| row(algorithm, Some(mode))).collect()
            }
            _ => vec![row(algorithm, None)],
        })
        .filter(|row| row.cells.iter().any(Option::is_some))
        .collect()
}

/// `, 10 repetitions` if all lines have as many, `, 3 to 10 repetitions` if not.
fn repetitions(rows: &[Row]) -> String {
    let reps = || rows.iter().flat_map(|row| row.cells.iter().flatten()).map(|chosen| chosen.reps);
    match (reps().min(), reps().max()) {
        (Some(1), Some(1)) => ", 1 repetition".to_string(),
        (Some(least), Some(most)) if least == most => format!(", {most} repetitions"),
        (Some(least), Some(most)) => format!(", {least} to {most} repetitions"),
        _ => String::new(),
    }
}

fn line(row: &Row, best: &[f64], last_n: f64) -> String {
    let mut html = format!("<tr><th scope=\"row\">{}</th>", escape(&row.name));
    // A reference for which there was nothing to choose stands across all ways.
    let same = row.reference && row.cells.windows(2).all(|pair| pair[0] == pair[1]);
    let columns = if same { 1 } else { row.cells.len() };
    for column in 0..columns {
        let span = if same && row.cells.len() > 1 { &format!(" colspan=\"{}\"", row.cells.len()) } else { "" };
        let (Some(point), Some(chosen)) = (row.last(column), &row.cells[column]) else {
            let _ = write!(html, "<td{span}>–</td>");
            continue;
        };
        // An algorithm is the best of its column; a reference stands out only if it beats all algorithms of all
        // columns.
        let stands_out = if row.reference {
            best.iter().all(|best| best.is_finite() && point[1] < *best)
        } else {
            point[1] == best[column]
        };
        let class = if stands_out { " class=\"best\"" } else { "" };
        // One repetition has no interval, and a value that is known exactly needs none.
        let (mean, half) = with_interval(point[1], (point[3] > point[2]).then_some((point[3] - point[2]) / 2.0));
        let _ = write!(html, "<td{class}{span}>{mean}");
        if let Some(half) = half {
            let _ = write!(html, " <small>± {half}</small>");
        }
        let early = (point[0] != last_n).then(|| format!("n = {}", thousands(point[0] as usize)));
        let setting = Some(chosen.setting.clone()).filter(|text| !text.is_empty());
        let under: Vec<String> = [early, setting].into_iter().flatten().collect();
        if !under.is_empty() {
            let _ = write!(html, "<span>{}</span>", escape(&under.join(", ")));
        }
        html += "</td>";
    }
    html + "</tr>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReportChoice, ReportCurve};

    fn choice(selection: &str, algorithm: &str, mode: Option<&str>, mean: f64) -> ReportChoice {
        ReportChoice {
            selection: selection.into(),
            algorithm: algorithm.into(),
            mode: mode.map(str::to_string),
            setting: "β <1".into(),
            reps: 10,
            points: vec![[100.0, 1.0, 0.9, 1.1], [10_000.0, mean, mean - 0.01, mean + 0.01]],
        }
    }

    fn problem() -> ReportProblem {
        let reference = |algorithm: &str, mean: f64| ReportCurve {
            algorithm: algorithm.into(),
            mode: None,
            learning_rate: None,
            sigma: None,
            beta: None,
            reps: 10,
            points: vec![[10_000.0, mean, mean, mean]],
        };
        ReportProblem {
            dataset: "cosine".into(),
            title: "h & h".into(),
            behaviour: "uniform".into(),
            split: None,
            curves: vec![reference("uniform", 0.9), reference("behaviour", 0.05)],
            choices: vec![
                choice("oracle", "lin-lcb", None, 0.2),
                choice("log-only", "lin-lcb", None, 0.3),
                choice("oracle", "neuralcb", None, 0.1),
                choice("log-only", "neuralcb", None, 0.4),
                choice("oracle", "neuralcb", Some("B"), 0.1),
                choice("oracle", "neuralcb", Some("S"), 0.15),
            ],
        }
    }

    const WAYS: [(&str, &str); 2] = [("log-only", "log only"), ("oracle", "oracle")];

    #[test]
    fn the_best_algorithm_of_each_way_is_marked_and_a_reference_only_if_it_beats_them_all() {
        let html = table(&problem(), &WAYS, false);
        let marked: Vec<&str> = html.split("class=\"best\"").skip(1).map(|rest| &rest[..20]).collect();
        assert_eq!(marked.len(), 3, "{html}");
        assert!(html.contains("class=\"best\">0.300 <small>± 0.010</small><span>β &lt;1</span>"), "{html}");
        assert!(html.contains("class=\"best\">0.100 "));
        assert!(html.contains("class=\"best\" colspan=\"2\">0.0500</td>"));
        assert!(html.contains("<caption>h &amp; h <small>after n = 10,000, 10 repetitions</small></caption>"));
    }

    #[test]
    fn references_stand_below_the_algorithms() {
        let html = table(&problem(), &WAYS, false);
        let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} in {html}"));
        assert!(place(">NeuraLCB<") < place(">LinLCB<") && place(">LinLCB<") < place("<tbody class=\"references\">"));
        assert!(place("<tbody class=\"references\">") < place(">uniform policy<"));
    }

    #[test]
    fn a_figure_by_mode_lists_the_modes_and_what_was_not_chosen_is_a_dash() {
        let html = table(&problem(), &WAYS, true);
        assert!(html.contains(">NeuraLCB S</th><td>–</td>") && html.contains(">NeuraLCB B</th>"), "{html}");
        assert!(!html.contains("LinLCB") && html.contains("uniform policy"));
    }

    #[test]
    fn an_empty_problem_has_no_table() {
        let empty = ReportProblem { curves: vec![], choices: vec![], ..problem() };
        assert_eq!(table(&empty, &WAYS, false), "");
    }
}
