//! Sequences of changes of a dataset in a folder or in a store.

use crate::checks::check;
use crate::inputs::{Rng, TYPES, all_names, list};
use crate::kills::killed_step;
use crate::model::{Model, Version};
use crate::steps::step;
use shardtool_pack::{CloneOptions, Options, Shards, clone, pack};
use shardtool_read::Dataset;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One of this many changes is killed first.
const KILLED: u64 = 6;

/// Where a dataset is changed.
pub(crate) struct Place {
    /// The folder or URL of the dataset.
    pub(crate) path: PathBuf,
    /// The folder that holds its files; in a store, that of the server.
    pub(crate) files: PathBuf,
    /// A folder for the inputs of changes.
    pub(crate) temp: PathBuf,
}

impl Place {
    pub(crate) fn in_folder(temp: &Path) -> Self {
        let path = temp.join("dataset");
        Place { files: path.clone(), path, temp: temp.to_owned() }
    }

    /// Returns a prefix of the bucket `bucket` in the folder of a server.
    pub(crate) fn in_store(server: &Path, prefix: &str, temp: &Path) -> Self {
        let path = PathBuf::from(format!("s3://bucket/{prefix}"));
        Place { path, files: server.to_owned(), temp: temp.to_owned() }
    }

    pub(crate) fn is_store(&self) -> bool {
        self.path != self.files
    }
}

/// Makes a dataset and random changes of it.
pub(crate) fn sequence(seed: u64, steps: u64, place: &Place) {
    let Place { path, temp, .. } = place;
    let mut rng = Rng(seed);
    // A third are changes of a clone. What lies inside its folder needs no word of the user.
    let base = if rng.one_in(3) && !place.is_store() { path.join(".base") } else { path.clone() };
    let first: Vec<String> = (0..3 + rng.below(12)).map(|i| format!("first{i}")).collect();
    let (source, mut records) = list(temp, "first.jsonl", &mut rng, &first, &all_names());
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
    if base != *path {
        for _ in 0..rng.below(4) {
            done.push(step(&mut rng, temp, &base, &mut model));
        }
        clone(&base, path, &CloneOptions::default(), &()).unwrap();
        done.push("clone".to_owned());
        cloned = Some(files(&base));
        let number = model.newest().0;
        model.versions.retain(|version, _| *version == number);
        model.tags.retain(|_, tagged| *tagged == number);
    }
    for _ in 0..steps {
        let context = format!("seed {seed}: {}", done.join("; "));
        done.push(match rng.one_in(KILLED) {
            true => killed_step(&mut rng, place, &mut model, &context),
            false => step(&mut rng, temp, path, &mut model),
        });
        let context = format!("seed {seed}: {}", done.join("; "));
        for (number, version) in &model.versions {
            check(path, *number, version, &context);
        }
        for (name, number) in &model.tags {
            let tagged = Dataset::open(format!("{}@{name}", path.display())).unwrap();
            assert_eq!(tagged.version(), *number, "{context}");
        }
        let log: Vec<u64> = Dataset::open(path).unwrap().log().unwrap().iter().map(|version| version.number).collect();
        assert!(log.iter().rev().eq(model.versions.keys()), "{context}: {log:?}");
    }
    if let Some(before) = cloned {
        assert!(files(&base) == before, "seed {seed}: the dataset that was cloned has changed");
    }
}

/// Returns the files below a folder, with their bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
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
