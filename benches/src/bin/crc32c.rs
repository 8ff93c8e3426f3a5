//! Compares `crc-fast`, which the format uses, with the crate `crc32c`, on lengths that occur in the format: the length
//! field of a frame (8 bytes), small records, photographs.
//!
//! `cargo run --release -p shardtool-benches --bin crc32c`

use shardtool_benches::{Candidate, compare, print};
use std::hint::black_box;

fn main() {
    for length in [8usize, 1_000, 10_000, 100_000, 10_000_000] {
        let bytes: Vec<u8> = (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        let answer = bitwise(&bytes[..length.min(10_000)]);
        let repeats = (200_000_000 / (length + 200)).max(3);
        let timed = |crc: fn(&[u8]) -> u32| {
            let bytes = &bytes;
            move || {
                assert_eq!(crc(&bytes[..length.min(10_000)]), answer, "equals the bitwise CRC32C");
                for _ in 0..repeats {
                    black_box(crc(black_box(bytes)));
                }
                (repeats * length) as f64
            }
        };
        let rates = compare(
            9,
            &mut [
                Candidate::new("crc-fast", timed(shardtool_format::checksum::crc32c)),
                Candidate::new("crc32c", timed(crc32c::crc32c)),
            ],
        );
        print(&format!("{length} bytes"), "GB/s", 1e9, &rates);
    }
}

/// CRC32C by its definition, bit by bit: reflected polynomial 0x82f63b78, all ones in and out.
fn bitwise(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(crc & 1)))
    })
}
