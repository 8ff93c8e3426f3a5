//! The part of an image that was decoded: which pixels, at what reduction, and by which decode path.

use crate::float_range::FloatRange;
use crate::limits::Limits;
use crate::pixel_format::PixelFormat;
use crate::pixels::PixelsRef;
use crate::transform::rect::Rect;
use crate::truncated::Truncated;

/// How to decode the region that a geometry needs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RegionOptions {
    /// How large an image may be.
    pub limits: Limits,
    /// Minimum ratio of the decoded area to the result, in both directions, as PIL's `reducing_gap`. While it holds, a JPEG
    /// is decoded at 1/2, 1/4 or 1/8 of its size, in the frequency domain, which is faster. At 2.0, the result is hardly
    /// distinguishable from the exact one. Values below 1 count as 1. Default: `None`, which decodes at full size.
    pub reducing_gap: Option<f64>,
    /// See [`DecodeOptions::float_range`](crate::DecodeOptions::float_range).
    pub float_range: Option<FloatRange>,
    /// See [`DecodeOptions::truncated`](crate::DecodeOptions::truncated).
    pub truncated: Truncated,
    /// The format of the decoded pixels. Default: RGB of 8 bits.
    pub pixel_format: PixelFormat,
}

impl Default for RegionOptions {
    fn default() -> Self {
        RegionOptions {
            limits: Limits::default(),
            reducing_gap: None,
            float_range: None,
            truncated: Truncated::Error,
            pixel_format: PixelFormat::RGB8,
        }
    }
}

impl RegionOptions {
    /// Sets [`limits`](Self::limits).
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets [`reducing_gap`](Self::reducing_gap).
    pub fn with_reducing_gap(mut self, gap: Option<f64>) -> Self {
        self.reducing_gap = gap;
        self
    }

    /// Sets [`float_range`](Self::float_range).
    pub fn with_float_range(mut self, range: Option<FloatRange>) -> Self {
        self.float_range = range;
        self
    }

    /// Sets [`truncated`](Self::truncated).
    pub fn with_truncated(mut self, truncated: Truncated) -> Self {
        self.truncated = truncated;
        self
    }

    /// Sets [`pixel_format`](Self::pixel_format).
    pub fn with_pixel_format(mut self, format: PixelFormat) -> Self {
        self.pixel_format = format;
        self
    }
}

/// Which decode path produced the pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodePath {
    /// JPEG, entered at the entry points of the index.
    Entries,
    /// JPEG, entered at its restart markers.
    Restarts,
    /// JPEG, decoded from the start to the last row needed.
    Start,
    /// JPEG with several scans (progressive) or four components: the scans are decoded together up to the last row needed.
    Scans,
    /// PNG and WebP: up to the last row needed.
    Rows,
    /// Another format: the whole image was decoded.
    WholeImage,
    /// Pixels stored without coding.
    Raw,
}

/// The part of a stored image that was decoded.
#[derive(Clone, Copy, Debug)]
pub struct DecodedRegion<'a> {
    /// The decoded pixels.
    pub pixels: PixelsRef<'a>,
    /// Their rectangle in the stored image, in pixels of the reduced image.
    pub rect: Rect,
    /// Width and height of the stored image.
    pub stored: (u32, u32),
    /// Factor by which width and height were reduced, rounding up: 1, 2, 4 or 8.
    pub reduction: u32,
    /// Which decode path was taken.
    pub path: DecodePath,
    /// Whether the given entry points did not fit the image, so that it was decoded without them.
    pub entries_rejected: bool,
    /// Whether it is a JPEG that is cut or damaged there, which [`Truncated::Fill`] made an image of.
    pub filled: bool,
}

impl<'a> DecodedRegion<'a> {
    /// Returns the region that covers the whole image.
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
            filled: false,
        }
    }
}
