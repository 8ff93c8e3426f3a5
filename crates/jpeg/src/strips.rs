//! Images of one sequential scan: rows of MCUs from wherever they can be entered, and on to pixels, a few rows at a time.

use crate::ahead::{self, Space};
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

    /// Decodes from known starts, one every `step` rows of MCUs: a batch of rows at a time, its halves in one loop. Each
    /// half must end where the next one begins; if the starts are but hints, the last one where the data end.
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
        let batch = (self.pace.rows(shape.row_blocks(), step, shape.mcus.1) / step).max(1);
        let most = (batch * step).min(shape.mcus.1) as usize;
        room(&mut self.coefs, shape.coefs(most * shape.across()) + 64);
        room(&mut self.last, most * shape.row_blocks());
        self.raster.begin(layout);
        let Decoder { features, pace, memory, plain, coefs, last, starts, raster, .. } = self;
        shape.with_tables(memory, |lanes| {
            let course = Course { shape, plain, lanes, fast: features.bmi2, pace: *pace };
            let row = |group: u32| (group * step).min(shape.mcus.1);
            let needed = layout.mcu_rows.start / step..layout.mcu_rows.end.div_ceil(step);
            // `starts` begins with group 0 or with the first one needed.
            let first = starts.first().map_or(0, |w| (w.mcu / across) as u32 / step);
            let start = |group: u32| starts.get((group - first) as usize).copied();
            let bit = |group: u32| start(group).map_or(plain.bits(), |w| w.cursor.bit());
            for from in needed.clone().step_by(batch as usize) {
                let to = (from + batch).min(needed.end);
                let middle = bit(from).midpoint(bit(to));
                let split = (from + 1..to).min_by_key(|&g| bit(g).abs_diff(middle)).unwrap_or(to);
                let blocks = (row(split) - row(from)) as usize * shape.row_blocks();
                let (coefs_a, coefs_b) = coefs.split_at_mut(blocks * 64 + 64);
                let (last_a, last_b) = last.split_at_mut(blocks);
                let halves = [from..split, split..to];
                let mut walks = halves.clone().map(|h| start(h.start).filter(|_| !h.is_empty()));
                let mcus = halves.clone().map(|h| u64::from(row(h.end) - row(h.start)) * across);
                match &mut walks {
                    [Some(a), Some(b)] => {
                        let (coefs, last) = ((&mut *coefs_a, &mut *coefs_b), (&mut *last_a, &mut *last_b));
                        Walk::step_two(&course, (a, b), (mcus[0], mcus[1]), coefs, last)?;
                    }
                    [Some(a), None] => a.step(&course, mcus[0], coefs_a, last_a)?,
                    [None, _] => {}
                }
                for (walk, half, coefs, last) in
                    [(walks[0], &halves[0], coefs_a, last_a), (walks[1], &halves[1], coefs_b, last_b)]
                {
                    let Some(mut walk) = walk else { continue };
                    let rows = row(half.start)..row(half.end);
                    let blocks = rows.len() * shape.row_blocks();
                    predict(shape, u64::from(rows.start) * across, &mut walk.predictors, &mut coefs[..blocks * 64]);
                    let ends = match start(half.end) {
                        Some(next) => walk.meets(&course, &next),
                        None => !hinted || walk.is_at_end(&course),
                    };
                    if !ends {
                        return Err(walk.fall(Damage::LeftOver));
                    }
                    for (i, row) in rows.enumerate() {
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

    /// Decodes from the scan's start up to the last row of MCUs needed, passing over those above the rectangle.
    pub(crate) fn rows(&mut self, target: &Target<'_>, out: &mut [u8], stride: usize) -> Result<(), Fall> {
        let Target { header, layout, shape } = *target;
        let (across, count) = (shape.across(), shape.count);
        // Before the guess's part there is room for what the first part has of the row in which they meet.
        let batch = self.pace.rows(shape.row_blocks(), 1, shape.mcus.1) as usize * across;
        let first = shape.coefs(batch);
        room(&mut self.coefs, first + shape.coefs(across + batch));
        room(&mut self.last, (2 * batch + across) * count);
        let notes = if layout.mcu_rows.start > 0 { self.pace.notes(shape.all_blocks()) } else { 0 };
        room(&mut self.marks, notes.max(2 * batch + 3));
        self.raster.begin(layout);
        let Decoder { features, pace, guessed, memory, plain, coefs, last, marks, raster, .. } = self;
        let (coefs_a, coefs_b) = coefs.split_at_mut(first);
        let (last_a, last_b) = last.split_at_mut(batch * count);
        shape.with_tables(memory, |lanes| {
            let course = Course { shape, plain, lanes, fast: features.bmi2, pace: *pace };
            let mut walk = Walk::at(shape, plain, 0, 0, 0, [0; 3]);
            let top = layout.mcu_rows.start as u64 * across as u64;
            if top > 0 {
                *guessed += shape.with_skips(memory, |lanes| walk.pass(&course, lanes, top, marks, |_, _| {}))?;
            }
            let (marks_a, marks_b) = marks.split_at_mut(batch + 1);
            let mut push = |coefs: &[i16], last: &[u8], rows: usize| {
                for row in 0..rows {
                    let strip = Strip { coefs, last, first: row * shape.row_blocks() };
                    strip.push(*features, layout, shape, raster);
                    raster.drain(features.avx2, layout, header.color, out, stride);
                }
            };
            // MCUs of a row that is not complete, at the beginning of the first part.
            let mut kept = 0;
            let end = u64::from(layout.mcu_rows.end) * across as u64;
            while walk.mcu < end {
                let space = Space {
                    coefs: (&mut coefs_a[kept * count * 64..], &mut coefs_b[across * count * 64..]),
                    last: (&mut last_a[kept * count..], &mut last_b[across * count..]),
                    marks: (&mut *marks_a, &mut *marks_b),
                    mcus: (batch - kept, batch),
                };
                let round = ahead::round(&course, &mut walk, (batch, end), space)?;
                *guessed += round.second as u64;
                let have = kept + round.first;
                push(coefs_a, last_a, have / across);
                kept = have % across;
                let begun = (have - kept) * count..have * count;
                if round.second == 0 {
                    coefs_a.copy_within(begun.start * 64..begun.end * 64, 0);
                    last_a.copy_within(begun, 0);
                    continue;
                }
                let from = across + round.from - kept;
                let here = from * count..(from + kept) * count;
                coefs_b[here.start * 64..here.end * 64].copy_from_slice(&coefs_a[begun.start * 64..begun.end * 64]);
                last_b[here].copy_from_slice(&last_a[begun]);
                let have = kept + round.second;
                push(&coefs_b[from * count * 64..], &last_b[from * count..], have / across);
                kept = have % across;
                let begun = (from + have - kept) * count..(from + have) * count;
                coefs_a[..kept * count * 64].copy_from_slice(&coefs_b[begun.start * 64..begun.end * 64]);
                last_a[..kept * count].copy_from_slice(&last_b[begun]);
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
