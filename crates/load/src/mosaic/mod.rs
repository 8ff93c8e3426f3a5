//! Mosaic: each row of a batch shows parts of four images around a point, its own and those of the next three rows that have a
//! sample (Bochkovskiy et al., "YOLOv4: Optimal Speed and Accuracy of Object Detection", 2020).
//!
//! The images keep their size. The row's own image lies above and left of the point, with its lower right corner on it; the next
//! one above and right, the third below and left, the fourth below and right, each with its nearest corner on the point. What
//! lies outside the row is cut off.

mod objects;

use crate::planes::Planes;
use shardtool_decode::Random;
use std::ops::Range;

/// The mosaics of a batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mosaics {
    /// Width and height of the images.
    size: (usize, usize),
    /// The columns left of the point and the rows above it, for each row of the batch; `None` leaves the row as it is.
    points: Vec<Option<(usize, usize)>>,
    /// The rows whose images each row shows.
    sources: Vec<[usize; 4]>,
}

/// A part of a row.
pub(crate) struct Tile {
    /// The row that it shows.
    pub(crate) source: usize,
    pub(crate) columns: Range<usize>,
    pub(crate) rows: Range<usize>,
    /// What is added to positions in the source: x and y.
    pub(crate) shift: (isize, isize),
}

impl Mosaics {
    /// Draws the mosaics of a batch: for each row, in order, whether it becomes one (with probability `p`), and the column and the
    /// row of its point, as fractions of the sides between those of `centre`. Rows without a sample stay as they are.
    pub(crate) fn draw(
        p: f64,
        centre: [f64; 2],
        (width, height): (u32, u32),
        valid: &[bool],
        random: &mut dyn Random,
    ) -> Self {
        let points = valid.iter().map(|valid| {
            let chosen = random.unit() < p;
            let mut at = |side: u32| {
                let fraction = centre[0] + random.unit() * (centre[1] - centre[0]);
                ((fraction * f64::from(side)) as usize).min(side as usize)
            };
            let point = (at(width), at(height));
            (chosen && *valid).then_some(point)
        });
        let n = valid.len();
        let next = |row: usize| (1..=n).map(|step| (row + step) % n).find(|other| valid[*other]).unwrap_or(row);
        let sources = (0..n).map(|row| {
            let second = next(row);
            let third = next(second);
            [row, second, third, next(third)]
        });
        Mosaics { points: points.collect(), sources: sources.collect(), size: (width as usize, height as usize) }
    }

    /// Returns the number of rows of the batch.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns the parts of a row: above left of the point, above right, below left, below right. `None` if the row stays as it
    /// is.
    pub(crate) fn tiles(&self, row: usize) -> Option<[Tile; 4]> {
        let ((x, y), (width, height)) = (self.points[row]?, self.size);
        let (left, right) = (x as isize - width as isize, x as isize);
        let (up, down) = (y as isize - height as isize, y as isize);
        let [a, b, c, d] = self.sources[row];
        Some([
            Tile { source: a, columns: 0..x, rows: 0..y, shift: (left, up) },
            Tile { source: b, columns: x..width, rows: 0..y, shift: (right, up) },
            Tile { source: c, columns: 0..x, rows: y..height, shift: (left, down) },
            Tile { source: d, columns: x..width, rows: y..height, shift: (right, down) },
        ])
    }

    /// Returns the rows that a row shows, and the share of its pixels of each.
    pub(crate) fn shares(&self, row: usize) -> Vec<(usize, f64)> {
        let pixels = (self.size.0 * self.size.1) as f64;
        match self.tiles(row) {
            None => vec![(row, 1.0)],
            Some(tiles) => {
                tiles.map(|tile| (tile.source, tile.columns.len() as f64 * tile.rows.len() as f64 / pixels)).to_vec()
            }
        }
    }

    /// Composes the images of a batch, or values of their pixels, in place.
    pub(crate) fn compose(&self, images: &mut [u8], planes: Planes) {
        let Planes { count, pixel } = planes;
        let (width, height) = self.size;
        let (line, plane) = (width * pixel, width * height * pixel);
        let image = planes.row_bytes(self.size);
        let rows = self.points.len();
        // Rows ascend, so that at most the first three with a sample are needed after they have changed: by the last ones, or by
        // themselves if there are fewer than four.
        let changed = |row: usize| {
            let sources = self.sources[row].into_iter().skip(1).filter(move |source| *source <= row);
            self.points[row].iter().flat_map(move |_| sources.clone())
        };
        let mut copied: Vec<usize> = (0..rows).flat_map(changed).collect();
        copied.sort_unstable();
        copied.dedup();
        let copies: Vec<(usize, Vec<u8>)> =
            copied.into_iter().map(|row| (row, images[row * image..][..image].to_vec())).collect();
        for row in 0..rows {
            let Some(tiles) = self.tiles(row) else { continue };
            for (number, tile) in tiles.into_iter().enumerate() {
                let part = |y: usize, of: usize| {
                    let (x, y) = if of == 0 {
                        (tile.columns.start, y)
                    } else {
                        let moved = |at: usize, by: isize| at.wrapping_add_signed(-by);
                        (moved(tile.columns.start, tile.shift.0), moved(y, tile.shift.1))
                    };
                    let start = y * line + x * pixel;
                    start..start + tile.columns.len() * pixel
                };
                let copy = copies.iter().find(|(source, _)| *source == tile.source).map(|(_, copy)| copy);
                for plane in (0..count).map(|number| number * plane) {
                    for y in tile.rows.clone() {
                        let (to, from) = (part(y, 0), part(y, 1));
                        let (to, from) = (to.start + plane..to.end + plane, from.start + plane..from.end + plane);
                        let at = row * image;
                        match copy {
                            Some(copy) => images[at + to.start..at + to.end].copy_from_slice(&copy[from]),
                            // The own image is moved first, up and to the left, line by line.
                            None if number == 0 => images.copy_within(at + from.start..at + from.end, at + to.start),
                            None => {
                                let (before, after) = images.split_at_mut(tile.source * image);
                                before[at + to.start..at + to.end].copy_from_slice(&after[from]);
                            }
                        }
                    }
                }
            }
        }
    }
}
