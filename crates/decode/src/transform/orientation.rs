//! The eight EXIF orientations.

use super::rect::{Area, Rect};
use crate::pixels::Pixels;
use serde::Serialize;

/// How the oriented image is made from the stored one: flip left to right, flip top to bottom, then transpose. Later flips
/// of the oriented image are composed into it, so that each pixel is moved once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Orientation {
    /// Flip the stored image left to right.
    pub(crate) flip_x: bool,
    /// Flip the stored image top to bottom.
    pub(crate) flip_y: bool,
    /// Then exchange rows and columns.
    pub(crate) transpose: bool,
}

impl Orientation {
    /// Converts the value of EXIF tag 0x0112 (CIPA DC-008, 4.6.4), which says how to turn the stored image upright: 1 not at all,
    /// 2 flip left to right, 3 rotate by 180°, 4 flip top to bottom, 5 transpose, 6 rotate clockwise, 7 transpose across
    /// the other diagonal, 8 rotate anticlockwise. Other values count as 1, as in other decoders.
    pub fn from_exif(value: u8) -> Self {
        let (flip_x, flip_y, transpose) = match value {
            2 => (true, false, false),
            3 => (true, true, false),
            4 => (false, true, false),
            5 => (false, false, true),
            6 => (false, true, true),
            7 => (true, true, true),
            8 => (true, false, true),
            _ => (false, false, false),
        };
        Orientation { flip_x, flip_y, transpose }
    }

    /// Returns the size (width, height) of the oriented image for that of the stored image, and the reverse.
    pub fn size(self, (width, height): (u32, u32)) -> (u32, u32) {
        if self.transpose { (height, width) } else { (width, height) }
    }

    /// Returns this orientation followed by a flip of the oriented image, left to right.
    pub(crate) fn then_flip(self) -> Self {
        match self.transpose {
            true => Orientation { flip_y: !self.flip_y, ..self },
            false => Orientation { flip_x: !self.flip_x, ..self },
        }
    }

    /// Returns this orientation followed by a flip of the oriented image, top to bottom.
    pub(crate) fn then_flip_vertical(self) -> Self {
        match self.transpose {
            true => Orientation { flip_x: !self.flip_x, ..self },
            false => Orientation { flip_y: !self.flip_y, ..self },
        }
    }

    /// Returns where a point of the stored image lies in the oriented one, both in fractions of their width and height.
    pub(crate) fn map(self, [x, y]: [f64; 2]) -> [f64; 2] {
        let x = if self.flip_x { 1.0 - x } else { x };
        let y = if self.flip_y { 1.0 - y } else { y };
        if self.transpose { [y, x] } else { [x, y] }
    }

    /// Converts a rectangle of the oriented image to the stored image of size `stored`.
    pub(crate) fn to_stored(self, rect: Rect, stored: (u32, u32)) -> Rect {
        let mut r = rect;
        if self.transpose {
            r = Rect { left: rect.top, top: rect.left, width: rect.height, height: rect.width };
        }
        if self.flip_x {
            r.left = stored.0 - r.left - r.width;
        }
        if self.flip_y {
            r.top = stored.1 - r.top - r.height;
        }
        r
    }

    /// [`Orientation::to_stored`] for fractions of pixels.
    pub(crate) fn area_to_stored(self, area: Area, stored: (u32, u32)) -> Area {
        let mut a = area;
        if self.transpose {
            a = Area { left: area.top, top: area.left, width: area.height, height: area.width };
        }
        if self.flip_x {
            a.left = f64::from(stored.0) - a.left - a.width;
        }
        if self.flip_y {
            a.top = f64::from(stored.1) - a.top - a.height;
        }
        a
    }

    /// Flips pixels of `C` bytes in rows of `width` in place, as this orientation says. Does not transpose.
    pub(crate) fn flip_in_place<const C: usize>(self, width: u32, data: &mut [u8]) {
        let stride = width as usize * C;
        if stride == 0 {
            return;
        }
        if self.flip_y {
            let (upper, lower) = data.split_at_mut(data.len() / stride / 2 * stride);
            for (a, b) in upper.chunks_exact_mut(stride).zip(lower.rchunks_exact_mut(stride)) {
                a.swap_with_slice(b);
            }
        }
        if self.flip_x {
            for row in data.chunks_exact_mut(stride) {
                row.as_chunks_mut::<C>().0.reverse();
            }
        }
    }

    /// Writes the oriented image of stored pixels of size (width, height), `C` bytes each, to `out`, which must have the
    /// same length.
    pub(crate) fn write<const C: usize>(self, (width, height): (u32, u32), stored: &[u8], out: &mut [u8]) {
        if !self.transpose {
            out.copy_from_slice(stored);
            return self.flip_in_place::<C>(width, out);
        }
        let (width, height) = (width as usize, height as usize);
        let (pixels, _) = stored.as_chunks::<C>();
        for (v, row) in out.as_chunks_mut::<C>().0.chunks_exact_mut(height).enumerate() {
            let x = if self.flip_x { width - 1 - v } else { v };
            let column = pixels[x..].iter().step_by(width);
            if self.flip_y {
                row.iter_mut().rev().zip(column).for_each(|(o, p)| *o = *p);
            } else {
                row.iter_mut().zip(column).for_each(|(o, p)| *o = *p);
            }
        }
    }

    /// Orients a whole image. Allocates a second image if it transposes.
    pub(crate) fn apply(self, pixels: &mut Pixels) {
        if self.transpose {
            let mut out = vec![0; pixels.data.len()];
            self.write::<3>((pixels.width, pixels.height), &pixels.data, &mut out);
            (pixels.width, pixels.height) = (pixels.height, pixels.width);
            pixels.data = out;
        } else {
            self.flip_in_place::<3>(pixels.width, &mut pixels.data);
        }
    }
}
