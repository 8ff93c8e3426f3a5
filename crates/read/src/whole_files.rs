//! Reads manifests and indexes into memory whole, after checking their length.

use crate::{Access, Error, FileBytes, Result, open_regular};
use shardtool_format::index::{self, HEADER_BYTES};
use shardtool_format::manifest::{self, Manifest};
use std::io::Read;
use std::path::Path;

/// Reads the file of a manifest.
///
/// # Errors
/// [`Error::Io`]; [`Error::Manifest`] if it has more than [`manifest::MAX_BYTES`].
pub fn read_manifest(path: &Path) -> Result<Vec<u8>> {
    let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
    if shardtool_store::is_url(path) {
        let json = shardtool_store::read_whole(path, manifest::MAX_BYTES).map_err(io)?;
        let too_long = || manifest::check_length(manifest::MAX_BYTES + 1).err();
        return match json {
            Some(json) => Ok(json),
            None => Err(too_long().map_or_else(
                || io(std::io::ErrorKind::FileTooLarge.into()),
                |source| Error::Manifest { path: path.to_owned(), source },
            )),
        };
    }
    let file = open_regular(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    manifest::check_length(bytes).map_err(|source| Error::Manifest { path: path.to_owned(), source })?;
    let mut json = Vec::with_capacity(bytes as usize);
    file.take(manifest::MAX_BYTES).read_to_end(&mut json).map_err(io)?;
    Ok(json)
}

/// Reads and parses a manifest. One in a store that is damaged is requested again, until two answers are equal.
///
/// # Errors
/// As [`read_manifest`]; [`Error::Manifest`].
pub fn parse_manifest(path: &Path) -> Result<(Vec<u8>, Manifest)> {
    let mut json = read_manifest(path)?;
    let mut parsed = Manifest::parse(&json);
    for _ in 0..shardtool_store::REFETCHES {
        if parsed.is_ok() || !shardtool_store::is_url(path) {
            break;
        }
        shardtool_store::count_refetched();
        let before = std::mem::replace(&mut json, read_manifest(path)?);
        if before == json {
            break;
        }
        parsed = Manifest::parse(&json);
    }
    let manifest = parsed.map_err(|source| Error::Manifest { path: path.to_owned(), source })?;
    Ok((json, manifest))
}

/// Reads the file of an index, unless its header gives another length than the file's. Checks nothing else.
///
/// # Errors
/// [`Error::Io`]; [`Error::Index`].
pub fn read_index(path: &Path) -> Result<Vec<u8>> {
    read_open_index(&FileBytes::open(path, Access::Pread)?, path)
}

/// As [`read_index`], of an open file.
pub(crate) fn read_open_index(file: &FileBytes, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = vec![];
    file.read_into(0..file.len().min(HEADER_BYTES as u64), &mut bytes)?;
    index::check_header(&bytes, file.len()).map_err(|source| Error::Index { path: path.to_owned(), source })?;
    file.read_into(0..file.len(), &mut bytes)?;
    Ok(bytes)
}
