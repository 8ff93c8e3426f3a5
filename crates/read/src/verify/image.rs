//! Decodes a record's image, to see whether it can be, and is what the record says.

use shardtool_decode::{self as decode, DecodeOptions, Format, Limits};
use shardtool_format::example::Example;
use shardtool_format::names;

/// What is wrong with an image: the error's name, and a sentence.
pub(super) struct Fault {
    pub(super) name: &'static str,
    pub(super) problem: String,
}

pub(super) fn check(image: &[u8], example: &Example<'_>, entries: Option<&[u8]>) -> Result<(), Fault> {
    let limits = Limits::default();
    let recorded = example.bytes(names::IMAGE_FORMAT).map(String::from_utf8_lossy);
    let format = match recorded.as_deref().map(Format::from_name) {
        Some(None) => return Err(undecodable(format!("image/format `{}` is not known", recorded.unwrap_or_default()))),
        Some(Some(format)) => Some(format),
        None => decode::sniff(image),
    };
    let side = |name| example.int64(name).and_then(|n| u32::try_from(n).ok());
    let size = side(names::IMAGE_WIDTH).zip(side(names::IMAGE_HEIGHT));
    if let Some(format @ (Format::Raw | Format::RawZstd)) = format {
        let problem = "raw pixels without a width and a height".to_owned();
        let (width, height) = size.ok_or(Fault { name: "PixelsLength", problem })?;
        return match decode::decode_raw(format, image, width, height, &limits, &mut vec![]) {
            Ok(_) => Ok(()),
            Err(error @ (decode::Error::PixelBytes { .. } | decode::Error::ZstdSize)) => {
                Err(Fault { name: "PixelsLength", problem: error.to_string() })
            }
            Err(error) => Err(undecodable(error.to_string())),
        };
    }
    let pixels = decode::decode(image, &DecodeOptions::default().with_limits(limits));
    let pixels = pixels.map_err(|error| undecodable(error.to_string()))?;
    if size.is_some_and(|size| size != (pixels.width, pixels.height)) {
        return Err(undecodable(format!("{}x{} pixels, recorded as {size:?}", pixels.width, pixels.height)));
    }
    if entries.is_some_and(|entries| !decode::check_entries(image, entries)) {
        return Err(Fault {
            name: "IndexMismatch",
            problem: "its JPEG entry points are not those of the image".to_owned(),
        });
    }
    match decode::sniff(image) {
        found if format.is_some() && found != format => {
            let name = |f: Option<Format>| f.map_or("nothing known", Format::name);
            Err(undecodable(format!("recorded as {}, but it is {}", name(format), name(found))))
        }
        _ => Ok(()),
    }
}

fn undecodable(problem: String) -> Fault {
    Fault { name: "ImageDecode", problem: format!("the image does not decode: {problem}") }
}
