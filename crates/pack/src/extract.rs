//! Writes the images of a split back into folders, byte for byte, at the paths that their keys give.

use crate::commit::{Begun, Output, Request};
use crate::ordered::ordered;
use crate::progress::Progress;
use crate::refusal::Refusal;
use crate::{Error, Reason, Rejection};
use shardtool_format::Chain;
use shardtool_read::{Record, Split};
use std::ffi::OsStr;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Options of [`extract`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExtractOptions {
    /// Number of threads that read. Does not change any written byte.
    pub jobs: NonZeroUsize,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        ExtractOptions { jobs: crate::options::default_jobs() }
    }
}

/// The result of [`extract`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Extracted {
    /// Images written.
    pub written: u64,
    /// Records without a file, in their order.
    pub refused: Vec<Refused>,
    /// The same extraction had completed the folder before. No file is written; the other fields are those of that run.
    pub already_complete: bool,
}

/// An [`Extracted`] as its record keeps it: images written; first id, last id + 1 and reason of what was refused.
type Report = (u64, Vec<(u64, u64, String)>);

/// Records that are not extracted, and why.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refused {
    /// Their ids: one, or those of a shard that cannot be opened.
    pub ids: Range<u64>,
    /// Why.
    pub reason: Reason,
}

/// Writes the images of a split into a folder that does not exist or is empty. The key of an image is its path; if the key
/// has no folder, the image goes into a folder of its class. Files appear when all are complete. If the same extraction has
/// completed the folder, returns its result and writes nothing.
///
/// Damaged records, records without an image, keys that are not paths inside the folder, and the second of two equal keys
/// are left out and reported.
///
/// # Errors
/// [`Error::Destination`]; [`Error::Stopped`]; [`Error::Io`] if the system cannot write a file. The folder is then as it
/// was before.
pub fn extract(
    split: &Split,
    destination: &Path,
    options: &ExtractOptions,
    progress: &dyn Progress,
) -> Result<Extracted, Error> {
    split.check_counts()?;
    let request = Request::new("extract", std::slice::from_ref(split), []);
    let output = match Output::begin::<Report>(destination, false, request)? {
        Begun::Output(output) => output,
        Begun::Complete((written, refused)) => {
            let refused = refused
                .into_iter()
                .map(|(first, end, text)| Refused { ids: first..end, reason: Reason::Earlier { text } });
            return Ok(Extracted { written, refused: refused.collect(), already_complete: true });
        }
    };
    progress.total(split.len(), split.entry().bytes());
    let mut extracted = Extracted::default();
    let (written, list) = (&mut extracted.written, &mut extracted.refused);
    let mut refuse = |ids: Range<u64>, reason| -> Result<(), Error> {
        let Rejection { reason, .. } = Rejection::new(format!("#{}", ids.start), reason)?;
        progress.done(ids.end - ids.start, 0);
        list.push(Refused { ids, reason });
        Ok(())
    };
    for number in 0..split.entry().shards.len() {
        let ids = split.starts()[number]..split.starts()[number + 1];
        // A shard that cannot be opened is refused once, however many records it has.
        if let Err(error) = split.shard(number) {
            refuse(ids, error.into())?;
            continue;
        }
        let read = |row: usize| {
            let record = split.get(ids.start + row as u64)?;
            let path = path(split, &record)?;
            Ok((record, path))
        };
        // Files are created in the order of records, so that the second of two equal keys is always the same one.
        let consume = |row, found: Result<(Record, PathBuf), Reason>| match found
            .map_err(Refusal::Record)
            .and_then(|(record, path)| write(&output, &record, &path))
        {
            Ok(bytes) => {
                *written += 1;
                progress.done(1, bytes);
                Ok(())
            }
            Err(Refusal::Record(reason)) => {
                let id = ids.start + row as u64;
                refuse(id..id + 1, reason)
            }
            Err(Refusal::All(error)) => Err(error),
        };
        ordered(options.jobs, (ids.end - ids.start) as usize, 4 * options.jobs.get(), read, consume)?;
    }
    let refused = |r: &Refused| (r.ids.start, r.ids.end, Chain(&r.reason).to_string());
    let report: Report = (extracted.written, extracted.refused.iter().map(refused).collect());
    output.publish_with(report, progress)?;
    Ok(extracted)
}

/// Writes the image of a record. Returns its length in bytes.
fn write(output: &Output, record: &Record, path: &Path) -> Result<u64, Refusal> {
    let image = record.image().map_err(|e| Refusal::Record(e.into()))?;
    let image = image.ok_or(Refusal::Record(Reason::WithoutImage))?;
    let whole = output.path().join(path);
    let mut file = output.create(path).map_err(|e| Refusal::of_creation(&whole, e))?;
    file.write_all(image).map_err(|e| Refusal::All(Error::io("write", &whole)(e)))?;
    if let Err(error) = record.check_readable() {
        // What was written may be wrong.
        output.files().remove(path).map_err(Refusal::All)?;
        return Err(Refusal::Record(error.into()));
    }
    Ok(image.len() as u64)
}

/// Returns the path of an image, relative to the destination.
fn path(split: &Split, record: &Record) -> Result<PathBuf, Reason> {
    let key = record.key()?;
    let key = Path::new(OsStr::from_bytes(&key));
    let is_plain = |path: &Path| path.components().all(|c| matches!(c, Component::Normal(_)));
    if key.as_os_str().is_empty() || !is_plain(key) || key.as_os_str().as_bytes().contains(&0) {
        return Err(Reason::KeyOutside { key: key.to_string_lossy().into_owned() });
    }
    if key.components().count() > 1 {
        return Ok(key.to_owned());
    }
    Ok(match class(split, record)? {
        Some(class) => Path::new(&class).join(key),
        None => key.to_owned(),
    })
}

/// Returns the folder of the record's class: its name, or its id if the name is not a plain folder name.
fn class(split: &Split, record: &Record) -> Result<Option<String>, Reason> {
    let manifest = split.manifest();
    let Some(name) = manifest.label.as_deref() else { return Ok(None) };
    let Some(label) = record.example()?.int64(name) else { return Ok(None) };
    let label = label.saturating_sub(manifest.label_offset);
    let class = usize::try_from(label).ok().and_then(|l| manifest.classes.get(l)).cloned();
    let class = class.unwrap_or_else(|| label.to_string());
    let plain = !class.is_empty() && !class.contains(['/', '\0']) && !matches!(class.as_str(), "." | "..");
    Ok(Some(if plain { class } else { label.to_string() }))
}
