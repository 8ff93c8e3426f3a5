//! Creates every file that this crate writes. A file is written under a name that no other process has, made durable and
//! renamed, so under its final name it is either complete or absent. Names are resolved relative to the handle of a
//! folder, and symbolic links inside a dataset are not followed, so that a hostile dataset cannot redirect a write.
//!
//! | module | responsibility |
//! |---|---|
//! | `directory` | a folder, and the files and folders in it |
//! | `temporary` | files under temporary names, and removal of those that a killed process left |
//! | `lock` | locks on a dataset and on parts of it |
//! | `record` | what a command leaves in a folder that it filled, so that it recognises its result |
//! | `output` | a folder that is filled by one command and whose files appear when all are complete |

mod directory;
mod lock;
mod output;
mod record;
mod temporary;

pub(crate) use directory::Directory;
pub(crate) use lock::Lock;
pub use output::Output;
pub(crate) use output::{Begun, unfinished};
pub(crate) use record::{Listing, RECORD, Record, Request, exported_splits};
pub(crate) use temporary::{Temporary, final_name, publish, publish_new, remove_abandoned, unique};
