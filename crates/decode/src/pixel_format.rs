//! What a pixel in memory consists of: its channels, and the bits of a sample; and conversions between formats.

use crate::error::Error;
pub use shardtool_jpeg::Channels;

/// The bits of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Depth {
    /// 8 bits. Of deeper samples the upper 8 bits are kept.
    #[default]
    Eight,
    /// 16 bits, little-endian. 8-bit samples are multiplied by 257.
    Sixteen,
}

impl Depth {
    /// Returns the bytes of a sample, 1 or 2.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Depth::Eight => 1,
            Depth::Sixteen => 2,
        }
    }

    /// Returns the largest value of a sample, 255 or 65535.
    #[must_use]
    pub const fn max(self) -> u16 {
        match self {
            Depth::Eight => 255,
            Depth::Sixteen => u16::MAX,
        }
    }
}

/// The channels of a pixel and the bits of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PixelFormat {
    /// The channels.
    pub channels: Channels,
    /// The bits of a sample.
    pub depth: Depth,
}

impl PixelFormat {
    /// RGB of 8 bits, the default.
    pub const RGB8: Self = PixelFormat { channels: Channels::Rgb, depth: Depth::Eight };
    /// Grey of 8 bits.
    pub const GRAY8: Self = PixelFormat { channels: Channels::Gray, depth: Depth::Eight };
    /// RGB of 16 bits.
    pub const RGB16: Self = PixelFormat { channels: Channels::Rgb, depth: Depth::Sixteen };
    /// Grey of 16 bits.
    pub const GRAY16: Self = PixelFormat { channels: Channels::Gray, depth: Depth::Sixteen };

    /// Returns the bytes of a pixel: 3, 1, 6 or 2.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.channels.count() * self.depth.bytes()
    }

    /// Returns the name: `RGB of 8 bits` and so on.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.channels, self.depth) {
            (Channels::Rgb, Depth::Eight) => "RGB of 8 bits",
            (Channels::Gray, Depth::Eight) => "grey of 8 bits",
            (Channels::Rgb, Depth::Sixteen) => "RGB of 16 bits",
            (Channels::Gray, Depth::Sixteen) => "grey of 16 bits",
        }
    }

    /// Returns the length in bytes of an image of this width and height.
    pub(crate) fn len(self, (width, height): (u32, u32)) -> u64 {
        (u64::from(width) * u64::from(height)).saturating_mul(self.bytes() as u64)
    }

    /// Checks that `found` is the length in bytes of an image of this width and height.
    pub(crate) fn check_len(self, (width, height): (u32, u32), found: usize) -> Result<(), Error> {
        let expected = self.len((width, height));
        if found as u64 != expected {
            return Err(Error::PixelBytes { width, height, expected, found: found as u64 });
        }
        Ok(())
    }

    /// Returns the pixel of an RGB colour. `B` is [`bytes`](Self::bytes).
    pub(crate) fn pixel<const B: usize>(self, color: [u8; 3]) -> [u8; B] {
        debug_assert_eq!(B, self.bytes());
        let gray = luma(color.map(u32::from)) as u8;
        // Both bytes of a 16-bit sample are those of the 8-bit one: v · 257.
        std::array::from_fn(|i| match self.channels {
            Channels::Rgb => color[i / self.depth.bytes() % 3],
            Channels::Gray => gray,
        })
    }
}

/// Returns the grey value of a pixel: Pillow's `convert("L")`, which is libjpeg's. Equal channels keep their value.
pub(crate) fn luma([r, g, b]: [u32; 3]) -> u32 {
    // At most 65,535 · 65,536 + 32,768, which fits.
    (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16
}

/// Converts `count` pixels at the start of a buffer from one format to another of the same or a larger depth, in place. Sets the
/// buffer's length to that of the result.
pub(crate) fn convert(data: &mut Vec<u8>, count: usize, from: PixelFormat, to: PixelFormat) {
    let mut samples = count * from.channels.count();
    if (from.channels, to.channels) == (Channels::Rgb, Channels::Gray) {
        samples = count;
        match from.depth {
            Depth::Eight => {
                // By way of a buffer, so that the compiler can use vectors.
                let mut gray = [0; 64];
                for first in (0..count).step_by(gray.len()) {
                    let n = gray.len().min(count - first);
                    let pixels = data[3 * first..3 * (first + n)].as_chunks::<3>().0;
                    gray.iter_mut().zip(pixels).for_each(|(to, rgb)| *to = luma(rgb.map(u32::from)) as u8);
                    data[first..first + n].copy_from_slice(&gray[..n]);
                }
            }
            Depth::Sixteen => {
                let values = data.as_chunks_mut::<2>().0;
                for i in 0..count {
                    let gray = luma([0, 1, 2].map(|c| u16::from_le_bytes(values[3 * i + c]).into()));
                    values[i] = (gray as u16).to_le_bytes();
                }
            }
        }
    }
    if from.depth != to.depth {
        widen(data, samples, to.depth);
    }
    fit(data, count * to.bytes());
    if (from.channels, to.channels) == (Channels::Gray, Channels::Rgb) {
        match to.depth {
            Depth::Eight => repeat::<1>(data, count),
            Depth::Sixteen => repeat::<2>(data, count),
        }
    }
}

/// Replaces each of `count` values of `B` bytes by three copies, from the last to the first, so that none is overwritten before it
/// is read.
fn repeat<const B: usize>(data: &mut [u8], count: usize) {
    let values = data.as_chunks_mut::<B>().0;
    for i in (0..count).rev() {
        let value = values[i];
        values[3 * i..3 * i + 3].fill(value);
    }
}

/// Sets the length of a buffer, whose allocation grows to no more than that.
fn fit(data: &mut Vec<u8>, len: usize) {
    data.reserve_exact(len.saturating_sub(data.len()));
    data.resize(len, 0);
}

/// Converts `samples` 8-bit samples at the start of a buffer to `depth`, in place. Sets the buffer's length to that of the result.
pub(crate) fn widen(data: &mut Vec<u8>, samples: usize, depth: Depth) {
    fit(data, samples * depth.bytes());
    if depth == Depth::Sixteen {
        // From the last sample to the first, so that none is overwritten before it is read.
        for i in (0..samples).rev() {
            let value = data[i];
            data[2 * i..2 * i + 2].fill(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_colours_to_every_format() {
        let color = [255, 128, 3];
        // 0.299 · 255 + 0.587 · 128 + 0.114 · 3 = 151.7
        assert_eq!(PixelFormat::RGB8.pixel(color), color);
        assert_eq!(PixelFormat::GRAY8.pixel(color), [152]);
        assert_eq!(PixelFormat::RGB16.pixel(color), [255, 255, 128, 128, 3, 3]);
        assert_eq!(PixelFormat::GRAY16.pixel(color), (152u16 * 257).to_le_bytes());
    }

    #[test]
    fn equal_channels_keep_their_value() {
        assert!((0..=65_535).all(|v| luma([v; 3]) == v));
    }
}
