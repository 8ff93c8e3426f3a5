//! How numbers and bars look in a terminal.

/// Bytes as a person reads them: `109.1 MB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 999.95 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A count with its thousands apart: `1,281,167`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `n` and a noun in the right number: `1 record`, `2 records`.
pub(crate) fn plural(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// The same, where the plural is no plain one: `1 class`, `2 classes`.
pub(crate) fn plural_irregular(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A bar of `width` cells, as full as `value` is of `most`; eighths of a cell are drawn.
pub(crate) fn bar(value: u64, most: u64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (value as f64 / most.max(1) as f64 * (width * 8) as f64).round() as usize;
    let eighths = if value > 0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

/// Text cut to `width` characters, with an ellipsis where something is missing.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Bytes from a dataset as text that cannot command a terminal: invalid UTF-8 and control characters are shown, not sent.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (n, text) in [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_960, "1.0 MB"), (109_128_000, "109.1 MB")]
        {
            assert_eq!(bytes(n), text);
        }
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_281_167, "1,281,167")] {
            assert_eq!(count(n), text);
        }
        assert_eq!((plural(1, "record"), plural(2000, "record")), ("1 record".into(), "2,000 records".into()));
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 3), "█▌");
        assert_eq!(bar(1, 1_000_000, 4), "▏", "something is never nothing");
        assert_eq!(bar(0, 10, 4), "");
    }

    #[test]
    fn what_a_dataset_holds_cannot_command_the_terminal() {
        assert_eq!(printable(b"a\x1b[2Jb\xff"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(fit("abcdef", 4), "abc…");
    }
}
