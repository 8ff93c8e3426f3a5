//! Decompresses strips and tiles in JPEG compression (TIFF Technical Note 2).

use shardtool_jpeg as jpeg;

use super::error::{damaged, unsupported};
use super::layout::Layout;
use super::tags::photometric;
use crate::error::Error;

/// Decodes JPEG streams to samples, as many for each pixel as the directory says.
pub(super) struct JpegCodec<'l, 'a> {
    layout: &'l Layout<'a>,
    decoder: jpeg::Decoder,
    /// What precedes each stream: an Adobe segment, and the tables of the directory.
    prefix: Vec<u8>,
    /// The stream with its tables.
    input: Vec<u8>,
}

impl<'l, 'a> JpegCodec<'l, 'a> {
    pub(super) fn new(layout: &'l Layout<'a>) -> Result<Self, Error> {
        if layout.bits != 8 || layout.chunk_samples() > 4 {
            return Err(unsupported("JPEG compression of other than 1 to 4 samples of 8 bits"));
        }
        let decoder = jpeg::Decoder::new().with_limits(crate::encoded::unlimited());
        // An Adobe segment: version 100, no flags, then the colour transform (0 RGB, 1 YCbCr).
        let mut prefix = b"\xFF\xD8\xFF\xEE\0\x0EAdobe\0\x64\0\0\0\0".to_vec();
        prefix.push(u8::from(layout.photometric == photometric::YCBCR));
        if let Some(tables) = layout.jpeg_tables {
            append_jpeg(tables, &mut prefix)?;
        }
        Ok(JpegCodec { layout, decoder, prefix, input: vec![] })
    }

    /// Returns the bytes that precede each stream.
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix.len()
    }

    /// Decodes the first `rows` rows of a stream, complete or with its tables in the directory, into `out`. The photometric
    /// interpretation decides about the colour transform, not the markers in the stream: YCbCr becomes RGB, other samples stay.
    pub(super) fn decode(&mut self, stream: &[u8], rows: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        self.input.clone_from(&self.prefix);
        append_jpeg(stream, &mut self.input)?;
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

/// Returns the length of the JPEG stream at the beginning of `data`, its end-of-image marker included. A stream without one ends
/// at the next start-of-image marker or with `data`, as does one with a damaged segment. Reads no more than that length.
pub(super) fn stream_len(data: &[u8]) -> usize {
    let mut at = 2;
    loop {
        // Entropy-coded data, or what precedes the next marker.
        match memchr::memchr(0xFF, data.get(at..).unwrap_or_default()) {
            Some(distance) => at += distance,
            None => return data.len(),
        }
        match data.get(at + 1) {
            None => return data.len(),
            Some(0xFF) => at += 1,
            Some(0 | 1 | 0xD0..=0xD7) => at += 2,
            Some(0xD8) => return at,
            Some(0xD9) => return at + 2,
            Some(_) => match data.get(at + 2..at + 4) {
                Some(&[high, low]) => at += 2 + usize::from(u16::from_be_bytes([high, low])).max(2),
                _ => return data.len(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stream_len;

    #[test]
    fn finds_the_end_of_a_stream_by_its_markers() {
        let comment = b"\xFF\xFE\0\x06\xFF\xD9\xFF\xD8";
        let scan = b"\xFF\xDA\0\x03\x01ab\xFF\0c\xFF\xD0d";
        let stream = [&b"\xFF\xD8"[..], comment, scan, comment, scan, b"\xFF\xFF\xD9"].concat();
        assert_eq!(stream_len(&[&stream[..], &[7; 1000]].concat()), stream.len());
        let cut = &stream[..stream.len() - 3];
        assert_eq!(stream_len(&[cut, &stream].concat()), cut.len(), "without an end, up to the next stream");
        for len in 0..stream.len() {
            assert_eq!(stream_len(&stream[..len]), len);
        }
    }
}
