//! TFRecord: the shards themselves, without damaged records, and DALI's index.

use super::run::{Run, ShardExport};
use crate::commit::{self, Temporary};
use crate::progress::Progress;
use crate::refusal::Refusal;
use crate::{Error, Reason, Rejection};
use shardtool_format::{checksum, frame};
use shardtool_read::verify::{self, Finding};
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

/// Verifies a shard, then links or copies it. If it is damaged, writes its good records to a new file instead, unless
/// `allow_damage` is set. DALI's index has one line per record: its offset and its length, framing included.
///
/// # Errors
/// [`Error::Read`], [`Error::Io`].
pub(super) fn write(
    run: &Run<'_>,
    number: usize,
    (dali_index, allow_damage): (bool, bool),
    progress: &dyn Progress,
) -> Result<ShardExport, Error> {
    let shard = run.open(number)?;
    let from = shard.path();
    let name = Path::new(from.file_name().unwrap_or_default());
    let advance = |records, bytes| progress.done(records, bytes);
    let mut options = verify::Options::default();
    options.progress = Some(&advance);
    let findings = verify::verify_shard(run.split, number, &options).findings;
    // A file that cannot be read at all is the system's fault, and so is the export without it.
    if let Some((file, code)) =
        findings.iter().find_map(|f| Some((&f.file, f.os_error.filter(|_| f.record.is_none())?)))
    {
        return Err(Error::io("read", file)(std::io::Error::from_raw_os_error(code)));
    }
    // What a link points to is copied only if it proves to be the shard.
    let whole = findings.is_empty() || (allow_damage && !from.is_symlink());
    let (mut done, frames) = if whole {
        link(from, &run.folder.path().join(name))?;
        let frames = (0..shard.records()).map(|row| shard.frame(row)).filter_map(Result::ok).collect::<Vec<_>>();
        (ShardExport { records: shard.records(), bytes: shard.bytes().len(), ..ShardExport::default() }, frames)
    } else {
        good_records(run, number, name)?
    };
    done.files = 1;
    let reported: Vec<_> = findings.into_iter().map(rejection).collect();
    if whole {
        done.damaged = reported;
    } else {
        // Verification read the same records, and says more about each than reading it does.
        done.refused = reported;
    }
    if dali_index {
        let mut lines = String::new();
        for frame in &frames {
            writeln!(lines, "{} {}", frame.start, frame.end - frame.start).expect("into a String");
        }
        commit::publish(run.folder, Path::new(&format!("{}.idx", run.stem(number))), lines.as_bytes())?;
        done.files += 1;
    }
    Ok(done)
}

/// Makes a hard link, or a copy where links are not possible. A shard may be a symbolic link; its target is linked.
fn link(from: &Path, to: &Path) -> Result<(), Error> {
    let file = from.canonicalize().map_err(Error::io("read", from))?;
    if std::fs::hard_link(&file, to).is_err() {
        std::fs::copy(&file, to).map_err(Error::io("create", to))?;
    }
    Ok(())
}

/// Writes the good records of a shard to a new file. Returns their frames in it.
fn good_records(run: &Run<'_>, number: usize, name: &Path) -> Result<(ShardExport, Vec<Range<u64>>), Error> {
    let mut file = Temporary::new(run.folder, name)?;
    let (mut frames, mut at) = (vec![], 0);
    let done = run.each_record(number, &(), |_, _, record| {
        let data = record.data();
        for part in [&frame::header(data.len() as u64)[..], data, &frame::footer(checksum::crc32c(data))] {
            file.write(part).map_err(Refusal::All)?;
        }
        let end = at + (data.len() + frame::OVERHEAD_BYTES) as u64;
        frames.push(std::mem::replace(&mut at, end)..end);
        Ok(())
    })?;
    file.publish()?;
    Ok((ShardExport { bytes: at, ..done }, frames))
}

fn rejection(finding: Finding) -> Rejection {
    let file = finding.file.file_name().unwrap_or_default().to_string_lossy();
    let record = finding.record.map(|record| format!("{file}#{record}"));
    let input = finding.key.clone().or(record).unwrap_or_else(|| file.into_owned());
    Rejection { input, reason: Reason::Damaged(Box::new(finding)) }
}
