//! Label maps: images that hold one number a pixel, such as the class of what it shows. They go with another image, and
//! through the same geometry; their values are never mixed, nor looked up in a palette.

use image::{ColorType, ImageDecoder};
use std::io::Cursor;

use crate::error::Error;
use crate::foreign::isolate;
use crate::format::{Format, sniff};
use crate::geometry::{Geometry, Rect};
use crate::limits::Limits;
use crate::nearest::{Nearest, Place};
use crate::probe::open;
use crate::resize::Mirror;

/// A decoded label map, and what decoding and applying keep from one to the next: one for each thread.
#[derive(Debug, Default)]
pub struct LabelMap {
    size: (u32, u32),
    /// `[H, W]`.
    data: Vec<u8>,
    nearest: Nearest,
    turned: Vec<u8>,
}

impl LabelMap {
    /// Decodes a label map: the values as stored, `[H, W]` u8. Of a PNG with a palette that is the index of each pixel
    /// (as PIL's mode `P` has it), of grey samples of 1, 2, 4 or 8 bits their value. Grey TIFFs are read as well.
    ///
    /// # Errors
    /// Bad or truncated data, a limit that the image exceeds; [`Error::Labels`] for more than one value a pixel, values
    /// above 8 bits, and formats that lose values.
    pub fn decode(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), Error> {
        let format = sniff(bytes).ok_or_else(|| Error::unknown(bytes))?;
        let result = isolate(format, || self.read(format, bytes, limits));
        if matches!(result, Err(Error::Panic { .. })) {
            *self = LabelMap::default();
        }
        result
    }

    fn read(&mut self, format: Format, bytes: &[u8], limits: &Limits) -> Result<(), Error> {
        match format {
            Format::Png => self.decode_png(bytes, limits),
            Format::Jpeg | Format::WebP => Err(Error::Labels { format }),
            format => {
                let decoder = open(format, bytes, limits)?;
                if decoder.color_type() != ColorType::L8 {
                    return Err(Error::Labels { format });
                }
                self.size = decoder.dimensions();
                self.data.resize(self.size.0 as usize * self.size.1 as usize, 0);
                decoder.read_image(&mut self.data).map_err(|source| Error::Decoder { format, source })
            }
        }
    }

    fn decode_png(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), Error> {
        let wrong = |source| Error::Png { source };
        let allowed = png::Limits { bytes: usize::try_from(limits.max_bytes).unwrap_or(usize::MAX) };
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), allowed);
        decoder.set_transformations(png::Transformations::IDENTITY);
        let mut reader = decoder.read_info().map_err(wrong)?;
        let (width, height) = reader.info().size();
        limits.check(Format::Png, width, height, 1)?;
        let (color, depth) = reader.output_color_type();
        let one = matches!(color, png::ColorType::Indexed | png::ColorType::Grayscale);
        let bits = depth as u8;
        if !one || bits > 8 {
            return Err(Error::Labels { format: Format::Png });
        }
        let (width, height) = (width as usize, height as usize);
        let stride = (width * usize::from(bits)).div_ceil(8);
        self.data.resize(width * height, 0);
        // Rows of several values a byte end at the end of the buffer, so that spreading them never overtakes them.
        let packed = self.data.len() - stride * height;
        reader.next_frame(&mut self.data[packed..]).map_err(wrong)?;
        // What follows the pixels is checked too: a file cut short is refused.
        reader.finish().map_err(wrong)?;
        if bits < 8 {
            spread(&mut self.data, (width, height), packed, bits);
        }
        self.size = (width as u32, height as u32);
        Ok(())
    }

    /// Writes what `geometry` shows of the label map into `out`, `[H, W]` u8 with H and W its
    /// [`output_size`](Geometry::output_size): the nearest value for each pixel.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] where the map has another size than the image that the geometry was planned for;
    /// [`Error::LabelBytes`] if `out` has another length.
    pub fn apply_geometry(&mut self, geometry: &Geometry, out: &mut [u8]) -> Result<(), Error> {
        geometry.check_stored(self.size)?;
        let (width, height) = geometry.size;
        if u64::from(width) * u64::from(height) != out.len() as u64 {
            return Err(Error::LabelBytes { width, height, found: out.len() as u64 });
        }
        let (orientation, (width, height)) = (geometry.orientation, self.size);
        let rect = Rect { left: 0, top: 0, width, height };
        let place = Place { rect, view: geometry.view, area: geometry.area };
        let size = orientation.size(geometry.size);
        if orientation.swap {
            self.turned.resize(out.len(), 0);
            self.nearest.resize::<1>(&self.data, place, size, Mirror::default(), &mut self.turned);
            orientation.write::<1>(size, &self.turned, out);
        } else {
            let mirror = Mirror { across: orientation.flip_x, down: orientation.flip_y };
            self.nearest.resize::<1>(&self.data, place, size, mirror, out);
        }
        Ok(())
    }

    /// Bytes of memory that are kept for the next map.
    pub fn held_bytes(&self) -> usize {
        self.data.capacity() + self.turned.capacity()
    }
}

/// Spreads rows of packed values, which begin at `packed`, to one byte a value.
fn spread(data: &mut [u8], (width, height): (usize, usize), packed: usize, bits: u8) {
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
