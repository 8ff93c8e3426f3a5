//! What is done to each image, as plain data: a list of steps that serialises, and the geometry it gives an image.

use serde::{Deserialize, Serialize};

use crate::error::{Error, TransformError};
use crate::geometry::{Draft, Geometry, Rect};
use crate::orientation::Orientation;
use crate::pixels::PixelsMut;
use crate::random_crop::random_resized_crop;
use crate::resize::scale_shorter;
use std::sync::Arc;

/// Where the randomness of a sample comes from; the loader's is a pure function of seed, epoch and place.
pub trait Random {
    /// A number in [0, 1), uniform.
    fn unit(&mut self) -> f64;
    /// A whole number in `0..n`, uniform; 0 for `n` = 0 or 1.
    fn below(&mut self, n: u64) -> u64;
}

/// The user's own function, called on the finished pixels of each sample, `[H, W, 3]` u8 RGB in their place in the batch.
/// It may change values, not the size, so that geometry stays known before decoding. It is code, so it is no
/// [`Transform`]: a list of steps that says it is complete when read back must be complete.
pub type PixelFn = Arc<dyn Fn(PixelsMut<'_>, &mut dyn Random) + Send + Sync>;

/// One step. Sizes are `[height, width]` in pixels, as torchvision writes them; what a step does is what the step of that
/// name does in torchvision (v2, antialiased bilinear).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Transform {
    /// A random part of the image, resized.
    RandomResizedCrop {
        /// Height and width of the result.
        size: [u32; 2],
        /// Smallest and largest part of the image's pixels; default 0.08 and 1.
        #[serde(default = "default_scale")]
        scale: [f64; 2],
        /// Smallest and largest width ÷ height of the part; default 3/4 and 4/3.
        #[serde(default = "default_ratio")]
        ratio: [f64; 2],
    },
    /// The shorter side becomes so long, the other follows.
    Resize {
        /// Length of the shorter side.
        shorter: u32,
    },
    /// The image becomes so large, its proportions as may be.
    ResizeTo {
        /// Height and width of the result.
        size: [u32; 2],
    },
    /// The middle of the image. Where torchvision pads an image that is too small with black, this is an error.
    CenterCrop {
        /// Height and width of the result.
        size: [u32; 2],
    },
    /// Mirrored left to right, by chance.
    HorizontalFlip {
        /// How probable it is, 0 to 1; default 0.5.
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

/// Steps that give every image the same size, checked once. As JSON, the list of steps:
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
    /// Checks the steps.
    ///
    /// # Errors
    /// [`Error::Transforms`]: a number out of range, two steps that resize, or a result whose size depends on the image.
    pub fn new(steps: Vec<Transform>) -> Result<Self, Error> {
        let size = check(&steps).map_err(|reason| Error::Transforms { reason })?;
        Ok(Pipeline { steps, size })
    }

    /// The training transform of ImageNet recipes: RandomResizedCrop to a square of `side` pixels, flipped every other time.
    ///
    /// # Errors
    /// As [`Pipeline::new`].
    pub fn train(side: u32) -> Result<Self, Error> {
        let crop = Transform::RandomResizedCrop { size: [side; 2], scale: default_scale(), ratio: default_ratio() };
        Pipeline::new(vec![crop, Transform::HorizontalFlip { p: default_flip() }])
    }

    /// The evaluation transform of ImageNet recipes: the shorter side to `shorter`, then the middle square of `side` pixels.
    ///
    /// # Errors
    /// As [`Pipeline::new`].
    pub fn eval(shorter: u32, side: u32) -> Result<Self, Error> {
        Pipeline::new(vec![Transform::Resize { shorter }, Transform::CenterCrop { size: [side; 2] }])
    }

    /// Width and height of every result in pixels.
    pub fn output_size(&self) -> (u32, u32) {
        self.size
    }

    /// The geometry for one stored image of `stored` (width, height). The steps see it as `orientation` turns it.
    /// Every random step draws the same way whatever came before, in the order of the list.
    ///
    /// # Errors
    /// [`Error::CropTooLarge`]; [`Error::Side`] for an image without pixels or with a side above 2³¹.
    pub fn plan(
        &self,
        stored: (u32, u32),
        orientation: Orientation,
        random: &mut dyn Random,
    ) -> Result<Geometry, Error> {
        if stored.0.min(stored.1) == 0 || stored.0.max(stored.1) > 1 << 31 {
            return Err(Error::Side { width: stored.0, height: stored.1 });
        }
        let mut draft = Draft::new(orientation.size(stored));
        for step in &self.steps {
            match *step {
                Transform::RandomResizedCrop { size: [height, width], scale, ratio } => {
                    draft.crop(random_resized_crop(draft.size(), scale, ratio, random));
                    draft.resize((width, height));
                }
                Transform::Resize { shorter } => draft.resize(scale_shorter(draft.size(), shorter)),
                Transform::ResizeTo { size: [height, width] } => draft.resize((width, height)),
                Transform::CenterCrop { size: [height, width] } => draft.crop(centre(draft.size(), (width, height))?),
                Transform::HorizontalFlip { p } => {
                    if random.unit() < p {
                        draft.mirror();
                    }
                }
            }
        }
        Ok(draft.finish(stored, orientation))
    }
}

/// torchvision's `center_crop`: offsets are halves, rounded to the even neighbour as Python does.
fn centre(image: (u32, u32), crop: (u32, u32)) -> Result<Rect, Error> {
    let (Some(x), Some(y)) = (image.0.checked_sub(crop.0), image.1.checked_sub(crop.1)) else {
        return Err(Error::CropTooLarge { crop, image });
    };
    let half = |n: u32| (f64::from(n) / 2.0).round_ties_even() as u32;
    Ok(Rect { left: half(x), top: half(y), width: crop.0, height: crop.1 })
}

/// Checks every step, and returns the width and height that every image ends with.
fn check(steps: &[Transform]) -> Result<(u32, u32), TransformError> {
    let mut size = None;
    let mut shorter_now = None;
    let mut resized = false;
    for (step, transform) in steps.iter().enumerate() {
        let range = |good: bool, name, expected| match good {
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
                range(0.0 < scale[0] && scale[0] <= scale[1] && scale[1] <= 1.0, "scale", "0 < least <= most <= 1")?;
                range(
                    0.0 < ratio[0] && ratio[0] <= ratio[1] && ratio[1].is_finite(),
                    "ratio",
                    "0 < least <= most, finite",
                )?;
                size = Some((s[1], s[0]));
            }
            Transform::ResizeTo { size: s } => {
                sides(s)?;
                size = Some((s[1], s[0]));
            }
            Transform::Resize { shorter } => {
                range((1..=65_535).contains(&shorter), "shorter", "1 to 65535 pixels")?;
                shorter_now = Some(shorter);
                size = size.map(|s| scale_shorter(s, shorter));
            }
            Transform::CenterCrop { size: s } => {
                sides(s)?;
                let most = size.or(shorter_now.map(|n| (u32::MAX, n)));
                let fits = |(w, h): (u32, u32)| match size {
                    Some(_) => s[1] <= w && s[0] <= h,
                    None => s[0].min(s[1]) <= h,
                };
                if !most.is_none_or(fits) {
                    return Err(TransformError::Crop { step });
                }
                size = Some((s[1], s[0]));
            }
            Transform::HorizontalFlip { p } => range((0.0..=1.0).contains(&p), "p", "0 to 1")?,
        }
    }
    size.ok_or(TransformError::NoSize)
}
