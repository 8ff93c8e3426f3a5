//! Arrays whose values change with the geometry of the image, by their kind.

use super::displacements::Displacements;
use super::normals::Normals;
use super::positions::Positions;
use crate::error::{ArrayProblem, SampleError};
use crate::options::ArrayKind;
use shardtool_format::array::ArrayDtype;

/// The values of a row that change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MovedValues {
    Displacements(Displacements),
    Normals(Normals),
}

impl MovedValues {
    /// Checks type and shape of a row, whose dimensions `axes` are height and width.
    ///
    /// # Errors
    /// [`ArrayProblem::Kind`].
    pub(super) fn new(
        kind: ArrayKind,
        dtype: ArrayDtype,
        shape: &[u64],
        axes: Option<(usize, usize)>,
    ) -> Result<Self, ArrayProblem> {
        let values = match axes {
            None => Err("`image_axes`, the dimensions that are the height and the width of the image"),
            Some(axes) => match kind {
                ArrayKind::Flow | ArrayKind::Disparity => {
                    Displacements::new(kind, dtype, shape, axes).map(MovedValues::Displacements)
                }
                ArrayKind::Normals | ArrayKind::NormalsYUp => {
                    Normals::new(kind, dtype, shape, axes).map(MovedValues::Normals)
                }
            },
        };
        values.map_err(|expected| ArrayProblem::Kind {
            expected,
            found: format!("{} of a row of shape {shape:?}", dtype.name()),
        })
    }

    /// Changes the values of a row, which were moved to where `positions` says.
    ///
    /// # Errors
    /// [`SampleError::Disparity`], [`SampleError::Normal`].
    pub(super) fn turn(self, feature: &str, positions: &Positions, row: &mut [u8]) -> Result<(), SampleError> {
        match self {
            MovedValues::Displacements(displacements) => displacements.turn(feature, positions, row),
            MovedValues::Normals(normals) => normals.turn(feature, positions, row),
        }
    }
}
