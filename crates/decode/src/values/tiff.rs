//! Values of TIFF.

use super::StoredValues;
use crate::codecs::decoder_error;
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use shardtool_format::array::ArrayDtype;
use std::io::Cursor;
use tiff::decoder::{Decoder, DecodingResult};
use tiff::tags::Tag;

/// Photometric interpretations (tag 262) whose samples are values: 0 is black, and RGB.
const VALUES: [u16; 2] = [1, 2];

/// The bit of a smaller copy of another image in the tag NewSubfileType (254).
const REDUCED: u32 = 1;
/// Smaller copies in a file, at most.
const MOST_IMAGES: usize = 64;

/// Decodes the only image. Call it inside [`catch_panic`](crate::codecs::panics::catch_panic).
///
/// # Errors
/// [`Error::Values`] for samples of other than 8, 16, 32 or 64 bits, in several planes, or with another photometric interpretation
/// than grey or RGB; if the file is damaged or truncated, or exceeds a limit.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<StoredValues, Error> {
    let damaged = |source: tiff::TiffError| decoder_error(Format::Tiff, source);
    let wrong = |problem| Error::Values { format: Format::Tiff, problem };
    let allowed = usize::try_from(limits.max_bytes).unwrap_or(usize::MAX);
    let mut of_decoder = tiff::decoder::Limits::default();
    (of_decoder.decoding_buffer_size, of_decoder.intermediate_buffer_size) = (allowed, allowed);
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(damaged)?.with_limits(of_decoder);
    let (width, height) = decoder.dimensions().map_err(damaged)?;
    let photometric: u16 = decoder.get_tag_unsigned(Tag::PhotometricInterpretation).map_err(damaged)?;
    if !VALUES.contains(&photometric) {
        return Err(wrong("its samples are not grey with 0 as black, or RGB"));
    }
    check_tags(&mut decoder)?;
    let color = decoder.colortype().map_err(damaged)?;
    if !matches!(color.bit_depth(), 8 | 16 | 32 | 64) {
        return Err(wrong("samples of other than 8, 16, 32 or 64 bits"));
    }
    let channels = usize::from(color.num_samples());
    let pixel = channels * usize::from(color.bit_depth()) / 8;
    limits.check(Format::Tiff, width, height, u8::try_from(pixel).map_err(|_| wrong("too many channels"))?)?;
    let layout = decoder.image_buffer_layout().map_err(damaged)?;
    if layout.planes > 1 {
        return Err(wrong("a plane for each channel"));
    }
    let (dtype, data) = little_endian(decoder.read_image().map_err(damaged)?);
    check_alone(&mut decoder)?;
    if data.len() as u64 != u64::from(width) * u64::from(height) * pixel as u64 {
        return Err(wrong("another number of samples than its size says"));
    }
    Ok(StoredValues { size: (width, height), channels, dtype, data })
}

/// Refuses samples whose bits or pixels are in another order than their values.
fn check_tags(decoder: &mut Decoder<Cursor<&[u8]>>) -> Result<(), Error> {
    for (tag, problem) in [
        (Tag::FillOrder, "the bits of each byte in reverse order"),
        (Tag::Orientation, "pixels that are to be turned: turn those of the file"),
    ] {
        let found = decoder.find_tag_unsigned::<u16>(tag).map_err(|source| decoder_error(Format::Tiff, source))?;
        if found.is_some_and(|value| value != 1) {
            return Err(Error::Values { format: Format::Tiff, problem });
        }
    }
    Ok(())
}

/// Refuses a file of several images, such as the slices of a volume. Smaller copies of the same image are none.
fn check_alone(decoder: &mut Decoder<Cursor<&[u8]>>) -> Result<(), Error> {
    let damaged = |source: tiff::TiffError| decoder_error(Format::Tiff, source);
    for _ in 0..MOST_IMAGES {
        if !decoder.more_images() {
            return Ok(());
        }
        decoder.next_image().map_err(damaged)?;
        let kind: Option<u32> = decoder.find_tag_unsigned(Tag::NewSubfileType).map_err(damaged)?;
        if kind.unwrap_or(0) & REDUCED == 0 {
            break;
        }
    }
    Err(Error::Values { format: Format::Tiff, problem: "it has several images" })
}

/// Returns the type of the values, and their bytes.
fn little_endian(values: DecodingResult) -> (ArrayDtype, Vec<u8>) {
    macro_rules! bytes {
        ($($kind:ident $dtype:ident)*) => {
            match values {
                DecodingResult::U8(values) => (ArrayDtype::U8, values),
                $(DecodingResult::$kind(values) => {
                    (ArrayDtype::$dtype, values.into_iter().flat_map(|value| value.to_le_bytes()).collect())
                })*
            }
        };
    }
    bytes!(U16 U16 U32 U32 U64 U64 I8 I8 I16 I16 I32 I32 I64 I64 F16 F16 F32 F32 F64 F64)
}
