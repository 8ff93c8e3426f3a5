//! Which pixels of a batch show the image.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which pixels show the image, and which are padding: for models that take images of several sizes in one batch, such as DETR.
///
/// A batch has it as `"pixel_mask"`, `[N, H, W]` uint8: 1 where a pixel of the result lies on the stored image, and 0 where a step
/// added pixels of a colour, or turned the image away. Pixels that a step repeats or mirrors at the edge (`padding_mode`) are 1, and so
/// are erased ones. It gets the geometry of the image's steps by nearest neighbour, as a `Mask` does: where one is 0, the other has its
/// `fill`. Rows without a sample are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PixelMask {}
