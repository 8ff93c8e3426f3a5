//! `shardtool info --spec`: what of `format-spec.md` a dataset uses.

use crate::output::Output;
use crate::text;
use serde_json::json;
use shardtool_format::index::{
    Column, Element, FEATURE_PREFIX, IMAGE_LENGTH, IMAGE_OFFSET, JPEG_ENTRIES, KEY, RECORD_OFFSET, VALUES_PREFIX,
};
use shardtool_format::manifest::PRIVATE_PREFIX;
use shardtool_format::names;
use shardtool_read::Dataset;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Members of a manifest of version 1.0.
const MEMBERS: [&str; 10] =
    ["format", "version", "requires", "created_by", "image", "label", "label_offset", "features", "classes", "splits"];

/// What of the format the files of a dataset use.
#[derive(Default)]
struct Use {
    version: String,
    requires: Vec<String>,
    /// Shards whose index was surveyed.
    shards: u64,
    minor_versions: BTreeSet<u16>,
    /// Each column, with the number of shards that have it, and whether it has nulls in one of them.
    columns: BTreeMap<String, ColumnUse>,
    /// What a reader of version 1.0 ignores.
    ignored: BTreeSet<String>,
}

struct ColumnUse {
    element: Element,
    variable: bool,
    nullable: bool,
    shards: u64,
    bytes: u64,
}

/// Prints what of the format a dataset uses.
pub(crate) fn show(dataset: &Dataset, as_json: bool, out: &mut Output) -> anyhow::Result<()> {
    let used = survey(dataset)?;
    if as_json {
        out.json(&document(&used))?;
    } else {
        print(&used, out)?;
    }
    Ok(())
}

fn survey(dataset: &Dataset) -> anyhow::Result<Use> {
    let mut used = Use { requires: dataset.manifest().requires.clone(), ..Use::default() };
    let path = dataset.path();
    let json = shardtool_read::read_manifest(&if path.is_dir() { path.join(names::MANIFEST) } else { path.to_owned() });
    // Bare files have no manifest.
    if let Ok(serde_json::Value::Object(members)) =
        json.map_err(anyhow::Error::from).and_then(|j| Ok(serde_json::from_slice(&j)?))
    {
        used.version = members.get("version").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let known = |name: &str| MEMBERS.contains(&name) || name == "crc32c";
        let unknown = members.keys().filter(|name| !known(name));
        used.ignored.extend(unknown.map(|name| match name.starts_with(PRIVATE_PREFIX) {
            true => format!("private member `{}` of the manifest", text::printable(name.as_bytes())),
            false => format!("member `{}` of the manifest", text::printable(name.as_bytes())),
        }));
    }
    for feature in dataset.manifest().features.iter().filter(|feature| feature.dtype.is_logical()) {
        let name = text::printable(feature.name.as_bytes());
        used.ignored.insert(format!("logical type {} of the feature `{name}`", feature.dtype.name()));
    }
    for split in dataset.splits() {
        for number in 0..split.entry().shards.len() {
            let shard = split.shard(number)?;
            let Some((minor, flags)) = shard.index_version() else { continue };
            used.shards += 1;
            used.minor_versions.insert(minor);
            if flags != 0 {
                used.ignored.insert(format!("optional flags {flags:#010x} of an index"));
            }
            shard.columns().iter().for_each(|column| used.add(column));
        }
    }
    Ok(used)
}

impl Use {
    fn add(&mut self, column: &Column) {
        let known = matches!(column.name(), RECORD_OFFSET | IMAGE_OFFSET | IMAGE_LENGTH | KEY | JPEG_ENTRIES)
            || column.name().starts_with(FEATURE_PREFIX)
            || column.name().starts_with(VALUES_PREFIX);
        if !known {
            self.ignored.insert(format!("column `{}`", text::printable(column.name().as_bytes())));
        }
        let seen = self.columns.entry(column.name().to_owned()).or_insert(ColumnUse {
            element: column.element(),
            variable: column.element() == Element::Bytes,
            nullable: false,
            shards: 0,
            bytes: 0,
        });
        seen.nullable |= column.nullable();
        seen.shards += 1;
        seen.bytes += column.bytes();
    }

    /// Returns the smallest conformance class (format-spec.md, *Conformance*) that reads the whole dataset.
    fn class(&self) -> &'static str {
        let basic = |name: &String| !name.starts_with(FEATURE_PREFIX) && !name.starts_with(VALUES_PREFIX);
        if self.requires.is_empty() && self.columns.keys().all(basic) { "basic reader" } else { "full reader" }
    }
}

fn element(element: Element) -> &'static str {
    match element {
        Element::Bytes => "bytes",
        Element::U32 => "u32",
        Element::U64 => "u64",
        Element::I64 => "i64",
        Element::F32 => "f32",
    }
}

fn document(used: &Use) -> serde_json::Value {
    let columns = used.columns.iter().map(|(name, column)| {
        json!({
            "name": name, "kind": if column.variable { "variable" } else { "fixed width" },
            "element": element(column.element), "nulls": column.nullable, "shards": column.shards,
            "bytes": column.bytes,
        })
    });
    json!({
        "version": used.version, "requires": used.requires, "class": used.class(), "shards": used.shards,
        "index_versions": used.minor_versions.iter().map(|minor| format!("1.{minor}")).collect::<Vec<_>>(),
        "columns": columns.collect::<Vec<_>>(), "ignored_by_1.0": used.ignored,
    })
}

fn print(used: &Use, out: &mut Output) -> anyhow::Result<()> {
    let versions: Vec<_> = used.minor_versions.iter().map(|minor| format!("1.{minor}")).collect();
    let version = if used.version.is_empty() { "none (bare TFRecord files)" } else { &used.version };
    writeln!(out, "  manifest       {version}")?;
    writeln!(out, "  indexes        {} of version {}", used.shards, versions.join(", "))?;
    let requires = if used.requires.is_empty() { "nothing".to_owned() } else { used.requires.join(", ") };
    writeln!(out, "  requires       {requires}")?;
    writeln!(out, "  for all of it  {}", used.class())?;
    writeln!(out)?;
    writeln!(out, "  {:<36} {:<18} {:>6} {:>8}", "column", "type", "shards", "bytes")?;
    for (name, column) in &used.columns {
        let kind = format!("{}{}", element(column.element), if column.nullable { ", nulls" } else { "" });
        let name = text::column(&text::printable(name.as_bytes()), 36);
        writeln!(out, "  {name} {kind:<18} {:>6} {:>8}", column.shards, text::bytes(column.bytes))?;
    }
    writeln!(out)?;
    if used.ignored.is_empty() {
        writeln!(out, "  a reader of version 1.0 ignores nothing")?;
    }
    for ignored in &used.ignored {
        writeln!(out, "  a reader of version 1.0 ignores {ignored}")?;
    }
    Ok(())
}
