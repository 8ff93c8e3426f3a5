//! Finds the purged images under other keys: records that are not purged and have an image of the same length and CRC.

use super::chosen::{Chosen, KeptShard};
use crate::Error;
use crate::progress::{Progress, check};
use shardtool_format::checksum::crc32c;
use shardtool_format::index;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Returns the splits and keys of the copies that kept versions have.
///
/// # Errors
/// [`Error::Read`], [`Error::Stopped`].
pub(super) fn find(chosen: &Chosen, progress: &dyn Progress) -> Result<Vec<(String, String)>, Error> {
    // The CRCs of purged images, by their lengths.
    let mut purged: HashMap<u32, HashSet<u32>> = HashMap::new();
    for (_, shard) in chosen.affected() {
        for (length, crc, _) in images(chosen, shard, |row| shard.rows.binary_search(&row).is_ok(), |_| true, progress)?
        {
            purged.entry(length).or_default().insert(crc);
        }
    }
    let mut copies = BTreeSet::new();
    if purged.is_empty() {
        return Ok(vec![]);
    }
    for shard in chosen.shards.values() {
        let kept = |row: u64| shard.rows.binary_search(&row).is_err();
        let split = chosen.split(shard).name();
        for (length, crc, key) in images(chosen, shard, kept, |length| purged.contains_key(&length), progress)? {
            if purged.get(&length).is_some_and(|crcs| crcs.contains(&crc)) {
                copies.insert((split.to_owned(), String::from_utf8_lossy(&key).into_owned()));
            }
        }
    }
    Ok(copies.into_iter().collect())
}

/// Returns length, CRC and key of the images of some rows that have one of these lengths. Reads no other record.
fn images(
    chosen: &Chosen,
    kept: &KeptShard,
    takes: impl Fn(u64) -> bool,
    is_wanted: impl Fn(u32) -> bool,
    progress: &dyn Progress,
) -> Result<Vec<(u32, u32, Vec<u8>)>, Error> {
    check(progress)?;
    let shard = chosen.open(kept)?;
    let Some(lengths) = shard.column::<u32>(index::IMAGE_LENGTH)? else { return Ok(vec![]) };
    let (mut found, mut buffer) = (vec![], vec![]);
    for row in 0..shard.records() {
        let length = lengths.get(row).unwrap_or(0);
        if length == 0 || !is_wanted(length) || !takes(row) {
            continue;
        }
        let record = shard.record(row, std::mem::take(&mut buffer))?;
        if let Some(image) = record.image()? {
            found.push((length, crc32c(image), shard.key(row)?.into_owned()));
        }
        record.check_readable()?;
        buffer = record.into_buffer();
    }
    shard.check_index_readable()?;
    Ok(found)
}
