//! Label maps (segmentation masks): images with one value per pixel, such as a class. A label map belongs to another image and
//! uses its geometry. Its values are never mixed, and palettes are not looked up.

use crate::codecs::panics::catch_panic;
use crate::codecs::{self, image_crate};
use crate::error::Error;
use crate::format::Format;
use crate::label_dtype::LabelDtype;
use crate::limits::Limits;
use crate::resize::{Flip, Nearest, SourceRegion};
use crate::segmentation::{Segmentation, SegmentationError};
use crate::sniff::sniff;
use crate::transform::geometry::Geometry;
use crate::transform::rect::Rect;
use crate::values;

/// A decoded label map. Reuses its buffers from one map to the next. Use one per thread.
#[derive(Debug, Default)]
pub struct LabelMap {
    size: (u32, u32),
    dtype: LabelDtype,
    /// `[H, W]` values of type `dtype`.
    data: Vec<u8>,
    /// The value that all have, if that is known.
    uniform: Option<u8>,
    nearest: Nearest,
    /// The result before rows and columns are exchanged.
    transposed: Vec<u8>,
    /// Where the coverage of an object changes.
    changes: Vec<u8>,
}

impl LabelMap {
    /// Decodes a label map to its stored values, `[H, W]` of type `dtype`: of a PNG with a palette the indices, as PIL's
    /// mode `P`; of grey samples of 1, 2, 4, 8 or 16 bits the values. Grey TIFFs of 8 and 16 bits are decoded as well.
    ///
    /// # Errors
    /// If the data is damaged or truncated or the image exceeds a limit; [`Error::Labels`] if the format is lossy or holds
    /// other than one value of at most 16 bits per pixel, or for 32 bits three of 8 bits; [`Error::LabelValue`] if a value does not fit `dtype`.
    pub fn decode(&mut self, bytes: &[u8], dtype: LabelDtype, limits: &Limits) -> Result<(), Error> {
        self.uniform = None;
        let format = sniff(bytes).ok_or_else(|| Error::unknown(bytes))?;
        let result = catch_panic(format, || self.decode_values(format, bytes, dtype, limits));
        if matches!(result, Err(Error::Panic { .. })) {
            *self = LabelMap::default();
        }
        let stored = result?;
        self.convert(format, stored, dtype)
    }

    /// Returns an upper bound on the memory in bytes that [`decode`](Self::decode) needs for a map of `size` (width, height).
    pub fn scratch_bytes(bytes: &[u8], dtype: LabelDtype, (width, height): (u32, u32)) -> u64 {
        // PNG: the bit depth follows signature, length and name of the first chunk (IHDR), width and height.
        let stored = match bytes.get(24) {
            Some(1..=8) if sniff(bytes) == Some(Format::Png) => LabelDtype::U8,
            _ => LabelDtype::U16,
        };
        // The values, of which ids have 3 bytes before 4, and what a TIFF decoder may add.
        3 * u64::from(width) * u64::from(height) * stored.bytes().max(dtype.bytes()) as u64
    }

    /// Decodes the stored values, and returns their type.
    fn decode_values(
        &mut self,
        format: Format,
        bytes: &[u8],
        dtype: LabelDtype,
        limits: &Limits,
    ) -> Result<LabelDtype, Error> {
        match format {
            Format::Png => self.decode_png(bytes, dtype, limits),
            Format::Jpeg | Format::WebP => Err(Error::Labels { format }),
            format => {
                let decoded = image_crate::decode_grey(format, bytes, limits, &mut self.data)?;
                let (width, height, stored) = decoded.ok_or(Error::Labels { format })?;
                self.size = (width, height);
                Ok(stored)
            }
        }
    }

    fn decode_png(&mut self, bytes: &[u8], dtype: LabelDtype, limits: &Limits) -> Result<LabelDtype, Error> {
        let bytes = codecs::png_palette::repaired(bytes);
        // Ids of 24 bits have three channels.
        let most = if dtype == LabelDtype::I32 { 3 } else { 1 };
        let found = values::png::decode(&bytes, limits, most, &mut self.data)?;
        let found = found.ok_or(Error::Labels { format: Format::Png })?;
        self.size = found.size;
        match (found.channels, found.bytes) {
            (1, 1) => Ok(LabelDtype::U8),
            (1, _) => Ok(LabelDtype::U16),
            (3, 1) => {
                self.spread(3, |id| [id[0], id[1], id[2], 0]);
                Ok(LabelDtype::I32)
            }
            _ => Err(Error::Labels { format: Format::Png }),
        }
    }

    /// Makes 4 bytes of each value, in place.
    fn spread(&mut self, bytes: usize, wide: impl Fn(&[u8]) -> [u8; 4]) {
        let values = self.data.len() / bytes;
        self.data.resize(4 * values, 0);
        for at in (0..values).rev() {
            let value = wide(&self.data[bytes * at..][..bytes]);
            self.data[4 * at..][..4].copy_from_slice(&value);
        }
    }

    /// Converts the decoded values in place.
    fn convert(&mut self, format: Format, stored: LabelDtype, dtype: LabelDtype) -> Result<(), Error> {
        self.dtype = dtype;
        match (stored, dtype) {
            (LabelDtype::U8, LabelDtype::U8)
            | (LabelDtype::U16, LabelDtype::U16)
            | (LabelDtype::I32, LabelDtype::I32) => Ok(()),
            (LabelDtype::U8, LabelDtype::I32) => {
                self.spread(1, |value| [value[0], 0, 0, 0]);
                Ok(())
            }
            (LabelDtype::U16, LabelDtype::I32) => {
                self.spread(2, |value| [value[0], value[1], 0, 0]);
                Ok(())
            }
            (LabelDtype::I32, _) => Err(Error::Labels { format }),
            (LabelDtype::U8, LabelDtype::U16) => {
                let values = self.data.len();
                self.data.resize(2 * values, 0);
                for at in (0..values).rev() {
                    (self.data[2 * at], self.data[2 * at + 1]) = (self.data[at], 0);
                }
                Ok(())
            }
            (LabelDtype::U16, LabelDtype::U8) => {
                let too_large = self.data.as_chunks::<2>().0.iter().position(|[_, high]| *high != 0);
                if let Some(at) = too_large {
                    let value = u16::from_le_bytes([self.data[2 * at], self.data[2 * at + 1]]);
                    let width = self.size.0 as usize;
                    let (x, y) = ((at % width) as u32, (at / width) as u32);
                    return Err(Error::LabelValue { format, value, x, y });
                }
                let values = self.data.len() / 2;
                for at in 0..values {
                    self.data[at] = self.data[2 * at];
                }
                self.data.truncate(values);
                Ok(())
            }
        }
    }

    /// Takes values that were decoded before: `[H, W]` of type `dtype`, for `size` (width, height).
    ///
    /// # Errors
    /// [`Error::LabelBytes`] if the length of `values` is wrong.
    pub fn set(&mut self, size: (u32, u32), dtype: LabelDtype, values: &[u8]) -> Result<(), Error> {
        self.dtype = dtype;
        self.check_output(size, values)?;
        (self.size, self.uniform) = (size, None);
        self.data.clear();
        self.data.extend_from_slice(values);
        Ok(())
    }

    /// Makes it a map of 8 bits with one value, of `size` (width, height).
    pub fn fill(&mut self, (width, height): (u32, u32), value: u8) {
        (self.size, self.dtype, self.uniform) = ((width, height), LabelDtype::U8, Some(value));
        self.data.clear();
        self.data.resize(width as usize * height as usize, value);
    }

    /// Sets the bit `bit` of each value of 8 bits whose pixel an object covers: a map holds the masks of eight objects. Equal to what
    /// pycocotools draws.
    ///
    /// # Errors
    /// As [`Segmentation::check`].
    ///
    /// # Panics
    /// If the map does not have values of 8 bits, or `bit` is not less than 8.
    pub fn draw(&mut self, segmentation: &Segmentation, bit: u32) -> Result<(), SegmentationError> {
        assert!(self.dtype == LabelDtype::U8 && bit < 8, "a map of 8 bits");
        self.uniform = None;
        segmentation.draw(self.size, bit, &mut self.data, &mut self.changes)
    }

    /// Returns an upper bound on the memory in bytes that drawing objects takes for a map of `size` (width, height).
    pub fn drawing_bytes((width, height): (u32, u32)) -> u64 {
        2 * u64::from(width) * u64::from(height)
    }

    /// Returns the values, `[H, W]`, little-endian where they have 16 bits.
    pub fn values(&self) -> &[u8] {
        &self.data
    }

    /// Returns the type of the decoded values.
    pub(crate) fn dtype(&self) -> LabelDtype {
        self.dtype
    }

    /// Crops, resizes (nearest neighbour) and orients the label map as `geometry` says, and writes the result to `out`:
    /// `[H, W]` values of the decoded type, where (W, H) is the geometry's [`output_size`](Geometry::output_size). Padding
    /// has the value `fill`.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if the map has another size than the image that the geometry was planned for;
    /// [`Error::LabelBytes`] if the length of `out` is wrong.
    pub fn apply_geometry(&mut self, geometry: &Geometry, fill: i32, out: &mut [u8]) -> Result<(), Error> {
        geometry.check_stored(self.size)?;
        self.check_output(geometry.size, out)?;
        match self.dtype {
            LabelDtype::U8 => self.write::<1>(geometry, fill, out),
            LabelDtype::U16 => self.write::<2>(geometry, fill, out),
            LabelDtype::I32 => self.write::<4>(geometry, fill, out),
        }
        Ok(())
    }

    /// Checks the length of a result of this size (width, height).
    pub(crate) fn check_output(&self, (width, height): (u32, u32), out: &[u8]) -> Result<(), Error> {
        let expected = u64::from(width) * u64::from(height) * self.dtype.bytes() as u64;
        match expected == out.len() as u64 {
            true => Ok(()),
            false => Err(Error::LabelBytes { width, height, expected, found: out.len() as u64 }),
        }
    }

    /// Writes the map of values of `C` bytes with the geometry applied.
    fn write<const C: usize>(&mut self, geometry: &Geometry, fill: i32, out: &mut [u8]) {
        let (orientation, (width, height)) = (geometry.orientation, self.size);
        let (left, top) = geometry.canvas.offset;
        let decoded = Rect { left, top, width, height };
        let fill: [u8; C] = std::array::from_fn(|i| fill.to_le_bytes()[i]);
        let region = SourceRegion { decoded, crop: geometry.crop, area: geometry.area };
        let size = orientation.size(geometry.size);
        let (nearest, data) = (&mut self.nearest, &self.data);
        let uniform = self.uniform.map(|value| std::array::from_fn(|_| value));
        let mut resize = |flip: Flip, out: &mut [u8]| match uniform {
            Some(value) => nearest.resize_uniform::<C>(value, region, size, flip, fill, out),
            None => nearest.resize(data, region, size, flip, fill, out),
        };
        if orientation.transpose {
            self.transposed.resize(out.len(), 0);
            resize(Flip::default(), &mut self.transposed);
            orientation.write::<C>(size, &self.transposed, out);
        } else {
            resize(Flip { horizontal: orientation.flip_x, vertical: orientation.flip_y }, out);
        }
    }

    /// Returns the memory kept for the next map in bytes.
    pub fn held_bytes(&self) -> usize {
        self.data.capacity() + self.transposed.capacity() + self.changes.capacity()
    }
}
