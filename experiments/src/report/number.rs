//! Numbers for people: three significant digits.

/// Decimals that show three significant digits.
pub fn decimals(value: f64) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 3;
    }
    // Rounding first: 0.09996 is 0.100, which needs three decimals and not four.
    let exponent: i32 = format!("{value:.2e}").rsplit('e').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    (2 - exponent).max(0) as usize
}

/// A mean and its half interval with the mean's decimals; the half interval is left out where it is `None`.
pub fn with_interval(mean: f64, half: Option<f64>) -> (String, Option<String>) {
    let decimals = decimals(mean);
    (format!("{mean:.decimals$}"), half.map(|half| format!("{half:.decimals$}")))
}

/// 10000 as `10,000`.
pub fn thousands(n: usize) -> String {
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

/// A time for people: `4.2 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// The number with at most six significant digits: more are noise and would double the page.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits_without_powers_of_ten() {
        let text = |value| with_interval(value, None).0;
        assert_eq!([0.0123456, 0.09996, 12.345, 1234.5, 0.0].map(text), ["0.0123", "0.100", "12.3", "1234", "0.000"]);
        assert_eq!(text(0.000_012_34), "0.0000123");
        assert_eq!(with_interval(0.512, Some(0.0204)), ("0.512".into(), Some("0.020".into())));
    }

    #[test]
    fn counts_have_commas_and_times_have_two_units() {
        assert_eq!([10, 1000, 1_234_567].map(thousands), ["10", "1,000", "1,234,567"]);
        assert_eq!([4.24, 59.97, 200.4, 7500.0].map(duration), ["4.2 s", "60.0 s", "3 min 20 s", "2 h 5 min"]);
    }

    #[test]
    fn six_digits_remain() {
        assert_eq!(rounded(0.123_456_789), 0.123457);
        assert_eq!(rounded(15_000.0), 15_000.0);
        assert!(rounded(f64::NAN).is_nan());
    }
}
