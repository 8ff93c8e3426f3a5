//! `shardtool diff`.

use crate::exit::Exit;
use crate::headings;
use crate::open::{CacheArguments, SourcesArgument, all};
use crate::output::Output;
use crate::text;
use serde_json::{Value, json};
use shardtool_format::manifest::{DType, FeatureType, Manifest};
use shardtool_format::{example, printable};
use shardtool_read::{Dataset, Record, Split};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::path::PathBuf;

/// Compare the samples of two datasets byte for byte; exit status 1 if they differ
///
/// Samples are matched by key within each split, independent of order and shards. If only one dataset has a feature, or its
/// type differs, the other features are compared too. Needs about 50 bytes of memory per sample.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// First dataset
    a: PathBuf,
    /// Second dataset
    b: PathBuf,
    #[command(flatten)]
    cache: CacheArguments,
    #[command(flatten)]
    sources: SourcesArgument,
    /// One split [default: all of both]
    #[arg(long, help_heading = headings::RECORDS)]
    split: Option<String>,
    /// Keys to list of each kind of difference
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = headings::OUTPUT)]
    names: usize,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// Differences between two splits of the same name.
#[derive(Default)]
struct Difference {
    records: (u64, u64),
    same: u64,
    /// Samples that are equal but for the features that one dataset has, or has with another type.
    same_but_features: u64,
    differing: Named,
    only_a: Named,
    only_b: Named,
}

/// A number of samples and the keys of the first ones.
#[derive(Default)]
struct Named {
    count: u64,
    keys: Vec<String>,
}

impl Named {
    fn add(&mut self, key: &[u8], max_keys: usize) {
        self.count += 1;
        if self.keys.len() < max_keys {
            self.keys.push(text::printable(key));
        }
    }
}

/// Features that only one of two datasets has, or that have another type in each.
#[derive(Default)]
struct Features {
    only_a: Vec<FeatureType>,
    only_b: Vec<FeatureType>,
    /// A feature of the first dataset, and its type in the second.
    changed: Vec<(FeatureType, DType)>,
}

impl Features {
    fn new(a: &Manifest, b: &Manifest) -> Self {
        let find = |manifest: &Manifest, name: &str| manifest.features.iter().find(|f| f.name == name).cloned();
        let only = |of: &Manifest, other: &Manifest| {
            of.features.iter().filter(|f| find(other, &f.name).is_none()).cloned().collect::<Vec<_>>()
        };
        let changed = a.features.iter().filter_map(|feature| {
            let other = find(b, &feature.name)?;
            (other.dtype != feature.dtype).then(|| (feature.clone(), other.dtype))
        });
        Features { only_a: only(a, b), only_b: only(b, a), changed: changed.collect() }
    }

    /// Returns the names of all of them.
    fn names(&self) -> BTreeSet<String> {
        let changed = self.changed.iter().map(|(feature, _)| feature);
        self.only_a.iter().chain(&self.only_b).chain(changed).map(|feature| feature.name.clone()).collect()
    }

    fn print(&self, out: &mut Output) -> std::io::Result<()> {
        for (which, features) in [("first", &self.only_a), ("second", &self.only_b)] {
            for feature in features {
                let (name, dtype) = (printable(&feature.name), feature.dtype.name());
                writeln!(out, "  feature {name} ({dtype}) only in the {which}")?;
            }
        }
        for (feature, other) in &self.changed {
            let (name, dtype) = (printable(&feature.name), feature.dtype.name());
            writeln!(out, "  feature {name} is {dtype} in the first, {} in the second", other.name())?;
        }
        Ok(())
    }

    fn document(&self) -> Value {
        let named = |features: &[FeatureType]| {
            features.iter().map(|f| json!({"name": f.name, "type": f.dtype.name()})).collect::<Vec<_>>()
        };
        let changed = self
            .changed
            .iter()
            .map(|(feature, other)| json!({"name": feature.name, "types": [feature.dtype.name(), other.name()]}));
        json!({"only_a": named(&self.only_a), "only_b": named(&self.only_b), "changed": changed.collect::<Vec<_>>()})
    }
}

impl Difference {
    fn is_empty(&self) -> bool {
        self.differing.count + self.only_a.count + self.only_b.count + self.same_but_features == 0
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let (a, b) = (
        arguments.cache.open(&arguments.a, &arguments.sources)?,
        arguments.cache.open(&arguments.b, &arguments.sources)?,
    );
    let names: BTreeSet<String> = match &arguments.split {
        Some(name) => [a.split(name)?.name().to_owned(), b.split(name)?.name().to_owned()].into(),
        None => all(&a)?.iter().chain(all(&b)?).map(|split| split.name().to_owned()).collect(),
    };
    let find = |dataset: &Dataset, name: &str| dataset.splits().iter().find(|split| split.name() == name).cloned();
    let features = Features::new(a.manifest(), b.manifest());
    let left_out = features.names();
    let mut splits = vec![];
    for name in names {
        let difference = compare(find(&a, &name).as_ref(), find(&b, &name).as_ref(), &left_out, arguments.names)?;
        splits.push((name, difference));
    }
    let conventions = {
        let (a, b) = (a.manifest(), b.manifest());
        [
            ("classes", a.classes == b.classes),
            ("keypoints", a.keypoints == b.keypoints),
            ("features", a.features == b.features),
            ("image feature", a.image == b.image),
            ("label feature", (&a.label, a.label_offset) == (&b.label, b.label_offset)),
        ]
    };
    let other: Vec<_> = conventions.iter().filter(|(_, same)| !same).map(|(what, _)| *what).collect();
    let equal = other.is_empty() && splits.iter().all(|(_, difference)| difference.is_empty());
    if arguments.json {
        let named = |named: &Named| json!({"count": named.count, "keys": named.keys});
        let split = |(name, d): &(String, Difference)| {
            json!({"split": name, "records": [d.records.0, d.records.1], "same": d.same,
                "same_but_features": d.same_but_features,
                "differing": named(&d.differing), "only_a": named(&d.only_a), "only_b": named(&d.only_b)})
        };
        let splits: Vec<_> = splits.iter().map(split).collect();
        out.json(&json!({
            "equal": equal, "differing": other, "features": features.document(), "splits": splits,
        }))?;
    } else {
        other.iter().try_for_each(|what| writeln!(out, "different {what}"))?;
        features.print(out)?;
        for (name, difference) in &splits {
            print(name, difference, &left_out, out)?;
        }
        if equal {
            writeln!(out, "All samples are equal, byte for byte.")?;
        }
    }
    Ok(if equal { Exit::Success } else { Exit::Finding })
}

fn print(name: &str, difference: &Difference, left_out: &BTreeSet<String>, out: &mut Output) -> std::io::Result<()> {
    let Difference { records: (a, b), same, same_but_features, differing, only_a, only_b } = difference;
    let (a, b) = (text::plural(*a, "record"), text::plural(*b, "record"));
    writeln!(out, "split {}: {a} and {b}; {} equal", printable(name), text::count(*same))?;
    if *same_but_features > 0 {
        let noun = if left_out.len() == 1 { "feature" } else { "features" };
        let names: Vec<_> = left_out.iter().map(|name| printable(name)).collect();
        writeln!(out, "  {} equal but for {noun} {}", text::count(*same_but_features), names.join(", "))?;
    }
    for (what, named) in [("differ", differing), ("only in the first", only_a), ("only in the second", only_b)] {
        if named.count > 0 {
            writeln!(out, "  {} {what}:", text::count(named.count))?;
            named.keys.iter().try_for_each(|key| writeln!(out, "    {key}"))?;
            if named.count > named.keys.len() as u64 {
                writeln!(out, "    …")?;
            }
        }
    }
    Ok(())
}

/// Compares two splits by the keys of their records and the bytes of each. A key may occur several times.
fn compare(
    a: Option<&Split>,
    b: Option<&Split>,
    left_out: &BTreeSet<String>,
    max_keys: usize,
) -> anyhow::Result<Difference> {
    let random = std::hash::RandomState::new();
    let mut difference = Difference::default();
    let (mut a_rows, mut b_rows) = (rows(a, left_out, &random)?, rows(b, left_out, &random)?);
    difference.records = (a_rows.len() as u64, b_rows.len() as u64);
    // Sorting by key and then content puts equal samples at the same place in both.
    a_rows.sort_unstable();
    b_rows.sort_unstable();
    let (mut i, mut j) = (0, 0);
    while i < a_rows.len() || j < b_rows.len() {
        let key = match (a_rows.get(i), b_rows.get(j)) {
            (Some(x), Some(y)) => x.key.min(y.key),
            (Some(x), None) => x.key,
            (None, Some(y)) => y.key,
            (None, None) => break,
        };
        let run = |rows: &[Row], from: usize| rows[from..].iter().take_while(|row| row.key == key).count();
        let (n, m) = (run(&a_rows, i), run(&b_rows, j));
        group(
            &a_rows[i..i + n],
            &b_rows[j..j + m],
            a.zip(b),
            left_out,
            &mut difference,
            |of_a, row| {
                let split = if of_a { a } else { b };
                Ok(split.map(|split| key_of(split, row.id)).transpose()?.unwrap_or_default())
            },
            max_keys,
        )?;
        (i, j) = (i + n, j + m);
    }
    Ok(difference)
}

/// Compares the samples that have one key.
fn group(
    a: &[Row],
    b: &[Row],
    splits: Option<(&Split, &Split)>,
    left_out: &BTreeSet<String>,
    difference: &mut Difference,
    key: impl Fn(bool, &Row) -> anyhow::Result<Vec<u8>>,
    max_keys: usize,
) -> anyhow::Result<()> {
    let mut left: Vec<&Row> = b.iter().collect();
    for row in a {
        // Records that are equal as a whole first.
        let mut same = None;
        for (at, other) in left.iter().enumerate().filter(|(_, other)| other.compared == row.compared) {
            let Some((split_a, split_b)) = splits else { break };
            if row.content == other.content && same_bytes(split_a, row.id, split_b, other.id)? {
                same = Some((at, true));
                break;
            }
            if same.is_none() && !left_out.is_empty() && same_features(split_a, row.id, split_b, other.id, left_out)? {
                same = Some((at, false));
            }
        }
        match same {
            Some((at, whole)) => {
                *if whole { &mut difference.same } else { &mut difference.same_but_features } += 1;
                left.swap_remove(at);
            }
            None if !left.is_empty() => {
                difference.differing.add(&key(true, row)?, max_keys);
                left.pop();
            }
            None => difference.only_a.add(&key(true, row)?, max_keys),
        }
    }
    left.into_iter().try_for_each(|row| {
        difference.only_b.add(&key(false, row)?, max_keys);
        Ok(())
    })
}

/// Hashes of a sample's key, of the features that both datasets have, and of the whole record; and its id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    key: u64,
    compared: u64,
    content: u64,
    id: u64,
}

fn rows(
    split: Option<&Split>,
    left_out: &BTreeSet<String>,
    random: &std::hash::RandomState,
) -> anyhow::Result<Vec<Row>> {
    let Some(split) = split else { return Ok(vec![]) };
    split.check_counts()?;
    let mut buffer = vec![];
    let mut rows = Vec::with_capacity(split.len() as usize);
    for id in 0..split.len() {
        let record = split.get_with(id, std::mem::take(&mut buffer))?;
        let hash = |bytes: &[u8]| {
            let mut hasher = random.build_hasher();
            hasher.write(bytes);
            hasher.finish()
        };
        let content = hash(record.data());
        let compared = if left_out.is_empty() { content } else { hash(&compared(&record, left_out)?) };
        rows.push(Row { key: hash(&record.key()?), compared, content, id });
        record.check_readable()?;
        buffer = record.into_buffer();
    }
    Ok(rows)
}

/// Returns the features of a record without some, in an order and a coding that depend on names and values only. Opaque
/// records have no features: their bytes are returned.
fn compared(record: &Record, left_out: &BTreeSet<String>) -> anyhow::Result<Vec<u8>> {
    let Ok(example) = record.example() else { return Ok(record.data().to_vec()) };
    let mut features: Vec<_> = example.features().iter().filter(|(name, _)| !left_out.contains(&**name)).collect();
    features.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut bytes = vec![];
    let mut add = |value: &[u8]| {
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        bytes.extend_from_slice(value);
    };
    for (name, feature) in features {
        add(name.as_bytes());
        add(feature.dtype().map_or("", |dtype| dtype.name()).as_bytes());
        add(&feature.count().to_le_bytes());
        match feature {
            example::Feature::Empty => {}
            example::Feature::Int64(list) => list.iter().for_each(|value| add(&value.to_le_bytes())),
            example::Feature::Float(list) => list.iter().for_each(|value| add(&value.to_le_bytes())),
            example::Feature::Bytes(list) => list.iter().for_each(&mut add),
        }
    }
    Ok(bytes)
}

fn same_features(a: &Split, a_id: u64, b: &Split, b_id: u64, left_out: &BTreeSet<String>) -> anyhow::Result<bool> {
    let (a, b) = (a.get(a_id)?, b.get(b_id)?);
    let same = compared(&a, left_out)? == compared(&b, left_out)? && a.key()? == b.key()?;
    a.check_readable()?;
    b.check_readable()?;
    Ok(same)
}

fn key_of(split: &Split, id: u64) -> anyhow::Result<Vec<u8>> {
    Ok(split.get(id)?.key()?.into_owned())
}

fn same_bytes(a: &Split, a_id: u64, b: &Split, b_id: u64) -> anyhow::Result<bool> {
    let (a, b) = (a.get(a_id)?, b.get(b_id)?);
    let same = a.data() == b.data() && a.key()? == b.key()?;
    a.check_readable()?;
    b.check_readable()?;
    Ok(same)
}
