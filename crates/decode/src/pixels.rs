//! Images in memory: `[H, W, 3]` u8 RGB, rows from the top without padding; owned, borrowed and mutably borrowed.

use crate::error::Error;

/// An image in memory, `[height, width, 3]` u8 RGB. Decoding into it reuses its allocation.
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
    /// Borrows the pixels.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * 3` bytes.
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
    /// Borrows `data` as pixels of the given size.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * 3` bytes.
    pub fn new(width: u32, height: u32, data: &'a [u8]) -> Result<Self, Error> {
        check_len(width, height, data.len())?;
        Ok(PixelsRef { width, height, data })
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Returns the bytes, row after row.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}

/// Mutably borrowed pixels, `[height, width, 3]` u8 RGB, as a [`PixelFn`](crate::PixelFn) receives them.
#[derive(Debug)]
pub struct PixelsMut<'a> {
    width: u32,
    height: u32,
    /// The bytes, row after row.
    pub data: &'a mut [u8],
}

impl<'a> PixelsMut<'a> {
    /// Borrows `data` as pixels of the given size.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * 3` bytes.
    pub fn new(width: u32, height: u32, data: &'a mut [u8]) -> Result<Self, Error> {
        check_len(width, height, data.len())?;
        Ok(PixelsMut { width, height, data })
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }
}

/// Returns the length of an RGB image in bytes.
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
