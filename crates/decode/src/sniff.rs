//! Detects an image's format from its content. File names and extensions are not used.

use crate::format::Format;
use crate::header;

/// Detects the format from the first 18 bytes; for AVIF and HEIF also from the brands that follow. Returns `None` if they
/// are not the start of a known format.
pub fn sniff(bytes: &[u8]) -> Option<Format> {
    match bytes {
        [0xFF, 0xD8, 0xFF, ..] => Some(Format::Jpeg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Format::Png),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::WebP),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Format::Gif),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Format::Tiff),
        // Two letters are a weak signature, so the size of the following header must also be a known one.
        [b'B', b'M', _, _, _, _, _, _, _, _, _, _, _, _, 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0, ..] => {
            Some(Format::Bmp)
        }
        [0xFF, 0x0A, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', b'\r', b'\n', 0x87, b'\n', ..] => Some(Format::Jxl),
        [0xFF, 0x4F, 0xFF, 0x51, ..] | [0, 0, 0, 12, b'j', b'P', b' ', b' ', b'\r', b'\n', 0x87, b'\n', ..] => {
            Some(Format::Jp2)
        }
        _ => header::brand(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_no_format_in_text() {
        for text in ["", "B", "BM", "BMW is a car, not a bitmap.", "GIF88a", "RIFF0000WAVE", "\u{feff}text"] {
            assert_eq!(sniff(text.as_bytes()), None, "{text}");
        }
    }
}
