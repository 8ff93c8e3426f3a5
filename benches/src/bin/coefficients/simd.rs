//! Puts blocks together with vector instructions. Trusts the streams, which this program has written: a decoder of files would check
//! the length of each stream first.

use super::baseline::Block;
use super::layout::{COUNTS, DC, Layout, MASKS, Streams, VALUES, WIDE, ZIGZAG};
use std::arch::x86_64::*;

/// Zigzag indices of natural positions.
static NATURAL: [u8; 64] = {
    let (mut all, mut k) = ([0; 64], 0);
    while k < 64 {
        all[ZIGZAG[k] as usize] = k as u8;
        k += 1;
    }
    all
};

/// For each half of a block in natural order and each 16 zigzag indices: where in these its bytes are, -1 for elsewhere.
static HALVES: [[[i8; 32]; 4]; 2] = {
    let mut all = [[[-1; 32]; 4]; 2];
    let mut position = 0;
    while position < 64 {
        let k = NATURAL[position] as usize;
        all[position / 32][k / 16][position % 32] = (k % 16) as i8;
        position += 1;
    }
    all
};

/// For each mask byte: where the byte of each of its bits is, -1 for a bit that is 0.
static SPREAD: [[i8; 8]; 256] = {
    let mut all = [[-1; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut bit, mut before) = (0, 0);
        while bit < 8 {
            if mask >> bit & 1 == 1 {
                all[mask][bit] = before;
                before += 1;
            }
            bit += 1;
        }
        mask += 1;
    }
    all
};

/// Where streams are read: those of one class.
struct Places {
    counts: *const u8,
    dc: *const u8,
    masks: [*const u8; 8],
    values: [*const u8; 4],
}

impl Places {
    fn new(streams: &Streams, class: usize) -> Self {
        let start = |part| streams.bytes[Layout::Bands.stream(class, part)].as_ptr();
        Places {
            counts: start(COUNTS),
            dc: start(DC),
            masks: std::array::from_fn(|at| start(MASKS + at)),
            values: std::array::from_fn(|at| start(VALUES + at)),
        }
    }

    /// Returns the number of mask bytes of the next block, and the mask.
    ///
    /// # Safety
    /// The streams have another block.
    #[inline(always)]
    unsafe fn mask(&mut self, layout: Layout) -> (usize, u64) {
        // SAFETY: as the caller states; a stream has more bytes than a mask after its end.
        unsafe {
            let count = usize::from(*self.counts);
            self.counts = self.counts.add(1);
            if layout == Layout::Plain {
                let bytes = self.counts.cast::<u64>().read_unaligned();
                self.counts = self.counts.add(count);
                return (count, u64::from_le(bytes) & u64::MAX.checked_shr(64 - 8 * count as u32).unwrap_or(0));
            }
            let mut mask = 0;
            for (at, stream) in self.masks[..count].iter_mut().enumerate() {
                mask |= u64::from(**stream) << (8 * at);
                *stream = stream.add(1);
            }
            (count, mask)
        }
    }

    /// Returns the next DC difference.
    ///
    /// # Safety
    /// The streams have another block.
    #[inline(always)]
    unsafe fn difference(&mut self, wide: &mut std::slice::Iter<'_, i16>) -> i16 {
        // SAFETY: as the caller states.
        let byte = unsafe { *self.dc };
        self.dc = self.dc.wrapping_add(1);
        match byte {
            WIDE => wide.next().copied().unwrap_or(0),
            byte => (byte as i8).into(),
        }
    }
}

/// Puts the wide values of a block in their places; `found` are their bits, of zigzag indices.
#[inline(always)]
fn widen(mut found: u64, wide: &mut std::slice::Iter<'_, i16>, quant: &Block, block: &mut Block) {
    while found != 0 {
        let natural = usize::from(ZIGZAG[found.trailing_zeros() as usize]);
        found &= found - 1;
        block[natural] = wide.next().copied().unwrap_or(0).wrapping_mul(quant[natural]);
    }
}

/// Puts blocks together by expanding bytes with a mask of 64 bits.
///
/// # Safety
/// The processor has these instruction sets; the streams are those of as many blocks, with slack.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(crate) unsafe fn join_avx512(
    layout: Layout,
    streams: &Streams,
    counts: &[usize],
    quant: &[Block; 2],
    out: &mut [Block],
) {
    const BANDS: [u64; 4] = [0xfe, 0xff00, 0xffff_0000, 0xffff_ffff_0000_0000];
    let (mut wide, mut wide_dc) = (streams.wide.iter(), streams.wide_dc.iter());
    let mut places = [Places::new(streams, 0), Places::new(streams, 1)];
    // SAFETY: 64 bytes, and 64 numbers.
    let natural = unsafe { _mm512_loadu_si512(NATURAL.as_ptr().cast()) };
    let mut out = out.iter_mut();
    for (number, count) in counts.iter().enumerate() {
        let class = usize::from(number > 0);
        let (quant, place) = (&quant[class], &mut places[class]);
        // SAFETY: as above.
        let factors =
            unsafe { [_mm512_loadu_si512(quant.as_ptr().cast()), _mm512_loadu_si512(quant[32..].as_ptr().cast())] };
        let mut before = 0i16;
        for block in out.by_ref().take(*count) {
            // SAFETY: the streams have another block, and slack for a vector after it.
            let (values, difference) = unsafe {
                let (_, mask) = place.mask(layout);
                let mut values = _mm512_setzero_si512();
                if layout == Layout::Plain {
                    values = _mm512_maskz_expand_epi8(mask, _mm512_loadu_si512(place.values[0].cast()));
                    place.values[0] = place.values[0].add(mask.count_ones() as usize);
                } else {
                    for (stream, band) in place.values.iter_mut().zip(BANDS) {
                        values = _mm512_mask_expand_epi8(values, mask & band, _mm512_loadu_si512(stream.cast()));
                        *stream = stream.add((mask & band).count_ones() as usize);
                    }
                }
                (values, place.difference(&mut wide_dc))
            };
            let found = _mm512_cmpeq_epi8_mask(values, _mm512_set1_epi8(WIDE as i8));
            let values = _mm512_permutexvar_epi8(natural, values);
            let halves = [_mm512_castsi512_si256(values), _mm512_extracti64x4_epi64::<1>(values)];
            for (at, (half, factors)) in halves.into_iter().zip(factors).enumerate() {
                let numbers = _mm512_mullo_epi16(_mm512_cvtepi8_epi16(half), factors);
                // SAFETY: 32 numbers.
                unsafe { _mm512_storeu_si512(block[32 * at..].as_mut_ptr().cast(), numbers) };
            }
            before = before.wrapping_add(difference);
            block[0] = before.wrapping_mul(quant[0]);
            widen(found, &mut wide, quant, block);
        }
    }
}

/// Puts blocks together by shuffling the bytes of eight coefficients at a time.
///
/// # Safety
/// As [`join_avx512`].
#[target_feature(enable = "avx2,bmi2,popcnt")]
pub(crate) unsafe fn join_avx2(
    layout: Layout,
    streams: &Streams,
    counts: &[usize],
    quant: &[Block; 2],
    out: &mut [Block],
) {
    const BAND: [usize; 8] = [0, 1, 2, 2, 3, 3, 3, 3];
    let (mut wide, mut wide_dc) = (streams.wide.iter(), streams.wide_dc.iter());
    let mut places = [Places::new(streams, 0), Places::new(streams, 1)];
    let mut out = out.iter_mut();
    for (number, count) in counts.iter().enumerate() {
        let class = usize::from(number > 0);
        let (quant, place) = (&quant[class], &mut places[class]);
        let mut before = 0i16;
        for block in out.by_ref().take(*count) {
            let mut zigzag = [0u8; 64];
            // SAFETY: the streams have another block, and slack for a vector after it.
            let difference = unsafe {
                let (bytes, mask) = place.mask(layout);
                for (at, eight) in zigzag.chunks_exact_mut(8).enumerate().take(bytes) {
                    let mask = (mask >> (8 * at)) as u8;
                    let stream = &mut place.values[if layout == Layout::Plain { 0 } else { BAND[at] }];
                    let spread = _mm_loadl_epi64(SPREAD[usize::from(mask)].as_ptr().cast());
                    _mm_storel_epi64(
                        eight.as_mut_ptr().cast(),
                        _mm_shuffle_epi8(_mm_loadl_epi64(stream.cast()), spread),
                    );
                    *stream = stream.add(mask.count_ones() as usize);
                }
                place.difference(&mut wide_dc)
            };
            // SAFETY: four times 16 bytes.
            let quarters: [__m128i; 4] =
                std::array::from_fn(|at| unsafe { _mm_loadu_si128(zigzag[16 * at..].as_ptr().cast()) });
            let mut found = 0;
            for (at, quarter) in quarters.into_iter().enumerate() {
                let is_wide = _mm_cmpeq_epi8(quarter, _mm_set1_epi8(WIDE as i8));
                found |= u64::from(_mm_movemask_epi8(is_wide) as u32) << (16 * at);
            }
            for (half, tables) in HALVES.iter().enumerate() {
                let mut bytes = _mm256_setzero_si256();
                for (quarter, table) in quarters.into_iter().zip(tables) {
                    // SAFETY: 32 bytes.
                    let table = unsafe { _mm256_loadu_si256(table.as_ptr().cast()) };
                    bytes = _mm256_or_si256(bytes, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(quarter), table));
                }
                let parts = [_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes)];
                for (at, part) in parts.into_iter().enumerate() {
                    let first = 32 * half + 16 * at;
                    // SAFETY: 16 numbers from `first` on.
                    unsafe {
                        let factors = _mm256_loadu_si256(quant[first..].as_ptr().cast());
                        let numbers = _mm256_mullo_epi16(_mm256_cvtepi8_epi16(part), factors);
                        _mm256_storeu_si256(block[first..].as_mut_ptr().cast(), numbers);
                    }
                }
            }
            before = before.wrapping_add(difference);
            block[0] = before.wrapping_mul(quant[0]);
            widen(found, &mut wide, quant, block);
        }
    }
}
