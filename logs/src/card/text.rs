//! Text and numbers of a card.

/// Text that is safe between tags and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // neither a terminal's nor a text direction's commands have a place in a name
            c if c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c) => {
                safe.push('\u{fffd}');
            }
            c => safe.push(c),
        }
    }
    safe
}

/// A number in four significant digits, without noise at its end.
pub fn number(v: f64) -> String {
    let size = v.abs();
    if !v.is_finite() || size == 0.0 {
        return if size == 0.0 {
            "0".to_owned()
        } else if v.is_nan() {
            "–".to_owned()
        } else {
            format!("{v}")
        };
    }
    let text = if !(1e-4..1e9).contains(&size) {
        format!("{v:.2e}")
    } else if v.fract() == 0.0 || size >= 1e4 {
        thousands(v.round())
    } else {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 7) as usize;
        let text = format!("{v:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    text.replace('-', "−")
}

/// The same with its sign.
pub(super) fn signed(v: f64) -> String {
    if v > 0.0 { format!("+{}", number(v)) } else { number(v) }
}

/// A whole number with commas.
fn thousands(v: f64) -> String {
    let digits = format!("{:.0}", v.abs());
    let mut text = if v < 0.0 { "-".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count.
pub(super) fn count(n: u64) -> String {
    thousands(n as f64)
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{}\u{a0}%", number((share * 1e6).round() / 1e4))
}

/// With a capital letter.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_keep_their_size() {
        let all = [0.0, 0.51234567, 12.5, 1234.56, 1_234_567.8, -0.25, 3e-9, 2.5e12, 100.0, f64::NAN];
        let want = ["0", "0.5123", "12.5", "1235", "1,234,568", "−0.25", "3.00e−9", "2.50e12", "100", "–"];
        assert_eq!(all.map(number), want);
        assert_eq!(
            (percent(0.123456), signed(0.5), count(12345)),
            ("12.35\u{a0}%".into(), "+0.5".into(), "12,345".into())
        );
    }

    #[test]
    fn text_is_never_markup() {
        assert_eq!(escape("<script>'\"&\u{202e}x"), "&lt;script&gt;&#39;&quot;&amp;\u{fffd}x");
    }
}
