//! Text from files, for a terminal.

use std::borrow::Cow;

/// Replaces control characters (C0 with newlines and tabs, DEL, C1) by U+FFFD. A name or a key from a file then neither
/// controls the terminal nor begins a new line.
///
/// ```
/// use shardtool_format::printable;
/// assert_eq!(printable("cat\x1b[2J\n"), "cat\u{fffd}[2J\u{fffd}");
/// assert_eq!(printable("猫/1.jpg"), "猫/1.jpg");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        Cow::Owned(text.replace(char::is_control, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
