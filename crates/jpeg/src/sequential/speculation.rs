//! A scan without any known start but its own, decoded in two places at once: the second one is speculative_mcus, far enough ahead,
//! and true from where the first one meets it.

use crate::entropy::decode::{self, BitCursor, DecodeJob};
use crate::entropy::scanner;
use crate::sequential::scan_only;
use crate::sequential::state::{ScanContext, ScanError, ScanState, predict};

impl ScanContext<'_> {
    /// Whether to guess in the next so many MCUs, which have about `span` bits.
    pub(crate) fn is_worth_a_guess(&self, mcus: usize, span: usize) -> bool {
        let (least, bytes) = self.speculation.worth;
        self.layout.phased && self.unstuffed.bits() < u32::MAX as usize && mcus >= least && span / 8 >= bytes
    }
}

/// How much is decoded before it becomes pixels, and when to guess.
#[derive(Clone, Copy)]
pub(crate) struct Speculation {
    /// Bytes of coefficients in a round, about.
    pub coefs: usize,
    /// BlockRow of each track in a round of passing over them.
    blocks: usize,
    /// MCUs, and bytes of data, in a round that is worth a guess; at least one each, so that it starts after what is known.
    worth: (usize, usize),
}

impl Speculation {
    /// Coefficients few enough for the second-level cache, and many enough that what is decoded twice, until the guess is
    /// met, is little; a guess where there is something to gain.
    pub(crate) const BEST: Speculation = Speculation { coefs: 384 << 10, blocks: 1 << 13, worth: (64, 1 << 10) };
    /// As many rounds and guesses as there can be, for tests: small images see all that large ones do.
    pub(crate) const EAGER: Speculation = Speculation { coefs: 0, blocks: 170, worth: (2, 1) };

    /// Notes for passing over MCUs of an image of so many blocks.
    pub(crate) fn notes(&self, blocks: u64) -> usize {
        scan_only::TRACKS * scanner::notes(blocks.min(self.blocks as u64) as usize)
    }

    /// Rows of MCUs, of that many blocks each, in a round, where starts are `step` rows apart: two groups at
    /// least, if there are so many.
    pub(crate) fn rows(&self, row_blocks: usize, step: u32, rows: u32) -> u32 {
        let fit = (self.coefs / (row_blocks * 128)).min(rows as usize) as u32 / step * step;
        fit.max(2 * step).min(rows.next_multiple_of(step))
    }
}

/// TableCaches of a round, for MCUs: those decoded from where the state is, from `coefs` and `last` 0 on; and those decoded from
/// the guess.
pub(crate) struct Space<'a> {
    pub coefs: (&'a mut [i16], &'a mut [i16]),
    pub last: (&'a mut [u8], &'a mut [u8]),
    /// First bits of the MCUs: one more than there is room for, and two more.
    pub marks: (&'a mut [u32], &'a mut [u32]),
    /// MCUs that there is room for.
    pub mcus: (usize, usize),
}

/// What a round brought, in MCUs: the first part, and of the guess as many from one on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub first: usize,
    pub from: usize,
    pub second: usize,
}

/// Decodes on from `state`, about `aim` MCUs in all but none from number `end` on. DC are values afterwards.
pub(crate) fn round(
    context: &ScanContext<'_>,
    state: &mut ScanState,
    (aim, end): (usize, u64),
    space: Space<'_>,
) -> Result<Round, ScanError> {
    let ScanContext { layout, unstuffed, .. } = *context;
    let Space { coefs, last, marks, mcus } = space;
    let count = layout.count;
    let wanted = (end - state.mcu) as usize;
    let (from, bit) = (state.mcu, state.cursor.bit());
    let left = (u64::from(layout.mcus.0) * u64::from(layout.mcus.1) - from).max(1);
    let span = (unstuffed.bits().saturating_sub(bit) as u64 * aim.min(wanted) as u64 / left) as usize;
    let mut done = Round { first: mcus.0.min(wanted), from: 0, second: 0 };
    if layout.interval == u64::MAX {
        let job = DecodeJob {
            cursor: &mut state.cursor,
            coefs: coefs.0,
            last: last.0,
            blocks: done.first * count,
            marks: &mut marks.0[..=done.first],
        };
        if context.is_worth_a_guess(aim.min(wanted), span) {
            let mut cursor = BitCursor::at(unstuffed.bytes(), (bit + span / 2) / 8 * 8);
            let noted = &mut marks.1[..mcus.1 + 2];
            noted.fill(u32::MAX);
            let guess =
                DecodeJob { cursor: &mut cursor, coefs: coefs.1, last: last.1, blocks: mcus.1 * count, marks: noted };
            let ahead = decode::decode_ahead(context.fast, unstuffed.bytes(), context.tables, job, guess, bit + span);
            done.first = ahead.blocks / count;
            state.settle(context, done.first as u64, ahead.result)?;
            if let Some(met) = ahead.met {
                (done.from, done.second) = (met, (ahead.speculative_mcus - met).min(wanted - done.first));
                state.cursor = BitCursor::at(unstuffed.bytes(), marks.1[met + done.second] as usize);
                state.settle(context, done.second as u64, Ok(()))?;
            }
        } else {
            let result = decode::decode(context.fast, unstuffed.bytes(), context.tables, job);
            state.settle(context, done.first as u64, result)?;
        }
    } else {
        state.step(context, done.first as u64, coefs.0, last.0)?;
    }
    let size = count * 64;
    let second = done.from * size..(done.from + done.second) * size;
    predict(layout, from, &mut state.predictors, &mut coefs.0[..done.first * size]);
    predict(layout, from + done.first as u64, &mut state.predictors, &mut coefs.1[second]);
    Ok(done)
}
