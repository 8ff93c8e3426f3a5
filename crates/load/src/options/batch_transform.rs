//! Transforms of whole batches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One way of mixing the rows of a batch. What is drawn depends only on seed, epoch and the position of the batch, so a resumed run
/// mixes the same; with another batch size the samples stay the same, but their partners do not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BatchTransform {
    /// Replaces each image by the weighted mean of it and the next one (Zhang et al., 2018).
    MixUp(Pairs),
    /// Replaces a rectangle of each image by that of the next one (Yun et al., 2019).
    CutMix(Pairs),
    /// Shows parts of four images around a point.
    Mosaic(Mosaic),
    /// Pastes objects of another image.
    CopyPaste(CopyPaste),
}

/// Mixes each row with the next one that has a sample. The share of a row's own image is drawn for each batch from the beta
/// distribution with both parameters `alpha`.
///
/// CutMix replaces the same rectangle in label maps, further images and arrays with `image_axes`. With these, labels are mixed only if
/// the batch has any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Pairs {
    /// Parameter of the beta distribution, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-positional" = true))]
    pub alpha: f64,
    /// Number of classes; labels become `[N, num_classes]` float32. Default: the classes of the dataset.
    #[schemars(range(min = 1))]
    pub num_classes: Option<u32>,
}

/// Shows parts of four images around a point: of the row's own above and left of it, and of the next three rows that have a sample
/// (Bochkovskiy et al., YOLOv4, 2020). The images keep their size, each with its nearest corner on the point.
///
/// Label maps, further images and arrays with `image_axes` show the same parts, and no value changes. With objects, boxes are moved and
/// clipped, and those that become too small are dropped with their labels and keypoints. Without, `"label"` becomes `[N, num_classes]`
/// float32, the share of the pixels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Mosaic {
    /// Probability that a row becomes a mosaic.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-positional" = true))]
    pub p: f64,
    /// Where the point may lie, as fractions of width and height: smallest and largest.
    #[schemars(inner(range(min = 0.0, max = 1.0)), extend("x-positional" = true, "x-ascending" = true))]
    pub center: [f64; 2],
    /// Number of classes. Default: the classes of the dataset; with objects, labels of images stay as they are.
    #[schemars(range(min = 1))]
    pub num_classes: Option<u32>,
}

/// Pastes objects of the next row that has a sample on a row, pixel by pixel of their masks, at the place that they have there
/// (Ghiasi et al., 2021). Of n objects, n numbers are drawn, and each object that is drawn is pasted, about 63 % of many, as in
/// torchvision's reference.
///
/// Needs `Objects` with `masks`. The masks of the row's own objects lose the pixels that are covered, and their boxes are those of the
/// pixels that are left; an object without any, or with a box that is too small, is dropped. Label maps, further images and arrays with `image_axes` have
/// the values of the other row where its objects are pasted. Labels of images stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CopyPaste {
    /// Probability that objects are pasted on a row.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-positional" = true))]
    pub p: f64,
}

impl Default for CopyPaste {
    fn default() -> Self {
        CopyPaste { p: 1.0 }
    }
}

impl Default for Pairs {
    fn default() -> Self {
        Pairs { alpha: 1.0, num_classes: None }
    }
}

impl Default for Mosaic {
    fn default() -> Self {
        Mosaic { p: 1.0, center: [0.25, 0.75], num_classes: None }
    }
}

impl BatchTransform {
    /// Returns MixUp.
    pub fn mix_up(alpha: f64) -> Self {
        BatchTransform::MixUp(Pairs { alpha, ..Pairs::default() })
    }

    /// Returns CutMix.
    pub fn cut_mix(alpha: f64) -> Self {
        BatchTransform::CutMix(Pairs { alpha, ..Pairs::default() })
    }

    /// Returns mosaics of rows with this probability.
    pub fn mosaic(p: f64) -> Self {
        BatchTransform::Mosaic(Mosaic { p, ..Mosaic::default() })
    }

    /// Returns copy-paste on rows with this probability.
    pub fn copy_paste(p: f64) -> Self {
        BatchTransform::CopyPaste(CopyPaste { p })
    }

    /// Returns the number of classes, if it is given.
    pub(crate) fn num_classes(self) -> Option<u32> {
        match self {
            BatchTransform::MixUp(pairs) | BatchTransform::CutMix(pairs) => pairs.num_classes,
            BatchTransform::Mosaic(mosaic) => mosaic.num_classes,
            BatchTransform::CopyPaste(_) => None,
        }
    }

    /// Checks the parameters.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        match self {
            BatchTransform::MixUp(Pairs { alpha, .. }) | BatchTransform::CutMix(Pairs { alpha, .. }) => {
                match alpha > 0.0 && alpha.is_finite() {
                    true => Ok(()),
                    false => Err("`alpha` must be above 0"),
                }
            }
            BatchTransform::Mosaic(Mosaic { p, center: [low, high], .. }) => {
                // Comparisons with NaN are false.
                match (0.0..=1.0).contains(&p) && 0.0 <= low && low <= high && high <= 1.0 {
                    true => Ok(()),
                    false => Err("`p` and `center` of a mosaic must be from 0 to 1"),
                }
            }
            BatchTransform::CopyPaste(CopyPaste { p }) => match (0.0..=1.0).contains(&p) {
                true => Ok(()),
                false => Err("`p` of copy-paste must be from 0 to 1"),
            },
        }
    }

    /// Returns whether boxes, points and masks change with the pixels.
    pub(crate) fn changes_objects(self) -> bool {
        matches!(self, BatchTransform::Mosaic(_) | BatchTransform::CopyPaste(_))
    }
}
