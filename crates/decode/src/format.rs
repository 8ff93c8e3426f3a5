//! Which format the bytes are, told by content; names never decide.

use std::fmt;

use crate::header;

/// How the pixels of an image are stored: what `image/format` of a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG (JFIF, Exif or bare).
    Jpeg,
    /// PNG.
    Png,
    /// WebP, lossy or lossless.
    WebP,
    /// GIF; the first frame counts.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// TIFF or BigTIFF; the first image counts.
    Tiff,
    /// AVIF.
    Avif,
    /// JPEG XL, bare or in a container; the first frame counts.
    Jxl,
    /// JPEG 2000, bare or in a container.
    Jp2,
    /// HEIF with any coding but AV1, such as HEIC.
    Heif,
    /// Pixels as they are: height × width × 3 bytes, RGB. Never sniffed, since it has no header.
    Raw,
    /// One zstd frame of [`Format::Raw`]. Never sniffed.
    RawZstd,
}

impl Format {
    /// Every format.
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

    /// The name in `image/format`: `jpeg`, `png`, `webp`, `gif`, `bmp`, `tiff`, `avif`, `jxl`, `jp2`, `heif`, `raw` or
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

    /// The format with that name, ASCII case ignored (TensorFlow's own scripts write `JPEG`); none if there is none.
    pub fn from_name(name: &str) -> Option<Format> {
        Self::ALL.into_iter().find(|f| f.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The format of `bytes`, detected from their first 18 (of AVIF and HEIF, from the brands that follow as well); none if they
/// begin like none of them.
pub fn sniff(bytes: &[u8]) -> Option<Format> {
    match bytes {
        [0xFF, 0xD8, 0xFF, ..] => Some(Format::Jpeg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Format::Png),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::WebP),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Format::Gif),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Format::Tiff),
        // Two letters are a weak sign, so the size of the header that follows must be a known one as well.
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
    fn text_is_no_image() {
        for text in ["", "B", "BM", "BMW is a car, not a bitmap.", "GIF88a", "RIFF0000WAVE", "\u{feff}text"] {
            assert_eq!(sniff(text.as_bytes()), None, "{text}");
        }
    }
}
