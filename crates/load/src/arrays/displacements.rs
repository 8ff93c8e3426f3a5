//! Arrays whose elements are displacements in pixels: the geometry of the image changes them as it moves them.

use super::positions::Positions;
use crate::error::SampleError;
use crate::options::ArrayKind;
use shardtool_format::array::ArrayDtype;

/// What a displacement may have across its row, at most: what is left of rounding.
const ACROSS: f64 = 1e-9;

/// Where the displacements of a row are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Displacements {
    kind: ArrayKind,
    dtype: ArrayDtype,
    /// Elements from one pixel to the next, and from what a pixel moves to the right to what it moves down.
    strides: [usize; 2],
}

impl Displacements {
    /// Checks type and shape of a row, whose dimensions `axes` are height and width. The error is what was expected.
    pub(super) fn new(
        kind: ArrayKind,
        dtype: ArrayDtype,
        shape: &[u64],
        axes: (usize, usize),
    ) -> Result<Self, &'static str> {
        let strides = match (kind, shape, axes) {
            (ArrayKind::Flow, [_, _, 2], (0, 1)) => [2, 1],
            (ArrayKind::Flow, [2, height, width], (1, 2)) => [1, (height * width) as usize],
            (ArrayKind::Flow, ..) => {
                return Err("a flow of [H, W, 2] with image_axes (0, 1), or [2, H, W] with (1, 2)");
            }
            (_, [_, _], (0, 1)) => [1, 0],
            _ => return Err("disparities of [H, W] with image_axes (0, 1)"),
        };
        match dtype {
            ArrayDtype::F32 | ArrayDtype::F64 => Ok(Displacements { kind, dtype, strides }),
            _ => Err("float32 or float64, since they are scaled with the image: convert them before they are packed"),
        }
    }

    /// Changes the displacements of a row, which were moved to where `positions` says.
    ///
    /// # Errors
    /// [`SampleError::Disparity`].
    pub(super) fn turn(self, feature: &str, positions: &Positions, row: &mut [u8]) -> Result<(), SampleError> {
        match self.dtype {
            ArrayDtype::F64 => self.turn_elements::<8>(feature, positions, row, f64::from_le_bytes, f64::to_le_bytes),
            _ => {
                let (load, store) =
                    (|bytes| f32::from_le_bytes(bytes).into(), |value: f64| (value as f32).to_le_bytes());
                self.turn_elements::<4>(feature, positions, row, load, store)
            }
        }
    }

    fn turn_elements<const B: usize>(
        self,
        feature: &str,
        positions: &Positions,
        row: &mut [u8],
        load: impl Fn([u8; B]) -> f64,
        store: impl Fn(f64) -> [u8; B],
    ) -> Result<(), SampleError> {
        let (row, linear) = (row.as_chunks_mut::<B>().0, positions.linear());
        let [step, down] = self.strides;
        for (pixel, position) in positions.iter().enumerate() {
            let Some((x, y)) = position else { continue };
            let right = pixel * step;
            let vertical = if self.kind == ArrayKind::Flow { load(row[right + down]) } else { 0.0 };
            let vector = [load(row[right]), vertical];
            let [across, along] = match linear {
                Some([a, b]) => [a[0] * vector[0] + a[1] * vector[1], b[0] * vector[0] + b[1] * vector[1]],
                None => positions.moved([x as f64 + 0.5, y as f64 + 0.5], vector),
            };
            row[right] = store(across);
            if self.kind == ArrayKind::Flow {
                row[right + down] = store(along);
            } else if along.abs() > ACROSS * (1.0 + across.abs()) {
                return Err(SampleError::Disparity { feature: feature.to_owned() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_types() {
        let of = |kind, dtype, shape: &[u64], axes| Displacements::new(kind, dtype, shape, axes);
        let flow = |shape: &[u64], axes| of(ArrayKind::Flow, ArrayDtype::F32, shape, axes);
        assert_eq!(flow(&[4, 5, 2], (0, 1)).unwrap().strides, [2, 1]);
        assert_eq!(flow(&[2, 4, 5], (1, 2)).unwrap().strides, [1, 20]);
        assert!(of(ArrayKind::Disparity, ArrayDtype::F64, &[4, 5], (0, 1)).is_ok());
        for refused in [
            flow(&[4, 5], (0, 1)),
            flow(&[4, 5, 3], (0, 1)),
            flow(&[3, 4, 5], (1, 2)),
            flow(&[2, 4, 5], (0, 1)),
            of(ArrayKind::Flow, ArrayDtype::U16, &[4, 5, 2], (0, 1)),
            of(ArrayKind::Flow, ArrayDtype::F16, &[4, 5, 2], (0, 1)),
            of(ArrayKind::Disparity, ArrayDtype::F32, &[4, 5, 1], (0, 1)),
            of(ArrayKind::Disparity, ArrayDtype::I16, &[4, 5], (0, 1)),
        ] {
            assert!(refused.is_err());
        }
    }
}
