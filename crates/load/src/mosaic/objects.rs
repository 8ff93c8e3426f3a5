//! Boxes, points and other values of the objects in mosaics.

use super::Mosaics;
use crate::buffer::OwnedBytes;
use crate::column_values::Values;
use crate::error::{Error, Result};
use crate::objects::{BOX, ObjectColumns, POINT};

/// An object that a row of the result has.
struct Kept {
    /// The row it comes from, and its number there.
    source: usize,
    object: usize,
    corners: [f32; 4],
    /// What is added to the positions of its points, and the part of the row in which they are visible: left, top, right, bottom.
    shift: [f32; 2],
    part: [f32; 4],
}

impl Mosaics {
    /// Moves the objects of a batch: boxes are moved with their images and clipped to the part of the row that shows them; those
    /// that become too small are dropped with their other values. Points outside the part get visibility 0.
    ///
    /// # Errors
    /// [`Error::Alloc`].
    pub(crate) fn compose_objects(&self, columns: &ObjectColumns, values: &mut [Values]) -> Result<()> {
        let Values::RaggedFloat { offsets, values: boxes } = &values[columns.boxes] else { return Ok(()) };
        let starts: Vec<usize> = offsets.iter().map(|offset| *offset as usize / BOX).collect();
        let boxes = boxes.as_chunks::<BOX>().0;
        let kept: Vec<Vec<Kept>> = (0..self.points.len())
            .map(|row| {
                let mut kept = vec![];
                for (source, shift, part) in self.parts(row) {
                    let own = boxes[starts[source]..starts[source + 1]].iter().enumerate();
                    kept.extend(own.filter_map(|(object, corners)| {
                        let corners = match self.points[row] {
                            None => *corners,
                            Some(_) => {
                                clipped(*corners, shift, part).filter(|c| columns.is_large(&c.map(f64::from)))?
                            }
                        };
                        Some(Kept { source, object, corners, shift, part })
                    }));
                }
                kept
            })
            .collect();
        for column in columns.all() {
            values[column] = match &values[column] {
                Values::RaggedFloat { offsets, values } => {
                    let (offsets, values) = take(offsets, values, &starts, &kept);
                    Values::RaggedFloat { offsets, values }
                }
                Values::RaggedInt64 { offsets, values } => {
                    let (offsets, values) = take(offsets, values, &starts, &kept);
                    Values::RaggedInt64 { offsets, values }
                }
                Values::RaggedFloat64 { offsets, values } => {
                    let (offsets, values) = take(offsets, values, &starts, &kept);
                    Values::RaggedFloat64 { offsets, values }
                }
                Values::RaggedUint64 { offsets, values } => {
                    let (offsets, values) = take(offsets, values, &starts, &kept);
                    Values::RaggedUint64 { offsets, values }
                }
                Values::RaggedUint8 { offsets, values } => {
                    let (offsets, values) = self.masks(offsets, values, &starts, &kept)?;
                    Values::RaggedUint8 { offsets, values }
                }
                _ => unreachable!("values of objects are ragged numbers"),
            };
        }
        if let Values::RaggedFloat { values, .. } = &mut values[columns.boxes] {
            let corners = kept.iter().flatten().map(|kept| kept.corners);
            values.as_chunks_mut::<BOX>().0.iter_mut().zip(corners).for_each(|(value, corners)| *value = corners);
        }
        if let Some(column) = columns.keypoints
            && let Values::RaggedFloat { offsets, values } = &mut values[column]
        {
            for (row, kept) in kept.iter().enumerate().filter(|(row, _)| self.points[*row].is_some()) {
                let values = &mut values[offsets[row] as usize..offsets[row + 1] as usize];
                let each = values.len() / kept.len().max(1);
                for (kept, points) in kept.iter().zip(values.chunks_mut(each.max(1))) {
                    points.as_chunks_mut::<POINT>().0.iter_mut().for_each(|point| kept.move_point(point));
                }
            }
        }
        Ok(())
    }

    /// Returns the masks of the objects that each row keeps, moved with them.
    ///
    /// # Errors
    /// [`Error::Alloc`].
    fn masks(
        &self,
        offsets: &[i64],
        values: &[u8],
        starts: &[usize],
        kept: &[Vec<Kept>],
    ) -> Result<(Vec<i64>, OwnedBytes)> {
        let (width, height) = self.size;
        let mask = width * height;
        let mut ends = vec![0];
        ends.extend(kept.iter().scan(0, |end, kept| {
            *end += (kept.len() * mask) as i64;
            Some(*end)
        }));
        let bytes = kept.iter().map(Vec::len).sum::<usize>() * mask;
        // All 0.
        let mut moved = OwnedBytes::alloc(bytes).map_err(|source| Error::Alloc { bytes, source })?;
        for (kept, moved) in kept.iter().flatten().zip(moved.chunks_exact_mut(mask.max(1))) {
            debug_assert_eq!(offsets[kept.source] as usize, starts[kept.source] * mask);
            let mask = &values[(starts[kept.source] + kept.object) * mask..][..mask];
            let ([left, top, right, bottom], [x, y]) =
                (kept.part.map(|at| at as usize), kept.shift.map(|by| by as isize));
            for line in top..bottom {
                let from = line.wrapping_add_signed(-y) * width + left.wrapping_add_signed(-x);
                moved[line * width..][left..right].copy_from_slice(&mask[from..from + right - left]);
            }
        }
        Ok((ends, moved))
    }

    /// Returns what a row shows: the source, what is added to positions in it, and the part of the row.
    fn parts(&self, row: usize) -> Vec<(usize, [f32; 2], [f32; 4])> {
        let Some(tiles) = self.tiles(row) else {
            return vec![(row, [0.0; 2], [0.0, 0.0, self.size.0 as f32, self.size.1 as f32])];
        };
        let part = |tile: super::Tile| {
            let corners = [tile.columns.start, tile.rows.start, tile.columns.end, tile.rows.end];
            (tile.source, [tile.shift.0 as f32, tile.shift.1 as f32], corners.map(|x| x as f32))
        };
        tiles.map(part).into_iter().collect()
    }
}

impl Kept {
    fn move_point(&self, [x, y, visibility]: &mut [f32; POINT]) {
        // An invisible point has no position.
        if *visibility == 0.0 {
            return;
        }
        let [left, top, right, bottom] = self.part;
        (*x, *y) = (*x + self.shift[0], *y + self.shift[1]);
        if !((left..=right).contains(x) && (top..=bottom).contains(y)) {
            (*x, *y, *visibility) = (0.0, 0.0, 0.0);
        }
    }
}

/// Moves a box and clips it to a part of the row; `None` if the result is empty.
fn clipped([left, top, right, bottom]: [f32; 4], [x, y]: [f32; 2], part: [f32; 4]) -> Option<[f32; 4]> {
    let (across, down) = (|v: f32| (v + x).clamp(part[0], part[2]), |v: f32| (v + y).clamp(part[1], part[3]));
    let [left, top, right, bottom] = [across(left), down(top), across(right), down(bottom)];
    (left < right && top < bottom).then_some([left, top, right, bottom])
}

/// Returns the values of the objects that each row keeps. `starts` are the numbers of the first object of each row.
fn take<T: Copy>(offsets: &[i64], values: &[T], starts: &[usize], kept: &[Vec<Kept>]) -> (Vec<i64>, Vec<T>) {
    let (mut ends, mut taken) = (vec![0], vec![]);
    for row in kept {
        for Kept { source, object, .. } in row {
            let values = &values[offsets[*source] as usize..offsets[source + 1] as usize];
            let each = values.len() / (starts[source + 1] - starts[*source]);
            taken.extend_from_slice(&values[object * each..(object + 1) * each]);
        }
        ends.push(taken.len() as i64);
    }
    (ends, taken)
}
