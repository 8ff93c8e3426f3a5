//! Files that are compressed as a whole.

use shardtool_format::Compression;
use std::path::Path;

/// Returns a shell command that decompresses the file.
pub(super) fn command(compression: Compression, path: &Path) -> String {
    let path = path.display();
    match compression {
        Compression::Gzip => format!("gzip -dc '{path}' > '{path}.tfrecord'"),
        Compression::Zlib => format!(
            "python3 -c 'import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))' \
             < '{path}' > '{path}.tfrecord'"
        ),
    }
}
