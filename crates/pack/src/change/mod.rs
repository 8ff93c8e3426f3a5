//! Changes of a dataset: each makes a new version, of new files only. What earlier versions name stays as it is, but for a purge.
//!
//! ```text
//! newest version ─read─▶ new files (_columns, shards) ─▶ manifest before to _versions ─▶ manifest replaced on condition
//! ```
//!
//! Two changes at once: the second is put on top of the first if what it is based on is still there ([`commit`]); otherwise it is
//! refused, and its files are removed.
//!
//! | module | responsibility |
//! |---|---|
//! | `base` | the version that a change is based on |
//! | `commit` | puts a change on top of the newest version |
//! | `parts_file` | a file of the columns, or of the bitmaps, of many shards |
//! | `chosen` | which records a change takes |
//! | `delete` | deletes records |
//! | `select` | makes and removes views |
//! | `views` | what becomes of views when rows are deleted or moved |
//! | `columns` | adds, replaces and drops columns |
//! | `append` | adds records |
//! | `compact` | writes the records of the newest version into new shards |
//! | `tags` | names versions |
//! | `rollback` | returns to the contents of an earlier version |
//! | `gc` | removes files that no version names |
//! | `purge` | removes deleted records from all versions |

mod append;
mod base;
mod chosen;
mod columns;
mod commit;
mod compact;
mod delete;
mod gc;
mod parts_file;
mod purge;
mod rollback;
mod select;
mod tags;
mod views;

pub use append::{AppendOptions, Appended, AppendedSplit, append};
pub use chosen::ChosenRecords;
pub use columns::{
    ChangedColumns, ColumnChange, ColumnOptions, ColumnRows, ColumnSource, ColumnValues, MissingRows, change_columns,
    column_rows, drop_columns,
};
pub use compact::{CompactOptions, Compacted, compact};
pub use delete::{DeleteOptions, Deleted, delete};
pub use gc::{Collected, GcOptions, gc};
pub use purge::{PurgeOptions, Purged, purge};
pub use rollback::rollback;
pub use select::{SelectOptions, Selected, remove_view, select};
pub use tags::{remove_tag, tag};

/// What all changes have in common.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ChangeOptions {
    /// Words about the change, which the version keeps.
    pub message: Option<String>,
    /// Who makes it, which the version keeps.
    pub author: Option<String>,
    /// Whether to find out what would change, and write nothing.
    pub dry_run: bool,
    /// Whether nothing else writes to the dataset, in a store that does not compare versions of objects.
    pub single_writer: bool,
    /// Folders and URLs, besides the dataset's folder, in which its files may lie
    /// ([`shardtool_read::Options::sources`]).
    pub sources: Vec<String>,
}

/// A change that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewVersion {
    /// Number of the version.
    pub number: u64,
    /// Number of the version that it was put on top of.
    pub parent: u64,
    /// Whether it has shards that are stored, which programs that know nothing of versions read.
    pub has_stored_shards: bool,
}
