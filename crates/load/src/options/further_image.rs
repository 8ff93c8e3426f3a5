//! Further images of each record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shardtool_decode::PixelFormat;

/// A further image of each record, of the same size as its image. It goes through the same steps with the same random numbers.
/// A batch has it by the feature's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FurtherImage {
    /// The feature with the image.
    #[schemars(extend("x-positional" = true))]
    pub feature: String,
    /// `"color"`: every step applies, and the batch has it as it has the image. `"values"`, such as depths or ids coded as RGB: only
    /// the geometry applies, by nearest neighbour, with 0 outside the image, and the batch has them as they are stored,
    /// `[N, H, W, C]` uint8, or uint16 if they have 16 bits. Default: colours, but grey of 16 bits and images with a palette, which
    /// often hold values, are refused if a step would mix their pixels or bits would be lost.
    #[serde(default)]
    pub kind: Option<FurtherKind>,
    /// The format of its rows, if it holds values: that of the first record. Set when the configuration is resolved.
    #[serde(skip)]
    pub(crate) values: Option<PixelFormat>,
}

/// What a further image holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FurtherKind {
    /// Colours: every step applies, and the batch has them as it has the image.
    Color,
    /// Values that must not be mixed, such as depths or ids coded as RGB: only the geometry applies, by nearest neighbour, with 0
    /// outside the image. The batch has them as they are stored, without normalisation: `[N, H, W, C]` u8, or u16 if they have 16
    /// bits. PNG and TIFF only, all of the same channels and bits.
    Values,
}

impl FurtherImage {
    /// Returns a further image of unstated kind.
    pub fn new(feature: impl Into<String>) -> Self {
        FurtherImage { feature: feature.into(), kind: None, values: None }
    }

    /// Returns a further image of this kind.
    pub fn of_kind(feature: impl Into<String>, kind: FurtherKind) -> Self {
        FurtherImage { kind: Some(kind), ..Self::new(feature) }
    }
}
