//! The files of one split in the folder of a dataset.

pub(crate) mod attempt;
pub(crate) mod complete;
pub(crate) mod files;
pub(crate) mod manifest_store;
pub(crate) mod plan_file;
