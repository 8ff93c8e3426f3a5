//! Compares the number of records that a manifest claims with the lengths of files, before anything loops over records.

use crate::{Error, Result, Split};
use shardtool_format::{frame, index, names};
use shardtool_store::{Object, is_url};
use std::path::Path;

/// Records that a shard may claim without proof. Shards of photographs hold a few thousand, so almost no file is examined;
/// and a loop over a false claim of this size is short.
const UNPROVEN: u64 = 1 << 16;

impl Split {
    /// Checks that no shard claims more records than its files can hold: a record takes 16 bytes of the shard or more, and
    /// [`index::ROW_BYTES`] of the index or more. Looks only at files of shards that claim more than 65,536 records; opens
    /// none. Call it before a loop over all ids, or before memory for them is allocated: a manifest of a few bytes may
    /// claim 2^60 records.
    ///
    /// # Errors
    /// [`Error::RecordCount`]; [`Error::MissingShard`] if neither file exists; [`Error::ForeignSource`], [`Error::Io`].
    pub fn check_counts(&self) -> Result<()> {
        if self.is_bare() {
            return Ok(());
        }
        let claims = self.entry().shards.iter().enumerate().filter(|(_, shard)| shard.records > UNPROVEN);
        for (number, shard) in claims {
            self.check_allowed(number)?;
            let path = self.shard_path(number);
            let (bytes, index_bytes) = (length(&path)?, length(&names::index_path(&path))?);
            if bytes.is_none() && index_bytes.is_none() {
                return Err(Error::MissingShard { path });
            }
            let found =
                (bytes.unwrap_or(0) / frame::OVERHEAD_BYTES as u64).max(index_bytes.unwrap_or(0) / index::ROW_BYTES);
            if shard.records > found {
                return Err(Error::RecordCount { path, expected: shard.records, found });
            }
        }
        Ok(())
    }
}

/// Returns the length of a file in bytes; `None` if it does not exist.
fn length(path: &Path) -> Result<Option<u64>> {
    let length = || {
        if is_url(path) { Object::open(path).map(|object| object.len()) } else { Ok(std::fs::metadata(path)?.len()) }
    };
    match length() {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { action: "read", path: path.to_owned(), source }),
    }
}
