//! The eight orientations of an image: mirrored or not, turned by quarters. EXIF names them 1 to 8.

use crate::geometry::{Area, Rect};
use crate::pixels::Pixels;

/// How an oriented image follows from the stored one: mirror it left to right and top to bottom as asked, then exchange
/// rows and columns as asked. Flips of the oriented image compose into it, so that no pixel is moved twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orientation {
    /// Mirror the stored image left to right.
    pub(crate) flip_x: bool,
    /// Mirror the stored image top to bottom.
    pub(crate) flip_y: bool,
    /// Then exchange rows and columns.
    pub(crate) swap: bool,
}

impl Orientation {
    /// From the EXIF tag 0x0112 (CIPA DC-008, 4.6.4): 1 as stored, 2 mirrored, 3 turned by 180°, 4 upside down, 5 rows
    /// and columns exchanged, 6 to be turned clockwise, 7 exchanged across the other diagonal, 8 to be turned
    /// anticlockwise. Anything else counts as 1, as everywhere.
    pub fn from_exif(value: u8) -> Self {
        let (flip_x, flip_y, swap) = match value {
            2 => (true, false, false),
            3 => (true, true, false),
            4 => (false, true, false),
            5 => (false, false, true),
            6 => (false, true, true),
            7 => (true, true, true),
            8 => (true, false, true),
            _ => (false, false, false),
        };
        Orientation { flip_x, flip_y, swap }
    }

    /// The size after orientation of a stored image of that size; its own inverse.
    pub fn size(self, (width, height): (u32, u32)) -> (u32, u32) {
        if self.swap { (height, width) } else { (width, height) }
    }

    /// This orientation followed by a mirror of the oriented image, left to right.
    pub(crate) fn then_mirror(self) -> Self {
        match self.swap {
            true => Orientation { flip_y: !self.flip_y, ..self },
            false => Orientation { flip_x: !self.flip_x, ..self },
        }
    }

    /// The rectangle of the stored image, of size `stored`, that shows in `rect` of the oriented one.
    pub(crate) fn to_stored(self, rect: Rect, stored: (u32, u32)) -> Rect {
        let mut r = rect;
        if self.swap {
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
        if self.swap {
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

    /// Mirrors rows and columns of pixels of `C` bytes, `width` wide, in place, as far as this orientation asks; does not exchange them.
    pub(crate) fn mirror_in_place<const C: usize>(self, width: u32, data: &mut [u8]) {
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

    /// Writes stored pixels of `size`, `C` bytes each, into `out` as this orientation shows them. Both have the same number
    /// of bytes.
    pub(crate) fn write<const C: usize>(self, (width, height): (u32, u32), stored: &[u8], out: &mut [u8]) {
        if !self.swap {
            out.copy_from_slice(stored);
            return self.mirror_in_place::<C>(width, out);
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

    /// Orients a whole image; allocates a second one where rows and columns are exchanged.
    pub(crate) fn apply(self, pixels: &mut Pixels) {
        if self.swap {
            let mut out = vec![0; pixels.data.len()];
            self.write::<3>((pixels.width, pixels.height), &pixels.data, &mut out);
            (pixels.width, pixels.height) = (pixels.height, pixels.width);
            pixels.data = out;
        } else {
            self.mirror_in_place::<3>(pixels.width, &mut pixels.data);
        }
    }
}
