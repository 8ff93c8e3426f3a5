//! Images: the steps that they go through, and how they are decoded and delivered.

use super::{DecodedCache, InvalidOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shardtool_decode::{Channels, Depth, Dtype, FloatRange, Limits, Output, Pipeline, PixelFn, PixelFormat, Truncated};
use std::fmt;

/// The image of each record, decoded, and given its size by steps. A batch has it as `"image"`: `[N, H, W, 3]` u8 RGB, or as `mode`,
/// `bits`, `dtype` and `layout` say. Rows without a sample are zeros.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Image {
    /// Steps that give every image the same size, perhaps followed by a function of your own. `None` delivers images as they are
    /// stored, as byte strings.
    #[schemars(extend("x-positional" = true, "x-python" = "Sequence[Step] | None"))]
    pub views: Vec<View>,
    /// How images are decoded and delivered.
    #[serde(default)]
    pub pixels: Pixels,
}

/// One of several results of an image, which is decoded once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct View {
    /// Its name in the batch; the only view of an image needs none.
    #[serde(default)]
    pub name: String,
    /// The steps that give every image its size.
    #[serde(rename = "steps")]
    #[schemars(with = "serde_json::Value")]
    pub pipeline: Pipeline,
}

impl View {
    /// Returns a view of this name, whose images go through these steps.
    pub fn new(name: impl Into<String>, pipeline: Pipeline) -> Self {
        View { name: name.into(), pipeline }
    }
}

/// How images, or the frames of clips, are decoded and delivered.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Pixels {
    /// Mean of each channel (red, green, blue; or one number for grey), for pixels from 0 to 1. Any of a floating-point `dtype`,
    /// `layout`, `mean` and `std` makes images `(x / 255 - mean) / std`, with 65535 in place of 255 for 16 bits; so does a device.
    /// Default: 0.
    #[schemars(extend("x-python" = "Sequence[float] | float | None"))]
    pub mean: Option<Vec<f64>>,
    /// Standard deviation of each channel. Default: 1.
    #[schemars(extend("x-python" = "Sequence[float] | float | None"))]
    pub std: Option<Vec<f64>>,
    /// Type of the values: `"float32"`, `"float16"` or `"bfloat16"`; or `"uint16"`, the samples of `bits=16`, NHWC. Default: the
    /// pixels, uint8 or uint16; float32 if they are normalised.
    #[schemars(extend("x-python" = "Literal[\"float32\", \"float16\", \"bfloat16\", \"uint16\"] | Any"))]
    pub dtype: Option<PixelDtype>,
    /// Order of the dimensions: `"NCHW"` or `"NHWC"`. Default: NHWC for pixels, NCHW if they are normalised.
    pub layout: Option<shardtool_decode::Layout>,
    /// `"RGB"`, or `"L"` for grey images of one channel (the names are Pillow's): the luma of a JPEG, without decoding its chroma,
    /// and of other images what Pillow's `convert("L")` returns.
    pub mode: Mode,
    /// Bits of a sample: 8, or 16, which keeps all bits of PNG and TIFF and multiplies 8-bit samples by 257. Steps must then be
    /// geometry or `RandomErasing`. Default: 8.
    #[schemars(extend("enum" = [8, 16, null]))]
    pub bits: Option<u8>,
    /// Whether to apply the orientation in the images' EXIF data.
    pub apply_orientation: bool,
    /// Whether to decode a JPEG at 1/2, 1/4 or 1/8 where the crop is then still twice as large as the result in both directions, as
    /// Pillow's `reducing_gap=2.0`: much faster for large photographs. Pixels differ a little, always in the same way.
    pub scaled_decode: bool,
    /// `(low, high)`: the values of floating-point samples (TIFF) that become 0 and 255 (65535 with 16 bits). Values between are
    /// scaled linearly, values outside are clamped. Default: such images are bad samples.
    #[schemars(with = "Option<(f64, f64)>", extend("x-ascending" = true))]
    pub float_range: Option<FloatRange>,
    /// `"error"`: a JPEG that is cut or damaged is a bad sample. `"fill"`: it is what libjpeg-turbo makes of it, as Pillow with
    /// `LOAD_TRUNCATED_IMAGES`: what is missing is grey. `stats()["filled"]` counts these images.
    pub truncated: Truncated,
    /// Keeps decoded images, frames and masks of a bounded size from one epoch to the next.
    pub decoded_cache: Option<DecodedCache>,
    /// Limits on the size of stored images.
    #[serde(skip)]
    pub limits: Limits,
    /// A function of your own, called on each finished image.
    #[serde(skip)]
    pub custom: Option<Custom>,
}

/// The type of a batch's pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PixelDtype {
    /// Normalised, IEEE 754 single precision.
    Float32,
    /// Normalised, IEEE 754 half precision.
    Float16,
    /// Normalised, the upper half of a single.
    Bfloat16,
    /// Samples of 16 bits as they are.
    Uint16,
}

/// The channels of an image. The names are Pillow's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum Mode {
    /// Red, green, blue.
    #[default]
    #[serde(rename = "RGB")]
    Rgb,
    /// Grey: one channel.
    L,
}

/// A user's function of a finished image.
#[derive(Clone)]
pub struct Custom(pub PixelFn);

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Custom")
    }
}

impl Image {
    /// Returns options for images transformed by these steps.
    pub fn new(pipeline: Pipeline) -> Self {
        Image::with_views(vec![View { name: String::new(), pipeline }])
    }

    /// Returns options for several views of each image.
    pub fn with_views(views: Vec<View>) -> Self {
        Image { views, pixels: Pixels::default() }
    }

    /// Sets how pixels are decoded and delivered.
    #[must_use]
    pub fn with_pixels(self, pixels: Pixels) -> Self {
        Image { pixels, ..self }
    }

    /// Sets the mean and the standard deviation of each channel, as fractions of the largest value: pixels are delivered as float32,
    /// `[N, 3, H, W]`, unless `pixels` says otherwise.
    #[must_use]
    pub fn with_normalization(mut self, mean: [f64; 3], std: [f64; 3]) -> Self {
        (self.pixels.mean, self.pixels.std) = (Some(mean.to_vec()), Some(std.to_vec()));
        self
    }
}

impl Pixels {
    /// Returns the channels and bits of the pixels that steps have.
    pub fn format(&self) -> PixelFormat {
        let sixteen = self.bits == Some(16) || self.dtype == Some(PixelDtype::Uint16);
        PixelFormat {
            channels: match self.mode {
                Mode::Rgb => Channels::Rgb,
                Mode::L => Channels::Gray,
            },
            depth: if sixteen { Depth::Sixteen } else { Depth::Eight },
        }
    }

    /// Returns type, layout and normalisation of a batch's pixels; `None` if it has the pixels as steps leave them.
    ///
    /// # Errors
    /// [`InvalidOptions::Pixels`] if the options contradict each other, or have numbers for another number of channels; [`InvalidOptions::Output`] if a
    /// mean or standard deviation is out of range.
    pub fn output(&self) -> Result<Option<Output>, InvalidOptions> {
        let refused = |reason: &str| Err(InvalidOptions::Pixels { reason: reason.to_owned() });
        if !matches!(self.bits, None | Some(8 | 16)) {
            return refused("`bits`: expected 8 or 16");
        }
        let normalized = self.mean.is_some() || self.std.is_some() || self.layout.is_some();
        if self.dtype == Some(PixelDtype::Uint16) {
            return match (self.bits, normalized) {
                (Some(8), _) => refused("`dtype` \"uint16\" has the samples of 16 `bits`: leave out `bits`"),
                (_, true) => refused(
                    "`dtype` \"uint16\" has the samples as they are, NHWC: leave out `layout`, `mean` and `std`",
                ),
                _ => Ok(None),
            };
        }
        if normalized || self.dtype.is_some() { self.normalization().map(Some) } else { Ok(None) }
    }

    /// As [`Pixels::output`], for a place that always normalises.
    ///
    /// # Errors
    /// As [`Pixels::output`].
    pub fn normalization(&self) -> Result<Output, InvalidOptions> {
        let dtype = match self.dtype {
            None | Some(PixelDtype::Float32 | PixelDtype::Uint16) => Dtype::F32,
            Some(PixelDtype::Float16) => Dtype::F16,
            Some(PixelDtype::Bfloat16) => Dtype::Bf16,
        };
        let format = self.format();
        let mean = channels("mean", self.mean.as_deref(), 0.0, format)?;
        let std = channels("std", self.std.as_deref(), 1.0, format)?;
        let layout = self.layout.unwrap_or(shardtool_decode::Layout::Nchw);
        Output::of(format, dtype, layout, mean, std).map_err(InvalidOptions::Output)
    }
}

/// Returns a number for each channel.
fn channels(
    option: &str,
    given: Option<&[f64]>,
    default: f64,
    format: PixelFormat,
) -> Result<[f64; 3], InvalidOptions> {
    match (given, format.channels) {
        (None, _) => Ok([default; 3]),
        (Some(&[red, green, blue]), Channels::Rgb) => Ok([red, green, blue]),
        (Some(&[grey]), Channels::Gray) => Ok([grey; 3]),
        (Some(given), channels) => {
            let expected = match channels {
                Channels::Rgb => "one for each of red, green, blue",
                Channels::Gray => "one for grey",
            };
            Err(InvalidOptions::Pixels {
                reason: format!("`{option}` has {} numbers: expected {expected}", given.len()),
            })
        }
    }
}
