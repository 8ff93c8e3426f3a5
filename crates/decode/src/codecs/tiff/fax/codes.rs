//! Lookup tables of the codes of ITU-T T.4 and T.6, from the code lists of the crate `fax`, and a reader of bits.

use std::sync::LazyLock;

use fax::maps::{Mode, black, mode, white};

/// A code and its length in bits.
#[derive(Clone, Copy)]
struct Entry<T> {
    code: T,
    bits: u8,
}

/// A code of a one-dimensional row.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// Up to 63 pixels: the last code of a run.
    Terminating(u32),
    /// A multiple of 64 pixels, after which the run continues.
    MakeUp(u32),
    /// The first 11 bits of an end-of-line code, which are zeros. More zeros may follow before its last bit.
    EndOfLine,
    Invalid,
}

/// A code of a two-dimensional row.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Pass,
    Horizontal,
    /// The distance to the right of the change above.
    Vertical(i64),
    /// Uncompressed mode and other extensions.
    Extension,
    /// The first 7 bits of an end-of-line code.
    EndOfLine,
    Invalid,
}

/// Bits that are looked up at a time: the length of the longest code.
const WHITE_BITS: u32 = 12;
const BLACK_BITS: u32 = 13;
const MODE_BITS: u32 = 7;

/// Zeros at the beginning of an end-of-line code, by which it is recognised.
pub(super) const END_OF_LINE_ZEROS: u32 = 11;

/// Lookup tables by the next bits.
pub(super) struct Tables {
    white: Box<[Entry<Run>]>,
    black: Box<[Entry<Run>]>,
    mode: Box<[Entry<Change>]>,
}

pub(super) static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let run = |length: u16| match length {
        0..64 => Run::Terminating(length.into()),
        _ => Run::MakeUp(length.into()),
    };
    let runs = |codes: &[(u16, fax::Bits)], width| {
        let codes = codes.iter().map(|(length, bits)| (u32::from(bits.data), bits.len, run(*length)));
        table(width, Run::Invalid, codes.chain([(0, END_OF_LINE_ZEROS as u8, Run::EndOfLine)]))
    };
    let changes = mode::ENTRIES.iter().filter_map(|(mode, bits)| {
        let change = match mode {
            Mode::Pass => Change::Pass,
            Mode::Horizontal => Change::Horizontal,
            Mode::Vertical(distance) => Change::Vertical((*distance).into()),
            Mode::Extension => Change::Extension,
            Mode::EOF => return None,
        };
        Some((u32::from(bits.data), bits.len, change))
    });
    Tables {
        white: runs(&white::ENTRIES, WHITE_BITS),
        black: runs(&black::ENTRIES, BLACK_BITS),
        mode: table(MODE_BITS, Change::Invalid, changes.chain([(0, MODE_BITS as u8, Change::EndOfLine)])),
    }
});

/// Makes the table of codes (value, length, meaning) that is indexed by the next `width` bits.
fn table<T: Copy>(width: u32, invalid: T, codes: impl Iterator<Item = (u32, u8, T)>) -> Box<[Entry<T>]> {
    let mut table = vec![Entry { code: invalid, bits: 0 }; 1 << width].into_boxed_slice();
    for (value, bits, code) in codes {
        let unused = width - u32::from(bits);
        let first = (value as usize) << unused;
        table[first..first + (1 << unused)].fill(Entry { code, bits });
    }
    table
}

/// The data ended before the row did.
#[derive(Debug)]
pub(super) struct EndOfData;

/// Reads bits from the highest one of each byte. As in libtiff, a code that begins inside the data may end beyond it: zeros follow.
pub(super) struct BitReader<'a> {
    data: &'a [u8],
    at: u64,
    /// The number of bits that can be read, with zeros after the data.
    end: u64,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        BitReader { data, at: 0, end: 8 * data.len() as u64 }
    }

    /// Returns the next `count` ≤ 13 bits without consuming them.
    pub(super) fn peek(&mut self, count: u32) -> Result<u32, EndOfData> {
        if self.end - self.at < u64::from(count) {
            if self.end == self.at {
                return Err(EndOfData);
            }
            self.end = self.at + u64::from(count);
        }
        let first = (self.at / 8) as usize;
        let byte = |at: usize| u32::from(self.data.get(at).copied().unwrap_or(0));
        let bits = byte(first) << 16 | byte(first + 1) << 8 | byte(first + 2);
        Ok(bits >> (24 - self.at as u32 % 8 - count) & ((1 << count) - 1))
    }

    /// Consumes bits that [`peek`](Self::peek) returned.
    pub(super) fn consume(&mut self, count: u32) {
        self.at += u64::from(count);
    }

    /// Goes to the next byte.
    pub(super) fn align(&mut self) {
        self.at += (self.end - self.at) % 8;
    }

    pub(super) fn white(&mut self) -> Result<Run, EndOfData> {
        let entry = TABLES.white[self.peek(WHITE_BITS)? as usize];
        self.consume(entry.bits.into());
        Ok(entry.code)
    }

    pub(super) fn black(&mut self) -> Result<Run, EndOfData> {
        let entry = TABLES.black[self.peek(BLACK_BITS)? as usize];
        self.consume(entry.bits.into());
        Ok(entry.code)
    }

    pub(super) fn change(&mut self) -> Result<Change, EndOfData> {
        let entry = TABLES.mode[self.peek(MODE_BITS)? as usize];
        self.consume(entry.bits.into());
        Ok(entry.code)
    }
}
