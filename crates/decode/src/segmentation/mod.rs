//! Which pixels of an image an object covers, as COCO describes it: polygons, or the lengths of runs of pixels. What is drawn of
//! them equals what pycocotools draws, pixel by pixel.
//!
//! | module | content |
//! |---|---|
//! | this one | both kinds, drawn into a map of bits |
//! | `parse` | their JSON texts |
//! | `polygon` | where the outline of a polygon crosses the columns of pixels |
//! | `runs` | lengths of runs, also compressed |

mod parse;
mod polygon;
mod runs;

/// Steps that drawing one object takes for each pixel of the image, at most: a hostile text may name its whole area very often.
const MOST_WORK: u64 = 64;

/// The pixels that an object covers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Segmentation {
    /// The union of polygons: x and y of the points of each, in pixels.
    Polygons(Vec<Vec<f64>>),
    /// Lengths of runs of pixels, down one column after the other: first those that the object does not cover.
    Runs {
        /// Width and height of the image.
        size: (u32, u32),
        /// The lengths, whose sum is the number of pixels.
        lengths: Vec<u32>,
    },
}

/// Why the pixels of an object cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentationError {
    /// The object has no polygon, so that nothing says what it covers.
    #[error("an empty list; expected one polygon or more")]
    Empty,
    /// A polygon has less than three points, or a number too much. Four numbers alone may be meant as a box.
    #[error("a polygon of {numbers} numbers; expected x and y of three points or more")]
    Points {
        /// Numbers of the polygon.
        numbers: usize,
    },
    /// The polygons cover so much, so often, that drawing them would take long.
    #[error("polygons that take {work} steps to draw; expected at most {most} for an image of this size")]
    Work {
        /// Pixels of the polygons' boxes, and pixels that their outlines cross.
        work: u64,
        /// What is drawn at most.
        most: u64,
    },
    /// The runs belong to an image of another size.
    #[error("run lengths of an image of {}x{} pixels, but the stored one has {}x{}", .found.0, .found.1, .expected.0, .expected.1)]
    Size {
        /// Width and height of the stored image.
        expected: (u32, u32),
        /// Width and height that the runs are of.
        found: (u32, u32),
    },
    /// The runs are shorter or longer than their image.
    #[error("run lengths of {found} pixels in all; expected {expected}")]
    Lengths {
        /// Pixels of the image.
        expected: u64,
        /// Sum of the lengths.
        found: u64,
    },
}

impl Segmentation {
    /// Checks that it can be drawn on an image of `size` (width, height).
    ///
    /// # Errors
    /// [`SegmentationError`].
    pub fn check(&self, size: (u32, u32)) -> Result<(), SegmentationError> {
        match self {
            Segmentation::Polygons(polygons) if polygons.is_empty() => Err(SegmentationError::Empty),
            Segmentation::Polygons(polygons) => {
                let wrong = polygons.iter().map(Vec::len).find(|numbers| *numbers < 6 || numbers % 2 != 0);
                wrong.map_or(Ok(()), |numbers| Err(SegmentationError::Points { numbers }))
            }
            Segmentation::Runs { size: found, .. } if *found != size => {
                Err(SegmentationError::Size { expected: size, found: *found })
            }
            Segmentation::Runs { lengths, .. } => {
                let (expected, found) =
                    (u64::from(size.0) * u64::from(size.1), lengths.iter().map(|n| u64::from(*n)).sum());
                if found == expected { Ok(()) } else { Err(SegmentationError::Lengths { expected, found }) }
            }
        }
    }

    /// Returns the outlines of polygons for an image of `size` (width, height).
    ///
    /// # Errors
    /// [`SegmentationError::Work`].
    fn outlines(polygons: &[Vec<f64>], size: (u32, u32)) -> Result<Vec<polygon::Outline>, SegmentationError> {
        let outlines: Vec<_> = polygons.iter().map(|polygon| polygon::Outline::new(polygon)).collect();
        let work = outlines.iter().map(|outline| outline.work(size)).fold(0, u64::saturating_add);
        let most = MOST_WORK * u64::from(size.0) * u64::from(size.1) + (1 << 20);
        if work > most { Err(SegmentationError::Work { work, most }) } else { Ok(outlines) }
    }

    /// Sets the bit `bit` of each byte of `map`, `[H, W]`, whose pixel is covered. `changes` is memory that is reused.
    ///
    /// # Errors
    /// As [`Segmentation::check`].
    pub(crate) fn draw(
        &self,
        size: (u32, u32),
        bit: u32,
        map: &mut [u8],
        changes: &mut Vec<u8>,
    ) -> Result<(), SegmentationError> {
        self.check(size)?;
        let mut set = |part: &Part, changes: &mut [u8]| part.set_bits(size.0 as usize, bit, map, changes);
        match self {
            Segmentation::Polygons(polygons) => {
                for outline in Self::outlines(polygons, size)? {
                    let part = outline.part(size);
                    part.clear(changes);
                    outline.crossings(part.columns.clone(), |x, y| part.change(changes, x, y));
                    set(&part, changes);
                }
            }
            Segmentation::Runs { lengths, .. } => {
                let part = Part { columns: 0..size.0 as usize, rows: 0..size.1 as usize };
                part.clear(changes);
                runs::changes(lengths, part.rows.len(), |x, y| part.change(changes, x, y));
                set(&part, changes);
            }
        }
        Ok(())
    }
}

/// A rectangle of pixels. Of each pixel it is noted whether coverage changes there, seen down its column; pixels above the
/// first change are not covered.
struct Part {
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
}

impl Part {
    /// Makes `changes` that of no change.
    fn clear(&self, changes: &mut Vec<u8>) {
        changes.clear();
        changes.resize(self.columns.len() * self.rows.len(), 0);
    }

    /// Notes a change. Two at one pixel cancel each other; what lies below the part does not matter.
    fn change(&self, changes: &mut [u8], x: usize, y: usize) {
        if self.rows.contains(&y) {
            changes[(y - self.rows.start) * self.columns.len() + x - self.columns.start] ^= 1;
        }
    }

    /// Sets a bit of each covered pixel in a map of this width.
    fn set_bits(&self, width: usize, bit: u32, map: &mut [u8], changes: &mut [u8]) {
        let columns = self.columns.len();
        if columns == 0 {
            return;
        }
        for (row, y) in self.rows.clone().enumerate() {
            let (above, below) = changes.split_at_mut(row * columns);
            let covered = &mut below[..columns];
            if let Some(above) = above.rchunks_exact(columns).next() {
                covered.iter_mut().zip(above).for_each(|(covered, above)| *covered ^= above);
            }
            let values = &mut map[y * width + self.columns.start..][..columns];
            values.iter_mut().zip(covered).for_each(|(value, covered)| *value |= covered.wrapping_neg() & (1 << bit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, size: (u32, u32)) -> Result<Vec<u8>, String> {
        let segmentation: Segmentation = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let mut map = vec![0; size.0 as usize * size.1 as usize];
        segmentation.draw(size, 0, &mut map, &mut vec![7; 3]).map_err(|e| e.to_string())?;
        Ok(map)
    }

    #[test]
    fn squares_cover_the_pixels_between_their_sides() {
        // From the middle of a pixel to the middle of another one, as pycocotools rounds.
        let map = drawn("[[1, 1, 3, 1, 3, 3, 1, 3]]", (4, 4)).unwrap();
        assert_eq!(map, [0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
        // Two polygons are united, not excluded where both are.
        let map = drawn("[[0, 0, 3, 0, 3, 2, 0, 2], [1, 0, 4, 0, 4, 2, 1, 2]]", (4, 2)).unwrap();
        assert_eq!(map, [1; 8]);
        // What lies outside is cut off.
        let map = drawn("[[-50, -50, 50, -50, 50, 50, -50, 50]]", (3, 2)).unwrap();
        assert_eq!(map, [1; 6]);
        assert_eq!(drawn("[[10, 10, 20, 10, 20, 20]]", (3, 2)).unwrap(), [0; 6]);
        assert_eq!(drawn("[[1e300, 1, -1e300, 5, 3, 1e300]]", (3, 2)).unwrap().len(), 6);
    }

    #[test]
    fn runs_go_down_the_columns() {
        let map = drawn(r#"{"size": [2, 3], "counts": [1, 3, 1, 1]}"#, (3, 2)).unwrap();
        assert_eq!(map, [0, 1, 0, 1, 1, 1]);
        assert_eq!(drawn(r#"{"counts": [0, 6], "size": [2, 3], "more": {}}"#, (3, 2)).unwrap(), [1; 6]);
        // A run of no pixels changes nothing.
        assert_eq!(drawn(r#"{"counts": [2, 0, 4], "size": [2, 3]}"#, (3, 2)).unwrap(), [0; 6]);
    }

    #[test]
    fn each_object_has_a_bit() {
        let segmentation = Segmentation::Runs { size: (1, 2), lengths: vec![1, 1] };
        let mut map = vec![1; 2];
        segmentation.draw((1, 2), 7, &mut map, &mut vec![]).unwrap();
        segmentation.draw((1, 2), 2, &mut map, &mut vec![]).unwrap();
        assert_eq!(map, [1, 128 + 4 + 1]);
    }

    #[test]
    fn what_cannot_be_drawn_is_named() {
        for (text, expected) in [
            (
                format!("[{}[0,0,3,0,3,2]]", "[0,0,3,0,3,2],".repeat(200_000)).as_str(),
                "steps to draw; expected at most",
            ),
            ("null", "expected a list of polygons, or `size` and `counts` of run lengths"),
            ("[]", "an empty list"),
            ("[[1, 2, 3, 4]]", "a polygon of 4 numbers"),
            ("[[1, 2, 3, 4, 5, 6, 7]]", "a polygon of 7 numbers"),
            ("[1, 2, 3, 4, 5, 6]", "expected x and y of the points of a polygon"),
            (r#"[["1", 2, 3, 4, 5, 6]]"#, "invalid type: string"),
            (r#"{"size": [2, 3]}"#, "missing field `counts`"),
            (r#"{"counts": [6]}"#, "missing field `size`"),
            (r#"{"counts": [6], "size": [3, 2]}"#, "an image of 2x3 pixels, but the stored one has 3x2"),
            (r#"{"counts": [5], "size": [2, 3]}"#, "of 5 pixels in all; expected 6"),
            (r#"{"counts": [-6], "size": [2, 3]}"#, "invalid value: integer `-6`"),
            (r#"{"counts": [4294967295, 4294967295, 8], "size": [2, 3]}"#, "of 8589934598 pixels"),
            (r#"{"counts": "~", "size": [2, 3]}"#, "character '~'"),
            (r#"{"counts": "o", "size": [2, 3]}"#, "ends in a number"),
        ] {
            let error = drawn(text, (3, 2)).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
