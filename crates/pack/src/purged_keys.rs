//! The keys of purged records: a random key of the dataset, and the HMAC-SHA-256 of each purged key under it, so that the list names no
//! record.

use crate::Error;
use crate::commit::Directory;
use crate::error::{DestinationError, ShardError};
use crate::place::{Place, StoreFolder};
use crate::writer::keys;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use shardtool_format::checksum::crc32c;
use shardtool_format::manifest::{HMAC_BYTES, Manifest, PurgedKeys, Split};
use shardtool_format::names;
use shardtool_read::Dataset;
use std::path::Path;

const BYTES: usize = HMAC_BYTES as usize;

/// The keys of purged records.
pub(crate) struct PurgedKeyList {
    key: [u8; BYTES],
    /// Ascending.
    hmacs: Vec<[u8; BYTES]>,
}

impl PurgedKeyList {
    /// Returns an empty list with a new random key.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn new<P: Place>(place: &P) -> Result<Self, Error> {
        let mut key = [0; BYTES];
        let failed = |error: getrandom::Error| std::io::Error::other(error.to_string());
        getrandom::fill(&mut key).map_err(|error| Error::io("make a random key for", place.path())(failed(error)))?;
        Ok(PurgedKeyList { key, hmacs: vec![] })
    }

    /// Adds keys.
    pub(crate) fn add(&mut self, keys: &[&[u8]]) {
        let new: Vec<_> = keys.iter().map(|key| self.hmac(key)).collect();
        self.hmacs.extend(new);
        self.hmacs.sort_unstable();
        self.hmacs.dedup();
    }

    /// Returns the list as it is stored.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [&[self.key], &self.hmacs[..]].concat().concat()
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.hmacs.len()
    }

    /// Returns whether a record with this key was purged.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
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
pub(crate) fn of(dataset: &Dataset) -> Result<Option<PurgedKeyList>, Error> {
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
pub(crate) fn read<P: Place>(place: &P, manifest: &Manifest) -> Result<Option<PurgedKeyList>, Error> {
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

/// Refuses keys that were purged from a dataset.
///
/// # Errors
/// [`ShardError::PurgedKeys`].
pub(crate) fn refuse_keys<'k>(
    dataset: &Path,
    purged: Option<&PurgedKeyList>,
    keys: impl Iterator<Item = &'k [u8]>,
) -> Result<(), Error> {
    let mut found = keys.filter(|key| purged.is_some_and(|purged| purged.contains(key)));
    let Some(first) = found.next() else { return Ok(()) };
    let (path, key) = (dataset.to_owned(), String::from_utf8_lossy(first).into_owned());
    Err(Error::Shard(ShardError::PurgedKeys { path, count: 1 + found.count() as u64, key }))
}

/// Refuses splits that have a purged key.
///
/// # Errors
/// [`ShardError::PurgedKeys`], and those of [`read`].
pub(crate) fn refuse<P: Place>(place: &P, manifest: &Manifest, splits: &[Split]) -> Result<(), Error> {
    let Some(purged) = read(place, manifest)? else { return Ok(()) };
    let (mut count, mut first) = (0, None);
    for shard in splits.iter().flat_map(|split| &split.shards) {
        keys::each_in(place, shard, |key| {
            if purged.contains(key) {
                count += 1;
                first.get_or_insert_with(|| String::from_utf8_lossy(key).into_owned());
            }
            Ok(())
        })?;
    }
    match first {
        Some(key) => Err(Error::Shard(ShardError::PurgedKeys { path: place.path().to_owned(), count, key })),
        None => Ok(()),
    }
}
