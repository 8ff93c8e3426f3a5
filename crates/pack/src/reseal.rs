//! Gives a manifest that was edited by hand its CRC, after comparing it with shards and indexes.

use crate::Error;
use crate::copy::check_allowed;
use crate::error::{DestinationError, ShardError};
use crate::split::manifest_store;
use shardtool_format::checksum::crc32c;
use shardtool_format::index::Index;
use shardtool_format::manifest::{Manifest, Shard};
use shardtool_format::names;
use std::path::Path;

/// Checks an edited manifest, and writes it in canonical form with its CRC. Returns whether the file changed. Unknown
/// members are dropped; private ones (`x-`) are kept.
///
/// For each shard, the lengths of both files, the CRC of the index, and what the index says about the shard must be what
/// the manifest says. Shards are not read; `verify` reads them.
///
/// # Errors
/// [`ShardError::NoDataset`]; [`DestinationError::Manifest`] if the manifest is invalid apart from its CRC;
/// [`ShardError::NotAsListed`], [`DestinationError::Index`]; [`Error::Io`].
pub fn reseal(folder: &Path) -> Result<bool, Error> {
    manifest_store::rewrite(folder, |json| {
        let path = folder.join(names::MANIFEST);
        let manifest = Manifest::parse_unsealed(json)
            .map_err(|source| Error::Destination(DestinationError::Manifest { path, source }))?;
        check_allowed(folder, [&manifest].into_iter(), &[])?;
        let mut shards = manifest.splits.iter().flat_map(|split| &split.shards);
        shards.try_for_each(|shard| compare(folder, shard))?;
        Ok(manifest)
    })
}

/// Compares a line of the manifest with its files.
fn compare(folder: &Path, line: &Shard) -> Result<(), Error> {
    let shard = line.foreign.dataset().map_or(folder, Path::new).join(&line.file);
    let file = names::index_path(&shard);
    let length = match line.foreign.is_virtual {
        true => line.bytes,
        false => std::fs::metadata(&shard).map_err(Error::io("read", &shard))?.len(),
    };
    let invalid = |source| Error::Destination(DestinationError::Index { path: file.clone(), source });
    let bytes = shardtool_read::read_index(&file).map_err(|error| match error {
        shardtool_read::Error::Io { source, .. } => Error::io("read", &file)(source),
        shardtool_read::Error::Index { source, .. } => invalid(source),
        error => error.into(),
    })?;
    let (index_bytes, index_crc) = (bytes.len() as u64, crc32c(&bytes));
    let index = Index::parse(bytes).map_err(invalid)?;
    index.required().map_err(invalid)?;
    let crc = |value: u32| format!("{value:08x}");
    for (path, member, listed, found) in [
        (&shard, "bytes", line.bytes.to_string(), length.to_string()),
        (&file, "index_bytes", line.index_bytes.to_string(), index_bytes.to_string()),
        (&file, "index_crc32c", crc(line.index_crc32c), crc(index_crc)),
        (&file, "records", line.records.to_string(), index.records().to_string()),
        (&file, "bytes", line.bytes.to_string(), index.shard_bytes().to_string()),
        (&file, "crc32c", crc(line.crc32c), crc(index.shard_crc())),
    ] {
        if listed != found {
            let path = path.clone();
            return Err(Error::Shard(ShardError::NotAsListed { path, member, listed, found }));
        }
    }
    Ok(())
}
