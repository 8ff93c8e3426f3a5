//! `shardtool diff`.

use crate::exit::Exit;
use crate::open::{CacheArguments, all};
use crate::output::Output;
use crate::text;
use serde_json::json;
use shardtool_format::printable;
use shardtool_read::{Dataset, Split};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::path::PathBuf;

/// Compare the samples of two datasets byte for byte; exit status 1 if they differ
///
/// Samples are matched by key within each split, independent of order and shards. Needs about 40 bytes of memory per
/// sample.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// First dataset
    a: PathBuf,
    /// Second dataset
    b: PathBuf,
    #[command(flatten)]
    cache: CacheArguments,
    /// One split [default: all of both]
    #[arg(long)]
    split: Option<String>,
    /// Number of keys to list for each kind of difference
    #[arg(long, default_value_t = 10, value_name = "N")]
    names: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Differences between two splits of the same name.
#[derive(Default)]
struct Difference {
    records: (u64, u64),
    same: u64,
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

impl Difference {
    fn is_empty(&self) -> bool {
        self.differing.count + self.only_a.count + self.only_b.count == 0
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let (a, b) = (arguments.cache.open(&arguments.a)?, arguments.cache.open(&arguments.b)?);
    let names: BTreeSet<String> = match &arguments.split {
        Some(name) => [a.split(name)?.name().to_owned(), b.split(name)?.name().to_owned()].into(),
        None => all(&a)?.iter().chain(all(&b)?).map(|split| split.name().to_owned()).collect(),
    };
    let find = |dataset: &Dataset, name: &str| dataset.splits().iter().find(|split| split.name() == name).cloned();
    let mut splits = vec![];
    for name in names {
        let difference = compare(find(&a, &name).as_ref(), find(&b, &name).as_ref(), arguments.names)?;
        splits.push((name, difference));
    }
    let conventions = {
        let (a, b) = (a.manifest(), b.manifest());
        [
            ("classes", a.classes == b.classes),
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
                "differing": named(&d.differing), "only_a": named(&d.only_a), "only_b": named(&d.only_b)})
        };
        let splits: Vec<_> = splits.iter().map(split).collect();
        out.json(&json!({"equal": equal, "differing": other, "splits": splits}))?;
    } else {
        other.iter().try_for_each(|what| writeln!(out, "different {what}"))?;
        for (name, difference) in &splits {
            print(name, difference, out)?;
        }
        if equal {
            writeln!(out, "All samples are equal, byte for byte.")?;
        }
    }
    Ok(if equal { Exit::Success } else { Exit::Finding })
}

fn print(name: &str, difference: &Difference, out: &mut Output) -> std::io::Result<()> {
    let Difference { records: (a, b), same, differing, only_a, only_b } = difference;
    let (a, b) = (text::plural(*a, "record"), text::plural(*b, "record"));
    writeln!(out, "split {}: {a} and {b}; {} equal", printable(name), text::count(*same))?;
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
fn compare(a: Option<&Split>, b: Option<&Split>, max_keys: usize) -> anyhow::Result<Difference> {
    let random = std::hash::RandomState::new();
    let mut difference = Difference::default();
    let (mut a_rows, mut b_rows) = (rows(a, &random)?, rows(b, &random)?);
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
    difference: &mut Difference,
    key: impl Fn(bool, &Row) -> anyhow::Result<Vec<u8>>,
    max_keys: usize,
) -> anyhow::Result<()> {
    let mut left: Vec<&Row> = b.iter().collect();
    for row in a {
        let same = left.iter().position(|other| other.content == row.content);
        match (same, splits) {
            (Some(at), Some((split_a, split_b))) if same_bytes(split_a, row.id, split_b, left[at].id)? => {
                difference.same += 1;
                left.swap_remove(at);
            }
            _ if !left.is_empty() => {
                difference.differing.add(&key(true, row)?, max_keys);
                left.pop();
            }
            _ => difference.only_a.add(&key(true, row)?, max_keys),
        }
    }
    left.into_iter().try_for_each(|row| {
        difference.only_b.add(&key(false, row)?, max_keys);
        Ok(())
    })
}

/// Hash of a sample's key, hash of its record, and its id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    key: u64,
    content: u64,
    id: u64,
}

fn rows(split: Option<&Split>, random: &std::hash::RandomState) -> anyhow::Result<Vec<Row>> {
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
        rows.push(Row { key: hash(&record.key()?), content: hash(record.data()), id });
        record.check_readable()?;
        buffer = record.into_buffer();
    }
    Ok(rows)
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
