//! The objects of rows on which others are pasted: their masks lose what is covered.

use super::{Paste, Pastes};
use crate::column_values::Values;
use crate::error::Result;
use crate::kept_objects::{Boxes, Kept, each_points, replace};
use crate::objects::{BOX, ObjectColumns, POINT};

/// The masks of a batch.
pub(super) struct Masks<'v> {
    boxes: Boxes<'v>,
    values: &'v [u8],
    /// Which objects are crowds, if the batch says so.
    crowds: Option<&'v [i64]>,
    /// Width and height of a mask.
    size: (usize, usize),
}

impl<'v> Masks<'v> {
    /// Returns the masks of a batch; `None` if it has none.
    pub(super) fn of(columns: &ObjectColumns, values: &'v [Values], size: (usize, usize)) -> Option<Self> {
        let Values::RaggedUint8 { values: masks, .. } = &values[columns.masks?] else { return None };
        let crowds = columns.crowds().and_then(|column| match &values[column] {
            Values::RaggedInt64 { values, .. } => Some(values.as_slice()),
            _ => None,
        });
        Some(Masks { boxes: Boxes::of(columns, values)?, values: masks, crowds, size })
    }

    /// Returns whether an object of a row is known to be a crowd.
    fn is_crowd(&self, row: usize, object: usize) -> bool {
        self.crowds.is_some_and(|crowds| crowds.get(self.boxes.starts[row] + object).is_some_and(|crowd| *crowd != 0))
    }

    /// Returns the mask of an object of a row.
    fn of_object(&self, row: usize, object: usize) -> &'v [u8] {
        let bytes = self.size.0 * self.size.1;
        &self.values[(self.boxes.starts[row] + object) * bytes..][..bytes]
    }
}

/// What is pasted on a row.
pub(crate) struct Cover {
    /// The numbers of the objects of the source.
    objects: Vec<usize>,
    /// Height times width: 1 where one of them is.
    pub(super) pixels: Vec<u8>,
}

impl Cover {
    /// Returns what is pasted; `None` if no object that has pixels is chosen. Crowds are not pasted.
    pub(super) fn of(paste: Paste, masks: &Masks<'_>) -> Option<Self> {
        let mut pixels = vec![0; masks.size.0 * masks.size.1];
        let chosen = paste.chosen(masks.boxes.of_row(paste.source).len());
        let mut add = |object: &usize| {
            let mask = masks.of_object(paste.source, *object);
            pixels.iter_mut().zip(mask).for_each(|(covered, value)| *covered |= value);
            mask.contains(&1)
        };
        let objects: Vec<_> = (0..chosen.len())
            .filter(|object| chosen[*object] && !masks.is_crowd(paste.source, *object))
            .filter(&mut add)
            .collect();
        (!objects.is_empty()).then_some(Cover { objects, pixels })
    }

    /// Returns whether a pixel is covered at a point in pixels.
    fn has(&self, x: f32, y: f32, (width, height): (usize, usize)) -> bool {
        let at = |position: f32, side: usize| (position.max(0.0) as usize).min(side - 1);
        self.pixels[at(y, height) * width + at(x, width)] != 0
    }
}

impl Pastes {
    /// Pastes the objects of a batch: those of the row that keep a pixel, without what is covered, then those that are pasted. An
    /// object that loses pixels gets the box around the others, and is dropped if that is too small. Its points that are covered get
    /// visibility 1.
    ///
    /// # Errors
    /// [`Error::Alloc`](crate::Error::Alloc).
    pub(crate) fn compose_objects(
        &self,
        columns: &ObjectColumns,
        values: &mut [Values],
        covers: &[Option<Cover>],
    ) -> Result<()> {
        let Some(masks) = Masks::of(columns, values, self.size) else { return Ok(()) };
        let kept: Vec<Vec<Kept<()>>> = (0..self.rows.len())
            .map(|row| {
                let own = masks.boxes.of_row(row).iter().copied().enumerate();
                let kept = |source: usize| move |(object, corners)| Kept { source, object, corners, place: () };
                let Some((paste, cover)) = self.rows[row].zip(covers[row].as_ref()) else {
                    return own.map(kept(row)).collect();
                };
                let own = own.filter_map(|(object, corners)| {
                    let mask = masks.of_object(row, object);
                    Some((object, uncovered(corners, mask, &cover.pixels, self.size.0, columns)?))
                });
                let boxes = masks.boxes.of_row(paste.source);
                let pasted = cover.objects.iter().map(|object| (*object, boxes[*object]));
                own.map(kept(row)).chain(pasted.map(kept(paste.source))).collect()
            })
            .collect();
        let starts = masks.boxes.starts;
        replace(columns, values, &starts, &kept, self.size.0 * self.size.1, |row, kept, mask, left| {
            left.copy_from_slice(mask);
            if let Some(cover) = covers[row].as_ref().filter(|_| kept.source == row) {
                left.iter_mut().zip(&cover.pixels).for_each(|(value, covered)| *value &= 1 - covered);
            }
        })?;
        for (row, cover) in covers.iter().enumerate() {
            let Some(cover) = cover else { continue };
            each_points(columns, values, (row, &kept[row]), |kept, points| {
                let points = points.as_chunks_mut::<POINT>().0.iter_mut().filter(|_| kept.source == row);
                points
                    .filter(|[x, y, visibility]| *visibility > 1.0 && cover.has(*x, *y, self.size))
                    .for_each(|[_, _, visibility]| *visibility = 1.0);
            });
        }
        Ok(())
    }
}

/// Returns the box of an object of which some pixels may be covered: its own if none is, else the one around the others. `None` if it
/// has no other pixel, or that box is too small.
fn uncovered(
    corners: [f32; BOX],
    mask: &[u8],
    covered: &[u8],
    width: usize,
    columns: &ObjectColumns,
) -> Option<[f32; BOX]> {
    let (mut bounds, mut lost) = (None, false);
    for (y, (mask, covered)) in mask.chunks_exact(width).zip(covered.chunks_exact(width)).enumerate() {
        let own = mask.iter().zip(covered).enumerate().filter(|(_, (value, _))| **value != 0);
        for (x, (_, covered)) in own {
            if *covered != 0 {
                lost = true;
                continue;
            }
            let [left, top, right, bottom] = bounds.unwrap_or([x, y, x, y]);
            bounds = Some([left.min(x), top, right.max(x), bottom.max(y)]);
        }
    }
    if !lost {
        return Some(corners);
    }
    let [left, top, right, bottom] = bounds?;
    let bounds = [left, top, right + 1, bottom + 1].map(|at| at as f32);
    columns.is_large(&bounds.map(f64::from)).then_some(bounds)
}
