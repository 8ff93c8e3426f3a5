//! What a caller wants of an image: a part of it, at a scale.

use crate::markers::header::Header;

/// A rectangle, in pixels of the scaled image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    /// Left edge.
    pub x: u32,
    /// Top edge.
    pub y: u32,
    /// Width, at least 1.
    pub width: u32,
    /// Height, at least 1.
    pub height: u32,
}

/// The size at which the image is decoded, by smaller inverse transforms as in libjpeg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// The coded size.
    #[default]
    Full,
    /// Half the width and height, rounded up.
    Half,
    /// A quarter of the width and height, rounded up.
    Quarter,
    /// An eighth of the width and height, rounded up.
    Eighth,
}

impl Scale {
    /// All scales, from the largest image to the smallest.
    pub const ALL: [Scale; 4] = [Scale::Full, Scale::Half, Scale::Quarter, Scale::Eighth];

    /// The divisor of width and height: 1, 2, 4 or 8.
    #[must_use]
    pub fn divisor(self) -> u32 {
        8 / self.block()
    }

    /// Samples across a block at this scale.
    pub(crate) fn block(self) -> u32 {
        match self {
            Scale::Full => 8,
            Scale::Half => 4,
            Scale::Quarter => 2,
            Scale::Eighth => 1,
        }
    }
}

/// The channels of the pixels that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Channels {
    /// Red, green and blue. Grey is repeated three times.
    #[default]
    Rgb,
    /// Grey alone, as libjpeg's `JCS_GRAYSCALE`: the luma, without decoding the chroma; of any other image 0.299 R + 0.587 G +
    /// 0.114 B.
    Gray,
}

impl Channels {
    /// Returns the number of channels, 3 or 1.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Channels::Rgb => 3,
            Channels::Gray => 1,
        }
    }
}

/// What to decode of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// The part to decode, in pixels of the scaled image; `None` for all of it.
    pub rect: Option<Rect>,
    /// The size at which to decode.
    pub scale: Scale,
    /// The channels to decode to.
    pub channels: Channels,
    /// Whether a cut or damaged image is decoded as libjpeg-turbo decodes it after a warning. By default it is an error.
    pub fill: bool,
}

impl Header {
    /// Returns width and height at a scale, in pixels.
    #[must_use]
    pub fn size(&self, scale: Scale) -> (u32, u32) {
        (self.width.div_ceil(scale.divisor()), self.height.div_ceil(scale.divisor()))
    }
}
