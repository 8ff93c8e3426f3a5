//! The crop, flips and rotations that are drawn for a sample.

use crate::image::SampleDraws;
use crate::options::Arrays;
use shardtool_decode::{ArrayBox, Random};

/// The random numbers of a group, in the order of the steps. Part of resuming: a change of a number changes batches.
#[derive(Clone, Copy)]
enum Step {
    Crop = 0,
    Flip = 1,
    Rotate = 2,
}

/// Where the elements of an array are written in a row.
pub(super) struct Placement {
    pub(super) part: ArrayBox,
    /// Whether they fill the row.
    pub(super) fills: bool,
}

impl Placement {
    /// Returns that of a whole array of this shape.
    pub(super) fn whole(shape: &[u64]) -> Self {
        Placement { part: ArrayBox::contiguous(vec![0; shape.len()], shape.to_vec()), fills: true }
    }
}

/// Where one dimension of a crop goes: index i becomes index `i` of dimension `to` in the row, or its mirror image.
#[derive(Clone, Copy)]
struct Axis {
    to: usize,
    mirrored: bool,
}

/// Draws the geometry of group number `number`, whose rows have the shape `row`, for an array of this shape. A dimension that is smaller than the crop is in the
/// middle of the row.
pub(super) fn place((spec, row): (&Arrays, &[u64]), number: u64, shape: &[u64], draws: SampleDraws) -> Placement {
    let random = spec.crop.is_some() && spec.random;
    let mut stream = draws.arrays(number, Step::Crop as u64);
    let size: Vec<u64> = shape.iter().zip(row).map(|(length, row)| *length.min(row)).collect();
    let start = shape.iter().zip(&size).map(|(length, size)| match random {
        true => stream.below(length - size + 1),
        false => (length - size) / 2,
    });
    let start: Vec<u64> = start.collect();
    let mut stream = draws.arrays(number, Step::Flip as u64);
    let mut axes: Vec<_> = (0..row.len()).map(|to| Axis { to, mirrored: false }).collect();
    for (axis, probability) in axes.iter_mut().zip(&spec.flip) {
        axis.mirrored = stream.unit() < *probability;
    }
    let mut stream = draws.arrays(number, Step::Rotate as u64);
    for plane in &spec.rotate90 {
        for _ in 0..stream.below(4) {
            rotate(&mut axes, *plane);
        }
    }
    let mut steps = vec![1; row.len()];
    for d in (1..row.len()).rev() {
        steps[d - 1] = steps[d] * row[d] as i64;
    }
    let mut part = ArrayBox { start, size, origin: 0, strides: vec![] };
    for (d, Axis { to, mirrored }) in axes.iter().enumerate() {
        let before = (row[d] - part.size[d]) / 2;
        let (stride, first) = match mirrored {
            false => (steps[*to], before),
            true => (-steps[*to], row[d] - 1 - before),
        };
        part.origin += first as i64 * steps[*to];
        part.strides.push(stride);
    }
    Placement { fills: part.size == row, part }
}

/// Rotates by a quarter turn from the first dimension of the plane towards the second one, as `numpy.rot90` does: index
/// (i, j) becomes (n − 1 − j, i).
fn rotate(axes: &mut [Axis], (first, second): (usize, usize)) {
    for axis in axes {
        if axis.to == first {
            axis.to = second;
        } else if axis.to == second {
            *axis = Axis { to: first, mirrored: !axis.mirrored };
        }
    }
}
