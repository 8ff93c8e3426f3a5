//! How large an image may be. Checked on the header, before memory for pixels is allocated. Compressed metadata (colour
//! profiles, texts) need no limit, since they are not read.

use crate::error::{Error, LimitKind};
use crate::format::Format;

/// Chunks of a PNG at most. The decoder spends about 20 µs on each, however short it is. Encoders write chunks of 8 KiB or
/// more.
pub(crate) const MAX_PNG_CHUNKS: u64 = 1 << 16;

/// How large an image may be. The defaults admit the images of all present cameras and refuse decompression bombs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Width times height, in pixels. Default 2²⁷ (134 megapixels).
    pub max_pixels: u64,
    /// The longer side, in pixels. Default 65,535, the maximum of JPEG.
    pub max_side: u32,
    /// Memory for decoding one image, in bytes: its pixels at the depth of the file. Default 1 GiB, which is `max_pixels`
    /// pixels of 16-bit RGBA.
    pub max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_pixels: 1 << 27, max_side: 65_535, max_bytes: 1 << 30 }
    }
}

impl Limits {
    /// Sets [`max_pixels`](Self::max_pixels).
    pub fn with_max_pixels(mut self, pixels: u64) -> Self {
        self.max_pixels = pixels;
        self
    }

    /// Sets [`max_side`](Self::max_side).
    pub fn with_max_side(mut self, side: u32) -> Self {
        self.max_side = side;
        self
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Checks the size of an image against the limits. `bytes_per_pixel` is what the decoder writes per pixel; 3 for RGB.
    ///
    /// # Errors
    /// [`Error::Empty`] if the image has no pixels; [`Error::Limit`] if it exceeds a limit.
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
    fn names_the_limit_that_is_exceeded() {
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
    fn message_names_the_option_to_raise() {
        let e = Limits::default().check(Format::Jpeg, 65_535, 65_535, 3).unwrap_err().to_string();
        assert_eq!(
            e,
            "jpeg of 65535x65535: 4294836225 pixels exceed the limit of 134217728; raise `max_pixels` to allow it"
        );
    }
}
