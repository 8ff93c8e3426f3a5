//! Speculative decoding of a scan whose only known position is its start: rounds of MCUs that are decoded in two places at
//! once, from the current position and from an estimated one. The second part is valid from where the first one synchronised
//! with it (see [`crate::entropy::decode`]).

use super::layout::ScanLayout;
use super::state::{ScanContext, ScanError, ScanState, undo_dc_prediction};
use crate::bitstream::bit_cursor::BitCursor;
use crate::entropy::decode;
use crate::entropy::job::DecodeJob;

/// The buffers of a round: each pair is for the part from the current position and for the speculative part.
pub(crate) struct RoundBuffers<'a> {
    pub coefs: (&'a mut [i16], &'a mut [i16]),
    pub last: (&'a mut [u8], &'a mut [u8]),
    /// Bit offsets of the MCUs: one more than there is room for, and two more.
    pub mcu_offsets: (&'a mut [u32], &'a mut [u32]),
    /// The most MCUs of each part.
    pub mcus: (usize, usize),
}

/// The MCUs that a round decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// MCUs of the first part.
    pub first: usize,
    /// Index of the first valid MCU in the speculative part.
    pub from: usize,
    /// Valid MCUs of the speculative part; they follow those of the first part.
    pub second: usize,
}

/// Decodes about `target` MCUs from `state`, stopping before MCU `end`. DC coefficients are absolute on return.
pub(crate) fn decode_round(
    context: &ScanContext<'_>,
    state: &mut ScanState,
    (target, end): (usize, u64),
    buffers: RoundBuffers<'_>,
) -> Result<Round, ScanError> {
    let ScanContext { layout, unstuffed, .. } = *context;
    let RoundBuffers { coefs, last, mcu_offsets, mcus } = buffers;
    let mcu_blocks = layout.mcu_blocks;
    let wanted = (end - state.mcu) as usize;
    let (from, bit) = (state.mcu, state.cursor.bit());
    let bits = estimated_bits(layout, context, state, target.min(wanted));
    let mut done = Round { first: mcus.0.min(wanted), from: 0, second: 0 };
    if layout.interval == u64::MAX {
        let job = DecodeJob {
            cursor: &mut state.cursor,
            coefs: coefs.0,
            last: last.0,
            blocks: done.first * mcu_blocks,
            mcu_offsets: &mut mcu_offsets.0[..=done.first],
        };
        if context.speculation.is_worthwhile(layout, unstuffed, target.min(wanted), bits) {
            let mut cursor = BitCursor::at(unstuffed.bytes(), (bit + bits / 2) / 8 * 8);
            let offsets = &mut mcu_offsets.1[..mcus.1 + 2];
            offsets.fill(u32::MAX);
            let speculative = DecodeJob {
                cursor: &mut cursor,
                coefs: coefs.1,
                last: last.1,
                blocks: mcus.1 * mcu_blocks,
                mcu_offsets: offsets,
            };
            let result = decode::decode_speculative(
                context.bmi2,
                unstuffed.bytes(),
                context.tables,
                job,
                speculative,
                bit + bits,
            );
            done.first = result.blocks / mcu_blocks;
            state.finish(context, done.first as u64, result.result)?;
            if let Some(synced_at) = result.synced_at {
                let valid = result.speculative_mcus - synced_at;
                (done.from, done.second) = (synced_at, valid.min(wanted - done.first));
                state.cursor = BitCursor::at(unstuffed.bytes(), mcu_offsets.1[synced_at + done.second] as usize);
                state.finish(context, done.second as u64, Ok(()))?;
            }
        } else {
            let result = decode::decode(context.bmi2, unstuffed.bytes(), context.tables, job);
            state.finish(context, done.first as u64, result)?;
        }
    } else {
        state.decode(context, done.first as u64, coefs.0, last.0)?;
    }
    let size = mcu_blocks * 64;
    let second = done.from * size..(done.from + done.second) * size;
    undo_dc_prediction(layout, from, &mut state.predictors, &mut coefs.0[..done.first * size]);
    undo_dc_prediction(layout, from + done.first as u64, &mut state.predictors, &mut coefs.1[second]);
    Ok(done)
}

/// Estimates the bits of the next `mcus` MCUs from the average of all MCUs that are left.
pub(super) fn estimated_bits(layout: &ScanLayout, context: &ScanContext<'_>, state: &ScanState, mcus: usize) -> usize {
    let left = (u64::from(layout.mcus.0) * u64::from(layout.mcus.1) - state.mcu).max(1);
    (context.unstuffed.bits().saturating_sub(state.cursor.bit()) as u64 * mcus as u64 / left) as usize
}
