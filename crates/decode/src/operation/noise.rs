//! Normal noise of ImageNet's mean and standard deviation, rounded and clamped to 0 to 255.
//!
//! Sample n takes 32 bits u from SplitMix64: the upper half of output n ÷ 2 if n is even, else the lower half. Its value is the
//! number of values v below 255 with Φ((v + ½ − mean) ÷ deviation) · 2³², rounded down, at most u. Φ is the normal
//! distribution, computed with `libm`, so that every machine has the same noise.

use std::sync::LazyLock;

/// Mean by channel.
const MEAN: [f64; 3] = [123.675, 116.28, 103.53];

/// Standard deviation by channel.
const DEVIATION: [f64; 3] = [58.395, 57.12, 57.375];

/// Upper bits of u that index the guide.
const GUIDE_BITS: u32 = 12;

static CHANNELS: LazyLock<[Channel; 3]> =
    LazyLock::new(|| std::array::from_fn(|c| Channel::new(MEAN[c], DEVIATION[c])));

/// The stream of one key.
pub(super) struct Noise {
    channels: &'static [Channel; 3],
    state: u64,
    /// The lower half of the last output, if it was not used.
    lower: Option<u32>,
}

/// The distribution of one channel.
struct Channel {
    /// u from which on a sample is larger than v. The last one is larger than any u.
    ends: [u64; 256],
    /// The value at the smallest u with these upper bits.
    guide: [u8; 1 << GUIDE_BITS],
}

impl Noise {
    /// Starts the stream of a key.
    pub(super) fn new(key: u64) -> Self {
        Noise { channels: &CHANNELS, state: key, lower: None }
    }

    /// Returns the next three samples.
    pub(super) fn next_pixel(&mut self) -> [u8; 3] {
        self.channels.each_ref().map(|channel| channel.value(self.next_u32()))
    }

    /// Returns the next half of an output of SplitMix64 (Steele, Lea, Flood 2014; variant 13 of Stafford's mixers).
    fn next_u32(&mut self) -> u32 {
        if let Some(lower) = self.lower.take() {
            return lower;
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        self.lower = Some(x as u32);
        (x >> 32) as u32
    }
}

impl Channel {
    fn new(mean: f64, deviation: f64) -> Self {
        let ends = std::array::from_fn(|value| match value {
            255 => 1 << 32,
            value => {
                let z = (value as f64 + 0.5 - mean) / deviation;
                let at_most = 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
                (at_most * (1u64 << 32) as f64) as u64
            }
        });
        let start = |upper: usize| (upper as u64) << (32 - GUIDE_BITS);
        let guide = std::array::from_fn(|upper| ends.partition_point(|end| *end <= start(upper)) as u8);
        Channel { ends, guide }
    }

    fn value(&self, u: u32) -> u8 {
        let mut value = self.guide[(u >> (32 - GUIDE_BITS)) as usize];
        while self.ends[usize::from(value)] <= u64::from(u) {
            value += 1;
        }
        value
    }
}
