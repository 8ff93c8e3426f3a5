//! Decoding of an image whose scan can be entered every few rows of MCUs, by entry points or restart markers.

use super::mcu_row::Output;
use crate::bitstream::unstuffed::EntropySegment;
use crate::buffer::resize_unspecified;
use crate::entry_points::payload::MAX_STEP;
use crate::entry_points::validate;
use crate::error::Damage;
use crate::sequential::layout::ScanLayout;
use crate::sequential::state::{ScanContext, ScanError, ScanState, undo_dc_prediction};
use crate::sequential::workspace::ScanWorkspace;

/// What [`ScanWorkspace::starts`] holds.
#[derive(Clone, Copy)]
pub(super) struct Starts {
    /// Rows of MCUs in a group; each group has a start.
    pub step: u32,
    /// Whether they are hints, so that the last group must be found to end where the data end.
    pub hints: bool,
}

impl ScanWorkspace {
    /// Fills `starts` from the restart markers, if they come every few whole rows of MCUs and all of them are there.
    pub(super) fn find_restart_starts(&mut self, layout: &ScanLayout) -> Option<Starts> {
        let across = u64::from(layout.mcus.0);
        let step = layout.interval / across;
        if !layout.interval.is_multiple_of(across) || !(1..=u64::from(MAX_STEP)).contains(&step) {
            return None;
        }
        let step = step as u32;
        let groups = layout.mcus.1.div_ceil(step) as usize;
        let in_order = |(i, s): (usize, &EntropySegment)| i == 0 || s.restart == Some(((i - 1) & 7) as u8);
        let segments = self.unstuffed.segments();
        if segments.len() != groups || !segments.iter().enumerate().all(in_order) {
            return None;
        }
        self.starts.clear();
        self.starts.reserve_exact(groups);
        self.starts.extend((0..).zip(segments).map(|(i, segment)| {
            ScanState::at(layout, &self.unstuffed, i as u64 * layout.interval, segment.start * 8, i, [0; 3])
        }));
        Some(Starts { step, hints: false })
    }

    /// Decodes from known starts: a batch of groups at a time, whose two halves are decoded in one loop. Each half must end
    /// where the next one starts.
    pub(super) fn decode_from_starts(
        &mut self,
        layout: &ScanLayout,
        known: Starts,
        output: &mut Output<'_>,
    ) -> Result<(), ScanError> {
        let Starts { step, hints } = known;
        let across = u64::from(layout.mcus.0);
        let batch = (self.speculation.round_rows(layout.row_blocks(), step, layout.mcus.1) / step).max(1);
        let max_rows = (batch * step).min(layout.mcus.1) as usize;
        resize_unspecified(&mut self.coefs, layout.coefs_len(max_rows * layout.across()) + 64);
        resize_unspecified(&mut self.last, max_rows * layout.row_blocks());
        output.writer.begin(output.plan);
        let ScanWorkspace { cpu, speculation, caches, unstuffed, coefs, last, starts, .. } = self;
        layout.with_tables(caches, |tables| {
            let context = ScanContext { layout, unstuffed, tables, bmi2: cpu.bmi2(), speculation: *speculation };
            let mcu_rows = &output.plan.mcu_rows.clone();
            let row = |group: u32| (group * step).min(layout.mcus.1);
            // The group of the first start: 0 for markers, and for hints the one at which decoding must begin.
            let first = starts.first().map_or(0, |state| (state.mcu / across) as u32 / step);
            let needed = if hints { first } else { mcu_rows.start / step }..mcu_rows.end.div_ceil(step);
            let start = |group: u32| starts.get((group - first) as usize).copied();
            let bit = |group: u32| start(group).map_or(unstuffed.bits(), |state| state.cursor.bit());
            for from in needed.clone().step_by(batch as usize) {
                let to = (from + batch).min(needed.end);
                let middle = bit(from).midpoint(bit(to));
                let split = (from + 1..to).min_by_key(|&g| bit(g).abs_diff(middle)).unwrap_or(to);
                let blocks = (row(split) - row(from)) as usize * layout.row_blocks();
                let (coefs_a, coefs_b) = coefs.split_at_mut(blocks * 64 + 64);
                let (last_a, last_b) = last.split_at_mut(blocks);
                let halves = [from..split, split..to];
                let mut states = halves.clone().map(|h| start(h.start).filter(|_| !h.is_empty()));
                let mcus = halves.clone().map(|h| u64::from(row(h.end) - row(h.start)) * across);
                match &mut states {
                    [Some(a), Some(b)] => {
                        let (coefs, last) = ((&mut *coefs_a, &mut *coefs_b), (&mut *last_a, &mut *last_b));
                        ScanState::decode_two(&context, (a, b), (mcus[0], mcus[1]), coefs, last)?;
                    }
                    [Some(a), None] => a.decode(&context, mcus[0], coefs_a, last_a)?,
                    [None, _] => {}
                }
                for (state, half, coefs, last) in
                    [(states[0], &halves[0], coefs_a, last_a), (states[1], &halves[1], coefs_b, last_b)]
                {
                    let Some(mut state) = state else { continue };
                    let rows = row(half.start)..row(half.end);
                    let blocks = rows.len() * layout.row_blocks();
                    let mcu = u64::from(rows.start) * across;
                    undo_dc_prediction(layout, mcu, &mut state.predictors, &mut coefs[..blocks * 64]);
                    let ends = match start(half.end) {
                        Some(next) => validate::ends_at_next_start(state, &context, &next),
                        None => !hints || validate::ends_at_data_end(&state, &context),
                    };
                    if !ends {
                        return Err(state.error(Damage::LeftOver));
                    }
                    for (i, row) in rows.enumerate() {
                        if mcu_rows.contains(&row) {
                            output.push_row(cpu, layout, coefs, last, i * layout.row_blocks());
                        }
                    }
                }
            }
            Ok(())
        })
    }
}
