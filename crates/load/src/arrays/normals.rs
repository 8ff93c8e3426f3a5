//! Arrays whose elements are surface normals: the geometry of the image turns and mirrors them as it moves them.
//!
//! A vector keeps its length and its part along the view. The part in the plane of the image is turned, and mirrored, as the pixels
//! around it are. Where a step also stretches or shears them, the rotation or reflection that is nearest to it in the Frobenius norm
//! turns the vector: the orthogonal factor of the polar decomposition (Higham, 1986).

use super::positions::Positions;
use crate::error::SampleError;
use crate::options::ArrayKind;
use shardtool_format::array::ArrayDtype;

/// The length of a normal, at most: 1, and what is left of rounding.
const MAX_LENGTH: f64 = 1.1;

/// Where the normals of a row are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Normals {
    dtype: ArrayDtype,
    /// Elements from one pixel to the next, and from one number of a normal to the next.
    strides: [usize; 2],
    /// Whether the second number grows upwards, or the first one to the left.
    y_up: bool,
}

impl Normals {
    /// Checks type and shape of a row, whose dimensions `axes` are height and width. The problem is what was expected.
    pub(super) fn new(
        kind: ArrayKind,
        dtype: ArrayDtype,
        shape: &[u64],
        axes: (usize, usize),
    ) -> Result<Self, &'static str> {
        let strides = match (shape, axes) {
            ([_, _, 3], (0, 1)) => [3, 1],
            ([3, height, width], (1, 2)) => [1, (height * width) as usize],
            _ => return Err("normals of [H, W, 3] with image_axes (0, 1), or [3, H, W] with (1, 2)"),
        };
        match dtype {
            ArrayDtype::F32 | ArrayDtype::F64 | ArrayDtype::U8 | ArrayDtype::U16 => {
                Ok(Normals { dtype, strides, y_up: kind == ArrayKind::NormalsYUp })
            }
            _ => Err("float32 or float64 from -1 to 1, or uint8 or uint16, of which 0 is -1 and the largest 1"),
        }
    }

    /// Turns the normals of a row, which were moved to where `positions` says.
    ///
    /// # Errors
    /// [`SampleError::Normal`].
    pub(super) fn turn(self, feature: &str, positions: &Positions, row: &mut [u8]) -> Result<(), SampleError> {
        let coded = |max: f64| (move |value: f64| 2.0 * value / max - 1.0, move |value: f64| (value + 1.0) / 2.0 * max);
        match self.dtype {
            ArrayDtype::F64 => self.turn_floats::<8>(feature, positions, row, f64::from_le_bytes, f64::to_le_bytes),
            ArrayDtype::U8 => {
                let (decode, encode) = coded(255.0);
                let store = |value| [encode(value).round() as u8];
                self.turn_coded::<1>(positions, row, |bytes| decode(bytes[0].into()), store);
                Ok(())
            }
            ArrayDtype::U16 => {
                let (decode, encode) = coded(65535.0);
                let store = |value| (encode(value).round() as u16).to_le_bytes();
                self.turn_coded::<2>(positions, row, |bytes| decode(u16::from_le_bytes(bytes).into()), store);
                Ok(())
            }
            _ => {
                let (load, store) =
                    (|bytes| f32::from_le_bytes(bytes).into(), |value: f64| (value as f32).to_le_bytes());
                self.turn_floats::<4>(feature, positions, row, load, store)
            }
        }
    }

    fn turn_floats<const B: usize>(
        self,
        feature: &str,
        positions: &Positions,
        row: &mut [u8],
        load: impl Fn([u8; B]) -> f64,
        store: impl Fn(f64) -> [u8; B],
    ) -> Result<(), SampleError> {
        self.turn_elements(positions, row, |normal: [[u8; B]; 3], turn| {
            let [x, y, z] = normal.map(&load);
            let length = libm::hypot(libm::hypot(x, y), z);
            // Of an unknown normal of NaN, the comparison is false.
            if length > MAX_LENGTH {
                return Err(SampleError::Normal { feature: feature.to_owned(), length });
            }
            Ok(apply(turn, [x, y]).map(&store))
        })
    }

    /// Turns integers. Three zeros, which code no unit vector, are an unknown normal.
    fn turn_coded<const B: usize>(
        self,
        positions: &Positions,
        row: &mut [u8],
        load: impl Fn([u8; B]) -> f64,
        store: impl Fn(f64) -> [u8; B],
    ) {
        let turned = self.turn_elements(positions, row, |normal: [[u8; B]; 3], turn| {
            let [x, y, _] = normal;
            Ok(if normal == [[0; B]; 3] { [x, y] } else { apply(turn, [x, y].map(&load)).map(&store) })
        });
        turned.expect("integers are not refused");
    }

    /// Replaces the first two numbers of each normal inside the image by those that `turned` makes of it and of the matrix there.
    fn turn_elements<const B: usize>(
        self,
        positions: &Positions,
        row: &mut [u8],
        turned: impl Fn([[u8; B]; 3], [[f64; 2]; 2]) -> Result<[[u8; B]; 2], SampleError>,
    ) -> Result<(), SampleError> {
        let (row, everywhere) = (row.as_chunks_mut::<B>().0, positions.linear().map(|linear| self.rotation(linear)));
        let [step, next] = self.strides;
        for (pixel, position) in positions.iter().enumerate() {
            let Some((x, y)) = position else { continue };
            let turn = everywhere.unwrap_or_else(|| {
                let (x, y) = (x as f64, y as f64);
                // From one edge of the stored pixel to the other.
                let a = positions.moved([x, y + 0.5], [1.0, 0.0]);
                let b = positions.moved([x + 0.5, y], [0.0, 1.0]);
                self.rotation([[a[0], b[0]], [a[1], b[1]]])
            });
            let first = pixel * step;
            let numbers = [first, first + next, first + 2 * next];
            [row[numbers[0]], row[numbers[1]]] = turned(numbers.map(|number| row[number]), turn)?;
        }
        Ok(())
    }

    /// Returns what turns the first two numbers of a normal where pixels are moved by a matrix.
    fn rotation(self, linear: [[f64; 2]; 2]) -> [[f64; 2]; 2] {
        let [[a, b], [c, d]] = nearest_rotation(linear);
        // In the axes of the normals, one of which is that of the image reversed.
        if self.y_up { [[a, -b], [-c, d]] } else { [[a, b], [c, d]] }
    }
}

fn apply([a, b]: [[f64; 2]; 2], [x, y]: [f64; 2]) -> [f64; 2] {
    [a[0] * x + a[1] * y, b[0] * x + b[1] * y]
}

/// Returns the rotation, or reflection if the matrix mirrors, that is nearest to a matrix; the identity of a singular one that has
/// none.
fn nearest_rotation([[a, b], [c, d]]: [[f64; 2]; 2]) -> [[f64; 2]; 2] {
    let mirrors = a * d - b * c < 0.0;
    let (x, y) = if mirrors { (a - d, b + c) } else { (a + d, c - b) };
    let length = libm::hypot(x, y);
    if length.is_nan() || length <= 0.0 {
        return [[1.0, 0.0], [0.0, 1.0]];
    }
    let (x, y) = (x / length, y / length);
    if mirrors { [[x, y], [y, -x]] } else { [[x, -y], [y, x]] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_types() {
        let of = |dtype, shape: &[u64], axes| Normals::new(ArrayKind::Normals, dtype, shape, axes);
        assert_eq!(of(ArrayDtype::F32, &[4, 5, 3], (0, 1)).unwrap().strides, [3, 1]);
        assert_eq!(of(ArrayDtype::U16, &[3, 4, 5], (1, 2)).unwrap().strides, [1, 20]);
        for (dtype, shape, axes) in [
            (ArrayDtype::F32, &[4, 5, 2][..], (0, 1)),
            (ArrayDtype::F32, &[4, 5], (0, 1)),
            (ArrayDtype::F32, &[3, 4, 5], (0, 1)),
            (ArrayDtype::F32, &[4, 5, 3], (1, 2)),
            (ArrayDtype::I16, &[4, 5, 3], (0, 1)),
            (ArrayDtype::F16, &[4, 5, 3], (0, 1)),
        ] {
            assert!(of(dtype, shape, axes).is_err(), "{dtype:?} {shape:?} {axes:?}");
        }
    }

    #[test]
    fn stretching_does_not_turn_and_the_rest_is_orthogonal() {
        assert_eq!(nearest_rotation([[0.3, 0.0], [0.0, 2.5]]), [[1.0, 0.0], [0.0, 1.0]]);
        assert_eq!(nearest_rotation([[-0.3, 0.0], [0.0, 2.5]]), [[-1.0, 0.0], [0.0, 1.0]]);
        assert_eq!(nearest_rotation([[0.0, -7.0], [7.0, 0.0]]), [[0.0, -1.0], [1.0, 0.0]]);
        // A transposition, as of EXIF orientation 5.
        assert_eq!(nearest_rotation([[0.0, 2.0], [2.0, 0.0]]), [[0.0, 1.0], [1.0, 0.0]]);
        assert_eq!(nearest_rotation([[0.0; 2]; 2]), [[1.0, 0.0], [0.0, 1.0]]);
        for matrix in [[[1.0, 0.7], [0.1, 2.0]], [[-1.0, 0.7], [0.1, 2.0]]] {
            let [[a, b], [c, d]] = nearest_rotation(matrix);
            for (found, expected) in [(a * a + c * c, 1.0), (b * b + d * d, 1.0), (a * b + c * d, 0.0)] {
                assert!((found - expected).abs() < 1e-12);
            }
            // Of the factors of a polar decomposition, the other one is symmetric.
            let [[e, f], [g, h]] = matrix;
            assert!(((a * f + c * h) - (b * e + d * g)).abs() < 1e-12);
        }
    }
}
