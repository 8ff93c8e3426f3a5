//! What differs between two versions of a split: records are matched by their keys, and their features are compared.

use shardtool_format::example::{Example, Feature};
use shardtool_format::manifest::{Companion, DType, Shard};
use shardtool_read::{Record, Result, Split};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Records of each kind that are listed.
pub(crate) const LISTED: usize = 24;
/// Records of both versions that are matched, at most: each takes about 60 bytes.
const MOST: u64 = 1 << 21;
/// How long values are compared.
const PATIENCE: Duration = Duration::from_secs(2);

/// What differs between two versions of a split.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Records that only the first version has, and the number of all of them.
    pub(crate) removed: (Vec<Keyed>, u64),
    /// Records that only the second version has.
    pub(crate) added: (Vec<Keyed>, u64),
    /// Records of both, some of whose features differ.
    pub(crate) changed: (Vec<Changed>, u64),
    /// Records of both.
    pub(crate) matched: u64,
    /// Those whose features were compared.
    pub(crate) compared: u64,
}

/// A record by its key and its number in the split.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Keyed {
    pub(crate) key: Vec<u8>,
    pub(crate) id: u64,
}

/// A record of both versions.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) key: Vec<u8>,
    /// Its number in the first and in the second version.
    pub(crate) ids: [u64; 2],
    /// The features that differ.
    pub(crate) features: BTreeSet<String>,
}

/// Why two versions are not compared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("they have more than 2,097,152 records: `shardtool diff` compares them")]
    TooMany,
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
}

/// Compares two versions of a split.
///
/// # Errors
/// [`Problem::TooMany`], and the first error of a record.
pub(crate) fn compare(a: &Split, b: &Split) -> std::result::Result<Comparison, Problem> {
    if a.len().saturating_add(b.len()) > MOST {
        return Err(Problem::TooMany);
    }
    let (old, new) = (keyed(a)?, keyed(b)?);
    let (mut removed, mut added, mut both) = (vec![], vec![], vec![]);
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some(one), Some(other)) => one.key.cmp(&other.key),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        match order {
            Ordering::Less => removed.extend(old.next()),
            Ordering::Greater => added.extend(new.next()),
            Ordering::Equal => both.extend(old.next().zip(new.next())),
        }
    }
    let mut found = Comparison { matched: both.len() as u64, ..Comparison::default() };
    (found.removed, found.added) = (first_of(removed), first_of(added));
    both.sort_by_key(|(_, new)| new.id);
    let until = Instant::now() + PATIENCE;
    let mut of_shards = HashMap::new();
    for (old, new) in both {
        if Instant::now() > until {
            break;
        }
        found.compared += 1;
        let features = differing((a, old.id), (b, new.id), &mut of_shards)?;
        if !features.is_empty() {
            found.changed.1 += 1;
            if found.changed.0.len() < LISTED {
                found.changed.0.push(Changed { key: new.key, ids: [old.id, new.id], features });
            }
        }
    }
    Ok(found)
}

/// Returns the first records in the order of the split, and the number of all.
fn first_of(mut records: Vec<Keyed>) -> (Vec<Keyed>, u64) {
    let count = records.len() as u64;
    records.sort_by_key(|record| record.id);
    records.truncate(LISTED);
    (records, count)
}

/// Returns the records of a split by key: those of the same key in their order.
fn keyed(split: &Split) -> Result<Vec<Keyed>> {
    let mut found = Vec::with_capacity(split.len() as usize);
    for number in 0..split.entry().shards.len() {
        let shard = split.shard(number)?;
        for (id, row) in split.rows(number)? {
            found.push(Keyed { key: shard.key(row)?.into_owned(), id });
        }
    }
    found.sort();
    Ok(found)
}

/// The features of the rows of two shards that may differ; `None` for all.
type OfShards = HashMap<(usize, usize), Option<BTreeSet<String>>>;

/// Returns the features that differ between two records.
fn differing((a, old): (&Split, u64), (b, new): (&Split, u64), of_shards: &mut OfShards) -> Result<BTreeSet<String>> {
    let ((shard, row), (other, other_row)) = (a.locate(old)?, b.locate(new)?);
    let dropped = || [a, b].map(|split| split.manifest().dropped_features());
    let shards = [&a.entry().shards[shard], &b.entry().shards[other]];
    let suspects = of_shards.entry((shard, other)).or_insert_with(|| {
        let [one, two] = dropped();
        (shards[0].file == shards[1].file).then(|| {
            let columns = other_columns(shards[0], shards[1]);
            let only =
                one.iter().filter(|name| !two.contains(name)).chain(two.iter().filter(|name| !one.contains(name)));
            columns.into_iter().chain(only.cloned()).collect()
        })
    });
    // The same row of the same file: only columns may differ.
    let suspects = suspects.as_ref().filter(|_| row == other_row);
    if suspects.is_some_and(BTreeSet::is_empty) {
        return Ok(BTreeSet::new());
    }
    let (one, two) = (a.get(old)?, b.get(new)?);
    let (first, second) = (one.example()?, two.example()?);
    let names: BTreeSet<String> = match suspects {
        Some(names) => names.clone(),
        None => first.features().iter().chain(second.features()).map(|(name, _)| name.to_string()).collect(),
    };
    let differ = |name: &String| !same(first.get(name).as_ref(), second.get(name).as_ref());
    let found = names.into_iter().filter(differ).collect();
    drop((first, second));
    [one, two].iter().try_for_each(Record::check_readable)?;
    Ok(found)
}

/// Returns the features for which two versions of a shard have other columns.
fn other_columns(a: &Shard, b: &Shard) -> BTreeSet<String> {
    let only = |of: &Shard, other: &Shard| -> Vec<String> {
        let other = |column: &&Companion| !other.companions.columns.contains(column);
        of.companions.columns.iter().filter(other).map(|column| column.feature().to_owned()).collect()
    };
    only(a, b).into_iter().chain(only(b, a)).collect()
}

/// Returns whether two features have the same values. Floats are compared by their bits.
fn same(a: Option<&Feature<'_>>, b: Option<&Feature<'_>>) -> bool {
    let has_values = |feature: &&Feature<'_>| feature.count() > 0;
    match (a.filter(has_values), b.filter(has_values)) {
        (None, None) => true,
        (Some(Feature::Int64(a)), Some(Feature::Int64(b))) => a.iter().eq(b.iter()),
        (Some(Feature::Float(a)), Some(Feature::Float(b))) => a.iter().map(f32::to_bits).eq(b.iter().map(f32::to_bits)),
        (Some(Feature::Bytes(a)), Some(Feature::Bytes(b))) => a.iter().eq(b.iter()),
        _ => false,
    }
}

/// Returns the values of a feature as text: the first ones, and how many follow. `class_name` is that of a class id.
pub(crate) fn text_of(
    example: &Example<'_>,
    (name, dtype): (&str, Option<DType>),
    class_name: impl Fn(i64) -> Option<String>,
) -> String {
    const VALUES: usize = 8;
    const LONGEST: usize = 80;
    let Some(feature) = example.get(name) else { return "no value".to_owned() };
    let bytes = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => crate::text::fit(&crate::text::printable_text(text), LONGEST),
        Err(_) => crate::text::bytes(bytes.len() as u64),
    };
    fn shown(values: impl Iterator<Item: ToString>) -> Vec<String> {
        values.take(VALUES).map(|value| value.to_string()).collect()
    }
    let logical = match (&feature, dtype) {
        (Feature::Bytes(list), Some(DType::Float64)) => list.numbers::<f64>().map(|all| shown(all.into_iter())),
        (Feature::Bytes(list), Some(DType::Uint64)) => list.numbers::<u64>().map(|all| shown(all.into_iter())),
        _ => None,
    };
    let values = logical.unwrap_or_else(|| match &feature {
        Feature::Empty => vec![],
        Feature::Int64(list) => shown(list.iter().map(|n| class_name(n).unwrap_or_else(|| n.to_string()))),
        Feature::Float(list) => shown(list.iter()),
        Feature::Bytes(list) => shown(list.iter().map(bytes)),
    });
    let more = feature.count().saturating_sub(VALUES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match values.is_empty() {
        true => "no value".to_owned(),
        false => values.join(", ") + &more,
    }
}
