//! Files that are compressed as a whole.

use std::path::Path;

/// How a TFRecord file is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// TensorFlow's `GZIP`.
    Gzip,
    /// TensorFlow's `ZLIB`.
    Zlib,
}

impl Compression {
    pub(super) fn command(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Compression::Gzip => format!("gzip -dc '{path}' > '{path}.tfrecord'"),
            Compression::Zlib => format!(
                "python3 -c 'import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))' \
                 < '{path}' > '{path}.tfrecord'"
            ),
        }
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zlib => "zlib",
        })
    }
}
