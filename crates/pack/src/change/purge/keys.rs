//! The keys of purged records: a random key of the dataset, and the HMAC-SHA-256 of each purged key under it, so that the list names no
//! record.

use super::super::parts_file::{Holds, PartsFile};
use crate::Error;
use crate::commit::Directory;
use crate::error::DestinationError;
use crate::place::{Place, StoreFolder};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use shardtool_format::checksum::crc32c;
use shardtool_format::manifest::{HMAC_BYTES, Manifest, PurgedKeys};
use shardtool_format::names;
use shardtool_read::Dataset;
use std::path::Path;

const BYTES: usize = HMAC_BYTES as usize;

/// The keys of purged records.
pub(in super::super) struct PurgedKeyList {
    key: [u8; BYTES],
    /// Ascending.
    hmacs: Vec<[u8; BYTES]>,
}

impl PurgedKeyList {
    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.hmacs.len()
    }

    /// Returns whether a record with this key was purged.
    pub(in super::super) fn contains(&self, key: &[u8]) -> bool {
        self.hmacs.binary_search(&self.hmac(key)).is_ok()
    }

    fn hmac(&self, key: &[u8]) -> [u8; BYTES] {
        let mut hmac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any length is a key");
        hmac.update(key);
        hmac.finalize().into_bytes().into()
    }
}

/// Reads the keys that a dataset on a disk or in a store remembers.
///
/// # Errors
/// As [`read`].
pub(in super::super) fn of(dataset: &Dataset) -> Result<Option<PurgedKeyList>, Error> {
    let (path, manifest) = (dataset.path(), dataset.manifest());
    match shardtool_store::is_url(path) {
        true => Ok(StoreFolder::open(path)?.map(|place| read(&place, manifest)).transpose()?.flatten()),
        false => Ok(Directory::open(path)?.map(|place| read(&place, manifest)).transpose()?.flatten()),
    }
}

/// Reads the keys that a dataset remembers; `None` if there are none.
///
/// # Errors
/// [`DestinationError::PurgedKeys`] if the list is absent or damaged: nothing may then be appended; [`Error::Io`].
pub(super) fn read<P: Place>(place: &P, manifest: &Manifest) -> Result<Option<PurgedKeyList>, Error> {
    let purged = manifest.versions.as_ref().and_then(|versions| versions.purged.as_ref());
    let Some(PurgedKeys { list, .. }) = purged.and_then(|purged| purged.keys.as_ref()) else { return Ok(None) };
    let relative = Path::new(names::COLUMNS_FOLDER).join(&list.file);
    let damaged = || Error::Destination(DestinationError::PurgedKeys { path: place.path().join(&relative) });
    let file = place.read(&relative)?.ok_or_else(damaged)?;
    let (start, end) = (list.offset as usize, list.end().unwrap_or(u64::MAX) as usize);
    let bytes = file.get(start..end).filter(|bytes| crc32c(bytes) == list.crc32c).ok_or_else(damaged)?;
    let (parts, _) = bytes.as_chunks::<BYTES>();
    let (key, hmacs) = parts.split_first().ok_or_else(damaged)?;
    if !hmacs.is_sorted() {
        return Err(damaged());
    }
    Ok(Some(PurgedKeyList { key: *key, hmacs: hmacs.to_vec() }))
}

/// Writes the list with further keys. Returns where it lies; `None` if there are none.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn write<P: Place>(
    place: &P,
    known: Option<PurgedKeyList>,
    keys: &[&[u8]],
) -> Result<Option<PurgedKeys>, Error> {
    let mut list = match known {
        Some(known) => known,
        None => {
            let mut key = [0; BYTES];
            getrandom::fill(&mut key).map_err(|error| {
                Error::io("make a random key for", place.path())(std::io::Error::other(error.to_string()))
            })?;
            PurgedKeyList { key, hmacs: vec![] }
        }
    };
    let new: Vec<_> = keys.iter().map(|key| list.hmac(key)).collect();
    list.hmacs.extend(new);
    list.hmacs.sort_unstable();
    list.hmacs.dedup();
    if list.hmacs.is_empty() {
        return Ok(None);
    }
    let mut file = PartsFile::new(place, Holds::PurgedKeys);
    let part = file.add(&[&[list.key], &list.hmacs[..]].concat().concat())?;
    file.finish()?;
    Ok(Some(PurgedKeys { number: list.hmacs.len() as u64, list: part }))
}
