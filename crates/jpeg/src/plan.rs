//! The plan of a decode: which blocks, samples and rows a request needs, at which scale.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::markers::header::{Color, Header, MAX_COMPONENTS};
use crate::request::{Channels, Rect, Request, Scale};

/// How a component is upsampled to one sample for each pixel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Upsample {
    /// Not at all: it has a sample for each pixel.
    None,
    /// Each sample is repeated, horizontally and vertically.
    Repeat,
    /// By a triangle filter, horizontally.
    Across,
    /// By a triangle filter, vertically.
    Down,
    /// By a triangle filter in both directions.
    Both,
}

/// What a request needs of one component.
#[derive(Clone)]
pub(crate) struct Plane {
    /// Sampling factors: blocks across and down an MCU.
    pub h: u32,
    pub v: u32,
    /// Samples across and down a decoded block: 8, 4, 2 or 1.
    pub block: u32,
    /// Pixels that a sample covers, across and down.
    pub expand: (u32, u32),
    pub upsample: Upsample,
    /// Sample rows of the whole component, at this scale.
    pub height: u32,
    /// Sample columns needed.
    pub columns: Range<u32>,
    /// Sample rows needed.
    pub rows: Range<u32>,
    /// Index of the component's first block in an MCU.
    pub first: u32,
    /// Quantisation table, in natural order.
    pub quant: [u16; 64],
}

impl Plane {
    /// Returns the two sample rows that pixel row `y` needs, the nearer one first. They are the same if one is enough.
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

/// A request, resolved for the image of a header.
#[derive(Clone)]
pub(crate) struct DecodePlan {
    /// The pixels to decode, in the scaled image.
    pub rect: Rect,
    /// The components; only the first `count` are transformed.
    planes: [Plane; MAX_COMPONENTS],
    count: usize,
    /// The channels of the pixels.
    pub channels: Channels,
    /// Bytes of a pixel.
    pub pixel_bytes: usize,
    /// MCUs across and down.
    pub mcus: (u32, u32),
    /// Blocks in an MCU.
    pub mcu_blocks: u32,
    /// Rows of MCUs needed.
    pub mcu_rows: Range<u32>,
}

impl DecodePlan {
    /// Resolves `request`. `quant` are the components' quantisation tables in natural order; without them the plan is only good
    /// for its sizes.
    pub(crate) fn new(
        header: &Header,
        quant: &[Option<[u16; 64]>; MAX_COMPONENTS],
        request: &Request,
    ) -> Result<DecodePlan> {
        let (image_width, image_height) = header.size(request.scale);
        let rect = request.rect.unwrap_or(Rect { x: 0, y: 0, width: image_width, height: image_height });
        let Rect { x, y, width, height } = rect;
        let inside = |from: u32, n: u32, all: u32| n > 0 && from < all && n <= all - from;
        if !inside(x, width, image_width) || !inside(y, height, image_height) {
            return Err(Error::Rectangle { x, y, width, height, image_width, image_height });
        }
        let mut first = 0;
        let planes = std::array::from_fn(|i| {
            // Planes of components that the image does not have are never used.
            let component = header.components()[i.min(header.components().len() - 1)];
            let plane = plane(header, component.h.into(), component.v.into(), request.scale, &rect);
            let plane = Plane { first, quant: quant[i].unwrap_or([0; 64]), ..plane };
            first += plane.h * plane.v;
            plane
        });
        let components = header.components().len();
        // Luma is all that grey needs; the coefficients of chroma are decoded to find those of luma, but not transformed.
        let count = match (request.channels, header.color) {
            (Channels::Gray, Color::Grey | Color::YCbCr) => 1,
            (Channels::Rgb, _) | (Channels::Gray, _) => components,
        };
        let pixel_bytes = match header.color {
            Color::Samples(count) => usize::from(count),
            _ => request.channels.count(),
        };
        let used = || planes[..count].iter();
        let start = used().map(|p: &Plane| p.rows.start / p.rows_per_mcu()).min().unwrap_or(0);
        let end = used().map(|p| p.rows.end.div_ceil(p.rows_per_mcu())).max().unwrap_or(0);
        let mcu_blocks = planes[..components].iter().map(|p| p.h * p.v).sum();
        Ok(DecodePlan {
            rect,
            count,
            channels: request.channels,
            pixel_bytes,
            mcus: header.mcus(),
            mcu_blocks,
            mcu_rows: start..end,
            planes,
        })
    }

    /// The components that the pixels are made from.
    pub(crate) fn planes(&self) -> &[Plane] {
        &self.planes[..self.count]
    }

    /// Returns for each component whether its AC coefficients are needed: not if its blocks become one sample each, or if it is
    /// not transformed.
    pub(crate) fn needs_ac(&self) -> [bool; 3] {
        std::array::from_fn(|i| self.planes().get(i).is_some_and(|plane| plane.block > 1))
    }

    /// Blocks in a row of MCUs.
    pub(crate) fn row_blocks(&self) -> usize {
        self.mcus.0 as usize * self.mcu_blocks as usize
    }

    /// Checks that a buffer of `found` bytes with `stride` bytes from row to row has room for the pixels.
    pub(crate) fn check_buffer(&self, found: usize, stride: usize) -> Result<()> {
        let row = self.rect.width as usize * self.pixel_bytes;
        let expected = stride.checked_mul(self.rect.height as usize - 1).and_then(|n| n.checked_add(row));
        match expected {
            Some(n) if n <= found && row <= stride => Ok(()),
            _ => Err(Error::Buffer { expected: expected.unwrap_or(usize::MAX), found, stride }),
        }
    }
}

/// Plans one component with sampling factors `h` and `v`, as libjpeg does: it decodes subsampled components of a scaled image
/// from larger blocks if that saves upsampling (`jpeg_calc_output_dimensions`), and chooses the upsampling for what remains
/// (`jinit_upsampler`).
fn plane(header: &Header, h: u32, v: u32, scale: Scale, rect: &Rect) -> Plane {
    let (max_h, max_v) = header.max_sampling();
    let full_block = scale.block();
    let mut block = full_block;
    let doubles = |max: u32, factor: u32, block: u32| (max * full_block).is_multiple_of(factor * block * 2);
    while block < 8 && doubles(max_h, h, block) && doubles(max_v, v, block) {
        block *= 2;
    }
    let expand = (max_h * full_block / (h * block), max_v * full_block / (v * block));
    let width = (header.width * h * block).div_ceil(max_h * 8);
    let height = (header.height * v * block).div_ceil(max_v * 8);
    let fancy = full_block > 1;
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
