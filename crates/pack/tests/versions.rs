//! Random sequences of changes, compared with a model: a list of records for each version. After each change, every version that is
//! kept is read back completely.
//!
//! `SHARDTOOL_VERSION_SEQUENCES` is the number of sequences, `SHARDTOOL_VERSION_SEED` the first seed.

use shardtool_format::example::Feature;
use shardtool_format::manifest::DType;
use shardtool_pack::{
    AppendOptions, ChangeOptions, ChosenRecords, CloneOptions, ColumnChange, ColumnOptions, ColumnRows, ColumnValues,
    CompactOptions, DeleteOptions, DestinationError, Error, GcOptions, MissingRows, Options, PurgeOptions,
    SelectOptions, ShardError, Shards, Value, append, change_columns, clone, compact, delete, drop_columns, gc, pack,
    purge, remove_view, rollback, select, tag,
};
use shardtool_read::{Dataset, Split, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A generator of random numbers that is the same everywhere (SplitMix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The values of a feature, as text, one each.
type Texts = Vec<String>;

/// A record of the model: features with at least one value.
#[derive(Debug, Clone)]
struct Sample {
    key: String,
    features: BTreeMap<String, Texts>,
    /// The row in a shard: another one for each time that the record was written. Not compared.
    row: u64,
}

impl PartialEq for Sample {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.features) == (&other.key, &other.features)
    }
}

/// A version of the model: its records, its types, and the rows of its shards that are deleted.
#[derive(Debug, Clone)]
struct Version {
    records: Vec<Sample>,
    types: BTreeMap<String, DType>,
    /// Keys by row.
    deleted: BTreeMap<u64, String>,
    /// The keys of each view.
    views: BTreeMap<String, BTreeSet<String>>,
}

impl Version {
    /// Deletes the records for which `is_gone` holds.
    fn delete(&mut self, is_gone: impl Fn(&Sample) -> bool) {
        let gone = self.records.iter().filter(|sample| is_gone(sample));
        self.deleted.extend(gone.map(|sample| (sample.row, sample.key.clone())));
        self.records.retain(|sample| !is_gone(sample));
        self.prune();
    }

    /// Removes keys from views that are no records any more.
    fn prune(&mut self) {
        let keys: BTreeSet<&String> = self.records.iter().map(|sample| &sample.key).collect();
        self.views.values_mut().for_each(|view| view.retain(|key| keys.contains(key)));
    }

    /// Returns the rows of its shards, with their keys, and whether each is a record of the version.
    fn rows(&self) -> impl Iterator<Item = (u64, &str, bool)> {
        let live = self.records.iter().map(|sample| (sample.row, sample.key.as_str(), true));
        live.chain(self.deleted.iter().map(|(row, key)| (*row, key.as_str(), false)))
    }
}

struct Model {
    versions: BTreeMap<u64, Version>,
    tags: BTreeMap<String, u64>,
    next_key: u64,
    next_row: u64,
    /// Keys that were purged and are remembered.
    purged: BTreeSet<String>,
}

impl Model {
    fn newest(&self) -> (u64, &Version) {
        self.versions.last_key_value().map(|(number, version)| (*number, version)).expect("a dataset has a version")
    }

    /// Gives records that were written the next rows.
    fn written(&mut self, records: &mut [Sample]) {
        for record in records {
            record.row = self.next_row;
            self.next_row += 1;
        }
    }

    /// Removes every row whose record is deleted. Returns the versions that had one.
    ///
    /// Rows with the key of a deleted record are removed too, but for those of the newest version, and, if that has the key, rows that
    /// were first written in the version of the last deletion, or later.
    fn purge(&mut self) -> Vec<u64> {
        // The versions that have each row, ascending, and whether it is a record there.
        let mut rows: BTreeMap<u64, (String, Vec<(u64, bool)>)> = BTreeMap::new();
        for (number, version) in &self.versions {
            for (row, key, live) in version.rows() {
                rows.entry(row).or_insert((key.to_owned(), vec![])).1.push((*number, live));
            }
        }
        let is_deleted = |row: &u64| rows[row].1.last().is_some_and(|(_, live)| !live);
        let mut deleted: BTreeMap<&String, u64> = BTreeMap::new();
        for (key, versions) in rows.iter().filter(|(row, _)| is_deleted(row)).map(|(_, row)| row) {
            let since = versions.iter().rev().take_while(|(_, live)| !live).last().expect("it is deleted").0;
            let last = deleted.entry(key).or_insert(since);
            *last = since.max(*last);
        }
        let newest = self.newest().1;
        let live: BTreeSet<u64> = newest.records.iter().map(|sample| sample.row).collect();
        let there: BTreeSet<&String> = newest.records.iter().map(|sample| &sample.key).collect();
        let is_gone = |row: &u64| {
            let (key, versions) = &rows[row];
            let Some(last) = deleted.get(key) else { return false };
            !live.contains(row) && (is_deleted(row) || versions[0].0 < *last || !there.contains(key))
        };
        let gone: BTreeSet<u64> = rows.keys().copied().filter(is_gone).collect();
        let keys: BTreeMap<u64, String> = rows.iter().map(|(row, (key, _))| (*row, key.clone())).collect();
        let taken: BTreeSet<&String> = newest.records.iter().map(|sample| &sample.key).collect();
        let forbidden: Vec<String> =
            gone.iter().map(|row| keys[row].clone()).filter(|key| !taken.contains(key)).collect();
        self.purged.extend(forbidden);
        let mut changed = vec![];
        for (number, version) in &mut self.versions {
            if version.rows().any(|(row, ..)| gone.contains(&row)) {
                changed.push(*number);
            }
            version.records.retain(|sample| !gone.contains(&sample.row));
            version.deleted.retain(|row, _| !gone.contains(row));
            version.prune();
        }
        changed
    }

    fn push(&mut self, version: Version) {
        let number = self.newest().0 + 1;
        self.versions.insert(number, version);
    }
}

const TYPES: [(&str, DType); 3] = [("a", DType::Int64), ("text", DType::Bytes), ("vec", DType::Float)];

fn all_names() -> BTreeSet<String> {
    TYPES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Returns the values of a row of a list, and what the model expects of them.
fn row(rng: &mut Rng, key: &str, names: &BTreeSet<String>) -> (String, Sample) {
    let mut json = format!("{{\"key\": \"{key}\"");
    let mut features = BTreeMap::new();
    for name in TYPES.iter().map(|(name, _)| *name).filter(|name| names.contains(*name)) {
        let (text, values): (String, Texts) = match name {
            "a" => {
                let a = rng.below(10).to_string();
                (a.clone(), vec![a])
            }
            "text" => {
                let text = format!("t{}", rng.below(5));
                (format!("\"{text}\""), vec![text])
            }
            _ => {
                let vec: Texts = (0..1 + rng.below(3)).map(|_| format!("{}.5", rng.below(9))).collect();
                (format!("[{}]", vec.join(", ")), vec)
            }
        };
        write!(json, ", \"{name}\": {text}").unwrap();
        features.insert(name.to_owned(), values);
    }
    json.push('}');
    (json, Sample { key: key.to_owned(), features, row: 0 })
}

fn list(folder: &Path, name: &str, rng: &mut Rng, keys: &[String], names: &BTreeSet<String>) -> (PathBuf, Vec<Sample>) {
    let (lines, samples): (Vec<_>, Vec<_>) = keys.iter().map(|key| row(rng, key, names)).unzip();
    let path = folder.join(name);
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    (path, samples)
}

fn value(rng: &mut Rng, dtype: DType) -> (Option<Value>, Option<Texts>) {
    if rng.one_in(6) {
        return (None, None);
    }
    let several = if rng.one_in(3) { 1 + rng.below(3) } else { 1 };
    match dtype {
        DType::Int64 => {
            let list: Vec<i64> = (0..several).map(|_| rng.below(10) as i64 - 2).collect();
            let texts = list.iter().map(i64::to_string).collect();
            (Some(Value::Int64(list)), Some(texts))
        }
        DType::Float => {
            let list: Vec<f32> = (0..several).map(|_| rng.below(100) as f32 / 4.0).collect();
            let texts = list.iter().map(|v| format!("{v:?}")).collect();
            (Some(Value::Float(list)), Some(texts))
        }
        DType::Float64 => {
            let list: Vec<f64> = (0..several).map(|_| rng.below(1000) as f64 / 3.0).collect();
            let texts = list.iter().map(|v| format!("{v:?}")).collect();
            (Some(Value::Float64(list)), Some(texts))
        }
        DType::Uint64 => {
            let list: Vec<u64> = (0..several).map(|_| u64::MAX - rng.below(9)).collect();
            let texts = list.iter().map(u64::to_string).collect();
            (Some(Value::Uint64(list)), Some(texts))
        }
        DType::Bytes => {
            let list: Vec<Vec<u8>> = (0..several).map(|_| format!("v{}", rng.below(7)).into_bytes()).collect();
            let texts = list.iter().map(|v| String::from_utf8(v.clone()).unwrap()).collect();
            (Some(Value::Bytes(list)), Some(texts))
        }
    }
}

fn train(dataset: &Dataset) -> &Split {
    dataset.split("train").unwrap()
}

/// Reads a split or a view completely.
fn read(split: &Split) -> Vec<Sample> {
    let listed: BTreeMap<_, _> =
        split.manifest().features.iter().map(|feature| (feature.name.clone(), feature.dtype)).collect();
    let sample = |id: u64| {
        let record = split.get(id).unwrap();
        let example = record.example().unwrap();
        let features = example.features().iter().filter(|(name, _)| !name.starts_with("image/"));
        let features = features.filter_map(|(name, feature)| {
            assert!(listed.contains_key(&**name), "{name} is listed");
            let texts: Texts = match (feature, listed[&**name]) {
                (Feature::Int64(list), _) => list.iter().map(|v| v.to_string()).collect(),
                (Feature::Float(list), _) => list.iter().map(|v| format!("{v:?}")).collect(),
                (Feature::Bytes(list), DType::Float64) => {
                    list.numbers::<f64>().unwrap().iter().map(|v| format!("{v:?}")).collect()
                }
                (Feature::Bytes(list), DType::Uint64) => {
                    list.numbers::<u64>().unwrap().iter().map(u64::to_string).collect()
                }
                (Feature::Bytes(list), _) => list.iter().map(|v| String::from_utf8(v.to_vec()).unwrap()).collect(),
                (Feature::Empty, _) => vec![],
            };
            (!texts.is_empty()).then(|| (name.to_string(), texts))
        });
        let features = features.collect();
        // The bytes of the record are the canonical Example of the same features.
        let mut again = vec![];
        example.encode(&mut again);
        assert_eq!(record.data(), again);
        Sample { key: String::from_utf8(record.key().unwrap().into_owned()).unwrap(), features, row: 0 }
    };
    (0..split.len()).map(sample).collect()
}

/// Returns the records of a view.
fn records_of(version: &Version, view: &BTreeSet<String>) -> Vec<Sample> {
    version.records.iter().filter(|sample| view.contains(&sample.key)).cloned().collect()
}

/// Compares a version with the model, by every way to read it.
fn check(path: &Path, number: u64, expected: &Version, context: &str) {
    let dataset = Dataset::open(format!("{}@{number}", path.display())).unwrap_or_else(|e| panic!("{context}: {e}"));
    assert_eq!(dataset.version(), number);
    let found = read(train(&dataset));
    assert_eq!(found, expected.records, "{context}: version {number}");
    assert!(dataset.view_names().eq(expected.views.keys()), "{context}: version {number}");
    for (name, view) in &expected.views {
        let found = read(dataset.split(name).unwrap());
        assert_eq!(found, records_of(expected, view), "{context}: view {name} of version {number}");
    }
    let split = dataset.split("train").unwrap();
    for (id, sample) in expected.records.iter().enumerate() {
        assert_eq!(split.find(sample.key.as_bytes()).unwrap(), Some(id as u64), "{context}");
    }
    for feature in &dataset.manifest().features {
        if feature.name.starts_with("image/") {
            continue;
        }
        assert_eq!(expected.types.get(&feature.name), Some(&feature.dtype), "{context}: {}", feature.name);
        if feature.dtype == DType::Int64 {
            let column = split.column::<i64>(&feature.name).unwrap().unwrap();
            let one = |sample: &Sample| match sample.features.get(&feature.name).map(Vec::as_slice) {
                Some([one]) => Some(one.parse().unwrap()),
                _ => None,
            };
            assert_eq!(column, expected.records.iter().map(one).collect::<Vec<Option<i64>>>(), "{context}");
            let condition = format!("{}>4", feature.name);
            let matching = split.matching([condition.as_str()]).unwrap();
            let ids = (0..).zip(&expected.records).filter(|(_, sample)| one(sample).is_some_and(|n| n > 4));
            assert_eq!(matching, ids.map(|(id, _)| id).collect::<Vec<u64>>(), "{context}");
        }
    }
    assert_eq!(
        dataset.manifest().features.iter().filter(|f| !f.name.starts_with("image/")).count(),
        expected.types.len()
    );
    let findings = verify::verify(&dataset, &verify::Options::default()).findings;
    assert!(findings.is_empty(), "{context}: version {number}: {findings:?}");
}

fn keys(path: &Path, model: &Model) -> Vec<String> {
    let _ = path;
    model.newest().1.records.iter().map(|sample| sample.key.clone()).collect()
}

/// Makes one random change of the dataset and of the model.
fn step(rng: &mut Rng, temp: &Path, path: &Path, model: &mut Model) -> String {
    let (number, newest) = (model.newest().0, model.newest().1.clone());
    match rng.below(12) {
        0 | 1 => {
            let mut new: Vec<String> = (0..1 + rng.below(4)).map(|i| format!("k{}", model.next_key + i)).collect();
            model.next_key += 10;
            let old = keys(path, model);
            let replace = rng.one_in(2);
            let clash = rng.one_in(3) && !old.is_empty();
            if clash {
                new.push(old[rng.below(old.len() as u64) as usize].clone());
            }
            let banned = rng.one_in(3) && !model.purged.is_empty();
            if banned {
                new.push(model.purged.iter().nth(rng.below(model.purged.len() as u64) as usize).unwrap().clone());
            }
            // Of the features of the version: stored ones and columns. A dropped one, or one that it never had, is refused.
            let unknown = rng.one_in(6);
            let mut names = all_names();
            names.retain(|name| newest.types.contains_key(name) || unknown);
            let unknown = names.iter().any(|name| !newest.types.contains_key(name));
            if names.is_empty() {
                return "nothing to append".to_owned();
            }
            let (source, mut samples) = list(temp, "append.jsonl", rng, &new, &names);
            let mut options = AppendOptions::new(&source, path);
            (options.replace, options.pack.seed) = (replace, None);
            options.pack.shards = Shards::Count(1 + rng.below(2));
            match append(&options, &()) {
                Ok(appended) => {
                    assert!(!clash || replace, "a repeated key was appended");
                    assert!(!banned && !unknown, "a purged key, or an unknown feature, was appended");
                    assert_eq!(appended.version.unwrap().number, number + 1);
                    let mut next = newest;
                    next.delete(|sample| new.contains(&sample.key));
                    model.written(&mut samples);
                    next.records.extend(samples);
                    model.push(next);
                }
                Err(Error::Shard(ShardError::AppendedKey { .. })) => assert!(clash && !replace),
                Err(Error::Shard(ShardError::PurgedKeys { .. })) => assert!(banned),
                Err(Error::Destination(DestinationError::Incompatible { .. })) => assert!(unknown),
                Err(error) => panic!("append: {error}"),
            }
            format!("append {new:?} {replace}")
        }
        2 => {
            let mut gone = BTreeSet::new();
            let all = keys(path, model);
            for key in &all {
                if rng.one_in(4) {
                    gone.insert(key.clone());
                }
            }
            let records = if rng.one_in(2) {
                ChosenRecords::Keys(gone.iter().map(|key| key.clone().into_bytes()).collect())
            } else {
                let ids = (0..).zip(&all).filter(|(_, key)| gone.contains(*key));
                ChosenRecords::Ids(ids.map(|(id, _)| id).collect())
            };
            let deleted = delete(path, &DeleteOptions::new(records), &()).unwrap();
            assert_eq!(deleted.records(), gone.len() as u64);
            assert_eq!(deleted.version.is_some(), !gone.is_empty());
            if !gone.is_empty() {
                let mut next = newest;
                next.delete(|sample| gone.contains(&sample.key));
                model.push(next);
            }
            format!("delete {gone:?}")
        }
        3 if newest.types.get("a") == Some(&DType::Int64) => {
            let holds = |sample: &Sample| matches!(sample.features.get("a").map(Vec::as_slice), Some([one]) if one.parse::<i64>().unwrap() < 2);
            let records = ChosenRecords::Where(vec!["a<2".to_owned()]);
            let deleted = delete(path, &DeleteOptions::new(records), &()).unwrap();
            let mut next = newest;
            next.delete(holds);
            if deleted.version.is_some() {
                model.push(next);
            } else {
                assert_eq!(next.records.len(), model.newest().1.records.len());
            }
            "delete a<2".to_owned()
        }
        3 | 4 => {
            let (name, dtype) = match rng.below(3) {
                0 => (
                    format!("new{}", rng.below(4)),
                    [DType::Float64, DType::Uint64, DType::Bytes][rng.below(3) as usize],
                ),
                _ => {
                    let (name, dtype) = TYPES[rng.below(3) as usize];
                    (name.to_owned(), dtype)
                }
            };
            let there = newest.types.get(&name).copied();
            let kind = if there.is_some() { ColumnChange::Replace } else { ColumnChange::Add };
            let dtype = there.unwrap_or(dtype);
            let missing = [MissingRows::Null, MissingRows::Keep][rng.below(2) as usize];
            let (mut row_keys, mut rows, mut next) = (vec![], vec![], newest);
            for sample in &mut next.records {
                if rng.one_in(5) {
                    if missing == MissingRows::Null || there.is_none() {
                        sample.features.remove(&name);
                    }
                    continue;
                }
                let (value, texts) = value(rng, dtype);
                row_keys.push(sample.key.clone().into_bytes());
                rows.push(value);
                match texts {
                    Some(texts) => drop(sample.features.insert(name.clone(), texts)),
                    None => drop(sample.features.remove(&name)),
                }
            }
            next.types.insert(name.clone(), dtype);
            let columns = vec![ColumnValues { name: name.clone(), dtype, rows }];
            let given = ColumnRows { source: "model".into(), keys: Some(row_keys), columns };
            let mut options = ColumnOptions::new(kind);
            options.missing = missing;
            // A name that the shards still have keeps its type until they are compacted.
            let opened = Dataset::open(path).unwrap();
            let stored = opened.manifest().stored_features().iter().find(|feature| feature.name == name);
            if stored.is_some_and(|stored| stored.dtype != dtype) {
                let refused = change_columns(path, &given, &options, &()).unwrap_err().to_string();
                assert!(refused.contains("the shards have a feature of this name"), "{refused}");
                return format!("column {name} of another type");
            }
            change_columns(path, &given, &options, &()).unwrap();
            model.push(next);
            format!("column {kind:?} {name} {missing:?}")
        }
        5 => {
            let names: Vec<_> = newest.types.keys().cloned().collect();
            if names.len() < 2 {
                return "nothing to drop".to_owned();
            }
            let name = names[rng.below(names.len() as u64) as usize].clone();
            drop_columns(path, std::slice::from_ref(&name), &ChangeOptions::default()).unwrap();
            let mut next = newest;
            next.types.remove(&name);
            next.records.iter_mut().for_each(|sample| drop(sample.features.remove(&name)));
            model.push(next);
            format!("column drop {name}")
        }
        6 => {
            let to = *model.versions.keys().nth(rng.below(model.versions.len() as u64) as usize).unwrap();
            let (found, version) = rollback(path, &to.to_string(), &ChangeOptions::default()).unwrap();
            assert_eq!(found, to);
            if version.is_some() {
                model.push(model.versions[&to].clone());
            }
            format!("rollback {to}")
        }
        7 => {
            let mut options = CompactOptions::default();
            options.shards = Shards::Count(1 + rng.below(3));
            if compact(path, &options, &()).unwrap().version.is_some() {
                let mut next = Version { deleted: BTreeMap::new(), ..newest };
                model.written(&mut next.records);
                model.push(next);
            }
            "compact".to_owned()
        }
        9 | 10 => {
            let name = format!("view{}", rng.below(3));
            if newest.views.contains_key(&name) && rng.one_in(4) {
                remove_view(path, &name, &ChangeOptions::default()).unwrap();
                let mut next = newest;
                next.views.remove(&name);
                model.push(next);
                return format!("select --remove {name}");
            }
            // Of the split, or of a view.
            let from = newest.views.keys().nth(rng.below(4) as usize).cloned();
            let records = from.as_ref().map_or(newest.records.clone(), |view| records_of(&newest, &newest.views[view]));
            let chosen: Vec<(u64, String)> =
                (0..).zip(&records).map(|(id, sample)| (id, sample.key.clone())).filter(|_| rng.one_in(2)).collect();
            let keys: BTreeSet<String> = chosen.iter().map(|(_, key)| key.clone()).collect();
            let mut options = SelectOptions::new(match rng.one_in(2) {
                true => ChosenRecords::Keys(keys.iter().map(|key| key.clone().into_bytes()).collect()),
                false => ChosenRecords::Ids(chosen.iter().map(|(id, _)| *id).collect()),
            });
            (options.split, options.replace) = (from.clone(), rng.one_in(2));
            match select(path, &name, &options, &()) {
                Ok(selected) => {
                    assert!(options.replace || !newest.views.contains_key(&name));
                    assert_eq!(selected.records, keys.len() as u64);
                    let mut next = newest;
                    let before = next.views.insert(name.clone(), keys);
                    match selected.version {
                        Some(_) => model.push(next),
                        None => assert_eq!(before.as_ref(), next.views.get(&name)),
                    }
                }
                Err(Error::Shard(ShardError::ViewName { .. })) => {
                    assert!(!options.replace && newest.views.contains_key(&name));
                }
                Err(error) => panic!("select: {error}"),
            }
            format!("select {name} of {from:?}")
        }
        8 => {
            let mut options = PurgeOptions::default();
            (options.forget_keys, options.search) = (rng.one_in(3), rng.one_in(2));
            let purged = match purge(path, &options, &()) {
                Err(Error::Shard(ShardError::VirtualShards { .. })) if path.join(".base").exists() => {
                    return "purge of a clone".to_owned();
                }
                purged => purged.unwrap(),
            };
            let forgets = options.forget_keys && !model.purged.is_empty();
            let changed = model.purge();
            assert_eq!(purged.versions, changed);
            assert_eq!(purged.version.is_some(), !changed.is_empty() || forgets);
            // A dataset that was cloned keeps its files.
            assert!(
                purged
                    .found
                    .iter()
                    .flatten()
                    .all(|file| file.starts_with(".base") || file.starts_with(path.join(".base")))
            );
            if purged.version.is_some() {
                if options.forget_keys {
                    model.purged.clear();
                }
                let next = model.newest().1.clone();
                model.push(next);
            }
            assert_eq!(purged.remembered, model.purged.len() as u64);
            "purge".to_owned()
        }
        _ => {
            if rng.one_in(2) {
                let name = format!("tag{}", rng.below(3));
                let made = tag(path, &name, None, &ChangeOptions::default());
                match (model.tags.get(&name), made) {
                    (None, Ok((tagged, Some(_)))) => {
                        assert_eq!(tagged, number);
                        model.tags.insert(name.clone(), number);
                        model.push(newest);
                    }
                    (Some(there), Ok((_, None))) => assert_eq!(*there, number),
                    (Some(_), Err(Error::Shard(ShardError::TagExists { .. }))) => {}
                    (there, made) => panic!("tag {name}: {there:?} {made:?}"),
                }
                return format!("tag {name}");
            }
            let keep = 1 + rng.below(6);
            let mut options = GcOptions::default();
            (options.keep, options.remove) = (Some(keep), true);
            gc(path, &options).unwrap();
            let tagged: BTreeSet<u64> = model.tags.values().copied().collect();
            // A tag of a version that a rollback left stays in the newest one.
            model.versions.retain(|version, _| *version + keep > number || tagged.contains(version));
            format!("gc --keep {keep}")
        }
    }
}

fn sequence(seed: u64, steps: u64) {
    let temp = tempfile::tempdir().unwrap();
    let mut rng = Rng(seed);
    let path = temp.path().join("dataset");
    // A third are changes of a clone. What lies inside its folder needs no word of the user.
    let base = if rng.one_in(3) { path.join(".base") } else { path.clone() };
    let first: Vec<String> = (0..3 + rng.below(12)).map(|i| format!("first{i}")).collect();
    let (source, mut records) = list(temp.path(), "first.jsonl", &mut rng, &first, &all_names());
    let mut options = Options::new(&source, &base);
    (options.seed, options.shards) = (None, Shards::Count(1 + rng.below(5)));
    // The folder's random name may be that of another split.
    options.split = Some("train".to_owned());
    pack(&options, &()).unwrap();
    let types = TYPES.iter().map(|(name, dtype)| ((*name).to_owned(), *dtype)).collect();
    let mut model =
        Model { versions: BTreeMap::new(), tags: BTreeMap::new(), next_key: 0, next_row: 0, purged: BTreeSet::new() };
    model.written(&mut records);
    model.versions.insert(1, Version { records, types, deleted: BTreeMap::new(), views: BTreeMap::new() });
    let mut done = vec![];
    let mut cloned = None;
    if base != path {
        for _ in 0..rng.below(4) {
            done.push(step(&mut rng, temp.path(), &base, &mut model));
        }
        clone(&base, &path, &CloneOptions::default(), &()).unwrap();
        done.push("clone".to_owned());
        cloned = Some(files(&base));
        let number = model.newest().0;
        model.versions.retain(|version, _| *version == number);
        model.tags.retain(|_, tagged| *tagged == number);
    }
    for _ in 0..steps {
        done.push(step(&mut rng, temp.path(), &path, &mut model));
        let context = format!("seed {seed}: {}", done.join("; "));
        for (number, version) in &model.versions {
            check(&path, *number, version, &context);
        }
        for (name, number) in &model.tags {
            let tagged = Dataset::open(format!("{}@{name}", path.display())).unwrap();
            assert_eq!(tagged.version(), *number, "{context}");
        }
        let log: Vec<u64> = Dataset::open(&path).unwrap().log().unwrap().iter().map(|version| version.number).collect();
        assert!(log.iter().rev().eq(model.versions.keys()), "{context}: {log:?}");
    }
    if let Some(before) = cloned {
        assert!(files(&base) == before, "seed {seed}: the dataset that was cloned has changed");
    }
}

/// Returns the files below a folder, with their bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_changes_are_those_of_the_model() {
    let (sequences, seed) = (number("SHARDTOOL_VERSION_SEQUENCES", 60), number("SHARDTOOL_VERSION_SEED", 0));
    for seed in seed..seed + sequences {
        sequence(seed, 12);
    }
}

/// Returns a dataset of four records in two shards.
fn four(folder: &Path) -> PathBuf {
    let keys: Vec<String> = (0..4).map(|i| format!("k{i}")).collect();
    let (source, _) = list(folder, "four.jsonl", &mut Rng(1), &keys, &all_names());
    let path = folder.join("dataset");
    let mut options = Options::new(&source, &path);
    (options.seed, options.shards) = (None, Shards::Count(2));
    pack(&options, &()).unwrap();
    path
}

fn column(kind: ColumnChange, path: &Path, name: &str, keys: &[&str]) -> Result<(), Error> {
    let rows = keys.iter().map(|_| Some(Value::Int64(vec![1]))).collect();
    let columns = vec![ColumnValues { name: name.to_owned(), dtype: DType::Int64, rows }];
    let keys = Some(keys.iter().map(|key| key.as_bytes().to_vec()).collect());
    let rows = ColumnRows { source: "rows".into(), keys, columns };
    change_columns(path, &rows, &ColumnOptions::new(kind), &()).map(drop)
}

#[test]
fn each_row_belongs_to_one_record_and_each_record_has_a_row() {
    let temp = tempfile::tempdir().unwrap();
    let path = four(temp.path());
    let refused = |keys: &[&str]| column(ColumnChange::Add, &path, "n", keys).unwrap_err().to_string();
    assert!(refused(&["k0", "k1", "k2", "k3", "k9"]).contains("1 of 5 rows with the key of no record (k9)"));
    assert!(refused(&["k0", "k1", "k2", "k0"]).contains("`k0` occurs twice, in rows 1 and 4"));
    assert!(refused(&["k0", "k1", "k2"]).contains("1 record has no row (k3)"));
    column(ColumnChange::Add, &path, "n", &["k3", "k1", "k2", "k0"]).unwrap();
    let again = column(ColumnChange::Add, &path, "n", &["k3", "k1", "k2", "k0"]).unwrap_err();
    assert!(again.to_string().contains("`column replace`"), "{again}");
    let other = column(ColumnChange::Replace, &path, "text", &["k3", "k1", "k2", "k0"]).unwrap_err();
    assert!(other.to_string().contains("bytes in the dataset and int64"), "{other}");
    for fixed in ["image/key", "image/encoded", "image/width"] {
        let fixed = column(ColumnChange::Add, &path, fixed, &["k3", "k1", "k2", "k0"]).unwrap_err();
        assert!(matches!(fixed, Error::Shard(ShardError::Column { .. })), "{fixed}");
    }
    assert_eq!(Dataset::open(&path).unwrap().version(), 2);
}

#[test]
fn a_change_is_refused_if_what_it_is_based_on_was_changed() {
    let temp = tempfile::tempdir().unwrap();
    let path = four(temp.path());
    column(ColumnChange::Add, &path, "n", &["k3", "k1", "k2", "k0"]).unwrap();
    // The second of two deletions of one shard, both of which read version 2, is refused; one of another shard is not.
    let read = std::fs::read(path.join("dataset.json")).unwrap();
    let keys = |keys: &[&str]| ChosenRecords::Keys(keys.iter().map(|key| key.as_bytes().to_vec()).collect());
    delete(&path, &DeleteOptions::new(keys(&["k0"])), &()).unwrap();
    let newest = std::fs::read(path.join("dataset.json")).unwrap();
    let raced = |records: ChosenRecords| {
        // Between reading and committing, the other change commits.
        struct Swap<'a>(&'a Path, &'a [u8]);
        impl shardtool_pack::Progress for Swap<'_> {
            fn stopped(&self) -> bool {
                std::fs::write(self.0.join("dataset.json"), self.1).unwrap();
                false
            }
        }
        std::fs::write(path.join("dataset.json"), &read).unwrap();
        delete(&path, &DeleteOptions::new(records), &Swap(&path, &newest))
    };
    let refused = raced(keys(&["k1"]));
    assert!(matches!(&refused, Err(Error::Destination(DestinationError::CameFirst { version: 3, .. }))), "{refused:?}");
    assert_eq!(std::fs::read(path.join("dataset.json")).unwrap(), newest);
    let both = raced(keys(&["k3"])).unwrap();
    assert_eq!(both.version.unwrap().number, 4);
    let left: Vec<_> = read_keys(&path);
    assert_eq!(left, ["k1", "k2"]);
    // The file of the refused change is gone.
    assert_eq!(std::fs::read_dir(path.join("_columns")).unwrap().count(), 3);
}

fn read_keys(path: &Path) -> Vec<String> {
    read(train(&Dataset::open(path).unwrap())).into_iter().map(|sample| sample.key).collect()
}

/// Every command that writes, the old ones included, leaves the versions before readable.
#[test]
fn no_command_breaks_a_version_that_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let path = four(temp.path());
    column(ColumnChange::Add, &path, "n", &["k3", "k1", "k2", "k0"]).unwrap();
    delete(&path, &DeleteOptions::new(ChosenRecords::Ids(vec![1])), &()).unwrap();
    let before: Vec<_> =
        (1..=3).map(|n| read(train(&Dataset::open(format!("{}@{n}", path.display())).unwrap()))).collect();
    let source = temp.path().join("four.jsonl");
    let mut options = Options::new(&source, &path);
    (options.seed, options.shards, options.force) = (None, Shards::Count(3), true);
    assert!(matches!(pack(&options, &()), Err(Error::Destination(DestinationError::HasVersions { .. }))));
    let repaired = shardtool_pack::repair(&path, &shardtool_pack::RepairOptions::default(), &());
    assert!(matches!(repaired, Err(Error::Destination(DestinationError::HasVersions { .. }))));
    let shard = path.join("train-00000.tfrecord");
    let indexed = shardtool_pack::adopt(&[shard], &shardtool_pack::AdoptOptions::default(), &());
    assert!(matches!(indexed, Err(Error::Destination(DestinationError::HasVersions { .. }))), "{indexed:?}");
    let mut other = Options::new(&source, &path);
    (other.split, other.seed) = (Some("validation".to_owned()), None);
    pack(&other, &()).unwrap();
    shardtool_pack::clean(&path, false).unwrap();
    assert!(!shardtool_pack::reseal(&path).unwrap());
    let now = Dataset::open(&path).unwrap();
    assert_eq!((now.version(), now.splits().len()), (4, 2));
    for (number, before) in (1..).zip(&before) {
        assert_eq!(
            &read(train(&Dataset::open(format!("{}@{number}", path.display())).unwrap())),
            before,
            "version {number}"
        );
    }
}

/// A dataset without versions is written as before, to the byte; a version keeps the manifest before it, to the byte.
#[test]
fn manifests_of_versions_keep_their_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let path = four(temp.path());
    let mut manifests = vec![std::fs::read(path.join("dataset.json")).unwrap()];
    assert!(String::from_utf8_lossy(&manifests[0]).contains("\"version\": \"1.0\""));
    for name in ["n", "m", "o"] {
        column(ColumnChange::Add, &path, name, &["k3", "k1", "k2", "k0"]).unwrap();
        manifests.push(std::fs::read(path.join("dataset.json")).unwrap());
    }
    for (number, json) in (1..).zip(&manifests[..3]) {
        assert_eq!(&std::fs::read(path.join(format!("_versions/{number:06}.json"))).unwrap(), json);
        let crc = format!("{:08x}", shardtool_format::manifest::own_crc(json).unwrap());
        let opened = Dataset::open(format!("{}@{crc}", path.display())).unwrap();
        assert_eq!(opened.version(), number);
    }
    assert!(Dataset::open(format!("{}@5", path.display())).is_err());
    assert!(Dataset::open(format!("{}@nowhere", path.display())).is_err());
    // A folder whose name is the whole text is opened; if both exist, the text is refused.
    std::fs::create_dir(temp.path().join("dataset@2")).unwrap();
    let both = Dataset::open(format!("{}@2", path.display())).unwrap_err().to_string();
    assert!(both.contains("may also mean version `2`"), "{both}");
}
