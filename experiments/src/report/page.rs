//! The page: text, controls and tables as HTML, the data as JSON, and the script that draws the charts.

use std::fmt::Write;

use serde::Serialize;

use super::data::{Comparison, ReportData, ReportFigure, RunInfo, SELECTIONS, compare_shown};
use super::number::{duration, rounded};
use super::values;
use crate::chart::{Style, escape};
use crate::names::paper_name;

const CSS: &str = include_str!("page.css");
/// In the order of use; together they are one module.
const SCRIPT: [&str; 4] =
    [include_str!("axis.js"), include_str!("lines.js"), include_str!("chart.js"), include_str!("page.js")];

/// Nothing may be loaded: the page is complete, and it must stay so.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

const INTRODUCTION: &str = "\
<p>Each algorithm learns a policy from a log of <i>n</i> rounds. Measured is its <b>sub-optimality</b>: the mean over test \
contexts of the best action’s expected reward minus that of the chosen action. Lower is better; 0 is the best \
possible.</p>
<p>Lines are means over independent repetitions; bands, and the numbers after ±, are 95&nbsp;% confidence intervals. Grey \
lines are references, not algorithms of the paper: policies that a learner should beat.</p>
";

const NO_SCRIPT: &str = "\
<noscript><p class=\"notice\">The charts of this page need JavaScript. The same charts are in the folder <code>figures</code> \
beside this page, as SVG and PNG files; the tables below are complete.</p></noscript>
";

/// The page as one self-contained file.
pub fn html(data: &ReportData) -> String {
    let title = escape(&data.title);
    let selections = selections(data);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <style>\n{CSS}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n{INTRODUCTION}"
    );
    page += &ways(&selections);
    page += &contents(data);
    let _ = write!(page, "</header>\n{NO_SCRIPT}{}", controls(data, &selections));
    data.figures.iter().for_each(|figure| page += &section(data, figure, &selections));
    page += &comparison(&data.comparison);
    let settings = escape(&data.settings);
    let _ = write!(
        page,
        "<section id=\"settings\">\n<h2>Settings</h2>\n<details>\n<summary>All settings of this run</summary>\n\
         <pre tabindex=\"0\">{settings}</pre>\n</details>\n</section>\n{}</main>\n",
        run(&data.run)
    );
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script type=\"module\">\n{}</script>\n</body>\n</html>\n",
        embedded(data),
        SCRIPT.join("\n")
    );
    page
}

/// The ways of choosing that occur in the data: identifier, word, explanation.
fn selections(data: &ReportData) -> Vec<(&'static str, &'static str, &'static str)> {
    let occurs = |id: &str| data.problems.iter().flat_map(|problem| &problem.choices).any(|c| c.selection == id);
    SELECTIONS.into_iter().filter(|(id, _, _)| occurs(id)).collect()
}

fn ways(selections: &[(&str, &str, &str)]) -> String {
    let items: String = selections.iter().map(|(_, word, note)| format!("<dt>{word}</dt><dd>{note}</dd>\n")).collect();
    if items.is_empty() { items } else { format!("<dl class=\"ways\">\n{items}</dl>\n") }
}

fn contents(data: &ReportData) -> String {
    let mut links: Vec<(&str, &str)> = data.figures.iter().map(|f| (f.id.as_str(), f.title.as_str())).collect();
    if !data.comparison.is_empty() {
        links.push(("comparison", "Paper, released code, ours"));
    }
    links.extend([("settings", "Settings"), ("run", "Run")]);
    let item = |(id, title): (&str, &str)| format!("<li><a href=\"#{}\">{}</a></li>\n", escape(id), escape(title));
    format!("<nav aria-label=\"Contents\"><ul>\n{}</ul></nav>\n", links.into_iter().map(item).collect::<String>())
}

/// What the reader can turn; the script shows it, fills the legend and listens.
fn controls(data: &ReportData, selections: &[(&str, &str, &str)]) -> String {
    let radio = |(i, (id, word)): (usize, (&str, &str))| {
        let checked = if i == 0 { " checked" } else { "" };
        format!("<label><input type=\"radio\" name=\"choice\" value=\"{id}\"{checked}><span>{word}</span></label>\n")
    };
    let ways = selections.iter().map(|(id, word, _)| (*id, *word)).chain([("by-hand", "by hand")]);
    let beside = if selections.iter().any(|(id, _, _)| *id == "oracle") {
        "<label class=\"beside\"><input type=\"checkbox\" name=\"beside\"><span>show oracle beside</span></label>\n"
    } else {
        ""
    };
    let curves = || data.problems.iter().flat_map(|problem| &problem.curves);
    let hand: String = [
        choice_of("mode", "mode", curves().filter_map(|c| c.mode.clone()).collect()),
        choice_of("learning_rate", "lr", numbers(curves().filter_map(|c| c.learning_rate).collect())),
        choice_of("beta", "β", numbers(curves().filter_map(|c| c.beta).collect())),
        choice_of("sigma", "σ", numbers(curves().filter_map(|c| c.sigma).collect())),
    ]
    .concat();
    format!(
        "<form id=\"controls\" aria-label=\"What the charts show\" hidden>\n<fieldset class=\"choice\">\n\
         <legend>Hyper-parameters chosen by</legend>\n{}</fieldset>\n{beside}<fieldset id=\"hand\" hidden>\n\
         <legend class=\"unseen\">Hyper-parameters by hand</legend>\n{hand}</fieldset>\n\
         <div id=\"legend\" role=\"group\" aria-label=\"Lines shown\"></div>\n</form>\n",
        ways.enumerate().map(radio).collect::<String>()
    )
}

fn numbers(mut values: Vec<f64>) -> Vec<String> {
    values.sort_by(f64::total_cmp);
    values.iter().map(f64::to_string).collect()
}

/// A list of the values that occur, the middle one chosen; nothing where none occurs.
fn choice_of(name: &str, label: &str, mut values: Vec<String>) -> String {
    if name == "mode" {
        values.sort_unstable_by(|a, b| b.cmp(a)); // S, the paper's first, before B
    }
    values.dedup();
    if values.is_empty() {
        return String::new();
    }
    let middle = values.len() / 2;
    let option = |(i, value): (usize, &String)| {
        let (selected, value) = (if i == middle { " selected" } else { "" }, escape(value));
        format!("<option value=\"{value}\"{selected}>{value}</option>")
    };
    let options: String = values.iter().enumerate().map(option).collect();
    format!("<label>{label} <select name=\"{name}\">{options}</select></label>\n")
}

fn section(data: &ReportData, figure: &ReportFigure, selections: &[(&str, &str, &str)]) -> String {
    let (id, title) = (escape(&figure.id), escape(&figure.title));
    let mut html = format!(
        "<section id=\"{id}\" class=\"figure\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n\
         <p>{} <span class=\"note\"></span></p>\n<ul class=\"key\" aria-hidden=\"true\"></ul>\n<div class=\"panels\">\n",
        escape(&figure.caption)
    );
    let panels = || figure.panels.iter().filter_map(|index| Some((*index, data.problems.get(*index)?)));
    for (index, problem) in panels() {
        let split = problem.split.as_ref().map(|split| format!(" · split {split}")).unwrap_or_default();
        let _ = writeln!(
            html,
            "<figure class=\"panel\" data-problem=\"{index}\"><figcaption><h3>{}</h3><small>log by {}{}</small></figcaption>\
             <div class=\"plot\"></div></figure>",
            escape(&problem.title),
            escape(&problem.behaviour),
            escape(&split)
        );
    }
    html += "</div>\n<h3>Final values</h3>\n";
    html += "<p class=\"hint\">Bold: the best algorithm, and a reference that beats all algorithms.</p>\n<div class=\"values\">\n";
    let columns: Vec<(&str, &str)> = selections.iter().map(|(id, word, _)| (*id, *word)).collect();
    panels().for_each(|(_, problem)| html += &values::table(problem, &columns, figure.by_mode));
    html + "</div>\n</section>\n"
}

fn comparison(lines: &[Comparison]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut html = "<section id=\"comparison\">\n<h2>Paper, released code, ours</h2>\n<div class=\"scroll\" tabindex=\"0\" \
                    role=\"region\" aria-label=\"Comparison\"><table class=\"words\">\n<thead><tr><th scope=\"col\"></th>\
                    <th scope=\"col\">paper</th><th scope=\"col\">released code</th><th scope=\"col\">ours</th></tr></thead>\n\
                    <tbody>\n"
        .to_string();
    for line in lines {
        let [what, paper, released, ours] =
            [&line.what, &line.paper, &line.released, &line.ours].map(|text| escape(text));
        let _ =
            writeln!(html, "<tr><th scope=\"row\">{what}</th><td>{paper}</td><td>{released}</td><td>{ours}</td></tr>");
    }
    html + "</tbody>\n</table></div>\n</section>\n"
}

fn run(run: &RunInfo) -> String {
    let facts = [
        ("version", run.version.clone()),
        ("machine", run.machine.clone()),
        ("threads", run.threads.to_string()),
        ("finished", run.finished.clone()),
        ("wall-clock time", duration(run.wall_seconds)),
        ("computing time of all threads", duration(run.compute_seconds)),
    ];
    let known = facts.iter().filter(|(_, fact)| !fact.is_empty());
    let items: String = known.map(|(what, fact)| format!("<dt>{what}</dt><dd>{}</dd>\n", escape(fact))).collect();
    format!("<section id=\"run\">\n<h2>Run</h2>\n<dl class=\"facts\">\n{items}</dl>\n</section>\n")
}

/// What the script reads.
#[derive(Serialize)]
struct Embedded<'a> {
    report: &'a ReportData,
    algorithms: Vec<Look<'a>>,
    selections: Vec<Way>,
}

/// An algorithm's name and look, in all and in each mode.
#[derive(Serialize)]
struct Look<'a> {
    id: &'a str,
    name: &'a str,
    style: Style,
    #[serde(rename = "S")]
    s: Style,
    #[serde(rename = "B")]
    b: Style,
}

#[derive(Serialize)]
struct Way {
    id: &'static str,
    word: &'static str,
    note: &'static str,
}

/// The data as JSON that cannot end its own element.
fn embedded(data: &ReportData) -> String {
    let mut report = data.clone();
    for problem in &mut report.problems {
        let points = problem.curves.iter_mut().map(|c| &mut c.points);
        let points = points.chain(problem.choices.iter_mut().map(|c| &mut c.points));
        points.flatten().flatten().for_each(|value| *value = rounded(*value));
    }
    let mut ids: Vec<&str> = report.problems.iter().flat_map(|problem| problem.algorithms()).collect();
    ids.sort_by(|a, b| compare_shown(a, b));
    ids.dedup();
    let look = |id| {
        let style = Style::of(id);
        Look { id, name: paper_name(id), style, s: style.in_mode("S"), b: style.in_mode("B") }
    };
    let algorithms = ids.into_iter().map(look).collect();
    let selections = selections(data).into_iter().map(|(id, word, note)| Way { id, word, note }).collect();
    let json = serde_json::to_string(&Embedded { report: &report, algorithms, selections });
    let json = json.expect("plain data with text keys always becomes JSON");
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReportChoice, ReportCurve, ReportProblem};

    fn data() -> ReportData {
        let curve = |mode: &str, beta: f64| ReportCurve {
            algorithm: "neuralcb".into(),
            mode: Some(mode.into()),
            learning_rate: Some(1e-3),
            sigma: None,
            beta: Some(beta),
            reps: 2,
            points: vec![[10.0, 1.0 / 3.0, 0.3, 0.4]],
        };
        let choice = ReportChoice {
            selection: "oracle".into(),
            algorithm: "neuralcb".into(),
            mode: None,
            setting: "β 5".into(),
            reps: 2,
            points: vec![[10.0, 1.0 / 3.0, 0.3, 0.4]],
        };
        ReportData {
            title: "a </script><script>alert(1)</script> & \u{2028}".into(),
            figures: vec![ReportFigure {
                id: "fig1".into(),
                title: "Figure 1: <synthetic>".into(),
                caption: "One & all.".into(),
                panels: vec![0, 7],
                by_mode: false,
            }],
            problems: vec![ReportProblem {
                dataset: "cosine".into(),
                title: "h₃(u) = cos(3uᵀa)".into(),
                behaviour: "ε-greedy".into(),
                split: Some("disjoint".into()),
                curves: vec![curve("B", 5.0), curve("S", 0.1), curve("S", 10.0)],
                choices: vec![choice],
            }],
            comparison: vec![],
            settings: "{\"reps\": 2, \"note\": \"<&>\"}".into(),
            run: RunInfo {
                version: "0.1.0".into(),
                machine: "a machine".into(),
                threads: 2,
                finished: String::new(),
                wall_seconds: 75.0,
                compute_seconds: 150.0,
            },
        }
    }

    #[test]
    fn the_page_loads_nothing_and_says_so_to_the_browser() {
        let page = html(&data());
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "));
        for outside in ["src=\"", "url(", "@import", "fetch(", "https:"] {
            assert!(!page.contains(outside), "{outside}");
        }
        // The one address is the name of SVG's elements, which nobody visits.
        assert_eq!(page.matches("http:").count(), page.matches("http://www.w3.org/2000/svg").count());
    }

    #[test]
    fn text_of_the_data_is_never_markup() {
        let page = html(&data());
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
        assert!(!page.contains("<synthetic>") && !page.contains("\"<&>\""));
        assert!(
            page.contains(
                "<pre tabindex=\"0\">{&quot;reps&quot;: 2, &quot;note&quot;: &quot;&lt;&amp;&gt;&quot;}</pre>"
            )
        );
        let json = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
        assert!(!json.contains(['<', '\u{2028}']));
    }

    #[test]
    fn the_embedded_data_is_the_report_with_six_digits() {
        let json: serde_json::Value = serde_json::from_str(&embedded(&data())).unwrap();
        let mut report: ReportData = serde_json::from_value(json["report"].clone()).unwrap();
        assert_eq!(report.problems[0].choices[0].points[0][1], 0.333333);
        let given = data();
        report.problems = given.problems.clone();
        assert_eq!(report, given);
        assert_eq!(json["algorithms"][0]["name"], "NeuraLCB");
        assert_eq!(json["selections"][0]["id"], "oracle");
    }

    #[test]
    fn the_controls_offer_what_the_data_has() {
        let page = html(&data());
        assert!(page.contains("value=\"oracle\" checked>") && page.contains("value=\"by-hand\""));
        assert!(!page.contains("value=\"log-only\"") && !page.contains("name=\"sigma\""));
        assert!(page.contains("<option value=\"S\">S</option><option value=\"B\" selected>B</option>"));
        assert!(page.contains("<option value=\"0.1\">0.1</option><option value=\"5\" selected>5</option>"));
    }

    #[test]
    fn what_is_not_there_leaves_no_hole() {
        let page = html(&data());
        assert_eq!(page.matches("class=\"panel\"").count(), 1, "the figure names a problem that does not exist");
        assert!(!page.contains("id=\"comparison\"") && !page.contains("<dt>finished</dt>"));
        assert!(page.contains("<dd>1 min 15 s</dd>"));
        let empty = ReportData { figures: vec![], problems: vec![], ..data() };
        assert!(html(&empty).contains("value=\"by-hand\" checked>"));
    }
}
