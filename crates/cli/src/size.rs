//! Sizes on the command line: `256MiB`, `1.5GB`, `4096`.

/// Parses a size and returns bytes. Units are B, kB, MB, GB, TB and KiB, MiB, GiB, TiB, in any case.
///
/// # Errors
/// A message for the user, if the text is not a size.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1u64 << 40,
        other => return Err(format!("unknown unit `{other}`; use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB")),
    };
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => {
            let value: f64 = number.parse().map_err(|_| format!("invalid size `{text}`; for example 256MiB"))?;
            Some((value * factor as f64).round()).filter(|v| (0.0..u64::MAX as f64).contains(v)).map(|v| v as u64)
        }
    };
    bytes.ok_or_else(|| format!("size `{text}` is larger than 64 bits allow"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn parses_sizes_and_rejects_other_text() {
        for (text, bytes) in [("0", 0), ("4096", 4096), ("256MiB", 256 << 20), ("1.5 gb", 1_500_000_000), ("2k", 2000)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "MiB", "1.2.3", "5 parsecs", "-1", "99999999999999999999", "20000000TiB", "1e400"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
