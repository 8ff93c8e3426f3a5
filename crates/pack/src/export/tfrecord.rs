//! TFRecord: the shards themselves, without damaged records, and DALI's index.

use super::run::{Run, ShardExport};
use crate::progress::Progress;
use crate::refusal::Refusal;
use crate::{Error, Reason, Rejection};
use shardtool_format::checksum::{self, Crc32c};
use shardtool_format::frame;
use shardtool_read::verify::{self, Finding};
use shardtool_read::{Access, FileBytes, Shard};
use shardtool_store::{PART_BYTES, is_url};
use std::fmt::Write as _;
use std::io::{self, Write};
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
        return Err(Error::io("read", file)(io::Error::from_raw_os_error(code)));
    }
    // What a link points to is copied only if it proves to be the shard.
    let whole = (findings.is_empty() || (allow_damage && !from.is_symlink()))
        && run.selection.is_none()
        && run.split.has_stored_records(number);
    let (mut done, frames) = if whole {
        put_whole(run, number, &shard, name, findings.is_empty())?;
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
        let (mut file, path) = run.create(Path::new(&format!("{}.idx", run.stem(number))))?;
        file.write_all(lines.as_bytes()).and_then(|()| file.finish()).map_err(Error::io("write", &path))?;
        done.files += 1;
    }
    Ok(done)
}

/// Makes a hard link, or a copy where links are not possible. A shard may be a symbolic link; its target is linked. A shard
/// that is `good` is compared with its checksum once more while it is copied.
fn put_whole(run: &Run<'_>, number: usize, shard: &Shard, name: &Path, good: bool) -> Result<(), Error> {
    let from = shard.path();
    let is_virtual = run.split.entry().shards[number].foreign.is_virtual;
    if !is_virtual && !is_url(from) {
        let target = from.canonicalize().map_err(Error::io("read", from))?;
        let to = run.folder.path().join(name);
        if run.folder.put(&target, name).map_err(Error::io("create", &to))? {
            return Ok(());
        }
    }
    let (mut file, path) = run.create(name)?;
    let opened;
    let bytes = if is_virtual {
        shard.bytes()
    } else {
        opened = FileBytes::open(from, Access::Pread).map_err(Error::of_file)?;
        &opened
    };
    let (mut at, mut crc, mut buffer) = (0, Crc32c::new(), vec![]);
    while at < bytes.len() {
        let end = bytes.len().min(at + PART_BYTES as u64);
        bytes.read_into(at..end, &mut buffer).map_err(Error::of_file)?;
        crc.update(&buffer);
        file.write_all(&buffer).map_err(Error::io("write", &path))?;
        at = end;
    }
    if good && crc.value() != run.split.entry().shards[number].crc32c {
        let problem = "its bytes are others than when it was verified; run the same command again";
        return Err(Error::io("copy", from)(io::Error::new(io::ErrorKind::InvalidData, problem)));
    }
    file.finish().map(drop).map_err(Error::io("write", &path))
}

/// Writes the good records of a shard to a new file. Returns their frames in it.
fn good_records(run: &Run<'_>, number: usize, name: &Path) -> Result<(ShardExport, Vec<Range<u64>>), Error> {
    let (mut file, path) = run.create(name)?;
    let (mut frames, mut at) = (vec![], 0);
    let done = run.each_record(number, &(), |_, _, record| {
        let data = record.data();
        for part in [&frame::header(data.len() as u64)[..], data, &frame::footer(checksum::crc32c(data))] {
            file.write_all(part).map_err(|e| Refusal::All(Error::io("write", &path)(e)))?;
        }
        let end = at + (data.len() + frame::OVERHEAD_BYTES) as u64;
        frames.push(std::mem::replace(&mut at, end)..end);
        Ok(())
    })?;
    file.finish().map_err(Error::io("write", &path))?;
    Ok((ShardExport { bytes: at, ..done }, frames))
}

fn rejection(finding: Finding) -> Rejection {
    let file = finding.file.file_name().unwrap_or_default().to_string_lossy();
    let record = finding.record.map(|record| format!("{file}#{record}"));
    let input = finding.key.clone().or(record).unwrap_or_else(|| file.into_owned());
    Rejection { input, reason: Reason::Damaged(Box::new(finding)) }
}
