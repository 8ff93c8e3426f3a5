//! JPEG XL to RGB through `jxl-oxide`, in the colour space of the file and upright, as its codestream says.

use jxl_oxide::{AllocTracker, JxlImage};

use crate::error::Error;
use crate::format::Format;
use crate::library::{pick, spread};
use crate::limits::Limits;
use crate::pixels::Pixels;

/// Decodes the first frame. Foreign code: to be called inside [`isolate`](crate::foreign::isolate).
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    let tracker = AllocTracker::with_limit(usize::try_from(limits.max_bytes).unwrap_or(usize::MAX));
    let image = JxlImage::builder().alloc_tracker(tracker).read(bytes).map_err(bad)?;
    let (width, height) = (image.width(), image.height());
    // Rendered as 32-bit floating point.
    limits.check(Format::Jxl, width, height, 4 * image.pixel_format().channels() as u8)?;
    if image.pixel_format().has_black() {
        return Err(Error::Unsupported { format: Format::Jxl, feature: "CMYK" });
    }
    let render = image.render_frame(0).map_err(bad)?;
    let mut stream = render.stream_no_alpha();
    let (channels, count) = (stream.channels() as usize, width as usize * height as usize);
    if (stream.width(), stream.height()) != (width, height) {
        return Err(Error::SizeMismatch { expected: (width, height), found: (stream.width(), stream.height()) });
    }
    pixels.data.resize(count * channels.max(3), 0);
    stream.write_to_buffer::<u8>(&mut pixels.data[..count * channels]);
    match channels {
        1 => spread::<1>(&mut pixels.data, count, 0),
        2 => spread::<2>(&mut pixels.data, count, 0),
        3 => {}
        4 => pick::<4>(&mut pixels.data, count, [0, 1, 2]),
        _ => return Err(Error::Unsupported { format: Format::Jxl, feature: "more than four channels" }),
    }
    pixels.data.truncate(count * 3);
    (pixels.width, pixels.height) = (width, height);
    Ok(())
}

fn bad(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Foreign { format: Format::Jxl, source: source.into() }
}
