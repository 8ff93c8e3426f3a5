//! Formats numbers, bars and text for a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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
    let mut out = String::new();
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

/// Draws a bar whose length is `value / max` of `width` cells, in steps of an eighth of a cell. A value above 0 draws at
/// least one eighth.
pub(crate) fn bar(value: u64, max: u64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (value as f64 / max.max(1) as f64 * (width * 8) as f64).round() as usize;
    let eighths = if value > 0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

/// Returns the number of terminal cells that `text` takes: 2 for a Chinese character, 0 for a combining accent.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts text to at most `cells` terminal cells, with an ellipsis if something was cut.
pub(crate) fn fit(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = cells.saturating_sub(1);
    for c in text.chars() {
        let cells = c.width().unwrap_or(0);
        if cells > left {
            break;
        }
        left -= cells;
        out.push(c);
    }
    out + "…"
}

/// Cuts or pads text with spaces on the right to exactly `cells` terminal cells.
pub(crate) fn column(text: &str, cells: usize) -> String {
    let text = fit(text, cells);
    let padding = cells.saturating_sub(width(&text));
    text + &" ".repeat(padding)
}

/// Returns a share as a percentage, with four decimal places at most.
pub(crate) fn percent(share: f64) -> String {
    let digits = format!("{:.4}", 100.0 * share);
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Breaks text at spaces into lines of at most 80 terminal cells. Lines after the first begin with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    const CELLS: usize = 80;
    let mut lines = String::new();
    let mut used = 0;
    for (number, word) in text.split(' ').enumerate() {
        if used > width(indent) && used + 1 + width(word) > CELLS {
            lines = lines + "\n" + indent + word;
            used = width(indent) + width(word);
        } else {
            let space = if number == 0 { "" } else { " " };
            lines = lines + space + word;
            used += width(space) + width(word);
        }
    }
    lines
}

/// Replaces invalid UTF-8 and control characters by U+FFFD, so that bytes from a dataset cannot control the terminal.
pub(crate) fn printable(bytes: &[u8]) -> String {
    shardtool_format::printable(&String::from_utf8_lossy(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_separators_and_plurals() {
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
    fn bar_length_is_proportional_to_the_value() {
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 3), "█▌");
        assert_eq!(bar(1, 1_000_000, 4), "▏", "a value above 0 is visible");
        assert_eq!(bar(0, 10, 4), "");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable(b"a\x1b[2Jb\xff"), "a\u{fffd}[2Jb\u{fffd}");
    }

    #[test]
    fn lines_are_broken_at_80_cells() {
        let text = vec!["12345"; 30].join(" ");
        let lines = wrapped(&text, "  ");
        let widths: Vec<_> = lines.lines().map(width).collect();
        assert_eq!(widths, [77, 79, 25]);
        assert_eq!(lines.split_whitespace().count(), 30);
        assert_eq!(wrapped("  a b", "    "), "  a b", "spaces at the start stay");
        assert_eq!(wrapped(&"x".repeat(100), "  "), "x".repeat(100), "a long word is not broken");
    }

    #[test]
    fn text_is_cut_and_padded_by_terminal_cells() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("猫犬鳥", 6), "猫犬鳥");
        assert_eq!(fit("猫犬鳥", 5), "猫犬…");
        assert_eq!(fit("猫犬鳥", 4), "猫…", "half a character does not fit");
        assert_eq!(column("e\u{301}te\u{301}", 4), "e\u{301}te\u{301} ", "combining accents take no cell");
        assert_eq!((column("猫", 4), column("abcdef", 4)), ("猫  ".into(), "abc…".into()));
    }
}
