//! Metadata of PNG: `eXIf` chunks, texts with the names that ImageMagick, ExifTool and Adobe use, before or after the pixels.

use std::borrow::Cow;
use std::io::Read;

use super::Metadata;

/// Bytes of a decompressed text at most, as in Pillow.
const MAX_TEXT: u64 = 1 << 20;

/// Returns the metadata of a PNG. Of several chunks for the same thing the last one counts, as in Pillow.
pub(crate) fn metadata(bytes: &[u8]) -> Metadata<'_> {
    let (mut exif, mut profile, mut xmp) = (None, None, None);
    let (mut pixels, mut animated) = (false, false);
    for (kind, data) in chunks(bytes) {
        match &kind {
            b"IEND" => break,
            b"IDAT" => pixels = true,
            b"acTL" => animated = true,
            // The next frame.
            b"fcTL" if pixels && animated => break,
            b"eXIf" => exif = Some(data),
            b"tEXt" | b"zTXt" | b"iTXt" => match split(data) {
                (b"exif", text) if &kind == b"tEXt" => exif = Some(text),
                (b"Raw profile type exif", text) => profile = Some((kind, text)),
                (b"XML:com.adobe.xmp", text) => xmp = Some((kind, text)),
                _ => {}
            },
            _ => {}
        }
    }
    let text = |(kind, data)| text(kind, data);
    let exif = exif.map(Cow::Borrowed).or_else(|| raw_profile(&profile.and_then(text)?).map(Cow::Owned));
    Metadata { exif, xmp: xmp.and_then(text) }
}

/// Iterates over the complete chunks after the signature (PNG, section 5.3): type and data.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = bytes.get(8..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk()?;
        let (kind, after) = after.split_first_chunk()?;
        let (data, after) = after.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        rest = after.get(4..).unwrap_or_default();
        Some((*kind, data))
    })
}

/// Splits at the first zero byte.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    (&data[..at], data.get(at + 1..).unwrap_or_default())
}

/// Returns the text in what follows the keyword in a chunk of a type (PNG, section 11.3.3).
fn text(kind: [u8; 4], data: &[u8]) -> Option<Cow<'_, [u8]>> {
    match &kind {
        b"tEXt" => Some(Cow::Borrowed(data)),
        // The compression method, 0 for zlib.
        b"zTXt" => inflate(data.strip_prefix(&[0])?),
        // Whether it is compressed, the method, a language, a translated keyword.
        _ => {
            let &[compressed, method, ref rest @ ..] = data else { return None };
            let (_, text) = split(split(rest).1);
            match (compressed, method) {
                (0, _) => Some(Cow::Borrowed(text)),
                (_, 0) => inflate(text),
                _ => None,
            }
        }
    }
}

fn inflate(data: &[u8]) -> Option<Cow<'_, [u8]>> {
    // Deflate makes at most 1,032 bytes of one.
    let mut text = Vec::with_capacity(data.len().saturating_mul(1032).min(MAX_TEXT as usize));
    flate2::read::ZlibDecoder::new(data).take(MAX_TEXT).read_to_end(&mut text).ok()?;
    Some(Cow::Owned(text))
}

/// Returns the bytes of a raw profile (ImageMagick): an empty line, its name and its length, each in a line, then hexadecimal
/// digits.
fn raw_profile(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.splitn(4, |byte| *byte == b'\n').nth(3)?;
    let digits = digits.iter().filter(|byte| !byte.is_ascii_whitespace());
    let values: Option<Vec<u8>> = digits.map(|digit| Some(char::from(*digit).to_digit(16)? as u8)).collect();
    let (pairs, rest) = values.as_ref()?.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
