//! Huffman tables: from the code lengths and symbols of a DHT segment to lookup tables.
//!
//! | file | lookup gives |
//! |---|---|
//! | `band_table` | a coefficient of one of several scans, or an end-of-band run |
//! | `code_table` | a symbol and its code length |
//! | `scan_table` | the total length of several symbols, without their values |
//! | `coefficient_table` | a coefficient: run of zeros, value, and the length of code and magnitude bits together; or several coefficients to skip |
//! | `table_cache` | the tables built last, found by content |

pub(crate) mod band_table;
pub(crate) mod code_table;
pub(crate) mod coefficient_table;
pub(crate) mod scan_table;
pub(crate) mod table_cache;

/// Returns the value that the `size` magnitude bits `v` encode (T.81, F.2.2.1, EXTEND).
#[inline(always)]
pub(crate) fn extend(v: i32, size: u32) -> i32 {
    let negative = (v - (1 << size >> 1)) >> 31;
    v + (negative & (1 - (1 << size)))
}

/// Splits an AC symbol into the number of coefficients it covers (the zeros and the one after them) and its magnitude bits.
/// For an end-of-block symbol the number is `end`.
fn split_ac_symbol(symbol: u8, end: u32) -> (u32, u32) {
    match (u32::from(symbol >> 4), u32::from(symbol & 15)) {
        (run, 0) if run != 15 => (end, 0),
        (run, size) => (run + 1, size),
    }
}
