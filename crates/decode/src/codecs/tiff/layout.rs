//! The layout of the image in a TIFF, read from its tags and validated: size, samples, and offsets of the strips or tiles.

use std::borrow::Cow;

use shardtool_jpeg::Metadata;

use super::directory::Directory;
use super::error::unsupported;
use super::fax;
use super::tags::{compression, photometric, sample_format, tag};
use crate::error::Error;
use crate::format::Format;

/// The image that a directory describes. A *chunk* is a strip or a tile.
pub(super) struct Layout<'a> {
    pub(super) big_endian: bool,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Orientation, 1 to 8.
    pub(super) orientation: u8,
    /// Bits of each sample.
    pub(super) bits: u8,
    /// Samples of a pixel.
    pub(super) samples: usize,
    pub(super) sample_format: u64,
    pub(super) photometric: u64,
    pub(super) compression: u64,
    pub(super) predictor: u64,
    /// FillOrder 2: the first pixel is in the lowest bits of a byte.
    pub(super) low_bits_first: bool,
    /// Whether each sample of a pixel is in a separate plane with its chunks.
    pub(super) planar: bool,
    /// ExtraSamples: 0 unspecified, 1 associated alpha, 2 alpha.
    pub(super) extra: Vec<u64>,
    /// T4Options.
    pub(super) t4_options: u64,
    /// ColorMap: the red, then the green, then the blue values.
    pub(super) palette: Vec<u64>,
    /// YCbCrSubSampling: pixels for each chroma sample, across and down.
    pub(super) ycbcr_subsampling: (u32, u32),
    /// YCbCrCoefficients: the parts of red, green and blue in luma.
    pub(super) ycbcr_coefficients: [f32; 3],
    /// ReferenceBlackWhite: the values of no and of full luma, Cb and Cr.
    pub(super) reference_black_white: [f32; 6],
    /// JPEGTables: the tables of JPEG streams that have none.
    pub(super) jpeg_tables: Option<&'a [u8]>,
    /// Width and height of a chunk in pixels.
    pub(super) chunk: (u32, u32),
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    /// The offsets in ascending order, if there are chunks whose lengths are missing.
    sorted: Vec<u64>,
}

/// The part of the image that a chunk covers, in pixels.
pub(super) struct Area {
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl<'a> Layout<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let tags = Directory::read(bytes)?;
        let side = |tag| Ok(tags.first(tag)?.and_then(|side| u32::try_from(side).ok()).unwrap_or(0));
        let (width, height) = (side(tag::IMAGE_WIDTH)?, side(tag::IMAGE_LENGTH)?);
        if width == 0 || height == 0 {
            return Err(Error::Empty { format: Format::Tiff, width, height });
        }
        let samples = tags.first(tag::SAMPLES_PER_PIXEL)?;
        let photometric = tags.first(tag::PHOTOMETRIC_INTERPRETATION)?.unwrap_or(photometric::WHITE_IS_ZERO);
        // Some writers of YCbCr omit the number of samples.
        let default_samples = if photometric == photometric::YCBCR { 3 } else { 1 };
        let samples = samples.map_or(default_samples, |n| usize::try_from(n).unwrap_or(0));
        if !(1..=16).contains(&samples) {
            return Err(unsupported("other than 1 to 16 samples a pixel"));
        }
        let bits = tags.list(tag::BITS_PER_SAMPLE)?;
        let first = bits.first().copied().unwrap_or(1);
        if !matches!(first, 1..=64) || bits.iter().take(samples).any(|bits| *bits != first) {
            return Err(unsupported("samples of different or of more than 64 bits"));
        }
        let formats = tags.list(tag::SAMPLE_FORMAT)?;
        let sample_format = formats.first().copied().unwrap_or(sample_format::UNSIGNED);
        if formats.iter().take(samples).any(|format| *format != sample_format) {
            return Err(unsupported("samples of different formats"));
        }
        let xmp = tags.raw(tag::XMP).ok().flatten().map(Cow::Borrowed);
        let orientation = Metadata { exif: Some(Cow::Borrowed(bytes)), xmp }.orientation();
        let tiled = tags.raw(tag::TILE_WIDTH)?.is_some();
        let chunk = match tiled {
            true => (side(tag::TILE_WIDTH)?, side(tag::TILE_LENGTH)?),
            false => (width, side(tag::ROWS_PER_STRIP)?.min(height)),
        };
        // Without RowsPerStrip, one strip is the whole image.
        let chunk = if !tiled && chunk.1 == 0 { (width, height) } else { chunk };
        if chunk.0 == 0 || chunk.1 == 0 {
            return Err(Error::Empty { format: Format::Tiff, width: chunk.0, height: chunk.1 });
        }
        // Some writers use the tags of strips for tiles.
        let (offsets, lengths) = if tags.raw(tag::TILE_OFFSETS)?.is_some() {
            (tag::TILE_OFFSETS, tag::TILE_BYTE_COUNTS)
        } else {
            (tag::STRIP_OFFSETS, tag::STRIP_BYTE_COUNTS)
        };
        let subsampling = tags.list(tag::YCBCR_SUBSAMPLING)?;
        let subsampling = |at: usize| subsampling.get(at).map_or(2, |n| u32::try_from(*n).unwrap_or(0));
        let (offsets, lengths) = (tags.list(offsets)?, tags.list(lengths)?);
        let mut sorted = if lengths.len() < offsets.len() { offsets.clone() } else { vec![] };
        sorted.sort_unstable();
        Ok(Layout {
            big_endian: tags.big_endian,
            width,
            height,
            orientation,
            bits: first as u8,
            samples,
            sample_format,
            photometric,
            compression: tags.first(tag::COMPRESSION)?.unwrap_or(compression::NONE),
            predictor: tags.first(tag::PREDICTOR)?.unwrap_or(1),
            low_bits_first: tags.first(tag::FILL_ORDER)? == Some(2),
            planar: samples > 1 && tags.first(tag::PLANAR_CONFIGURATION)? == Some(2),
            extra: tags.list(tag::EXTRA_SAMPLES)?,
            t4_options: tags.first(tag::T4_OPTIONS)?.unwrap_or(0),
            palette: if photometric == photometric::PALETTE { tags.list(tag::COLOR_MAP)? } else { vec![] },
            ycbcr_subsampling: (subsampling(0), subsampling(1)),
            ycbcr_coefficients: tags.rationals(tag::YCBCR_COEFFICIENTS)?.unwrap_or([0.299, 0.587, 0.114]),
            reference_black_white: tags
                .rationals(tag::REFERENCE_BLACK_WHITE)?
                .unwrap_or([0.0, 255.0, 128.0, 255.0, 128.0, 255.0]),
            jpeg_tables: tags.raw(tag::JPEG_TABLES)?,
            chunk,
            offsets,
            lengths,
            sorted,
        })
    }

    /// Returns whether the first of the extra samples is alpha.
    pub(super) fn has_alpha(&self) -> bool {
        self.extra.first().is_some_and(|extra| matches!(extra, 1 | 2))
    }

    /// Returns the channels before conversion to RGB: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha or CMYK.
    pub(super) fn channels(&self) -> u8 {
        let alpha = self.has_alpha();
        match self.photometric {
            photometric::WHITE_IS_ZERO | photometric::BLACK_IS_ZERO => 1 + u8::from(alpha),
            photometric::CMYK => 4,
            photometric::RGB => 3 + u8::from(alpha || self.samples == 4 && self.extra.is_empty()),
            _ => 3 + u8::from(alpha),
        }
    }

    /// Returns whether the compression is one with which libtiff uses the predictor. With others it is ignored.
    pub(super) fn has_predictor(&self) -> bool {
        use compression::{DEFLATE, LZW, OLD_DEFLATE, ZSTD};
        matches!(self.compression, LZW | DEFLATE | OLD_DEFLATE | ZSTD)
    }

    /// Returns whether samples are floating-point numbers.
    pub(super) fn is_float(&self) -> bool {
        self.sample_format == sample_format::FLOAT
    }

    /// Returns whether the samples are YCbCr, except in JPEG compression, which is converted to RGB with it.
    pub(super) fn is_ycbcr(&self) -> bool {
        self.photometric == photometric::YCBCR && self.compression != compression::JPEG
    }

    /// Returns whether the image is left to the `image` crate: inks of 16 bits in planes of tiles, which no writer that we know
    /// makes. The tests of panics need a file with which a decoder panics, and this is the only one known.
    pub(super) fn is_foreign(&self) -> bool {
        self.photometric == photometric::CMYK && self.planar && self.bits == 16 && self.chunk.0 < self.width
    }

    /// Returns the number of samples per pixel within a chunk.
    pub(super) fn chunk_samples(&self) -> usize {
        if self.planar { 1 } else { self.samples }
    }

    /// Returns the length of an uncompressed row of a chunk in bytes.
    pub(super) fn row_bytes(&self) -> u64 {
        (u64::from(self.chunk.0) * u64::from(self.bits) * self.chunk_samples() as u64).div_ceil(8)
    }

    /// Returns an upper bound of the uncompressed bytes of a chunk that are inside the image, for JPEG of the whole chunk, and of
    /// what decompressing it takes in addition.
    pub(super) fn chunk_bytes(&self) -> u64 {
        let row = self.row_bytes().max(u64::from(self.chunk.0) * 3);
        let rows = if self.compression == compression::JPEG { self.chunk.1 } else { self.chunk.1.min(self.height) };
        let fax = matches!(self.compression, compression::CCITT_RLE | compression::FAX3 | compression::FAX4);
        let scratch = if fax { fax::scratch_bytes(self.chunk.0) } else { 0 };
        // Blocks of subsampled YCbCr may extend up to four rows beyond the chunk.
        row.saturating_mul(u64::from(rows) + if self.is_ycbcr() { 4 } else { 0 }).saturating_add(scratch)
    }

    fn across(&self) -> u64 {
        self.width.div_ceil(self.chunk.0).into()
    }

    /// Returns the number of chunks per plane. They are numbered in rows from left to right, from the top.
    pub(super) fn chunks_per_plane(&self) -> u64 {
        self.across() * u64::from(self.height.div_ceil(self.chunk.1))
    }

    /// Returns the part of the image that chunk `number` of a plane covers.
    pub(super) fn area(&self, number: u64) -> Area {
        // Both factors are less than the sides of the image, so the casts and products do not overflow.
        let left = (number % self.across()) as u32 * self.chunk.0;
        let top = (number / self.across()) as u32 * self.chunk.1;
        Area { left, top, width: self.chunk.0.min(self.width - left), height: self.chunk.1.min(self.height - top) }
    }

    /// Returns offset and length of a chunk in the file, in bytes.
    pub(super) fn chunk_of(&self, plane: usize, number: u64) -> Result<(u64, u64), Error> {
        let at = self.chunks_per_plane() * plane as u64 + number;
        let of = |list: &[u64]| usize::try_from(at).ok().and_then(|at| list.get(at).copied());
        let offset = of(&self.offsets).ok_or(Error::Header {
            format: Format::Tiff,
            offset: 0,
            expected: "an offset for each strip or tile",
            found: self.offsets.len() as u64,
        })?;
        // Some writers omit lengths. Such a chunk extends to the next one or to the end of the file.
        let length = of(&self.lengths).unwrap_or_else(|| {
            let next = self.sorted.partition_point(|other| *other <= offset);
            self.sorted.get(next).map_or(u64::MAX, |next| next - offset)
        });
        Ok((offset, length))
    }
}
