//! Options of decoding a whole image.

use crate::float_range::FloatRange;
use crate::limits::Limits;
use crate::truncated::Truncated;

/// How to decode an image.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// How large an image may be.
    pub limits: Limits,
    /// Whether to apply the EXIF orientation. Off by default, as in torchvision's and PIL's readers.
    pub apply_orientation: bool,
    /// The range of floating-point samples (TIFF) that is scaled to 0 to 255. By default such images are refused, because
    /// the file does not say which values mean black and white.
    pub float_range: Option<FloatRange>,
    /// What happens to a JPEG that is cut or damaged.
    pub truncated: Truncated,
}

impl DecodeOptions {
    /// Sets [`limits`](Self::limits).
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets [`apply_orientation`](Self::apply_orientation).
    pub fn with_apply_orientation(mut self, apply: bool) -> Self {
        self.apply_orientation = apply;
        self
    }

    /// Sets [`float_range`](Self::float_range).
    pub fn with_float_range(mut self, range: Option<FloatRange>) -> Self {
        self.float_range = range;
        self
    }

    /// Sets [`truncated`](Self::truncated).
    pub fn with_truncated(mut self, truncated: Truncated) -> Self {
        self.truncated = truncated;
        self
    }
}
