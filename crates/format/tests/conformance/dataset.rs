//! A dataset in memory, from records to files. Each file is derived from the preceding one, so that a builder
//! can change one and the others stay consistent.

use crate::bytes::crc::{crc32c, sum};
use crate::bytes::frame;
use crate::bytes::index::{self, Column, Header};
use crate::bytes::manifest::{self, Members};
use crate::column;
use crate::expected::Expected;
use crate::sample::Sample;
use crate::version::{self, Change, Companion, Deleted, Version};
use crate::virtual_shard::Virtual;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Contents of files, by path.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

#[derive(Clone)]
pub(crate) struct Dataset {
    pub(crate) requires: Vec<&'static str>,
    pub(crate) image: Option<&'static str>,
    pub(crate) label: Option<&'static str>,
    pub(crate) label_offset: i64,
    pub(crate) opaque: bool,
    pub(crate) classes: Vec<&'static str>,
    pub(crate) splits: Vec<(&'static str, Vec<Shard>)>,
    /// JSON that says what the keypoints of objects are.
    pub(crate) keypoints: Option<&'static str>,
    pub(crate) private: Vec<(&'static str, &'static str)>,
    /// Features with logical types.
    pub(crate) logical: Vec<(&'static str, &'static str)>,
    /// What makes it a changed dataset.
    pub(crate) version: Option<Version>,
}

#[derive(Clone)]
pub(crate) struct Shard {
    pub(crate) file: String,
    pub(crate) samples: Vec<Sample>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) columns: Vec<Column>,
    pub(crate) index: Vec<u8>,
    /// Whether the manifest has the SHA-256 of the shard.
    pub(crate) sha256: bool,
    pub(crate) deleted: Option<Deleted>,
    /// In byte order of the features.
    pub(crate) companions: Vec<Companion>,
    /// The records of the version, if they are not those in the shard: for each row one, or nothing if it is deleted.
    pub(crate) rows: Option<Vec<Option<Sample>>>,
    /// What makes it a virtual shard, which is not stored.
    pub(crate) foreign: Option<Virtual>,
}

impl Dataset {
    /// A dataset with the conventional names of image and label.
    pub(crate) fn new(splits: Vec<(&'static str, Vec<Shard>)>) -> Self {
        Dataset {
            requires: vec![],
            image: Some("image/encoded"),
            label: Some("image/class/label"),
            label_offset: 0,
            opaque: false,
            classes: vec![],
            splits,
            keypoints: None,
            private: vec![],
            logical: vec![],
            version: None,
        }
    }

    /// Returns the first shard of the first split.
    pub(crate) fn shard(&mut self) -> &mut Shard {
        &mut self.splits[0].1[0]
    }

    /// Returns the type of each feature in the first record that has it.
    fn features(&self) -> BTreeMap<&str, &str> {
        let samples = self.splits.iter().flat_map(|(_, shards)| shards).flat_map(|shard| &shard.samples);
        let mut types = BTreeMap::new();
        for (name, list) in samples.filter(|_| !self.opaque).flat_map(|sample| sample.features.iter().flatten()) {
            types.entry(name.as_str()).or_insert(list.type_name());
        }
        types
    }

    pub(crate) fn manifest(&self) -> Vec<u8> {
        let splits = self.splits.iter().map(|(name, shards)| (*name, shards.iter().map(Shard::line).collect()));
        manifest::file(&Members {
            requires: &self.requires,
            image: self.image,
            label: self.label,
            label_offset: self.label_offset,
            features: self.features().into_iter().collect(),
            classes: &self.classes,
            splits: splits.collect(),
            keypoints: self.keypoints,
            private: &self.private,
            logical: &self.logical,
            version: self.version.as_ref().map(Version::members),
        })
    }

    pub(crate) fn files(&self) -> Files {
        let mut files = Files::from([("dataset.json".to_owned(), self.manifest())]);
        for shard in self.splits.iter().flat_map(|(_, shards)| shards) {
            match &shard.foreign {
                Some(foreign) => files.extend(foreign.files.clone()),
                None => drop(files.insert(shard.file.clone(), shard.bytes.clone())),
            }
            files.insert(shard.index_path(), shard.index.clone());
            shard.companions.iter().for_each(|companion| companion.part.add_to(&mut files));
            shard.deleted.iter().for_each(|deleted| deleted.part.add_to(&mut files));
        }
        files.extend(self.version.iter().flat_map(|version| version.earlier.clone()));
        let purged = self.version.iter().flat_map(|version| &version.purged);
        purged.for_each(|(.., list)| list.add_to(&mut files));
        files
    }

    /// Returns what a reader must deliver from the undamaged dataset.
    pub(crate) fn expected(&self) -> Expected {
        let mut read = vec![];
        for (name, shards) in &self.splits {
            let records: usize = shards.iter().map(|shard| shard.live().count()).sum();
            read.push(json!({"split": name, "records": records, "fingerprint": fingerprint(shards)}));
            let mut record = 0;
            let mut lookups: BTreeMap<String, usize> = BTreeMap::new();
            let mut columns = vec![];
            for (number, shard) in shards.iter().enumerate() {
                for (row, sample) in shard.live() {
                    let key = sample.key(&shard.file, row);
                    let line = self.record(name, record, &key, sample);
                    // A reader of 1.0 sees byte strings only.
                    read.push(match self.numbers(sample) {
                        Some(numbers) => {
                            let mut with = line.clone();
                            with["numbers"] = numbers;
                            json!({"any": [with, line]})
                        }
                        None => line,
                    });
                    lookups.entry(key.iter().map(|byte| format!("{byte:02x}")).collect()).or_insert(record);
                    record += 1;
                }
                let stored = column::features(&shard.samples).into_iter();
                for (column, cells) in stored.filter(|(column, _)| !self.is_changed(shard, column)) {
                    columns.push(json!({"split": name, "shard": number, "column": column, "values": cells.values()}));
                }
            }
            read.extend(columns);
            read.extend(lookups.iter().map(|(key, record)| json!({"split": name, "lookup": key, "record": record})));
        }
        Expected {
            requires: self.requires.iter().map(|name| name.to_string()).collect(),
            read,
            findings: vec![],
            good: None,
        }
    }

    /// Returns whether a column of the index is of a feature that the version replaces or drops.
    fn is_changed(&self, shard: &Shard, column: &str) -> bool {
        let feature = column.split_once(':').expect("a prefix").1;
        let dropped = self.version.iter().flat_map(|version| &version.columns);
        let mut dropped = dropped.filter(|(_, change)| matches!(change, Change::Dropped));
        dropped.any(|(name, _)| *name == feature) || shard.companions.iter().any(|c| c.feature() == feature)
    }

    /// Returns the expected member `numbers` of a record.
    fn numbers(&self, sample: &Sample) -> Option<Value> {
        let numbers = self.logical.iter().filter_map(|(name, logical)| {
            let words: Option<Vec<u64>> = sample
                .get(name)?
                .strings()
                .iter()
                .map(|bytes| Some(u64::from_le_bytes((**bytes).try_into().ok()?)))
                .collect();
            let values = words.map(|words| {
                let printed = |word: u64| if *logical == "uint64" { word.to_string() } else { format!("{word:016x}") };
                words.into_iter().map(printed).collect::<Vec<_>>()
            });
            Some(((*name).to_owned(), json!({"type": logical, "values": values})))
        });
        let numbers: serde_json::Map<_, _> = numbers.collect();
        (!numbers.is_empty()).then_some(Value::Object(numbers))
    }

    fn record(&self, split: &str, record: usize, key: &[u8], sample: &Sample) -> Value {
        let class = sample.class(self.label, self.label_offset, self.classes.len()).map(|id| id.to_string());
        let image = self.image.and_then(|name| sample.string(name)).map(sum);
        let mut line = json!({
            "split": split, "record": record, "key": sum(key), "data": sum(&sample.data), "image": image, "class": class,
        });
        if let Some(features) = sample.feature_lines() {
            line["features"] = features;
        }
        if let Some(pixels) = &sample.pixels {
            line["pixels"] = pixels.clone();
        }
        if !sample.arrays.is_empty() {
            line["arrays"] = json!(sample.arrays);
        }
        line
    }
}

/// Returns the fingerprint of a split.
fn fingerprint(shards: &[Shard]) -> String {
    let numbers = |shard: &Shard| {
        let (records, length) = (shard.samples.len() as u64, shard.bytes.len() as u64);
        [&records.to_le_bytes()[..], &length.to_le_bytes(), &crc32c(&shard.bytes).to_le_bytes()].concat()
    };
    let mut all: Vec<u8> = shards.iter().flat_map(numbers).collect();
    if shards.iter().any(|shard| shard.deleted.is_some() || !shard.companions.is_empty()) {
        all.extend(shards.iter().flat_map(version::numbers));
    }
    format!("{:08x}", crc32c(&all))
}

impl Shard {
    /// A shard with the canonical name.
    pub(crate) fn new(split: &str, number: usize, samples: Vec<Sample>) -> Self {
        Shard::named(&format!("{split}-{number:05}.tfrecord"), Some("image/encoded"), samples)
    }

    /// A shard with a given name. `image` is the feature that holds images.
    pub(crate) fn named(file: &str, image: Option<&str>, samples: Vec<Sample>) -> Self {
        let mut columns = column::required(&samples, image, file);
        columns.extend(column::features(&samples).iter().map(|(name, cells)| cells.column(name)));
        if samples.iter().any(|sample| !sample.entries.is_empty()) {
            let rows: Vec<_> = samples.iter().map(|sample| Some(&sample.entries)).collect();
            columns.push(Column::variable("jpeg_entries", &rows));
        }
        let bytes = samples.iter().flat_map(|sample| frame(&sample.data)).collect();
        let (file, index) = (file.to_owned(), vec![]);
        let (deleted, companions, rows, foreign) = (None, vec![], None, None);
        let mut shard =
            Shard { file, samples, bytes, columns, index, sha256: false, deleted, companions, rows, foreign };
        shard.reindex();
        shard
    }

    /// Rebuilds the index from the columns and the shard.
    pub(crate) fn reindex(&mut self) {
        self.index = index::file(&self.header(), &self.columns);
    }

    pub(crate) fn header(&self) -> Header {
        Header {
            minor: 0,
            required_flags: 0,
            optional_flags: 0,
            records: self.samples.len() as u64,
            shard_bytes: self.bytes.len() as u64,
            shard_crc: crc32c(&self.bytes),
        }
    }

    /// Returns the records of the version, with their rows.
    pub(crate) fn live(&self) -> impl Iterator<Item = (usize, &Sample)> {
        let stored = self.samples.iter().map(Some);
        let rows: Vec<Option<&Sample>> =
            self.rows.as_ref().map_or(stored.collect(), |rows| rows.iter().map(Option::as_ref).collect());
        rows.into_iter().enumerate().filter_map(|(row, sample)| Some((row, sample?)))
    }

    pub(crate) fn column(&mut self, name: &str) -> &mut Column {
        self.columns.iter_mut().find(|column| column.name == name.as_bytes()).expect("a column of the index")
    }

    /// Returns the position of a column in the directory.
    pub(crate) fn position(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column.name == name.as_bytes()).expect("a column of the index")
    }

    pub(crate) fn index_path(&self) -> String {
        format!("_index/{}.index", self.file)
    }

    /// Returns the shard's line in the manifest.
    pub(crate) fn line(&self) -> String {
        let sha256: String = Sha256::digest(&self.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let sha256 = if self.sha256 { format!(", \"sha256\": \"{sha256}\"") } else { String::new() };
        format!(
            "{{\"file\": {}, \"records\": {}, \"bytes\": {}, \"crc32c\": \"{:08x}\", \"index_bytes\": {}, \
             \"index_crc32c\": \"{:08x}\"{sha256}{}{}}}",
            manifest::string(&self.file),
            self.samples.len(),
            self.bytes.len(),
            crc32c(&self.bytes),
            self.index.len(),
            crc32c(&self.index),
            version::members(self.deleted.as_ref(), &self.companions),
            self.foreign.as_ref().map(Virtual::members).unwrap_or_default(),
        )
    }
}
