//! How one row of a batch is mixed, as numbers: for a device that mixes while it normalises, from the unmixed rows.
//!
//! ```text
//!              columns               A row is divided by an interval of columns and an interval of lines. Bit 0 of a
//!          ┌──────┬──────┬──────┐    region's number says that its columns are inside, bit 1 that its lines are.
//!          │  0   │  1   │  0   │
//!          ├──────┼──────┼──────┤    CutMix   region 3 shows the partner
//!   lines  │  2   │  3   │  2   │    mosaic   the intervals begin at the point and end at the edges
//!          ├──────┼──────┼──────┤    MixUp    the intervals are empty, and the partner is blended with region 0
//!          │  0   │  1   │  0   │
//!          └──────┴──────┴──────┘
//! ```

use super::pairs::Pairs;
use super::pixels::{WHOLE, fixed_point};
use crate::mosaic::Mosaics;

/// How one row of a batch is mixed from the batch's unmixed rows.
///
/// With x and y the column and the line of a pixel, q = y·W + x, and r the number of its region (bit 0: x is in `columns`; bit
/// 1: y is in `lines`), its values are a = row `sources[r]` at q + `offsets[r]`. If `weight` is below 65,536, they are
/// ⌊(a · weight + b · (65,536 − weight) + 32,768) / 65,536⌋ with b = row `partner` at q.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowMix {
    /// The first of the columns, and their number.
    pub columns: [u32; 2],
    /// The first of the lines, and their number.
    pub lines: [u32; 2],
    /// The row of the batch that each region shows.
    pub sources: [u32; 4],
    /// What is added to the number of a pixel of each region, modulo 2³², for that of the pixel that it shows.
    pub offsets: [u32; 4],
    /// The row that is blended with what the regions show.
    pub partner: u32,
    /// The weight of what the regions show, 0 to 65,536.
    pub weight: u32,
}

impl RowMix {
    /// The number of [`RowMix::words`].
    pub const WORDS: usize = 14;

    /// Returns its numbers in the order of the fields, which is that of `RowMix` in `crates/cuda/src/kernel.cu`.
    pub fn words(&self) -> [u32; Self::WORDS] {
        let RowMix { columns: [left, width], lines: [top, height], sources, offsets, partner, weight } = *self;
        let ([s0, s1, s2, s3], [o0, o1, o2, o3]) = (sources, offsets);
        [left, width, top, height, s0, s1, s2, s3, o0, o1, o2, o3, partner, weight]
    }

    /// A row that shows itself.
    pub(super) fn unmixed(row: u32) -> Self {
        RowMix { columns: [0; 2], lines: [0; 2], sources: [row; 4], offsets: [0; 4], partner: row, weight: WHOLE }
    }

    pub(super) fn of_pair(row: usize, pairs: &Pairs) -> Self {
        let unmixed = Self::unmixed(row as u32);
        let partner = pairs.partners[row] as u32;
        let span = |range: &std::ops::Range<usize>| [range.start as u32, range.len() as u32];
        match &pairs.rectangle {
            _ if partner == row as u32 => unmixed,
            None => RowMix { partner, weight: fixed_point(pairs.share as f32), ..unmixed },
            Some((columns, lines)) if columns.is_empty() || lines.is_empty() => unmixed,
            Some((columns, lines)) => {
                let own = row as u32;
                RowMix { columns: span(columns), lines: span(lines), sources: [own, own, own, partner], ..unmixed }
            }
        }
    }

    pub(super) fn of_mosaic(row: usize, mosaics: &Mosaics, (width, height): (usize, usize)) -> Self {
        let unmixed = Self::unmixed(row as u32);
        let Some(tiles) = mosaics.tiles(row) else { return unmixed };
        let (x, y) = (tiles[0].columns.end, tiles[0].rows.end);
        RowMix {
            columns: [x as u32, (width - x) as u32],
            lines: [y as u32, (height - y) as u32],
            sources: tiles.each_ref().map(|tile| tile.source as u32),
            // `shift` leads from the source to the row.
            offsets: tiles.map(|tile| (-(tile.shift.1 * width as isize + tile.shift.0)) as u32),
            ..unmixed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchTransform, Mixing};
    use super::*;
    use crate::options::Mosaic;

    /// The definition of [`RowMix`], value by value.
    fn mixed(images: &[u8], [n, height, width]: [usize; 3], rows: &[RowMix]) -> Vec<u8> {
        let inside = |[first, count]: [u32; 2], at: usize| (first..first + count).contains(&(at as u32));
        let value = |row: u32, q: u32, channel: usize| {
            assert!((row as usize) < n && (q as usize) < height * width, "row {row}, pixel {q}");
            u32::from(images[(row as usize * height * width + q as usize) * 3 + channel])
        };
        let mut mixed = Vec::with_capacity(images.len());
        for row in rows {
            for (y, x, channel) in
                (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |channel| (y, x, channel))))
            {
                let region = usize::from(inside(row.columns, x)) | usize::from(inside(row.lines, y)) << 1;
                let q = (y * width + x) as u32;
                let a = value(row.sources[region], q.wrapping_add(row.offsets[region]), channel);
                let b = value(row.partner, q, channel);
                mixed.push(((a * row.weight + b * (WHOLE - row.weight) + 32_768) >> 16) as u8);
            }
        }
        mixed
    }

    #[test]
    fn rows_describe_what_the_host_mixes_in_place() {
        let mosaic = |p, center| BatchTransform::Mosaic(Mosaic { p, center, num_classes: None });
        let transforms = [
            vec![BatchTransform::mix_up(0.3)],
            vec![BatchTransform::cut_mix(1.0)],
            vec![mosaic(1.0, [0.0, 1.0])],
            vec![mosaic(0.5, [0.25, 0.75])],
            vec![BatchTransform::mix_up(1.0), BatchTransform::cut_mix(0.2), mosaic(1.0, [1.0, 1.0])],
        ];
        let valid: [&[bool]; 6] = [
            &[true; 5],
            &[true, false, true, true, false, true],
            &[false, false, true, false],
            &[true],
            &[false],
            &[true, true],
        ];
        let mut changed = 0;
        let sizes = [(8, 6), (7, 5), (1, 1), (3, 9)];
        for (transforms, size) in transforms.iter().flat_map(|transforms| sizes.map(|size| (transforms.clone(), size)))
        {
            let mixing = Mixing { transforms, classes: 3 };
            for (valid, first) in valid.iter().flat_map(|valid| (0..9).map(move |first| (valid, first))) {
                let mix = mixing.draw(4, 2, first, size, valid).unwrap();
                assert_eq!(mix.shape(), [valid.len(), size.1 as usize, size.0 as usize]);
                let images = |row: usize| (0..size.0 * size.1 * 3).map(move |i| (row as u32 * 83 + i * 29) as u8);
                let before: Vec<u8> = (0..valid.len()).flat_map(images).collect();
                let mut after = before.clone();
                mix.mix(&mut after);
                let rows: Vec<RowMix> = mix.rows().collect();
                assert_eq!(mixed(&before, mix.shape(), &rows), after, "{mixing:?} {valid:?} {first}");
                assert!(!mix.is_identity() || before == after);
                changed += u32::from(before != after);
            }
        }
        assert!(changed > 400, "{changed} batches were mixed");
    }
}
