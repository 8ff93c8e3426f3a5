//! The inner loop: Huffman codes to coefficients, one segment or two at a time.
//!
//! Decoding is a chain of dependent loads: shift, look up, shift. One look-up therefore yields all there is to know of a
//! coefficient (bits, run, value), a refill serves five of them, everything rare shares one branch with the end of the
//! block, and a second segment fills the time in which the first one waits.
//!
//! Memory safety rests on three things, checked in [`Job::stream`] and at the start of each block: the output has room
//! for its blocks and one more coefficient, the input is followed by [`SLACK`] bytes, and no block reads more than that.

use crate::error::Damage;
use crate::huffman::{LOOK, RUN_END, RUN_MISS, Table};
use crate::plain::SLACK;
use crate::standard::ZIGZAG;

/// Bytes that one block may take: 64 codes with their magnitudes of at most 31 bits, and what a refill looks ahead. A
/// block starts no nearer to the end of the slack.
const BLOCK_BYTES: usize = 64 * 31 / 8 + 16;
/// Symbols that a refill is enough for.
const SYMBOLS: u32 = 56 / LOOK;
const _: () = assert!(BLOCK_BYTES + 16 < SLACK);

/// The zigzag order, continued by an index beyond the block: where runs past its end, and all that is no coefficient, go.
static ORDER: [u8; 256] = {
    let mut order = [64; 256];
    let mut k = 0;
    while k < 64 {
        order[k] = ZIGZAG[k];
        k += 1;
    }
    order
};

/// Where a segment's decoding stands.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor {
    bits: u64,
    /// The low six bits say how many bits of `bits` are good.
    count: u64,
    byte: usize,
}

impl Cursor {
    /// A cursor at bit `bit` of `bytes`.
    pub(crate) fn at(bytes: &[u8], bit: usize) -> Cursor {
        let byte = bit / 8;
        let head = bytes.get(byte).copied().unwrap_or(0);
        let used = (bit % 8) as u64;
        Cursor { bits: u64::from(head) << 56 << used, count: 8 - used, byte: byte + 1 }
    }

    /// The next bit's number.
    pub(crate) fn bit(&self) -> usize {
        self.byte * 8 - (self.count & 63) as usize
    }
}

/// Blocks to decode from a cursor on.
pub(crate) struct Job<'a> {
    /// Where to start; afterwards, where it ended.
    pub cursor: &'a mut Cursor,
    /// Room for `blocks` blocks of 64 coefficients in natural order, all zero, and one coefficient more. DC is left as
    /// the difference that was coded.
    pub coefs: &'a mut [i16],
    /// For each block the index, in zigzag order, of the last coefficient that may differ from 0.
    pub last: &'a mut [u8],
    /// Number of blocks.
    pub blocks: usize,
}

/// The DC and AC table of each block of an MCU, in order.
pub(crate) type Tables<'a> = [(&'a Table, &'a Table)];

/// A block, counted from the job's first, at which decoding stopped, and why.
pub(crate) type Stop = (usize, Damage);

/// Decodes one job. `bytes` are data from [`crate::plain::Plain::bytes`]. The first block is the first of an MCU.
pub(crate) fn decode(fast: bool, bytes: &[u8], tables: &Tables<'_>, job: Job<'_>) -> Result<(), Stop> {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: `fast` is only true where the processor was found to have these features.
        return unsafe { one_bmi2(bytes, tables, job) };
    }
    let _ = fast;
    one(bytes, tables, job)
}

/// Decodes two jobs at once; what stopped each of them.
pub(crate) fn decode_two(
    fast: bool,
    bytes: &[u8],
    tables: &Tables<'_>,
    jobs: (Job<'_>, Job<'_>),
) -> (Result<(), Stop>, Result<(), Stop>) {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: `fast` is only true where the processor was found to have these features.
        return unsafe { two_bmi2(bytes, tables, jobs) };
    }
    let _ = fast;
    two(bytes, tables, jobs)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn one_bmi2(bytes: &[u8], tables: &Tables<'_>, job: Job<'_>) -> Result<(), Stop> {
    one(bytes, tables, job)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn two_bmi2(bytes: &[u8], tables: &Tables<'_>, jobs: (Job<'_>, Job<'_>)) -> (Result<(), Stop>, Result<(), Stop>) {
    two(bytes, tables, jobs)
}

#[inline(always)]
fn one(bytes: &[u8], tables: &Tables<'_>, job: Job<'_>) -> Result<(), Stop> {
    let Some((mut a, cursor)) = job.stream(bytes, tables) else { return Ok(()) };
    // SAFETY: `a` comes from `stream`, which checked its buffers.
    unsafe { a.finish() };
    a.close(bytes, cursor)
}

#[inline(always)]
fn two(bytes: &[u8], tables: &Tables<'_>, (a, b): (Job<'_>, Job<'_>)) -> (Result<(), Stop>, Result<(), Stop>) {
    match (a.stream(bytes, tables), b.stream(bytes, tables)) {
        (Some((mut a, cursor_a)), Some((mut b, cursor_b))) => {
            // SAFETY: both come from `stream`, which checked their buffers; none is used after it said that it ended.
            unsafe {
                let (go_a, go_b) = (a.begin(), b.begin());
                if go_a && go_b {
                    'both: loop {
                        a.refill();
                        b.refill();
                        for _ in 0..SYMBOLS {
                            let go_a = a.symbol();
                            let go_b = b.symbol();
                            if !(go_a && go_b) {
                                break 'both;
                            }
                        }
                    }
                }
                a.rest();
                b.rest();
            }
            (a.close(bytes, cursor_a), b.close(bytes, cursor_b))
        }
        (a, b) => {
            let run = |s: Option<(Stream<'_>, &mut Cursor)>| match s {
                Some((mut s, cursor)) => {
                    // SAFETY: `s` comes from `stream`, which checked its buffers.
                    unsafe { s.finish() };
                    s.close(bytes, cursor)
                }
                None => Ok(()),
            };
            (run(a), run(b))
        }
    }
}

impl<'a> Job<'a> {
    /// The job as pointers; `None` if it has no blocks.
    ///
    /// # Panics
    /// If the buffers are too small for what the job says: that is a mistake of this crate, and what follows trusts it.
    #[inline(always)]
    fn stream(self, bytes: &'a [u8], tables: &'a Tables<'a>) -> Option<(Stream<'a>, &'a mut Cursor)> {
        assert!(self.coefs.len() > self.blocks * 64 && self.last.len() >= self.blocks && !tables.is_empty());
        assert!(bytes.len() >= SLACK && self.cursor.byte <= bytes.len());
        if self.blocks == 0 {
            return None;
        }
        let input = bytes.as_ptr_range();
        let stream = Stream {
            bits: self.cursor.bits,
            count: self.cursor.count,
            // SAFETY: the assertion above keeps it inside `bytes`.
            input: unsafe { input.start.add(self.cursor.byte) },
            // SAFETY: `bytes` has at least SLACK bytes.
            guard: unsafe { input.end.sub(BLOCK_BYTES) },
            order: ORDER.as_ptr(),
            block: self.coefs.as_mut_ptr(),
            last: self.last.as_mut_ptr(),
            ac: tables[0].1.entries().as_ptr(),
            left: self.blocks,
            blocks: self.blocks,
            table: 0,
            tables,
            damage: None,
        };
        Some((stream, self.cursor))
    }
}

/// One segment being decoded.
struct Stream<'a> {
    bits: u64,
    count: u64,
    input: *const u8,
    /// No block may start beyond this: it might read past the slack.
    guard: *const u8,
    /// Walks [`ORDER`] in place of an index.
    order: *const u8,
    block: *mut i16,
    last: *mut u8,
    ac: *const u32,
    left: usize,
    blocks: usize,
    table: usize,
    tables: &'a Tables<'a>,
    damage: Option<Damage>,
}

impl Stream<'_> {
    /// Tops up to at least 56 bits.
    ///
    /// # Safety
    /// At least 8 bytes must follow `input` in its buffer.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        let n = self.count & 63;
        // SAFETY: the caller's promise.
        unsafe {
            self.bits |= u64::from_be_bytes(self.input.cast::<[u8; 8]>().read()) >> n;
            self.input = self.input.add(((63 - n) >> 3) as usize);
        }
        self.count = n | 56;
    }

    /// Drops the bits of an entry; its upper bits do not reach the six that count.
    #[inline(always)]
    fn take(&mut self, entry: u32) {
        self.bits <<= entry & 63;
        self.count = self.count.wrapping_sub(u64::from(entry));
    }

    /// Starts a block with its DC difference. False if the segment is over or damaged.
    ///
    /// # Safety
    /// `block` must have room for 65 coefficients.
    #[inline(always)]
    unsafe fn begin(&mut self) -> bool {
        if self.input > self.guard {
            self.damage = Some(Damage::Ends);
            return false;
        }
        let (dc, ac) = self.tables[self.table];
        // SAFETY: from the guard on there are BLOCK_BYTES, which no block can exceed. `block` is the caller's promise.
        unsafe {
            self.refill();
            let mut entry = dc.entries()[(self.bits >> (64 - LOOK)) as usize];
            if entry >> 8 & 255 == RUN_MISS {
                entry = dc.finish(entry, self.bits);
                if entry >> 8 & 255 != 0 {
                    self.damage = Some(Damage::Code);
                    return false;
                }
            }
            self.take(entry);
            *self.block = (entry >> 16) as i16;
            self.refill();
        }
        // SAFETY: ORDER has 256 entries.
        self.order = unsafe { ORDER.as_ptr().add(1) };
        self.ac = ac.entries().as_ptr();
        true
    }

    /// Decodes one symbol, at the end of a block also the next block's DC. False if the segment is over or damaged.
    ///
    /// # Safety
    /// The block must have been begun, and at least [`LOOK`] bits must be there.
    #[inline(always)]
    unsafe fn symbol(&mut self) -> bool {
        // SAFETY: LOOK bits index a table of that size. `order` is at most 63 here, a run at most 176 (RUN_END + 15), and ORDER
        // has 256 entries, each of at most 64, for which `block` has room.
        unsafe {
            let entry = *self.ac.add((self.bits >> (64 - LOOK)) as usize);
            self.take(entry);
            let at = self.order.add((entry >> 8 & 255) as usize);
            *self.block.add(usize::from(*at)) = (entry >> 16) as i16;
            self.order = at.add(1);
            if self.order >= ORDER.as_ptr().add(64) { self.turn(entry) } else { true }
        }
    }

    /// What to do where a symbol led past the block's last coefficient but one.
    ///
    /// # Safety
    /// As for [`Stream::symbol`].
    #[inline(always)]
    unsafe fn turn(&mut self, entry: u32) -> bool {
        // SAFETY: see the single steps: `order` was below 64 before a miss, and `finish` gives runs as a table does.
        unsafe {
            let mut index = self.order.offset_from(ORDER.as_ptr()) as usize - 1;
            if entry >> 8 & 255 == RUN_MISS {
                self.refill();
                let entry = self.tables[self.table].1.finish(entry, self.bits);
                self.take(entry);
                self.refill();
                index = index - RUN_MISS as usize + (entry >> 8 & 255) as usize;
                *self.block.add(usize::from(ORDER[index])) = (entry >> 16) as i16;
                self.order = ORDER.as_ptr().add(index + 1);
                if index < 63 {
                    return true;
                }
            }
            *self.last = match index {
                63 => 63,
                // The end came where the next coefficient would have been.
                _ if index > RUN_END as usize => (index - RUN_END as usize - 1) as u8,
                64..=78 => {
                    self.damage = Some(Damage::Block);
                    return false;
                }
                _ => {
                    self.damage = Some(Damage::Code);
                    return false;
                }
            };
            self.last = self.last.add(1);
            self.block = self.block.add(64);
            self.left -= 1;
            self.table += 1;
            if self.table == self.tables.len() {
                self.table = 0;
            }
            self.left > 0 && self.begin()
        }
    }

    /// Decodes all blocks.
    ///
    /// # Safety
    /// The stream must come from [`Job::stream`] and not have begun.
    #[inline(always)]
    unsafe fn finish(&mut self) {
        // SAFETY: `stream` checked the buffers.
        unsafe {
            if self.begin() {
                self.rest();
            }
        }
    }

    /// Decodes the blocks that are left.
    ///
    /// # Safety
    /// The stream must have begun, unless it is over or damaged.
    #[inline(always)]
    unsafe fn rest(&mut self) {
        if self.left == 0 || self.damage.is_some() {
            return;
        }
        // SAFETY: SYMBOLS symbols of at most LOOK bits follow each refill; a symbol that missed refills by itself.
        unsafe {
            loop {
                self.refill();
                for _ in 0..SYMBOLS {
                    if !self.symbol() {
                        return;
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn close(self, bytes: &[u8], cursor: &mut Cursor) -> Result<(), Stop> {
        *cursor = Cursor { bits: self.bits, count: self.count & 63, byte: self.input.addr() - bytes.as_ptr().addr() };
        self.damage.map_or(Ok(()), |damage| Err((self.blocks - self.left, damage)))
    }
}
