//! Normalisation, type and layout of the pixels that a network receives. The [`Normalizer`](crate::Normalizer) computes it on
//! the host and the kernel of `shardtool-cuda` on a device, with equal bits.

use crate::pixel_format::{Channels, PixelFormat};
use serde::{Deserialize, Serialize};

/// Floating-point type of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE 754 single precision, 4 bytes.
    F32,
    /// IEEE 754 half precision, 2 bytes.
    F16,
    /// bfloat16: the upper half of a single, 2 bytes.
    Bf16,
}

impl Dtype {
    /// Returns the size of one value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::Bf16 => 2,
        }
    }

    /// Returns the name: `float32`, `float16` or `bfloat16`.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "float32",
            Dtype::F16 => "float16",
            Dtype::Bf16 => "bfloat16",
        }
    }
}

/// Order of the dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Layout {
    /// `[N, H, W, C]`, channels last.
    Nhwc,
    /// `[N, C, H, W]`, channels first, PyTorch's default.
    Nchw,
}

impl Layout {
    /// Returns the shape in this layout of images of shape `[N, H, W, C]`.
    pub fn shape(self, [n, h, w, c]: [usize; 4]) -> [usize; 4] {
        match self {
            Layout::Nhwc => [n, h, w, c],
            Layout::Nchw => [n, c, h, w],
        }
    }
}

/// The normalisation `(x / 255 − mean) / std` per channel, of 16-bit samples `(x / 65535 − mean) / std`, with the type and layout
/// of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Output {
    dtype: Dtype,
    layout: Layout,
    format: PixelFormat,
    /// Of grey, three times that of its channel.
    a: [f32; 3],
    b: [f32; 3],
}

impl Output {
    /// Makes an output of 8-bit RGB from `mean` and `std` of samples scaled to 0…1, in the order red, green, blue. A value is
    /// computed as `x·a + b` in single precision with one rounding, where a = 1/(255·std) and b = −mean/std, then rounded to
    /// `dtype`, to nearest even.
    ///
    /// # Errors
    /// If a mean is not finite, or a standard deviation is not finite and above 0.
    pub fn new(dtype: Dtype, layout: Layout, mean: [f64; 3], std: [f64; 3]) -> Result<Self, OutputError> {
        Self::of(PixelFormat::RGB8, dtype, layout, mean, std)
    }

    /// As [`Output::new`], for pixels of any format. Of grey the first mean and standard deviation count; of 16-bit samples
    /// a = 1/(65535·std).
    ///
    /// # Errors
    /// As [`Output::new`].
    pub fn of(
        format: PixelFormat,
        dtype: Dtype,
        layout: Layout,
        mean: [f64; 3],
        std: [f64; 3],
    ) -> Result<Self, OutputError> {
        let used = |values: [f64; 3]| match format.channels {
            Channels::Rgb => values,
            Channels::Gray => [values[0]; 3],
        };
        let (mean, std) = (used(mean), used(std));
        let refuse = |option, value, expected| Err(OutputError { option, value, expected });
        if let Some(&value) = mean.iter().find(|m| !m.is_finite()) {
            return refuse("mean", value, "finite numbers");
        }
        let a = std.map(|s| (1.0 / (f64::from(format.depth.max()) * s)) as f32);
        let b = [0, 1, 2].map(|c| (-mean[c] / std[c]) as f32);
        // Tiny deviations overflow an f32, and the kernel relies on finite coefficients.
        for c in 0..3 {
            if !(std[c] > 0.0 && std[c].is_finite() && a[c].is_finite() && b[c].is_finite()) {
                return refuse("std", std[c], "numbers above 0 (and not so small that mean/std overflows)");
            }
        }
        Ok(Output { dtype, layout, format, a, b })
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the order of the dimensions.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the format of the pixels that are normalised.
    pub fn pixel_format(&self) -> PixelFormat {
        self.format
    }

    /// Returns the factors `a` and the summands `b` of the channels.
    pub fn coefficients(&self) -> ([f32; 3], [f32; 3]) {
        (self.a, self.b)
    }
}

/// A mean or standard deviation out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("`{option}` is {value}: expected {expected}")]
pub struct OutputError {
    /// Name of the option.
    pub option: &'static str,
    /// The number given.
    pub value: f64,
    /// The valid range.
    pub expected: &'static str,
}

impl Default for Output {
    /// Returns f32, `[N, 3, H, W]`, values 0…1, of 8-bit RGB.
    fn default() -> Self {
        Output { dtype: Dtype::F32, layout: Layout::Nchw, format: PixelFormat::RGB8, a: [1.0 / 255.0; 3], b: [0.0; 3] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_coefficients_that_are_not_finite() {
        let make = |mean: f64, std: f64| Output::new(Dtype::F16, Layout::Nhwc, [0.5, mean, 0.5], [0.2, std, 0.2]);
        assert!(make(0.4, 0.3).is_ok());
        for (mean, std) in
            [(f64::NAN, 0.3), (f64::INFINITY, 0.3), (0.4, 0.0), (0.4, -1.0), (0.4, f64::NAN), (0.4, 1e-40)]
        {
            assert!(make(mean, std).is_err(), "{mean} {std}");
        }
    }

    #[test]
    fn default_scales_to_one() {
        assert_eq!(Output::default(), Output::new(Dtype::F32, Layout::Nchw, [0.0; 3], [1.0; 3]).unwrap());
    }
}
