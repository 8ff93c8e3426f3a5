//! What stores do. Each verb is one request, which policies may repeat.
//!
//! | verb | returns |
//! |---|---|
//! | `Describe` | length, version and CRC32C of an object |
//! | `Range` | bytes of a range |
//! | `Whole` | a whole object, if it is not too long |
//! | `Commit` | the commit of a dataset on the Hugging Face Hub |
//! | `List` | names of objects in a folder |
//! | `Put` | the version of an object that is written whole |
//! | `Remove` | nothing: the object does not exist any more |
//! | `Begin`, `Part`, `Join`, `Abort` | an upload in parts |
//!
//! The module `requests` makes them.
#![cfg_attr(not(feature = "remote"), expect(dead_code, reason = "requests need a client"))]

#[cfg(feature = "remote")]
pub(crate) mod requests;

use crate::version::{Condition, Found, Version};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// The bytes of an object or a part to be written. Copies for repeated requests share them.
#[cfg(feature = "remote")]
pub(crate) type Payload = bytes::Bytes;
#[cfg(not(feature = "remote"))]
pub(crate) type Payload = Vec<u8>;

/// A request, which may be made several times.
pub(crate) trait Verb: Send + Sync + 'static {
    /// What the store answers.
    type Answer: Send + 'static;
}

/// Describes an object.
pub(crate) struct Describe {
    /// Whether the CRC32C that the store keeps of the object is requested.
    pub(crate) checksum: bool,
}

impl Verb for Describe {
    type Answer = Description;
}

/// What a store says about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) len: u64,
    pub(crate) version: Version,
    /// In nanoseconds since 1970; 0 if it is unknown.
    pub(crate) modified: i64,
    pub(crate) crc32c: Option<u32>,
}

/// Reads a range that is not empty.
pub(crate) struct Range(pub(crate) std::ops::Range<u64>);

impl Verb for Range {
    type Answer = Vec<u8>;
}

/// Reads an object of at most `limit` bytes; answers `None` if it is longer.
pub(crate) struct Whole {
    pub(crate) limit: u64,
}

impl Verb for Whole {
    type Answer = Option<Found>;
}

/// Asks for the commit of a dataset on the Hugging Face Hub.
pub(crate) struct Commit;

impl Verb for Commit {
    type Answer = String;
}

/// Lists names of objects.
pub(crate) enum List {
    /// Those directly below a folder.
    Folder,
    /// Those directly below a folder whose names begin so, without listing the others.
    Beginning(&'static str),
    /// All below a folder, at any depth, by their paths in it.
    Below,
    /// One below a folder, at any depth, whose name does not contain `ignored`; no unfinished file.
    Any {
        /// What names of objects contain that do not count.
        ignored: &'static str,
    },
}

impl Verb for List {
    type Answer = Vec<String>;
}

/// Lists the names of the objects directly below a folder, with the times at which they were written, by the store's clock.
pub(crate) struct ListTimes;

impl Verb for ListTimes {
    type Answer = Vec<(String, SystemTime)>;
}

/// Writes a whole object.
pub(crate) struct Put {
    pub(crate) bytes: Payload,
    pub(crate) crc: u32,
    pub(crate) mode: Mode,
}

/// A [`Condition`] that a request owns.
#[derive(Debug, Clone)]
pub(crate) enum Mode {
    Always,
    Absent,
    Unchanged(Version),
}

impl From<Condition<'_>> for Mode {
    fn from(condition: Condition<'_>) -> Self {
        match condition {
            Condition::Always => Mode::Always,
            Condition::Absent => Mode::Absent,
            Condition::Unchanged(version) => Mode::Unchanged(version.clone()),
        }
    }
}

impl Verb for Put {
    type Answer = Version;
}

/// Removes an object, if it exists.
pub(crate) struct Remove {
    pub(crate) limit: std::time::Duration,
}

impl Verb for Remove {
    type Answer = ();
}

/// Begins an upload in parts.
#[derive(Default)]
pub(crate) struct Begin {
    /// Set by the answer: whether the store takes the CRC32C of parts and object.
    pub(crate) takes_crc: Arc<AtomicBool>,
}

/// An upload that the store knows.
#[derive(Debug, Clone)]
pub(crate) struct Begun {
    pub(crate) id: String,
    /// Whether the store takes the CRC32C of parts and object.
    pub(crate) takes_crc: bool,
}

impl Verb for Begin {
    type Answer = Begun;
}

/// Sends a part of an upload. The answer identifies it in [`Join`].
pub(crate) struct Part {
    pub(crate) id: String,
    pub(crate) number: usize,
    pub(crate) bytes: Payload,
    /// If the store takes it.
    pub(crate) crc: Option<u32>,
}

impl Verb for Part {
    type Answer = String;
}

/// Ends an upload: the object exists then.
pub(crate) struct Join {
    pub(crate) id: String,
    /// What the answers to [`Part`] were, in the order of the parts.
    pub(crate) parts: Vec<String>,
    /// The CRC32C of each part and of the object, if the store takes them.
    pub(crate) crcs: Option<(Vec<u32>, u32)>,
}

impl Verb for Join {
    type Answer = ();
}

/// Ends an upload without an object, and removes its parts.
pub(crate) struct Abort {
    pub(crate) id: String,
    pub(crate) limit: std::time::Duration,
}

impl Verb for Abort {
    type Answer = ();
}
