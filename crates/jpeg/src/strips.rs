//! Images of one sequential scan: rows of MCUs from wherever they can be entered, and on to pixels, a few rows at a time.

use crate::decoder::{Decoder, Features, MAX_STEP, room};
use crate::error::Damage;
use crate::header::Header;
use crate::idct::Blocks;
use crate::layout::Layout;
use crate::plain::Piece;
use crate::raster::Raster;
use crate::sequential::{Course, Fall, Shape, Walk, predict};

/// What is decoded, and how.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub header: &'a Header,
    pub layout: &'a Layout,
    pub shape: &'a Shape,
}

impl Decoder {
    /// Starts at restart markers, if they come every few whole rows of MCUs and are all there. Returns the number of rows.
    pub(crate) fn restarts(&mut self, target: &Target<'_>) -> Option<u32> {
        let shape = target.shape;
        let across = u64::from(shape.mcus.0);
        let step = shape.interval / across;
        if !shape.interval.is_multiple_of(across) || !(1..=u64::from(MAX_STEP)).contains(&step) {
            return None;
        }
        let step = step as u32;
        let groups = shape.mcus.1.div_ceil(step) as usize;
        let numbered = |(i, p): (usize, &Piece)| i == 0 || p.restart == Some(((i - 1) & 7) as u8);
        if self.plain.pieces().len() != groups || !self.plain.pieces().iter().enumerate().all(numbered) {
            return None;
        }
        self.starts.clear();
        self.starts.reserve_exact(groups);
        self.starts.extend(
            (0..)
                .zip(self.plain.pieces())
                .map(|(i, piece)| Walk::at(shape, &self.plain, i as u64 * shape.interval, piece.start * 8, i, [0; 3])),
        );
        Some(step)
    }

    /// Decodes from known starts, one every `step` rows of MCUs, two segments at a time. Each segment must end where the
    /// next one begins; if the starts are but hints, the last one where the data end.
    pub(crate) fn groups(
        &mut self,
        target: &Target<'_>,
        step: u32,
        hinted: bool,
        out: &mut [u8],
        stride: usize,
    ) -> Result<(), Fall> {
        let Target { header, layout, shape } = *target;
        let across = u64::from(shape.mcus.0);
        let most = step.min(shape.mcus.1) as usize;
        let (half, half_blocks) = (shape.coefs(most), most * shape.row_blocks());
        room(&mut self.coefs, 2 * half);
        room(&mut self.last, 2 * half_blocks);
        self.raster.begin(layout);
        let Decoder { features, memory, plain, coefs, last, starts, raster, .. } = self;
        shape.with_tables(memory, |tables| {
            let course = Course { shape, plain, tables, fast: features.bmi2 };
            let rows = |group: u32| group * step..((group + 1) * step).min(shape.mcus.1);
            let needed = layout.mcu_rows.start / step..layout.mcu_rows.end.div_ceil(step);
            // `starts` begins with group 0 or with the first one needed.
            let first = starts.first().map_or(0, |w| (w.mcu / across) as u32 / step);
            let start = |group: u32| starts.get((group - first) as usize).copied();
            for group in needed.clone().step_by(2) {
                coefs.fill(0);
                let (coefs_a, coefs_b) = coefs.split_at_mut(half);
                let (last_a, last_b) = last.split_at_mut(half_blocks);
                let pair = [group, group + 1].map(|g| needed.contains(&g).then(|| (g, start(g))));
                let mut walks = pair.map(|p| p.and_then(|(_, w)| w));
                let mcus = [group, group + 1].map(|g| rows(g).len() as u64 * across);
                match &mut walks {
                    [Some(a), Some(b)] if a.is_unbroken(mcus[0]) && b.is_unbroken(mcus[1]) => {
                        let (coefs, last) = ((&mut *coefs_a, &mut *coefs_b), (&mut *last_a, &mut *last_b));
                        Walk::step_two(&course, (a, b), (mcus[0], mcus[1]), coefs, last)?;
                    }
                    [a, b] => {
                        if let Some(a) = a {
                            a.step(&course, mcus[0], coefs_a, last_a)?;
                        }
                        if let Some(b) = b {
                            b.step(&course, mcus[1], coefs_b, last_b)?;
                        }
                    }
                }
                for (walk, group, coefs, last) in
                    [(walks[0], group, coefs_a, last_a), (walks[1], group + 1, coefs_b, last_b)]
                {
                    let Some(mut walk) = walk else { continue };
                    let blocks = rows(group).len() * shape.row_blocks();
                    let before = u64::from(group * step) * across;
                    predict(shape, before, &mut walk.predictors, &mut coefs[..blocks * 64]);
                    let next = start(group + 1);
                    let ends = match next {
                        Some(next) => walk.meets(&course, &next),
                        None => !hinted || walk.is_at_end(&course),
                    };
                    if !ends {
                        return Err(walk.fall(Damage::LeftOver));
                    }
                    for (i, row) in rows(group).enumerate() {
                        if layout.mcu_rows.contains(&row) {
                            let strip = Strip { coefs, last, first: i * shape.row_blocks() };
                            strip.push(*features, layout, shape, raster);
                            raster.drain(features.avx2, layout, header.color, out, stride);
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Decodes from the scan's start up to the last row of MCUs needed.
    pub(crate) fn rows(&mut self, target: &Target<'_>, out: &mut [u8], stride: usize) -> Result<(), Fall> {
        let Target { header, layout, shape } = *target;
        room(&mut self.coefs, shape.coefs(1));
        room(&mut self.last, shape.row_blocks());
        self.raster.begin(layout);
        let Decoder { features, memory, plain, coefs, last, raster, .. } = self;
        shape.with_tables(memory, |tables| {
            let course = Course { shape, plain, tables, fast: features.bmi2 };
            let mut walk = Walk::at(shape, plain, 0, 0, 0, [0; 3]);
            for row in 0..layout.mcu_rows.end {
                // Rows above the rectangle leave nothing but their DC behind, so they may overwrite each other.
                if row == 0 || row >= layout.mcu_rows.start {
                    coefs.fill(0);
                }
                let mcu = walk.mcu;
                walk.step(&course, shape.mcus.0.into(), coefs, last)?;
                predict(shape, mcu, &mut walk.predictors, &mut coefs[..shape.row_blocks() * 64]);
                if row >= layout.mcu_rows.start {
                    Strip { coefs, last, first: 0 }.push(*features, layout, shape, raster);
                    raster.drain(features.avx2, layout, header.color, out, stride);
                }
            }
            Ok(())
        })
    }
}

/// The coefficients of a row of MCUs, in the order of the scan.
struct Strip<'a> {
    coefs: &'a [i16],
    last: &'a [u8],
    /// Index of the first block.
    first: usize,
}

impl Strip<'_> {
    fn push(&self, features: Features, layout: &Layout, shape: &Shape, raster: &mut Raster) {
        for (i, plane) in layout.planes().iter().enumerate() {
            raster.push(features, plane, i, |v| Blocks {
                coefs: self.coefs,
                last: self.last,
                first: self.first + (plane.first + v * plane.h) as usize,
                run: plane.h as usize,
                step: shape.count,
            });
        }
    }
}
