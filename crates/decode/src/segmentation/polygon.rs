//! Where the outline of a polygon crosses the columns of pixels, as pycocotools finds it: points are rounded to fifths of a pixel,
//! sides become lines of such points, and a column's pixels are cut where the line passes their middle.

use super::Part;
use std::ops::Range;

/// Parts that the side of a pixel is divided into.
const PARTS: f64 = 5.0;
/// Steps of a crossing, compared with those of a pixel.
const CROSSING: u64 = 16;
/// The part in the middle of a pixel.
const MIDDLE: i64 = 2;

/// The points of a polygon, x and y in fifths of a pixel.
pub(super) struct Outline(Vec<[i64; 2]>);

impl Outline {
    /// Rounds the points of a polygon: x and y of each, in pixels.
    pub(super) fn new(numbers: &[f64]) -> Self {
        // Conversions of numbers out of range give the nearest one.
        let round = |x: &f64| i64::from((PARTS * x + 0.5) as i32);
        Outline(numbers.as_chunks::<2>().0.iter().map(|[x, y]| [round(x), round(y)]).collect())
    }

    /// Returns the pixels of an image of `size` (width, height) that the polygon lies in.
    pub(super) fn part(&self, (width, height): (u32, u32)) -> Part {
        let range = |axis: usize, side: u32| {
            let pixels = self.0.iter().map(|point| pixel(point[axis], side as usize));
            pixels.clone().min().unwrap_or(0)..pixels.max().unwrap_or(0)
        };
        Part { columns: range(0, width), rows: range(1, height) }
    }

    /// Returns how many steps drawing it takes: one for each pixel of its part, and some for each column that a side crosses.
    pub(super) fn work(&self, size: (u32, u32)) -> u64 {
        let part = self.part(size);
        let crossed: u64 = self.sides(part.columns.clone()).map(|(_, _, crossed)| crossed.len() as u64).sum();
        (part.columns.len() * part.rows.len()) as u64 + CROSSING * crossed + self.0.len() as u64
    }

    /// Returns both ends of each side, and which of these columns it crosses the middle of.
    fn sides(&self, columns: Range<usize>) -> impl Iterator<Item = ([i64; 2], [i64; 2], Range<usize>)> {
        let next = self.0.iter().cycle().skip(1);
        self.0.iter().zip(next).map(move |(from, to)| {
            let [left, right] = [from[0].min(to[0]), from[0].max(to[0])].map(|x| pixel(x, columns.end));
            (*from, *to, left.max(columns.start)..right)
        })
    }

    /// Calls `cross` with column and row of the first pixel below the outline, for each time that it passes the middle of one of
    /// these columns.
    pub(super) fn crossings(&self, columns: Range<usize>, mut cross: impl FnMut(usize, usize)) {
        for (from, to, crossed) in self.sides(columns) {
            let side = Side::new(from, to);
            for x in crossed {
                let y = side.above(5 * x as i64 + MIDDLE);
                cross(x, pixel(y, usize::MAX));
            }
        }
    }
}

/// Returns the first pixel whose middle is not before a position in fifths, at most `side`.
fn pixel(position: i64, side: usize) -> usize {
    let pixels = (position - MIDDLE).max(0).unsigned_abs().div_ceil(5);
    usize::try_from(pixels).unwrap_or(side).min(side)
}

/// A side of a polygon, as a line of points one fifth of a pixel apart along its longer direction.
struct Side {
    /// The end where the longer direction begins.
    from: [i64; 2],
    /// Steps along the longer direction, and by how much the other one changes with each.
    steps: i64,
    slope: f64,
    /// Whether it is at least as wide as high.
    flat: bool,
}

impl Side {
    fn new(from: [i64; 2], to: [i64; 2]) -> Self {
        let flat = (to[0] - from[0]).abs() >= (to[1] - from[1]).abs();
        let longer = usize::from(!flat);
        let (from, to) = if from[longer] > to[longer] { (to, from) } else { (from, to) };
        let steps = to[longer] - from[longer];
        let slope = (to[1 - longer] - from[1 - longer]) as f64 / steps as f64;
        Side { from, steps, slope, flat }
    }

    /// Returns the position in the shorter direction after some steps, rounded as C converts numbers: towards 0.
    fn across(&self, steps: i64) -> i64 {
        let start = self.from[usize::from(self.flat)];
        (start as f64 + self.slope * steps as f64 + 0.5) as i64
    }

    /// Returns y of the upper one of the two points where x changes between `x` and `x` + 1, which the side passes.
    fn above(&self, x: i64) -> i64 {
        if self.flat {
            let step = x - self.from[0];
            return self.across(step).min(self.across(step + 1));
        }
        // The first point past the change. Rounding keeps the order of numbers.
        let passed = |step: i64| if self.slope > 0.0 { self.across(step) > x } else { self.across(step) <= x };
        let (mut before, mut after) = (0, self.steps);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            *if passed(middle) { &mut after } else { &mut before } = middle;
        }
        self.from[1] + before
    }
}
