//! Decompresses one strip or tile.

use std::io::Read;

use weezl::{BitOrder, LzwStatus};

use super::error::{damaged, unsupported};
use super::fax::{self, Coding};
use super::jpeg::{self, JpegCodec};
use super::layout::Layout;
use super::samples::Samples;
use super::tags::compression;
use super::work::Work;
use super::ycbcr::Blocks;
use crate::error::Error;
use crate::float_range::FloatRange;
use crate::format::Format;

/// How the chunks of an image are compressed.
enum Method<'l, 'a> {
    None,
    Lzw,
    Deflate,
    Zstd,
    PackBits,
    Fax(Coding),
    Jpeg(Box<JpegCodec<'l, 'a>>),
}

/// Decompresses the chunks of one image.
pub(super) struct Codec<'l, 'a> {
    layout: &'l Layout<'a>,
    samples: Samples,
    row_bytes: usize,
    /// Compressed bytes whose bit order was reversed.
    input: Vec<u8>,
    method: Method<'l, 'a>,
}

impl<'l, 'a> Codec<'l, 'a> {
    /// Prepares for the chunks of an image. A row is one of `blocks`, if there are any.
    pub(super) fn new(
        layout: &'l Layout<'a>,
        blocks: Option<Blocks>,
        float_range: Option<FloatRange>,
    ) -> Result<Self, Error> {
        let row_bytes = match blocks {
            Some(blocks) => blocks.row_bytes(layout.chunk.0),
            None => layout.row_bytes() as usize,
        };
        let mut samples = Samples::new(layout, float_range)?;
        let method = match layout.compression {
            compression::NONE => Method::None,
            compression::LZW => Method::Lzw,
            compression::DEFLATE | compression::OLD_DEFLATE => Method::Deflate,
            compression::ZSTD => Method::Zstd,
            compression::PACK_BITS => Method::PackBits,
            compression::CCITT_RLE | compression::FAX3 | compression::FAX4
                if layout.bits != 1 || layout.chunk_samples() != 1 =>
            {
                return Err(unsupported("fax compression of other than 1-bit images"));
            }
            compression::CCITT_RLE => Method::Fax(Coding::RunLength),
            compression::FAX3 => Method::Fax(Coding::Group3 { two_dimensional: layout.t4_options & 1 != 0 }),
            compression::FAX4 => Method::Fax(Coding::Group4),
            compression::JPEG => {
                samples = Samples::BYTES;
                Method::Jpeg(Box::new(JpegCodec::new(layout)?))
            }
            compression::OLD_JPEG => return Err(unsupported("old-style JPEG compression")),
            compression::LZMA => return Err(unsupported("LZMA compression")),
            compression::WEBP => return Err(unsupported("WebP compression")),
            compression::LERC => return Err(unsupported("LERC compression")),
            _ => {
                return Err(unsupported(
                    "a compression other than none, PackBits, LZW, Deflate, Zstandard, fax or JPEG",
                ));
            }
        };
        Ok(Codec { layout, samples, row_bytes, input: vec![], method })
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    pub(super) fn samples(&self) -> Samples {
        self.samples
    }

    /// Returns the compressed bytes of the chunk at (offset, length) of the file, cut to what decompression may read.
    fn data<'f>(&self, file: &'f [u8], (offset, length): (u64, u64)) -> Result<&'f [u8], Error> {
        let start = usize::try_from(offset).ok().filter(|start| *start <= file.len()).ok_or_else(|| truncated(file))?;
        let data = &file[start..];
        let whole = (self.row_bytes as u64).saturating_mul(self.layout.chunk.1.min(self.layout.height).into());
        let length = match self.method {
            // Some writers count the bytes of a JPEG wrongly. Its markers say where it ends.
            Method::Jpeg(_) => jpeg::stream_len(data) as u64,
            Method::None => length.min(whole),
            // As in libtiff, a length that is far too large is cut.
            _ if length > 1 << 20 => length.min(whole.saturating_mul(10).saturating_add(4096)),
            _ => length,
        };
        Ok(&data[..usize::try_from(length).unwrap_or(usize::MAX).min(data.len())])
    }

    /// Returns the work of decoding the first `planes` planes; an error if it is out of proportion to the file or the image.
    pub(super) fn work(&self, file: &[u8], planes: usize) -> Result<Work, Error> {
        let mut work = Work { compressed: 0, decompressed: Work::decompressed(self.layout, planes)? };
        for plane in 0..planes {
            for number in 0..self.layout.chunks_per_plane() {
                let data = self.data(file, self.layout.chunk_of(plane, number)?)?;
                let tables = if let Method::Jpeg(jpeg) = &self.method { jpeg.prefix_bytes() } else { 0 };
                work.read(data.len() + tables, file)?;
            }
        }
        Ok(work)
    }

    /// Decompresses the first `rows` rows of the chunk at (offset, length) of the file into `out`.
    pub(super) fn decode(&mut self, file: &[u8], chunk: (u64, u64), rows: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut data = self.data(file, chunk)?;
        if self.layout.low_bits_first && matches!(self.method, Method::None | Method::Fax(_) | Method::PackBits) {
            self.input.clear();
            self.input.extend(data.iter().map(|byte| byte.reverse_bits()));
            data = &self.input;
        }
        let len = self.row_bytes * rows as usize;
        out.resize(len, 0);
        match &mut self.method {
            Method::None => out.copy_from_slice(data.get(..len).ok_or_else(|| truncated(file))?),
            Method::Lzw => lzw(data, out)?,
            Method::Deflate => flate2::read::ZlibDecoder::new(data).read_exact(out).map_err(damaged)?,
            Method::Zstd => {
                zstd::stream::read::Decoder::new(data).and_then(|mut d| d.read_exact(out)).map_err(damaged)?;
            }
            Method::PackBits => packbits(data, out).ok_or_else(|| damaged("truncated PackBits data"))?,
            Method::Fax(coding) => {
                fax::decode(data, *coding, self.layout.chunk.0, self.row_bytes, out).map_err(damaged)?;
            }
            Method::Jpeg(jpeg) => jpeg.decode(data, rows, out)?,
        }
        Ok(())
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

fn truncated(file: &[u8]) -> Error {
    Error::Truncated { format: Format::Tiff, offset: file.len(), expected: "the strips or tiles of the image" }
}
