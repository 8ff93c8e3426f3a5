//! Huffman tables: from the counts and symbols of a DHT segment to what the entropy decoders look up, and a memory of
//! the tables built last, because most files share the standard ones.

/// Bits of a look-up in [`Table`]: with 11, five symbols need at most 55 of the 56 bits that a refill guarantees, and two
/// pairs of tables take 32 KiB, so that they stay in the first-level cache.
pub(crate) const LOOK: u32 = 11;

/// Run of an entry of [`Table`] whose code and magnitude are not finished by the look-up.
pub(crate) const RUN_MISS: u32 = 80;
/// Run that stands for an invalid code.
pub(crate) const RUN_BAD: u32 = 96;
/// Run that stands for the end of a block.
pub(crate) const RUN_END: u32 = 160;

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

/// What a code's symbol stands for: DC differences and AC coefficients use the same entries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The symbol is the number of magnitude bits.
    Dc,
    /// The symbol is a run of zeros and the number of magnitude bits.
    Ac,
}

/// The decoder's table: an entry is what to do with the next bits, all at once.
///
/// `bits consumed | run << 8 | value << 16`, value being the finished coefficient. Where code and magnitude together are
/// longer than the look-up, nothing is consumed, the run is [`RUN_MISS`], and the value holds `length << 8 | symbol`, or
/// 0 where even the code is longer.
pub(crate) struct Table {
    entries: Box<[u32; 1 << LOOK]>,
    codes: Codes,
    class: Class,
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
pub(crate) fn extend(v: i32, size: u32) -> i32 {
    if size > 0 && v < 1 << (size - 1) { v - ((1 << size) - 1) } else { v }
}

fn split(symbol: u8, class: Class) -> (u32, u32) {
    match class {
        Class::Dc => (0, u32::from(symbol & 15)),
        Class::Ac => match (u32::from(symbol >> 4), u32::from(symbol & 15)) {
            (run, 0) if run != 15 => (RUN_END, 0),
            both => both,
        },
    }
}

impl Table {
    /// An empty table, to be filled by [`Table::build`].
    pub(crate) fn new() -> Table {
        let empty = Spec { counts: &[0; 16], symbols: &[] };
        Table { entries: Box::new([RUN_MISS << 8; 1 << LOOK]), codes: Codes::new(&empty), class: Class::Dc }
    }

    /// Makes this the table of `spec`.
    pub(crate) fn build(&mut self, spec: &Spec<'_>, class: Class) {
        self.codes = Codes::new(spec);
        self.class = class;
        self.entries.fill(RUN_MISS << 8);
        spec.each(|code, length, symbol| {
            if length > LOOK {
                return;
            }
            let (run, size) = split(symbol, class);
            let first = (code << (LOOK - length)) as usize;
            let here = &mut self.entries[first..first + (1 << (LOOK - length))];
            if length + size > LOOK {
                return here.fill(RUN_MISS << 8 | (length << 8 | u32::from(symbol)) << 16);
            }
            let share = 1usize << (LOOK - length - size);
            for (v, part) in here.chunks_exact_mut(share).enumerate() {
                part.fill((length + size) | run << 8 | (extend(v as i32, size) as u32) << 16);
            }
        });
    }

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
                None => return 1 | RUN_BAD << 8,
            },
            _ => (known >> 8, known as u8),
        };
        let (run, size) = split(symbol, self.class);
        let v = (bits << length >> 1 >> (63 - size)) as i32;
        (length + size) | run << 8 | (extend(v, size) as u32) << 16
    }
}

/// The tables built last, by content.
pub(crate) struct Memory {
    slots: Vec<Slot>,
    clock: u64,
}

struct Slot {
    class: Class,
    counts: [u8; 16],
    symbols: Vec<u8>,
    used: u64,
    table: Table,
}

/// More than the eight tables that one scan can name, so that what one image uses never displaces itself.
const SLOTS: usize = 16;

impl Memory {
    /// Bytes that are held at most.
    pub(crate) const BYTES: usize = SLOTS * (size_of::<Slot>() + 256 + size_of::<[u32; 1 << LOOK]>());

    pub(crate) fn new() -> Memory {
        Memory { slots: Vec::new(), clock: 0 }
    }

    /// Index of the table for `spec`, built now unless remembered. It stays good for the next `SLOTS - 1` calls.
    pub(crate) fn prepare(&mut self, spec: &Spec<'_>, class: Class) -> usize {
        self.clock += 1;
        let same = |s: &Slot| s.class == class && s.counts == *spec.counts && s.symbols == spec.symbols;
        let index = self.slots.iter().position(same).unwrap_or_else(|| {
            let index = if self.slots.len() < SLOTS {
                self.slots.reserve_exact(SLOTS - self.slots.len());
                let symbols = Vec::with_capacity(256);
                self.slots.push(Slot { class, counts: [0; 16], symbols, used: 0, table: Table::new() });
                self.slots.len() - 1
            } else {
                (0..SLOTS).min_by_key(|&i| self.slots[i].used).unwrap_or(0)
            };
            let slot = &mut self.slots[index];
            slot.class = class;
            slot.counts = *spec.counts;
            slot.symbols.clear();
            slot.symbols.extend_from_slice(spec.symbols);
            slot.table.build(spec, class);
            index
        });
        self.slots[index].used = self.clock;
        index
    }

    pub(crate) fn get(&self, index: usize) -> &Table {
        &self.slots[index].table
    }
}
