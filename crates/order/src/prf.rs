//! Keys: everything random in this crate begins with [`key`].

/// The increment of SplitMix64: 2⁶⁴ divided by the golden ratio, made odd (Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014).
pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a key is for. Two purposes never share a key, whatever their seeds, epochs and tweaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The global permutation of the shuffled order; tweak 0.
    Shuffled,
    /// The permutation of blocks in the interleaved order; tweak 0.
    Blocks,
    /// The permutation inside a window of the interleaved order; the tweak is the window's number.
    Window,
    /// The listing's permutation at pack time; epoch 0, tweak 0.
    Pack,
    /// A replica's own seed under policy `shard`; epoch 0, the tweak is the rank.
    Shard,
    /// The stride to the substitutes of a bad sample; the tweak is the position.
    Spare,
    /// The offset of a weighted source; tweak 0.
    Weighted,
    /// The augmentation of one sample; the tweak is its place in the source.
    Augment,
}

impl Domain {
    /// The domain's word: its name in ASCII, padded with spaces to eight bytes, first byte most significant.
    const fn word(self) -> u64 {
        u64::from_be_bytes(*match self {
            Domain::Shuffled => b"shuffled",
            Domain::Blocks => b"blocks  ",
            Domain::Window => b"window  ",
            Domain::Pack => b"pack    ",
            Domain::Shard => b"shard   ",
            Domain::Spare => b"spare   ",
            Domain::Weighted => b"weighted",
            Domain::Augment => b"augment ",
        })
    }
}

/// The key of a purpose: 64 bits that look random and depend on every bit of the four inputs.
pub fn key(domain: Domain, seed: u64, epoch: u64, tweak: u64) -> u64 {
    absorb(absorb(absorb(domain.word(), seed), epoch), tweak)
}

const fn absorb(h: u64, word: u64) -> u64 {
    mix((h ^ word).wrapping_add(GAMMA))
}

/// A bijection on 64-bit words in which every input bit reaches every output bit: variant 13 of David Stafford's
/// mixers ("Better bit mixing", 2011), as SplitMix64 uses it.
#[inline(always)]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A random word scaled to `[0, n)`, for n ≤ 2³². The upper half of the word times n stays within 64 bits, so no
/// language needs a wider product; a value's probability is off by at most 2⁻³².
#[inline(always)]
pub(crate) const fn scale(word: u64, n: u64) -> u64 {
    ((word >> 32) * n) >> 32
}
