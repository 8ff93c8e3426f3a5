//! Passing over MCUs: where each of them begins, and the DC predictors there. Without restarts, in several places at once:
//! all but the first one are speculative_mcus, and true from where the one before meets it.

use std::cmp::Ordering;
use std::ops::Range;

use crate::entropy::decode::BitCursor;
use crate::entropy::scanner::{self, Keys, Scanner, SkipLanes};
use crate::error::Damage;
use crate::huffman::{CodeTable, extend};
use crate::sequential::state::{ScanContext, ScanError, ScanState};

/// Tracks at once: enough to fill the time in which a look-up waits for the one before.
pub(crate) const TRACKS: usize = 3;

/// BitReader that a track goes on for beyond the start of the next one, before it is asked where they met.
const MARGIN: usize = 8 << 10;

impl ScanState {
    /// Passes over the MCUs up to number `end`, which the scan must have. Calls `each` with the state before each of them,
    /// in which the cursor is an earlier one, and its first bit. Returns how many came from guesses.
    pub(crate) fn pass(
        &mut self,
        context: &ScanContext<'_>,
        tables: &SkipLanes<'_>,
        end: u64,
        notes: &mut [u32],
        mut each: impl FnMut(&ScanState, usize),
    ) -> Result<u64, ScanError> {
        let ScanContext { layout, unstuffed, .. } = *context;
        let keys = Keys::new(tables);
        let room = notes.len() / TRACKS;
        let most = scanner::blocks(room) / layout.count;
        let mut speculative_mcus = 0;
        while self.mcu < end {
            if !self.is_unbroken(1) {
                self.restart(context)?;
                self.predictors = [0; 3];
            }
            let wanted = self.unbroken(context, end - self.mcu)? as usize;
            let bit = self.cursor.bit();
            let rest = u64::from(layout.mcus.0) * u64::from(layout.mcus.1) - self.mcu;
            // A track needs some of its notes beyond the start of the next one.
            let aim = wanted.min(most * TRACKS * 7 / 8);
            let span = (unstuffed.bits().saturating_sub(bit) as u64 * aim as u64 / rest) as usize;
            let worth = layout.interval == u64::MAX && context.is_worth_a_guess(aim, span);

            let mut rooms = notes.chunks_exact_mut(room);
            let first = wanted.min(most);
            let mut tracks: [Scanner<'_>; TRACKS] = std::array::from_fn(|i| {
                let notes = rooms.next().unwrap_or_default();
                match i {
                    0 => Scanner::new(unstuffed.bytes(), &keys, bit, first * layout.count, notes),
                    _ => Scanner::new(unstuffed.bytes(), &keys, bit + span / TRACKS * i, most * layout.count, notes)
                        .guess(),
                }
            });
            let met = if worth { together(context, &mut tracks, bit + span) } else { [None; TRACKS - 1] };
            let alone = met[0].is_none();
            if alone {
                tracks[0].until(usize::MAX);
                scanner::run(context.fast, [&mut tracks[0]]);
            }

            let (mut from, mut told) = (0, 0);
            for (i, track) in tracks.iter().enumerate() {
                let next = met.get(i).copied().flatten();
                let to = next.map_or((track.known() - 1) / layout.count, |(here, _)| here);
                let mcus = to.saturating_sub(from).min(wanted - told);
                self.tell(context, tables, track, from..from + mcus, &mut each)?;
                told += mcus;
                speculative_mcus += if i > 0 { mcus as u64 } else { 0 };
                match next {
                    Some((_, there)) if told < wanted => from = there,
                    _ => break,
                }
            }
            if alone && told < first {
                self.cursor = BitCursor::at(unstuffed.bytes(), tracks[0].bit());
                return Err(self.error(tracks[0].damage().unwrap_or(Damage::Ends)));
            }
            debug_assert!(told > 0, "tracks meet after an MCU of the first one");
        }
        Ok(speculative_mcus)
    }

    /// Goes on by these MCUs of a track, as far as there are data.
    fn tell(
        &mut self,
        context: &ScanContext<'_>,
        tables: &SkipLanes<'_>,
        track: &Scanner<'_>,
        mcus: Range<usize>,
        each: &mut impl FnMut(&ScanState, usize),
    ) -> Result<(), ScanError> {
        let bytes = context.unstuffed.bytes();
        let mut components: [(usize, &CodeTable); 3] = [(0, &tables[0].dc.codes); 3];
        for (lane, &component) in tables.iter().zip(&context.layout.blocks) {
            let (blocks, codes) = &mut components[usize::from(component)];
            (*blocks, *codes) = (*blocks + 1, &lane.dc.codes);
        }
        let end = context.unstuffed.segments()[self.segment].end * 8;
        let mut block = mcus.start * tables.len();
        for _ in mcus {
            if track.place(block) > end {
                // `settle` says so.
                break;
            }
            each(self, track.place(block));
            for (predictor, (blocks, codes)) in self.predictors.iter_mut().zip(components) {
                for _ in 0..blocks {
                    let bit = track.place(block);
                    let head = bytes[bit / 8..].first_chunk().map_or(0, |&b| u64::from_be_bytes(b)) << (bit % 8);
                    let (length, size) = codes.find(head).unwrap_or((0, 0));
                    let size = u32::from(size);
                    let difference = extend((head << length >> 1 >> (63 - size)) as i32, size);
                    *predictor = predictor.wrapping_add(difference as i16);
                    block += 1;
                }
            }
            self.advance(1);
        }
        self.cursor = BitCursor::at(bytes, track.place(block));
        self.settle(context, 0, Ok(()))
    }
}

/// Goes on with all tracks, each until it met the next one, the last one until bit `end`. Returns where they met, in MCUs
/// of the one and of the other.
fn together(
    context: &ScanContext<'_>,
    tracks: &mut [Scanner<'_>; TRACKS],
    end: usize,
) -> [Option<(usize, usize)>; TRACKS - 1] {
    let mut next = end;
    for track in tracks.iter_mut().rev() {
        track.until(next);
        next = track.bit() + MARGIN;
    }
    let [a, b, c] = tracks;
    scanner::run(context.fast, [a, b, c]);
    scanner::run(context.fast, [a, b]);
    scanner::run(context.fast, [a, c]);
    scanner::run(context.fast, [b, c]);
    let mut met = [None; TRACKS - 1];
    let mut rest = &mut tracks[..];
    let mut from = 0;
    while let Some((here, others)) = rest.split_first_mut() {
        scanner::run(context.fast, [here]);
        let Some(there) = others.first_mut() else { break };
        let found = loop {
            let found = meeting(here, from, there, context.layout.count);
            if found.is_some() || here.is_over() || here.bit() >= there.bit() {
                break found;
            }
            here.until(here.bit() + MARGIN);
            scanner::run(context.fast, [here]);
        };
        let Some((_, place)) = found else { break };
        there.confirm();
        from = place;
        met[TRACKS - 1 - others.len()] = found;
        rest = others;
    }
    met
}

/// The first MCU of the one, from number `from` on, that begins where one of the other does, and which.
fn meeting(a: &Scanner<'_>, from: usize, b: &Scanner<'_>, count: usize) -> Option<(usize, usize)> {
    let place = |track: &Scanner<'_>, mcu: usize| (mcu * count < track.known()).then(|| track.place(mcu * count));
    let (mut i, mut j) = (from, 0);
    loop {
        match place(a, i)?.cmp(&place(b, j)?) {
            Ordering::Less => i += 1,
            Ordering::Equal => return Some((i, j)),
            Ordering::Greater => j += 1,
        }
    }
}
