//! rANS (Duda, arXiv 1311.2540) of 32 interleaved states (Giesen, arXiv 1402.3392) with 12-bit frequencies: the symbol `i` of a stream
//! is in state `i % 32`, and states take 16 bits at a time. Several streams follow each other in the same states, each with a model of
//! its own, since the states of each would take 128 bytes; each is filled up to a multiple of 32 symbols.

use super::level::Level;
use std::arch::x86_64::*;

const LANES: usize = 32;
const BITS: u32 = 12;
const TOTAL: u32 = 1 << BITS;
/// States are at least this between symbols.
const LOW: u32 = 1 << 16;
/// Words after a stream, so that vectors can be loaded beyond its end.
const SLACK: usize = 32;

/// The frequencies of the bytes of one kind of stream.
pub(crate) struct Model {
    frequency: [u32; 256],
    start: [u32; 256],
    /// For each of 4,096 residues: the symbol in 8 bits, its frequency in 12, the distance from its start in 12.
    table: Vec<u32>,
    /// The most frequent symbol, which streams are filled up with.
    filler: u8,
}

impl Model {
    /// Makes the model of bytes that occur `counts` times.
    pub(crate) fn new(counts: &[u64; 256]) -> Self {
        let all: u64 = counts.iter().sum::<u64>().max(1);
        let scaled = |count: &u64| ((count * u64::from(TOTAL) / all) as u32).max(u32::from(*count > 0));
        let mut frequency: [u32; 256] = std::array::from_fn(|symbol| scaled(&counts[symbol]));
        // No symbol has all, since 12 bits cannot say so.
        for symbol in 0..2 {
            if frequency.iter().filter(|f| **f > 0).count() < 2 {
                frequency[symbol] = frequency[symbol].max(1);
            }
        }
        loop {
            let sum: u32 = frequency.iter().sum();
            let largest = (0..256).max_by_key(|symbol| frequency[*symbol]).expect("symbols");
            match sum.cmp(&TOTAL) {
                std::cmp::Ordering::Equal => break,
                std::cmp::Ordering::Less => frequency[largest] += TOTAL - sum,
                std::cmp::Ordering::Greater => frequency[largest] -= (sum - TOTAL).min(frequency[largest] / 2),
            }
        }
        let (mut start, mut table) = ([0; 256], vec![]);
        for symbol in 0..256 {
            start[symbol] = table.len() as u32;
            table.extend((0..frequency[symbol]).map(|at| symbol as u32 | frequency[symbol] << 8 | at << 20));
        }
        let filler = (0..=255).max_by_key(|symbol: &u8| frequency[usize::from(*symbol)]).unwrap_or(0);
        Model { frequency, start, table, filler }
    }

    /// Changes a state by a symbol.
    fn put(&self, state: &mut u32, symbol: u8, words: &mut Vec<u16>) {
        let (frequency, start) = (self.frequency[usize::from(symbol)], self.start[usize::from(symbol)]);
        if u64::from(*state) >= u64::from((LOW >> BITS) << 16) * u64::from(frequency) {
            words.push(*state as u16);
            *state >>= 16;
        }
        *state = ((*state / frequency) << BITS) + *state % frequency + start;
    }
}

/// Returns the number of symbols of a stream of bytes that is filled up.
pub(crate) fn filled(bytes: usize) -> usize {
    bytes.next_multiple_of(LANES)
}

/// Encodes streams: the states, low word first, then the words in the order in which they are read.
pub(crate) fn encode(streams: &[(&Model, &[u8])]) -> Vec<u16> {
    let (mut states, mut words) = ([LOW; LANES], vec![]);
    for (model, bytes) in streams.iter().rev() {
        for at in (0..filled(bytes.len())).rev() {
            model.put(&mut states[at % LANES], bytes.get(at).copied().unwrap_or(model.filler), &mut words);
        }
    }
    words.extend(states.iter().rev().flat_map(|state| [(state >> 16) as u16, *state as u16]));
    words.reverse();
    words.extend([0; SLACK]);
    words
}

/// Returns the bytes that encoded streams take in a file.
pub(crate) fn stored(words: &[u16]) -> usize {
    2 * (words.len() - SLACK)
}

/// Decodes streams into bytes of their lengths, filled up.
pub(crate) fn decode(level: Level, words: &[u16], streams: &mut [(&Model, &mut [u8])]) {
    assert!(words.len() >= 2 * LANES + SLACK);
    for (model, out) in &*streams {
        assert!(out.len().is_multiple_of(LANES) && model.table.len() == TOTAL as usize);
    }
    match level {
        // SAFETY: the level is allowed only if the processor has it; `encode` has written the words of all symbols, and more after them.
        Level::Avx512 => unsafe { decode_avx512(words, streams) },
        // SAFETY: as above.
        Level::Avx2 => unsafe { decode_avx2(words, streams) },
        Level::Portable => decode_portable(words, streams),
    }
}

fn decode_portable(words: &[u16], streams: &mut [(&Model, &mut [u8])]) {
    let mut states: [u32; LANES] =
        std::array::from_fn(|lane| u32::from(words[2 * lane]) | u32::from(words[2 * lane + 1]) << 16);
    let mut at = 2 * LANES;
    for (model, out) in streams {
        let table: &[u32; TOTAL as usize] = model.table[..].try_into().expect("4,096 entries");
        for group in out.chunks_exact_mut(LANES) {
            for (byte, state) in group.iter_mut().zip(&mut states) {
                let entry = table[(*state & (TOTAL - 1)) as usize];
                *byte = entry as u8;
                *state = (entry >> 8 & 0xfff) * (*state >> BITS) + (entry >> 20);
                if *state < LOW {
                    *state = *state << 16 | u32::from(words[at]);
                    at += 1;
                }
            }
        }
    }
}

/// Decodes streams with 16 states in a vector.
///
/// # Safety
/// The processor has these instruction sets, and the words of as many symbols follow the states, and 32 more.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
unsafe fn decode_avx512(words: &[u16], streams: &mut [(&Model, &mut [u8])]) {
    let (low, residue, frequency) =
        (_mm512_set1_epi32(LOW as i32), _mm512_set1_epi32(TOTAL as i32 - 1), _mm512_set1_epi32(0xfff));
    // SAFETY: 64 words are the states.
    let mut states =
        unsafe { [_mm512_loadu_si512(words.as_ptr().cast()), _mm512_loadu_si512(words[32..].as_ptr().cast())] };
    let mut next = words[2 * LANES..].as_ptr();
    for (model, out) in streams {
        let table = model.table.as_ptr().cast();
        for group in out.chunks_exact_mut(LANES) {
            for (state, bytes) in states.iter_mut().zip(group.chunks_exact_mut(16)) {
                // SAFETY: residues are below the table's length; the words of the symbols and 32 more follow `next`.
                unsafe {
                    let entry = _mm512_i32gather_epi32::<4>(_mm512_and_si512(*state, residue), table);
                    let factor = _mm512_and_si512(_mm512_srli_epi32::<8>(entry), frequency);
                    let moved = _mm512_add_epi32(
                        _mm512_mullo_epi32(factor, _mm512_srli_epi32::<BITS>(*state)),
                        _mm512_srli_epi32::<20>(entry),
                    );
                    _mm_storeu_si128(bytes.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(entry));
                    let takes = _mm512_cmplt_epu32_mask(moved, low);
                    let taken = _mm512_cvtepu16_epi32(_mm256_loadu_si256(next.cast()));
                    next = next.add(takes.count_ones() as usize);
                    let taken = _mm512_maskz_expand_epi32(takes, taken);
                    *state = _mm512_mask_or_epi32(moved, takes, _mm512_slli_epi32::<16>(moved), taken);
                }
            }
        }
    }
}

/// Decodes streams with 8 states in a vector.
///
/// # Safety
/// As [`decode_avx512`].
#[target_feature(enable = "avx2,popcnt")]
unsafe fn decode_avx2(words: &[u16], streams: &mut [(&Model, &mut [u8])]) {
    let (residue, frequency) = (_mm256_set1_epi32(TOTAL as i32 - 1), _mm256_set1_epi32(0xfff));
    // SAFETY: 64 words are the states.
    let mut states: [_; 4] = std::array::from_fn(|n| unsafe { _mm256_loadu_si256(words[16 * n..].as_ptr().cast()) });
    let mut next = words[2 * LANES..].as_ptr();
    let four = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    let bytes_of = _mm256_broadcastsi128_si256(four);
    for (model, out) in streams {
        let table = model.table.as_ptr().cast();
        for group in out.chunks_exact_mut(LANES) {
            for (state, bytes) in states.iter_mut().zip(group.chunks_exact_mut(8)) {
                // SAFETY: residues are below the table's length; the words of the symbols and 32 more follow `next`.
                unsafe {
                    let entry = _mm256_i32gather_epi32::<4>(table, _mm256_and_si256(*state, residue));
                    let factor = _mm256_and_si256(_mm256_srli_epi32::<8>(entry), frequency);
                    let moved = _mm256_add_epi32(
                        _mm256_mullo_epi32(factor, _mm256_srli_epi32::<{ BITS as i32 }>(*state)),
                        _mm256_srli_epi32::<20>(entry),
                    );
                    let packed = _mm256_shuffle_epi8(entry, bytes_of);
                    let packed = [_mm256_castsi256_si128(packed), _mm256_extracti128_si256::<1>(packed)];
                    _mm_storel_epi64(bytes.as_mut_ptr().cast(), _mm_unpacklo_epi32(packed[0], packed[1]));
                    let takes = _mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(moved), _mm256_setzero_si256());
                    let mask = _mm256_movemask_ps(_mm256_castsi256_ps(takes)) as usize;
                    let taken = _mm256_cvtepu16_epi32(_mm_loadu_si128(next.cast()));
                    next = next.add(mask.count_ones() as usize);
                    let places = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(PLACES[mask] as i64));
                    let taken = _mm256_permutevar8x32_epi32(taken, places);
                    let grown = _mm256_or_si256(_mm256_slli_epi32::<16>(moved), taken);
                    *state = _mm256_blendv_epi8(moved, grown, takes);
                }
            }
        }
    }
}

/// For each mask of eight places, a byte for each: the number of places before it in the mask.
static PLACES: [u64; 256] = {
    let mut all = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut place, mut before) = (0, 0);
        while place < 8 {
            all[mask] |= before << (8 * place);
            before += (mask as u64 >> place) & 1;
            place += 1;
        }
        mask += 1;
    }
    all
};
