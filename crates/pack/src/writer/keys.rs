//! The set of written keys, in 16 bytes per key.

use crate::Error;
use crate::error::DestinationError;
use crate::place::Place;
use shardtool_format::index::{self, Index};
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

/// A set of keys, as 128 bits of SipHash each: the probability of a collision among 10⁹ keys is 10⁻²¹.
#[derive(Default)]
pub(crate) struct Keys(HashSet<u128>);

impl Keys {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.0.contains(&hash(key))
    }

    /// Adds a key. Returns whether it is new.
    pub(crate) fn insert(&mut self, key: &[u8]) -> bool {
        self.0.insert(hash(key))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the keys of an index.
    ///
    /// # Errors
    /// [`Error::Io`], [`DestinationError::Index`].
    pub(crate) fn read(&mut self, path: &Path) -> Result<(), Error> {
        each(path, |key| {
            self.insert(key);
            Ok(())
        })
    }
}

/// Calls `visit` for each key of an index, in order.
///
/// # Errors
/// [`Error::Io`], [`DestinationError::Index`], and those of the visitor.
pub(crate) fn each(path: &Path, visit: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
    each_of(&std::fs::read(path).map_err(Error::io("read", path))?, path, visit)
}

/// As [`each`], of an index that was read from `path`.
///
/// # Errors
/// [`DestinationError::Index`], and those of the visitor.
pub(crate) fn each_of(
    file: &[u8],
    path: &Path,
    mut visit: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let bad = |source| Error::Destination(DestinationError::Index { path: path.to_owned(), source });
    let index = Index::parse(file).map_err(bad)?;
    let column =
        index.position(index::KEY).ok_or(shardtool_format::Error::IndexColumn { column: index::KEY.to_owned() });
    let column = column.map_err(bad)?;
    index.check(column).map_err(bad)?;
    let Some(keys) = index.variable(column) else { return Ok(()) };
    (0..index.records()).try_for_each(|row| keys.get(row).map_or(Ok(()), &mut visit))
}

/// As [`each`], of the index of a shard in a dataset.
///
/// # Errors
/// As [`each`].
pub(crate) fn each_in<P: Place>(
    place: &P,
    shard: &Shard,
    visit: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let relative = names::index_path(Path::new(&shard.file));
    let path = place.path().join(&relative);
    let index = place.read(&relative)?.ok_or_else(|| Error::io("read", &path)(std::io::ErrorKind::NotFound.into()))?;
    each_of(&index, &path, visit)
}

fn hash(key: &[u8]) -> u128 {
    let half = |seed: u8| {
        // `DefaultHasher::new` has fixed keys, so the hashes are the same in every run.
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(seed);
        hasher.write(key);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
