//! Compares a source with the shards that were packed of it, where its names and sizes are the same and its times are not: a
//! copied source, or files that were touched. Packing is deterministic, so that equal contents make equal shards.

use super::{Target, write_shards};
use crate::place::Nowhere;
use crate::progress::Progress;
use crate::{Error, Options, Plan};
use shardtool_format::manifest::Shard;

/// Returns whether the plan's source makes these shards, which are given with their numbers. Writes nothing.
///
/// # Errors
/// [`Error::Stopped`], [`Error::Rejected`], [`Error::Io`].
pub(crate) fn makes(
    options: &Options,
    plan: &Plan,
    shards: &[(usize, &Shard)],
    progress: &dyn Progress,
) -> Result<bool, Error> {
    if shards.is_empty() {
        return Ok(true);
    }
    let numbers: Vec<_> = shards.iter().map(|(number, _)| *number).collect();
    if numbers.iter().any(|number| *number >= plan.shard_count()) {
        return Ok(false);
    }
    let target = Target::<Nowhere>::new(options)?;
    match write_shards(options, plan, &target, &numbers, &Unrecorded(progress)) {
        Ok((made, _)) => {
            // What is described where it lies must lie there.
            let index =
                |shard: &Shard| options.virtual_source.as_ref().map(|_| (shard.index_bytes, shard.index_crc32c));
            let content = |shard: &Shard| (shard.records, shard.bytes, shard.crc32c, index(shard));
            let same = |((_, made), (_, there)): (&(usize, Shard), &(usize, &Shard))| content(made) == content(there);
            Ok(made.shards.len() == shards.len() && made.shards.iter().zip(shards).all(same))
        }
        // An index that is made of other bytes than the records.
        Err(Error::Shard(_) | Error::Read(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Progress of which no step is durable.
struct Unrecorded<'a>(&'a dyn Progress);

impl Progress for Unrecorded<'_> {
    fn total(&self, images: u64, bytes: u64) {
        self.0.total(images, bytes);
    }

    fn done(&self, images: u64, bytes: u64) {
        self.0.done(images, bytes);
    }

    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}
