//! Which image goes to which shard: fixed from the shuffled listing and the sources' sizes before any image is opened,
//! so that a rejected image shifts no other and an interrupted pack can go on.

use crate::source::Listing;
use crate::{Error, OnError, Options, Rejection, Shards, record};
use shardtool_format::manifest::FeatureType;
use shardtool_format::names;
use shardtool_order::{Permutation, pack_permutation};
use std::ops::Range;

/// What a pack would do.
pub struct Plan {
    pub(crate) listing: Listing,
    /// Position → entry, unless it is the source's order.
    order: Option<Permutation>,
    /// Where each shard's positions end.
    ends: Vec<usize>,
}

/// A shard that a pack would write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedShard {
    /// Its file name.
    pub file: String,
    /// Images, before any is rejected.
    pub images: u64,
    /// Bytes of their files.
    pub source_bytes: u64,
}

/// Lists the source and plans the shards. Writes nothing, and reads no image.
///
/// # Errors
/// Those of options and sources; [`Error::Rejected`] under [`OnError::Fail`]. What already lies at the destination is
/// looked at by [`crate::pack()`].
pub fn plan(options: &Options) -> Result<Plan, Error> {
    options.check()?;
    let mut listing = Listing::new(options)?;
    if options.on_error == OnError::Fail && !listing.rejected.is_empty() {
        return Err(Error::Rejected(Box::new(listing.rejected.swap_remove(0))));
    }
    let count = listing.entries.len();
    let order = options.seed.map(|seed| pack_permutation(seed, count as u64).expect("fewer than 2^63 entries"));
    let total = listing.bytes();
    let shards = match options.shards {
        Shards::Count(count) => count,
        Shards::Size(size) => total.div_ceil(size).max(1),
    };
    if shards > 1_000_000 {
        return Err(Error::Option { option: "shard size", expected: "one that makes at most 1,000,000 shards" });
    }
    let mut plan = Plan { listing, order, ends: vec![0; shards as usize] };
    // An entry that begins at byte b of all sources in packing order belongs to shard ⌊b · shards ÷ total⌋.
    let mut begin = 0u64;
    for position in 0..count {
        let shard = u128::from(begin) * u128::from(shards) / u128::from(total.max(1));
        plan.ends[(shard as usize).min(shards as usize - 1)] = position + 1;
        begin += plan.listing.entries[plan.entry(position)].size;
    }
    let mut end = 0;
    for shard_end in &mut plan.ends {
        end = end.max(*shard_end);
        *shard_end = end;
    }
    Ok(plan)
}

impl Plan {
    /// The entry at a position of the packing order.
    pub(crate) fn entry(&self, position: usize) -> usize {
        self.order.as_ref().map_or(position, |order| order.forward(position as u64) as usize)
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.ends.len()
    }

    /// Positions of a shard.
    pub(crate) fn positions(&self, shard: usize) -> Range<usize> {
        let start = if shard == 0 { 0 } else { self.ends[shard - 1] };
        start..self.ends[shard]
    }

    /// Images that are to be packed.
    pub fn images(&self) -> u64 {
        self.listing.entries.len() as u64
    }

    /// Bytes of their files.
    pub fn source_bytes(&self) -> u64 {
        self.listing.bytes()
    }

    /// Class names by id; empty where there are none.
    pub fn classes(&self) -> &[String] {
        &self.listing.classes
    }

    /// Features that every record will have, in byte order of their names.
    pub fn features(&self) -> Vec<FeatureType> {
        record::features(&self.listing)
    }

    /// What cannot be packed, as far as that is known without opening images.
    pub fn rejected(&self) -> &[Rejection] {
        &self.listing.rejected
    }

    /// The shards of a split of that name.
    pub fn shards(&self, split: &str) -> impl Iterator<Item = PlannedShard> {
        (0..self.shard_count()).map(move |shard| {
            let positions = self.positions(shard);
            PlannedShard {
                file: names::shard_file(split, shard),
                images: positions.len() as u64,
                source_bytes: positions.map(|p| self.listing.entries[self.entry(p)].size).sum(),
            }
        })
    }
}
