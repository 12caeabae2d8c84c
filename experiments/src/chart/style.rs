//! How each algorithm looks, in every chart alike: the SVG files and the page read this one table.
//!
//! Colours are Okabe–Ito's, safe for colour-blind readers, with a lighter twin for dark screens. Greedy twins are the
//! dashed, lighter relatives of their pessimistic partners; what is no algorithm of the paper is grey or black.

use serde::Serialize;

use super::axis::num;

/// The line and the marker of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Style {
    /// Colour on white.
    pub colour: &'static str,
    /// Colour on a dark ground.
    pub dark: &'static str,
    /// Width of the line.
    pub width: f64,
    /// Dashes and gaps; empty for a full line.
    pub dash: &'static str,
    /// Outline around the point (relative SVG path); empty for a line without markers.
    pub marker: &'static str,
    /// The marker is an outline, to tell B from S where both are drawn.
    pub hollow: bool,
    /// A policy to compare with, not an algorithm: no band, no mark for the best.
    pub reference: bool,
}

const CIRCLE: &str = "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0z";
const SQUARE: &str = "m-2.9 -2.9h5.8v5.8h-5.8z";
const UP: &str = "m0 -3.8l3.6 6.4h-7.2z";
const DOWN: &str = "m0 3.8l3.6 -6.4h-7.2z";
const DIAMOND: &str = "m0 -4.1l3.6 4.1l-3.6 4.1l-3.6 -4.1z";
const PLUS: &str = "m-3.8 -1.2h2.6v-2.6h2.4v2.6h2.6v2.4h-2.6v2.6h-2.4v-2.6h-2.6z";
const TIMES: &str = "m-3.4 -2.1l1.3 -1.3l2.1 2.1l2.1 -2.1l1.3 1.3l-2.1 2.1l2.1 2.1l-1.3 1.3l-2.1 -2.1l-2.1 2.1l-1.3 -1.3\
                     l2.1 -2.1z";

impl Style {
    /// The style of an algorithm; one that is not known here is black.
    pub fn of(algorithm: &str) -> Style {
        let (colour, dark, width, dash, marker) = match algorithm {
            "neuralcb" => ("#D55E00", "#FF7A1F", 2.4, "", CIRCLE),
            "neural-greedy" => ("#E69F00", "#F5C04D", 1.8, "7 3", SQUARE),
            "neural-lin-lcb" => ("#0072B2", "#3E9BDC", 1.8, "", UP),
            "neural-lin-greedy" => ("#56B4E9", "#9AD4F7", 1.8, "7 3", DOWN),
            "lin-lcb" => ("#009E73", "#2CC79B", 1.8, "", DIAMOND),
            "kern-lcb" => ("#CC79A7", "#E59CC6", 1.8, "", PLUS),
            "lin-greedy" => ("#66B99A", "#8FE0C4", 1.8, "7 3", DIAMOND),
            "tab-lcb" => ("#8C6D31", "#C9A86A", 1.8, "", UP),
            "tab-greedy" => ("#B89B5E", "#E0CB9A", 1.8, "7 3", DOWN),
            "relu-greedy" => ("#7B3294", "#C48ADB", 1.8, "7 3", SQUARE),
            "neural-retrain" => ("#8B1A1A", "#E58080", 1.8, "", TIMES),
            "auto" => ("#111111", "#F4F4F4", 2.6, "", DIAMOND),
            "choice" => ("#B3123C", "#FF6B8F", 2.2, "", SQUARE),
            "regression" => ("#6A5ACD", "#A79BF2", 1.8, "", CIRCLE),
            "viper" => ("#00778A", "#4FC6D8", 1.8, "", DOWN),
            "uniform" => ("#777777", "#9A9A9A", 1.2, "6 4", ""),
            "constant" => ("#777777", "#9A9A9A", 1.2, "10 3 2 3", ""),
            "behaviour" => ("#777777", "#9A9A9A", 1.4, "1.5 3", ""),
            "clone" => ("#333333", "#D0D0D0", 1.5, "4 2", TIMES),
            "clone-rewarded" => ("#333333", "#D0D0D0", 1.5, "1.5 2", PLUS),
            _ => ("#000000", "#FFFFFF", 1.8, "3 2", CIRCLE),
        };
        let reference = matches!(algorithm, "uniform" | "constant" | "behaviour" | "clone" | "clone-rewarded");
        Style { colour, dark, width, dash, marker, hollow: false, reference }
    }

    /// The same for one mode, where S and B are drawn side by side: B has short dashes and hollow markers.
    pub fn in_mode(self, mode: &str) -> Style {
        if mode == "B" { Style { dash: "3 3", hollow: true, ..self } } else { Style { dash: "", ..self } }
    }

    /// The attributes of the line.
    pub fn stroke(&self) -> String {
        let dash = if self.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dash) };
        format!("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash}", self.colour, num(self.width))
    }

    /// A marker around a point; nothing for a line without markers.
    pub fn mark(&self, x: f64, y: f64) -> String {
        if self.marker.is_empty() {
            return String::new();
        }
        let (x, y, marker, colour) = (num(x), num(y), self.marker, self.colour);
        let paint = if self.hollow {
            format!("fill=\"#fff\" stroke=\"{colour}\" stroke-width=\"1.4\"")
        } else {
            format!("fill=\"{colour}\" stroke=\"#fff\" stroke-width=\"0.6\"")
        };
        format!("<path d=\"M{x} {y}{marker}\" {paint}/>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Algorithm;

    #[test]
    fn no_two_lines_look_alike() {
        let mut looks: Vec<(&str, &str, &str)> = Vec::new();
        let names = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).chain(["constant", "clone", "other"]);
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let style = Style::of(name);
            let look = (style.colour, style.dash, style.marker);
            assert!(!looks.contains(&look), "{name}");
            looks.push(look);
        }
    }

    #[test]
    fn the_modes_of_one_algorithm_share_a_colour_and_differ_in_line_and_marker() {
        let (s, b) = (Style::of("neural-greedy").in_mode("S"), Style::of("neural-greedy").in_mode("B"));
        assert_eq!((s.colour, s.marker), (b.colour, b.marker));
        assert!(s.dash != b.dash && s.hollow != b.hollow && s.mark(1.0, 2.0) != b.mark(1.0, 2.0));
    }
}
