//! Fields: what a batch has of each record.

use super::{Arrays, Clip, Column, FurtherImage, Image, Mask, Objects, PixelMask, RaggedArrays, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a batch has of each record. Fields that belong to an image share its geometry: the random numbers of its steps are drawn once
/// for a sample.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Field {
    /// The record itself, with its CRC checked.
    Record,
    /// The record's image, decoded and transformed; several views of it, if it has several lists of steps.
    Image(Image),
    /// A further image of the record.
    FurtherImage(FurtherImage),
    /// A label map of the image.
    Mask(Mask),
    /// Which pixels show the image.
    PixelMask(PixelMask),
    /// Boxes and points in the image.
    Objects(Objects),
    /// Frames of a video, in place of an image.
    Clip(Clip),
    /// Arrays, such as volumes.
    Arrays(Arrays),
    /// Arrays that differ in length, such as point clouds.
    RaggedArrays(RaggedArrays),
    /// The values of a feature.
    Column(Column),
    /// Rows of several samples of tokens.
    Tokens(Tokens),
}

macro_rules! from {
    ($($kind:ident),*) => {
        $(impl From<$kind> for Field {
            fn from(field: $kind) -> Self {
                Field::$kind(field)
            }
        })*
    };
}

from!(Image, FurtherImage, Mask, PixelMask, Objects, Clip, Arrays, RaggedArrays, Column, Tokens);
