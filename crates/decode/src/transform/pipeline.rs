//! A validated list of steps.

use super::default;
use super::orientation::Orientation;
use super::plan::Plan;
use super::planner::Planner;
use super::random::Draws;
use super::step::Transform;
use super::validate::validate;
use crate::error::Error;
use crate::pixel_format::PixelFormat;
use crate::resize::Filter;
use serde::{Deserialize, Serialize};

/// A validated list of steps that gives every image the same size. Its JSON form is the list of steps:
///
/// ```
/// # use shardtool_decode::Pipeline;
/// let steps = r#"[{"random_resized_crop":{"size":[224,224]}},{"horizontal_flip":{}}]"#;
/// let pipeline: Pipeline = serde_json::from_str(steps).unwrap();
/// assert_eq!(pipeline.output_size(), (224, 224));
/// assert!(serde_json::from_str::<Pipeline>(r#"[{"resize":{"shorter":256}}]"#).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Transform>", into = "Vec<Transform>")]
pub struct Pipeline {
    steps: Vec<Transform>,
    size: (u32, u32),
}

impl TryFrom<Vec<Transform>> for Pipeline {
    type Error = Error;

    fn try_from(steps: Vec<Transform>) -> Result<Self, Error> {
        Pipeline::new(steps)
    }
}

impl From<Pipeline> for Vec<Transform> {
    fn from(pipeline: Pipeline) -> Self {
        pipeline.steps
    }
}

impl Pipeline {
    /// Validates the steps.
    ///
    /// # Errors
    /// [`Error::Transforms`] if a number is out of range, or the size of the result depends on the image.
    pub fn new(steps: Vec<Transform>) -> Result<Self, Error> {
        let size = validate(&steps).map_err(|reason| Error::Transforms { reason })?;
        Ok(Pipeline { steps, size })
    }

    /// Returns the training transform of ImageNet recipes: RandomResizedCrop to a square of `side` pixels, then
    /// HorizontalFlip with probability 0.5.
    ///
    /// # Errors
    /// As [`Pipeline::new`].
    pub fn train(side: u32) -> Result<Self, Error> {
        let (scale, ratio) = (default::crop_scale(), default::crop_ratio());
        let crop = Transform::RandomResizedCrop { size: [side; 2], scale, ratio, interpolation: Filter::Bilinear };
        Pipeline::new(vec![crop, Transform::HorizontalFlip { p: default::half() }])
    }

    /// Returns the evaluation transform of ImageNet recipes: Resize of the shorter side to `shorter`, then CenterCrop to a
    /// square of `side` pixels.
    ///
    /// # Errors
    /// As [`Pipeline::new`].
    pub fn eval(shorter: u32, side: u32) -> Result<Self, Error> {
        let resize = Transform::Resize { shorter, longest: None, interpolation: Filter::Bilinear };
        Pipeline::new(vec![resize, Transform::CenterCrop { size: [side; 2] }])
    }

    /// Returns the width and height of every result in pixels.
    pub fn output_size(&self) -> (u32, u32) {
        self.size
    }

    /// Returns the name of a step that takes the boxes of the sample; `None` if none does.
    pub fn takes_boxes(&self) -> Option<&'static str> {
        fn takes(step: &Transform) -> bool {
            match step {
                Transform::RandomIouCrop { .. } => true,
                Transform::RandomApply { transforms, .. } => transforms.iter().any(takes),
                _ => false,
            }
        }
        self.steps.iter().any(takes).then_some("random_iou_crop")
    }

    /// Returns whether a step may mirror the image.
    pub fn mirrors(&self) -> bool {
        fn mirrors(step: &Transform) -> bool {
            match step {
                Transform::HorizontalFlip { p } | Transform::VerticalFlip { p } => *p > 0.0,
                Transform::RandomApply { transforms, .. } => transforms.iter().any(mirrors),
                _ => false,
            }
        }
        self.steps.iter().any(mirrors)
    }

    /// Returns whether a step may turn or shear the image, so that what is horizontal is not horizontal afterwards.
    pub fn tilts(&self) -> bool {
        fn tilts(step: &Transform) -> bool {
            match step {
                Transform::RandomRotation { .. }
                | Transform::RandomAffine { .. }
                | Transform::RandomPerspective { .. }
                | Transform::RandAugment { .. }
                | Transform::TrivialAugmentWide { .. }
                | Transform::AutoAugment { .. }
                | Transform::AugMix { .. } => true,
                Transform::RandomApply { transforms, .. } => transforms.iter().any(tilts),
                _ => false,
            }
        }
        self.steps.iter().any(tilts)
    }

    /// Returns whether a step computes values from pixels, as resizing by a filter and changes of colour do: the result may then have
    /// values that the image does not have.
    pub fn computes_values(&self) -> bool {
        self.steps.iter().any(Transform::computes_values)
    }

    /// Returns the name of a step that is not defined for pixels of a format; `None` if all are.
    ///
    /// Grey has no channels to permute, and no noise of RGB. Of 16-bit pixels only geometry is defined, and of maps only those by
    /// nearest neighbour, and erasing with one colour.
    pub fn undefined_for(&self, format: PixelFormat) -> Option<&'static str> {
        self.steps.iter().find_map(|step| step.undefined_for(format))
    }

    /// Plans one image of the stored size `stored` (width, height). The steps apply to the image after `orientation`, and
    /// take their random numbers from `draws`. `boxes` are those of the sample, for [`Transform::RandomIouCrop`]: left, top,
    /// right and bottom in pixels of the stored image.
    ///
    /// # Errors
    /// [`Error::CropTooLarge`] if a crop does not fit the image; [`Error::ReflectPadding`] if the image is smaller than its
    /// reflection; [`Error::Side`] if the image has no pixels or a side above 2³¹ pixels.
    pub fn plan(
        &self,
        stored: (u32, u32),
        orientation: Orientation,
        draws: &mut dyn Draws,
        boxes: &[[f64; 4]],
    ) -> Result<Plan, Error> {
        let mut planner = Planner::new(stored, orientation, boxes)?;
        planner.steps(&self.steps, draws)?;
        Ok(planner.finish())
    }
}
