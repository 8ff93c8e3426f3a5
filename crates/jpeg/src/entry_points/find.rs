//! Finds the entry points of an image by scan-only decoding.

use super::payload::{write_entry, write_head};
use crate::bitstream::unstuffed::UnstuffedData;
use crate::buffer::resize_unspecified;
use crate::error::Result;
use crate::markers::parser::{Parser, ScanHeader};
use crate::sequential::layout::ScanLayout;
use crate::sequential::state::{ScanContext, ScanError, ScanState};
use crate::sequential::workspace::ScanWorkspace;

/// Appends the entry points of an image, one every `step` MCU rows, to `payload`; appends nothing if the image has none.
pub(crate) fn find(
    parser: &Parser<'_>,
    scan: &ScanHeader,
    step: u32,
    workspace: &mut ScanWorkspace,
    payload: &mut Vec<u8>,
) -> Result<()> {
    let Some(mut layout) = ScanLayout::new(parser, scan)? else { return Ok(()) };
    layout.prepare_scan_tables(parser, scan, &mut workspace.caches)?;
    workspace.unstuffed.fill(parser.jpeg, scan.data, layout.segments());
    let start = payload.len();
    let components = parser.header.components().len();
    // Bits are stored as u32.
    let fits = workspace.unstuffed.stored_end() < (u32::MAX / 8) as usize && layout.mcus.1 > step;
    if fits {
        write_head(step, components, payload);
    }
    let mut stored = StoredBits::new(parser.jpeg, &workspace.unstuffed);
    let result = for_each_row(workspace, &layout, |row, unstuffed, state, bit| {
        if fits && row > 0 && row.is_multiple_of(step) {
            write_entry(stored.bit(unstuffed, bit, state.segment), &state.predictors[..components], payload);
        }
    });
    result.map_err(|error| {
        payload.truncate(start);
        error.into_error(&parser.header, &workspace.unstuffed)
    })
}

/// Skips all MCUs of a scan. Calls `f` with the index of each row of MCUs, the state before it and its first bit.
fn for_each_row(
    workspace: &mut ScanWorkspace,
    layout: &ScanLayout,
    mut f: impl FnMut(u32, &UnstuffedData, &ScanState, usize),
) -> Result<(), ScanError> {
    let ScanWorkspace { cpu, speculation, speculative_mcus, caches, unstuffed, offsets, .. } = workspace;
    resize_unspecified(offsets, speculation.scan_offsets(layout.total_blocks()));
    let context = ScanContext { layout, unstuffed, bmi2: cpu.bmi2, speculation: *speculation };
    let (across, mut row) = (u64::from(layout.mcus.0), 0);
    let end = across * u64::from(layout.mcus.1);
    let mut state = ScanState::at(layout, 0, 0, 0, [0; 3]);
    *speculative_mcus += layout.with_scan_tables(caches, |tables| {
        state.skip_to(&context, tables, end, offsets, |state, bit| {
            if state.mcu == u64::from(row) * across {
                f(row, unstuffed, state, bit);
                row += 1;
            }
        })
    })?;
    Ok(())
}

/// Converts bits of the unstuffed data to bits of the image as stored, in ascending order.
struct StoredBits<'a> {
    jpeg: &'a [u8],
    segment: usize,
    /// Index of a byte in the unstuffed data.
    byte: usize,
    /// Where it is stored in the image.
    stored: usize,
}

impl<'a> StoredBits<'a> {
    fn new(jpeg: &'a [u8], unstuffed: &UnstuffedData) -> StoredBits<'a> {
        StoredBits { jpeg, segment: 0, byte: 0, stored: unstuffed.segments()[0].stored }
    }

    /// Returns the stored position of bit `bit` in segment `segment`. Neither may be less than in the call before.
    fn bit(&mut self, unstuffed: &UnstuffedData, bit: usize, segment: usize) -> u32 {
        if segment > self.segment {
            let segment = unstuffed.segments()[segment];
            (self.byte, self.stored) = (segment.start, segment.stored);
        }
        self.segment = segment;
        while self.byte < bit / 8 {
            let wanted = bit / 8 - self.byte;
            let run = memchr::memchr(0xff, &self.jpeg[self.stored..self.stored + wanted]);
            match run {
                None => (self.byte, self.stored) = (self.byte + wanted, self.stored + wanted),
                Some(n) => {
                    // Any number of ff bytes may precede the stuffed 00.
                    let ff = self.stored + n;
                    let zero = self.jpeg[ff..].iter().position(|&b| b != 0xff).unwrap_or(1);
                    (self.byte, self.stored) = (self.byte + n + 1, ff + zero + 1);
                }
            }
        }
        (self.stored * 8 + bit % 8) as u32
    }
}
