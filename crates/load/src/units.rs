//! Formats numbers of bytes.

use std::fmt;

/// A number of bytes as text with a decimal unit, as the command line writes it: `512 B`, `3.5 MB`, `25.9 GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
        if self.0 < 1000 {
            return write!(f, "{} B", self.0);
        }
        let (mut value, mut unit) = (self.0 as f64 / 1000.0, 0);
        // 999.95 would be written as 1000.0.
        while value >= 999.95 && unit + 1 < UNITS.len() {
            (value, unit) = (value / 1000.0, unit + 1);
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_bytes_with_the_largest_unit_below() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_999, "1.0 MB"),
            (3 << 19, "1.6 MB"),
            (25_276_000_000, "25.3 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
