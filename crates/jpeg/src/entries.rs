//! Entry points: where rows of MCUs begin in the entropy-coded data, so that decoding can start there.
//!
//! They exist for images whose coefficients come in one sequential Huffman-coded scan of all components. For all others
//! the payload is empty.
//!
//! # The payload
//! An MCU row is a row of MCUs. Group *g* is the run of MCU rows [*g*·*step*, (*g* + 1)·*step*), the last one may be
//! shorter. Group 0 starts where the scan's data do and has no entry. All numbers are little-endian.
//!
//! | offset | bytes | type | meaning | on violation |
//! |---|---|---|---|---|
//! | 0 | 1 | u8 | *step*, MCU rows in a group, 1 to 8 | decode without |
//! | 1 | 1 | u8 | *c*, components of the scan, 1 or 3 | decode without |
//! | 2 | (4 + 2*c*)·(*groups* − 1) | entries | of group 1, 2, … | decode without, if there are more or fewer |
//!
//! | offset in an entry | bytes | type | meaning | on violation |
//! |---|---|---|---|---|
//! | 0 | 4 | u32 | the group's first bit, counted from the image's first byte as stored, stuffed bytes included, most significant bit first; larger than that of the entry before | decode without |
//! | 4 | 2*c* | i16 each | DC predictors before the group's first MCU, in the order of the scan | decode without |
//!
//! A first bit is never inside the 00 that follows an ff byte of data. Where a restart interval begins, it is the first
//! one after the marker, and the predictors are 0; elsewhere the restart state follows from the MCU's number.
//!
//! Entries are hints. A decoder checks each run of groups that it decodes from one: after padding and any restart marker
//! that is due, the run must end where the next entry says, with its predictors, and the last one where the data end. If it
//! does not, the image is decoded from its start. Entries inside a run are not used, so not checked. An image of one group
//! has an empty payload too.
//!
//! *Rationale.* 10 bytes an entry (three components) is 0.2 % of a photograph at a group every 16 pixel rows, the default
//! ([`default_step`]): finer costs more bytes than it saves time, coarser makes a crop decode rows that it does not need,
//! and with both a batch can be halved well: its halves are decoded in one loop.

use crate::bitstream::unstuffed::UnstuffedData;
use crate::decoder::{Decoder, MAX_STEP, room};
use crate::error::Result;
use crate::markers::header::Header;
use crate::markers::parser::{Parser, ScanHeader};
use crate::sequential::rows::DecodeTarget;
use crate::sequential::state::{ScanContext, ScanError, ScanLayout, ScanState};

/// Bytes before the entries.
const HEAD: usize = 2;

/// The number of MCU rows from entry to entry that fits most uses: 16 rows of pixels.
#[must_use]
pub fn default_step(header: &Header) -> u32 {
    let (_, v) = header.max_sampling();
    (16 / (8 * v)).max(1)
}

/// Finds the entry points of `jpeg`, one every `step` MCU rows, and appends their payload to `payload`; appends nothing if
/// the image has none. One pass over the entropy-coded data, no transforms.
///
/// # Errors
/// What is wrong with the image: damage anywhere in its data is found.
///
/// # Panics
/// If `step` is not from 1 to 8.
pub fn find(jpeg: &[u8], step: u32, decoder: &mut Decoder, payload: &mut Vec<u8>) -> Result<()> {
    assert!((1..=MAX_STEP).contains(&step), "1 to {MAX_STEP} MCU rows from entry to entry");
    let (reader, scan) = Parser::start(jpeg, decoder.limits())?;
    let Some(mut layout) = ScanLayout::new(&reader, &scan)? else { return Ok(()) };
    layout.prepare_skips(&reader, &scan, &mut decoder.caches)?;
    decoder.unstuffed.fill(jpeg, scan.data, layout.segments());
    let start = payload.len();
    let components = reader.header.components().len();
    let fits = decoder.unstuffed.stored_end() < (u32::MAX / 8) as usize && layout.mcus.1 > step;
    if fits {
        payload.extend([step as u8, components as u8]);
    }
    let mut stored = Stored::new(jpeg, &decoder.unstuffed);
    decoder
        .row_starts(&layout, |row, unstuffed, state, bit| {
            if fits && row > 0 && row.is_multiple_of(step) {
                payload.extend(stored.bit(unstuffed, bit, state.segment).to_le_bytes());
                payload.extend(state.predictors[..components].iter().flat_map(|p| p.to_le_bytes()));
            }
        })
        .map_err(|error: ScanError| {
            payload.truncate(start);
            error.error(&reader.header, &decoder.unstuffed)
        })
}

impl Decoder {
    /// Passes over all MCUs of a scan. Calls `note` with the number of each row of MCUs, the state there and its first bit.
    fn row_starts(
        &mut self,
        layout: &ScanLayout,
        mut note: impl FnMut(u32, &UnstuffedData, &ScanState, usize),
    ) -> std::result::Result<(), ScanError> {
        room(&mut self.marks, self.speculation.notes(layout.all_blocks()));
        let Decoder { cpu, speculation, speculative_mcus, caches, unstuffed, marks, .. } = self;
        let context = ScanContext { layout, unstuffed, tables: &[], fast: cpu.bmi2, speculation: *speculation };
        let (across, mut row) = (u64::from(layout.mcus.0), 0);
        let end = across * u64::from(layout.mcus.1);
        let mut state = ScanState::at(layout, unstuffed, 0, 0, 0, [0; 3]);
        *speculative_mcus += layout.with_skips(caches, |tables| {
            state.pass(&context, tables, end, marks, |state, bit| {
                if state.mcu == u64::from(row) * across {
                    note(row, unstuffed, state, bit);
                    row += 1;
                }
            })
        })?;
        Ok(())
    }
}

/// Where bits of the unstuffed data are in the image.
struct Stored<'a> {
    jpeg: &'a [u8],
    segment: usize,
    /// A byte of the unstuffed data, and where it is stored.
    at: (usize, usize),
}

impl<'a> Stored<'a> {
    fn new(jpeg: &'a [u8], unstuffed: &UnstuffedData) -> Stored<'a> {
        Stored { jpeg, segment: 0, at: (0, unstuffed.segments()[0].stored) }
    }

    /// The stored number of unstuffed bit `bit` in segment `segment`; both never go back from call to call.
    fn bit(&mut self, unstuffed: &UnstuffedData, bit: usize, segment: usize) -> u32 {
        if segment > self.segment {
            let segment = unstuffed.segments()[segment];
            self.at = (segment.start, segment.stored);
        }
        self.segment = segment;
        while self.at.0 < bit / 8 {
            let wanted = bit / 8 - self.at.0;
            let run = memchr::memchr(0xff, &self.jpeg[self.at.1..self.at.1 + wanted]);
            match run {
                None => self.at = (self.at.0 + wanted, self.at.1 + wanted),
                Some(n) => {
                    // Any number of ff bytes may precede the stuffed 00.
                    let ff = self.at.1 + n;
                    let zero = self.jpeg[ff..].iter().position(|&b| b != 0xff).unwrap_or(1);
                    self.at = (self.at.0 + n + 1, ff + zero + 1);
                }
            }
        }
        (self.at.1 * 8 + bit % 8) as u32
    }
}

/// One entry as stored.
struct Entry {
    bit: usize,
    predictors: [i16; 3],
}

/// The payload's entries, if it fits the image.
struct Payload<'a> {
    step: u32,
    groups: usize,
    entries: &'a [u8],
    size: usize,
}

impl<'a> Payload<'a> {
    fn parse(bytes: &'a [u8], components: usize, mcu_rows: u32) -> Option<Payload<'a>> {
        let (&[step, c], entries) = bytes.split_first_chunk::<HEAD>()?;
        let (step, size) = (u32::from(step), 4 + 2 * components);
        if !(1..=MAX_STEP).contains(&step) || usize::from(c) != components {
            return None;
        }
        let groups = mcu_rows.div_ceil(step) as usize;
        let payload = Payload { step, groups, entries, size };
        let rising = || (2..groups).all(|g| payload.bit(g - 1) < payload.bit(g));
        (entries.len() == (groups - 1) * size && rising()).then_some(payload)
    }

    fn bytes(&self, group: usize) -> &'a [u8] {
        &self.entries[(group - 1) * self.size..group * self.size]
    }

    fn bit(&self, group: usize) -> usize {
        self.bytes(group).first_chunk().map_or(0, |b| u32::from_le_bytes(*b) as usize)
    }

    fn get(&self, group: usize) -> Entry {
        let mut predictors = [0; 3];
        for (p, b) in predictors.iter_mut().zip(self.bytes(group)[4..].as_chunks::<2>().0) {
            *p = i16::from_le_bytes(*b);
        }
        Entry { bit: self.bit(group), predictors }
    }
}

/// Unstuffs what `target` needs and fills `starts` with the state before each group needed, and before the one after them
/// if there is one. Returns the groups' MCU rows; `None` if the payload does not fit the image.
pub(crate) fn locate(
    target: &DecodeTarget<'_>,
    jpeg: &[u8],
    scan: &ScanHeader,
    payload: &[u8],
    unstuffed: &mut UnstuffedData,
    starts: &mut Vec<ScanState>,
) -> Option<u32> {
    let (plan, layout) = (target.plan, target.layout);
    let payload = Payload::parse(payload, target.header.components().len(), layout.mcus.1)?;
    let step = payload.step;
    let first = (plan.mcu_rows.start / step) as usize;
    let end = (plan.mcu_rows.end.div_ceil(step) as usize + 1).min(payload.groups);
    starts.clear();
    starts.reserve_exact(end - first);
    let head = match first {
        0 => Entry { bit: scan.data * 8, predictors: [0; 3] },
        _ => payload.get(first),
    };
    let byte = head.bit / 8;
    if byte < scan.data || byte >= jpeg.len() || (byte > scan.data && jpeg[byte - 1] == 0xff && jpeg[byte] == 0) {
        return None;
    }
    unstuffed.begin(jpeg, byte, layout.segments());
    let across = u64::from(layout.mcus.0);
    // The bytes that a start's cursor holds come once all data are there.
    let state = |group: usize, unstuffed: &UnstuffedData, held: usize, entry: &Entry| {
        let mcu = group as u64 * u64::from(step) * across;
        let (bit, segment) = (held * 8 + entry.bit % 8, unstuffed.segments().len() - 1);
        ScanState::at(layout, unstuffed, mcu, bit, segment, entry.predictors)
    };
    starts.push(state(first, unstuffed, 0, &head));
    for group in first + 1..end {
        let entry = payload.get(group);
        let held = unstuffed.extend(jpeg, entry.bit / 8)?;
        starts.push(state(group, unstuffed, held, &entry));
    }
    // After the last start: nothing but the byte that it shares with the group before, unless its group is needed too.
    let needed = plan.mcu_rows.end > (end as u32 - 1) * step;
    unstuffed.extend(jpeg, if needed { jpeg.len() } else { payload.bit(end - 1) / 8 + 1 });
    unstuffed.finish();
    for start in starts.iter_mut() {
        start.load(unstuffed);
    }
    Some(step)
}
