//! Huffman tables: from the counts and symbols of a DHT segment to what the entropy decoders look up, and a memory of
//! the tables built last, because most files share the standard ones.

/// BitReader of a look-up in [`CoefficientTable`]: with 12, four symbols need at most 48 of the 56 bits that a refill guarantees, one in
/// fifty is not finished, and two tables take 32 KiB, so that they stay in the first-level cache.
pub(crate) const LOOK: u32 = 12;

/// What stands in an entry of [`CoefficientTable`] for the end of a block: more than a run can make of what may follow in a block.
pub(crate) const END: u32 = 80;
/// The same for an invalid code.
pub(crate) const BAD: u32 = 96;
/// The same for a code and magnitude that the look-up does not finish.
const MISS: u32 = 80 << 8;

/// A table as the file gives it: what follows class and number in a DHT segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HuffmanSpec<'a> {
    /// Number of codes of each length from 1 to 16 bits.
    pub counts: &'a [u8; 16],
    /// The symbols, in order of their codes.
    pub symbols: &'a [u8],
}

impl HuffmanSpec<'_> {
    /// Whether the counts describe a prefix code over the symbols.
    pub(crate) fn is_code(&self) -> bool {
        let mut left = 1i32;
        for &count in self.counts {
            left = (left << 1) - i32::from(count);
            if left < 0 {
                return false;
            }
        }
        self.symbols.len() == self.counts.iter().map(|&c| usize::from(c)).sum::<usize>()
    }

    /// Calls `f` with every (code, length in bits, symbol), in the order of the codes.
    pub(crate) fn each(&self, mut f: impl FnMut(u32, u32, u8)) {
        let (mut code, mut symbols) = (0u32, self.symbols.iter());
        for (length, &count) in (1u32..).zip(self.counts) {
            for &symbol in symbols.by_ref().take(usize::from(count)) {
                f(code, length, symbol);
                code += 1;
            }
            code <<= 1;
        }
    }
}

/// The decoder's table: an entry is what to do with the next bits, all at once.
///
/// `bits consumed | coefficients << 8 | value << 16`: coefficients are those of the run and the one after it, value is the
/// finished one. Where code and magnitude together are longer than the look-up, no bits are consumed, and the value holds
/// `length << 8 | symbol`, or 0 where even the code is longer.
pub(crate) struct CoefficientTable {
    entries: Box<[u32; 1 << LOOK]>,
    codes: CodeTable,
}

/// BitReader of a look-up in [`CodeTable`].
const SHORT: u32 = 9;

/// Decoding of codes without their magnitudes: short ones by look-up, others by comparing with the last code of each
/// length.
#[derive(Clone)]
pub(crate) struct CodeTable {
    /// `length << 8 | symbol` for the next [`SHORT`] bits, 0 where the code is longer.
    short: [u16; 1 << SHORT],
    /// First value of 16 bits that is beyond the codes of that length or shorter.
    beyond: [u32; 17],
    /// Index of the first symbol of that length, less its first code.
    offset: [i32; 17],
    symbols: [u8; 256],
}

impl CodeTable {
    pub(crate) fn new(spec: &HuffmanSpec<'_>) -> CodeTable {
        let mut codes = CodeTable { short: [0; 1 << SHORT], beyond: [0; 17], offset: [0; 17], symbols: [0; 256] };
        spec.each(|code, length, symbol| {
            if length <= SHORT {
                let first = (code << (SHORT - length)) as usize;
                codes.short[first..first + (1 << (SHORT - length))].fill((length << 8) as u16 | u16::from(symbol));
            }
        });
        let n = spec.symbols.len().min(256);
        codes.symbols[..n].copy_from_slice(&spec.symbols[..n]);
        let (mut code, mut index) = (0u32, 0u32);
        for length in 1..=16 {
            let count = u32::from(spec.counts[length - 1]);
            codes.offset[length] = index as i32 - code as i32;
            code += count;
            index += count;
            codes.beyond[length] = code << (16 - length);
            code <<= 1;
        }
        codes
    }

    /// The code at the start of `bits`, as (length, symbol).
    #[inline]
    pub(crate) fn find(&self, bits: u64) -> Option<(u32, u8)> {
        match self.short[(bits >> (64 - SHORT)) as usize] {
            0 => self.find_long(bits),
            entry => Some((u32::from(entry >> 8), entry as u8)),
        }
    }

    fn find_long(&self, bits: u64) -> Option<(u32, u8)> {
        let head = (bits >> 48) as u32;
        (SHORT + 1..=16).find(|&l| head < self.beyond[l as usize]).map(|l| {
            let index = (head >> (16 - l)) as i32 + self.offset[l as usize];
            (l, self.symbols[(index & 255) as usize])
        })
    }
}

/// The value that `size` magnitude bits `v` stand for (ITU-T T.81, F.2.2.1, EXTEND).
#[inline(always)]
pub(crate) fn extend(v: i32, size: u32) -> i32 {
    let negative = (v - (1 << size >> 1)) >> 31;
    v + (negative & (1 - (1 << size)))
}

/// Coefficients and magnitude bits of an AC symbol; `end` stands for the end of the block.
fn split(symbol: u8, end: u32) -> (u32, u32) {
    match (u32::from(symbol >> 4), u32::from(symbol & 15)) {
        (run, 0) if run != 15 => (end, 0),
        (run, size) => (run + 1, size),
    }
}

/// What is made of a code.
pub(crate) trait FromSpec {
    /// Bytes on the heap.
    const BYTES: usize;
    /// Of no code; to be filled by [`FromSpec::build`].
    fn empty() -> Self;
    /// Makes this that of `spec`.
    fn build(&mut self, spec: &HuffmanSpec<'_>);
}

impl FromSpec for CodeTable {
    const BYTES: usize = 0;

    fn empty() -> CodeTable {
        CodeTable::new(&HuffmanSpec { counts: &[0; 16], symbols: &[] })
    }

    fn build(&mut self, spec: &HuffmanSpec<'_>) {
        *self = CodeTable::new(spec);
    }
}

impl FromSpec for CoefficientTable {
    const BYTES: usize = size_of::<[u32; 1 << LOOK]>();

    fn empty() -> CoefficientTable {
        CoefficientTable { entries: Box::new([MISS; 1 << LOOK]), codes: CodeTable::empty() }
    }

    fn build(&mut self, spec: &HuffmanSpec<'_>) {
        self.codes.build(spec);
        self.entries.fill(MISS);
        spec.each(|code, length, symbol| {
            if length > LOOK {
                return;
            }
            let (coefs, size) = split(symbol, END);
            let first = (code << (LOOK - length)) as usize;
            let here = &mut self.entries[first..first + (1 << (LOOK - length))];
            if length + size > LOOK {
                return here.fill(MISS | (length << 8 | u32::from(symbol)) << 16);
            }
            let share = 1usize << (LOOK - length - size);
            for (v, part) in here.chunks_exact_mut(share).enumerate() {
                part.fill((length + size) | coefs << 8 | (extend(v as i32, size) as u32) << 16);
            }
        });
    }
}

impl CoefficientTable {
    /// The entries, indexed by the next [`LOOK`] bits.
    pub(crate) fn entries(&self) -> &[u32; 1 << LOOK] {
        &self.entries
    }

    /// Finishes a look-up that missed: the full entry for the code at the start of `bits`.
    #[cold]
    #[inline(never)]
    pub(crate) fn finish(&self, miss: u32, bits: u64) -> u32 {
        let known = miss >> 16;
        let (length, symbol) = match known {
            0 => match self.codes.find(bits) {
                Some(found) => found,
                None => return 1 | BAD << 8,
            },
            _ => (known >> 8, known as u8),
        };
        let (coefs, size) = split(symbol, END);
        let v = (bits << length >> 1 >> (63 - size)) as i32;
        (length + size) | coefs << 8 | (extend(v, size) as u32) << 16
    }
}

/// BitReader of a look-up in the [`ScanTable`] of AC codes: more of them than in [`CoefficientTable`], in entries of half the size.
pub(crate) const SKIP_LOOK: u32 = 12;
/// The same for DC codes.
const SKIP_DC_LOOK: u32 = 8;
const _: () =
    assert!((SKIP_LOOK - SKIP_DC_LOOK).is_multiple_of(2), "`ScanTable::key` counts in bytes, and entries have two");

/// BitReader that a look-up passes over at most.
pub(crate) const SKIP_BITS: u16 = 19;
/// In an entry of [`ScanTable`], the bit that stands for the end of a block, or of a DC.
pub(crate) const SKIP_END: u16 = 1;
/// Where the coefficients are in an entry, above that.
pub(crate) const SKIP_COEFS: u32 = 1;
/// Where the bits are, above those.
pub(crate) const SKIP_SHIFT: u32 = 8;
/// An entry for a code that the look-up does not finish: more coefficients than a block has, and no bits.
const SKIP_MISS: u16 = 64 << SKIP_COEFS;
/// Coefficients in an entry at most, and what a full block has.
pub(crate) const SKIP_MOST: u16 = 63;

/// An entry of [`ScanTable`] for one symbol, whose code has that length. The end of a block counts as a coefficient, so that it
/// is one too many where a block is full.
pub(crate) fn skip(dc: bool, length: u32, symbol: u8) -> u16 {
    let (coefs, size) = if dc { (0, symbol.into()) } else { split(symbol, 0) };
    let end = if coefs == 0 { SKIP_END } else { 0 };
    ((length + size) as u16) << SKIP_SHIFT | (coefs.max(1) as u16) << SKIP_COEFS | end
}

/// For passing over codes with their magnitudes, of DC or of AC: an entry is the sum of all symbols whose codes are
/// within the next bits, up to the end of a block: `end | coefficients << 1 | bits << 8`. The last magnitude may go
/// beyond.
pub(crate) struct ScanTable<const DC: bool> {
    lines: Box<[Line]>,
    pub codes: CodeTable,
}

/// Entries that share a line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u16; 32]);

impl<const DC: bool> ScanTable<DC> {
    const LOOK: u32 = if DC { SKIP_DC_LOOK } else { SKIP_LOOK };
    /// Index of the first entry in the lines: see [`ScanTable::key`].
    const FIRST: usize = (SKIP_LOOK - Self::LOOK) as usize / 2;
    const LINES: usize = (Self::FIRST + (1 << Self::LOOK)).div_ceil(32);

    /// A pointer that says where the entries are and how long a look-up is, so that both need but one register: its low
    /// six bits are the bits of 64 that are not looked up, and the entries begin [`SKIP_LOOK`] bytes after it.
    pub(crate) fn key(&self) -> *const u8 {
        self.lines.as_ptr().cast::<u8>().wrapping_sub(Self::LOOK as usize)
    }
}

impl<const DC: bool> FromSpec for ScanTable<DC> {
    const BYTES: usize = Self::LINES * size_of::<Line>();

    fn empty() -> ScanTable<DC> {
        ScanTable { lines: vec![Line([SKIP_MISS; 32]); Self::LINES].into(), codes: CodeTable::empty() }
    }

    fn build(&mut self, spec: &HuffmanSpec<'_>) {
        self.codes.build(spec);
        // The sums for each number of bits up to a look-up's, one after the other; 0 where there is no whole code.
        let mut sums = [0; 2 << SKIP_LOOK];
        let shortest = spec.counts.iter().position(|&n| n > 0).unwrap_or(0) as u32 + 1;
        // The most bits that are left after a symbol other than the end.
        let mut left = 0;
        spec.each(|_, length, symbol| {
            let entry = skip(DC, length, symbol);
            if entry & SKIP_END == 0 {
                left = left.max(Self::LOOK.saturating_sub((entry >> SKIP_SHIFT).into()));
            }
        });
        for look in (shortest..=left).chain([Self::LOOK]) {
            let (smaller, here) = sums.split_at_mut(1 << look);
            let here = &mut here[..1 << look];
            spec.each(|code, length, symbol| {
                let Some(left) = look.checked_sub(length) else { return };
                let entry = skip(DC, length, symbol);
                let bits = entry >> SKIP_SHIFT;
                let here = &mut here[(code << left) as usize..][..1 << left];
                let after = look.checked_sub(bits.into()).filter(|&after| entry & SKIP_END == 0 && after >= shortest);
                let Some(after) = after else {
                    here.fill(if bits <= SKIP_BITS { entry } else { 0 });
                    return;
                };
                let after = &smaller[1 << after..2 << after];
                let coefs = |entry| (entry & 255) >> SKIP_COEFS;
                for values in here.chunks_exact_mut(after.len()) {
                    for (sum, &after) in values.iter_mut().zip(after) {
                        let fits =
                            (after >> SKIP_SHIFT) + bits <= SKIP_BITS && coefs(after) + coefs(entry) <= SKIP_MOST;
                        *sum = if fits { entry + after } else { entry };
                    }
                }
            });
        }
        let entries = &mut sums[1 << Self::LOOK..2 << Self::LOOK];
        entries.iter_mut().filter(|entry| **entry == 0).for_each(|entry| *entry = SKIP_MISS);
        let (first, others) = entries.split_at(32 - Self::FIRST);
        self.lines[0].0[Self::FIRST..].copy_from_slice(first);
        for (line, entries) in self.lines[1..].iter_mut().zip(others.chunks(32)) {
            line.0[..entries.len()].copy_from_slice(entries);
        }
    }
}

/// What was made of the codes used last.
pub(crate) struct TableCache<T> {
    slots: Vec<Slot<T>>,
    clock: u64,
}

struct Slot<T> {
    counts: [u8; 16],
    symbols: Vec<u8>,
    used: u64,
    made: T,
}

/// More than the three tables of a class that one scan can name, so that what one image uses never displaces itself.
const SLOTS: usize = 4;

impl<T: FromSpec> TableCache<T> {
    /// Bytes that are held at most.
    const BYTES: usize = SLOTS * (size_of::<Slot<T>>() + 256 + T::BYTES);

    fn new() -> TableCache<T> {
        TableCache { slots: Vec::new(), clock: 0 }
    }

    /// Index of what is made of `spec`, now unless remembered. It stays good for the next `SLOTS - 1` calls.
    pub(crate) fn prepare(&mut self, spec: &HuffmanSpec<'_>) -> usize {
        self.clock += 1;
        let same = |s: &Slot<T>| s.counts == *spec.counts && s.symbols == spec.symbols;
        let index = self.slots.iter().position(same).unwrap_or_else(|| {
            let index = if self.slots.len() < SLOTS {
                self.slots.reserve_exact(SLOTS - self.slots.len());
                let symbols = Vec::with_capacity(256);
                self.slots.push(Slot { counts: [0; 16], symbols, used: 0, made: T::empty() });
                self.slots.len() - 1
            } else {
                (0..SLOTS).min_by_key(|&i| self.slots[i].used).unwrap_or(0)
            };
            let slot = &mut self.slots[index];
            slot.counts = *spec.counts;
            slot.symbols.clear();
            slot.symbols.extend_from_slice(spec.symbols);
            slot.made.build(spec);
            index
        });
        self.slots[index].used = self.clock;
        index
    }

    pub(crate) fn get(&self, index: usize) -> &T {
        &self.slots[index].made
    }
}

/// The tables built last, by content: most files share the standard ones.
pub(crate) struct TableCaches {
    pub dc: TableCache<CodeTable>,
    pub ac: TableCache<CoefficientTable>,
    pub dc_skips: TableCache<ScanTable<true>>,
    pub ac_skips: TableCache<ScanTable<false>>,
}

impl TableCaches {
    /// Bytes that are held at most.
    pub(crate) const BYTES: usize = TableCache::<CodeTable>::BYTES
        + TableCache::<CoefficientTable>::BYTES
        + TableCache::<ScanTable<true>>::BYTES
        + TableCache::<ScanTable<false>>::BYTES;

    pub(crate) fn new() -> TableCaches {
        TableCaches {
            dc: TableCache::new(),
            ac: TableCache::new(),
            dc_skips: TableCache::new(),
            ac_skips: TableCache::new(),
        }
    }
}
