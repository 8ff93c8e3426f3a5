//! How the coefficients of a group of blocks are split into streams of bytes, and put together again.

use super::baseline::Block;
use super::level::Level;
use super::simd;

/// Natural positions of zigzag indices (T.81, figure A.6).
pub(crate) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];
/// The byte of a value that does not fit, which is among the wide ones.
pub(crate) const WIDE: u8 = 0x80;
/// Bytes after a stream, so that vectors can be loaded beyond its end.
pub(crate) const SLACK: usize = 64;
/// Streams of luma, or of chroma.
const OF_CLASS: usize = 14;
pub(crate) const COUNTS: usize = 0;
pub(crate) const DC: usize = 1;
pub(crate) const MASKS: usize = 2;
pub(crate) const VALUES: usize = 10;

/// How coefficients are split. All are a byte for the number of mask bytes of a block, these bytes (a bit for each coefficient in
/// zigzag order that is not 0), a byte for each such coefficient, and one for the DC difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A stream for each mask byte, and for values at zigzag indices to 7, 15, 31 and 63.
    Bands,
    /// One stream of counts and masks, and one of values.
    Plain,
    /// The symbols of T.81 (runs and sizes) as bytes, and the magnitude bits as they are.
    Symbols,
}

/// Streams of a group: those of luma, then those of chroma.
#[derive(Clone, Default)]
pub(crate) struct Streams {
    pub(crate) bytes: Vec<Vec<u8>>,
    /// DC differences that are wide.
    pub(crate) wide_dc: Vec<i16>,
    /// Other wide values; of symbols, all magnitudes.
    pub(crate) wide: Vec<i16>,
    /// Magnitude bits of symbols.
    pub(crate) magnitude_bits: usize,
}

/// Returns the number of a stream of values at a zigzag index.
pub(crate) fn band(index: usize) -> usize {
    match index {
        ..8 => 0,
        8..16 => 1,
        16..32 => 2,
        _ => 3,
    }
}

/// Returns the byte of a value, and the value if it is wide.
fn narrow(value: i16) -> (u8, Option<i16>) {
    match i8::try_from(value) {
        Ok(byte) if byte != i8::MIN => (byte as u8, None),
        _ => (WIDE, Some(value)),
    }
}

fn size_of(value: i16) -> u32 {
    u16::BITS - value.unsigned_abs().leading_zeros()
}

impl Layout {
    /// Returns the place of a stream: of a class (0 luma, 1 chroma), [`COUNTS`], [`DC`], [`MASKS`] or [`VALUES`].
    pub(crate) fn stream(self, class: usize, part: usize) -> usize {
        let part = match (self, part) {
            (Layout::Bands, part) => part,
            (Layout::Plain, MASKS..VALUES) => COUNTS,
            (Layout::Plain, VALUES..) => VALUES,
            (_, part) => part,
        };
        class * OF_CLASS + part
    }

    /// Splits the blocks of components, the first of which is luma.
    pub(crate) fn split(self, components: &[&[Block]]) -> Streams {
        let mut streams = Streams { bytes: vec![vec![]; 2 * OF_CLASS], ..Streams::default() };
        for (number, blocks) in components.iter().enumerate() {
            let class = usize::from(number > 0);
            let mut before = 0;
            for block in *blocks {
                let difference = block[0].wrapping_sub(before);
                before = block[0];
                let (dc, wide) = narrow(difference);
                streams.bytes[self.stream(class, DC)].push(dc);
                streams.wide_dc.extend(wide);
                if self == Layout::Symbols {
                    self.push_symbols(class, block, &mut streams);
                } else {
                    self.push_masks(class, block, &mut streams);
                }
            }
        }
        streams
    }

    fn push_masks(self, class: usize, block: &Block, streams: &mut Streams) {
        let mask = (1..64).fold(0u64, |mask, k| mask | u64::from(block[k] != 0) << k);
        let count = 8 - mask.leading_zeros() as usize / 8;
        streams.bytes[self.stream(class, COUNTS)].push(count as u8);
        for at in 0..count {
            streams.bytes[self.stream(class, MASKS + at)].push((mask >> (8 * at)) as u8);
        }
        for k in (1..64).filter(|k| block[*k] != 0) {
            let (byte, wide) = narrow(block[k]);
            streams.bytes[self.stream(class, VALUES + band(k))].push(byte);
            streams.wide.extend(wide);
        }
    }

    fn push_symbols(self, class: usize, block: &Block, streams: &mut Streams) {
        let symbols = &mut streams.bytes[self.stream(class, VALUES)];
        let mut next = 1;
        for k in (1..64).filter(|k| block[*k] != 0) {
            symbols.extend((0..(k - next) / 16).map(|_| 0xf0));
            let size = size_of(block[k]);
            symbols.push((((k - next) % 16) << 4) as u8 | size as u8);
            streams.wide.push(block[k]);
            streams.magnitude_bits += size as usize;
            next = k + 1;
        }
        if next < 64 {
            symbols.push(0);
        }
    }

    /// Puts blocks together: natural order, multiplied by `quant`, which is in natural order for each class. `counts` are the blocks
    /// of each component; the streams have [`SLACK`] more bytes.
    pub(crate) fn join(self, level: Level, streams: &Streams, counts: &[usize], quant: &[Block; 2], out: &mut [Block]) {
        assert_eq!(counts.iter().sum::<usize>(), out.len());
        match (self, level) {
            (Layout::Symbols, _) => self.join_symbols(streams, counts, quant, out),
            (_, Level::Portable) => self.join_masks(streams, counts, quant, out),
            // SAFETY: the level is allowed only if the processor has it; the streams are those of as many blocks, with slack.
            (_, Level::Avx2) => unsafe { simd::join_avx2(self, streams, counts, quant, out) },
            // SAFETY: as above.
            (_, Level::Avx512) => unsafe { simd::join_avx512(self, streams, counts, quant, out) },
        }
    }

    /// Puts only the DC coefficients together, of the streams [`DC`].
    pub(crate) fn join_dc(self, streams: &Streams, counts: &[usize], quant: &[Block; 2], out: &mut [i16]) {
        let mut wide = streams.wide_dc.iter();
        let (mut at, mut out) = ([0; 2], out.iter_mut());
        for (number, count) in counts.iter().enumerate() {
            let class = usize::from(number > 0);
            let bytes = &streams.bytes[self.stream(class, DC)];
            let mut before = 0i16;
            for (byte, dc) in bytes[at[class]..at[class] + count].iter().zip(&mut out) {
                before = before.wrapping_add(value(*byte, &mut wide));
                *dc = before.wrapping_mul(quant[class][0]);
            }
            at[class] += count;
        }
    }

    fn join_masks(self, streams: &Streams, counts: &[usize], quant: &[Block; 2], out: &mut [Block]) {
        let (mut wide, mut wide_dc) = (streams.wide.iter(), streams.wide_dc.iter());
        let mut at = vec![0; streams.bytes.len()];
        let mut take = |stream: usize| {
            at[stream] += 1;
            streams.bytes[stream][at[stream] - 1]
        };
        let mut out = out.iter_mut();
        for (number, count) in counts.iter().enumerate() {
            let class = usize::from(number > 0);
            let mut before = 0i16;
            for block in out.by_ref().take(*count) {
                *block = [0; 64];
                before = before.wrapping_add(value(take(self.stream(class, DC)), &mut wide_dc));
                block[0] = before.wrapping_mul(quant[class][0]);
                let bytes = take(self.stream(class, COUNTS));
                let masks: [u8; 8] =
                    std::array::from_fn(
                        |at| {
                            if at < usize::from(bytes) { take(self.stream(class, MASKS + at)) } else { 0 }
                        },
                    );
                let mut mask = u64::from_le_bytes(masks);
                while mask != 0 {
                    let k = mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    let natural = usize::from(ZIGZAG[k]);
                    let byte = take(self.stream(class, VALUES + band(k)));
                    block[natural] = value(byte, &mut wide).wrapping_mul(quant[class][natural]);
                }
            }
        }
    }

    fn join_symbols(self, streams: &Streams, counts: &[usize], quant: &[Block; 2], out: &mut [Block]) {
        let (mut values, mut wide_dc) = (streams.wide.iter(), streams.wide_dc.iter());
        let mut at = [0; 2];
        let mut dc = [0; 2];
        let mut out = out.iter_mut();
        for (number, count) in counts.iter().enumerate() {
            let class = usize::from(number > 0);
            let (symbols, differences) =
                (&streams.bytes[self.stream(class, VALUES)], &streams.bytes[self.stream(class, DC)]);
            let mut before = 0i16;
            for block in out.by_ref().take(*count) {
                *block = [0; 64];
                before = before.wrapping_add(value(differences[dc[class]], &mut wide_dc));
                dc[class] += 1;
                block[0] = before.wrapping_mul(quant[class][0]);
                let mut k = 1;
                while k < 64 {
                    let symbol = symbols[at[class]];
                    at[class] += 1;
                    match symbol {
                        0 => break,
                        0xf0 => k += 16,
                        _ => {
                            k += usize::from(symbol >> 4);
                            let natural = usize::from(ZIGZAG[k & 63]);
                            let value = values.next().copied().unwrap_or(0);
                            block[natural] = value.wrapping_mul(quant[class][natural]);
                            k += 1;
                        }
                    }
                }
            }
        }
    }
}

/// Returns the value of a byte.
#[inline]
fn value<'w>(byte: u8, wide: &mut impl Iterator<Item = &'w i16>) -> i16 {
    match byte {
        WIDE => wide.next().copied().unwrap_or(0),
        byte => (byte as i8).into(),
    }
}
