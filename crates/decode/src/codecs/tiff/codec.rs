//! Decompresses one strip or tile.

use std::io::Read;

use fax::decoder::{DecodeStatus, Group3Decoder, Group4Decoder, pels};
use shardtool_jpeg as jpeg;
use weezl::{BitOrder, LzwStatus};

use super::layout::{Layout, unsupported};
use super::samples::Samples;
use super::tags::{compression, photometric};
use crate::codecs::decoder_error;
use crate::error::Error;
use crate::float_range::FloatRange;
use crate::format::Format;

/// Decompresses the chunks of one image.
pub(super) struct Codec<'l, 'a> {
    layout: &'l Layout<'a>,
    samples: Samples,
    row_bytes: usize,
    /// Compressed bytes whose bit order was reversed or to which JPEG tables were prepended.
    input: Vec<u8>,
    jpeg: Option<jpeg::Decoder>,
}

impl<'l, 'a> Codec<'l, 'a> {
    pub(super) fn new(layout: &'l Layout<'a>, float_range: Option<FloatRange>) -> Result<Self, Error> {
        let row_bytes = layout.row_bytes() as usize;
        let mut codec =
            Codec { layout, samples: Samples::new(layout, float_range)?, row_bytes, input: vec![], jpeg: None };
        match layout.compression {
            compression::NONE
            | compression::LZW
            | compression::DEFLATE
            | compression::OLD_DEFLATE
            | compression::PACK_BITS
            | compression::ZSTD => {}
            compression::FAX3 | compression::FAX4 if layout.bits != 1 || layout.chunk_samples() != 1 => {
                return Err(unsupported("fax compression of other than 1-bit images"));
            }
            compression::FAX3 if layout.t4_options & 1 != 0 => {
                return Err(unsupported("two-dimensional Group 3 fax compression"));
            }
            compression::FAX3 | compression::FAX4 if layout.chunk.0 > u16::MAX.into() => {
                return Err(unsupported("fax compression of wider rows than 65535"));
            }
            compression::FAX3 | compression::FAX4 => {}
            compression::JPEG if layout.bits != 8 || !matches!(layout.chunk_samples(), 1 | 3) => {
                return Err(unsupported("JPEG compression of other than 1 or 3 samples of 8 bits"));
            }
            compression::JPEG => {
                codec.samples = Samples::BYTES;
                codec.jpeg = Some(jpeg::Decoder::new().with_limits(crate::encoded::unlimited()));
            }
            compression::CCITT_RLE => return Err(unsupported("CCITT run-length compression")),
            compression::OLD_JPEG => return Err(unsupported("old-style JPEG compression")),
            compression::LZMA => return Err(unsupported("LZMA compression")),
            compression::WEBP => return Err(unsupported("WebP compression")),
            compression::LERC => return Err(unsupported("LERC compression")),
            _ => {
                return Err(unsupported(
                    "a compression other than none, PackBits, LZW, Deflate, Zstandard, fax or JPEG",
                ));
            }
        }
        Ok(codec)
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    pub(super) fn samples(&self) -> Samples {
        self.samples
    }

    /// Decompresses the first `rows` rows of the chunk at (offset, length) of the file into `out`.
    pub(super) fn decode(
        &mut self,
        file: &[u8],
        (offset, length): (u64, u64),
        rows: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = usize::try_from(offset).ok().filter(|start| *start <= file.len()).ok_or_else(|| truncated(file))?;
        let mut data = &file[start..];
        data = &data[..usize::try_from(length).unwrap_or(usize::MAX).min(data.len())];
        if self.layout.low_bits_first
            && matches!(
                self.layout.compression,
                compression::NONE | compression::FAX3 | compression::FAX4 | compression::PACK_BITS
            )
        {
            self.input.clear();
            self.input.extend(data.iter().map(|byte| byte.reverse_bits()));
            data = &self.input;
        }
        let len = self.row_bytes * rows as usize;
        out.resize(len, 0);
        match self.layout.compression {
            compression::NONE => out.copy_from_slice(data.get(..len).ok_or_else(|| truncated(file))?),
            compression::LZW => lzw(data, out)?,
            compression::DEFLATE | compression::OLD_DEFLATE => {
                flate2::read::ZlibDecoder::new(data).read_exact(out).map_err(damaged)?;
            }
            compression::ZSTD => {
                zstd::stream::read::Decoder::new(data).and_then(|mut d| d.read_exact(out)).map_err(damaged)?
            }
            compression::PACK_BITS => packbits(data, out).ok_or_else(|| damaged("truncated PackBits data"))?,
            compression::FAX3 => fax3(data, self.layout.chunk.0 as u16, self.row_bytes, out)?,
            compression::FAX4 => fax4(data, self.layout.chunk.0 as u16, self.row_bytes, out)?,
            _ => self.jpeg(file, start, rows, out)?,
        }
        Ok(())
    }

    /// Decodes a JPEG stream, complete or with its tables in the directory. The photometric interpretation decides about the
    /// colour transform, not the markers in the stream.
    fn jpeg(&mut self, file: &[u8], start: usize, rows: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let ycbcr = self.layout.photometric == photometric::YCBCR;
        self.input.clear();
        // An Adobe segment: version 100, no flags, then the colour transform (0 RGB, 1 YCbCr).
        self.input.extend(b"\xFF\xD8\xFF\xEE\0\x0EAdobe\0\x64\0\0\0\0");
        self.input.push(u8::from(ycbcr));
        for stream in self.layout.jpeg_tables.into_iter().chain([&file[start..]]) {
            append_jpeg(stream, &mut self.input)?;
        }
        let limits = crate::encoded::unlimited();
        let invalid = |source| Error::Jpeg { source };
        let header = jpeg::Header::parse(&self.input, &limits).map_err(invalid)?;
        if header.components().len() > 3 {
            return Err(unsupported("JPEG strips or tiles of four components"));
        }
        let (width, height) = self.layout.chunk;
        // Encoders pad tiles. The last strip may have the height of the others or only that of its rows.
        if header.width != width || header.height < rows || header.height > height.max(rows) {
            return Err(damaged("the size of a JPEG strip or tile differs from the directory"));
        }
        let stride = width as usize * 3;
        let mut rgb = vec![0; stride * header.height as usize];
        let Some(decoder) = &mut self.jpeg else { return Err(unsupported("JPEG compression")) };
        decoder.decode(&self.input, None, &jpeg::Request::default(), &mut rgb, stride).map_err(invalid)?;
        rgb.truncate(stride * rows as usize);
        match self.layout.chunk_samples() {
            3 => *out = rgb,
            _ => out.iter_mut().zip(rgb.iter().step_by(3)).for_each(|(out, red)| *out = *red),
        }
        Ok(())
    }
}

/// Appends a JPEG stream without its start-of-image marker, its colour markers (APP0, APP14) and, where it holds tables
/// only, its end-of-image marker.
fn append_jpeg(stream: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let short = || damaged("truncated JPEG data");
    let mut rest =
        stream.strip_prefix(b"\xFF\xD8").ok_or_else(|| damaged("JPEG data without a start-of-image marker"))?;
    loop {
        let &[0xFF, marker, ref after @ ..] = rest else { return Err(short()) };
        match marker {
            0xFF => rest = &rest[1..],
            0xD9 => return Ok(()),
            0xDA => {
                out.extend_from_slice(rest);
                return Ok(());
            }
            _ => {
                let &[high, low, ..] = after else { return Err(short()) };
                let segment = rest.get(..2 + usize::from(u16::from_be_bytes([high, low]))).ok_or_else(short)?;
                if !matches!(marker, 0xE0 | 0xEE) {
                    out.extend_from_slice(segment);
                }
                rest = &rest[segment.len().max(2)..];
            }
        }
    }
}

fn lzw(data: &[u8], out: &mut [u8]) -> Result<(), Error> {
    // Before TIFF 6.0 codes were packed from the lowest bit, as in GIF. The first code, the clear code, shows the order.
    let mut decoder = match data {
        [0, second, ..] if second & 1 == 1 => weezl::decode::Decoder::new(BitOrder::Lsb, 8),
        _ => weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8),
    };
    let (mut read, mut written) = (0, 0);
    while written < out.len() {
        let step = decoder.decode_bytes(&data[read..], &mut out[written..]);
        (read, written) = (read + step.consumed_in, written + step.consumed_out);
        match step.status.map_err(damaged)? {
            LzwStatus::Ok => {}
            LzwStatus::NoProgress | LzwStatus::Done if written < out.len() => {
                return Err(damaged("truncated LZW data"));
            }
            LzwStatus::NoProgress | LzwStatus::Done => {}
        }
    }
    Ok(())
}

/// Decompresses PackBits: n of 0 to 127 precedes n + 1 literal bytes, n of -127 to -1 a byte to repeat 1 - n times.
fn packbits(mut data: &[u8], out: &mut [u8]) -> Option<()> {
    let mut at = 0;
    while at < out.len() {
        let (&n, rest) = data.split_first()?;
        data = rest;
        match n {
            0..=127 => {
                let (bytes, rest) = data.split_at_checked(usize::from(n) + 1)?;
                let len = bytes.len().min(out.len() - at);
                out[at..at + len].copy_from_slice(&bytes[..len]);
                (at, data) = (at + len, rest);
            }
            128 => {}
            129..=255 => {
                let (&byte, rest) = data.split_first()?;
                let end = (at + 257 - usize::from(n)).min(out.len());
                out[at..end].fill(byte);
                (at, data) = (end, rest);
            }
        }
    }
    Some(())
}

/// Decompresses ITU-T T.6 (Group 4).
fn fax4(data: &[u8], width: u16, row_bytes: usize, out: &mut [u8]) -> Result<(), Error> {
    let bytes = data.iter().map(|byte| Ok::<_, std::io::Error>(*byte));
    let mut decoder = Group4Decoder::new(bytes, width).map_err(damaged)?;
    let mut rows = out.chunks_exact_mut(row_bytes);
    for row in &mut rows {
        match decoder.advance().map_err(|error| damaged(format!("fax data: {error:?}")))? {
            DecodeStatus::Incomplete => pack_bits(decoder.transition(), width, row),
            DecodeStatus::End => return Err(damaged("truncated fax data")),
        }
    }
    Ok(())
}

/// Decompresses one-dimensional ITU-T T.4 (Group 3).
fn fax3(data: &[u8], width: u16, row_bytes: usize, out: &mut [u8]) -> Result<(), Error> {
    let bytes = data.iter().map(|byte| Ok::<_, std::io::Error>(*byte));
    let invalid = |error| damaged(format!("fax data: {error:?}"));
    let mut decoder = Group3Decoder::new(bytes).map_err(invalid)?;
    let mut rows = out.chunks_exact_mut(row_bytes);
    while let Some(row) = rows.next() {
        let status = decoder.advance().map_err(invalid)?;
        pack_bits(decoder.transitions(), width, row);
        if status == DecodeStatus::End && rows.len() > 0 {
            return Err(damaged("truncated fax data"));
        }
    }
    Ok(())
}

/// Writes one bit per pixel, set if it is black.
fn pack_bits(transitions: &[u16], width: u16, row: &mut [u8]) {
    row.fill(0);
    for (x, color) in pels(transitions, width).enumerate() {
        row[x / 8] |= u8::from(color == fax::Color::Black) << (7 - x % 8);
    }
}

fn truncated(file: &[u8]) -> Error {
    Error::Truncated { format: Format::Tiff, offset: file.len(), expected: "the strips or tiles of the image" }
}

fn damaged(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    decoder_error(Format::Tiff, source)
}
