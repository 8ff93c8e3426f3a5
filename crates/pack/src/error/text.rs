//! Parts of messages.

use crate::Rejection;
use shardtool_format::manifest::Kind;
use std::io;

pub(super) fn first(rejected: &Option<Box<Rejection>>) -> String {
    match rejected {
        Some(r) => format!("; the first input that cannot be packed is {}: {}", r.input, r.reason),
        None => "; it holds no images, and hidden files do not count".to_owned(),
    }
}

pub(super) fn types(
    column: &str,
    value: &str,
    found: Option<Kind>,
    expected: Option<Kind>,
    line: u64,
    declared: bool,
) -> String {
    let value: String = value.chars().take(60).collect();
    let expected = expected.map_or("a value", Kind::name);
    match (declared, found) {
        (true, _) => format!("`{value}` is not {expected}, the type given for the column"),
        (false, Some(found)) => format!(
            "`{value}` is {found}, but line {line} made the column {expected}; mend the value, or give the type: \
             {column}:bytes",
            found = found.name()
        ),
        (false, None) => format!("`{value}` is neither a number, a text nor a list of them"),
    }
}

/// What to do about errors that users meet.
pub(super) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; make room, and run the same command again: finished shards are kept"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "; choose a folder that you may write",
        _ => "",
    }
}
