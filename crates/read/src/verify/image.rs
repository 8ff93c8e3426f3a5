//! Decodes a record's image and compares it with what the record says about it.

use shardtool_decode::{self as decode, DecodeBudget, DecodeOptions, FloatRange, Format, Limits};
use shardtool_format::example::Example;
use shardtool_format::{Damage, names};

/// The kind of damage, and a sentence about it.
pub(super) type Fault = (Damage, String);

pub(super) fn check(image: &[u8], example: &Example<'_>, entries: Option<&[u8]>) -> Result<(), Fault> {
    let budget = DecodeBudget::of_process();
    let limits = Limits::default();
    let recorded = example.bytes(names::IMAGE_FORMAT).map(String::from_utf8_lossy);
    let format = match recorded.as_deref().map(Format::from_name) {
        Some(None) => {
            return Err(undecodable(format!("unknown image/format `{}`", recorded.unwrap_or_default())));
        }
        Some(Some(format)) => Some(format),
        None => decode::sniff(image),
    };
    let side = |name| example.int64(name).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    let size = side(names::IMAGE_WIDTH).zip(side(names::IMAGE_HEIGHT));
    if let Some(format @ (Format::Raw | Format::RawZstd)) = format {
        let unsized_pixels = || (Damage::PixelsLength, "raw pixels without a width and a height".to_owned());
        let (width, height) = size.ok_or_else(unsized_pixels)?;
        let _admitted = budget.admit_raw(format, image, (width, height)).map_err(fault)?;
        let mut buffer = vec![];
        decode::decode_raw(format, image, width, height, &limits, &mut buffer).map_err(fault)?;
        return if entries.is_some() { Err(wrong_entries()) } else { Ok(()) };
    }
    // Floating-point samples decode with a range only. The pixels are dropped, so any range will do.
    let options = DecodeOptions::default().with_limits(limits).with_float_range(FloatRange::new(0.0, 1.0));
    let _admitted = budget.admit(image, &limits).map_err(fault)?;
    let pixels = decode::decode(image, &options).map_err(fault)?;
    if size.is_some_and(|size| size != (pixels.width, pixels.height)) {
        return Err(undecodable(format!("{}x{} pixels, recorded as {size:?}", pixels.width, pixels.height)));
    }
    if entries.is_some_and(|entries| !decode::check_entries(image, entries)) {
        return Err(wrong_entries());
    }
    match decode::sniff(image) {
        found if format.is_some() && found != format => {
            let name = |f: Option<Format>| f.map_or("an unknown format", Format::name);
            Err(undecodable(format!("recorded as {}, but it is {}", name(format), name(found))))
        }
        _ => Ok(()),
    }
}

fn fault(error: decode::Error) -> Fault {
    let text = shardtool_format::Chain(&error).to_string();
    match error.damage() {
        Damage::ImageDecode => undecodable(text),
        damage => (damage, text),
    }
}

fn wrong_entries() -> Fault {
    (Damage::IndexMismatch, "its JPEG entry points are not those of the image".to_owned())
}

fn undecodable(problem: String) -> Fault {
    (Damage::ImageDecode, format!("the image does not decode: {problem}"))
}
