//! Random changes of a dataset and of its model.

use crate::checks::records_of;
use crate::inputs::{Rng, TYPES, all_names, list, value};
use crate::model::{Model, Sample, Version};
use shardtool_format::manifest::DType;
use shardtool_pack::{
    AppendOptions, ChangeOptions, ChosenRecords, ColumnChange, ColumnOptions, ColumnRows, ColumnValues, CompactOptions,
    DeleteOptions, DestinationError, Error, GcOptions, MissingRows, PurgeOptions, SelectOptions, ShardError, Shards,
    append, change_columns, compact, delete, drop_columns, gc, purge, remove_view, rollback, select, tag,
};
use shardtool_read::Dataset;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn keys(model: &Model) -> Vec<String> {
    model.newest().1.records.iter().map(|sample| sample.key.clone()).collect()
}

/// Makes one random change of the dataset and of the model.
pub(crate) fn step(rng: &mut Rng, temp: &Path, path: &Path, model: &mut Model) -> String {
    let (number, newest) = (model.newest().0, model.newest().1.clone());
    match rng.below(12) {
        0 | 1 => {
            let mut new: Vec<String> = (0..1 + rng.below(4)).map(|i| format!("k{}", model.next_key + i)).collect();
            model.next_key += 10;
            let old = keys(model);
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
            let all = keys(model);
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
            let deleted = delete(path, &DeleteOptions::new(records), &());
            if newest.records.iter().any(|sample| sample.features.get("a").is_some_and(|all| all.len() > 1)) {
                assert!(format!("{:?}", deleted.unwrap_err()).contains("Several"));
                return "delete a<2, of which a record has several".to_owned();
            }
            let deleted = deleted.unwrap();
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
