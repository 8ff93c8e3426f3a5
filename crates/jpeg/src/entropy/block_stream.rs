//! One segment of Huffman codes being decoded: what happens between its blocks, and where it ends.
//!
//! TableCaches safety rests on four things, checked in [`Stream::new`], in [`Stream::guess`] and at the start of each block: the
//! output has room for its blocks and one more coefficient, the input is followed by [`SLACK`] bytes, no block reads more
//! than that, and marks have room for all MCUs, those of a guess ending with one that is never reached.

use crate::bitstream::unstuffed::SLACK;
use crate::entropy::decode::{BitCursor, DecodeJob, MAX_MCU_BLOCKS, McuTables, Stop};
use crate::entropy::symbol_state::{ALL, Hot};
use crate::error::Damage;
use crate::huffman::{BAD, END, LOOK, extend};

/// Bytes that one block may take: 64 codes with their magnitudes of at most 31 bits, and what a refill looks ahead. A
/// block starts no nearer to the end of the slack.
const BLOCK_BYTES: usize = 64 * 31 / 8 + 16;
const _: () = assert!(BLOCK_BYTES + 16 < SLACK);

/// Nothing to meet.
static NOWHERE: [u32; 1] = [u32::MAX];

/// A segment, or what is taken for one.
pub(crate) struct Stream<'a> {
    pub hot: Hot,
    /// First byte of the data.
    start: *const u8,
    /// No block may start beyond this: it might read past the slack.
    guard: *const u8,
    /// No MCU follows one that ends beyond this bit.
    until: usize,
    last: *mut u8,
    /// BlockRow left, of how many.
    left: usize,
    blocks: usize,
    /// The block's number in its MCU.
    lane: usize,
    tables: &'a McuTables<'a>,
    entries: [*const u32; MAX_MCU_BLOCKS],
    /// Where the MCU's first bit is noted; null if it is not.
    mark: *mut u32,
    /// The first one that counts.
    fresh: *mut u32,
    /// First bits of MCUs, rising, of another stream: this one ends where it meets one of them.
    meet: *const u32,
    met: bool,
    /// The start is a guess: where codes lead astray, go on with the next MCU.
    guess: bool,
    over: bool,
    damage: Option<Damage>,
}

impl<'a> Stream<'a> {
    /// The job as pointers; `None` if it has no blocks.
    ///
    /// # Panics
    /// If the buffers are too small for what the job says: that is a mistake of this crate, and what follows trusts it.
    #[inline(always)]
    pub(crate) fn new(
        bytes: &'a [u8],
        tables: &'a McuTables<'a>,
        job: DecodeJob<'a>,
    ) -> Option<(Self, &'a mut BitCursor)> {
        assert!(job.coefs.len() > job.blocks * 64 && job.last.len() >= job.blocks);
        assert!(!tables.is_empty() && tables.len() <= MAX_MCU_BLOCKS);
        assert!(job.marks.is_empty() || job.marks.len() > job.blocks / tables.len());
        assert!(bytes.len() >= SLACK && job.cursor.byte <= bytes.len());
        if job.blocks == 0 {
            return None;
        }
        let mut entries = [std::ptr::null(); MAX_MCU_BLOCKS];
        for (table, lane) in entries.iter_mut().zip(tables) {
            *table = lane.ac.entries().as_ptr();
        }
        let input = bytes.as_ptr_range();
        let mark = if job.marks.is_empty() {
            std::ptr::null_mut()
        } else {
            job.marks[0] = job.cursor.bit() as u32;
            job.marks.as_mut_ptr()
        };
        let stream = Stream {
            hot: Hot {
                bits: job.cursor.bits,
                state: job.cursor.count,
                // SAFETY: the assertion above keeps it inside `bytes`.
                input: unsafe { input.start.add(job.cursor.byte) },
                block: job.coefs.as_mut_ptr(),
                table: entries[0],
            },
            start: input.start,
            // SAFETY: `bytes` has at least SLACK bytes.
            guard: unsafe { input.end.sub(BLOCK_BYTES) },
            until: usize::MAX,
            last: job.last.as_mut_ptr(),
            left: job.blocks,
            blocks: job.blocks,
            lane: 0,
            tables,
            entries,
            mark,
            fresh: mark,
            meet: NOWHERE.as_ptr(),
            met: false,
            guess: false,
            over: false,
            damage: None,
        };
        Some((stream, job.cursor))
    }

    /// Makes the start a guess: where codes lead astray, the stream goes on with the next MCU, until bit `until`.
    pub(crate) fn guess(&mut self, until: usize) {
        assert!(!self.mark.is_null(), "a guess notes where its MCUs are");
        (self.guess, self.until) = (true, until);
    }

    /// Makes this stream end where an MCU begins at the same bit as one of `other`'s.
    pub(crate) fn meet(&mut self, other: &Self) {
        assert!(other.guess, "a guess to meet");
        self.meet = other.mark;
    }

    /// Takes the other stream's guess for true from where this one met it; whether it did.
    pub(crate) fn confirm(&self, other: &mut Self) -> bool {
        other.guess &= !self.met;
        self.met
    }

    /// BlockRow decoded.
    pub(crate) fn done(&self) -> usize {
        self.blocks - self.left
    }

    /// Number of the other stream's mark that was met.
    pub(crate) fn met(&self, marks: *const u32) -> Option<usize> {
        self.met.then(|| (self.meet.addr() - marks.addr()) / size_of::<u32>())
    }

    /// The next bit's number.
    #[inline(always)]
    fn bit(&self, hot: &Hot) -> usize {
        (hot.input.addr() - self.start.addr()) * 8 - (hot.state & 63) as usize
    }

    /// Starts a block with its DC difference; what is wrong with it.
    ///
    /// # Safety
    /// A block must be left.
    #[inline(always)]
    unsafe fn begin(&mut self, hot: &mut Hot) -> Option<Damage> {
        if hot.input > self.guard {
            return Some(Damage::Ends);
        }
        // SAFETY: from the guard on there are BLOCK_BYTES, which no block can exceed. `block` is one of those for which
        // the job has room.
        unsafe {
            hot.refill();
            let Some((length, size)) = self.tables[self.lane].dc.find(hot.bits) else {
                return Some(Damage::Code);
            };
            let size = u32::from(size);
            hot.block.write_bytes(0, 64);
            *hot.block = extend((hot.bits << length >> 1 >> (63 - size)) as i32, size) as i16;
            hot.take(length + size);
            hot.state = hot.state & 63 | u32::from(ALL) << 8;
            hot.refill();
        }
        hot.table = self.entries[self.lane];
        None
    }

    /// What to do where a symbol led past the block's last coefficient but one. False if the stream is over.
    ///
    /// # Safety
    /// `hot` must be this stream's, and `entry` come from its [`Hot::symbol`].
    #[inline(always)]
    pub(crate) unsafe fn turn(&mut self, hot: &mut Hot, mut entry: u32) -> bool {
        // SAFETY: see the single steps: a block was begun, and `finish` gives runs as a table does.
        unsafe {
            if entry & 255 == 0 {
                // Missed: take back what was said of the block.
                hot.state = hot.state.wrapping_add(entry);
                entry = self.single(hot);
                if !hot.turns() {
                    return true;
                }
            }
            let last = match entry >> 8 & 255 {
                // The end came where the next coefficient would have been.
                END => ALL - hot.follow().wrapping_add(END as u8),
                BAD => return self.astray(hot, Damage::Code),
                _ if hot.follow() == 255 => 63,
                _ => return self.astray(hot, Damage::Block),
            };
            self.left -= 1;
            *self.last = last;
            self.last = self.last.add(1);
            hot.block = hot.block.add(64);
            self.lane += 1;
            if self.lane == self.tables.len() {
                self.lane = 0;
                self.note(hot);
            }
            if self.over || self.left == 0 {
                return self.stop(hot);
            }
            match self.begin(hot) {
                None => true,
                Some(damage) => self.astray(hot, damage),
            }
        }
    }

    /// Decodes one symbol, however long it is.
    ///
    /// # Safety
    /// A block must have been begun.
    #[inline(always)]
    unsafe fn single(&self, hot: &mut Hot) -> u32 {
        let table = self.tables[self.lane].ac;
        // SAFETY: BLOCK_BYTES follow the block's start.
        unsafe {
            hot.refill();
            let mut entry = table.entries()[(hot.bits >> (64 - LOOK)) as usize];
            if entry & 255 == 0 {
                entry = table.finish(entry, hot.bits);
            }
            hot.take(entry);
            hot.put(entry);
            hot.refill();
            entry
        }
    }

    /// An MCU is over: notes where the next one begins, and looks whether the stream is to go on.
    #[inline(always)]
    unsafe fn note(&mut self, hot: &Hot) {
        let bit = self.bit(hot);
        let mark = bit.min(u32::MAX as usize - 1) as u32;
        // SAFETY: `new` checked that there is a mark for each MCU and one more, and what is met ends with u32::MAX.
        unsafe {
            if !self.mark.is_null() {
                self.mark = self.mark.add(1);
                *self.mark = mark;
            }
            while *self.meet < mark {
                self.meet = self.meet.add(1);
            }
            self.met = *self.meet == mark;
        }
        self.over = self.met || bit > self.until;
    }

    /// The stream is over.
    #[inline(always)]
    fn stop(&mut self, hot: &Hot) -> bool {
        self.hot = *hot;
        self.over = true;
        false
    }

    /// CodeTable led astray: damage, or a wrong guess of where an MCU begins. False if the stream is over.
    ///
    /// # Safety
    /// As for [`Stream::turn`].
    #[inline(always)]
    unsafe fn astray(&mut self, hot: &mut Hot, damage: Damage) -> bool {
        self.hot = *hot;
        // SAFETY: the caller's promise.
        let goes_on = unsafe { self.recover(damage) };
        *hot = self.hot;
        goes_on
    }

    /// As [`Stream::astray`]; apart, and without a reference to what the loops keep in registers.
    #[cold]
    #[inline(never)]
    unsafe fn recover(&mut self, mut damage: Damage) -> bool {
        let (mut hot, count) = (self.hot, self.tables.len());
        loop {
            let next = (self.done() / count + 1) * count;
            if !self.guess || hot.input > self.guard || next >= self.blocks {
                self.damage = Some(damage);
                return self.stop(&hot);
            }
            let passed = next - self.done();
            // SAFETY: fewer blocks are passed over than are left, and there is a mark for each MCU.
            unsafe {
                hot.block = hot.block.add(passed * 64);
                self.last = self.last.add(passed);
                hot.refill();
                hot.take(1);
                // What was noted is not to be met: 0 is passed over.
                self.fresh.write_bytes(0, self.mark.offset_from(self.fresh) as usize + 1);
                self.mark = self.mark.add(1);
                *self.mark = self.bit(&hot).min(u32::MAX as usize - 1) as u32;
            }
            self.fresh = self.mark;
            self.left -= passed;
            self.lane = 0;
            // SAFETY: a block is left.
            match unsafe { self.begin(&mut hot) } {
                None => {
                    self.hot = hot;
                    return true;
                }
                Some(other) => damage = other,
            }
        }
    }

    /// Begins with the first block. False if the stream is over.
    ///
    /// # Safety
    /// The stream must not have begun.
    #[inline(always)]
    pub(crate) unsafe fn start(&mut self) -> bool {
        let mut hot = self.hot;
        // SAFETY: there is a block.
        let goes_on = unsafe {
            match self.begin(&mut hot) {
                None => true,
                Some(damage) => self.astray(&mut hot, damage),
            }
        };
        self.hot = hot;
        goes_on
    }

    /// Decodes the blocks that are left.
    ///
    /// # Safety
    /// The stream must have begun, unless it is over.
    #[inline(always)]
    pub(crate) unsafe fn rest(&mut self) {
        if self.over {
            return;
        }
        let mut hot = self.hot;
        // SAFETY: SYMBOLS look-ups follow each refill; what missed refills by itself.
        unsafe {
            loop {
                hot.refill();
                for _ in 0..Hot::SYMBOLS {
                    if let Some(entry) = hot.symbol()
                        && !self.turn(&mut hot, entry)
                    {
                        return;
                    }
                }
            }
        }
    }

    /// Where the stream stands, and what stopped it.
    #[inline(always)]
    pub(crate) fn close(&self, cursor: &mut BitCursor) -> Result<(), Stop> {
        let Hot { bits, state, input, .. } = self.hot;
        *cursor = BitCursor { bits, count: state & 63, byte: input.addr() - self.start.addr() };
        self.damage.map_or(Ok(()), |damage| Err((self.done(), damage)))
    }
}

/// Decodes until one of the two is over.
///
/// # Safety
/// Both must have begun.
#[inline(always)]
pub(crate) unsafe fn both(a: &mut Stream<'_>, b: &mut Stream<'_>) {
    let (mut hot_a, mut hot_b) = (a.hot, b.hot);
    // SAFETY: SYMBOLS look-ups follow each refill; what missed refills by itself.
    unsafe {
        loop {
            hot_a.refill();
            hot_b.refill();
            for _ in 0..Hot::SYMBOLS {
                if let Some(entry) = hot_a.symbol()
                    && !a.turn(&mut hot_a, entry)
                {
                    b.hot = hot_b;
                    return;
                }
                if let Some(entry) = hot_b.symbol()
                    && !b.turn(&mut hot_b, entry)
                {
                    a.hot = hot_a;
                    return;
                }
            }
        }
    }
}
