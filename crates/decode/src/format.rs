//! Image formats, detected from content. File names and extensions are not used.

use std::fmt;

use crate::header;

/// An image format: the value of `image/format` in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JPEG (JFIF, Exif or bare).
    Jpeg,
    /// PNG.
    Png,
    /// WebP, lossy or lossless.
    WebP,
    /// GIF; the first frame is decoded.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// TIFF or BigTIFF; the first image is decoded.
    Tiff,
    /// AVIF.
    Avif,
    /// JPEG XL, a bare codestream or in a container; the first frame is decoded.
    Jxl,
    /// JPEG 2000, a bare codestream or in a container.
    Jp2,
    /// HEIF with any codec except AV1, such as HEIC.
    Heif,
    /// Pixels without coding: height × width × 3 bytes, RGB. Not detected from content, because it has no header.
    Raw,
    /// [`Format::Raw`] in one zstd frame. Not detected from content.
    RawZstd,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 12] = [
        Format::Jpeg,
        Format::Png,
        Format::WebP,
        Format::Gif,
        Format::Bmp,
        Format::Tiff,
        Format::Avif,
        Format::Jxl,
        Format::Jp2,
        Format::Heif,
        Format::Raw,
        Format::RawZstd,
    ];

    /// Returns the name in `image/format`: `jpeg`, `png`, `webp`, `gif`, `bmp`, `tiff`, `avif`, `jxl`, `jp2`, `heif`, `raw` or
    /// `raw-zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jpeg => "jpeg",
            Format::Png => "png",
            Format::WebP => "webp",
            Format::Gif => "gif",
            Format::Bmp => "bmp",
            Format::Tiff => "tiff",
            Format::Avif => "avif",
            Format::Jxl => "jxl",
            Format::Jp2 => "jp2",
            Format::Heif => "heif",
            Format::Raw => "raw",
            Format::RawZstd => "raw-zstd",
        }
    }

    /// Returns the format with this name, ignoring ASCII case, since TensorFlow's scripts write `JPEG`.
    pub fn from_name(name: &str) -> Option<Format> {
        Self::ALL.into_iter().find(|f| f.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
    fn names_round_trip() {
        for f in Format::ALL {
            assert_eq!(Format::from_name(f.name()), Some(f));
        }
        assert_eq!(Format::from_name("JPEG"), Some(Format::Jpeg));
        assert_eq!(Format::from_name("jpg"), None);
    }

    #[test]
    fn detects_no_format_in_text() {
        for text in ["", "B", "BM", "BMW is a car, not a bitmap.", "GIF88a", "RIFF0000WAVE", "\u{feff}text"] {
            assert_eq!(sniff(text.as_bytes()), None, "{text}");
        }
    }
}
