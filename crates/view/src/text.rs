//! Numbers and text for people.

pub(crate) use shardtool_format::printable as printable_text;

/// Formats a number of bytes with a decimal unit: `109.1 MB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 999.95 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Formats a count with separators between thousands: `1,281,167`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a count and a noun: `1 record`, `2 records`.
pub(crate) fn plural(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Formats a count and a noun with an irregular plural: `1 class`, `2 classes`.
pub(crate) fn plural_irregular(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Formats a share of a whole in percent.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match part {
        0 => "0 %".to_owned(),
        _ if part == whole => "100 %".to_owned(),
        _ => match 100.0 * part as f64 / whole.max(1) as f64 {
            share if share < 0.1 => "< 0.1 %".to_owned(),
            share => format!("{:.1} %", share.min(99.9)),
        },
    }
}

/// Formats a number with at most four significant digits after the point, without trailing zeros.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if value.abs() >= 1e6 || (value != 0.0 && value.abs() < 1e-3) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns bytes as text: invalid UTF-8 and control characters become U+FFFD.
pub(crate) fn printable(bytes: &[u8]) -> String {
    printable_text(&String::from_utf8_lossy(bytes)).into_owned()
}

/// Cuts text to at most `most` characters, with an ellipsis if something was cut.
pub(crate) fn fit(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Encodes bytes as RFC 4648, section 4, says.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().enumerate().fold(0u32, |bits, (i, byte)| bits | u32::from(*byte) << (16 - 8 * i));
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= group.len() { digit.into() } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        // The test vectors of section 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn shares_are_never_rounded_to_nothing_or_to_everything() {
        assert_eq!((percent(0, 10), percent(10, 10)), ("0 %".into(), "100 %".into()));
        assert_eq!((percent(1, 100_000), percent(99_999, 100_000)), ("< 0.1 %".into(), "99.9 %".into()));
        assert_eq!(percent(1, 8), "12.5 %");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(3.0, "3"), (0.25, "0.25"), (1.0 / 3.0, "0.3333"), (-1e-9, "-1.000e-9"), (2.5e7, "25000000")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(fit("grün und blau", 5), "grün…");
    }
}
