//! Boxes and points in an image.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shardtool_format::{BoxFormat, BoxUnit};

/// Feature with the boxes of a record, as `pack` and the writers store them.
pub const BOXES: &str = "image/object/bbox";

/// Feature with the class of each object, as `pack` and the writers store it.
pub const CLASSES: &str = "image/object/class/label";

/// Feature with the name of the class of each object, where their ids are not stored.
pub const CLASS_NAMES: &str = "image/object/class/text";

/// Feature with the points of each object, as `pack` and the writers store it.
pub const KEYPOINTS: &str = shardtool_format::manifest::Keypoints::FEATURE;

/// Feature with what each object covers, as `pack` and the writers store it.
pub const SEGMENTATION: &str = "image/object/segmentation";

/// The objects in an image: their boxes, other numbers of theirs, keypoints, and masks, which get the geometry of the image's steps.
/// The defaults are what `pack` stores.
///
/// A batch has `"boxes"`, ragged, `[n, 4]` float32: left, top, right and bottom in pixels of the result, clipped to it; `"labels"`,
/// ragged, int64, if `image/object/class/label` is among the properties, or where a dataset has only names, the ids of those in
/// `image/object/class/text`; other properties by their feature's name; `"keypoints"`,
/// ragged, `[n * k, 3]` float32: x, y and visibility, 0 for points outside the result; and `"masks"`, ragged, `[n, H, W]` uint8: 1
/// where the object is, 0 elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Objects {
    /// Feature with four numbers for each object.
    #[schemars(extend("x-positional" = true))]
    pub boxes: String,
    /// What the four numbers are: left, top, right, bottom (`"xyxy"`), left, top, width, height (`"xywh"`), or centre, width, height
    /// (`"cxcywh"`).
    pub box_format: BoxFormat,
    /// `"fraction"` of the width and height of the stored image, or `"pixel"` of it. Also of keypoints.
    pub unit: BoxUnit,
    /// Features with one number for each object, such as its class, which are dropped with it.
    pub properties: Vec<String>,
    /// Names of the classes of objects, by class id, where `image/object/class/text` has names and other classes are those of the images.
    /// By default those of the loader, or of the dataset.
    pub classes: Option<Vec<String>>,
    /// Feature with x, y and visibility of points, the same number for each object. Points outside the result get visibility 0.
    pub keypoints: Option<String>,
    /// The number that each point has in a mirrored object, as YOLO's `flip_idx`: `[0, 2, 1]` for a nose and two eyes, so that the left
    /// eye stays the first after a flip; `[0, 1, 2, …]` for points without sides. By default as the dataset says of
    /// `image/object/keypoints`, in numbers or by names such as `left_eye`. Needed with steps that flip where it does not.
    #[schemars(inner(range(max = 4_294_967_295u64)))]
    pub flip_index: Option<Vec<usize>>,
    /// Adds `"masks"`: what each object covers, as pycocotools draws it on the stored image, moved with the image by nearest neighbour.
    /// An object that has a box and no text to draw makes its sample a bad one.
    pub masks: bool,
    /// Feature with a JSON text for each object, from which its mask is drawn: polygons in pixels of the stored image, or run lengths
    /// of it (COCO's `counts`, also compressed).
    pub segmentation: String,
    /// Objects whose box becomes narrower or lower than this, in pixels of the result, are dropped.
    #[schemars(range(min = 0.0))]
    pub min_size: f64,
    /// Objects whose box becomes smaller than this, in square pixels of the result, are dropped.
    #[schemars(range(min = 0.0))]
    pub min_area: f64,
}

impl Default for Objects {
    fn default() -> Self {
        Objects {
            boxes: BOXES.to_owned(),
            box_format: BoxFormat::Xyxy,
            unit: BoxUnit::Fraction,
            properties: vec![CLASSES.to_owned()],
            classes: None,
            keypoints: None,
            flip_index: None,
            masks: false,
            segmentation: SEGMENTATION.to_owned(),
            min_size: 1.0,
            min_area: 1.0,
        }
    }
}
