//! Decodes the image of an ICO that Pillow takes: the largest one, of several the one of the fewest bits.
//!
//! ```text
//! u16 0 | u16 1 | u16 n | n × (u8 width, u8 height, u8 colours, u8 0, u16 planes, u16 bits, u32 length, u32 offset)
//! ```
//!
//! An image is a PNG, or a bitmap without its file header, of twice the height: below the pixels lies a mask of one bit per pixel.

use png::{BitDepth, ColorType};

use super::raster::Raster;
use super::{ConvertedFormat, Size};
use crate::codecs::image_crate;
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::pixels::Pixels;

const SIGNATURE: &[u8] = b"\0\0\x01\0";
const ENTRY: usize = 16;
/// Length of a bitmap's header (`BITMAPINFOHEADER`).
const BITMAP_HEADER: usize = 40;
const FILE_HEADER: usize = 14;

/// The directory's entry of the image that is taken.
struct Entry<'a> {
    /// Bits of a pixel.
    bits: u16,
    /// The bytes of the image, and of the file after them.
    image: &'a [u8],
    length: usize,
}

fn error(problem: &'static str) -> Error {
    ConvertedFormat::Ico.error(problem)
}

/// Returns whether the bytes begin like an ICO: with its signature, and an entry that lies behind the directory.
pub(super) fn is(bytes: &[u8]) -> bool {
    let Some((head, rest)) = bytes.split_first_chunk::<6>() else { return false };
    let Some(first) = rest.first_chunk::<ENTRY>() else { return false };
    let directory = 6 + ENTRY as u32 * u32::from(u16::from_le_bytes([head[4], head[5]]));
    let [.., a, b, c, d] = *first;
    head.starts_with(SIGNATURE) && directory > 6 && u32::from_le_bytes([a, b, c, d]) >= directory
}

fn entry(bytes: &[u8]) -> Result<Entry<'_>, Error> {
    let cut_off = || error("the directory is cut off");
    let (head, rest) = bytes.split_first_chunk::<6>().ok_or_else(cut_off)?;
    let count = usize::from(u16::from_le_bytes([head[4], head[5]]));
    let entries = rest.get(..count * ENTRY).ok_or_else(cut_off)?.as_chunks::<ENTRY>().0;
    let pixels = |entry: &[u8; ENTRY]| {
        let side = |side: u8| if side == 0 { 256u32 } else { side.into() };
        side(entry[0]) * side(entry[1])
    };
    let bits = |entry: &[u8; ENTRY]| u16::from_le_bytes([entry[6], entry[7]]);
    let depth = |entry: &[u8; ENTRY]| match (bits(entry), entry[2]) {
        // Unless it is 1, the logarithm of the number of colours, rounded up.
        (0, colors @ 2..) => (u8::BITS - (colors - 1).leading_zeros()) as u16,
        (0, _) => 256,
        (bits, _) => bits,
    };
    // The first of equal ones.
    let best = entries.iter().min_by_key(|entry| (std::cmp::Reverse(pixels(entry)), depth(entry)));
    let best = best.ok_or_else(|| error("it has no image"))?;
    let [.., a, b, c, d, e, f, g, h] = *best;
    let (length, offset) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize);
    let image = bytes.get(offset..).filter(|image| !image.is_empty()).ok_or_else(|| error("its data ends early"))?;
    Ok(Entry { bits: bits(best), image, length })
}

/// Returns the image, if it is a PNG.
pub(super) fn png(bytes: &[u8]) -> Result<Option<&[u8]>, Error> {
    let Entry { image, length, .. } = entry(bytes)?;
    let is_png = image.starts_with(b"\x89PNG\r\n\x1a\n");
    Ok(is_png.then(|| &image[..length.min(image.len())]))
}

/// The header of a bitmap.
struct Bitmap {
    width: u32,
    /// The height without the mask.
    height: u32,
    bits: u16,
    /// Where the pixels begin, from the header.
    pixels: usize,
}

fn bitmap(image: &[u8]) -> Result<Bitmap, Error> {
    let head = image.first_chunk::<BITMAP_HEADER>().ok_or_else(|| error("its data ends early"))?;
    let u32 = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (width, height, bits) = (u32(4), u32(8) / 2, u16::from_le_bytes([head[14], head[15]]));
    if u32(0) as usize != BITMAP_HEADER || width > i32::MAX as u32 || u32(8) > i32::MAX as u32 {
        return Err(error("a bitmap of a kind that is not read"));
    }
    let (colors, masks) = match (bits, u32(32), u32(16)) {
        (1 | 4 | 8, 0, 0) => (1 << bits, 0),
        (1 | 4 | 8, colors @ ..=256, 0) => (colors as usize, 0),
        (16 | 32, _, 3) => (0, 12),
        (16 | 24 | 32, _, 0) => (0, 0),
        _ => return Err(error("a bitmap of a kind that is not read")),
    };
    Ok(Bitmap { width, height, bits, pixels: BITMAP_HEADER + 4 * colors + masks })
}

pub(super) fn size(bytes: &[u8]) -> Result<Size, Error> {
    if let Some(png) = png(bytes)? {
        let side = |at| png.get(at..).and_then(|side| side.first_chunk()).map_or(0, |side| u32::from_be_bytes(*side));
        return Ok(Size { width: side(16), height: side(20), pixel_bytes: 8, least_bytes: 0 });
    }
    let Bitmap { width, height, bits, pixels } = bitmap(entry(bytes)?.image)?;
    let row = (u64::from(width) * u64::from(bits)).div_ceil(32) * 4;
    let least_bytes = row.saturating_mul(height.into()).saturating_add(pixels as u64);
    Ok(Size { width, height, pixel_bytes: 4, least_bytes })
}

pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<Raster, Error> {
    let entry = entry(bytes)?;
    let Bitmap { width, height, bits, pixels } = bitmap(entry.image)?;
    let (columns, rows) = (width as usize, height as usize);
    let early = || error("its data ends early");
    let alpha = if entry.bits == 32 {
        if bits != 32 {
            return Err(error("its directory says 32 bits, and the bitmap has fewer"));
        }
        let end = pixels + columns * rows * 4;
        let samples = entry.image.get(pixels..end).ok_or_else(early)?;
        Alpha { bytes: samples, row: columns * 4, bits: false }
    } else {
        // The mask lies at the end of the image.
        let row = columns.div_ceil(32) * 4;
        let start = entry.length.checked_sub(row * rows).ok_or_else(early)?;
        Alpha { bytes: entry.image.get(start..entry.length).ok_or_else(early)?, row, bits: true }
    };
    let mut rgb = Pixels::default();
    image_crate::decode(Format::Bmp, &file(entry.image, height, pixels), limits, &mut rgb)?;
    if (rgb.width, rgb.height) != (width, height) {
        return Err(error("a bitmap of a kind that is not read"));
    }
    let mut raster = Raster::new(width, height, ColorType::Rgba, BitDepth::Eight);
    let out = raster.data.as_chunks_mut::<4>().0.chunks_exact_mut(columns);
    let colors = rgb.data.as_chunks::<3>().0.chunks_exact(columns);
    for (y, (out, colors)) in out.zip(colors).enumerate() {
        for (x, (out, [r, g, b])) in out.iter_mut().zip(colors).enumerate() {
            *out = [*r, *g, *b, alpha.of(x, rows - 1 - y)];
        }
    }
    Ok(raster)
}

/// Returns the bitmap as a file, with its header.
fn file(image: &[u8], height: u32, pixels: usize) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    file.extend(((FILE_HEADER + image.len()) as u32).to_le_bytes());
    file.extend([0; 4]);
    file.extend(((FILE_HEADER + pixels) as u32).to_le_bytes());
    file.extend(&image[..8]);
    file.extend(height.to_le_bytes());
    file.extend(&image[12..]);
    file
}

/// The alpha of a bitmap, from its lowest row.
struct Alpha<'a> {
    bytes: &'a [u8],
    row: usize,
    /// One bit per pixel, set if it is transparent; otherwise the fourth byte of each pixel.
    bits: bool,
}

impl Alpha<'_> {
    fn of(&self, x: usize, row: usize) -> u8 {
        let row = &self.bytes[row * self.row..];
        match self.bits {
            true if row[x / 8] >> (7 - x % 8) & 1 == 1 => 0,
            true => 255,
            false => row[x * 4 + 3],
        }
    }
}
