//! Boxes, points and other values of the objects in mosaics.

use super::Mosaics;
use crate::column_values::Values;
use crate::error::Result;
use crate::kept_objects::{Boxes, Kept, each_points, replace};
use crate::objects::{ObjectColumns, POINT};

/// Where an object of a mosaic comes from.
struct Place {
    /// What is added to the positions of its points, and the part of the row in which they are visible: left, top, right, bottom.
    shift: [f32; 2],
    part: [f32; 4],
}

impl Mosaics {
    /// Moves the objects of a batch: boxes are moved with their images and clipped to the part of the row that shows them; those
    /// that become too small are dropped with their other values. Points outside the part get visibility 0.
    ///
    /// # Errors
    /// [`Error::Alloc`](crate::Error::Alloc).
    pub(crate) fn compose_objects(&self, columns: &ObjectColumns, values: &mut [Values]) -> Result<()> {
        let Some(boxes) = Boxes::of(columns, values) else { return Ok(()) };
        let kept: Vec<Vec<Kept<Place>>> = (0..self.points.len())
            .map(|row| {
                let mut kept = vec![];
                for (source, shift, part) in self.parts(row) {
                    let own = boxes.of_row(source).iter().enumerate();
                    kept.extend(own.filter_map(|(object, corners)| {
                        let corners = match self.points[row] {
                            None => *corners,
                            Some(_) => {
                                clipped(*corners, shift, part).filter(|c| columns.is_large(&c.map(f64::from)))?
                            }
                        };
                        Some(Kept { source, object, corners, place: Place { shift, part } })
                    }));
                }
                kept
            })
            .collect();
        let starts = boxes.starts;
        let (width, height) = self.size;
        replace(columns, values, &starts, &kept, width * height, |_, kept, mask, moved| {
            kept.place.move_mask(width, mask, moved);
        })?;
        for (row, kept) in kept.iter().enumerate().filter(|(row, _)| self.points[*row].is_some()) {
            each_points(columns, values, (row, kept), |kept, points| {
                points.as_chunks_mut::<POINT>().0.iter_mut().for_each(|point| kept.place.move_point(point));
            });
        }
        Ok(())
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

impl Place {
    /// Copies what the part shows of a mask of lines of `width` pixels.
    fn move_mask(&self, width: usize, mask: &[u8], moved: &mut [u8]) {
        let ([left, top, right, bottom], [x, y]) = (self.part.map(|at| at as usize), self.shift.map(|by| by as isize));
        for line in top..bottom {
            let from = line.wrapping_add_signed(-y) * width + left.wrapping_add_signed(-x);
            moved[line * width..][left..right].copy_from_slice(&mask[from..from + right - left]);
        }
    }

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
