//! Adds the keys of purged records to those that do not come back.

use super::super::parts_file::{Holds, PartsFile};
use crate::Error;
use crate::place::Place;
use crate::purged_keys::PurgedKeyList;
use shardtool_format::manifest::PurgedKeys;

/// Writes the list with further keys. Returns where it lies; `None` if there are none.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn write<P: Place>(
    place: &P,
    known: Option<PurgedKeyList>,
    keys: &[&[u8]],
) -> Result<Option<PurgedKeys>, Error> {
    let mut list = known.map_or_else(|| PurgedKeyList::new(place), Ok)?;
    list.add(keys);
    if list.len() == 0 {
        return Ok(None);
    }
    let mut file = PartsFile::new(place, Holds::PurgedKeys);
    let part = file.add(&list.to_bytes())?;
    file.finish()?;
    Ok(Some(PurgedKeys { number: list.len() as u64, list: part }))
}
