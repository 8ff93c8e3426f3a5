//! Writes a manifest as canonical JSON.

use super::{
    Companion, DIGITS, Deleted, FOREIGN, FORMAT, FeatureType, FilePart, Manifest, Purged, Shard, Split, TAIL, Tag,
    Versions, View, ViewShard,
};
use crate::checksum;
use std::fmt::Write;

impl Manifest {
    /// Returns the canonical JSON, with its CRC.
    pub fn to_json(&self) -> String {
        let or_null = |s: &Option<String>| s.as_deref().map_or("null".to_owned(), text);
        let mut out = String::new();
        let mut member = |name: &str, value: &str| writeln!(out, "  {}: {value},", text(name)).expect("into a String");
        member("format", &text(FORMAT));
        let logical = self.features.iter().any(|feature| feature.dtype.is_logical());
        let foreign = self.has_foreign_shards();
        let later = logical || foreign || self.versions.is_some() || self.keypoints.is_some();
        member("version", &text(super::FORMAT_VERSIONS[usize::from(later)]));
        let mut requires: Vec<_> = self.requires.iter().map(String::as_str).chain(foreign.then_some(FOREIGN)).collect();
        requires.sort_unstable();
        if !requires.is_empty() {
            let names: Vec<_> = requires.iter().map(|name| text(name)).collect();
            member("requires", &format!("[{}]", names.join(", ")));
        }
        member("created_by", &text(&self.created_by));
        if let Some(versions) = &self.versions {
            member("dataset_version", &version_line(versions));
            member("tags", &array(versions.tags.iter().map(tag_line), "  "));
            if let Some(purged) = &versions.purged {
                member("purged", &purged_line(purged));
            }
        }
        member("image", &or_null(&self.image));
        member("label", &or_null(&self.label));
        member("label_offset", &self.label_offset.to_string());
        member("features", &array(self.stored_features().iter().map(feature_line), "  "));
        if let Some(versions) = &self.versions {
            member("columns", &array(column_lines(versions), "  "));
        }
        member("classes", &array(self.classes.iter().map(|c| format!("    {}", text(c))), "  "));
        self.keypoints.iter().for_each(|keypoints| member("keypoints", &keypoints.line()));
        let split = |s: &Split| {
            let shards = array(s.shards.iter().map(shard_line), "    ");
            format!("    {{\"name\": {}, \"shards\": {shards}}}", text(&s.name))
        };
        member("splits", &array(self.splits.iter().map(split), "  "));
        if !self.views().is_empty() {
            member("views", &array(self.views().iter().map(view_line), "  "));
        }
        self.private.iter().for_each(|(name, value)| member(name, &text(value)));
        let json = format!("{{\n{out}{}{}{}", TAIL.0, "0".repeat(DIGITS), TAIL.1);
        let crc = checksum::crc32c(json.as_bytes());
        format!("{{\n{out}{}{crc:08x}{}", TAIL.0, TAIL.1)
    }
}

pub(super) fn text(s: &str) -> String {
    serde_json::to_string(s).expect("a string is always JSON")
}

fn array(lines: impl Iterator<Item = String>, indent: &str) -> String {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n{indent}]", lines.join(",\n")) }
}

fn feature_line(feature: &FeatureType) -> String {
    let logical = match feature.dtype.is_logical() {
        true => format!(", \"logical\": \"{}\"", feature.dtype.name()),
        false => String::new(),
    };
    format!("    {{\"name\": {}, \"type\": \"{}\"{logical}}}", text(&feature.name), feature.dtype.stored().name())
}

fn version_line(versions: &Versions) -> String {
    let given = |name: &str, value: &Option<String>| {
        value.as_deref().map_or(String::new(), |value| format!(", \"{name}\": {}", text(value)))
    };
    format!(
        "{{\"number\": {}, \"parent\": \"{:08x}\", \"command\": {}{}{}}}",
        versions.number,
        versions.parent,
        text(&versions.command),
        given("message", &versions.message),
        given("author", &versions.author)
    )
}

fn tag_line(tag: &Tag) -> String {
    format!("    {{\"name\": {}, \"number\": {}}}", text(&tag.name), tag.number)
}

fn purged_line(purged: &Purged) -> String {
    let versions: Vec<_> = purged.versions.iter().map(u64::to_string).collect();
    let keys = purged
        .keys
        .as_ref()
        .map_or(String::new(), |keys| format!(", \"keys\": {{\"number\": {}, {}}}", keys.number, part(&keys.list)));
    format!("{{\"versions\": [{}]{keys}}}", versions.join(", "))
}

fn view_line(view: &View) -> String {
    let conditions: Vec<_> = view.conditions.iter().map(|condition| text(condition)).collect();
    let conditions = match conditions.is_empty() {
        true => String::new(),
        false => format!(", \"where\": [{}]", conditions.join(", ")),
    };
    let shard = |shard: &ViewShard| {
        let absent =
            |Deleted { rows, bitmap }: &Deleted| format!(", \"absent\": {{\"rows\": {rows}, {}}}", part(bitmap));
        format!("      {{\"file\": {}{}}}", text(&shard.file), shard.absent.as_ref().map_or(String::new(), absent))
    };
    let shards = array(view.shards.iter().map(shard), "    ");
    format!(
        "    {{\"name\": {}, \"split\": {}{conditions}, \"shards\": {shards}}}",
        text(&view.name),
        text(&view.split)
    )
}

/// Returns a line for each column and each dropped feature, in byte order of their names.
fn column_lines(versions: &Versions) -> impl Iterator<Item = String> {
    let columns = versions.columns.iter().map(|column| (column.name.as_str(), feature_line(column)));
    let dropped = versions.dropped.iter();
    let dropped = dropped.map(|name| (name.as_str(), format!("    {{\"name\": {}, \"dropped\": true}}", text(name))));
    let mut lines: Vec<_> = columns.chain(dropped).collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line)
}

fn part(part: &FilePart) -> String {
    format!(
        "\"file\": {}, \"offset\": {}, \"bytes\": {}, \"crc32c\": \"{:08x}\"",
        text(&part.file),
        part.offset,
        part.bytes,
        part.crc32c
    )
}

fn companion(column: &Companion) -> String {
    format!("{{\"name\": {}, {}}}", text(&column.name), part(&column.index))
}

/// Returns the members of a shard that has companions, each after a comma.
fn companions(shard: &Shard) -> String {
    let deleted = |Deleted { rows, bitmap }: &Deleted| format!(", \"deleted\": {{\"rows\": {rows}, {}}}", part(bitmap));
    let mut members = shard.companions.deleted.as_ref().map_or(String::new(), deleted);
    if !shard.companions.columns.is_empty() {
        let columns: Vec<_> = shard.companions.columns.iter().map(companion).collect();
        members.push_str(&format!(", \"columns\": [{}]", columns.join(", ")));
    }
    members
}

/// Returns the members of a shard that is not a file of the dataset, each after a comma.
fn foreign(shard: &Shard) -> String {
    let is_virtual = if shard.foreign.is_virtual { ", \"virtual\": true" } else { "" };
    let source = |source: &String| format!(", \"source\": {}", text(source));
    format!("{is_virtual}{}", shard.foreign.source.as_ref().map_or(String::new(), source))
}

fn shard_line(s: &Shard) -> String {
    let sha256 = s.sha256.map_or(String::new(), |digest| format!(", \"sha256\": \"{digest}\""));
    format!(
        "      {{\"file\": {}, \"records\": {}, \"bytes\": {}, \"crc32c\": \"{:08x}\", \"index_bytes\": {}, \
         \"index_crc32c\": \"{:08x}\"{sha256}{}{}}}",
        text(&s.file),
        s.records,
        s.bytes,
        s.crc32c,
        s.index_bytes,
        s.index_crc32c,
        companions(s),
        foreign(s)
    )
}
