//! Writes a manifest as canonical JSON.

use super::{DIGITS, FORMAT, FeatureType, Manifest, Shard, Split, TAIL, VERSIONS};
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
        member("version", &text(VERSIONS[usize::from(logical)]));
        if !self.requires.is_empty() {
            let names: Vec<_> = self.requires.iter().map(|name| text(name)).collect();
            member("requires", &format!("[{}]", names.join(", ")));
        }
        member("created_by", &text(&self.created_by));
        member("image", &or_null(&self.image));
        member("label", &or_null(&self.label));
        member("label_offset", &self.label_offset.to_string());
        member("features", &array(self.features.iter().map(feature_line), "  "));
        member("classes", &array(self.classes.iter().map(|c| format!("    {}", text(c))), "  "));
        let split = |s: &Split| {
            let shards = array(s.shards.iter().map(shard_line), "    ");
            format!("    {{\"name\": {}, \"shards\": {shards}}}", text(&s.name))
        };
        member("splits", &array(self.splits.iter().map(split), "  "));
        self.private.iter().for_each(|(name, value)| member(name, &text(value)));
        let json = format!("{{\n{out}{}{}{}", TAIL.0, "0".repeat(DIGITS), TAIL.1);
        let crc = checksum::crc32c(json.as_bytes());
        format!("{{\n{out}{}{crc:08x}{}", TAIL.0, TAIL.1)
    }
}

fn text(s: &str) -> String {
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

fn shard_line(s: &Shard) -> String {
    let sha256 = s.sha256.map_or(String::new(), |digest| format!(", \"sha256\": \"{digest}\""));
    format!(
        "      {{\"file\": {}, \"records\": {}, \"bytes\": {}, \"crc32c\": \"{:08x}\", \"index_bytes\": {}, \
         \"index_crc32c\": \"{:08x}\"{sha256}}}",
        text(&s.file),
        s.records,
        s.bytes,
        s.crc32c,
        s.index_bytes,
        s.index_crc32c
    )
}
