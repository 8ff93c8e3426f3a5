//! What becomes of views when a change deletes or moves the rows of their splits.

use super::parts_file::PartsFile;
use crate::Error;
use crate::place::Place;
use shardtool_format::DeletedRows;
use shardtool_format::manifest::{Deleted, Manifest, Shard, View, ViewShard};
use shardtool_read::{Dataset, Split};
use std::collections::BTreeMap;

/// Returns the views after further rows of shards, given by their files, were deleted. Adds their bitmaps to a file.
///
/// # Errors
/// [`Error::Read`], [`Error::Io`].
pub(super) fn without<P: Place>(
    dataset: &Dataset,
    rows: &BTreeMap<&str, &[u64]>,
    file: &mut PartsFile<'_, P>,
) -> Result<Vec<View>, Error> {
    let mut views = dataset.manifest().views().to_vec();
    for view in &mut views {
        let Some(split) = dataset.view(&view.name) else { continue };
        let mut shards = vec![];
        for (number, mut shard) in std::mem::take(&mut view.shards).into_iter().enumerate() {
            if let Some(rows) = rows.get(shard.file.as_str()) {
                shard.absent = Some(file.add_deleted(split, number, rows)?);
            }
            let records = split.entry().shards[number].records;
            if shard.absent.as_ref().is_none_or(|absent| absent.rows < records) {
                shards.push(shard);
            }
        }
        view.shards = shards;
    }
    Ok(views)
}

/// Returns the view of a split with other shards, which hold its records in their order. Adds the bitmaps to a file.
///
/// # Errors
/// [`Error::Read`], [`Error::Io`].
pub(super) fn moved<P: Place>(
    dataset: &Dataset,
    view: &View,
    split: &Split,
    shards: &[Shard],
    file: &mut PartsFile<'_, P>,
) -> Result<View, Error> {
    let mut has = Bits::new(split.len());
    if let Some(records) = dataset.view(&view.name) {
        let mut id = 0;
        let mut of_view = records.entry().shards.iter().map(|shard| &shard.file).enumerate().peekable();
        for (number, shard) in split.entry().shards.iter().enumerate() {
            let at = of_view.next_if(|(_, file)| **file == shard.file).map(|(at, _)| at);
            let absent = at.map(|at| records.deleted_rows(at)).transpose()?.flatten();
            for (_, row) in split.rows(number)? {
                if at.is_some() && !absent.as_ref().is_some_and(|absent| absent.contains(row)) {
                    has.set(id);
                }
                id += 1;
            }
        }
    }
    let (mut kept, mut start) = (vec![], 0);
    for shard in shards {
        let rows = (0..shard.records).filter(|row| !has.get(start + row));
        if let Some(shard) = of_rows(shard, rows, file)? {
            kept.push(shard);
        }
        start += shard.records;
    }
    Ok(View { shards: kept, ..view.clone() })
}

/// Returns a shard of a view that leaves these rows out; `None` if that are all. Adds the bitmap to a file.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn of_rows<P: Place>(
    shard: &Shard,
    absent: impl Iterator<Item = u64>,
    file: &mut PartsFile<'_, P>,
) -> Result<Option<ViewShard>, Error> {
    let rows = DeletedRows::none(shard.records).with(absent);
    let absent = shard.records - rows.live_rows();
    let absent = match absent {
        0 => None,
        all if all == shard.records => return Ok(None),
        some => Some(Deleted { rows: some, bitmap: file.add(rows.as_bytes())? }),
    };
    Ok(Some(ViewShard { file: shard.file.clone(), absent }))
}

/// Gives a manifest its views.
pub(super) fn set(manifest: &mut Manifest, views: &[View]) {
    if let Some(versions) = &mut manifest.versions {
        versions.views = views.to_vec();
    }
}

/// A bit for each record of a split.
struct Bits(Vec<u64>);

impl Bits {
    fn new(records: u64) -> Self {
        Bits(vec![0; records.div_ceil(64) as usize])
    }

    fn set(&mut self, id: u64) {
        self.0[(id / 64) as usize] |= 1 << (id % 64);
    }

    fn get(&self, id: u64) -> bool {
        self.0[(id / 64) as usize] >> (id % 64) & 1 == 1
    }
}
