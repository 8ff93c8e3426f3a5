//! CRC32C (Castagnoli), the only checksum of the format, TFRecord's masked form of it, and its text form.
//!
//! Computed by `crc-fast`; `cargo run --release -p shardtool-benches --bin crc32c` compares it with the `crc32c` crate.

use crc_fast::CrcAlgorithm::Crc32Iscsi;
use std::sync::LazyLock;

/// Computes the CRC32C of `bytes`. Check value (RFC 3720, B.4): 32 zero bytes give `0x8a9136aa`.
///
/// ```
/// assert_eq!(shardtool_format::checksum::crc32c(&[0; 32]), 0x8a9136aa);
/// assert_eq!(shardtool_format::checksum::crc32c(b"123456789"), 0xe3069283);
/// ```
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Computes a CRC32C incrementally.
#[derive(Debug)]
pub struct Crc32c(crc_fast::Digest);

impl Crc32c {
    /// Starts with no bytes.
    pub fn new() -> Self {
        Crc32c(crc_fast::Digest::new(Crc32Iscsi))
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the CRC of everything appended so far.
    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

/// Computes the CRC of the concatenation `A B` from the CRC of `A`, the CRC of `B` and the length of `B` in bytes, so
/// that a file's CRC follows from those of its records, without reading it again. Takes about 50 ns, less than hashing 3 kB;
/// `crc-fast` has the same function, which takes 9 µs.
///
/// A CRC is linear over GF(2): that of `A B` is the CRC of `A` followed by as many zero bytes as `B` has, exclusive or
/// the CRC of `B` (as zlib's `crc32_combine`).
pub fn combine(crc_a: u32, crc_b: u32, len_b: u64) -> u32 {
    let mut crc = crc_a;
    let mut bits = len_b;
    while bits != 0 && crc != 0 {
        crc = ZEROS[bits.trailing_zeros() as usize].apply(crc);
        bits &= bits - 1;
    }
    crc ^ crc_b
}

/// Entry `k` maps a CRC to the CRC after 2^k more zero bytes.
static ZEROS: LazyLock<Vec<Operator>> = LazyLock::new(|| {
    // One zero byte: eight steps of the bitwise CRC with the reflected polynomial.
    let step = |crc: u32| (0..8).fold(crc, |crc, _| (crc >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(crc & 1)));
    let mut operators = vec![Operator::new(step)];
    for k in 1..u64::BITS as usize {
        let half = &operators[k - 1];
        operators.push(Operator::new(|crc| half.apply(half.apply(crc))));
    }
    operators
});

/// A linear map of 32 bits as four tables, one for each byte of the input.
struct Operator([[u32; 256]; 4]);

impl Operator {
    fn new(map: impl Fn(u32) -> u32) -> Self {
        let bits: [u32; 32] = std::array::from_fn(|bit| map(1 << bit));
        let of_byte = |byte: usize, value: usize| {
            (0..8).filter(|bit| value >> bit & 1 == 1).fold(0, |sum, bit| sum ^ bits[8 * byte + bit])
        };
        Operator(std::array::from_fn(|byte| std::array::from_fn(|value| of_byte(byte, value))))
    }

    fn apply(&self, crc: u32) -> u32 {
        let [a, b, c, d] = crc.to_le_bytes().map(usize::from);
        self.0[0][a] ^ self.0[1][b] ^ self.0[2][c] ^ self.0[3][d]
    }
}

/// Returns TFRecord's masked form of a CRC: rotated right by 15 bits, plus a constant. The CRC of data that contain
/// their own CRC would otherwise be a constant (TensorFlow, `core/lib/hash/crc32c.h`).
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Returns the CRC whose masked form is `masked`.
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

/// Digits of a CRC in text.
pub(crate) const HEX_DIGITS: usize = 8;

/// Parses a CRC from exactly eight lower-case hex digits, the only spelling in manifests and resume states (`{:08x}`
/// writes it). Upper-case digits would be another spelling of the same number, so that one flipped bit would go
/// unnoticed.
///
/// ```
/// use shardtool_format::checksum::parse_hex;
/// assert_eq!(parse_hex(b"0123abcd"), Some(0x0123abcd));
/// assert_eq!(parse_hex(b"0123ABCD"), None);
/// assert_eq!(parse_hex(b"+123abcd"), None);
/// ```
pub fn parse_hex(digits: &[u8]) -> Option<u32> {
    let lower = digits.len() == HEX_DIGITS && digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    lower.then(|| digits.iter().fold(0, |v, b| v << 4 | (*b as char).to_digit(16).unwrap_or(0)))
}

/// A SHA-256 digest. Its text is 64 lower-case hex digits; upper-case digits are refused as in [`parse_hex`].
///
/// This crate only reads and writes digests; programs that write or verify shards compute them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// Parses a digest from exactly 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 2 * size_of::<Self>() {
            return None;
        }
        let mut digest = [0; 32];
        for (word, digits) in digest.chunks_exact_mut(4).zip(text.as_bytes().chunks_exact(HEX_DIGITS)) {
            word.copy_from_slice(&parse_hex(digits)?.to_be_bytes());
        }
        Some(Sha256(digest))
    }
}

impl std::fmt::Display for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of RFC 3720, appendix B.4.
    #[test]
    fn published_vectors() {
        let up: Vec<u8> = (0..32).collect();
        let down: Vec<u8> = (0..32).rev().collect();
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8ab43);
        assert_eq!(crc32c(&up), 0x46dd794e);
        assert_eq!(crc32c(&down), 0x113fdb5c);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn pieces_and_combination_equal_the_whole() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| ((i * i) >> 3) as u8).collect();
        for cut in [0, 1, 7, 4096, 9_999, 10_000] {
            let (a, b) = bytes.split_at(cut);
            let mut pieces = Crc32c::new();
            pieces.update(a);
            pieces.update(b);
            assert_eq!(pieces.value(), crc32c(&bytes));
            assert_eq!(combine(crc32c(a), crc32c(b), b.len() as u64), crc32c(&bytes));
        }
    }

    #[test]
    fn unmask_inverts_mask() {
        for crc in [0, 1, 0xe3069283, u32::MAX] {
            assert_eq!(unmask(mask(crc)), crc);
        }
    }

    #[test]
    fn sha256_text_is_exact() {
        let text = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
        let digest = Sha256::parse(text).unwrap();
        assert_eq!((digest.0[1], digest.0[31]), (0x11, 0xff));
        assert_eq!(digest.to_string(), text);
        assert_eq!(Sha256::parse(&text.to_uppercase()), None);
        assert_eq!((Sha256::parse(&text[1..]), Sha256::parse(&format!("{text}0"))), (None, None));
    }
}
