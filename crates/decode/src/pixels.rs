//! Pixels in memory: `[H, W, 3]` u8 RGB, rows from the top, no padding between them; owned, borrowed and mutable.

use crate::error::Error;

/// An image in memory, `[height, width, 3]` u8 RGB. Meant to be reused: decoding into it keeps its allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pixels {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `height * width * 3` bytes.
    pub data: Vec<u8>,
}

impl Pixels {
    /// A view of all pixels.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] if the fields contradict each other.
    pub fn view(&self) -> Result<PixelsRef<'_>, Error> {
        PixelsRef::new(self.width, self.height, &self.data)
    }
}

/// Borrowed pixels, `[height, width, 3]` u8 RGB.
#[derive(Clone, Copy, Debug)]
pub struct PixelsRef<'a> {
    width: u32,
    height: u32,
    data: &'a [u8],
}

impl<'a> PixelsRef<'a> {
    /// Pixels of that size.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * 3` bytes.
    pub fn new(width: u32, height: u32, data: &'a [u8]) -> Result<Self, Error> {
        check_len(width, height, data.len())?;
        Ok(PixelsRef { width, height, data })
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The bytes, row after row.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}

/// Mutable borrowed pixels, `[height, width, 3]` u8 RGB: what a user's own per-sample function gets.
#[derive(Debug)]
pub struct PixelsMut<'a> {
    width: u32,
    height: u32,
    /// The bytes, row after row.
    pub data: &'a mut [u8],
}

impl<'a> PixelsMut<'a> {
    /// Pixels of that size.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * 3` bytes.
    pub fn new(width: u32, height: u32, data: &'a mut [u8]) -> Result<Self, Error> {
        check_len(width, height, data.len())?;
        Ok(PixelsMut { width, height, data })
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }
}

/// Bytes of that many RGB pixels.
pub(crate) fn rgb_len(width: u32, height: u32) -> u64 {
    (u64::from(width) * u64::from(height)).saturating_mul(3)
}

pub(crate) fn check_len(width: u32, height: u32, found: usize) -> Result<(), Error> {
    let expected = rgb_len(width, height);
    if found as u64 != expected {
        return Err(Error::PixelBytes { width, height, expected, found: found as u64 });
    }
    Ok(())
}
