//! TFRecord: the shards themselves, and DALI's index.

use super::run::{Run, ShardExport};
use crate::Error;
use crate::commit;
use crate::progress::Progress;
use std::fmt::Write;

/// Links or copies a shard. DALI's index has one line per record: its offset and its length, framing included.
///
/// # Errors
/// [`Error::Read`], [`Error::Io`].
pub(super) fn write(
    run: &Run<'_>,
    number: usize,
    dali_index: bool,
    progress: &dyn Progress,
) -> Result<ShardExport, Error> {
    let entry = &run.split.entry().shards[number];
    let from = run.split.shard_path(number);
    let to = run.folder.join(from.file_name().unwrap_or_default());
    // A shard may be a link itself; its target is linked.
    let file = from.canonicalize().map_err(Error::io("read", &from))?;
    if std::fs::hard_link(&file, &to).is_err() {
        std::fs::copy(&file, &to).map_err(Error::io("create", &to))?;
    }
    let mut files = 1;
    if dali_index {
        let shard = run.split.shard(number)?;
        let mut lines = String::new();
        for row in 0..shard.records() {
            let frame = shard.frame(row)?;
            writeln!(lines, "{} {}", frame.start, frame.end - frame.start).expect("into a String");
        }
        commit::publish(run.folder.join(format!("{}.idx", run.stem(number))), lines.as_bytes())?;
        files += 1;
    }
    progress.done(entry.records, entry.bytes);
    Ok(ShardExport { records: entry.records, files, bytes: entry.bytes, refused: vec![] })
}
