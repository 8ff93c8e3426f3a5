//! Source position → sample id. The order permutes the source positions `[0, N)`; a source maps each to a sample.

mod balanced;
mod list;
mod mixture;
mod rarest;
mod scheduled;
mod weighted;

use shardtool_format::checksum::{Crc32c, crc32c};

use crate::order::Order;

pub use balanced::Balanced;
pub use list::List;
pub use mixture::Mixture;
pub use rarest::rarest_labels;
pub(crate) use scheduled::ScheduledCursor;
pub use scheduled::{Member, Scheduled, StageMarks, StageWeights};
pub use weighted::Weighted;

/// A pure function (order, seed, epoch, source position) → sample id. Only a scheduled source depends on the order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// Every sample of a split of this length: source position v is id v.
    All(u64),
    /// The ids of a list or a filter, in the list's order.
    List(List),
    /// Every class equally often.
    Balanced(Balanced),
    /// Every sample in proportion to its weight.
    Weighted(Weighted),
    /// Several datasets, each with a share of the epoch.
    Mixture(Mixture),
    /// Members in shares that change within the run, each with its own order.
    Scheduled(Scheduled),
}

impl Source {
    /// Returns the source of a list of ids of a split with `split_len` samples, such as a subset.
    ///
    /// # Errors
    /// [`Error::ListedId`](crate::Error::ListedId) for an id of `split_len` or more.
    pub fn list(ids: Vec<u64>, split_len: u64) -> Result<Self, crate::Error> {
        List::new(ids, split_len).map(Source::List)
    }

    /// Returns whether the samples and their order depend on neither seed nor epoch.
    pub fn is_fixed(&self) -> bool {
        match self {
            Source::All(_) | Source::List(_) => true,
            Source::Balanced(_) | Source::Weighted(_) | Source::Mixture(_) | Source::Scheduled(_) => false,
        }
    }

    /// Returns N, the number of source positions per epoch.
    #[expect(clippy::len_without_is_empty, reason = "the size of a domain; a plan refuses an empty one")]
    pub fn len(&self) -> u64 {
        match self {
            Source::All(n) => *n,
            Source::List(s) => s.ids().len() as u64,
            Source::Balanced(s) => s.len(),
            Source::Weighted(s) => s.len(),
            Source::Mixture(s) => s.len(),
            Source::Scheduled(s) => s.draws(),
        }
    }

    /// Returns the id of the sample at `source_position` in this epoch. The order is that of the run, in which each member of a
    /// scheduled source is visited.
    ///
    /// # Panics
    /// May panic if `source_position` is N or more.
    #[inline]
    pub fn id(&self, order: Order, seed: u64, epoch: u64, source_position: u64) -> u64 {
        let v = source_position;
        match self {
            Source::All(_) => v,
            Source::List(s) => s.ids()[v as usize],
            Source::Balanced(s) => s.id(epoch, v),
            Source::Weighted(s) => s.id(seed, epoch, v),
            Source::Mixture(s) => s.id(epoch, v),
            Source::Scheduled(s) => s.id(order, seed, epoch, v),
        }
    }

    /// Returns the source as one line of JSON, the same for equal sources. The checksum in a resume state covers it. Long
    /// lists are replaced by count and CRC32C.
    pub fn canonical_json(&self) -> String {
        match self {
            Source::All(_) => r#"{"source":"all"}"#.to_owned(),
            Source::List(s) => s.canonical_json(),
            Source::Balanced(s) => s.canonical_json(),
            Source::Weighted(s) => s.canonical_json(),
            Source::Mixture(s) => s.canonical_json(),
            Source::Scheduled(s) => s.canonical_json(),
        }
    }

    /// Returns the CRC32C of [`canonical_json`](Source::canonical_json).
    pub fn crc(&self) -> u32 {
        crc32c(self.canonical_json().as_bytes())
    }

    /// Returns the memory that the source holds in bytes, for a memory budget.
    pub fn bytes(&self) -> u64 {
        match self {
            Source::All(_) => 0,
            Source::List(s) => 8 * s.ids().len() as u64,
            Source::Balanced(s) => 8 * s.numbers(),
            Source::Weighted(s) => 8 * s.numbers(),
            Source::Mixture(s) => 8 * s.numbers(),
            Source::Scheduled(s) => s.bytes(),
        }
    }

    /// Returns the memory of each walk through an epoch in bytes, for a memory budget.
    pub fn walk_bytes(&self) -> u64 {
        if let Source::Scheduled(s) = self { s.cursor_bytes() } else { 0 }
    }
}

/// Computes the CRC32C of numbers, each as eight little-endian bytes.
fn crc32c_numbers(numbers: impl Iterator<Item = u64>) -> u32 {
    let mut crc = Crc32c::new();
    numbers.for_each(|n| crc.update(&n.to_le_bytes()));
    crc.value()
}

/// Computes (a + b·c) mod m without overflow.
#[inline]
fn rotate(a: u64, b: u64, c: u64, m: u64) -> u64 {
    match b.checked_mul(c).and_then(|bc| bc.checked_add(a)) {
        Some(sum) => sum % m,
        None => ((u128::from(a) + u128::from(b) * u128::from(c)) % u128::from(m)) as u64,
    }
}
