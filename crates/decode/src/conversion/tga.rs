//! Decodes TGA as Pillow does: grey, grey with alpha, RGB of 15 and 24 bits, RGBA and palettes; also run-length coded.

use png::{BitDepth, ColorType};

use super::raster::Raster;
use super::{ConvertedFormat, Size};
use crate::error::Error;

const HEADER: usize = 18;
/// The end of files of version 2: two offsets precede it.
const FOOTER: &[u8] = b"TRUEVISION-XFILE.\0";

struct Header {
    width: u32,
    height: u32,
    kind: Kind,
    run_length: bool,
    /// The first row is the top one.
    top_down: bool,
    /// The first pixel is the right one.
    right_to_left: bool,
    /// Index of the first colour that is stored, number of colours, and bits of each.
    palette: (usize, usize, u8),
    /// Where the palette begins.
    data: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Palette,
    Rgb15,
    Rgb,
    Rgba,
    Grey,
    GreyAlpha,
}

impl Kind {
    fn stored_bytes(self) -> usize {
        match self {
            Kind::Palette | Kind::Grey => 1,
            Kind::Rgb15 | Kind::GreyAlpha => 2,
            Kind::Rgb => 3,
            Kind::Rgba => 4,
        }
    }

    fn color(self) -> ColorType {
        match self {
            Kind::Palette => ColorType::Indexed,
            Kind::Grey => ColorType::Grayscale,
            Kind::GreyAlpha => ColorType::GrayscaleAlpha,
            Kind::Rgb => ColorType::Rgb,
            // The highest bit is alpha.
            Kind::Rgb15 | Kind::Rgba => ColorType::Rgba,
        }
    }
}

fn error(problem: &'static str) -> Error {
    ConvertedFormat::Tga.error(problem)
}

fn has_footer(bytes: &[u8]) -> bool {
    bytes.ends_with(FOOTER) && bytes.len() > HEADER + FOOTER.len()
}

/// Returns whether a file is a TGA: its header is plausible, and its name or its footer says so.
pub(super) fn is(bytes: &[u8], name: Option<&str>) -> bool {
    let named = || {
        let extension = name.and_then(|name| name.rsplit('.').next());
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case("tga"))
    };
    (has_footer(bytes) || named()) && header(bytes).is_ok()
}

pub(super) fn size(bytes: &[u8]) -> Result<Size, Error> {
    let Header { width, height, kind, run_length, data, .. } = header(bytes)?;
    let (pixels, stored) = (u64::from(width) * u64::from(height), kind.stored_bytes() as u64);
    // A packet codes at most 128 pixels.
    let least = if run_length { pixels.div_ceil(128) * (1 + stored) } else { pixels * stored };
    Ok(Size { width, height, pixel_bytes: kind.color().samples() as u8, least_bytes: data as u64 + least })
}

fn header(bytes: &[u8]) -> Result<Header, Error> {
    let head = bytes.first_chunk::<HEADER>().ok_or_else(|| error("the header is cut off"))?;
    let u16 = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let (has_palette, image, bits, flags) = (head[1], head[2], head[16], head[17]);
    let palette = (usize::from(u16(3)), usize::from(u16(5)), head[7]);
    let kind = match (has_palette, image & 7, bits) {
        (1, 1, 8) => Kind::Palette,
        (0 | 1, 2, 16) => Kind::Rgb15,
        (0 | 1, 2, 24) => Kind::Rgb,
        (0 | 1, 2, 32) => Kind::Rgba,
        (0 | 1, 3, 8) => Kind::Grey,
        (0 | 1, 3, 16) => Kind::GreyAlpha,
        _ => return Err(error("pixels of a kind that is not read")),
    };
    if !matches!(image, 1..=3 | 9..=11) || flags & 0xc0 != 0 {
        return Err(error("a coding that is not read"));
    }
    if has_palette == 1 && (!matches!(palette.2, 16 | 24 | 32) || palette.0 + palette.1 > 256) {
        return Err(error("a palette of more than 256 colours, or of other than 16, 24 or 32 bits"));
    }
    let (width, height) = (u16(12).into(), u16(14).into());
    if width == 0 || height == 0 {
        return Err(error("it has no pixels"));
    }
    let palette = if has_palette == 1 { palette } else { (0, 0, 0) };
    Ok(Header {
        width,
        height,
        kind,
        run_length: image & 8 != 0,
        top_down: flags & 0x20 != 0,
        right_to_left: flags & 0x10 != 0,
        palette,
        data: HEADER + usize::from(head[0]),
    })
}

/// Converts five bits to eight, as Pillow does.
fn five_bits(value: u16) -> u8 {
    ((value & 31) * 255 / 31) as u8
}

/// Converts 15 bits of colour and one that says that the pixel is transparent.
fn rgb15(bytes: [u8; 2]) -> [u8; 4] {
    let value = u16::from_le_bytes(bytes);
    [five_bits(value >> 10), five_bits(value >> 5), five_bits(value), if value >> 15 == 1 { 0 } else { 255 }]
}

pub(super) fn decode(bytes: &[u8]) -> Result<Raster, Error> {
    let header = header(bytes)?;
    let mut raster = Raster::new(header.width, header.height, header.kind.color(), BitDepth::Eight);
    let data = bytes.get(header.data..).ok_or_else(|| error("its data ends early"))?;
    let pixels = read_palette(&header, data, &mut raster)?;
    let stored = header.kind.stored_bytes();
    let mut source = Source { data: pixels, pixel: stored, run: None, left: 0, coded: header.run_length };
    let keep_alpha = header.kind != Kind::Rgba || !says_no_alpha(bytes);
    let samples = header.kind.color().samples();
    let row_bytes = header.width as usize * samples;
    for y in 0..header.height as usize {
        let y = if header.top_down { y } else { header.height as usize - 1 - y };
        let row = &mut raster.data[y * row_bytes..][..row_bytes];
        for x in 0..header.width as usize {
            let x = if header.right_to_left { header.width as usize - 1 - x } else { x };
            let (pixel, out) = (source.next()?, &mut row[x * samples..][..samples]);
            match *pixel {
                [low, high] if header.kind == Kind::Rgb15 => out.copy_from_slice(&rgb15([low, high])),
                [b, g, r] => out.copy_from_slice(&[r, g, b]),
                [b, g, r, a] => out.copy_from_slice(&[r, g, b, if keep_alpha { a } else { 255 }]),
                _ => out.copy_from_slice(pixel),
            }
        }
    }
    Ok(raster)
}

/// Reads the palette, and returns what follows it.
fn read_palette<'a>(header: &Header, data: &'a [u8], raster: &mut Raster) -> Result<&'a [u8], Error> {
    let (first, count, bits) = header.palette;
    let stored = usize::from(bits / 8);
    let (colors, rest) = data.split_at_checked(count * stored).ok_or_else(|| error("its data ends early"))?;
    if header.kind == Kind::Palette {
        if first + count == 0 {
            return Err(error("a palette without colours"));
        }
        raster.palette = vec![0; first * 3];
        // Colours before the first one are zeros of the same format, as in Pillow.
        raster.alpha = vec![if bits == 32 { 0 } else { 255 }; first];
        for color in colors.chunks_exact(stored) {
            let [rgb @ .., alpha] = match *color {
                [low, high] => rgb15([low, high]),
                [b, g, r] => [r, g, b, 255],
                [b, g, r, a] => [r, g, b, a],
                _ => [0; 4],
            };
            raster.palette.extend(rgb);
            raster.alpha.push(alpha);
        }
    }
    Ok(rest)
}

/// Returns whether the extension area of version 2 says that the fourth sample is not alpha.
fn says_no_alpha(bytes: &[u8]) -> bool {
    if !has_footer(bytes) {
        return false;
    }
    let footer = bytes.len() - FOOTER.len() - 8;
    let offset = bytes[footer..].first_chunk().map_or(0, |offset| u32::from_le_bytes(*offset));
    // The field `attributes type`: 0 for no alpha.
    let kind = usize::try_from(offset).ok().filter(|offset| *offset != 0).and_then(|offset| bytes.get(offset + 494));
    kind == Some(&0)
}

/// The pixels in the order of the file.
struct Source<'a> {
    data: &'a [u8],
    /// Bytes of a pixel.
    pixel: usize,
    /// The pixel that is repeated.
    run: Option<&'a [u8]>,
    /// Pixels left of the packet.
    left: usize,
    /// Whether there are packets.
    coded: bool,
}

impl<'a> Source<'a> {
    fn next(&mut self) -> Result<&'a [u8], Error> {
        if self.coded && self.left == 0 {
            let packet = self.take(1)?[0];
            self.left = usize::from(packet & 0x7f) + 1;
            self.run = if packet & 0x80 != 0 { Some(self.take(self.pixel)?) } else { None };
        }
        self.left = self.left.saturating_sub(1);
        match self.run {
            Some(pixel) => Ok(pixel),
            None => self.take(self.pixel),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.data.split_at_checked(count).ok_or_else(|| error("its data ends early"))?;
        self.data = rest;
        Ok(taken)
    }
}
