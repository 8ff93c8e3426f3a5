//! What pixels become before a network sees them: normalised, as a type and in a layout. `normalize` makes it on the host,
//! the kernel of `cuda` on a device, bit for bit the same.

/// Type of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE single precision, 4 bytes.
    F32,
    /// IEEE half precision, 2 bytes.
    F16,
    /// The upper half of a single, 2 bytes.
    Bf16,
}

impl Dtype {
    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::Bf16 => 2,
        }
    }

    /// `float32`, `float16` or `bfloat16`.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "float32",
            Dtype::F16 => "float16",
            Dtype::Bf16 => "bfloat16",
        }
    }
}

/// Order of the dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `[N, H, W, 3]`, channels last.
    Nhwc,
    /// `[N, 3, H, W]`, what PyTorch's convolutions take by default.
    Nchw,
}

impl Layout {
    /// Returns the shape that images `[N, H, W, 3]` have in this layout.
    pub fn shape(self, [n, h, w, c]: [usize; 4]) -> [usize; 4] {
        match self {
            Layout::Nhwc => [n, h, w, c],
            Layout::Nchw => [n, c, h, w],
        }
    }
}

/// What pixels become: `(x / 255 − mean) / std` per channel, as a type and in a layout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Output {
    dtype: Dtype,
    layout: Layout,
    a: [f32; 3],
    b: [f32; 3],
}

impl Output {
    /// `mean` and `std` are those of pixels scaled to 0…1, in the order red, green, blue. A value is `x·a + b` in single
    /// precision with one rounding, a = 1/(255·std), b = −mean/std, then rounded to `dtype`, to nearest even.
    ///
    /// # Errors
    /// A mean that is not finite, or a standard deviation that is not finite and above 0.
    pub fn new(dtype: Dtype, layout: Layout, mean: [f64; 3], std: [f64; 3]) -> Result<Self, OutputError> {
        let refuse = |option, value, expected| Err(OutputError { option, value, expected });
        if let Some(&value) = mean.iter().find(|m| !m.is_finite()) {
            return refuse("mean", value, "finite numbers");
        }
        let a = std.map(|s| (1.0 / (255.0 * s)) as f32);
        let b = [0, 1, 2].map(|c| (-mean[c] / std[c]) as f32);
        // Tiny deviations overflow what an f32 holds: the kernel relies on finite coefficients.
        for c in 0..3 {
            if !(std[c] > 0.0 && std[c].is_finite() && a[c].is_finite() && b[c].is_finite()) {
                return refuse("std", std[c], "numbers above 0 (and not so small that mean/std overflows)");
            }
        }
        Ok(Output { dtype, layout, a, b })
    }

    /// Type of the values.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Order of the dimensions.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The factor and the summand of each channel.
    pub fn coefficients(&self) -> ([f32; 3], [f32; 3]) {
        (self.a, self.b)
    }
}

/// A number that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("`{option}` is {value}: expected {expected}")]
pub struct OutputError {
    /// Name of the option.
    pub option: &'static str,
    /// The number given.
    pub value: f64,
    /// What can be used.
    pub expected: &'static str,
}

impl Default for Output {
    /// f32, `[N, 3, H, W]`, values 0…1.
    fn default() -> Self {
        Output { dtype: Dtype::F32, layout: Layout::Nchw, a: [1.0 / 255.0; 3], b: [0.0; 3] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_that_are_no_numbers_are_refused() {
        let make = |mean: f64, std: f64| Output::new(Dtype::F16, Layout::Nhwc, [0.5, mean, 0.5], [0.2, std, 0.2]);
        assert!(make(0.4, 0.3).is_ok());
        for (mean, std) in
            [(f64::NAN, 0.3), (f64::INFINITY, 0.3), (0.4, 0.0), (0.4, -1.0), (0.4, f64::NAN), (0.4, 1e-40)]
        {
            assert!(make(mean, std).is_err(), "{mean} {std}");
        }
    }

    #[test]
    fn the_default_scales_to_one() {
        assert_eq!(Output::default(), Output::new(Dtype::F32, Layout::Nchw, [0.0; 3], [1.0; 3]).unwrap());
    }
}
