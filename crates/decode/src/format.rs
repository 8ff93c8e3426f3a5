//! Image formats and their names.

use std::fmt;

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
        Self::ALL.into_iter().find(|f| match f {
            Format::Raw | Format::RawZstd => f.name() == name,
            file => file.name().eq_ignore_ascii_case(name),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format whose images are stored as PNG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConvertedFormat {
    /// PBM, PGM, PPM and PAM, of which the first image is taken.
    Netpbm,
    /// QOI.
    Qoi,
    /// ICO, of which the image is taken that Pillow takes: the largest.
    Ico,
    /// TGA.
    Tga,
}

impl fmt::Display for ConvertedFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConvertedFormat::Netpbm => "Netpbm",
            ConvertedFormat::Qoi => "QOI",
            ConvertedFormat::Ico => "ICO",
            ConvertedFormat::Tga => "TGA",
        })
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
}
