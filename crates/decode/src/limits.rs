//! How large an image may be. Checked on the header, before anything is allocated for the pixels.

use crate::error::{Error, LimitKind};
use crate::format::Format;

/// How large an image may be. The defaults admit every camera of today and stop decompression bombs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Width times height, in pixels. Default 2²⁷ (134 megapixels).
    pub max_pixels: u64,
    /// The longer side, in pixels. Default 65,535, the longest that JPEG can say.
    pub max_side: u32,
    /// Memory for decoding one image, in bytes: the pixels at the depth of the file. Default 1 GiB, which is
    /// `max_pixels` at the deepest that is decoded, 16-bit RGBA.
    pub max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_pixels: 1 << 27, max_side: 65_535, max_bytes: 1 << 30 }
    }
}

impl Limits {
    /// Refuses an image without pixels, or of more pixels, a longer side or more bytes than allowed.
    /// `bytes_per_pixel` is what the decoder writes for a pixel; 3 for RGB.
    ///
    /// # Errors
    /// [`Error::Empty`] and [`Error::Limit`], which names the limit.
    pub fn check(&self, format: Format, width: u32, height: u32, bytes_per_pixel: u8) -> Result<(), Error> {
        if width == 0 || height == 0 {
            return Err(Error::Empty { format, width, height });
        }
        let refuse = |kind, needed, allowed| Err(Error::Limit { format, width, height, kind, needed, allowed });
        let side = width.max(height);
        if side > self.max_side {
            return refuse(LimitKind::Side, side.into(), self.max_side.into());
        }
        let pixels = u64::from(width) * u64::from(height);
        if pixels > self.max_pixels {
            return refuse(LimitKind::Pixels, pixels, self.max_pixels);
        }
        let bytes = pixels.saturating_mul(bytes_per_pixel.into());
        if bytes > self.max_bytes || usize::try_from(bytes).is_err() {
            return refuse(LimitKind::Bytes, bytes, self.max_bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_named() {
        let limits = Limits { max_pixels: 100, max_side: 50, max_bytes: 240 };
        let kind = |w, h, bpp| match limits.check(Format::Png, w, h, bpp) {
            Ok(()) => None,
            Err(Error::Limit { kind, .. }) => Some(kind),
            Err(e) => panic!("{e}"),
        };
        assert_eq!(kind(50, 2, 2), None);
        assert_eq!(kind(51, 1, 1), Some(LimitKind::Side));
        assert_eq!(kind(11, 10, 1), Some(LimitKind::Pixels));
        assert_eq!(kind(10, 10, 3), Some(LimitKind::Bytes));
        assert!(matches!(limits.check(Format::Png, 0, 4, 3), Err(Error::Empty { .. })));
        assert!(Limits::default().check(Format::Jpeg, u32::MAX, u32::MAX, 255).is_err());
    }

    #[test]
    fn the_message_says_what_to_raise() {
        let e = Limits::default().check(Format::Jpeg, 65_535, 65_535, 3).unwrap_err().to_string();
        assert_eq!(
            e,
            "jpeg of 65535x65535: 4294836225 pixels exceed the limit of 134217728; raise `max_pixels` if it is meant"
        );
    }
}
