//! Random rotations, affine and perspective transforms.

use super::uniform;
use crate::transform::random::Random;

/// Parameters of torchvision's `affine`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Affine {
    /// Clockwise, in degrees.
    pub(crate) angle: f64,
    /// To the right and down, in pixels.
    pub(crate) translate: [f64; 2],
    pub(crate) scale: f64,
    /// Along x and y, in degrees.
    pub(crate) shear: [f64; 2],
    /// What does not move, relative to the centre of the image.
    pub(crate) centre: [f64; 2],
}

impl Default for Affine {
    fn default() -> Self {
        Affine { angle: 0.0, translate: [0.0; 2], scale: 1.0, shear: [0.0; 2], centre: [0.0; 2] }
    }
}

impl Affine {
    /// Returns a rotation anticlockwise around the centre.
    pub(crate) fn rotation(degrees: f64) -> Self {
        // The angle of torchvision's `affine` has the other direction than that of its `rotate`.
        Affine { angle: -degrees.rem_euclid(360.0), ..Affine::default() }
    }

    /// Draws torchvision's `RandomAffine`.
    pub(crate) fn draw(
        (width, height): (u32, u32),
        degrees: [f64; 2],
        translate: Option<[f64; 2]>,
        scale: Option<[f64; 2]>,
        shear: Option<[f64; 4]>,
        random: &mut dyn Random,
    ) -> Self {
        let angle = uniform(degrees, random);
        let translate = translate.map_or([0.0; 2], |[x, y]| {
            let mut whole = |most: f64| uniform([-most, most], random).round_ties_even();
            [whole(x * f64::from(width)), whole(y * f64::from(height))]
        });
        let scale = scale.map_or(1.0, |range| uniform(range, random));
        let shear = shear.map_or([0.0; 2], |[low_x, high_x, low_y, high_y]| {
            [uniform([low_x, high_x], random), uniform([low_y, high_y], random)]
        });
        Affine { angle, translate, scale, shear, ..Affine::default() }
    }

    /// Returns the matrix that maps pixels of the result to pixels of the image, relative to the centre: torchvision's
    /// `_get_inverse_affine_matrix`.
    pub(crate) fn inverse(&self) -> [f64; 6] {
        let [rotation, sx, sy] = [self.angle, self.shear[0], self.shear[1]].map(f64::to_radians);
        let ([cx, cy], [tx, ty]) = (self.centre, self.translate);
        let (cos, sin) = (libm::cos(rotation - sy) / libm::cos(sy), libm::sin(rotation - sy) / libm::cos(sy));
        let a = cos;
        let b = -cos * libm::tan(sx) - libm::sin(rotation);
        let c = sin;
        let d = -sin * libm::tan(sx) + libm::cos(rotation);
        let [a, b, c, d] = [d, -b, -c, a].map(|x| x / self.scale);
        [a, b, a * (-cx - tx) + b * (-cy - ty) + cx, c, d, c * (-cx - tx) + d * (-cy - ty) + cy]
    }
}

/// Draws the corners of torchvision's `RandomPerspective`, and returns the coefficients that map pixels of the result to
/// pixels of the image.
pub(crate) fn perspective((width, height): (u32, u32), distortion: f64, random: &mut dyn Random) -> [f64; 8] {
    let bound = |side: u32| ((distortion * f64::from(side / 2)) as u32 + 1).min(side);
    let (across, down) = (bound(width), bound(height));
    let mut near = |bound: u32| random.below(bound.into()) as f64;
    let mut ends = [[0.0; 2]; 4];
    for (end, (right, bottom)) in ends.iter_mut().zip([(false, false), (true, false), (true, true), (false, true)]) {
        let (x, y) = (near(across), near(down));
        *end = [
            if right { f64::from(width - across) + x } else { x },
            if bottom { f64::from(height - down) + y } else { y },
        ];
    }
    let (right, bottom) = (f64::from(width - 1), f64::from(height - 1));
    coefficients(ends, [[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]])
}

/// Returns the coefficients (a, …, h) of the homography that maps each of `from` to the corresponding point of `to`:
/// x' = (ax + by + c) / (gx + hy + 1), y' = (dx + ey + f) / (gx + hy + 1). The identity if the points are degenerate.
fn coefficients(from: [[f64; 2]; 4], to: [[f64; 2]; 4]) -> [f64; 8] {
    let mut rows = [[0.0; 9]; 8];
    for (i, ([x, y], [u, v])) in from.into_iter().zip(to).enumerate() {
        rows[2 * i] = [x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, u];
        rows[2 * i + 1] = [0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y, v];
    }
    solve(rows).unwrap_or([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
}

/// Solves eight linear equations by Gaussian elimination with partial pivoting; `None` if they are singular.
fn solve(mut rows: [[f64; 9]; 8]) -> Option<[f64; 8]> {
    for column in 0..8 {
        let pivot = (column..8).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, pivot);
        if rows[column][column].abs() < 1e-9 {
            return None;
        }
        let pivot = rows[column];
        for (number, row) in rows.iter_mut().enumerate() {
            if number != column {
                let factor = row[column] / pivot[column];
                row.iter_mut().zip(pivot).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    Some(std::array::from_fn(|i| rows[i][8] / rows[i][i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_homography_maps_the_points() {
        let from = [[3.0, 5.0], [90.0, 2.0], [97.0, 70.0], [1.0, 66.0]];
        let to = [[0.0, 0.0], [99.0, 0.0], [99.0, 74.0], [0.0, 74.0]];
        let [a, b, c, d, e, f, g, h] = coefficients(from, to);
        for ([x, y], [u, v]) in from.into_iter().zip(to) {
            let w = g * x + h * y + 1.0;
            assert!(((a * x + b * y + c) / w - u).abs() < 1e-9 && ((d * x + e * y + f) / w - v).abs() < 1e-9);
        }
        assert_eq!(coefficients([[1.0, 1.0]; 4], to), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    }
}
