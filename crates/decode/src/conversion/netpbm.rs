//! Decodes the first image of a Netpbm file: PBM (P1, P4), PGM (P2, P5), PPM (P3, P6) and PAM (P7), with samples of 1 to 16 bits.

use std::borrow::Cow;

use png::{BitDepth, ColorType};

use super::raster::Raster;
use super::{ConvertedFormat, Samples, Size};
use crate::error::Error;

/// Digits of the longest number, as in Pillow.
const MAX_DIGITS: usize = 10;
/// Bytes of an unknown tuple type that a message shows.
const MAX_NAME: usize = 40;

struct Header {
    width: u32,
    height: u32,
    /// Samples of a pixel, 1 to 4.
    samples: u8,
    /// The largest value of a sample; 1 of bitmaps.
    maximum: u32,
    /// Whether the samples are text.
    plain: bool,
    /// Whether it is a bitmap, in which 1 is black.
    bitmap: bool,
    /// Where the samples begin.
    data: usize,
}

impl Header {
    /// 16 bits if the samples have more than 8.
    fn depth(&self) -> BitDepth {
        match self.maximum {
            1 if self.bitmap => BitDepth::One,
            ..=255 => BitDepth::Eight,
            _ => BitDepth::Sixteen,
        }
    }
}

fn error(problem: impl Into<Cow<'static, str>>) -> Error {
    ConvertedFormat::Netpbm.error(problem)
}

pub(super) fn size(bytes: &[u8]) -> Result<Size, Error> {
    let header = header(bytes)?;
    let Header { width, height, samples, maximum, .. } = header;
    let all = u64::from(width) * u64::from(samples);
    let row = match (header.plain, header.bitmap) {
        (true, true) => all,
        // A digit and what separates it from the next one.
        (true, false) => 2 * all,
        (false, _) => (all * header.depth() as u64).div_ceil(8),
    };
    let data = row.saturating_mul(height.into()).saturating_sub(u64::from(header.plain));
    let least_bytes = data.saturating_add(header.data as u64);
    Ok(Size { width, height, pixel_bytes: samples * if maximum > 255 { 2 } else { 1 }, least_bytes })
}

pub(super) fn decode(bytes: &[u8], wanted: Samples) -> Result<Raster, Error> {
    let header = header(bytes)?;
    if header.bitmap && wanted == Samples::Numbers {
        return bitmap_numbers(&header, &bytes[header.data..]);
    }
    let color = match header.samples {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    };
    let (depth, mut data) = (header.depth(), &bytes[header.data..]);
    let mut raster = Raster::new(header.width, header.height, color, depth);
    let samples = header.width as usize * usize::from(header.samples);
    let highest = (1 << depth as u32) - 1;
    // Pillow's arithmetic. Values beyond the maximum are white.
    let scaled = |value: u32| match header.maximum == highest || wanted == Samples::Numbers {
        true => value,
        false => (f64::from(value) / f64::from(header.maximum) * f64::from(highest)).round_ties_even() as u32,
    };
    let rows = raster.data.len() / header.height as usize;
    for row in raster.data.chunks_exact_mut(rows) {
        match (depth, header.plain) {
            (BitDepth::One, true) => {
                for x in 0..samples {
                    row[x / 8] |= u8::from(bit(&mut data)? == 0) << (7 - x % 8);
                }
            }
            (BitDepth::One, false) => {
                let stored = take(&mut data, row.len())?;
                row.iter_mut().zip(stored).for_each(|(out, bits)| *out = !bits);
            }
            (BitDepth::Sixteen, plain) => {
                for out in row.as_chunks_mut::<2>().0 {
                    let value = match plain {
                        true => number(&mut data, header.maximum)?,
                        false => take(&mut data, 2)?.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
                    };
                    *out = (scaled(value).min(highest) as u16).to_be_bytes();
                }
            }
            (_, true) => {
                for out in row {
                    *out = scaled(number(&mut data, header.maximum)?) as u8;
                }
            }
            (_, false) => {
                let stored = take(&mut data, row.len())?;
                row.iter_mut().zip(stored).for_each(|(out, v)| *out = scaled((*v).into()).min(highest) as u8);
            }
        }
    }
    Ok(raster)
}

/// Decodes a bitmap to one byte a pixel: the loader scales fewer bits of grey, so that 1 would become 255.
fn bitmap_numbers(header: &Header, mut data: &[u8]) -> Result<Raster, Error> {
    let mut raster = Raster::new(header.width, header.height, ColorType::Grayscale, BitDepth::Eight);
    for row in raster.data.chunks_exact_mut(header.width as usize) {
        if header.plain {
            for out in row {
                *out = bit(&mut data)?;
            }
        } else {
            let stored = take(&mut data, row.len().div_ceil(8))?;
            row.iter_mut().enumerate().for_each(|(x, out)| *out = stored[x / 8] >> (7 - x % 8) & 1);
        }
    }
    Ok(raster)
}

fn take<'a>(data: &mut &'a [u8], count: usize) -> Result<&'a [u8], Error> {
    let (taken, rest) = data.split_at_checked(count).ok_or_else(|| error("its data ends early"))?;
    *data = rest;
    Ok(taken)
}

/// Skips white space and comments, which end with the line.
fn skip_space(data: &mut &[u8]) {
    while let [first, rest @ ..] = data {
        match first {
            b'#' => {
                let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
                *data = &rest[end..];
            }
            // With the vertical tab, as in C.
            first if first.is_ascii_whitespace() || *first == 0x0b => *data = rest,
            _ => return,
        }
    }
}

/// Reads the next digit of a bitmap in text.
fn bit(data: &mut &[u8]) -> Result<u8, Error> {
    skip_space(data);
    match take(data, 1)? {
        [digit @ (b'0' | b'1')] => Ok(digit - b'0'),
        _ => Err(error("its samples are not numbers")),
    }
}

/// Reads the next number of at most `maximum`.
fn number(data: &mut &[u8], maximum: u32) -> Result<u32, Error> {
    skip_space(data);
    let digits = data.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 && data.is_empty() {
        return Err(error("its data ends early"));
    }
    if !(1..=MAX_DIGITS).contains(&digits) {
        return Err(error("its header or samples are not numbers"));
    }
    let value = take(data, digits)?.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    if value > maximum.into() {
        return Err(error("a number is too large"));
    }
    Ok(value as u32)
}

fn header(bytes: &[u8]) -> Result<Header, Error> {
    let mut data = bytes.get(2..).unwrap_or_default();
    let kind = match bytes {
        [_, b'7', ..] => return pam(bytes),
        [_, b'F' | b'f', ..] => return Err(error("floating-point samples (PFM) have no range to scale")),
        [_, kind, ..] => *kind,
        _ => return Err(error("the header is cut off")),
    };
    let width = number(&mut data, u32::MAX)?;
    let height = number(&mut data, u32::MAX)?;
    let bitmap = matches!(kind, b'1' | b'4');
    let maximum = if bitmap { 1 } else { number(&mut data, 65_535)? };
    let samples = if matches!(kind, b'3' | b'6') { 3 } else { 1 };
    let plain = matches!(kind, b'1'..=b'3');
    // One white space precedes binary samples.
    if !plain && !take(&mut data, 1)?[0].is_ascii_whitespace() {
        return Err(error("its header or samples are not numbers"));
    }
    finished(Header { width, height, samples, maximum, plain, bitmap, data: bytes.len() - data.len() })
}

/// Reads the header of PAM: lines of a name and a value up to `ENDHDR`.
fn pam(bytes: &[u8]) -> Result<Header, Error> {
    let mut data = &bytes[2..];
    let [mut width, mut height, mut depth, mut maximum] = [0; 4];
    let mut tuple_type = vec![];
    loop {
        skip_space(&mut data);
        let name = data.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        match take(&mut data, name)? {
            b"WIDTH" => width = number(&mut data, u32::MAX)?,
            b"HEIGHT" => height = number(&mut data, u32::MAX)?,
            b"DEPTH" => depth = number(&mut data, u32::MAX)?,
            b"MAXVAL" => maximum = number(&mut data, 65_535)?,
            // Several lines of it are joined with a space.
            b"TUPLTYPE" => {
                let line = data.iter().take_while(|byte| **byte != b'\n').count();
                tuple_type.push(take(&mut data, line)?.trim_ascii());
            }
            b"ENDHDR" => break,
            _ => return Err(error("its header is not that of a PAM")),
        }
    }
    if take(&mut data, 1)? != b"\n" {
        return Err(error("its header is not that of a PAM"));
    }
    if !(1..=4).contains(&depth) {
        return Err(error("it has other than 1 to 4 samples a pixel"));
    }
    check_tuple_type(tuple_type.join(&b' ').trim_ascii(), depth)?;
    let data = bytes.len() - data.len();
    finished(Header { width, height, samples: depth as u8, maximum, plain: false, bitmap: false, data })
}

/// Checks that the samples of a PAM are those of a PNG of as many channels. A file without a tuple type is one.
fn check_tuple_type(tuple_type: &[u8], depth: u32) -> Result<(), Error> {
    let base = tuple_type.strip_suffix(b"_ALPHA").unwrap_or(tuple_type);
    let channels = match base {
        b"" if tuple_type.is_empty() => depth,
        b"BLACKANDWHITE" | b"GRAYSCALE" => 1 + u32::from(base != tuple_type),
        b"RGB" => 3 + u32::from(base != tuple_type),
        _ => {
            let name = &tuple_type[..tuple_type.len().min(MAX_NAME)];
            return Err(error(format!("samples of the tuple type `{}` are not read", name.escape_ascii())));
        }
    };
    match channels == depth {
        true => Ok(()),
        false => Err(error(format!(
            "its tuple type `{}` has {channels} samples a pixel, but its DEPTH is {depth}",
            tuple_type.escape_ascii()
        ))),
    }
}

fn finished(header: Header) -> Result<Header, Error> {
    if header.maximum == 0 {
        return Err(error("the largest value of its samples is 0"));
    }
    Ok(header)
}
