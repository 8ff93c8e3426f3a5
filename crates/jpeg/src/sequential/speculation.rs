//! Speculative decoding of a scan whose only known position is its start: rounds of MCUs that are decoded in several places at
//! once, from the current position and from estimated ones. Each speculative part is valid from where the part before it
//! synchronised with it (see [`crate::entropy::decode`]).

use std::cmp::Ordering;
use std::ops::Range;

use super::layout::ScanLayout;
use super::parameters::Region;
use super::state::{ScanContext, ScanError, ScanState};
use crate::entropy::block::Blocks;
use crate::entropy::block_stream::BlockStream;
use crate::entropy::decode::{self, STREAMS};

/// Bits that a stream continues beyond the start of the next one before the two are compared: within them, most have
/// synchronised.
const SYNC_MARGIN: usize = 1 << 10;

/// The blocks of a part that a round wrote to.
pub(crate) struct Decoded {
    /// The valid blocks: whole MCUs, which follow those of the part before.
    pub valid: Range<usize>,
    /// All blocks that may not be 0.
    pub written: Range<usize>,
}

/// Decodes about `target` MCUs from `state`, stopping before MCU `end`. DC coefficients are absolute on return.
pub(crate) fn decode_round(
    context: &ScanContext<'_>,
    state: &mut ScanState,
    (target, end): (usize, u64),
    blocks: &mut Blocks<'_>,
    regions: &[Region; STREAMS],
) -> Result<[Decoded; STREAMS], ScanError> {
    let ScanContext { layout, unstuffed, .. } = *context;
    let mcu_blocks = layout.mcu_blocks;
    let wanted = (end - state.mcu) as usize;
    let first = regions[0].mcus.min(wanted);
    let bits = estimated_bits(layout, context, state, target.min(wanted));
    let speculate =
        layout.interval == u64::MAX && context.speculation.is_worthwhile(layout, unstuffed, target.min(wanted), bits);
    if !speculate {
        let range = regions[0].first..regions[0].first + first * mcu_blocks;
        state.decode(context, first as u64, blocks, range.start)?;
        return Ok(std::array::from_fn(|i| {
            let valid = if i == 0 { range.clone() } else { 0..0 };
            Decoded { valid: valid.clone(), written: valid }
        }));
    }
    let start = state.bit;
    let mut streams: [BlockStream; STREAMS] = std::array::from_fn(|i| {
        let Region { first: block, mcus } = regions[i];
        let mcus = if i == 0 { first } else { mcus };
        let stream = BlockStream::new(start + bits / STREAMS * i, block, block + mcus * mcu_blocks);
        if i == 0 { stream } else { stream.speculative() }
    });
    let syncs = run_until_synced(context, blocks, &mut streams, start + bits);
    let (mut from, mut emitted) = (0, 0);
    let mut valid = [const { 0..0 }; STREAMS];
    for (i, stream) in streams.iter().enumerate() {
        let next = syncs.get(i).copied().flatten();
        let to = next.map_or(stream.mcus(blocks).min(stream.mcus_wanted(blocks)), |(here, _)| here);
        let mcus = to.saturating_sub(from).min(wanted - emitted);
        state.complete(context, blocks, stream, from..from + mcus)?;
        valid[i] = stream.first() + from * mcu_blocks..stream.first() + (from + mcus) * mcu_blocks;
        emitted += mcus;
        match next {
            Some((_, there)) if emitted < wanted => from = there,
            _ => break,
        }
    }
    if syncs[0].is_none() && emitted < first {
        state.bit = streams[0].bit();
        return Err(state.error(streams[0].damage()));
    }
    debug_assert!(emitted > 0, "streams synchronise after at least one MCU of the first one");
    Ok(std::array::from_fn(|i| Decoded { valid: valid[i].clone(), written: streams[i].first()..streams[i].done() + 1 }))
}

/// Runs all streams, each until it synchronised with the next one, the last one until bit `end`. For each stream but the
/// last, returns the index of the MCU at which it did, in its own MCUs and in those of the next one.
fn run_until_synced(
    context: &ScanContext<'_>,
    blocks: &mut Blocks<'_>,
    streams: &mut [BlockStream; STREAMS],
    end: usize,
) -> [Option<(usize, usize)>; STREAMS - 1] {
    let (bytes, bmi2) = (context.unstuffed.bytes(), context.bmi2);
    let mut next = end;
    for stream in streams.iter_mut().rev() {
        stream.set_stop(next);
        next = stream.bit() + SYNC_MARGIN;
    }
    // All three run until one of them stops, then each pair, because a pair of which one stopped returns at once.
    let [a, b, c] = streams;
    decode::run(bmi2, bytes, blocks, [a, b, c]);
    decode::run(bmi2, bytes, blocks, [a, b]);
    decode::run(bmi2, bytes, blocks, [a, c]);
    decode::run(bmi2, bytes, blocks, [b, c]);
    let mut syncs = [None; STREAMS - 1];
    let mut rest = &mut streams[..];
    let mut from = 0;
    while let Some((here, others)) = rest.split_first_mut() {
        decode::run(bmi2, bytes, blocks, [here]);
        let Some(there) = others.first_mut() else { break };
        let found = loop {
            let found = first_common_mcu(bytes, blocks, here, from, there);
            if found.is_some() || here.is_over(bytes) || here.bit() >= there.bit() {
                break found;
            }
            here.set_stop(here.bit() + SYNC_MARGIN);
            decode::run(bmi2, bytes, blocks, [here]);
        };
        let Some((_, index)) = found else { break };
        there.confirm_sync();
        from = index;
        syncs[STREAMS - 1 - others.len()] = found;
        rest = others;
    }
    if syncs[0].is_none() {
        streams[0].set_stop(usize::MAX);
        decode::run(bmi2, bytes, blocks, [&mut streams[0]]);
    }
    syncs
}

/// Returns the index of the first MCU of `a`, from MCU `from` on, that begins at the same bit as one of `b`'s, and the index
/// of that one.
fn first_common_mcu(
    bytes: &[u8],
    blocks: &Blocks<'_>,
    a: &BlockStream,
    from: usize,
    b: &BlockStream,
) -> Option<(usize, usize)> {
    // Only the last MCUs of `a` are beyond the start of `b`.
    let start = b.mcu_bit(blocks, bytes, 0)?;
    let mut i = a.mcus(blocks).max(from);
    while i > from && a.mcu_bit(blocks, bytes, i - 1)? >= start {
        i -= 1;
    }
    let mut j = 0;
    loop {
        match a.mcu_bit(blocks, bytes, i)?.cmp(&b.mcu_bit(blocks, bytes, j)?) {
            Ordering::Less => i += 1,
            Ordering::Equal => return Some((i, j)),
            Ordering::Greater => j += 1,
        }
    }
}

/// Estimates the bits of the next `mcus` MCUs from the average of all MCUs that are left.
pub(super) fn estimated_bits(layout: &ScanLayout, context: &ScanContext<'_>, state: &ScanState, mcus: usize) -> usize {
    let left = (u64::from(layout.mcus.0) * u64::from(layout.mcus.1) - state.mcu).max(1);
    (context.unstuffed.bits().saturating_sub(state.bit) as u64 * mcus as u64 / left) as usize
}
