//! Where things are: which blocks, samples and rows a request touches, at which scale.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::markers::header::Header;

/// A rectangle, in pixels of the scaled image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    /// Left edge.
    pub x: u32,
    /// Upper edge.
    pub y: u32,
    /// Width, at least 1.
    pub width: u32,
    /// Height, at least 1.
    pub height: u32,
}

/// How much smaller the image is decoded, in the frequency domain, as libjpeg does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// As coded.
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

    /// What width and height are divided by: 1, 2, 4 or 8.
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

/// What to decode of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// The part wanted; `None` for all. In pixels of the scaled image.
    pub rect: Option<Rect>,
    /// How much smaller to decode.
    pub scale: Scale,
}

impl Header {
    /// Width and height at that scale, in pixels.
    #[must_use]
    pub fn size(&self, scale: Scale) -> (u32, u32) {
        (self.width.div_ceil(scale.divisor()), self.height.div_ceil(scale.divisor()))
    }
}

/// How a component's samples become one for each pixel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Upsample {
    /// There is one for each pixel.
    None,
    /// Each is repeated, across and down.
    Repeat,
    /// Triangle filter across.
    Across,
    /// Triangle filter down.
    Down,
    /// Triangle filter across and down.
    Both,
}

/// One component of a request.
#[derive(Clone)]
pub(crate) struct Plane {
    /// Sampling factors: blocks across and down an MCU.
    pub h: u32,
    pub v: u32,
    /// Samples across and down a decoded block: 8, 4, 2 or 1.
    pub block: u32,
    /// Pixels a sample covers, across and down.
    pub expand: (u32, u32),
    pub upsample: Upsample,
    /// Sample rows of the whole component, at this scale.
    pub height: u32,
    /// Samples needed across.
    pub columns: Range<u32>,
    /// Sample rows needed.
    pub rows: Range<u32>,
    /// Index of the component's first block in an MCU.
    pub first: u32,
    /// Quantisation table, in natural order.
    pub quant: [u16; 64],
}

impl Plane {
    /// Sample rows that pixel row `y` needs: the nearer one, and the other one (the same, where one is enough).
    pub(crate) fn rows_for(&self, y: u32) -> (u32, u32) {
        match self.upsample {
            Upsample::None => (y, y),
            Upsample::Repeat | Upsample::Across => (y / self.expand.1, y / self.expand.1),
            Upsample::Down | Upsample::Both => {
                let near = y / 2;
                let far = if y.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(self.height - 1) };
                (near, far)
            }
        }
    }

    /// Columns of blocks needed.
    pub(crate) fn block_columns(&self) -> Range<u32> {
        self.columns.start / self.block..self.columns.end.div_ceil(self.block)
    }

    /// Sample rows in one row of MCUs.
    pub(crate) fn rows_per_mcu(&self) -> u32 {
        self.v * self.block
    }
}

/// A request, resolved against a header.
#[derive(Clone)]
pub(crate) struct DecodePlan {
    /// The pixels wanted.
    pub rect: Rect,
    pub planes: [Plane; 3],
    pub count: usize,
    /// MCUs across and down.
    pub mcus: (u32, u32),
    /// BlockRow in an MCU.
    pub mcu_blocks: u32,
    /// Rows of MCUs needed.
    pub mcu_rows: Range<u32>,
}

impl DecodePlan {
    pub(crate) fn new(header: &Header, quant: &[Option<[u16; 64]>; 3], request: &Request) -> Result<DecodePlan> {
        let (image_width, image_height) = header.size(request.scale);
        let rect = request.rect.unwrap_or(Rect { x: 0, y: 0, width: image_width, height: image_height });
        let Rect { x, y, width, height } = rect;
        let inside = |from: u32, n: u32, all: u32| n > 0 && from < all && n <= all - from;
        if !inside(x, width, image_width) || !inside(y, height, image_height) {
            return Err(Error::Rectangle { x, y, width, height, image_width, image_height });
        }
        let mut first = 0;
        let planes = std::array::from_fn(|i| {
            // Grey images have one component; the others are never looked at.
            let component = header.components()[i.min(header.components().len() - 1)];
            let plane = plane(header, component.h.into(), component.v.into(), request.scale, &rect);
            let plane = Plane { first, quant: quant[i].unwrap_or([0; 64]), ..plane };
            first += plane.h * plane.v;
            plane
        });
        let count = header.components().len();
        let used = || planes[..count].iter();
        let start = used().map(|p: &Plane| p.rows.start / p.rows_per_mcu()).min().unwrap_or(0);
        let end = used().map(|p| p.rows.end.div_ceil(p.rows_per_mcu())).max().unwrap_or(0);
        let mcu_blocks = used().map(|p| p.h * p.v).sum();
        Ok(DecodePlan { rect, count, mcus: header.mcus(), mcu_blocks, mcu_rows: start..end, planes })
    }

    pub(crate) fn planes(&self) -> &[Plane] {
        &self.planes[..self.count]
    }

    /// BlockRow in a row of MCUs.
    pub(crate) fn row_blocks(&self) -> usize {
        self.mcus.0 as usize * self.mcu_blocks as usize
    }

    /// Bytes that the pixels need in a buffer with `stride` bytes from row to row.
    pub(crate) fn check_buffer(&self, found: usize, stride: usize) -> Result<()> {
        let row = self.rect.width as usize * 3;
        let expected = stride.checked_mul(self.rect.height as usize - 1).and_then(|n| n.checked_add(row));
        match expected {
            Some(n) if n <= found && row <= stride => Ok(()),
            _ => Err(Error::Buffer { expected: expected.unwrap_or(usize::MAX), found, stride }),
        }
    }
}

/// libjpeg decodes subsampled components of a scaled image from larger blocks where that saves upsampling
/// (`jpeg_calc_output_dimensions`), and chooses the upsampling from what is left (`jinit_upsampler`).
fn plane(header: &Header, h: u32, v: u32, scale: Scale, rect: &Rect) -> Plane {
    let (max_h, max_v) = header.max_sampling();
    let least = scale.block();
    let mut block = least;
    let doubles = |max: u32, factor: u32, block: u32| (max * least).is_multiple_of(factor * block * 2);
    while block < 8 && doubles(max_h, h, block) && doubles(max_v, v, block) {
        block *= 2;
    }
    let expand = (max_h * least / (h * block), max_v * least / (v * block));
    let width = (header.width * h * block).div_ceil(max_h * 8);
    let height = (header.height * v * block).div_ceil(max_v * 8);
    let fancy = least > 1;
    let upsample = match expand {
        (1, 1) => Upsample::None,
        (2, 1) if fancy && width > 2 => Upsample::Across,
        (1, 2) if fancy => Upsample::Down,
        (2, 2) if fancy && width > 2 => Upsample::Both,
        _ => Upsample::Repeat,
    };
    let near = |from: u32, n: u32, expand: u32, all: u32, margin: u32| {
        let end = ((from + n - 1) / expand + 1 + margin).min(all);
        (from / expand).saturating_sub(margin)..end
    };
    let (across, down) = match upsample {
        Upsample::Across => (1, 0),
        Upsample::Down => (0, 1),
        Upsample::Both => (1, 1),
        Upsample::None | Upsample::Repeat => (0, 0),
    };
    let columns = near(rect.x, rect.width, expand.0, width, across);
    let rows = near(rect.y, rect.height, expand.1, height, down);
    Plane { h, v, block, expand, upsample, height, columns, rows, first: 0, quant: [0; 64] }
}
