//! Label maps of images.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shardtool_decode::LabelDtype;

/// A label map for each image: a segmentation mask, as a grey or palette PNG or a grey TIFF of the image's size, one label for
/// each pixel; or a panoptic map, as an RGB PNG of ids. It gets the geometry of the image's steps by nearest neighbour.
///
/// A batch has it as `"mask"`, `[N, H, W]`; of several masks each has the name of its feature. Rows without a sample hold the
/// largest label, or -1 of `"int32"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Mask {
    /// The feature with the label map.
    #[schemars(extend("x-positional" = true))]
    pub feature: String,
    /// The type of the labels: `"uint8"`, or `"uint16"`, such as for instances, or `"int32"` for the ids of panoptic maps, which RGB
    /// codes as R + 256 G + 65,536 B, as COCO does. A label that does not fit makes a bad sample.
    #[serde(default)]
    pub dtype: LabelDtype,
    /// The label outside the image, where it is padded or rotated, one of the type. Default: the largest one, which losses ignore by
    /// convention, and -1 of `"int32"`.
    #[serde(default)]
    pub fill: Option<i32>,
}

impl Mask {
    /// Returns a mask of 8-bit labels.
    pub fn new(feature: impl Into<String>) -> Self {
        Mask { feature: feature.into(), dtype: LabelDtype::U8, fill: None }
    }
}
