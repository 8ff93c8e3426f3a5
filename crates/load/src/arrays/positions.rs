//! Arrays with an element for each pixel of the image, such as depths: they follow the geometry of its steps by nearest neighbour.

use shardtool_decode::Plan;

/// The column and the row of pixels outside the image.
pub(crate) const OUTSIDE: u16 = u16::MAX;

/// Which pixel of the stored image each pixel of a row of the batch shows. Kept from one record to the next.
#[derive(Default)]
pub(crate) struct Positions {
    /// For each pixel of the row, its column in the stored image, and its row there, as little-endian `u16`; [`OUTSIDE`] both if it
    /// shows none.
    pub(crate) columns: Vec<u8>,
    pub(crate) rows: Vec<u8>,
    /// What moves the stored image, one after the other.
    pub(crate) moves: Vec<Plan>,
}

impl Positions {
    /// Returns column and row in the stored image of each pixel; `None` for those outside.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<(usize, usize)>> {
        let [columns, rows] = [&self.columns, &self.rows].map(|values| values.as_chunks::<2>().0);
        columns.iter().zip(rows).map(|(column, row)| {
            let (column, row) = (u16::from_le_bytes(*column), u16::from_le_bytes(*row));
            (column != OUTSIDE).then_some((column.into(), row.into()))
        })
    }

    /// Returns the matrix that every vector in the stored image is multiplied with; `None` if it is not the same everywhere.
    pub(super) fn linear(&self) -> Option<[[f64; 2]; 2]> {
        self.moves.iter().all(Plan::is_affine).then(|| {
            let [a, b] = [[1.0, 0.0], [0.0, 1.0]].map(|vector| self.moved([0.0, 0.0], vector));
            [[a[0], b[0]], [a[1], b[1]]]
        })
    }

    /// Returns what becomes of a vector at a point of the stored image.
    pub(super) fn moved(&self, [x, y]: [f64; 2], vector: [f64; 2]) -> [f64; 2] {
        let place = |point| self.moves.iter().fold(point, |point, plan| plan.map_point(point));
        let (from, to) = (place([x, y]), place([x + vector[0], y + vector[1]]));
        [to[0] - from[0], to[1] - from[1]]
    }

    /// Writes the elements of an array into a row. `shape` are the arrays of pixels, the height and the width of the array, and the
    /// bytes of a pixel. What is outside becomes copies of the element `pad`.
    pub(super) fn gather(&self, array: &[u8], shape: [usize; 4], pad: &[u8], out: &mut [u8]) {
        let [planes, height, width, bytes] = shape;
        let mut out = out.chunks_exact_mut(bytes);
        for plane in 0..planes {
            for (position, out) in self.iter().zip(&mut out) {
                match position {
                    Some((x, y)) => {
                        let at = ((plane * height + y) * width + x) * bytes;
                        out.copy_from_slice(&array[at..at + bytes]);
                    }
                    None => out.chunks_exact_mut(pad.len()).for_each(|element| element.copy_from_slice(pad)),
                }
            }
        }
    }
}
