//! Salvaged copies: files with the good records of a damaged shard. Their names follow from the shard's, and whether a file
//! is such a copy is decided by its records, so that another file with such a name is neither overwritten nor taken
//! for a copy.

use crate::Error;
use crate::frames::Frames;
use crate::salvage::salvage;
use std::path::Path;

/// Returns the names that the copy of a shard may have, the preferred one first.
pub(super) fn names(shard: &str) -> impl Iterator<Item = String> {
    let stem = shard.strip_suffix(".tfrecord").unwrap_or(shard).to_owned();
    (1u64..).map(move |number| match number {
        1 => format!("{stem}.salvaged.tfrecord"),
        _ => format!("{stem}.salvaged-{number}.tfrecord"),
    })
}

/// Returns the names of the shards whose copy may have this name; none if it is not the name of a copy.
pub(super) fn originals(copy: &str) -> Vec<String> {
    let stem = copy.strip_suffix(".tfrecord").and_then(|name| {
        let (stem, rest) = name.rsplit_once(".salvaged")?;
        let number = rest.strip_prefix('-').is_some_and(|n| n.parse::<u64>().is_ok_and(|n| n > 1));
        (rest.is_empty() || number).then_some(stem)
    });
    stem.map(|stem| vec![format!("{stem}.tfrecord"), stem.to_owned()]).unwrap_or_default()
}

/// Length and CRC32C of each good record of a file, in order.
#[derive(Default)]
pub(super) struct Records {
    pub(super) records: Vec<(u64, u32)>,
    /// Whether all bytes of the file belong to them.
    pub(super) whole: bool,
}

impl Records {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let mut records = vec![];
        let lost = salvage(&mut Frames::open(path)?, None, |data, crc| {
            records.push((data.len() as u64, crc));
            Ok(None)
        })?;
        Ok(Records { records, whole: lost.is_empty() })
    }

    /// Returns whether all records of this file, in their order, are among those of `other`. No records are among those of
    /// an empty file only, since they would be among those of any.
    pub(super) fn are_among(&self, other: &Records) -> bool {
        let mut others = other.records.iter();
        self.records.iter().all(|record| others.any(|other| other == record))
            && (!self.records.is_empty() || other.records.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies_lead_back_to_the_shard() {
        for shard in ["a-00000.tfrecord", "a-00000-of-00002"] {
            for name in names(shard).take(3) {
                assert!(originals(&name).contains(&shard.to_owned()), "{name}");
            }
        }
        for name in ["a.tfrecord", "a.salvaged", "a.salvaged-1.tfrecord", "a.salvaged-x.tfrecord"] {
            assert!(originals(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn records_are_compared_in_order() {
        let records = |list: &[u32]| Records { records: list.iter().map(|n| (1, *n)).collect(), whole: true };
        let all = records(&[1, 2, 3]);
        for (some, among) in [(&[1, 3][..], true), (&[1, 2, 3], true), (&[3, 1], false), (&[4], false), (&[], false)] {
            assert_eq!(records(some).are_among(&all), among, "{some:?}");
        }
        assert!(records(&[]).are_among(&records(&[])));
    }
}
