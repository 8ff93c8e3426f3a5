//! Arrays with an element for each pixel of the image, such as depths: they follow the geometry of its steps by nearest neighbour.

/// The column and the row of pixels outside the image.
pub(crate) const OUTSIDE: u16 = u16::MAX;

/// Which pixel of the stored image each pixel of a row of the batch shows. Kept from one record to the next.
#[derive(Default)]
pub(crate) struct Positions {
    /// For each pixel of the row, its column in the stored image, and its row there, as little-endian `u16`; [`OUTSIDE`] both if it
    /// shows none.
    pub(crate) columns: Vec<u8>,
    pub(crate) rows: Vec<u8>,
}

impl Positions {
    /// Returns column and row in the stored image of each pixel; `None` for those outside.
    fn iter(&self) -> impl Iterator<Item = Option<(usize, usize)>> {
        let [columns, rows] = [&self.columns, &self.rows].map(|values| values.as_chunks::<2>().0);
        columns.iter().zip(rows).map(|(column, row)| {
            let (column, row) = (u16::from_le_bytes(*column), u16::from_le_bytes(*row));
            (column != OUTSIDE).then_some((column.into(), row.into()))
        })
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
