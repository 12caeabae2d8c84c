//! Results for people: a table for the terminal and one HTML page that opens without a network.
//!
//! The page is one file: its text and tables are written here, so they can be read without JavaScript; its charts are
//! drawn by the page's own script from the same [`ReportData`], embedded as JSON.

mod data;
mod number;
mod page;
mod table;
mod values;

pub use data::{Comparison, ReportChoice, ReportCurve, ReportData, ReportFigure, ReportProblem, RunInfo};
pub use page::html;
pub use table::table;
