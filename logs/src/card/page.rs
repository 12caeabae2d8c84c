//! The page around the charts: one file, no script, nothing loaded.

use std::fmt::Write;

use super::text::{escape, sentence};

const CSS: &str = include_str!("card.css");

/// Nothing may be loaded and nothing may run: the page is complete, and it must stay so.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// How good the news is: the colour of the verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Tone {
    Good,
    Bad,
    Unsure,
}

/// What is read first.
pub(super) struct Verdict {
    pub tone: Tone,
    /// A few words.
    pub headline: String,
    /// A sentence or two.
    pub words: String,
    /// The numbers that one asks for first.
    pub facts: Vec<(&'static str, String)>,
    /// What speaks against trusting them.
    pub warnings: Vec<String>,
}

/// A part of the page.
pub(super) struct Section {
    pub id: &'static str,
    pub title: String,
    /// Markup.
    pub body: String,
}

impl Section {
    pub fn new(id: &'static str, title: &str, body: String) -> Section {
        Section { id, title: title.to_owned(), body }
    }
}

/// A whole card.
pub(super) struct Page {
    pub title: String,
    pub subtitle: String,
    pub verdict: Verdict,
    pub sections: Vec<Section>,
}

impl Page {
    /// The card as one self-contained file.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<h1>{title}</h1>\n<p class=\"soft\">{}</p>\n</header>\n",
            escape(&self.subtitle)
        );
        html += &self.verdict.html();
        let sections = || self.sections.iter().filter(|section| !section.body.is_empty());
        html += "<nav aria-label=\"Contents\"><ul>\n";
        sections().for_each(|s| html += &format!("<li><a href=\"#{}\">{}</a></li>\n", s.id, escape(&s.title)));
        html += "</ul></nav>\n";
        for Section { id, title, body } in sections() {
            let title = escape(title);
            let _ = write!(
                html,
                "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n{body}</section>\n"
            );
        }
        html + "</main>\n</body>\n</html>\n"
    }
}

impl Verdict {
    fn html(&self) -> String {
        let class = match self.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Unsure => "unsure",
        };
        let facts: String = self
            .facts
            .iter()
            .map(|(what, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(what), escape(value)))
            .collect();
        let warnings: String =
            self.warnings.iter().map(|warning| format!("<li>{}</li>\n", escape(&sentence(warning)))).collect();
        let warnings = if warnings.is_empty() {
            warnings
        } else {
            format!("<p><b>Before you rely on it:</b></p>\n<ul class=\"list\">\n{warnings}</ul>\n")
        };
        format!(
            "<div class=\"verdict {class}\" role=\"region\" aria-label=\"Verdict\">\n<h2>{}</h2>\n<p>{}</p>\n\
             <dl class=\"facts\">\n{facts}</dl>\n{warnings}</div>\n",
            escape(&self.headline),
            escape(&sentence(&self.words))
        )
    }
}

/// A table of text: the first cell of each line is its heading.
pub(super) fn table(caption: &str, head: &[&str], lines: &[Vec<String>]) -> String {
    let caption = escape(caption);
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table>\n<caption>{caption}</caption>\n<thead><tr>"
    );
    head.iter().for_each(|cell| html += &format!("<th scope=\"col\">{}</th>", escape(cell)));
    html += "</tr></thead>\n<tbody>\n";
    for line in lines {
        html += "<tr>";
        for (i, cell) in line.iter().enumerate() {
            let cell = escape(cell);
            html += &if i == 0 { format!("<th scope=\"row\">{cell}</th>") } else { format!("<td>{cell}</td>") };
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table></div>\n"
}

/// What is shown when it is asked for; on paper always.
pub(super) fn details(summary: &str, body: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{body}</details>\n", escape(summary))
}

/// A paragraph.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

/// A list of sentences.
pub(super) fn list(items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", escape(&sentence(item)))).collect();
    if items.is_empty() { items } else { format!("<ul class=\"list\">\n{items}</ul>\n") }
}
