//! The arrays of a batch, other than columns, as the consumer sees them.

use crate::buffer::BatchBuffer;
use shardtool_decode::{LabelDtype, Output, PixelFormat};
use shardtool_format::array::ArrayDtype;
use std::fmt;

/// One array of images of a batch.
#[non_exhaustive]
pub struct Pictures<'b> {
    /// The feature of a further image or of clips; `None` for the record's image.
    pub feature: Option<&'b str>,
    /// The name of the view; empty if it has none.
    pub view: &'b str,
    /// `[N, H, W, C]`, or `[N, C, H, W]` if that is the layout of `output`; C is 3, or 1 for grey. With clips, N is the number of
    /// all frames of the batch.
    pub shape: [usize; 4],
    /// The channels, and the bits of a sample.
    pub pixel_format: PixelFormat,
    /// Type, layout and normalisation; `None` for u8, or little-endian u16 with 16 bits.
    pub output: Option<&'b Output>,
    /// Whether a further image holds values, which are never normalised ([`FurtherKind::Values`](crate::FurtherKind::Values)).
    pub values: bool,
    /// Clips of a row, and frames of each; `None` without clips.
    pub clips: Option<[usize; 2]>,
    /// The memory of the pixels, as its allocator returned it.
    pub buffer: &'b dyn BatchBuffer,
    /// The pixels, aligned to 64 bytes.
    pub bytes: &'b [u8],
}

impl fmt::Debug for Pictures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pictures").field("feature", &self.feature).field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// The label maps of a batch: see [`Mask`](crate::Mask).
#[non_exhaustive]
pub struct Masks<'b> {
    /// The feature; empty for [`Batch::pixel_mask`](crate::Batch::pixel_mask).
    pub feature: &'b str,
    /// The type of the labels.
    pub dtype: LabelDtype,
    /// `[N, H, W]`.
    pub shape: [usize; 3],
    /// The memory of the labels, aligned to 64 bytes.
    pub buffer: &'b dyn BatchBuffer,
    /// The labels: u8, or little-endian u16. Rows without a sample hold the largest label, 255 or 65535; loss functions ignore 255 by
    /// convention. Those of a pixel mask hold 0.
    pub bytes: &'b [u8],
}

impl fmt::Debug for Masks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masks").field("feature", &self.feature).field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// One array of a batch, other than images and columns: see [`Arrays`](crate::Arrays).
#[non_exhaustive]
pub struct Array<'b> {
    /// The feature.
    pub feature: &'b str,
    /// The type of the elements, which are little-endian.
    pub dtype: ArrayDtype,
    /// `[N, …]`.
    pub shape: Vec<usize>,
    /// The memory of the elements, aligned to 64 bytes.
    pub buffer: &'b dyn BatchBuffer,
    /// The elements in C order; zeros in rows without a sample.
    pub bytes: &'b [u8],
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array").field("feature", &self.feature).field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Pictures<'_> {
    /// Returns the shape with a dimension for the frames of a clip, and one before it for clips, if a row has several:
    /// `[N, clips, frames, H, W, 3]`.
    pub fn dimensions(&self) -> Vec<usize> {
        let [images, rest @ ..] = self.shape;
        let rows = match self.clips {
            None => vec![images],
            Some([1, frames]) => vec![images / frames, frames],
            Some([clips, frames]) => vec![images / (clips * frames), clips, frames],
        };
        rows.into_iter().chain(rest).collect()
    }
}
