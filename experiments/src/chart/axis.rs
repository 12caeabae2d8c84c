//! A log axis: where a value stands, which ticks it has and what they say.

/// A log axis between two pixel positions.
pub struct Axis {
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
    /// Position of the smallest value.
    pub start: f64,
    /// Position of the largest value.
    pub end: f64,
}

impl Axis {
    /// The position of a value; what lies outside is put on the edge.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).ln() - self.low.ln()) / (self.high.ln() - self.low.ln());
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Ticks and whether they carry a label: of 1-2-5 only the decades, if there are `enough` of those; all of them, if
    /// not; and round steps where the range is too narrow for either.
    pub fn ticks(&self, enough: usize) -> Vec<(f64, bool)> {
        let (low, high) = (self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9));
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let ticks: Vec<(f64, bool)> = decades
            .flat_map(|decade| [1.0, 2.0, 5.0].map(|lead| (lead * 10f64.powi(decade), lead == 1.0)))
            .filter(|(value, _)| (low..=high).contains(value))
            .collect();
        if ticks.len() < 3 {
            let step = round_step((high - low) / 3.0);
            let values = (1..).map(|i| ((low / step).ceil() - 1.0 + f64::from(i)) * step);
            return values.take_while(|value| *value <= high).map(|value| (value, true)).collect();
        }
        let all = ticks.iter().filter(|(_, decade)| *decade).count() < enough;
        ticks.into_iter().map(|(value, decade)| (value, decade || all)).collect()
    }
}

/// The largest of 1, 2, 5 times a power of ten that is not above `most`.
fn round_step(most: f64) -> f64 {
    let decade = 10f64.powf(most.log10().floor());
    [5.0, 2.0, 1.0].map(|lead| lead * decade).into_iter().find(|step| *step <= most).unwrap_or(decade)
}

/// A tick's text: 0.05, 20, 1k, 2·10⁻⁵.
pub fn label(value: f64) -> String {
    match value {
        v if v >= 999_999.5 => format!("{}M", round(v / 1e6)),
        v if v >= 999.5 => format!("{}k", round(v / 1e3)),
        v if v < 0.99e-4 => power_of_ten(v),
        v => round(v).to_string(),
    }
}

/// A small number as a multiple of a power of ten: 10⁻⁵, 2·10⁻⁵.
fn power_of_ten(value: f64) -> String {
    let text = format!("{:e}", round(value));
    let (lead, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let raised: String = exponent
        .chars()
        .map(|c| {
            c.to_digit(10).map_or('⁻', |digit| ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize])
        })
        .collect();
    if lead == "1" { format!("10{raised}") } else { format!("{lead}·10{raised}") }
}

/// Four significant digits: removes the noise of a multiplied step.
fn round(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// A coordinate with at most two decimals.
pub fn num(value: f64) -> String {
    let value = (value * 100.0).round() / 100.0;
    if value == 0.0 { "0".to_string() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, enough: usize) -> Vec<String> {
        let axis = Axis { low, high, start: 0.0, end: 1.0 };
        axis.ticks(enough).into_iter().filter(|(_, labelled)| *labelled).map(|(value, _)| label(value)).collect()
    }

    #[test]
    fn ticks_are_round_whatever_the_range() {
        assert_eq!(labels(10.0, 10_000.0, 2), ["10", "100", "1k", "10k"]);
        assert_eq!(labels(15.0, 150.0, 2), ["20", "50", "100"]);
        assert_eq!(labels(0.008, 0.3, 4), ["0.01", "0.02", "0.05", "0.1", "0.2"]);
        assert_eq!(labels(0.48, 0.74, 4), ["0.5", "0.55", "0.6", "0.65", "0.7"]);
        assert_eq!(labels(1e-6, 1e-3, 4), ["10⁻⁶", "10⁻⁵", "0.0001", "0.001"]);
        assert_eq!(labels(1.5e-6, 6e-6, 4), ["2·10⁻⁶", "3·10⁻⁶", "4·10⁻⁶", "5·10⁻⁶", "6·10⁻⁶"]);
        assert_eq!(labels(5e5, 2e6, 4), ["500k", "1M", "2M"]);
    }

    #[test]
    fn values_outside_the_axis_are_put_on_its_edge() {
        let axis = Axis { low: 0.01, high: 1.0, start: 300.0, end: 100.0 };
        assert_eq!([0.0, -1.0, 0.01, 1.0, 7.0].map(|value| axis.at(value)), [300.0, 300.0, 300.0, 100.0, 100.0]);
        assert!((axis.at(0.1) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn coordinates_have_at_most_two_decimals() {
        assert_eq!([1.0 / 3.0, 2.0, -0.001, 1e3 + 0.125].map(num), ["0.33", "2", "0", "1000.13"]);
    }
}
