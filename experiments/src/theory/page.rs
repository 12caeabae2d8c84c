//! The report for people: a table for the terminal, `theory.csv`, SVG files, and one page that opens without a network.

use std::fmt::Write;

use neuralcb::theory::Gammas;
use neuralcb_logs::OutDir;

use super::{Report, Shown, plot};
use crate::chart::escape;
use crate::error::ExperimentError;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
const CSS: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#111;background:#fff;margin:0 auto;max-width:920px;padding:1rem}\
                   table{border-collapse:collapse}td,th{border-bottom:1px solid #ddd;padding:.3rem .7rem;text-align:left;\
                   vertical-align:top}figure{margin:2rem 0}svg{max-width:100%;height:auto}pre{overflow:auto}\
                   li{margin:.15rem 0}";

/// The quantities, line by line: name and value.
fn rows(report: &Report) -> Vec<(String, String)> {
    let q = &report.quantities;
    let mut out: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| out.push((name.to_owned(), value));
    add("n", format!("{} rounds", q.n));
    add("nK", format!("{} contexts, {} of them different", q.n_contexts.0, q.n_contexts.1));
    add(
        "λ_0, smallest eigenvalue of H",
        match &q.lambda_0 {
            Ok((value, n)) if *n == q.n => format!("{value:.6}"),
            Ok((value, n)) => format!("at most {value:.6} (that of the first {n} rounds)"),
            Err(error) => error.to_string(),
        },
    );
    if let Some(s) = q.s {
        add("S = ‖h‖ in H⁻¹", format!("{s:.4}"));
    }
    let (d, half) = q.effective_dimension;
    add("d̃, effective dimension", half.map_or(format!("{d:.4}"), |half| format!("{d:.3} ± {half:.3}")));
    match &q.kappa {
        Some((kappa, how)) => add("κ", format!("{kappa:.4} ({how})")),
        None => add("κ", "unknown: the log has no propensities".to_owned()),
    }
    if let Some(theorem) = &q.theorem {
        add("β_n of Theorem 4.1", format!("{:.4}", theorem.beta(theorem.n)));
        add("ι of Theorem 4.1 (η_t = ι/√t)", format!("{:.4e}", theorem.iota()));
    }
    if let Some((gammas, clean, finite)) = q.bounds() {
        add("bound of Theorem 4.1, m → ∞", format!("{clean:.4}"));
        add("bound of its proof for this m", format!("{finite:.4e}"));
        let values: Vec<String> = gammas
            .0
            .iter()
            .zip(Gammas::LIMITS)
            .map(|(value, limit)| format!("{value:.2e} (at most {limit})"))
            .collect();
        add("Γ_1, …, Γ_5", values.join(", "));
    }
    out
}

/// The table for the terminal.
pub fn table(report: &Report) -> String {
    let rows = rows(report);
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut out = format!("{}\n\n", report.title);
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:<width$}  {value}");
    }
    for shown in &report.figures {
        let _ = writeln!(out, "\n({}) {}", shown.figure.letter(), shown.figure.title());
        shown.findings.iter().for_each(|line| _ = writeln!(out, "  {line}"));
    }
    out
}

/// Writes `theory.csv`, `figures/*.svg` and `theory.html`.
pub fn write(dir: &OutDir, report: &Report) -> Result<(), ExperimentError> {
    dir.write("theory.csv", csv(report).as_bytes())?;
    for shown in &report.figures {
        let name = format!("figures/theory-{}.svg", shown.figure.letter());
        dir.write(&name, plot::svg(shown.figure.title(), &shown.panels).as_bytes())?;
    }
    Ok(dir.write("theory.html", html(report).as_bytes())?)
}

/// Every point of every line.
fn csv(report: &Report) -> String {
    let mut out = String::from("figure,panel,line,x,y\n");
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    for shown in &report.figures {
        for panel in &shown.panels {
            for line in &panel.lines {
                for (x, y) in &line.points {
                    let (panel, line) = (quoted(&panel.title), quoted(&line.name));
                    let _ = writeln!(out, "{},{panel},{line},{x},{y}", shown.figure.letter());
                }
            }
        }
    }
    out
}

fn html(report: &Report) -> String {
    let title = escape(&report.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<table>\n"
    );
    for (name, value) in rows(report) {
        let _ = writeln!(out, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escape(&name), escape(&value));
    }
    out += "</table>\n";
    report.figures.iter().for_each(|shown| out += &figure(shown));
    let _ = writeln!(
        out,
        "<details><summary>All settings</summary>\n<pre tabindex=\"0\">{}</pre></details>\n</main>\n</body>\n</html>",
        escape(&report.settings)
    );
    out
}

fn figure(shown: &Shown) -> String {
    let title = format!("({}) {}", shown.figure.letter(), shown.figure.title());
    let items: String = shown.findings.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!(
        "<figure id=\"{}\">\n<h2>{}</h2>\n{}<figcaption><p>{}</p>\n<ul>\n{items}</ul></figcaption>\n</figure>\n",
        shown.figure.letter(),
        escape(&title),
        plot::svg(shown.figure.title(), &shown.panels),
        escape(&shown.sentence)
    )
}
