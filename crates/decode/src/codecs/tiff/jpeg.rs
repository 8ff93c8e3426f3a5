//! Decompresses strips and tiles in JPEG compression (TIFF Technical Note 2).

use shardtool_jpeg as jpeg;

use super::codec::damaged;
use super::layout::{Layout, unsupported};
use super::tags::photometric;
use crate::error::Error;

/// Decodes JPEG streams to samples, as many for each pixel as the directory says.
pub(super) struct JpegCodec<'l, 'a> {
    layout: &'l Layout<'a>,
    decoder: jpeg::Decoder,
    /// The stream with its tables.
    input: Vec<u8>,
}

impl<'l, 'a> JpegCodec<'l, 'a> {
    pub(super) fn new(layout: &'l Layout<'a>) -> Result<Self, Error> {
        if layout.bits != 8 || layout.chunk_samples() > 4 {
            return Err(unsupported("JPEG compression of other than 1 to 4 samples of 8 bits"));
        }
        let decoder = jpeg::Decoder::new().with_limits(crate::encoded::unlimited());
        Ok(JpegCodec { layout, decoder, input: vec![] })
    }

    /// Decodes the first `rows` rows of a stream, complete or with its tables in the directory, into `out`. The photometric
    /// interpretation decides about the colour transform, not the markers in the stream: YCbCr becomes RGB, other samples stay.
    pub(super) fn decode(&mut self, stream: &[u8], rows: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let ycbcr = self.layout.photometric == photometric::YCBCR;
        self.input.clear();
        // An Adobe segment: version 100, no flags, then the colour transform (0 RGB, 1 YCbCr).
        self.input.extend(b"\xFF\xD8\xFF\xEE\0\x0EAdobe\0\x64\0\0\0\0");
        self.input.push(u8::from(ycbcr));
        for stream in self.layout.jpeg_tables.into_iter().chain([stream]) {
            append_jpeg(stream, &mut self.input)?;
        }
        let limits = crate::encoded::unlimited();
        let invalid = |source| Error::Jpeg { source };
        let image = jpeg::ParsedImage::parse_samples(&self.input, &limits).map_err(invalid)?;
        let header = image.header();
        let samples = header.components().len();
        if samples != self.layout.chunk_samples() {
            return Err(damaged("the components of a JPEG strip or tile differ from the directory"));
        }
        let (width, height) = self.layout.chunk;
        // Encoders pad tiles. The last strip may have the height of the others or only that of its rows.
        if header.width != width || header.height < rows || header.height > height.max(rows) {
            return Err(damaged("the size of a JPEG strip or tile differs from the directory"));
        }
        // A single component is decoded to grey alone.
        let channels = if samples == 1 { jpeg::Channels::Gray } else { jpeg::Channels::Rgb };
        let stride = width as usize * samples;
        out.resize(stride * header.height as usize, 0);
        let request = jpeg::Request { channels, ..jpeg::Request::default() };
        self.decoder.decode_parsed(&image, None, &request, out, stride).map_err(invalid)?;
        out.truncate(stride * rows as usize);
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
