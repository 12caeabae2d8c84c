//! Curves as a table for the terminal and as one HTML page that opens without a network.

use std::fmt::Write;

use crate::chart::escape;
use crate::names::paper_name;
use crate::summary::{Curve, Point};

const CSS: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#5c5c5c;--page:#f6f6f4;--card:#fff;--rule:#dedede;--best:#0a6b4f}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e6;--soft:#a5a5a0;--page:#161615;--card:#1f1f1d;--rule:#3a3a37;\
--best:#5fd0a8}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,\
sans-serif}
main{max-width:1360px;margin:0 auto;padding:2rem clamp(1rem,3vw,2.5rem) 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .8rem}h2{font-size:1.2rem;margin:2.4rem 0 .8rem}
h3{font-size:1rem;margin:1.4rem 0 .5rem}
p{max-width:46rem;margin:.5rem 0}
.panels{display:grid;margin-top:1.4rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:1rem}
figure{margin:0;background:#fff;border:1px solid var(--rule);border-radius:8px;padding:.6rem}
figure svg{display:block;width:100%;max-width:760px;height:auto;margin:0 auto}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--rule);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .8rem;text-align:right;white-space:nowrap;border-top:1px solid var(--rule)}
thead th{border-top:0;color:var(--soft);font-weight:600}
th:nth-child(-n+2),td:nth-child(-n+2){text-align:left}
tbody th{font-weight:500}td.setting,td small{color:var(--soft)}td small{font-size:.85em}
td.best{color:var(--best);font-weight:650}
pre{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:1rem;overflow-x:auto;font-size:.85rem;\
line-height:1.45}
";

const INTRODUCTION: &str = "\
<p>Each algorithm learns a policy from a log of <i>n</i> rounds. Measured is its <b>sub-optimality</b>: the mean over test \
contexts of the best action&#39;s expected reward minus that of the chosen action. Lower is better; 0 is the best \
possible.</p>
<p>Lines are means over independent repetitions; bands, and the numbers after ±, are 95&nbsp;% confidence intervals \
(Student&#39;s t).</p>
<p>Settings were chosen by &ldquo;oracle&rdquo;: for each data set and algorithm the one with the smallest test value at \
the last <i>n</i>, as the paper implies. That choice looks at the answer, so these curves are optimistic.</p>
";

/// The page: what is measured, the panels (title and SVG), a table per data set and the settings of the run.
pub fn html(figure_title: &str, settings_text: &str, curves: &[Curve], panels: &[(String, String)]) -> String {
    let title = escape(figure_title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{CSS}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{INTRODUCTION}<div class=\"panels\">\n"
    );
    for (title, svg) in panels {
        let _ = writeln!(page, "<figure aria-label=\"{}\">\n{svg}</figure>", escape(title));
    }
    page += "</div>\n<h2>Numbers</h2>\n";
    for curves in curves.chunk_by(|a, b| a.dataset == b.dataset) {
        page += &html_table(curves);
    }
    let settings = escape(settings_text);
    let _ = write!(page, "<h2>Settings</h2>\n<pre>{settings}</pre>\n</main>\n</body>\n</html>\n");
    page
}

fn html_table(curves: &[Curve]) -> String {
    let columns = columns(curves);
    let best: Vec<f64> = columns
        .iter()
        .map(|n| curves.iter().filter_map(|curve| point(curve, *n)).map(|p| p.mean).fold(f64::INFINITY, f64::min))
        .collect();
    let mut html = format!("<h3>{}</h3>\n<div class=\"scroll\"><table>\n", escape(&curves[0].dataset));
    html += "<thead><tr><th scope=\"col\">algorithm</th><th scope=\"col\">chosen setting</th>";
    columns.iter().for_each(|n| html += &format!("<th scope=\"col\">n = {}</th>", thousands(*n)));
    html += "</tr></thead>\n<tbody>\n";
    for curve in curves {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"setting\">{}</td>",
            escape(paper_name(&curve.algorithm)),
            escape(&setting(curve))
        );
        for (n, best) in columns.iter().zip(&best) {
            html += &match point(curve, *n) {
                None => "<td>–</td>".to_string(),
                Some(p) => {
                    let class = if p.mean == *best { " class=\"best\"" } else { "" };
                    match half_width(p) {
                        Some(half) => format!("<td{class}>{} <small>± {half}</small></td>", mean(p)),
                        None => format!("<td{class}>{}</td>", mean(p)),
                    }
                }
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table></div>\n"
}

/// The table for the terminal: a block per data set, aligned, three significant digits.
pub fn table(curves: &[Curve]) -> String {
    let blocks: Vec<String> = curves.chunk_by(|a, b| a.dataset == b.dataset).map(text_block).collect();
    blocks.join("\n")
}

fn text_block(curves: &[Curve]) -> String {
    let columns = columns(curves);
    let mut lines = vec![vec!["algorithm".to_string(), "setting".to_string()]];
    lines[0].extend(columns.iter().map(|n| format!("n = {}", thousands(*n))));
    for curve in curves {
        let mut line = vec![paper_name(&curve.algorithm).to_string(), setting(curve)];
        line.extend(columns.iter().map(|n| match point(curve, *n) {
            None => "-".to_string(),
            Some(p) => half_width(p).map_or_else(|| mean(p), |half| format!("{} ± {half}", mean(p))),
        }));
        lines.push(line);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns.len() + 2).map(width).collect();
    let mut text = format!("{}\n", curves[0].dataset);
    for line in &lines {
        for (i, (cell, width)) in line.iter().zip(&widths).enumerate() {
            // Words stand on the left of their column, numbers on the right.
            let _ = if i < 2 { write!(text, "  {cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// About four of the available n, evenly spread on a log scale, with the first and the last.
fn columns(curves: &[Curve]) -> Vec<usize> {
    let mut ns: Vec<usize> = curves.iter().flat_map(|curve| &curve.points).map(|point| point.n).collect();
    ns.sort_unstable();
    ns.dedup();
    let (Some(first), Some(last)) = (ns.first().copied(), ns.last().copied()) else { return Vec::new() };
    let log = |n: usize| (n.max(1) as f64).ln();
    let mut chosen: Vec<usize> = (0..4)
        .filter_map(|i| {
            let target = log(first) + (log(last) - log(first)) * f64::from(i) / 3.0;
            ns.iter().copied().min_by(|a, b| (log(*a) - target).abs().total_cmp(&(log(*b) - target).abs()))
        })
        .collect();
    chosen.dedup();
    chosen
}

fn point(curve: &Curve, n: usize) -> Option<&Point> {
    curve.points.iter().find(|point| point.n == n)
}

fn setting(curve: &Curve) -> String {
    Some(curve.setting.to_string()).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_string())
}

/// Decimals that show three significant digits.
fn decimals(value: f64) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 3;
    }
    // Rounding first: 0.09996 is 0.100, which needs three decimals and not four.
    let exponent: i32 = format!("{value:.2e}").rsplit('e').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    (2 - exponent).max(0) as usize
}

fn mean(point: &Point) -> String {
    format!("{:.*}", decimals(point.mean), point.mean)
}

/// The half-width with as many decimals as the mean; none for a single repetition, which has no spread.
fn half_width(point: &Point) -> Option<String> {
    (point.reps > 1).then(|| format!("{:.*}", decimals(point.mean), point.high - point.mean))
}

/// 10000 as `10,000`.
fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Selection, Setting};

    fn curve(dataset: &str, algorithm: &str, beta: Option<f64>, points: &[(usize, f64, f64, usize)]) -> Curve {
        let point = |&(n, mean, half, reps): &(usize, f64, f64, usize)| Point {
            n,
            mean,
            low: mean - half,
            high: mean + half,
            reps,
        };
        Curve {
            dataset: dataset.into(),
            algorithm: algorithm.into(),
            selection: Selection::OracleLast,
            setting: Setting { beta, ..Setting::default() },
            points: points.iter().map(point).collect(),
        }
    }

    fn curves() -> Vec<Curve> {
        vec![
            curve("quadratic", "neuralcb", Some(0.05), &[(10, 0.51234, 0.02, 10), (10_000, 0.0123456, 0.00089, 10)]),
            curve("quadratic", "uniform", None, &[(10_000, 12.345, 0.0, 1)]),
            curve("cosine", "lin-lcb", Some(1.0), &[(10, 0.09996, 0.0, 1)]),
        ]
    }

    #[test]
    fn the_table_is_aligned_with_three_significant_digits() {
        let wanted = "\
quadratic
  algorithm       setting         n = 10       n = 10,000
  NeuraLCB        β 0.05   0.512 ± 0.020  0.0123 ± 0.0009
  uniform policy  -                    -             12.3

cosine
  algorithm  setting  n = 10
  LinLCB     β 1       0.100
";
        assert_eq!(table(&curves()), wanted);
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn four_columns_are_spread_on_a_log_scale_and_hold_both_ends() {
        let points: Vec<_> = [10, 16, 25, 40, 63, 100, 158, 251, 398, 631, 1000, 1585, 2512, 3981, 6310, 10_000]
            .map(|n| (n, 0.5, 0.1, 3))
            .to_vec();
        assert_eq!(columns(&[curve("cosine", "neuralcb", None, &points)]), [10, 100, 1000, 10_000]);
        assert_eq!(columns(&[curve("cosine", "neuralcb", None, &points[..2])]), [10, 16]);
        assert!(columns(&[]).is_empty());
    }

    #[test]
    fn the_page_stands_alone_and_escapes_its_text() {
        let panels = [("Quadratic".to_string(), "<svg></svg>\n".to_string())];
        let page = html("Figure <1>", "reps = 10 & more", &curves(), &panels);
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(page.contains("<h1>Figure &lt;1&gt;</h1>") && page.contains("<pre>reps = 10 &amp; more</pre>"));
        assert!(page.contains("<svg></svg>"));
        assert_eq!(page.matches("<table>").count(), 2);
        assert!(page.contains("<td class=\"best\">0.0123 <small>± 0.0009</small></td>"));
        for outside in ["http:", "https:", "<script", "<link", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
