//! The tokens of each sample, and the rows they are packed into.

use std::num::NonZeroU32;

use crate::Error;
use shardtool_format::checksum::{Crc32c, crc32c};

/// The largest number of positions of a packing window, X.
const MAX_WINDOW: u32 = 1 << 16;

/// What happens to samples that are longer than a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Truncation {
    /// Their first tokens fill a row.
    #[default]
    Truncate,
    /// They are an error.
    Refuse,
}

/// The tokens of each source position, and the parameters of packing. Holds 4 bytes per source position.
#[derive(Clone, Debug)]
pub struct Packing {
    /// Tokens of each source position, at most `capacity`.
    tokens: Box<[u32]>,
    capacity: NonZeroU32,
    window: NonZeroU32,
    total: u64,
    crc: u32,
}

impl Packing {
    /// Packs samples of these lengths, in tokens, one for each source position, into rows of `capacity` tokens. `window` is
    /// the number of consecutive positions of an epoch whose samples are packed together, 1 to 2¹⁶: larger windows fill
    /// rows better, smaller ones take less time to seek to. 4096 fills 98 to 99.9 % of the tokens of ordinary lengths.
    ///
    /// # Errors
    /// [`Error::PackingWindow`] for a larger window; [`Error::LongSample`] with the number of lengths above `capacity`, if
    /// those are refused.
    pub fn new(
        lengths: impl IntoIterator<Item = u64>,
        capacity: NonZeroU32,
        window: NonZeroU32,
        truncation: Truncation,
    ) -> Result<Self, Error> {
        if window.get() > MAX_WINDOW {
            return Err(Error::PackingWindow { window: window.get(), most: MAX_WINDOW });
        }
        let most = u64::from(capacity.get());
        let (mut count, mut longest, mut total, mut numbers) = (0, 0, 0u64, Crc32c::new());
        let tokens = lengths.into_iter().map(|length| {
            if length > most {
                (count, longest) = (count + 1, length.max(longest));
            }
            let tokens = length.min(most);
            total = total.saturating_add(tokens);
            numbers.update(&tokens.to_le_bytes());
            tokens as u32
        });
        let tokens: Box<[u32]> = tokens.collect();
        if count > 0 && truncation == Truncation::Refuse {
            return Err(Error::LongSample { count, longest, most: capacity.get() });
        }
        let json = format!(
            r#"{{"batching":"packing","capacity":{capacity},"window":{window},"count":{},"crc32c":"{:08x}"}}"#,
            tokens.len(),
            numbers.value()
        );
        Ok(Packing { tokens, capacity, window, total, crc: crc32c(json.as_bytes()) })
    }

    /// Returns V, the tokens of a row.
    pub fn capacity(&self) -> u32 {
        self.capacity.get()
    }

    /// Returns X, the positions of a packing window.
    pub fn window(&self) -> u32 {
        self.window.get()
    }

    /// Returns N, the number of source positions.
    #[expect(clippy::len_without_is_empty, reason = "the number of source positions; a plan refuses none")]
    pub fn len(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// Returns the tokens of all source positions together.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the batching checksum, which resume states contain: it covers the lengths and the parameters.
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// Returns the memory of the lengths in bytes, for a memory budget.
    pub fn bytes(&self) -> u64 {
        4 * self.len()
    }

    /// Returns the tokens of the sample at a source position below N.
    pub fn tokens(&self, source_position: u64) -> u32 {
        self.tokens[source_position as usize]
    }

    /// Returns the number of packing windows of an epoch.
    pub(super) fn windows(&self) -> u64 {
        self.len().div_ceil(self.window.get().into())
    }

    /// Returns a number of rows that no epoch falls below.
    pub(super) fn fewest_rows(&self) -> u64 {
        self.total.div_ceil(self.capacity.get().into()).max(self.windows())
    }
}
