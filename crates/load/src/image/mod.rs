//! Decodes the images and the label maps of a record into their rows of the batch.
//!
//! | module | content |
//! |---|---|
//! | `stored` | images of a record: bytes, and properties from the index or the header |
//! | `bounded` | the size of cached images |
//! | `draws` | the random numbers of a sample |
//! | `planned` | crops, sizes and other steps drawn for a sample, and the memory that they need |
//! | `clip` | the frames of clips, planned and decoded |
//! | `object_masks` | masks of objects, drawn and moved with the image |
//! | `positions` | where the pixels of a result lie in the stored image |
//! | `write` | decoding and transforming |

mod bounded;
mod clip;
mod draws;
mod object_masks;
mod planned;
mod positions;
mod stored;
mod write;

pub(crate) use bounded::SampleCache;
pub(crate) use clip::{Frame, PlannedClips, write_clips};
pub use draws::{SampleDraws, StepDraws};
pub(crate) use object_masks::OBJECTS;
pub(crate) use planned::PlannedImage;
use shardtool_decode::PixelFormat;
pub(crate) use stored::further;
pub(crate) use write::{DecodeScratch, Decoding, ScratchBytes, write_object_masks, write_row};

/// Returns the number of pixels of a size.
pub(crate) fn pixels((width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height)
}

/// Returns the bytes of an image of this width and height.
pub(crate) fn image_bytes(size: (u32, u32), format: PixelFormat) -> u64 {
    pixels(size) * format.bytes() as u64
}

/// Returns width and height, if both are at least 1 and fit `u32`.
pub(crate) fn size(width: i64, height: i64) -> Option<(u32, u32)> {
    let side = |n: i64| u32::try_from(n).ok().filter(|n| *n > 0);
    side(width).zip(side(height))
}
