//! The part of an image that was decoded, at which size and by which way.

use crate::geometry::Rect;
use crate::limits::Limits;
use crate::pixels::PixelsRef;

/// How to decode what a geometry needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionOptions {
    /// How large an image may be.
    pub limits: Limits,
    /// `reducing_gap` in PIL's sense: a JPEG is decoded at 1/2, 1/4 or 1/8 of its size, in the frequency domain and so
    /// for less work, where what is shown remains at least this many times as large as the result in both directions.
    /// Default 2.0, at which the result is hardly to be told from the exact one; less than 1 counts as 1. `None` never
    /// reduces: needed for masks, whose values must not mix.
    pub reducing_gap: Option<f64>,
}

impl Default for RegionOptions {
    fn default() -> Self {
        RegionOptions { limits: Limits::default(), reducing_gap: Some(2.0) }
    }
}

/// By which way pixels came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodePath {
    /// JPEG, entered by the entry points of the index.
    Entries,
    /// JPEG, entered by its restart markers.
    Restarts,
    /// JPEG, from its start to the last row needed.
    Start,
    /// JPEG of several scans (progressive), decoded whole as coefficients.
    Scans,
    /// Another format, or a JPEG of a rare kind: decoded whole by the `image` crate.
    WholeImage,
    /// Not decoded: pixels stored as they are.
    Raw,
}

/// The part of a stored image that was decoded.
#[derive(Clone, Copy, Debug)]
pub struct DecodedRegion<'a> {
    /// The decoded pixels.
    pub pixels: PixelsRef<'a>,
    /// Where they stand in the stored image, in pixels of the reduced one.
    pub rect: Rect,
    /// Size of the stored image: width, height.
    pub stored: (u32, u32),
    /// By how much the image was reduced in width and height, the last pixel of a row or column counting what there is of
    /// it: 1, 2, 4 or 8.
    pub reduction: u32,
    /// By which way it was decoded.
    pub path: DecodePath,
    /// Whether entry points were given that did not fit the image, so that it was decoded without them.
    pub entries_rejected: bool,
}

impl<'a> DecodedRegion<'a> {
    /// The window that shows the whole image.
    pub fn whole_image(pixels: PixelsRef<'a>) -> Self {
        let (width, height) = (pixels.width(), pixels.height());
        let rect = Rect { left: 0, top: 0, width, height };
        DecodedRegion {
            pixels,
            rect,
            stored: (width, height),
            reduction: 1,
            path: DecodePath::Raw,
            entries_rejected: false,
        }
    }
}
