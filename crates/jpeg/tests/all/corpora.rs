//! Corpora outside the repository, and checksums.

use std::path::PathBuf;

/// Returns a folder of the corpora (below `SHARDTOOL_SHARED`, by default a sibling of the repository); `None`, with a message, if
/// it does not exist.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let root = std::env::var_os("SHARDTOOL_SHARED").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let folder = root.join("data").join(name);
    if !folder.is_dir() {
        eprintln!("skipped: no {}", folder.display());
        return None;
    }
    Some(folder)
}

/// CRC-32 as in zlib.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|i| (0..8).fold(i as u32, |c, _| (c >> 1) ^ (0xedb8_8320 * (c & 1))));
    !bytes.iter().fold(!0, |c, &b| (c >> 8) ^ table[((c ^ u32::from(b)) & 255) as usize])
}
