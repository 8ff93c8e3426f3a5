//! Errors of a whole run, grouped by their cause. An error of a single input is a [`Reason`].
//!
//! Displaying an error prints one link of its chain; [`shardtool_format::Chain`] prints the whole chain.

mod archive;
mod array;
mod compression;
mod destination;
mod difference;
pub(crate) mod fault;
mod list;
mod mds;
mod reason;
mod rejection;
mod sample;
mod shard;
mod source;
mod writer;

pub use archive::ArchiveError;
pub use array::ArrayRefusal;
pub use destination::DestinationError;
pub(crate) use difference::joined_keypoints;
pub use difference::{Difference, PlanDifference};
pub use list::ListError;
pub use mds::MdsProblem;
pub use reason::{BoxError, Reason};
pub use rejection::Rejection;
pub use sample::SampleProblem;
pub use shard::ShardError;
pub use source::SourceError;
pub use writer::WriterError;

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run could not start, or stopped before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option is out of its range.
    #[error("{option}: expected {expected}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its range.
        expected: &'static str,
    },
    /// An invalid name of a split or file.
    #[error(transparent)]
    Name(#[from] shardtool_format::Error),
    /// The source cannot be used.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The list (CSV or JSONL) cannot be used.
    #[error(transparent)]
    List(#[from] ListError),
    /// The archives cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The destination cannot take the split.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// Existing shards cannot be used.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A writer refused a sample or its parts.
    #[error(transparent)]
    Writer(#[from] WriterError),
    /// A dataset that is exported or resharded cannot be read.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// An input cannot be packed, and [`crate::OnError::Fail`] is set.
    #[error(transparent)]
    Rejected(Box<Rejection>),
    /// An interrupted run rejected inputs, and [`crate::OnError::Fail`] is set now.
    #[error("an earlier run rejected inputs, listed in {}; repair them and start again with --force, or continue with \
        --on-error skip", .path.display())]
    RejectedBefore {
        /// The list of rejected inputs.
        path: PathBuf,
    },
    /// [`crate::Progress::after`] stopped the run. The same call continues it.
    #[error("stopped; run the same command again to continue")]
    Stopped,
    /// A Parquet file, in a build without the feature `parquet`.
    #[error("{}: this shardtool was built without the feature `parquet`", .path.display())]
    WithoutParquet {
        /// The file or folder.
        path: PathBuf,
    },
    /// The operating system returned an error.
    #[error("cannot {action} {}{}", .path.display(), remedy(.source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Makes the error of a file that is read as a shard.
    pub(crate) fn of_file(error: shardtool_read::Error) -> Error {
        match error {
            shardtool_read::Error::Io { path, source, .. } => Error::Io { action: "read", path, source },
            error => Error::Read(error),
        }
    }

    /// Makes an I/O error, for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, path: path.to_owned(), source }
    }
}

/// What a user can do about an I/O error.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            " (make room and run the same command again; finished shards are kept)"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " (grant the permission, or choose another file or folder)"
        }
        _ => match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE | Errno::NFILE) => " (raise the limit, `ulimit -n`, and run the same command again)",
            Some(Errno::IO | Errno::STALE) => " (the device or server failed; run the same command again)",
            _ => "",
        },
    }
}
