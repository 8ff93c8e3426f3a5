//! Copy-paste: objects of the next row that has a sample are pasted on a row, pixel by pixel of their masks, at the place that they
//! have there (Ghiasi et al., "Simple Copy-Paste is a Strong Data Augmentation Method for Instance Segmentation", 2021).

mod objects;

use super::pairs::partners;
use crate::column_values::Values;
use crate::objects::ObjectColumns;
use crate::planes::Planes;
pub(crate) use objects::Cover;
use objects::Masks;
use shardtool_order::Rng;

/// What is pasted on the rows of a batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pastes {
    /// Width and height of the images.
    size: (usize, usize),
    /// What each row gets; `None` leaves it as it is.
    rows: Vec<Option<Paste>>,
}

/// What one row gets.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Paste {
    /// The row whose objects are pasted.
    source: usize,
    /// The key of the numbers that choose them.
    key: u64,
}

impl Paste {
    /// Returns which of the `objects` of the source are pasted: as many numbers of objects are drawn as there are, and each that is
    /// drawn once or more often is pasted, as in torchvision's reference.
    fn chosen(self, objects: usize) -> Vec<bool> {
        let (mut random, mut chosen) = (Rng::new(self.key), vec![false; objects]);
        (0..objects).for_each(|_| chosen[random.below(objects as u32) as usize] = true);
        chosen
    }
}

impl Pastes {
    /// Draws for a batch of images of `size` (width, height): for each row, in order, whether something is pasted on it (with
    /// probability `p`), and the key of the numbers that choose what. Rows without a sample stay as they are.
    pub(super) fn draw(p: f64, (width, height): (u32, u32), valid: &[bool], random: &mut Rng) -> Self {
        let draw = |(row, source): (usize, usize)| {
            let (drawn, key) = (random.next_f64(), random.next_u64());
            (drawn < p && source != row).then_some(Paste { source, key })
        };
        let rows = partners(valid).into_iter().enumerate().map(draw).collect();
        Pastes { size: (width as usize, height as usize), rows }
    }

    /// Returns what is pasted on each row, `[N]`; `None` for those that stay as they are. `values` are those of the objects before.
    pub(crate) fn covers(&self, columns: &ObjectColumns, values: &[Values]) -> Vec<Option<Cover>> {
        let Some(masks) = Masks::of(columns, values, self.size) else { return vec![] };
        self.rows.iter().map(|paste| Cover::of((*paste)?, &masks)).collect()
    }

    /// Pastes the pixels of a batch, or values of them, in place.
    pub(crate) fn paste(&self, images: &mut [u8], planes: Planes, covers: &[Option<Cover>]) {
        let (pixel, image) = (planes.pixel, planes.row_bytes(self.size));
        let plane = image / planes.count;
        // Rows ascend: the last one with a sample pastes from the first one, which may have changed.
        let first = self.rows.iter().enumerate().find_map(|(row, paste)| paste.filter(|paste| paste.source < row));
        let copy = first.map(|Paste { source, .. }| images[source * image..][..image].to_vec());
        for (row, (paste, cover)) in self.rows.iter().zip(covers).enumerate() {
            let Some((paste, cover)) = paste.as_ref().zip(cover.as_ref()) else { continue };
            let (own, source) = if paste.source > row {
                let (before, after) = images.split_at_mut(paste.source * image);
                (&mut before[row * image..][..image], &after[..image])
            } else {
                (&mut images[row * image..][..image], copy.as_deref().unwrap_or_default())
            };
            for (own, source) in own.chunks_exact_mut(plane).zip(source.chunks_exact(plane)) {
                let pixels = own.chunks_exact_mut(pixel).zip(source.chunks_exact(pixel)).zip(&cover.pixels);
                pixels.filter(|(_, covered)| **covered != 0).for_each(|((own, source), _)| own.copy_from_slice(source));
            }
        }
    }
}
