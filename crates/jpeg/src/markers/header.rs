//! What the frame header says of the image, and the limits it is held to.

use crate::error::{Error, Feature, Result};
use crate::markers::parser::Parser;
use crate::markers::segment::Segment;

/// Sizes beyond which an image is refused before anything is allocated for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Most pixels, width times height. Default 2²⁸ (16,384 × 16,384).
    pub pixels: u64,
    /// Most scans that a progressive image may have. Default 100; encoders write about ten.
    pub scans: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { pixels: 1 << 28, scans: 100 }
    }
}

impl Limits {
    /// The default with another number of pixels.
    #[must_use]
    pub fn with_pixels(self, pixels: u64) -> Limits {
        Limits { pixels, ..self }
    }
}

/// How the coefficients are laid out over scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// One pass over the image (SOF0, or SOF1 with Huffman codes).
    Sequential,
    /// Several passes, each adding precision (SOF2).
    Progressive,
}

/// What the components mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// One component: lightness.
    Grey,
    /// Lightness and two differences of colour, as in JFIF.
    YCbCr,
    /// Red, green and blue, as the Adobe marker or the component names say.
    Rgb,
}

/// One colour component of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Component {
    /// Name of the component in scans.
    pub id: u8,
    /// Horizontal sampling factor, 1 to 4.
    pub h: u8,
    /// Vertical sampling factor, 1 to 4.
    pub v: u8,
    /// Number of its quantisation table, 0 to 3.
    pub table: u8,
}

/// What the frame header of a JPEG says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Width in pixels, as coded (EXIF orientation not applied).
    pub width: u32,
    /// Height in pixels, as coded.
    pub height: u32,
    /// Sequential or progressive.
    pub process: Process,
    /// What the components mean.
    pub color: Color,
    /// Whether all components come in one sequential scan, in order: only such an image has entry points, others are
    /// decoded by way of all of their coefficients.
    pub one_scan: bool,
    /// MCUs from a restart marker to the next one, in the first scan; 0 if there are none.
    pub restart_interval: u32,
    pub(crate) components: [Component; 3],
}

impl Header {
    /// Reads the header of `jpeg`, up to its first scan.
    ///
    /// # Errors
    /// What is not a JPEG, breaks the format, is beyond `limits`, or is of a kind that this crate leaves to others
    /// ([`Error::Unsupported`]).
    pub fn parse(jpeg: &[u8], limits: &Limits) -> Result<Header> {
        Ok(Parser::start(jpeg, limits)?.0.header)
    }

    /// The colour components: one or three.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.components[..if self.color == Color::Grey { 1 } else { 3 }]
    }

    /// Largest horizontal and vertical sampling factor.
    pub(crate) fn max_sampling(&self) -> (u32, u32) {
        let c = self.components();
        let max = |f: fn(&Component) -> u8| u32::from(c.iter().map(f).max().unwrap_or(1));
        (max(|c| c.h), max(|c| c.v))
    }

    /// MCUs across and down an interleaved scan.
    pub(crate) fn mcus(&self) -> (u32, u32) {
        let (h, v) = self.max_sampling();
        (self.width.div_ceil(8 * h), self.height.div_ceil(8 * v))
    }
}

/// The frame header before its colours are known.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    width: u32,
    height: u32,
    process: Process,
    components: [Component; 3],
    count: usize,
}

impl Frame {
    pub(crate) fn parse(s: &Segment<'_>, limits: &Limits) -> Result<Frame> {
        let &[precision, h1, h0, w1, w0, count, ref rest @ ..] = s.body else {
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
        let (found, allowed) = (u64::from(width) * u64::from(height), limits.pixels);
        if found > allowed {
            return Err(Error::Limit { what: "pixels", allowed, found });
        }
        if rest.len() < 3 * usize::from(count) || count == 0 {
            return Err(s.error("three bytes for each component", rest.len() as u64));
        }
        if count != 1 && count != 3 {
            return Err(Error::Unsupported(Feature::Components(count)));
        }
        let process = if s.marker == 0xc2 { Process::Progressive } else { Process::Sequential };
        let mut components = [Component::default(); 3];
        for (i, b) in rest.chunks_exact(3).take(usize::from(count)).enumerate() {
            let (h, v) = (b[1] >> 4, b[1] & 15);
            if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
                return Err(s.error("sampling factors from 1 to 4", b[1]));
            }
            if b[2] > 3 {
                return Err(s.error("a quantisation table numbered 0 to 3", b[2]));
            }
            // A single component is never interleaved, so its factors mean nothing.
            let (h, v) = if count == 1 { (1, 1) } else { (h, v) };
            if components[..i].iter().any(|c| c.id == b[0]) {
                return Err(s.error("a different name for each component", b[0]));
            }
            components[i] = Component { id: b[0], h, v, table: b[2] };
        }
        Ok(Frame { width, height, process, components, count: usize::from(count) })
    }

    /// The colours as libjpeg takes them: JFIF first, then the Adobe marker, then the components' names.
    pub(crate) fn header(&self, jfif: bool, adobe: Option<u8>) -> Result<Header> {
        let ids = self.components.map(|c| c.id);
        let color = match (self.count, jfif, adobe) {
            (1, _, _) => Color::Grey,
            (_, true, _) => Color::YCbCr,
            (_, _, Some(0)) => Color::Rgb,
            (_, _, None) if ids == *b"RGB" => Color::Rgb,
            _ => Color::YCbCr,
        };
        let Frame { width, height, process, components, .. } = *self;
        let header = Header { width, height, process, color, one_scan: false, restart_interval: 0, components };
        let (h, v) = header.max_sampling();
        let divides = |c: &Component| h % u32::from(c.h) == 0 && v % u32::from(c.v) == 0;
        // T.81 allows ten blocks in an MCU.
        let blocks: u32 = header.components().iter().map(|c| u32::from(c.h) * u32::from(c.v)).sum();
        if !header.components().iter().all(divides) || blocks > 10 {
            return Err(Error::Unsupported(Feature::Sampling));
        }
        Ok(header)
    }
}
