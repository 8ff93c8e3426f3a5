//! Versions of objects, and conditions on them.

use std::time::SystemTime;

/// The version of an object, as the store names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub(crate) e_tag: Option<String>,
    pub(crate) generation: Option<String>,
}

/// The condition under which [`crate::put_if`] writes.
#[derive(Debug, Clone, Copy)]
pub enum Condition<'a> {
    /// None.
    Always,
    /// The object does not exist.
    Absent,
    /// The object still has this version.
    Unchanged(&'a Version),
}

/// A whole object.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its version.
    pub version: Version,
    /// When it was written, by the clock of the store, in whole seconds.
    pub modified: SystemTime,
}
