//! Huffman tables: from the counts and symbols of a DHT segment to what the entropy decoders look up, and a memory of
//! the tables built last, because most files share the standard ones.

/// Bits of a look-up in [`Table`]: with 12, four symbols need at most 48 of the 56 bits that a refill guarantees, one in
/// fifty is not finished, and two tables take 32 KiB, so that they stay in the first-level cache.
pub(crate) const LOOK: u32 = 12;

/// What stands in an entry of [`Table`] for the end of a block: more than a run can make of what may follow in a block.
pub(crate) const END: u32 = 80;
/// The same for an invalid code.
pub(crate) const BAD: u32 = 96;
/// The same for a code and magnitude that the look-up does not finish.
const MISS: u32 = 80 << 8;

/// A table as the file gives it: what follows class and number in a DHT segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spec<'a> {
    /// Number of codes of each length from 1 to 16 bits.
    pub counts: &'a [u8; 16],
    /// The symbols, in order of their codes.
    pub symbols: &'a [u8],
}

impl Spec<'_> {
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
pub(crate) struct Table {
    entries: Box<[u32; 1 << LOOK]>,
    codes: Codes,
}

/// Bits of a look-up in [`Codes`].
const SHORT: u32 = 9;

/// Decoding of codes without their magnitudes: short ones by look-up, others by comparing with the last code of each
/// length.
#[derive(Clone)]
pub(crate) struct Codes {
    /// `length << 8 | symbol` for the next [`SHORT`] bits, 0 where the code is longer.
    short: [u16; 1 << SHORT],
    /// First value of 16 bits that is beyond the codes of that length or shorter.
    beyond: [u32; 17],
    /// Index of the first symbol of that length, less its first code.
    offset: [i32; 17],
    symbols: [u8; 256],
}

impl Codes {
    pub(crate) fn new(spec: &Spec<'_>) -> Codes {
        let mut codes = Codes { short: [0; 1 << SHORT], beyond: [0; 17], offset: [0; 17], symbols: [0; 256] };
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

/// Coefficients and magnitude bits of an AC symbol.
fn split(symbol: u8) -> (u32, u32) {
    match (u32::from(symbol >> 4), u32::from(symbol & 15)) {
        (run, 0) if run != 15 => (END, 0),
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
    fn build(&mut self, spec: &Spec<'_>);
}

impl FromSpec for Codes {
    const BYTES: usize = 0;

    fn empty() -> Codes {
        Codes::new(&Spec { counts: &[0; 16], symbols: &[] })
    }

    fn build(&mut self, spec: &Spec<'_>) {
        *self = Codes::new(spec);
    }
}

impl FromSpec for Table {
    const BYTES: usize = size_of::<[u32; 1 << LOOK]>();

    fn empty() -> Table {
        Table { entries: Box::new([MISS; 1 << LOOK]), codes: Codes::empty() }
    }

    fn build(&mut self, spec: &Spec<'_>) {
        self.codes.build(spec);
        self.entries.fill(MISS);
        spec.each(|code, length, symbol| {
            if length > LOOK {
                return;
            }
            let (coefs, size) = split(symbol);
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

impl Table {
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
        let (coefs, size) = split(symbol);
        let v = (bits << length >> 1 >> (63 - size)) as i32;
        (length + size) | coefs << 8 | (extend(v, size) as u32) << 16
    }
}

/// Bits of a look-up in [`Skips`]: half as many bytes an entry as in [`Table`], and more symbols in each.
pub(crate) const SKIP_LOOK: u32 = 13;

/// Coefficients that the symbols of an entry pass at most: what [`END`] adds to them stays a negative i8 in the count of
/// those that may follow.
const SKIP_MOST: u16 = 47;

/// For passing over coefficients: an entry is the sum of all whole symbols in the next bits, `bits | coefficients << 8`.
/// Where there is none, no bits are consumed.
pub(crate) struct Skips {
    entries: Box<[u16; 1 << SKIP_LOOK]>,
}

/// Stands for [`END`] while sums are formed.
const SKIP_END: u16 = 1 << 15;

impl FromSpec for Skips {
    const BYTES: usize = size_of::<[u16; 1 << SKIP_LOOK]>();

    fn empty() -> Skips {
        Skips { entries: Box::new([0; 1 << SKIP_LOOK]) }
    }

    fn build(&mut self, spec: &Spec<'_>) {
        // The sums for each number of bits up to a look-up's, one after the other; 0 where there is no whole symbol, and
        // SKIP_END instead of END.
        let mut sums = [0; 2 << SKIP_LOOK];
        for look in 1..=SKIP_LOOK {
            let (smaller, here) = sums.split_at_mut(1 << look);
            let here = &mut here[..1 << look];
            spec.each(|code, length, symbol| {
                let (coefs, size) = split(symbol);
                let Some(left) = look.checked_sub(length + size) else { return };
                let symbol = match coefs {
                    END => (length as u16) | SKIP_END,
                    _ => (length + size) as u16 | (coefs as u16) << 8,
                };
                let after = &smaller[1 << left..2 << left];
                let first = (code << (look - length)) as usize;
                for values in here[first..first + (1 << (look - length))].chunks_exact_mut(1 << left) {
                    for (sum, &after) in values.iter_mut().zip(after) {
                        let fits = symbol < SKIP_END && (after >> 8 & 127) + (symbol >> 8) <= SKIP_MOST;
                        *sum = if fits { after + symbol } else { symbol };
                    }
                }
            });
        }
        for (entry, &sum) in self.entries.iter_mut().zip(&sums[1 << SKIP_LOOK..]) {
            *entry = match sum {
                0 => MISS as u16,
                _ if sum >= SKIP_END => sum - SKIP_END + ((END as u16) << 8),
                _ => sum,
            };
        }
    }
}

impl Skips {
    /// The entries, indexed by the next [`SKIP_LOOK`] bits.
    pub(crate) fn entries(&self) -> &[u16; 1 << SKIP_LOOK] {
        &self.entries
    }
}

/// What was made of the codes used last.
pub(crate) struct Recent<T> {
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

impl<T: FromSpec> Recent<T> {
    /// Bytes that are held at most.
    const BYTES: usize = SLOTS * (size_of::<Slot<T>>() + 256 + T::BYTES);

    fn new() -> Recent<T> {
        Recent { slots: Vec::new(), clock: 0 }
    }

    /// Index of what is made of `spec`, now unless remembered. It stays good for the next `SLOTS - 1` calls.
    pub(crate) fn prepare(&mut self, spec: &Spec<'_>) -> usize {
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
pub(crate) struct Memory {
    pub dc: Recent<Codes>,
    pub ac: Recent<Table>,
    pub skips: Recent<Skips>,
}

impl Memory {
    /// Bytes that are held at most.
    pub(crate) const BYTES: usize = Recent::<Codes>::BYTES + Recent::<Table>::BYTES + Recent::<Skips>::BYTES;

    pub(crate) fn new() -> Memory {
        Memory { dc: Recent::new(), ac: Recent::new(), skips: Recent::new() }
    }
}
