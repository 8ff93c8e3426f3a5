//! Decodes JPEG XL with `jxl-oxide`, in the colour space of the file. The decoder applies the orientation. It gets the
//! codestream only: of a container it decompresses metadata (`brob` boxes) without a limit, and no pixel depends on them.

use jxl_oxide::{AllocTracker, JxlImage};

use super::decoder_error;
use super::to_rgb::{replicate, select};
use crate::error::Error;
use crate::format::Format;
use crate::header;
use crate::limits::Limits;
use crate::pixels::Pixels;

/// Decodes the first frame. Call it inside
/// [`catch_panic`](super::panics::catch_panic).
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    let tracker = AllocTracker::with_limit(usize::try_from(limits.max_bytes).unwrap_or(usize::MAX));
    let codestream = header::jxl_codestream(bytes);
    let image = JxlImage::builder().alloc_tracker(tracker).read(&*codestream).map_err(damaged)?;
    let (width, height) = (image.width(), image.height());
    // The decoder renders 32-bit floating-point samples.
    limits.check(Format::Jxl, width, height, 4 * image.pixel_format().channels() as u8)?;
    if image.pixel_format().has_black() {
        return Err(Error::Unsupported { format: Format::Jxl, feature: "CMYK" });
    }
    let render = image.render_frame(0).map_err(damaged)?;
    let mut stream = render.stream_no_alpha();
    let (channels, count) = (stream.channels() as usize, width as usize * height as usize);
    if (stream.width(), stream.height()) != (width, height) {
        return Err(Error::SizeMismatch { expected: (width, height), found: (stream.width(), stream.height()) });
    }
    pixels.data.resize(count * channels.max(3), 0);
    stream.write_to_buffer::<u8>(&mut pixels.data[..count * channels]);
    match channels {
        1 => replicate::<1>(&mut pixels.data, count, 0),
        2 => replicate::<2>(&mut pixels.data, count, 0),
        3 => {}
        4 => select::<4, 3>(&mut pixels.data, count, [0, 1, 2]),
        _ => return Err(Error::Unsupported { format: Format::Jxl, feature: "more than four channels" }),
    }
    pixels.data.truncate(count * 3);
    (pixels.width, pixels.height) = (width, height);
    Ok(())
}

fn damaged(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    decoder_error(Format::Jxl, source)
}
