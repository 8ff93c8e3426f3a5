//! What was drawn for one batch: the rows that each row shows, and the share of each.

use super::pairs::Pairs;
use super::pixels::{self, Pixels};
use super::row_mix::RowMix;
use crate::mosaic::Mosaics;
use crate::planes::Planes;
use shardtool_decode::PixelFormat;

/// How the rows of one batch are mixed, as [`Mixing::draw`](super::Mixing::draw) drew it.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchMix {
    /// Width and height of the images.
    size: (usize, usize),
    drawn: Drawn,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Drawn {
    /// Pairs of images.
    Pairs(Pairs),
    /// Mosaics of four.
    Mosaics(Mosaics),
}

impl BatchMix {
    /// The memory of each row of a batch, in bytes, at most.
    pub(crate) const ROW_BYTES: u64 = 64;

    pub(super) fn new((width, height): (u32, u32), drawn: Drawn) -> Self {
        BatchMix { size: (width as usize, height as usize), drawn }
    }

    /// Returns the mix that leaves each of `rows` rows as it is.
    pub(crate) fn identity(size: (u32, u32), rows: usize) -> Self {
        BatchMix::new(size, Drawn::Pairs(Pairs::identity(rows)))
    }

    /// Returns `[N, H, W]`, the number and the size of the images that it mixes.
    pub fn shape(&self) -> [usize; 3] {
        let rows = match &self.drawn {
            Drawn::Pairs(pairs) => pairs.partners.len(),
            Drawn::Mosaics(mosaics) => mosaics.len(),
        };
        [rows, self.size.1, self.size.0]
    }

    /// Returns how each row is mixed, in order: N of them. Their rows are below N and their pixels inside the images.
    pub fn rows(&self) -> impl Iterator<Item = RowMix> + '_ {
        (0..self.shape()[0]).map(|row| match &self.drawn {
            Drawn::Pairs(pairs) => RowMix::of_pair(row, pairs),
            Drawn::Mosaics(mosaics) => RowMix::of_mosaic(row, mosaics, self.size),
        })
    }

    /// Returns whether no row shows another.
    pub fn is_identity(&self) -> bool {
        (0..).zip(self.rows()).all(|(row, mix)| mix == RowMix::unmixed(row))
    }

    /// Mixes u8 images `[N, H, W, 3]` in place, as the loader does on the host.
    ///
    /// # Panics
    /// If `images` has another length.
    pub fn mix(&self, images: &mut [u8]) {
        assert_eq!(images.len(), self.shape().iter().product::<usize>() * 3, "images of {:?}", self.shape());
        self.mix_pixels(images, Pixels::new(None, PixelFormat::RGB8));
    }

    /// Mixes the images of a batch in place.
    pub(crate) fn mix_pixels(&self, images: &mut [u8], kind: Pixels) {
        match &self.drawn {
            Drawn::Pairs(pairs) => pixels::mix_pairs(images, self.size, kind, pairs),
            Drawn::Mosaics(mosaics) => mosaics.compose(images, kind.planes()),
        }
    }

    /// Moves label maps and other values of pixels in place, `[N]` rows of these planes, as the pixels that they belong to. `MixUp`, which
    /// is refused with them, changes nothing.
    pub(crate) fn move_values(&self, rows: &mut [u8], planes: Planes) {
        match &self.drawn {
            Drawn::Pairs(pairs) => pixels::replace_rectangles(rows, self.size, planes, pairs),
            Drawn::Mosaics(mosaics) => mosaics.compose(rows, planes),
        }
    }

    /// Returns the mosaics, whose boxes and points move along; `None` if pairs are mixed.
    pub(crate) fn mosaics(&self) -> Option<&Mosaics> {
        match &self.drawn {
            Drawn::Mosaics(mosaics) => Some(mosaics),
            Drawn::Pairs(_) => None,
        }
    }

    /// Returns the soft labels of a batch, `[N, classes]`. The error is a label that is not one of the classes.
    pub(crate) fn soft_labels(&self, labels: &[i64], valid: &[bool], classes: u32) -> Result<Vec<f32>, i64> {
        let classes = classes as usize;
        let mut soft = vec![0.0; labels.len() * classes];
        let class = |row: usize| usize::try_from(labels[row]).ok().filter(|class| *class < classes).ok_or(labels[row]);
        for (row, weights) in soft.chunks_exact_mut(classes).enumerate().filter(|(row, _)| valid[*row]) {
            for (source, share) in self.shares(row) {
                weights[class(source)?] += share as f32;
            }
        }
        Ok(soft)
    }

    /// Mixes rows of `width` numbers as the images are; rows without a sample become 0.
    pub(crate) fn mix_numbers(&self, values: &[f32], valid: &[bool], width: usize) -> Vec<f32> {
        let mut mixed = vec![0.0; values.len()];
        for (row, numbers) in mixed.chunks_exact_mut(width).enumerate().filter(|(row, _)| valid[*row]) {
            for (source, share) in self.shares(row) {
                let source = &values[source * width..][..width];
                numbers.iter_mut().zip(source).for_each(|(number, value)| *number += share as f32 * value);
            }
        }
        mixed
    }

    /// Returns the rows that a row shows, and the share of each.
    fn shares(&self, row: usize) -> Vec<(usize, f64)> {
        match &self.drawn {
            Drawn::Pairs(pairs) => vec![(row, pairs.share), (pairs.partners[row], 1.0 - pairs.share)],
            Drawn::Mosaics(mosaics) => mosaics.shares(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_outside_the_classes_are_named() {
        let pairs = |share, valid: &[bool]| BatchMix::new((1, 1), Drawn::Pairs(Pairs::new(share, None, valid)));
        let all = [true, true];
        assert_eq!(pairs(0.5, &all).soft_labels(&[0, 7], &all, 3), Err(7));
        let valid = [true, false, true];
        let soft = pairs(0.75, &valid).soft_labels(&[2, -100, 0], &valid, 3).unwrap();
        assert_eq!(soft, [0.25, 0.0, 0.75, 0.0, 0.0, 0.0, 0.75, 0.0, 0.25]);
    }
}
