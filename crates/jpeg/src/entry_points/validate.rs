//! Whether given entry points fit the image. Entry points are hints from an index, so nothing about them is trusted:
//!
//! 1. [`payload`]: the payload has the documented layout, the number of entries follows from the image's size, and their bits
//!    ascend. Otherwise it is not used.
//! 2. [`first_group`] and [`follows_marker`]: in a scan with restart markers, a run begins where a restart interval does, right
//!    after the marker of that interval.
//! 3. [`is_data_byte`]: a run of groups begins inside the scan's data and not inside a stuffed pair. That the following
//!    entries do too is checked by [`UnstuffedData::extend`](crate::bitstream::unstuffed::UnstuffedData::extend), which only
//!    stops at whole bytes of data.
//! 4. [`ends_at_next_start`] and [`ends_at_data_end`]: each group that was decoded ends exactly where the next entry says, with
//!    its DC predictors, and the last one where the data end.
//!
//! If any check fails, the image is decoded without entry points.
//!
//! [`is_exact`] is the check of an index by its verification: the payload is byte for byte the one that [`find`] finds.

use super::find::find;
use super::payload::{Entry, HEAD, MAX_STEP, Payload, entry_size};
use crate::error::Result;
use crate::markers::parser::{Parser, ScanHeader};
use crate::sequential::layout::ScanLayout;
use crate::sequential::state::{ScanContext, ScanState};
use crate::sequential::workspace::ScanWorkspace;

/// Returns the parsed payload if it has the documented layout for an image of `mcu_rows` rows of MCUs whose scan has
/// `components` components.
pub(super) fn payload(bytes: &[u8], components: usize, mcu_rows: u32) -> Option<Payload<'_>> {
    let (&[step, c], entries) = bytes.split_first_chunk::<HEAD>()?;
    let (step, size) = (u32::from(step), entry_size(components));
    if !(1..=MAX_STEP).contains(&step) || usize::from(c) != components {
        return None;
    }
    let groups = mcu_rows.div_ceil(step) as usize;
    let payload = Payload { step, groups, entries, size };
    let ascending = || (2..groups).all(|g| payload.bit(g - 1) < payload.bit(g));
    (entries.len() == (groups - 1) * size && ascending()).then_some(payload)
}

/// Returns the group at which decoding begins if group `group` is needed: this one or, in a scan with restart markers, the
/// last one up to it that begins a restart interval. Decoding from a wrong position inside an interval is right again after
/// the next marker, so no later check would find the mistake.
pub(super) fn first_group(layout: &ScanLayout, step: u32, group: usize) -> usize {
    let begins_interval = |group: &usize| mcu_of(layout, step, *group).is_multiple_of(layout.interval);
    match layout.interval {
        u64::MAX => group,
        _ => (0..=group).rfind(begins_interval).unwrap_or(0),
    }
}

/// Returns the first MCU of a group.
pub(super) fn mcu_of(layout: &ScanLayout, step: u32, group: usize) -> u64 {
    group as u64 * u64::from(step) * u64::from(layout.mcus.0)
}

/// Whether an entry before MCU `mcu` can begin a run: if the scan has restart markers, it is the first bit after the marker
/// that begins its interval, with the predictors that the marker sets.
pub(super) fn follows_marker(jpeg: &[u8], layout: &ScanLayout, mcu: u64, entry: &Entry) -> bool {
    if layout.interval == u64::MAX || mcu == 0 {
        return true;
    }
    let number = mcu / layout.interval - 1;
    let byte = entry.bit / 8;
    let before = byte.checked_sub(2).and_then(|at| jpeg.get(at..byte));
    before == Some(&[0xff, 0xd0 | (number & 7) as u8]) && entry.bit.is_multiple_of(8) && entry.predictors == [0; 3]
}

/// Whether byte `byte` of the image can begin a group: it is in or after the first byte of the scan's data, and not the 00 of
/// a stuffed pair.
pub(super) fn is_data_byte(jpeg: &[u8], scan: &ScanHeader, byte: usize) -> bool {
    let stuffed = || byte > scan.data && jpeg[byte - 1] == 0xff && jpeg[byte] == 0;
    byte >= scan.data && byte < jpeg.len() && !stuffed()
}

/// Whether decoding up to `state` ended where `next` begins, after padding and a restart marker that is due, with the same
/// predictors.
pub(crate) fn ends_at_next_start(mut state: ScanState, context: &ScanContext<'_>, next: &ScanState) -> bool {
    if !state.is_uninterrupted(1) {
        // Without the marker, the position is not that of `next`.
        let _ = state.restart(context);
    }
    let components = usize::from(context.layout.blocks[context.layout.mcu_blocks - 1]) + 1;
    state.segment == next.segment
        && state.bit == next.bit
        && state.predictors[..components] == next.predictors[..components]
}

/// Whether decoding up to `state` ended where the data end.
pub(crate) fn ends_at_data_end(state: &ScanState, context: &ScanContext<'_>) -> bool {
    state.only_padding_left(context)
}

/// Whether `payload` is exactly what [`find`] finds at its own distance. An empty payload is, because it promises nothing.
pub(crate) fn is_exact(
    parser: &Parser<'_>,
    scan: &ScanHeader,
    payload: &[u8],
    workspace: &mut ScanWorkspace,
) -> Result<bool> {
    let Some(&step) = payload.first() else { return Ok(true) };
    if !(1..=MAX_STEP).contains(&u32::from(step)) {
        return Ok(false);
    }
    let mut found = Vec::new();
    find(parser, scan, step.into(), workspace, &mut found)?;
    Ok(found == payload)
}
