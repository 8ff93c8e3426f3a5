//! Keys. Every random number of this crate derives from [`key`].

/// The increment of SplitMix64: 2⁶⁴ divided by the golden ratio, made odd (Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014).
pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The purpose of a key. Keys of different domains differ for all seeds, epochs and tweaks.
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
    /// The seed of one replica under policy `shard`; epoch 0, the tweak is the rank.
    Shard,
    /// The stride to the substitutes of a bad sample; the tweak is the position. Hashed as `spare`.
    Substitute,
    /// The offset of a weighted source; tweak 0.
    Weighted,
    /// Crops and flips of one sample; the tweak is its source position.
    Augment,
    /// Another step of one sample's augmentation: a key of (seed, epoch, source position), and from it one of (view, step).
    Step,
    /// The mixing of one batch; the tweak is the position of its first row in the replica's epoch.
    Mix,
    /// The permutation of the members of a bucket; the tweak is the bucket.
    Bucket,
    /// The permutation of bucket batches; tweak 0 for complete ones, 1 for incomplete ones.
    Batches,
    /// The permutation of the rows of a packing window; the tweak is the window's number.
    Packed,
    /// The seed of one member of a scheduled source; epoch 0, the tweak is the member.
    Member,
    /// The turn with which a period of a stage begins; in place of the epoch is the stage's start, the tweak is the period.
    Phase,
}

impl Domain {
    /// Returns the name in ASCII, padded with spaces to eight bytes, as a big-endian number. These names are hashed: a
    /// change of one changes orders.
    const fn name(self) -> u64 {
        u64::from_be_bytes(*match self {
            Domain::Shuffled => b"shuffled",
            Domain::Blocks => b"blocks  ",
            Domain::Window => b"window  ",
            Domain::Pack => b"pack    ",
            Domain::Shard => b"shard   ",
            Domain::Substitute => b"spare   ",
            Domain::Weighted => b"weighted",
            Domain::Augment => b"augment ",
            Domain::Step => b"step    ",
            Domain::Mix => b"mix     ",
            Domain::Bucket => b"bucket  ",
            Domain::Batches => b"batches ",
            Domain::Packed => b"packed  ",
            Domain::Member => b"member  ",
            Domain::Phase => b"phase   ",
        })
    }
}

/// Derives a key: 64 pseudorandom bits that depend on every bit of the four inputs.
pub fn key(domain: Domain, seed: u64, epoch: u64, tweak: u64) -> u64 {
    absorb(absorb(absorb(domain.name(), seed), epoch), tweak)
}

const fn absorb(h: u64, value: u64) -> u64 {
    mix((h ^ value).wrapping_add(GAMMA))
}

/// A bijection on `u64` in which every input bit affects every output bit: variant 13 of David Stafford's mixers ("Better bit mixing", 2011), as SplitMix64 uses it.
#[inline(always)]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Scales a random `u64` to `[0, n)`, for n ≤ 2³². Only its upper half is used, so that the product fits into 64 bits;
/// the probability of a value is off by at most 2⁻³².
#[inline(always)]
pub(crate) const fn scale(random: u64, n: u64) -> u64 {
    ((random >> 32) * n) >> 32
}
