//! Names of the shards that attempts of tasks write: `SPLIT-WRITE-TASK-ATTEMPT.tfrecord`, where WRITE are 16 decimal digits,
//! the same for all tasks of one write; TASK is the number of the task in at least five digits; and ATTEMPT are eight random
//! hexadecimal digits. As in the names of other shards, at least five digits follow the split, so that `repair` finds
//! it, and the byte order of the names is that of the tasks.

use crate::Error;
use crate::commit::unique;
use crate::place::{Place, kept_manifests};
use shardtool_format::names;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const WRITE_DIGITS: usize = 16;
const TASK_DIGITS: usize = 5;
const ATTEMPT_DIGITS: usize = 8;

/// What the name of a file of an attempt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttemptName<'a> {
    /// The file name of the shard; of a list of rejected inputs, without its end.
    pub(crate) shard: &'a str,
    pub(crate) split: &'a str,
    pub(crate) write: &'a str,
}

/// Returns a new id of a write.
pub(crate) fn new_write() -> String {
    let number = u64::from_str_radix(&unique(), 16).unwrap_or_default();
    format!("{:0WRITE_DIGITS$}", number % 10u64.pow(WRITE_DIGITS as u32))
}

/// Returns whether a text can be the id of a write.
pub(crate) fn is_write(id: &str) -> bool {
    id.len() == WRITE_DIGITS && is_decimal(id)
}

/// Returns a new name for the shard of an attempt.
pub(crate) fn new_shard(split: &str, write: &str, task: usize) -> String {
    format!("{split}-{write}-{task:0TASK_DIGITS$}-{}.tfrecord", &unique()[..ATTEMPT_DIGITS])
}

/// Parses the name of an attempt's shard, index or list of rejected inputs.
pub(crate) fn of(name: &str) -> Option<AttemptName<'_>> {
    let name = name.strip_prefix('.').unwrap_or(name);
    let (stem, suffix) = name.split_at(name.rfind(".tfrecord").or_else(|| name.rfind(".rejected.jsonl"))?);
    if !matches!(suffix, ".tfrecord" | ".tfrecord.index" | ".rejected.jsonl") {
        return None;
    }
    let mut parts = stem.rsplitn(4, '-');
    let (attempt, task, write, split) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hexadecimal = |text: &str| text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let ours = !split.is_empty()
        && is_write(write)
        && (task.len() >= TASK_DIGITS && is_decimal(task))
        && (attempt.len() == ATTEMPT_DIGITS && hexadecimal(attempt));
    let shard = if suffix == ".rejected.jsonl" { stem } else { &name[..stem.len() + ".tfrecord".len()] };
    ours.then_some(AttemptName { shard, split, write })
}

/// Removes the files of attempts for which `lost` is true and that the manifest does not name: indexes first, since an
/// index marks its shard as finished. Lists of rejected inputs and unfinished files are always removed.
///
/// # Errors
/// [`DestinationError`](crate::DestinationError), [`Error::Io`].
pub(crate) fn remove_lost<P: Place>(place: &P, lost: &dyn Fn(AttemptName<'_>) -> bool) -> Result<(), Error> {
    let manifest = place.manifest()?;
    // Those of earlier versions are named too.
    let kept = if manifest.as_ref().is_some_and(|m| m.versions.is_some()) { kept_manifests(place)? } else { vec![] };
    let splits = manifest.iter().chain(kept.iter().map(|(_, manifest)| manifest)).flat_map(|manifest| &manifest.splits);
    let named: HashSet<&str> = splits.flat_map(|split| &split.shards).map(|shard| shard.file.as_str()).collect();
    let is_lost = |name: &str| of(name).is_some_and(|of| lost(of) && !named.contains(of.shard));
    for folder in [Path::new(names::INDEX_FOLDER), Path::new("")] {
        let names = place.names(folder)?;
        let files = names.iter().filter(|name| name.to_str().is_some_and(is_lost));
        place.remove_all(&files.map(|name| folder.join(name)).collect::<Vec<PathBuf>>())?;
        place.remove_abandoned(folder, &|name| of(name).is_some_and(lost))?;
    }
    Ok(())
}

fn is_decimal(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_split_and_write() {
        let write = new_write();
        assert!(is_write(&write) && write != new_write());
        for (split, task) in [("train", 0), ("a-00001-b.c", 123_456)] {
            let shard = new_shard(split, &write, task);
            assert!(names::check_file_name("shard file", &shard).is_ok());
            let found = AttemptName { shard: &shard, split, write: &write };
            assert_eq!(of(&shard), Some(found));
            assert_eq!(of(&format!("{shard}.index")), Some(found));
            let stem = shard.trim_end_matches(".tfrecord");
            let name = format!(".{stem}.rejected.jsonl");
            let list = of(&name);
            assert_eq!(list, Some(AttemptName { shard: stem, ..found }));
        }
        // A reader that has only the shards finds their split, and the tasks in their order.
        assert_eq!(names::split_of(&new_shard("train", &write, 7)), "train");
        assert!(new_shard("train", &write, 9) < new_shard("train", &write, 10));
    }

    #[test]
    fn other_names_are_not_those_of_attempts() {
        for name in [
            "train-00000.tfrecord",
            "train-0123456789012345-00000.tfrecord",
            "train-0123456789012345-00000-89abcdeg.tfrecord",
            "train-0123456789012345-0000-89abcdef.tfrecord",
            "train-012345678901234-00000-89abcdef.tfrecord",
            "train-0123456789012345-00000-89abcdef.tfrecord.bak",
            "-0123456789012345-00000-89abcdef.tfrecord",
            "0123456789012345-00000-89abcdef.tfrecord",
            "train-0123456789012345-00000-89abcdef",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
