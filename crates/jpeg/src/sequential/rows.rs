//! Images of one sequential scan: rows of MCUs from wherever they can be entered, and on to pixels, a few rows at a time.

use crate::bitstream::unstuffed::EntropySegment;
use crate::decoder::{CpuFeatures, Decoder, MAX_STEP, room};
use crate::error::Damage;
use crate::markers::header::Header;
use crate::pixels::writer::PixelWriter;
use crate::plan::DecodePlan;
use crate::sequential::speculation::{self, Space};
use crate::sequential::state::{ScanContext, ScanError, ScanLayout, ScanState, predict};
use crate::transform::idct::BlockRow;

/// What is decoded, and how.
#[derive(Clone, Copy)]
pub(crate) struct DecodeTarget<'a> {
    pub header: &'a Header,
    pub plan: &'a DecodePlan,
    pub layout: &'a ScanLayout,
}

impl Decoder {
    /// Starts at restart markers, if they come every few whole rows of MCUs and are all there. Returns the number of rows.
    pub(crate) fn restarts(&mut self, target: &DecodeTarget<'_>) -> Option<u32> {
        let layout = target.layout;
        let across = u64::from(layout.mcus.0);
        let step = layout.interval / across;
        if !layout.interval.is_multiple_of(across) || !(1..=u64::from(MAX_STEP)).contains(&step) {
            return None;
        }
        let step = step as u32;
        let groups = layout.mcus.1.div_ceil(step) as usize;
        let numbered = |(i, p): (usize, &EntropySegment)| i == 0 || p.restart == Some(((i - 1) & 7) as u8);
        if self.unstuffed.segments().len() != groups || !self.unstuffed.segments().iter().enumerate().all(numbered) {
            return None;
        }
        self.starts.clear();
        self.starts.reserve_exact(groups);
        self.starts.extend((0..).zip(self.unstuffed.segments()).map(|(i, segment)| {
            ScanState::at(layout, &self.unstuffed, i as u64 * layout.interval, segment.start * 8, i, [0; 3])
        }));
        Some(step)
    }

    /// Decodes from known starts, one every `step` rows of MCUs: a batch of rows at a time, its halves in one loop. Each
    /// half must end where the next one begins; if the starts are but hints, the last one where the data end.
    pub(crate) fn groups(
        &mut self,
        target: &DecodeTarget<'_>,
        step: u32,
        hinted: bool,
        out: &mut [u8],
        stride: usize,
    ) -> Result<(), ScanError> {
        let DecodeTarget { header, plan, layout } = *target;
        let across = u64::from(layout.mcus.0);
        let batch = (self.speculation.rows(layout.row_blocks(), step, layout.mcus.1) / step).max(1);
        let most = (batch * step).min(layout.mcus.1) as usize;
        room(&mut self.coefs, layout.coefs(most * layout.across()) + 64);
        room(&mut self.last, most * layout.row_blocks());
        self.writer.begin(plan);
        let Decoder { cpu, speculation, caches, unstuffed, coefs, last, starts, writer, .. } = self;
        layout.with_tables(caches, |tables| {
            let context = ScanContext { layout, unstuffed, tables, fast: cpu.bmi2, speculation: *speculation };
            let row = |group: u32| (group * step).min(layout.mcus.1);
            let needed = plan.mcu_rows.start / step..plan.mcu_rows.end.div_ceil(step);
            // `starts` begins with group 0 or with the first one needed.
            let first = starts.first().map_or(0, |w| (w.mcu / across) as u32 / step);
            let start = |group: u32| starts.get((group - first) as usize).copied();
            let bit = |group: u32| start(group).map_or(unstuffed.bits(), |w| w.cursor.bit());
            for from in needed.clone().step_by(batch as usize) {
                let to = (from + batch).min(needed.end);
                let middle = bit(from).midpoint(bit(to));
                let split = (from + 1..to).min_by_key(|&g| bit(g).abs_diff(middle)).unwrap_or(to);
                let blocks = (row(split) - row(from)) as usize * layout.row_blocks();
                let (coefs_a, coefs_b) = coefs.split_at_mut(blocks * 64 + 64);
                let (last_a, last_b) = last.split_at_mut(blocks);
                let halves = [from..split, split..to];
                let mut walks = halves.clone().map(|h| start(h.start).filter(|_| !h.is_empty()));
                let mcus = halves.clone().map(|h| u64::from(row(h.end) - row(h.start)) * across);
                match &mut walks {
                    [Some(a), Some(b)] => {
                        let (coefs, last) = ((&mut *coefs_a, &mut *coefs_b), (&mut *last_a, &mut *last_b));
                        ScanState::step_two(&context, (a, b), (mcus[0], mcus[1]), coefs, last)?;
                    }
                    [Some(a), None] => a.step(&context, mcus[0], coefs_a, last_a)?,
                    [None, _] => {}
                }
                for (state, half, coefs, last) in
                    [(walks[0], &halves[0], coefs_a, last_a), (walks[1], &halves[1], coefs_b, last_b)]
                {
                    let Some(mut state) = state else { continue };
                    let rows = row(half.start)..row(half.end);
                    let blocks = rows.len() * layout.row_blocks();
                    predict(layout, u64::from(rows.start) * across, &mut state.predictors, &mut coefs[..blocks * 64]);
                    let ends = match start(half.end) {
                        Some(next) => state.meets(&context, &next),
                        None => !hinted || state.is_at_end(&context),
                    };
                    if !ends {
                        return Err(state.error(Damage::LeftOver));
                    }
                    for (i, row) in rows.enumerate() {
                        if plan.mcu_rows.contains(&row) {
                            let strip = McuRow { coefs, last, first: i * layout.row_blocks() };
                            strip.push(*cpu, plan, layout, writer);
                            writer.drain(cpu.avx2, plan, header.color, out, stride);
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Decodes from the scan's start up to the last row of MCUs needed, passing over those above the rectangle.
    pub(crate) fn rows(&mut self, target: &DecodeTarget<'_>, out: &mut [u8], stride: usize) -> Result<(), ScanError> {
        let DecodeTarget { header, plan, layout } = *target;
        let (across, count) = (layout.across(), layout.count);
        // Before the guess's part there is room for what the first part has of the row in which they meet.
        let batch = self.speculation.rows(layout.row_blocks(), 1, layout.mcus.1) as usize * across;
        let first = layout.coefs(batch);
        room(&mut self.coefs, first + layout.coefs(across + batch));
        room(&mut self.last, (2 * batch + across) * count);
        let notes = if plan.mcu_rows.start > 0 { self.speculation.notes(layout.all_blocks()) } else { 0 };
        room(&mut self.marks, notes.max(2 * batch + 3));
        self.writer.begin(plan);
        let Decoder { cpu, speculation, speculative_mcus, caches, unstuffed, coefs, last, marks, writer, .. } = self;
        let (coefs_a, coefs_b) = coefs.split_at_mut(first);
        let (last_a, last_b) = last.split_at_mut(batch * count);
        layout.with_tables(caches, |tables| {
            let context = ScanContext { layout, unstuffed, tables, fast: cpu.bmi2, speculation: *speculation };
            let mut state = ScanState::at(layout, unstuffed, 0, 0, 0, [0; 3]);
            let top = plan.mcu_rows.start as u64 * across as u64;
            if top > 0 {
                *speculative_mcus +=
                    layout.with_skips(caches, |tables| state.pass(&context, tables, top, marks, |_, _| {}))?;
            }
            let (marks_a, marks_b) = marks.split_at_mut(batch + 1);
            let mut push = |coefs: &[i16], last: &[u8], rows: usize| {
                for row in 0..rows {
                    let strip = McuRow { coefs, last, first: row * layout.row_blocks() };
                    strip.push(*cpu, plan, layout, writer);
                    writer.drain(cpu.avx2, plan, header.color, out, stride);
                }
            };
            // MCUs of a row that is not complete, at the beginning of the first part.
            let mut kept = 0;
            let end = u64::from(plan.mcu_rows.end) * across as u64;
            while state.mcu < end {
                let space = Space {
                    coefs: (&mut coefs_a[kept * count * 64..], &mut coefs_b[across * count * 64..]),
                    last: (&mut last_a[kept * count..], &mut last_b[across * count..]),
                    marks: (&mut *marks_a, &mut *marks_b),
                    mcus: (batch - kept, batch),
                };
                let round = speculation::round(&context, &mut state, (batch, end), space)?;
                *speculative_mcus += round.second as u64;
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
struct McuRow<'a> {
    coefs: &'a [i16],
    last: &'a [u8],
    /// Index of the first block.
    first: usize,
}

impl McuRow<'_> {
    fn push(&self, cpu: CpuFeatures, plan: &DecodePlan, layout: &ScanLayout, writer: &mut PixelWriter) {
        for (i, plane) in plan.planes().iter().enumerate() {
            writer.push(cpu, plane, i, |v| BlockRow {
                coefs: self.coefs,
                last: self.last,
                first: self.first + (plane.first + v * plane.h) as usize,
                run: plane.h as usize,
                step: layout.count,
            });
        }
    }
}
