//! The decoder states at the entry points that a request needs.

use std::ops::Range;

use super::payload::Entry;
use super::validate;
use crate::bitstream::unstuffed::UnstuffedData;
use crate::markers::parser::{Parser, ScanHeader};
use crate::sequential::layout::ScanLayout;
use crate::sequential::state::ScanState;

/// Unstuffs the data that MCU rows `mcu_rows` need, and fills `starts` with the state before each of their groups, and before
/// the group after them if there is one. The first of these may be a group before them. Returns the MCU rows in a group; `None` if the entry points do not fit the image.
pub(crate) fn enter(
    parser: &Parser<'_>,
    scan: &ScanHeader,
    layout: &ScanLayout,
    mcu_rows: &Range<u32>,
    payload: &[u8],
    unstuffed: &mut UnstuffedData,
    starts: &mut Vec<ScanState>,
) -> Option<u32> {
    let jpeg = parser.jpeg;
    let payload = validate::payload(payload, parser.header.components().len(), layout.mcus.1)?;
    let step = payload.step;
    let first = validate::first_group(layout, step, (mcu_rows.start / step) as usize);
    let end = (mcu_rows.end.div_ceil(step) as usize + 1).min(payload.groups);
    starts.clear();
    starts.reserve_exact(end - first);
    let head = match first {
        0 => Entry { bit: scan.data * 8, predictors: [0; 3] },
        _ => payload.entry(first),
    };
    let mcu = |group| validate::mcu_of(layout, step, group);
    if !validate::is_data_byte(jpeg, scan, head.bit / 8) || !validate::follows_marker(jpeg, layout, mcu(first), &head) {
        return None;
    }
    unstuffed.begin(jpeg, head.bit / 8, layout.segments());
    let state = |group: usize, unstuffed: &UnstuffedData, held: usize, entry: &Entry| {
        let (bit, segment) = (held * 8 + entry.bit % 8, unstuffed.segments().len() - 1);
        ScanState::at(layout, mcu(group), bit, segment, entry.predictors)
    };
    starts.push(state(first, unstuffed, 0, &head));
    for group in first + 1..end {
        let entry = payload.entry(group);
        let held = unstuffed.extend(jpeg, entry.bit / 8)?;
        starts.push(state(group, unstuffed, held, &entry));
    }
    // Unless the last group is needed too, only the byte that it shares with the group before.
    let needed = mcu_rows.end > (end as u32 - 1) * step;
    unstuffed.extend(jpeg, if needed { jpeg.len() } else { payload.bit(end - 1) / 8 + 1 });
    unstuffed.finish();
    Some(step)
}
