//! How the pixels of one row of a batch lie in memory.

/// The planes of an image, a label map or another array with values for each pixel. They lie one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planes {
    /// The number of planes, each with a value for every pixel.
    pub(crate) count: usize,
    /// Bytes of a pixel in a plane.
    pub(crate) pixel: usize,
}

impl Planes {
    /// Returns one plane with pixels of this many bytes.
    pub(crate) fn one(pixel: usize) -> Self {
        Planes { count: 1, pixel }
    }

    /// Returns the bytes of a row with pixels of this width and height.
    pub(crate) fn row_bytes(self, (width, height): (usize, usize)) -> usize {
        self.count * self.pixel * width * height
    }
}
