//! Images in memory, rows from the top without padding: owned `[H, W, 3]` u8 RGB; borrowed and mutably borrowed in any
//! [`PixelFormat`].

use crate::error::Error;
use crate::pixel_format::PixelFormat;

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

/// Borrowed pixels, `[height, width, channels]`.
#[derive(Clone, Copy, Debug)]
pub struct PixelsRef<'a> {
    width: u32,
    height: u32,
    format: PixelFormat,
    data: &'a [u8],
}

impl<'a> PixelsRef<'a> {
    /// Borrows `data` as pixels of the given size, 8-bit RGB.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * 3` bytes.
    pub fn new(width: u32, height: u32, data: &'a [u8]) -> Result<Self, Error> {
        Self::with_format(width, height, PixelFormat::RGB8, data)
    }

    /// Borrows `data` as pixels of the given size and format.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * format.bytes()` bytes.
    pub fn with_format(width: u32, height: u32, format: PixelFormat, data: &'a [u8]) -> Result<Self, Error> {
        format.check_len((width, height), data.len())?;
        Ok(PixelsRef { width, height, format, data })
    }

    /// Returns the format of the pixels.
    pub fn format(&self) -> PixelFormat {
        self.format
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

/// Mutably borrowed pixels, `[height, width, channels]`, as a [`PixelFn`](crate::PixelFn) receives them.
#[derive(Debug)]
pub struct PixelsMut<'a> {
    width: u32,
    height: u32,
    format: PixelFormat,
    /// The bytes, row after row.
    pub data: &'a mut [u8],
}

impl<'a> PixelsMut<'a> {
    /// Borrows `data` as pixels of the given size, 8-bit RGB.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * 3` bytes.
    pub fn new(width: u32, height: u32, data: &'a mut [u8]) -> Result<Self, Error> {
        Self::with_format(width, height, PixelFormat::RGB8, data)
    }

    /// Borrows `data` as pixels of the given size and format.
    ///
    /// # Errors
    /// [`Error::PixelBytes`] unless `data` has `height * width * format.bytes()` bytes.
    pub fn with_format(width: u32, height: u32, format: PixelFormat, data: &'a mut [u8]) -> Result<Self, Error> {
        format.check_len((width, height), data.len())?;
        Ok(PixelsMut { width, height, format, data })
    }

    /// Returns the format of the pixels.
    pub fn format(&self) -> PixelFormat {
        self.format
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

/// Returns the length in bytes of an image of 8-bit RGB.
pub(crate) fn rgb_len(width: u32, height: u32) -> u64 {
    PixelFormat::RGB8.len((width, height))
}
