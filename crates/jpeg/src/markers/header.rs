//! The frame header (T.81, B.2.2), and the limits on it.

use super::segment::{DAC, DHT, JPG, Segment};
use crate::error::{Error, Feature, Result};

/// The largest width and height that libjpeg reads (`JPEG_MAX_DIMENSION`).
const MAX_SIDE: u32 = 65_500;

/// The most components of an image.
pub(crate) const MAX_COMPONENTS: usize = 4;

/// Sizes beyond which an image is refused before any memory is allocated for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most pixels, width times height. Default 2²⁸ (16,384 × 16,384).
    pub pixels: u64,
    /// The most scans of an image. Default 500; encoders write about ten.
    pub scans: u32,
    /// The most times that the scans of an image may go over all of its blocks; a scan of some components counts for their
    /// share of the blocks. Default 100. Images with few blocks may have more.
    pub passes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { pixels: 1 << 28, scans: 500, passes: 100 }
    }
}

impl Limits {
    /// Replaces the limit on pixels.
    #[must_use]
    pub fn with_pixels(self, pixels: u64) -> Limits {
        Limits { pixels, ..self }
    }
}

/// How the coefficients are distributed over scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Process {
    /// Each coefficient completely in one scan (SOF0 or SOF1).
    Sequential,
    /// In several scans of increasing precision (SOF2).
    Progressive,
}

/// The colour space of the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Color {
    /// One component: luma.
    Grey,
    /// Luma and two chroma components, as in JFIF.
    YCbCr,
    /// Red, green and blue: by the Adobe marker or the component identifiers.
    Rgb,
    /// Cyan, magenta, yellow and black, inverted as Adobe writes them: 255 means without ink.
    Cmyk,
    /// YCbCr of inverted cyan, magenta and yellow; and inverted black: by the Adobe marker.
    Ycck,
    /// This number of components without a colour space, two or four: only of an image that is parsed for its
    /// [samples](crate::ParsedImage::parse_samples).
    Samples(u8),
}

/// One colour component of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Component {
    /// Identifier of the component in scan headers.
    pub id: u8,
    /// Horizontal sampling factor, 1 to 4.
    pub h: u8,
    /// Vertical sampling factor, 1 to 4.
    pub v: u8,
    /// Index of its quantisation table: 0 to 3, if a scan has the component.
    pub table: u8,
}

/// The header of an image: its frame header, and what its first scan header adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Width in pixels, as coded (EXIF orientation not applied).
    pub width: u32,
    /// Height in pixels, as coded.
    pub height: u32,
    /// How the coefficients are distributed over scans.
    pub process: Process,
    /// The colour space.
    pub color: Color,
    /// Whether one sequential scan has all components, one or three. Only such an image has entry points. The scans of any other are
    /// decoded together.
    pub one_scan: bool,
    /// MCUs between restart markers of the first scan; 0 if there are none.
    pub restart_interval: u32,
    pub(crate) components: [Component; MAX_COMPONENTS],
    /// The vertical sampling factor of the first component as coded. In `components`, that of a single one is 1.
    pub(crate) first_v: u8,
}

impl Header {
    /// The colour components: one, three or four; two only of an image that is parsed for its samples.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        let count = match self.color {
            Color::Grey => 1,
            Color::YCbCr | Color::Rgb => 3,
            Color::Cmyk | Color::Ycck => 4,
            Color::Samples(count) => usize::from(count),
        };
        &self.components[..count]
    }

    /// Largest horizontal and vertical sampling factor.
    pub(crate) fn max_sampling(&self) -> (u32, u32) {
        let c = self.components();
        let max = |f: fn(&Component) -> u8| u32::from(c.iter().map(f).max().unwrap_or(1));
        (max(|c| c.h), max(|c| c.v))
    }

    /// MCUs across and down in an interleaved scan.
    pub(crate) fn mcus(&self) -> (u32, u32) {
        let (h, v) = self.max_sampling();
        (self.width.div_ceil(8 * h), self.height.div_ceil(8 * v))
    }
}

/// Returns the process that a frame header marker selects; `None` for other markers.
pub(super) fn frame_process(marker: u8) -> Option<Result<Process>> {
    match marker {
        DHT | JPG | DAC => None,
        0xc0 | 0xc1 => Some(Ok(Process::Sequential)),
        0xc2 => Some(Ok(Process::Progressive)),
        0xc3 | 0xc5..=0xc7 => Some(Err(Error::Unsupported(Feature::Lossless))),
        0xc9..=0xcf => Some(Err(Error::Unsupported(Feature::Arithmetic))),
        _ => None,
    }
}

/// The part of a frame header that images of all kinds share.
pub(super) struct FrameSize<'a> {
    pub width: u32,
    pub height: u32,
    /// Number of components.
    pub count: u8,
    /// The bytes of the components: at least three for each.
    pub components: &'a [u8],
}

impl<'a> FrameSize<'a> {
    pub(super) fn parse(s: &Segment<'a>) -> Result<FrameSize<'a>> {
        let &[precision, h1, h0, w1, w0, count, ref components @ ..] = s.body else {
            return Err(s.error("at least 6 bytes", s.body.len() as u64));
        };
        if precision != 8 {
            return Err(Error::Unsupported(Feature::Precision(precision)));
        }
        let (width, height) = (u16::from_be_bytes([w1, w0]).into(), u16::from_be_bytes([h1, h0]).into());
        if width == 0 {
            return Err(s.error("a width of at least 1", width));
        }
        if height == 0 {
            return Err(Error::Unsupported(Feature::Height));
        }
        if components.len() != 3 * usize::from(count) || count == 0 {
            return Err(s.error("three bytes for each component", components.len() as u64));
        }
        Ok(FrameSize { width, height, count, components })
    }
}

/// A frame header whose colour space is not known yet.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    width: u32,
    height: u32,
    process: Process,
    components: [Component; MAX_COMPONENTS],
    first_v: u8,
    count: usize,
}

impl Frame {
    pub(super) fn parse(s: &Segment<'_>, process: Process, limits: &Limits) -> Result<Frame> {
        let FrameSize { width, height, count, components: rest } = FrameSize::parse(s)?;
        if width.max(height) > MAX_SIDE {
            return Err(s.error("a width and height of at most 65500", width.max(height)));
        }
        let (found, allowed) = (u64::from(width) * u64::from(height), limits.pixels);
        if found > allowed {
            return Err(Error::Limit { what: "pixels", allowed, found });
        }
        if !(1..=MAX_COMPONENTS as u8).contains(&count) {
            return Err(Error::Unsupported(Feature::Components(count)));
        }
        let mut components = [Component::default(); MAX_COMPONENTS];
        for (i, b) in rest.chunks_exact(3).take(usize::from(count)).enumerate() {
            let (h, v) = (b[1] >> 4, b[1] & 15);
            if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
                return Err(s.error("sampling factors from 1 to 4", b[1]));
            }
            // A single component is never interleaved, so its factors have no meaning.
            let (h, v) = if count == 1 { (1, 1) } else { (h, v) };
            components[i] = Component { id: b[0], h, v, table: b[2] };
        }
        Ok(Frame { width, height, process, components, first_v: rest[1] & 15, count: usize::from(count) })
    }

    /// Returns the header with the colour space that libjpeg chooses: by JFIF first, then by the Adobe marker's `transform`,
    /// then by the component identifiers. With `samples`, two and four components have none.
    pub(super) fn header(&self, jfif: bool, adobe: Option<u8>, samples: bool) -> Result<Header> {
        let ids = self.components.map(|c| c.id);
        let color = match (self.count, jfif, adobe) {
            (2 | 4, _, _) if samples => Color::Samples(self.count as u8),
            (2, _, _) => return Err(Error::Unsupported(Feature::Components(2))),
            (1, _, _) => Color::Grey,
            (4, _, None | Some(0)) => Color::Cmyk,
            (4, _, Some(_)) => Color::Ycck,
            (_, true, _) => Color::YCbCr,
            (_, _, Some(0)) => Color::Rgb,
            (_, _, None) if ids.starts_with(b"RGB") => Color::Rgb,
            _ => Color::YCbCr,
        };
        let Frame { width, height, process, components, first_v, .. } = *self;
        let header =
            Header { width, height, process, color, one_scan: false, restart_interval: 0, components, first_v };
        let (h, v) = header.max_sampling();
        let divides = |c: &Component| h % u32::from(c.h) == 0 && v % u32::from(c.v) == 0;
        match header.components().iter().all(divides) {
            true => Ok(header),
            false => Err(Error::Unsupported(Feature::Sampling)),
        }
    }
}
