//! Label maps (segmentation masks): images with one value per pixel, such as a class. A label map belongs to another image and
//! uses its geometry. Its values are never mixed, and palettes are not looked up.

use std::io::Cursor;

use crate::codecs::image_crate;
use crate::codecs::panics::catch_panic;
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::resize::{Flip, Nearest, SourceRegion};
use crate::sniff::sniff;
use crate::transform::geometry::Geometry;
use crate::transform::rect::Rect;

/// A decoded label map. Reuses its buffers from one map to the next. Use one per thread.
#[derive(Debug, Default)]
pub struct LabelMap {
    size: (u32, u32),
    /// `[H, W]`.
    data: Vec<u8>,
    nearest: Nearest,
    /// The result before rows and columns are exchanged.
    transposed: Vec<u8>,
}

impl LabelMap {
    /// Decodes a label map to its stored values, `[H, W]` u8: of a PNG with a palette the indices, as PIL's mode `P`; of
    /// grey samples of 1, 2, 4 or 8 bits the values. Grey TIFFs of 8 bits are decoded as well.
    ///
    /// # Errors
    /// If the data is damaged or truncated or the image exceeds a limit; [`Error::Labels`] if the format is lossy or holds
    /// other than one value of at most 8 bits per pixel.
    pub fn decode(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), Error> {
        let format = sniff(bytes).ok_or_else(|| Error::unknown(bytes))?;
        let result = catch_panic(format, || self.decode_values(format, bytes, limits));
        if matches!(result, Err(Error::Panic { .. })) {
            *self = LabelMap::default();
        }
        result
    }

    fn decode_values(&mut self, format: Format, bytes: &[u8], limits: &Limits) -> Result<(), Error> {
        match format {
            Format::Png => self.decode_png(bytes, limits),
            Format::Jpeg | Format::WebP => Err(Error::Labels { format }),
            format => {
                let size = image_crate::decode_grey(format, bytes, limits, &mut self.data)?;
                self.size = size.ok_or(Error::Labels { format })?;
                Ok(())
            }
        }
    }

    fn decode_png(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), Error> {
        let damaged = |source: png::DecodingError| Error::Decoder { format: Format::Png, source: source.into() };
        let allowed = png::Limits { bytes: usize::try_from(limits.max_bytes).unwrap_or(usize::MAX) };
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), allowed);
        decoder.set_transformations(png::Transformations::IDENTITY);
        let mut reader = decoder.read_info().map_err(damaged)?;
        let (width, height) = reader.info().size();
        limits.check(Format::Png, width, height, 1)?;
        let (color, depth) = reader.output_color_type();
        let one_channel = matches!(color, png::ColorType::Indexed | png::ColorType::Grayscale);
        let bits = depth as u8;
        if !one_channel || bits > 8 {
            return Err(Error::Labels { format: Format::Png });
        }
        let (width, height) = (width as usize, height as usize);
        let stride = (width * usize::from(bits)).div_ceil(8);
        self.data.resize(width * height, 0);
        // Packed rows are decoded to the end of the buffer, so that unpacking from its start never overwrites unread bytes.
        let packed = self.data.len() - stride * height;
        reader.next_frame(&mut self.data[packed..]).map_err(damaged)?;
        // Checks the chunks after the pixels as well, so that a truncated file is an error.
        reader.finish().map_err(damaged)?;
        if bits < 8 {
            unpack(&mut self.data, (width, height), packed, bits);
        }
        self.size = (width as u32, height as u32);
        Ok(())
    }

    /// Crops, resizes (nearest neighbour) and orients the label map as `geometry` says, and writes the result to `out`:
    /// `[H, W]` u8, where (W, H) is the geometry's [`output_size`](Geometry::output_size).
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if the map has another size than the image that the geometry was planned for;
    /// [`Error::LabelBytes`] if the length of `out` is wrong.
    pub fn apply_geometry(&mut self, geometry: &Geometry, out: &mut [u8]) -> Result<(), Error> {
        geometry.check_stored(self.size)?;
        let (width, height) = geometry.size;
        if u64::from(width) * u64::from(height) != out.len() as u64 {
            return Err(Error::LabelBytes { width, height, found: out.len() as u64 });
        }
        let (orientation, (width, height)) = (geometry.orientation, self.size);
        let whole = Rect { left: 0, top: 0, width, height };
        let region = SourceRegion { decoded: whole, crop: geometry.crop, area: geometry.area };
        let size = orientation.size(geometry.size);
        if orientation.transpose {
            self.transposed.resize(out.len(), 0);
            self.nearest.resize::<1>(&self.data, region, size, Flip::default(), &mut self.transposed);
            orientation.write::<1>(size, &self.transposed, out);
        } else {
            let flip = Flip { horizontal: orientation.flip_x, vertical: orientation.flip_y };
            self.nearest.resize::<1>(&self.data, region, size, flip, out);
        }
        Ok(())
    }

    /// Returns the memory kept for the next map in bytes.
    pub fn held_bytes(&self) -> usize {
        self.data.capacity() + self.transposed.capacity()
    }
}

/// Unpacks rows of packed values that start at `packed` to one byte per value from the start of `data`.
fn unpack(data: &mut [u8], (width, height): (usize, usize), packed: usize, bits: u8) {
    let (per_byte, mask) = (usize::from(8 / bits), (1u8 << bits) - 1);
    let stride = width.div_ceil(per_byte);
    for y in 0..height {
        for x in 0..width {
            let byte = data[packed + y * stride + x / per_byte];
            let shift = 8 - usize::from(bits) * (x % per_byte + 1);
            data[y * width + x] = byte >> shift & mask;
        }
    }
}
