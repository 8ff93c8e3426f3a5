//! Transforms as data: a list of steps that serialises, checked once, and planned for each image as a geometry.
//!
//! | module | content |
//! |---|---|
//! | `geometry` | which stored pixels become which pixels of the result |
//! | `orientation` | the eight EXIF orientations |
//! | `random_crop` | the rectangle of `RandomResizedCrop` |
//! | `rect` | rectangles in pixels and in fractions of them |

pub(crate) mod geometry;
pub(crate) mod orientation;
mod random_crop;
pub(crate) mod rect;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, TransformError};
use crate::pixels::PixelsMut;
use crate::resize::scale_shorter;
use geometry::{Geometry, GeometryBuilder};
use orientation::Orientation;
use random_crop::random_resized_crop;
use rect::Rect;

/// Random numbers for one sample. The loader's are a pure function of seed, epoch and source position.
pub trait Random {
    /// Returns a uniform number in [0, 1).
    fn unit(&mut self) -> f64;
    /// Returns a uniform integer in `0..n`, or 0 if `n` is 0.
    fn below(&mut self, n: u64) -> u64;
}

/// A user function that is called on the transformed pixels of each sample: `[H, W, 3]` u8 RGB in the batch.
///
/// It may change values but not the size, because the geometry is planned before decoding. It is not a [`Transform`]
/// variant because code does not serialise, and a list of steps read from JSON must be complete.
pub type PixelFn = Arc<dyn Fn(PixelsMut<'_>, &mut dyn Random) + Send + Sync>;

/// One step of a [`Pipeline`]. Each does what torchvision's transform of that name does (v2, antialiased bilinear). Sizes
/// are `[height, width]` in pixels, as in torchvision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Transform {
    /// Crops a random rectangle and resizes it to `size`.
    RandomResizedCrop {
        /// Height and width of the result.
        size: [u32; 2],
        /// Smallest and largest area of the rectangle, as a fraction of the image's; default 0.08 and 1.
        #[serde(default = "default_scale")]
        scale: [f64; 2],
        /// Smallest and largest width ÷ height of the rectangle; default 3/4 and 4/3.
        #[serde(default = "default_ratio")]
        ratio: [f64; 2],
    },
    /// Resizes the shorter side to `shorter`, keeping the aspect ratio.
    Resize {
        /// Length of the shorter side in pixels.
        shorter: u32,
    },
    /// Resizes to exactly `size`, ignoring the aspect ratio.
    ResizeTo {
        /// Height and width of the result.
        size: [u32; 2],
    },
    /// Crops the centre. An image smaller than `size` is an error, where torchvision pads it with black.
    CenterCrop {
        /// Height and width of the result.
        size: [u32; 2],
    },
    /// Flips left to right with probability `p`.
    HorizontalFlip {
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default_flip")]
        p: f64,
    },
}

fn default_scale() -> [f64; 2] {
    [0.08, 1.0]
}

fn default_ratio() -> [f64; 2] {
    [3.0 / 4.0, 4.0 / 3.0]
}

fn default_flip() -> f64 {
    0.5
}

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
    /// [`Error::Transforms`] if a number is out of range, two steps resize, or the size of the result depends on the image.
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
        let crop = Transform::RandomResizedCrop { size: [side; 2], scale: default_scale(), ratio: default_ratio() };
        Pipeline::new(vec![crop, Transform::HorizontalFlip { p: default_flip() }])
    }

    /// Returns the evaluation transform of ImageNet recipes: Resize of the shorter side to `shorter`, then CenterCrop to a
    /// square of `side` pixels.
    ///
    /// # Errors
    /// As [`Pipeline::new`].
    pub fn eval(shorter: u32, side: u32) -> Result<Self, Error> {
        Pipeline::new(vec![Transform::Resize { shorter }, Transform::CenterCrop { size: [side; 2] }])
    }

    /// Returns the width and height of every result in pixels.
    pub fn output_size(&self) -> (u32, u32) {
        self.size
    }

    /// Plans one image of the stored size `stored` (width, height). The steps apply to the image after `orientation`.
    /// Random steps take their numbers from `random` in the order of the list.
    ///
    /// # Errors
    /// [`Error::CropTooLarge`] if a centre crop does not fit the image; [`Error::Side`] if the image has no pixels or a
    /// side above 2³¹ pixels.
    pub fn plan(
        &self,
        stored: (u32, u32),
        orientation: Orientation,
        random: &mut dyn Random,
    ) -> Result<Geometry, Error> {
        if stored.0.min(stored.1) == 0 || stored.0.max(stored.1) > 1 << 31 {
            return Err(Error::Side { width: stored.0, height: stored.1 });
        }
        let mut builder = GeometryBuilder::new(orientation.size(stored));
        for step in &self.steps {
            match *step {
                Transform::RandomResizedCrop { size: [height, width], scale, ratio } => {
                    builder.crop(random_resized_crop(builder.size(), scale, ratio, random));
                    builder.resize((width, height));
                }
                Transform::Resize { shorter } => builder.resize(scale_shorter(builder.size(), shorter)),
                Transform::ResizeTo { size: [height, width] } => builder.resize((width, height)),
                Transform::CenterCrop { size: [height, width] } => {
                    builder.crop(centre_crop(builder.size(), (width, height))?)
                }
                Transform::HorizontalFlip { p } => {
                    if random.unit() < p {
                        builder.flip();
                    }
                }
            }
        }
        Ok(builder.finish(stored, orientation))
    }
}

/// torchvision's `center_crop`: half of the difference, rounded half to even as Python's `round` does.
fn centre_crop(image: (u32, u32), crop: (u32, u32)) -> Result<Rect, Error> {
    let (Some(x), Some(y)) = (image.0.checked_sub(crop.0), image.1.checked_sub(crop.1)) else {
        return Err(Error::CropTooLarge { crop, image });
    };
    let half = |n: u32| (f64::from(n) / 2.0).round_ties_even() as u32;
    Ok(Rect { left: half(x), top: half(y), width: crop.0, height: crop.1 })
}

/// Validates the steps and returns the width and height of every result.
fn validate(steps: &[Transform]) -> Result<(u32, u32), TransformError> {
    let mut size = None;
    let mut shorter_side = None;
    let mut resized = false;
    for (step, transform) in steps.iter().enumerate() {
        let range = |valid: bool, name, expected| match valid {
            true => Ok(()),
            false => Err(TransformError::Range { step, name, expected }),
        };
        let sides =
            |size: [u32; 2]| range(size.iter().all(|s| (1..=65_535).contains(s)), "size", "1 to 65535 pixels a side");
        if matches!(
            transform,
            Transform::RandomResizedCrop { .. } | Transform::Resize { .. } | Transform::ResizeTo { .. }
        ) && std::mem::replace(&mut resized, true)
        {
            return Err(TransformError::SecondResize { step });
        }
        match *transform {
            Transform::RandomResizedCrop { size: s, scale, ratio } => {
                sides(s)?;
                range(
                    0.0 < scale[0] && scale[0] <= scale[1] && scale[1] <= 1.0,
                    "scale",
                    "0 < smallest <= largest <= 1",
                )?;
                range(
                    0.0 < ratio[0] && ratio[0] <= ratio[1] && ratio[1].is_finite(),
                    "ratio",
                    "0 < smallest <= largest, finite",
                )?;
                size = Some((s[1], s[0]));
            }
            Transform::ResizeTo { size: s } => {
                sides(s)?;
                size = Some((s[1], s[0]));
            }
            Transform::Resize { shorter } => {
                range((1..=65_535).contains(&shorter), "shorter", "1 to 65535 pixels")?;
                shorter_side = Some(shorter);
                size = size.map(|s| scale_shorter(s, shorter));
            }
            Transform::CenterCrop { size: s } => {
                sides(s)?;
                // Without a size that is known, only the shorter side limits the crop.
                let largest = size.or(shorter_side.map(|n| (u32::MAX, n)));
                let fits = |(w, h): (u32, u32)| match size {
                    Some(_) => s[1] <= w && s[0] <= h,
                    None => s[0].min(s[1]) <= h,
                };
                if !largest.is_none_or(fits) {
                    return Err(TransformError::Crop { step });
                }
                size = Some((s[1], s[0]));
            }
            Transform::HorizontalFlip { p } => range((0.0..=1.0).contains(&p), "p", "0 to 1")?,
        }
    }
    size.ok_or(TransformError::NoSize)
}
