//! Place → sample id. The order permutes the places `[0, N′)` of a source; a source says which sample stands at each.

mod balanced;
mod list;
mod mixture;
mod weighted;

pub use balanced::Balanced;
pub use list::List;
pub use mixture::Mixture;
pub use weighted::Weighted;

/// A pure function (seed, epoch, place) → sample id.
#[derive(Clone, Debug)]
pub enum Source {
    /// Every sample of a split with this many: place v is id v.
    All(u64),
    /// The ids of a list or a filter, in the list's order.
    List(List),
    /// Every class equally often.
    Balanced(Balanced),
    /// Every sample in proportion to its weight.
    Weighted(Weighted),
    /// Several datasets, each with its share.
    Mixture(Mixture),
}

impl Source {
    /// N′, places an epoch.
    #[expect(clippy::len_without_is_empty, reason = "the size of a domain; a plan refuses an empty one")]
    pub fn len(&self) -> u64 {
        match self {
            Source::All(n) => *n,
            Source::List(s) => s.ids().len() as u64,
            Source::Balanced(s) => s.len(),
            Source::Weighted(s) => s.len(),
            Source::Mixture(s) => s.len(),
        }
    }

    /// The id of the sample at `place` in this epoch.
    ///
    /// # Panics
    /// May panic when `place` is N′ or more.
    #[inline]
    pub fn id(&self, seed: u64, epoch: u64, place: u64) -> u64 {
        match self {
            Source::All(_) => place,
            Source::List(s) => s.ids()[place as usize],
            Source::Balanced(s) => s.id(epoch, place),
            Source::Weighted(s) => s.id(seed, epoch, place),
            Source::Mixture(s) => s.id(epoch, place),
        }
    }

    /// The source in one line of JSON, the same for equal sources: what a resume state's checksum covers. Long lists
    /// stand in it as count and CRC32C.
    pub fn canonical_json(&self) -> String {
        match self {
            Source::All(_) => r#"{"source":"all"}"#.to_owned(),
            Source::List(s) => s.canonical_json(),
            Source::Balanced(s) => s.canonical_json(),
            Source::Weighted(s) => s.canonical_json(),
            Source::Mixture(s) => s.canonical_json(),
        }
    }

    /// CRC32C of [`canonical_json`](Source::canonical_json).
    pub fn crc(&self) -> u32 {
        crc32c(self.canonical_json().as_bytes())
    }

    /// Bytes that the source holds: what a memory budget has to count.
    pub fn bytes(&self) -> u64 {
        8 * match self {
            Source::All(_) => 0,
            Source::List(s) => s.ids().len() as u64,
            Source::Balanced(s) => s.words(),
            Source::Weighted(s) => s.words(),
            Source::Mixture(s) => s.words(),
        }
    }
}

/// CRC32C (Castagnoli), as everywhere in a dataset outside TFRecord framing: unmasked.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// CRC32C of the words as little-endian u64.
fn crc32c_words(words: impl Iterator<Item = u64>) -> u32 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    words.for_each(|w| digest.update(&w.to_le_bytes()));
    digest.finalize() as u32
}

/// (a + b·c) mod m, without overflow.
#[inline]
fn rotate(a: u64, b: u64, c: u64, m: u64) -> u64 {
    match b.checked_mul(c).and_then(|bc| bc.checked_add(a)) {
        Some(sum) => sum % m,
        None => ((u128::from(a) + u128::from(b) * u128::from(c)) % u128::from(m)) as u64,
    }
}
